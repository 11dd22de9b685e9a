//! Input that is refused: each value with its limit.

use std::time::Duration;

use crate::owner::Owner;

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
    /// A label that is too long, or has control characters.
    #[error("the label {label:?} has {length} bytes; at most {limit} are allowed, and no control characters")]
    Label {
        /// How the label begins.
        label: String,
        /// Its length in bytes.
        length: usize,
        /// The most bytes a label may have.
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
    /// A runtime with several threads for the engine.
    #[error(
        "the engine's runtime must be a current-thread one: on several threads a clean-up could overtake what it undoes"
    )]
    Runtime,
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
    /// A number of permits outside of its limits.
    #[error("a semaphore of {permits} permits: it must have 1 to {max}")]
    Permits {
        /// The number asked for.
        permits: u32,
        /// The most permits.
        max: u32,
    },
    /// An owner that was named for a semaphore. Every acquire takes another permit, so there is nothing to enter again.
    #[error("owner {owner} was named for semaphore {name:?}, where every permit has an owner of its own")]
    OwnedPermit {
        /// The semaphore's name.
        name: String,
        /// The owner.
        owner: Owner,
    },
    /// A bound of no waiters at all.
    #[error("at most 0 waiters: it must be 1 at least; to try without waiting, use try_acquire")]
    NoWaiters,
    /// An [environment variable](crate::env) that cannot be used.
    #[error("{variable}: {why}")]
    Environment {
        /// Which variable.
        variable: &'static str,
        /// What is wrong with its value.
        why: String,
    },
    /// A hand-over that cannot be adopted.
    #[error("hand-over {handover:?}: {why}")]
    Handover {
        /// How its text begins.
        handover: String,
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
