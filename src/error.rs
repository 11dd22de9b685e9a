//! What can go wrong, split by what a caller would do next.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::owner::Owner;
use crate::vote::{Listed, Vote};

/// Why an operation did not do what it was asked to. Each kind calls for something else from the caller, and each that
/// comes of a round carries every master's [`Vote`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another owner has the lock, or enough masters to deny it. Come back later.
    #[error("lock {name:?} is {holder} [{}]", Listed(votes))]
    Held {
        /// The lock's name.
        name: Arc<str>,
        /// Who has it.
        holder: Holder,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// Too few masters can vote at all: they are out of reach, silent or refusing. Look at the masters.
    #[error("no quorum for lock {name:?}: {granted} of the {needed} masters needed agreed{} [{}]",
        if *late { ", and only when the lease was over already" } else { "" }, Listed(votes))]
    NoQuorum {
        /// The lock's name.
        name: Arc<str>,
        /// How many masters did what was asked before the round was decided.
        granted: usize,
        /// How many would have had to.
        needed: usize,
        /// A quorum granted, but too late for any of the lease to be left: the TTL is too short for these masters.
        late: bool,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// The wait budget ran out while others had the lock.
    #[error(
        "waited {waited:.1?} for lock {name:?} {}; it is {holder} [{}]",
        match attempts { 0 => "behind others in line".to_owned(), n => format!("in {n} attempts") },
        Listed(votes)
    )]
    WaitTimedOut {
        /// The lock's name.
        name: Arc<str>,
        /// How long the acquire waited.
        waited: Duration,
        /// How many rounds it tried; none where others of this client were ahead of it in line to the end.
        attempts: u32,
        /// Who had it in the last of them.
        holder: Holder,
        /// Every master's part in the last round.
        votes: Arc<[Vote]>,
    },

    /// So many acquires of this client wait for the lock already. Shed load, or raise
    /// [`max_waiters`](crate::Builder::max_waiters).
    #[error("lock {name:?} has {limit} waiters in this client already, and takes no more")]
    QueueFull {
        /// The lock's name.
        name: Arc<str>,
        /// How many may wait.
        limit: usize,
    },

    /// The acquire was cancelled by the token that it was given.
    #[error("the acquire of lock {name:?} was cancelled")]
    Cancelled {
        /// The lock's name.
        name: Arc<str>,
    },

    /// The lease ended, or a majority of the masters say that this owner does not hold the lock. Somebody else may
    /// have held it meanwhile: stop what the lock protects.
    #[error("lock {name:?} was lost: {cause}{}{}{}", if votes.is_empty() { "" } else { " [" }, Listed(votes),
        if votes.is_empty() { "" } else { "]" })]
    Lost {
        /// The lock's name.
        name: Arc<str>,
        /// How it was lost.
        cause: Loss,
        /// Every master's part in the round that found it lost, or in the last renewal that failed; empty where there
        /// was none.
        votes: Arc<[Vote]>,
    },

    /// The name is in use by another kind of lock, or by something that is no lock. Nothing was overwritten. It is not waited
    /// for: one of the two should have another name.
    #[error("{name:?} is held as another kind of lock, or is none [{}]", Listed(votes))]
    AnotherKind {
        /// The lock's name.
        name: Arc<str>,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// An acquire by an owner that holds this lock already, and cannot enter it again. It is a bug in the caller.
    #[error("lock {name:?} is held by {owner} already, and cannot be entered again")]
    AlreadyHeld {
        /// The lock's name.
        name: Arc<str>,
        /// Who holds it.
        owner: Owner,
    },

    /// A release of a lock that this owner does not hold, or by more holds than it has. It is a bug in the caller.
    #[error("lock {name:?} is not held by {owner}{}{}{}", if votes.is_empty() { "" } else { " [" }, Listed(votes),
        if votes.is_empty() { "" } else { "]" })]
    NotHeld {
        /// The lock's name.
        name: Arc<str>,
        /// Who does not hold it.
        owner: Owner,
        /// Every master's part in the round; empty when this process knew without asking.
        votes: Arc<[Vote]>,
    },

    /// The input, or the place from which the call came, was refused before anything was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// The client was shut down.
    #[error("the client was shut down")]
    Closed,

    /// The client's shutdown came to its deadline before every release had reached the masters. What is left goes on
    /// in the background while the process lives, and dies with its TTL otherwise.
    #[error("{under_way} operations were still under way when the shutdown's {deadline:?} were over")]
    Unflushed {
        /// How many were left.
        under_way: usize,
        /// The time that was given.
        deadline: Duration,
    },

    /// The background thread could not be started.
    #[error("the background thread could not be started")]
    Start(#[source] Arc<io::Error>),
}

impl Error {
    /// Every master's part in the round that failed; empty where there was none.
    pub fn votes(&self) -> &[Vote] {
        match self {
            Self::Held { votes, .. }
            | Self::NoQuorum { votes, .. }
            | Self::WaitTimedOut { votes, .. }
            | Self::Lost { votes, .. }
            | Self::AnotherKind { votes, .. }
            | Self::NotHeld { votes, .. } => votes,
            Self::QueueFull { .. }
            | Self::AlreadyHeld { .. }
            | Self::Cancelled { .. }
            | Self::Invalid(_)
            | Self::Closed
            | Self::Unflushed { .. }
            | Self::Start(_) => &[],
        }
    }

    /// Who has the lock, where that is why the operation failed.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Held { holder, .. } | Self::WaitTimedOut { holder, .. } => Some(holder),
            _ => None,
        }
    }
}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease is over, or is about to be: it was not to be renewed, or no renewal reached a quorum in time, or the
    /// process stood still.
    Expired,
    /// So many masters say that another owner has it, or nobody, that the rest are no quorum.
    NotOurs,
    /// It was held for as long, or renewed as often, as it was to be.
    Capped,
    /// The work gave no sign of life in time, so it was not renewed any more.
    Silent,
    /// It was handed over to another process.
    HandedOver,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its lease is over",
            Self::NotOurs => "the masters say that it is not this owner's",
            Self::Capped => "it was held for as long as it was to be, and its lease is over",
            Self::Silent => "its work gave no sign of life, and its lease is over",
            Self::HandedOver => "it was handed over",
        })
    }
}

/// Who has a lock, as the votes of a round tell: the owner that most masters name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The owner as it stands on the masters.
    pub owner: Arc<str>,
    /// How many masters named it before the round was decided.
    pub masters: usize,
    /// The longest that any of them will keep its key, or `None` when one never expires.
    pub remaining: Option<Duration>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, masters, remaining } = self;
        match remaining {
            Some(left) => write!(f, "held by {owner} for at most {left:?} more ({masters} masters say so)"),
            None => write!(f, "held by {owner} with no expiry ({masters} masters say so)"),
        }
    }
}

/// Input that was refused, with its value and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// An empty lock name.
    #[error("the lock's name is empty; it must have 1 to {limit} bytes")]
    EmptyName {
        /// The most bytes a name may have.
        limit: usize,
    },
    /// A lock name that is too long.
    #[error("the lock's name has {length} bytes; at most {limit} are allowed (it begins {name:?})")]
    LongName {
        /// How the name begins.
        name: String,
        /// Its length in bytes.
        length: usize,
        /// The most bytes a name may have.
        limit: usize,
    },
    /// A lock over no names.
    #[error("no names: give 1 to {limit} of them")]
    NoNames {
        /// The most names.
        limit: usize,
    },
    /// A lock over too many names.
    #[error("a lock over {count} names: at most {limit} are allowed")]
    TooManyNames {
        /// How many were given.
        count: usize,
        /// The most names.
        limit: usize,
    },
    /// A lock over several names that has one of them twice.
    #[error("the name {name:?} is given twice; the names of one lock must differ")]
    DuplicateName {
        /// How the name begins.
        name: String,
    },
    /// A TTL outside of its limits.
    #[error(
        "a TTL of {ttl:?} is not within {min:?} and {max:?}, this client's max TTL: leases renew themselves, or raise \
        it, for all clients of these masters"
    )]
    Ttl {
        /// The TTL asked for.
        ttl: Duration,
        /// The shortest TTL.
        min: Duration,
        /// The longest TTL.
        max: Duration,
    },
    /// A max TTL outside of its limits.
    #[error("a max TTL of {max_ttl:?} is not within {min:?} and {max:?}")]
    MaxTtl {
        /// The max TTL asked for.
        max_ttl: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A lock delay that is too long: what a master may forget must be over when its quarantine is.
    #[error("a lock delay of {delay:?} and the TTL of {ttl:?} are together above the max TTL of {max:?}")]
    LockDelay {
        /// The delay asked for.
        delay: Duration,
        /// The TTL.
        ttl: Duration,
        /// The most that both may be together.
        max: Duration,
    },
    /// Text that is not a policy for cold starts.
    #[error("{0:?} is not a cold start policy: use quarantine, uptime, fsync or none")]
    ColdStart(String),
    /// A per-master time-out that is zero, or not below the TTL.
    #[error("a per-master time-out of {timeout:?} must be above zero and below the TTL of {ttl:?}")]
    Timeout {
        /// The time-out asked for.
        timeout: Duration,
        /// The TTL it has to be below.
        ttl: Duration,
    },
    /// A wait budget that is too long.
    #[error("a wait of {wait:?} is above the limit of {max:?}")]
    Wait {
        /// The wait asked for.
        wait: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// An observer's time between two looks that is outside of its limits.
    #[error("a look every {interval:?} is not within {min:?} and {max:?}")]
    LookInterval {
        /// The interval asked for.
        interval: Duration,
        /// The shortest interval.
        min: Duration,
        /// The longest interval.
        max: Duration,
    },
    /// A renewal interval that is too short, or leaves no time for a second try before the lease ends.
    #[error(
        "a renewal interval of {interval:?} is not within {min:?} and {max:?}, two thirds of the TTL of {ttl:?}"
    )]
    RenewalInterval {
        /// The interval asked for.
        interval: Duration,
        /// The shortest interval.
        min: Duration,
        /// The longest interval.
        max: Duration,
        /// The TTL that it has to fit into.
        ttl: Duration,
    },
    /// A cap on the time held that is below one TTL.
    #[error("a cap of {cap:?} on the time held is below the TTL of {ttl:?}: use a shorter TTL")]
    HoldCap {
        /// The cap asked for.
        cap: Duration,
        /// The TTL.
        ttl: Duration,
    },
    /// A heartbeat that is too quick to keep.
    #[error("a heartbeat of {heartbeat:?} is below the limit of {min:?}")]
    Heartbeat {
        /// The heartbeat asked for.
        heartbeat: Duration,
        /// The shortest heartbeat.
        min: Duration,
    },
    /// An option for renewal on a lock whose lease is fixed.
    #[error("`{option}` is about renewal, and a fixed lease is never renewed: use `ttl` instead of `lease`")]
    FixedLease {
        /// The option.
        option: &'static str,
    },
    /// Polling without a pause, or without a try.
    #[error(
        "polling {tries} times every {interval:?}: there must be one try at least, and {min:?} between two"
    )]
    Polling {
        /// The pause between two tries.
        interval: Duration,
        /// The shortest pause.
        min: Duration,
        /// The most tries.
        tries: u32,
    },
    /// A bound of no waiters at all.
    #[error("at most 0 waiters: it must be 1 at least; to try without waiting, use try_acquire")]
    NoWaiters,
    /// A token that cannot be adopted.
    #[error("token {token:?}: {why}")]
    Token {
        /// How the token begins.
        token: String,
        /// What is wrong with it.
        why: String,
    },
    /// A lock that its owner has entered more than once cannot be handed over: the other guards would be left behind.
    #[error("lock {name:?} is entered {holds} times; it can be handed over only by its last guard")]
    EnteredAgain {
        /// The lock's name.
        name: String,
        /// The owner's hold count.
        holds: u32,
    },
    /// No master was given.
    #[error("no masters: give 1 to {limit} of them")]
    NoMasters {
        /// The most masters.
        limit: usize,
    },
    /// Too many masters were given.
    #[error("{count} masters: at most {limit} are allowed")]
    TooManyMasters {
        /// How many were given.
        count: usize,
        /// The most masters.
        limit: usize,
    },
    /// The same server was given twice. It would have two votes.
    #[error("master {master} is listed twice; each must be an independent server")]
    DuplicateMaster {
        /// The server, without user and password.
        master: String,
    },
    /// A master's URL that cannot be used.
    #[error(
        "master URL {url:?}: {why}; the form is redis://[user:password@]host[:port][/database], or rediss://, \
         valkey://, valkeys://, or unix:///path?db=..&user=..&pass=.."
    )]
    Url {
        /// The URL, without user and password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A key prefix that is too long, or has braces (they would move the keys to another cluster slot).
    #[error("key prefix {prefix:?} must have at most {limit} bytes and no braces")]
    Prefix {
        /// The prefix asked for.
        prefix: String,
        /// The most bytes it may have.
        limit: usize,
    },
    /// A certificate that cannot be read.
    #[error("TLS root certificates: {why}")]
    Certificate {
        /// What is wrong.
        why: String,
    },
    /// Text that is not an owner.
    #[error("{0:?} is not an owner; the form is the client's UUID, a colon and a number")]
    Owner(String),
    /// Text that is not a fence.
    #[error("{0:?} is not a fence; it is a whole number from 1 to {max}, in decimal", max = crate::fence::MAX)]
    Fence(String),
    /// An owner that another client made. Its holds are counted there, so it cannot take part here.
    #[error("owner {owner} belongs to another client; this client can only break its locks, not share them")]
    ForeignOwner {
        /// The owner.
        owner: Owner,
    },
    /// An operation that needs an owner was given none.
    #[error("no owner was named: name one with owned_by, or run inside an owner's scope")]
    NoOwner,
    /// A [blocking](crate::blocking) call on a thread on which tokio runs tasks: they would all stand still.
    #[error(
        "a blocking call on a thread that runs async tasks, which would stand still: await the async API there, or make \
        the call within tokio::task::spawn_blocking"
    )]
    InsideRuntime,
    /// A [blocking](crate::blocking) call to a client whose engine has no thread of its own: it could wait for ever.
    #[error(
        "a blocking call to a client whose builder was lent a runtime or an executor, which may stand still meanwhile: \
        build it without, or wait for the async API with that runtime's own block_on"
    )]
    LentRuntime,
}

/// The start of a text, short enough for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 64;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
