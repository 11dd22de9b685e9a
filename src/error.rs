//! Errors, split by what a caller would do next.

use std::fmt::{self, Write};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::text::{fits_a_line, line, quoted};
use crate::vote::{Refusal, Votes, named};

/// Why an operation failed. Each [kind](Error::kind) calls for another reaction of the caller, and
/// each that comes from a round has every master's [vote](Error::votes).
///
/// The text is one line of at most 160 characters: the middle of long names and labels is left out.
/// The alternate form, `{error:#}`, is also one line, with full names and every master's vote;
/// `Debug` shows it, as `main` does with an error that it returns.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// Another owner has the lock, or enough masters to deny it; or all permits of a semaphore are
    /// taken. Try again later.
    #[non_exhaustive]
    Held {
        /// The lock's name.
        name: Arc<str>,
        /// Who has it.
        holder: Box<Holder>,
        /// Every master's part in the round.
        votes: Votes,
    },

    /// Too few masters can vote: they are unreachable, silent or refusing. Look at the masters.
    #[non_exhaustive]
    NoQuorum {
        /// The lock's name.
        name: Arc<str>,
        /// How many masters did what was asked before the round was decided.
        granted: usize,
        /// How many are needed.
        needed: usize,
        /// A quorum granted, but only after the lease had ended: the TTL is too short for these
        /// masters.
        late: bool,
        /// Every master's part in the round.
        votes: Votes,
    },

    /// So many masters refuse this client permanently that the rest are no quorum: for its
    /// password, its rights, their certificates, terms that differ from those of their clients, or
    /// because the servers cannot keep locks. It ends a wait at once, and replaces `NoQuorum`.
    #[non_exhaustive]
    Refused {
        /// The lock's name.
        name: Arc<str>,
        /// How many masters refuse permanently: see [`Refusal::is_permanent`].
        masters: usize,
        /// Why most of them do.
        reason: Refusal,
        /// Every master's part in the round.
        votes: Votes,
    },

    /// The wait budget ran out while others had the lock.
    #[non_exhaustive]
    WaitTimedOut {
        /// The lock's name.
        name: Arc<str>,
        /// How long the acquire waited.
        waited: Duration,
        /// How many rounds it tried; 0 if other waiters of this client were ahead of it until the
        /// end.
        attempts: u32,
        /// Who had it in the last round.
        holder: Box<Holder>,
        /// Every master's part in the last round.
        votes: Votes,
    },

    /// The owner has the read lock and asked for the write lock: it would wait for itself, and two
    /// such readers for each other. Release the read lock first and read again, or take the write
    /// lock from the start. Nothing was sent.
    #[non_exhaustive]
    Upgrade {
        /// The lock's name.
        name: Arc<str>,
        /// The owner that reads.
        owner: Owner,
    },

    /// Too many acquires of this client wait for the lock already. Shed load, or raise
    /// [`max_waiters`](crate::Builder::max_waiters).
    #[non_exhaustive]
    QueueFull {
        /// The lock's name.
        name: Arc<str>,
        /// How many may wait.
        limit: usize,
    },

    /// The token of [`cancelled_by`](crate::Lock::cancelled_by) was cancelled.
    #[non_exhaustive]
    Cancelled {
        /// The lock's name.
        name: Arc<str>,
    },

    /// The lease ended, or a majority of the masters say that this owner does not hold the lock.
    /// Another owner may have held it meanwhile: stop what the lock protects.
    #[non_exhaustive]
    Lost {
        /// The lock's name.
        name: Arc<str>,
        /// How it was lost.
        cause: Loss,
        /// Whether the work of [`run`](crate::Guard::run) ended, but the lease had ended by then:
        /// do not repeat what must not be done twice. False if the work was dropped, and may be
        /// half done, and from any other method.
        work_ended: bool,
        /// Every master's part in the round that found it lost, or in the last failed renewal;
        /// empty if there was none.
        votes: Votes,
    },

    /// The lease is over for this owner, but too few masters confirmed the release, so that others
    /// may not get the lock at once. The work under the lock is done: do not repeat it. The release
    /// goes on in the background.
    #[non_exhaustive]
    ReleaseUnconfirmed {
        /// The lock's name.
        name: Arc<str>,
        /// How many masters confirmed it in time.
        confirmed: usize,
        /// How many are needed.
        needed: usize,
        /// How long until the lock is free at the latest, even if the release reaches no other
        /// master, unless the owner has other guards of it. That is the rest of the TTL and up to 3
        /// s, as clocks may differ.
        free_within: Duration,
        /// Every master's part in the round.
        votes: Votes,
    },

    /// The name is in use by another kind of lock, or by something that is no lock. Nothing was
    /// overwritten. It ends a wait at once: one of the two should have another name.
    #[non_exhaustive]
    AnotherKind {
        /// The lock's name.
        name: Arc<str>,
        /// Every master's part in the round.
        votes: Votes,
    },

    /// The semaphore has another number of permits, and one of them is held. Nothing was
    /// overwritten. It ends a wait at once: all clients have to give the same number, which may
    /// change only while no permit is held.
    #[non_exhaustive]
    OtherPermits {
        /// The semaphore's name.
        name: Arc<str>,
        /// The number that this client gave.
        asked: u32,
        /// The number that there are.
        permits: u32,
        /// Every master's part in the round.
        votes: Votes,
    },

    /// An acquire of a mutex by the owner that holds it, which cannot re-enter: a bug in the
    /// caller.
    #[non_exhaustive]
    AlreadyHeld {
        /// The lock's name.
        name: Arc<str>,
        /// Who holds it.
        owner: Owner,
    },

    /// A release of a lock that this owner does not hold, or of more holds than it has: a bug in
    /// the caller.
    #[non_exhaustive]
    NotHeld {
        /// The lock's name.
        name: Arc<str>,
        /// Who does not hold it.
        owner: Owner,
        /// Every master's part in the round; empty if this process knew without asking.
        votes: Votes,
    },

    /// The masters that the client was built with are not those of one set: it would vote with
    /// others than the rest does. Nothing was sent. It ends where the master that says so is gone.
    #[non_exhaustive]
    OtherSet {
        /// Both lists, and what to do.
        why: Arc<str>,
    },

    /// The input, or the thread that made the call, was refused before anything was sent.
    Invalid(Invalid),

    /// The client was shut down.
    Closed,

    /// The background thread could not be started.
    Start(Arc<io::Error>),
}

/// The kind of an [`Error`]: for metrics, and to decide what to do next.
///
/// | kind | busy | retryable | HTTP | what to do |
/// |---|---|---|---|---|
/// | `Held`, `WaitTimedOut` | yes | yes | 409 | try again, after [`Error::retry_after`] if known |
/// | `QueueFull` | yes | yes | 503 | shed load, or allow more waiters |
/// | `NoQuorum` | no | yes | 503 | look at the masters; they may recover by themselves |
/// | `OtherSet` | no | no | 500 | give all clients the list of one set |
/// | `Refused` | no | no | 500 | fix the password, the rights, the settings or the servers |
/// | `Lost` | no | no | 500 | stop what the lock protects; repeat it unless its `work_ended` |
/// | `ReleaseUnconfirmed` | no | no | 200 | nothing: the work is done, the lock is free in time |
/// | `AnotherKind`, `OtherPermits` | no | no | 500 | one kind of lock for a name, one number of permits |
/// | `Upgrade`, `AlreadyHeld`, `NotHeld`, `Invalid` | no | no | 500 | fix the calling code |
/// | `Cancelled`, `Closed` | no | no | 503 | nothing: this program wanted it |
/// | `Start` | no | no | 500 | look at the limits of the system |
///
/// The HTTP status is what suits a service that holds the lock while it handles a request. A name
/// that comes from the request, and is [`Invalid`], is a 400. Where the work's output is there, an
/// error of the release does not change the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the variant of `Error` that has its name")]
pub enum ErrorKind {
    Held,
    NoQuorum,
    Refused,
    WaitTimedOut,
    Upgrade,
    QueueFull,
    Cancelled,
    Lost,
    ReleaseUnconfirmed,
    AnotherKind,
    OtherPermits,
    AlreadyHeld,
    NotHeld,
    OtherSet,
    Invalid,
    Closed,
    Start,
}

impl Error {
    /// A loss that was found when the work under the lock had ended.
    pub(crate) fn after_work(mut self) -> Self {
        if let Self::Lost { work_ended, .. } = &mut self {
            *work_ended = true;
        }
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Held { .. } => ErrorKind::Held,
            Self::NoQuorum { .. } => ErrorKind::NoQuorum,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::WaitTimedOut { .. } => ErrorKind::WaitTimedOut,
            Self::Upgrade { .. } => ErrorKind::Upgrade,
            Self::QueueFull { .. } => ErrorKind::QueueFull,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::Lost { .. } => ErrorKind::Lost,
            Self::ReleaseUnconfirmed { .. } => ErrorKind::ReleaseUnconfirmed,
            Self::AnotherKind { .. } => ErrorKind::AnotherKind,
            Self::OtherPermits { .. } => ErrorKind::OtherPermits,
            Self::AlreadyHeld { .. } => ErrorKind::AlreadyHeld,
            Self::NotHeld { .. } => ErrorKind::NotHeld,
            Self::OtherSet { .. } => ErrorKind::OtherSet,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Closed => ErrorKind::Closed,
            Self::Start(_) => ErrorKind::Start,
        }
    }

    /// The name of the lock.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Held { name, .. }
            | Self::NoQuorum { name, .. }
            | Self::Refused { name, .. }
            | Self::WaitTimedOut { name, .. }
            | Self::Upgrade { name, .. }
            | Self::QueueFull { name, .. }
            | Self::Cancelled { name, .. }
            | Self::Lost { name, .. }
            | Self::ReleaseUnconfirmed { name, .. }
            | Self::AnotherKind { name, .. }
            | Self::OtherPermits { name, .. }
            | Self::AlreadyHeld { name, .. }
            | Self::NotHeld { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether the lock is just in use: another owner has it, or waits ahead of this call.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").acquire().await?;
    /// let error = redlock.lock("invoice:42").try_acquire().await.unwrap_err();
    /// assert!(error.is_busy() && error.is_retryable());
    /// assert!(error.retry_after() <= Some(guard.remaining() * 2)); // when the lease would be over
    /// assert!(error.to_string().chars().count() <= 160);
    /// assert!(format!("{error:#}").contains("held by"), "the votes of all masters");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn is_busy(&self) -> bool {
        matches!(self.kind(), ErrorKind::Held | ErrorKind::WaitTimedOut | ErrorKind::QueueFull)
    }

    /// Whether the same call may succeed later by itself: if the lock [is busy](Error::is_busy), or
    /// too few masters could vote. [`ErrorKind`] has the table.
    pub fn is_retryable(&self) -> bool {
        self.is_busy() || self.kind() == ErrorKind::NoQuorum
    }

    /// How long until the lock is free at the latest, unless its holder renews the lease; of a full
    /// semaphore, until its first permit is. If a quorum is missing because masters are in
    /// quarantine, until enough of them vote again. `None` if the holder is unknown, or its lease
    /// never ends, or if masters are missing for another reason.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoQuorum { granted, needed, late: false, votes, .. } => {
                votes.quarantine_of(needed.saturating_sub(*granted))
            }
            _ => self.holder()?.remaining,
        }
    }

    /// Every master's part in the failed round; empty if there was none.
    pub fn votes(&self) -> &Votes {
        static NONE: Votes = Votes::none();
        match self {
            Self::Held { votes, .. }
            | Self::NoQuorum { votes, .. }
            | Self::Refused { votes, .. }
            | Self::WaitTimedOut { votes, .. }
            | Self::Lost { votes, .. }
            | Self::ReleaseUnconfirmed { votes, .. }
            | Self::AnotherKind { votes, .. }
            | Self::OtherPermits { votes, .. }
            | Self::NotHeld { votes, .. } => votes,
            _ => &NONE,
        }
    }

    /// Who has the lock, if that is why the operation failed.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Held { holder, .. } | Self::WaitTimedOut { holder, .. } => Some(holder),
            _ => None,
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            self.write(f, Room::ALL)?;
            return match self.votes() {
                votes if votes.is_empty() => Ok(()),
                votes => write!(f, " [{votes}]"),
            };
        }
        f.write_str(&in_line(|text, room| self.write(text, room))?)
    }
}

/// How much an error's text shows.
#[derive(Clone, Copy)]
struct Room {
    /// The most characters of a name or a label.
    most: usize,
    /// Whether to name an unreachable master.
    names_master: bool,
    /// Whether to show details, for debugging.
    details: bool,
}

impl Room {
    /// The votes name the masters.
    const ALL: Self = Self { most: usize::MAX, names_master: false, details: true };

    /// From the most to the least that a line may show of names and labels.
    fn for_a_line() -> impl Iterator<Item = Self> {
        let without_master = [64, 44, 28, 20, 12].into_iter().map(|most| (most, false));
        let all = std::iter::once((64, true)).chain(without_master);
        all.map(|(most, names_master)| Self { most, names_master, details: false })
    }
}

impl Error {
    fn write(&self, f: &mut impl Write, room: Room) -> fmt::Result {
        let name = quoted(self.name().unwrap_or_default(), room.most);
        match self {
            Self::Held { holder, .. } => match holder.permits {
                Some(permits) => taken(f, permits, &format!(" of semaphore {name}"), holder.remaining),
                None => {
                    write!(f, "lock {name} is ")?;
                    holder.write(f, room)
                }
            },
            Self::WaitTimedOut { waited, attempts, holder, .. } => {
                let (what, then) = match holder.permits {
                    Some(_) => ("semaphore", ": "),
                    None => ("lock", "; it is "),
                };
                waited_for(f, &format!("{what} {name}"), *waited, *attempts, room)?;
                f.write_str(then)?;
                holder.write(f, room)
            }
            Self::NoQuorum { late: true, .. } => write!(
                f,
                "no quorum for lock {name}: enough masters granted, but only when the lease was over already; \
                 use a longer TTL"
            ),
            Self::NoQuorum { granted, needed, votes, .. } => {
                write!(f, "no quorum for lock {name}: {granted} of the {needed} masters needed agreed")?;
                f.write_str(&without_quorum(votes, *granted, *needed, room))
            }
            Self::Refused { masters, reason, votes, .. } => {
                let of = votes.len();
                write!(f, "lock {name}: {masters} of {of} masters refused permanently, {reason}")?;
                reason.remedy().map_or(Ok(()), |remedy| write!(f, ": {remedy}"))
            }
            Self::Upgrade { owner, .. } => {
                write!(f, "{owner} has read lock {name}, which cannot become a write lock: release it first")
            }
            Self::QueueFull { limit, .. } => write!(
                f,
                "lock {name} has {limit} waiters in this client already, and takes no more: come back, or raise \
                 max_waiters"
            ),
            Self::Cancelled { .. } => write!(f, "the acquire of lock {name} was cancelled"),
            Self::Lost { cause: Loss::Released, .. } => write!(f, "lock {name} was released"),
            Self::Lost { cause, work_ended, .. } => {
                let advice = if *cause == Loss::Expired && !work_ended { ": stop the work" } else { "" };
                write!(f, "lock {name} was lost: {cause}{advice}")
            }
            Self::ReleaseUnconfirmed { confirmed, needed, free_within, votes, .. } => write!(
                f,
                "release of lock {name}: {confirmed} of {needed} needed masters agreed ({}): free within \
                 {free_within:.1?}",
                votes.against(room.names_master)
            ),
            Self::AnotherKind { .. } => write!(
                f,
                "{name} is held as another kind of lock, or is none: one of the two \
                 needs another name"
            ),
            Self::OtherPermits { asked, permits, .. } => write!(
                f,
                "semaphore {name} has {permits} permits, and not {asked}: ask with the same number everywhere"
            ),
            Self::AlreadyHeld { owner, .. } => {
                write!(f, "lock {name} is held by {owner} already, and cannot be entered again")
            }
            Self::NotHeld { owner, .. } => write!(f, "lock {name} is not held by {owner}"),
            Self::OtherSet { why } => write!(f, "the masters are not one set: {why}"),
            Self::Invalid(invalid) => write!(f, "{invalid}"),
            Self::Closed => f.write_str("the client was shut down"),
            Self::Start(_) => f.write_str("the background thread could not be started"),
        }
    }
}

/// What the masters that did not agree answered, and whether to wait for a quarantine.
fn without_quorum(votes: &Votes, granted: usize, needed: usize, room: Room) -> String {
    if votes.len() <= granted {
        return String::new();
    }
    let against = votes.against(room.names_master);
    let passes = votes.quarantine_of(needed.saturating_sub(granted)).is_some();
    format!(" ({against}){}", if passes { ": retry then" } else { "" })
}

/// Writes how long an acquire waited.
fn waited_for(f: &mut impl Write, what: &str, waited: Duration, attempts: u32, room: Room) -> fmt::Result {
    write!(f, "waited {waited:.1?} for {what}")?;
    match attempts {
        0 => f.write_str(", behind others in line"),
        attempts if room.details => write!(f, " in {attempts} attempts"),
        _ => Ok(()),
    }
}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease is over or about to be: it was not renewed, no renewal reached a quorum in time,
    /// or the process stood still.
    Expired,
    /// So many masters say that another owner has it, or nobody, that the rest are no quorum; or
    /// [`force_release`](crate::Lock::force_release) took it away in this process.
    NotOurs,
    /// Its cap is reached: [`hold_at_most`](crate::Lock::hold_at_most) or
    /// [`renew_at_most`](crate::Lock::renew_at_most).
    Capped,
    /// The work did not call [`Guard::touch`](crate::Guard::touch) in time, so it was not renewed
    /// any more.
    Silent,
    /// It was handed over to another process.
    HandedOver,
    /// It was not lost: its owner released it.
    Released,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its lease expired or could not be renewed",
            Self::NotOurs => "the masters say that it is not this owner's",
            Self::Capped => "it was held for as long as it was to be, and its lease is over",
            Self::Silent => "its work gave no sign of life, and its lease is over",
            Self::HandedOver => "it was handed over",
            Self::Released => "it was released",
        })
    }
}

/// Who has a lock, by the votes of a round: the owner that most masters name; of a semaphore, the
/// owner of the permit that was asked for.
///
/// The text is one line without the middle of long owners and labels, which the alternate form,
/// `{holder:#}`, shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Holder {
    /// The owner, as stored on the masters.
    pub owner: Arc<str>,
    /// What its client calls it: see [`Builder::label`](crate::Builder::label).
    pub label: Option<Arc<str>>,
    /// Whether it is an owner of this very client, a [`Redlock`](crate::Redlock) or a clone of it:
    /// waiting for it may be waiting for oneself. Copies of a process, as by a fork of its machine,
    /// count as the same client. Not known of a lock over several names.
    pub is_ours: bool,
    /// How long it has had the lock, by the masters' clocks: the longest that any of them gave.
    /// `None` if none did.
    #[cfg_attr(feature = "serde", serde(rename = "held_ms", serialize_with = "crate::json::ms"))]
    pub held_for: Option<Duration>,
    /// How many masters named it before the round was decided.
    pub masters: usize,
    /// The longest remaining time on any of them, or `None` if the lock never expires on one. Of a
    /// full semaphore, the time until its first permit is free.
    #[cfg_attr(feature = "serde", serde(rename = "remaining_ms", serialize_with = "crate::json::ms"))]
    pub remaining: Option<Duration>,
    /// The number of permits of a semaphore, if all of them are taken.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub permits: Option<u32>,
}

impl Holder {
    fn write(&self, f: &mut impl Write, room: Room) -> fmt::Result {
        if let Some(permits) = self.permits {
            return taken(f, permits, "", self.remaining);
        }
        f.write_str(if self.is_ours { "held by this client itself, " } else { "held by " })?;
        // In a line, this client's own label would leave no room for the owner.
        let label = self.label.as_deref().filter(|_| room.details || !self.is_ours);
        f.write_str(&named(&self.owner, label, room.most))?;
        if let Some(time) = self.held_for {
            write!(f, " for {time:.1?}")?;
        }
        match self.remaining {
            Some(left) => write!(f, ", expires in at most {left:.1?}")?,
            None => f.write_str(", with no expiry")?,
        }
        if room.details { write!(f, " ({} masters say so)", self.masters) } else { Ok(()) }
    }
}

/// Whether it is this owner.
impl PartialEq<Owner> for Holder {
    fn eq(&self, owner: &Owner) -> bool {
        self.owner.parse() == Ok(*owner)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            self.write(f, Room::ALL)
        } else {
            f.write_str(&in_line(|text, room| self.write(text, room))?)
        }
    }
}

/// The line that `write` makes, with as much of the names and labels as fits.
fn in_line(write: impl Fn(&mut String, Room) -> fmt::Result) -> Result<String, fmt::Error> {
    let mut text = String::new();
    for room in Room::for_a_line() {
        text.clear();
        write(&mut text, room)?;
        if fits_a_line(&text) {
            return Ok(text);
        }
    }
    Ok(line(&text))
}

/// Writes that a semaphore is full.
fn taken(f: &mut impl Write, permits: u32, of: &str, first_free: Option<Duration>) -> fmt::Result {
    match permits {
        1 => write!(f, "the only permit{of} is taken")?,
        _ => write!(f, "all {permits} permits{of} are taken")?,
    }
    match first_free {
        Some(time) => write!(f, "; the first is free in at most {time:.1?}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vote::{Outcome, Silence, Vote};

    fn votes(outcomes: impl IntoIterator<Item = Outcome>, master: &str) -> Votes {
        let vote = |outcome| Vote { master: master.into(), outcome, latency: Duration::from_millis(1) };
        outcomes.into_iter().map(vote).collect::<Arc<[Vote]>>().into()
    }

    fn holder(owner: &str, label: &str, time: Duration, permits: Option<u32>) -> Box<Holder> {
        let owner = owner.into();
        let label = Some(label.into());
        let time = Some(time);
        Box::new(Holder {
            owner,
            label,
            is_ours: true,
            held_for: time,
            masters: 15,
            remaining: time,
            permits,
        })
    }

    fn in_quarantine(ms: u128) -> Outcome {
        let detail = format!("QUARANTINE {ms} ms left").into();
        Outcome::Refused { reason: Refusal::Quarantined, detail }
    }

    /// Every error that contains text from outside.
    fn all(name: &str, owner: &str, label: &str, time: Duration, of: u32) -> Vec<Error> {
        let count = of as usize;
        let reason = Refusal::Unsupported;
        let detail = Arc::<str>::from(owner);
        let outcomes = [
            Outcome::held_by(owner, Some(time), None, None),
            Outcome::Absent,
            Outcome::Refused { reason, detail: detail.clone() },
            Outcome::Unreachable(detail.clone()),
            Outcome::Unknown(Silence::ConnectionLost(detail.clone())),
            Outcome::Pending,
        ];
        let restarted =
            votes([in_quarantine(time.as_millis()), Outcome::Unreachable(detail), Outcome::Pending], label);
        let votes = votes(outcomes, label);
        let ours = Owner::new(uuid::Uuid::from_u128(7), u64::MAX);
        let refused =
            |reason| Error::Refused { name: name.into(), masters: count, reason, votes: votes.clone() };
        let permanent = [Refusal::Password, Refusal::NoPermission, Refusal::OtherTerms, Refusal::Unsupported];
        let mut errors: Vec<Error> = permanent.into_iter().map(refused).collect();
        for permits in [None, Some(of)] {
            let name = Arc::<str>::from(name);
            let holder = holder(owner, label, time, permits);
            let waited = time;
            let attempts = of;
            errors.push(Error::Held { name: name.clone(), holder: holder.clone(), votes: votes.clone() });
            errors.push(Error::WaitTimedOut { name, waited, attempts, holder, votes: votes.clone() });
        }
        for late in [false, true] {
            let granted = count;
            let needed = count;
            let votes = votes.clone();
            errors.push(Error::NoQuorum { name: name.into(), granted, needed, late, votes });
        }
        let needed = count;
        errors.push(Error::NoQuorum { name: name.into(), granted: 0, needed, late: false, votes: restarted });
        for cause in
            [Loss::Expired, Loss::NotOurs, Loss::Capped, Loss::Silent, Loss::HandedOver, Loss::Released]
        {
            errors.push(Error::Lost { name: name.into(), cause, work_ended: false, votes: votes.clone() });
        }
        let asked = of;
        let permits = of;
        errors.push(Error::ReleaseUnconfirmed {
            name: name.into(),
            confirmed: count,
            needed: count,
            free_within: time,
            votes: votes.clone(),
        });
        errors.extend([
            Error::Upgrade { name: name.into(), owner: ours },
            Error::QueueFull { name: name.into(), limit: count },
            Error::Cancelled { name: name.into() },
            Error::AnotherKind { name: name.into(), votes: votes.clone() },
            Error::OtherPermits { name: name.into(), asked, permits, votes: votes.clone() },
            Error::AlreadyHeld { name: name.into(), owner: ours },
            Error::NotHeld { name: name.into(), owner: ours, votes },
            Invalid::long_name(name, count).into(),
            Invalid::label(label, count).into(),
            Invalid::owned_permit(name, ours).into(),
            Invalid::handover(owner, "it is not one, or was cut short or changed").into(),
            Invalid::url(name, "its database number is negative").into(),
            Invalid::ttl(time, time, time).into(),
            Invalid::renewal_interval(time, time, time, time).into(),
        ]);
        errors
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn an_error_is_one_line_of_160_characters_at_most(
            name in "(?s).{0,200}", owner in "(?s).{0,200}", label in "(?s).{0,200}", time: Duration, of: u32,
        ) {
            for error in all(&name, &owner, &label, time, of) {
                for (text, most) in [(error.to_string(), 160), (format!("{error:#}"), usize::MAX)] {
                    prop_assert!(text.chars().count() <= most, "{} of {text:?}", text.chars().count());
                    prop_assert!(!text.contains(['\u{2028}', '\u{2029}']), "{text:?}");
                    prop_assert!(!text.chars().any(char::is_control), "{text:?}");
                }
            }
        }
    }

    /// Text of ordinary length is not cut, and this crate's own never is.
    #[test]
    fn what_it_is_about_and_what_to_do_is_never_left_out() {
        let owner = "0190f5fe-7e0c-7a51-8f43-0a1b2c3d4e5f:1234";
        let long = "x".repeat(200);
        let time = Duration::from_millis(86_399_900);
        for (name, label) in
            [("invoice:42", "web1 4711 backup"), (&*long, "web1 4711"), ("l", &*long), (&*long, &*long)]
        {
            for error in all(name, owner, label, time, 15) {
                if error.kind() == ErrorKind::Invalid {
                    continue; // it has no room for a whole name
                }
                let text = error.to_string();
                let whole = format!("{error:#}");
                let cut = text.matches('…').count();
                let names = usize::from(text.contains("\"xx")) + usize::from(text.contains("(xx"));
                assert_eq!(cut, names, "{text}");
                let holder = error.holder().filter(|holder| holder.permits.is_none());
                assert!(holder.is_none() || text.contains(owner), "{text}");
                assert_eq!(whole.contains("not waited for"), !error.votes().is_empty(), "{whole}");
                assert!(!matches!(error, Error::Held { .. }) || whole.contains(name), "{whole}");
            }
        }
    }

    #[test]
    fn a_master_that_was_not_waited_for_is_none_of_those_that_refused() {
        let refused = || Outcome::Refused { reason: Refusal::ReadOnly, detail: "READONLY".into() };
        let down = || Outcome::Unreachable("gone".into());
        let votes = votes([Outcome::Granted, refused(), down(), down(), Outcome::Pending], "m");
        let error = Error::NoQuorum { name: "l".into(), granted: 1, needed: 3, late: false, votes };
        assert_eq!(
            error.to_string(),
            "no quorum for lock \"l\": 1 of the 3 masters needed agreed (1 refused, 2 unreachable, such as m, \
             1 not waited for)"
        );
        assert!(format!("{error:#}").ends_with("; m unreachable (gone); m not waited for]"), "{error:#}");
    }

    /// After a restart of most masters: it passes by itself.
    #[test]
    fn masters_in_quarantine_say_when_to_retry() {
        let down = || Outcome::Unreachable("gone".into());
        let error = |granted: usize, outcomes: [Outcome; 3]| {
            let votes = votes(outcomes, "m");
            Error::NoQuorum { name: "x".into(), granted, needed: 2, late: false, votes }
        };
        let both = error(0, [Outcome::Pending, in_quarantine(20_810), in_quarantine(9_000)]);
        assert_eq!(
            both.to_string(),
            "no quorum for lock \"x\": 0 of the 2 masters needed agreed (2 in quarantine for at most 20.8s, \
             1 not waited for): retry then"
        );
        assert_eq!(both.retry_after(), Some(Duration::from_millis(20_810)));
        let one = error(1, [Outcome::Granted, in_quarantine(20_810), in_quarantine(9_000)]);
        assert_eq!(one.retry_after(), Some(Duration::from_secs(9)));
        let too_few = error(0, [down(), down(), in_quarantine(9_000)]);
        assert_eq!(too_few.retry_after(), None);
        assert!(
            too_few.to_string().ends_with("(1 in quarantine for at most 9.0s, 2 unreachable, such as m)")
        );
    }

    #[test]
    fn a_master_that_answers_alone_is_none_of_those_that_refused() {
        let down = || Outcome::Unreachable("gone".into());
        let votes = votes([Outcome::Answered("why".into()), down(), down()], "m");
        let error = Error::NoQuorum { name: "l".into(), granted: 0, needed: 2, late: false, votes };
        let expected = "no quorum for lock \"l\": 0 of the 2 masters needed agreed (1 answered, 2 unreachable, \
                        such as m)";
        assert_eq!(error.to_string(), expected);
        assert!(format!("{error:#}").contains("[m answered (why)"), "{error:#}");
    }
}
