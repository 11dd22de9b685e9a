//! What each master answered in a round.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::text::shortened;

/// One master's part in a round: what it answered, and how long that took.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Vote {
    /// The master, as in its URL, without user and password.
    pub master: Arc<str>,
    /// What it answered, if it did.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub outcome: Outcome,
    /// From the start of the round to the answer; for [`Outcome::Pending`], to when its caller went
    /// on; for [`Outcome::NotAsked`], zero.
    #[cfg_attr(feature = "serde", serde(rename = "latency_ms", serialize_with = "crate::json::precise_ms"))]
    pub latency: Duration,
}

/// Every master's part in a round, in the order in which the client lists the masters: a slice. Its
/// text is one line with every master.
#[derive(Clone, Debug, Default)]
pub struct Votes(Option<Arc<[Vote]>>);

impl Votes {
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// How many masters did not do what was asked, by their answer. One that was not waited for
    /// does not count as refusing. With `names_one` an unreachable master is named.
    pub(crate) fn against(&self, names_one: bool) -> String {
        let parts = Against::ALL.into_iter().filter_map(|against| {
            let mut votes = self.iter().filter(|vote| Against::of(&vote.outcome) == Some(against)).peekable();
            let master = whole(&votes.peek()?.master);
            let left = votes.clone().filter_map(|vote| vote.outcome.quarantine()).max();
            let count = votes.count();
            let detail = match (against, left) {
                (Against::InQuarantine, Some(left)) => format!(" for at most {left:.1?}"),
                (Against::Unreachable, _) if names_one && count == 1 => format!(": {master}"),
                (Against::Unreachable, _) if names_one => format!(", such as {master}"),
                _ => String::new(),
            };
            Some(format!("{count} {}{detail}", against.word()))
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// How long until so many more masters vote, if enough of them are in quarantine.
    pub(crate) fn quarantine_of(&self, missing: usize) -> Option<Duration> {
        let mut left: Vec<_> = self.iter().filter_map(|vote| vote.outcome.quarantine()).collect();
        left.sort_unstable();
        left.get(missing.checked_sub(1)?).copied()
    }
}

/// How a master did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    Held,
    Free,
    Answered,
    Refused,
    InQuarantine,
    Unreachable,
    Silent,
    NotWaitedFor,
    NotAsked,
}

impl Against {
    const ALL: [Self; 9] = [
        Self::Held,
        Self::Free,
        Self::Answered,
        Self::Refused,
        Self::InQuarantine,
        Self::Unreachable,
        Self::Silent,
        Self::NotWaitedFor,
        Self::NotAsked,
    ];

    fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Granted => None,
            Outcome::Held { .. } => Some(Self::Held),
            Outcome::Absent => Some(Self::Free),
            Outcome::Answered(_) => Some(Self::Answered),
            Outcome::Refused { reason: Refusal::Quarantined, .. } => Some(Self::InQuarantine),
            Outcome::Refused { .. } => Some(Self::Refused),
            Outcome::Unreachable(_) => Some(Self::Unreachable),
            Outcome::Unknown(_) => Some(Self::Silent),
            Outcome::Pending => Some(Self::NotWaitedFor),
            Outcome::NotAsked => Some(Self::NotAsked),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Free => "free",
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::InQuarantine => "in quarantine",
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::NotWaitedFor => "not waited for",
            Self::NotAsked => "not asked",
        }
    }
}

impl Deref for Votes {
    type Target = [Vote];

    fn deref(&self) -> &[Vote] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a Votes {
    type Item = &'a Vote;
    type IntoIter = std::slice::Iter<'a, Vote>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Arc<[Vote]>> for Votes {
    fn from(votes: Arc<[Vote]>) -> Self {
        Self(Some(votes))
    }
}

impl From<&[Vote]> for Votes {
    fn from(votes: &[Vote]) -> Self {
        Self(Some(votes.into()))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Votes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl fmt::Display for Votes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, vote) in self.iter().enumerate() {
            write!(f, "{}{vote}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// What a master answered to one operation of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "outcome", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Outcome {
    /// It did what was asked.
    Granted,
    /// Another owner holds the lock there.
    Held {
        /// The owner, as stored on the master. A lock of another library may have an owner of
        /// another form.
        owner: Arc<str>,
        /// What its client calls it: see [`Builder::label`](crate::Builder::label).
        label: Option<Arc<str>>,
        /// How long it has had it, by the masters' clocks; `None` if it has no token.
        #[cfg_attr(feature = "serde", serde(rename = "held_ms", serialize_with = "crate::json::ms"))]
        held_for: Option<Duration>,
        /// How long others are kept out, or `None` if the key, of another library, never expires.
        #[cfg_attr(feature = "serde", serde(rename = "remaining_ms", serialize_with = "crate::json::ms"))]
        remaining: Option<Duration>,
        /// The owner's hold count.
        #[cfg_attr(feature = "serde", serde(rename = "holds"))]
        count: u64,
        /// How many others are ahead in the queue there, if the acquire took a place in it.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        ahead: Option<u32>,
        /// Which other permits are free there, if the lock is a semaphore.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        permits: Option<Arc<Permits>>,
    },
    /// There is no such lock there. Only an extend, a release, an inspection and
    /// a transfer get this answer.
    Absent,
    /// It answered, and neither granted nor refused anything: the text says why. A listing takes no
    /// vote. Nor does a client that cannot tell the time, because too few masters answer, or their
    /// clocks differ.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::detail"))]
    Answered(Arc<str>),
    /// It answered with an error, now or when this client connected to it. It granted nothing that
    /// counts, but may have written something.
    Refused {
        /// Why, as a category.
        reason: Refusal,
        /// The master's own words.
        detail: Arc<str>,
    },
    /// Nothing was sent to it, because it did not answer before: the text says why. A master that
    /// answers, but cannot be used, is [`Refused`](Outcome::Refused).
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::detail"))]
    Unreachable(Arc<str>),
    /// It was sent, and no answer came: the operation may or may not have run.
    Unknown(Silence),
    /// It had not answered when the round was decided.
    Pending,
    /// It was not asked, as the masters that were asked decided the round: see
    /// [`Builder::quorum_first_above`](crate::Builder::quorum_first_above). The votes of a guard
    /// keep this when the master has got the lease, too.
    NotAsked,
}

/// The permits of a semaphore, as reported by a master that refused one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Permits {
    free: Box<[u32]>,
    #[cfg_attr(feature = "serde", serde(rename = "first_over_ms", serialize_with = "crate::json::ms"))]
    first_over: Option<Duration>,
}

impl Permits {
    pub(crate) fn new(free: Box<[u32]>, first_over: Option<Duration>) -> Self {
        Self { free, first_over }
    }

    /// The numbers of permits that are free there, 32 at most.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// How long until the first taken permit is free, unless it is renewed.
    pub fn first_over(&self) -> Option<Duration> {
        self.first_over
    }
}

/// Why a master answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Refusal {
    /// `READONLY`, or `REPLICA` of the handshake: it is a replica.
    ReadOnly,
    /// `LOADING`: it reads its data from disk.
    Loading,
    /// `BUSY`: a script or module blocks it.
    Busy,
    /// `OOM`: it is over its maxmemory, and grants no acquire. All else works there.
    OutOfMemory,
    /// `MISCONF`: it cannot persist, and is configured to refuse writes then.
    Misconfigured,
    /// `WRONGPASS` or `NOAUTH`: it does not know this user and password.
    Password,
    /// Its TLS certificate is not valid for this client.
    Certificate,
    /// `NOPERM`: this user may not do that.
    NoPermission,
    /// Its set has other terms: another max TTL, or version of the protocol.
    OtherTerms,
    /// Its set has other masters than this client's list.
    OtherMembers,
    /// No master has a record of a set: none was begun.
    NoSet,
    /// It was removed from the set.
    Removed,
    /// The set of masters has changed since the master was to be asked; it was not. An acquire
    /// asks again at once.
    Moved,
    /// It does not know a command that locks need: it is too old, not Redis, or the command was
    /// renamed.
    Unsupported,
    /// `WRONGTYPE`: something else is at the lock's key, and was not changed.
    WrongType,
    /// The name is held as another kind of lock there, or as a semaphore with another number of
    /// permits, and was not changed.
    AnotherKind,
    /// A later round of the same owner, or a higher token, came first.
    Stale,
    /// It lost keys, or restarted, since the handshake, which this client now makes again.
    Forgot,
    /// It is new, or restarted, or lost its keys, and cannot vote until all that it granted before
    /// is over.
    Quarantined,
    /// Its clock jumped, or is far from those of the others. What it may have done is undone.
    Clock,
    /// `NOREPLICAS`, `MASTERDOWN` and all other errors.
    Other,
}

/// Why no answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "reason", content = "detail", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Silence {
    /// Not within the per-master time-out.
    TimedOut,
    /// The connection broke first.
    ConnectionLost(Arc<str>),
}

impl Refusal {
    /// Reads an error reply. Its first word is its code, but a command in a script that is denied
    /// or unknown gives an error without a code.
    pub(crate) fn of_reply(reply: &str) -> Self {
        match reply.split(' ').next().unwrap_or("") {
            "READONLY" | "REPLICA" => Self::ReadOnly,
            "LOADING" => Self::Loading,
            "BUSY" => Self::Busy,
            "OOM" => Self::OutOfMemory,
            "MISCONF" => Self::Misconfigured,
            "NOAUTH" | "WRONGPASS" => Self::Password,
            "NOPERM" => Self::NoPermission,
            "WRONGTYPE" => Self::WrongType,
            "KIND" => Self::AnotherKind,
            "FORGOT" => Self::Forgot,
            "QUARANTINE" => Self::Quarantined,
            "CLOCK" => Self::Clock,
            _ if is_denied_in_script(reply) => Self::NoPermission,
            _ if is_about_an_unknown_command(reply) => Self::Unsupported,
            _ => Self::Other,
        }
    }

    /// True if this refusal is guaranteed to happen before any write to a lock.
    pub(crate) fn comes_first(self) -> bool {
        matches!(
            self,
            Self::Forgot
                | Self::Clock
                | Self::Quarantined
                | Self::AnotherKind
                | Self::Stale
                | Self::Password
                | Self::OtherTerms
                | Self::OtherMembers
                | Self::NoSet
                | Self::Removed
                | Self::Moved
        )
    }

    /// Whether the master refuses every call of this client until somebody changes the
    /// configuration of one of them. Any other refusal may pass by itself, or is about one name.
    pub fn is_permanent(self) -> bool {
        self.remedy().is_some()
    }

    /// What to do about a refusal that is permanent.
    pub(crate) fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Password => Some("log in with a user and password that they know"),
            Self::Certificate => Some("use certificates that this client trusts, for the names in its URLs"),
            Self::NoPermission => Some("give the user the rights that quorate doctor names"),
            Self::OtherTerms => Some("all clients need the same max TTL, and versions that fit"),
            Self::OtherMembers => Some("give all clients the list of one set"),
            Self::NoSet => Some("begin the set once: quorate init"),
            Self::Unsupported => Some("use Redis 7.0 or later, or Valkey 7.2 or later"),
            _ => None,
        }
    }
}

/// Redis before 7.2 says the first, and later versions and Valkey the second.
fn is_denied_in_script(reply: &str) -> bool {
    reply.starts_with("ERR The user executing the script can't")
        || reply.starts_with("ERR ACL failure in script")
}

/// Outside of scripts, in a script of Redis, and in one of Valkey.
fn is_about_an_unknown_command(reply: &str) -> bool {
    let texts =
        ["ERR unknown command", "ERR Unknown Redis command called from", "ERR Unknown command called from"];
    texts.iter().any(|text| reply.starts_with(text))
}

impl Outcome {
    /// Sets how long the holder has had the lock, from its token; `now` is the time since 1970.
    pub(crate) fn set_held_for(&mut self, token: u64, now: impl FnOnce() -> Duration) {
        if let Self::Held { held_for, .. } = self {
            *held_for = since(token, now());
        }
    }

    /// How long the master is in quarantine yet, if it said so: `QUARANTINE 1200 ms left`.
    fn quarantine(&self) -> Option<Duration> {
        let Self::Refused { reason: Refusal::Quarantined, detail } = self else { return None };
        detail.split(' ').nth(1)?.parse().ok().map(Duration::from_millis)
    }

    /// Whether the master said no: it has no entry of the operation's owner that has to be undone.
    pub(crate) fn is_definite_no(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Absent)
    }

    /// Whether the master answered what it knows of a name, even that it is no lock.
    pub(crate) fn is_answer(&self) -> bool {
        self.is_definite_no() || matches!(self, Self::Refused { reason: Refusal::WrongType, .. })
    }

    /// Whether the master has certainly given up the place of the previous acquire: a master that
    /// refuses writes also names the holder, but without `ahead`.
    pub(crate) fn takes_over(&self) -> bool {
        matches!(self, Self::Granted | Self::Held { ahead: Some(_), .. })
    }

    /// Whether the master was in no state to vote: out of reach, silent or refusing, or the client
    /// cannot tell the time.
    pub(crate) fn is_out_of_service(&self) -> bool {
        matches!(self, Self::Answered(_) | Self::Refused { .. } | Self::Unreachable(_) | Self::Unknown(_))
    }
}

/// How long a lock has been held by this token, which is the time of its grant. `None` if there is
/// no token, 0.
pub(crate) fn since(token: u64, now: Duration) -> Option<Duration> {
    (token > 0).then(|| now.saturating_sub(Duration::from_micros(token)))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only replica",
            Self::Loading => "loading its data",
            Self::Busy => "busy with a script",
            Self::OutOfMemory => "out of memory",
            Self::Misconfigured => "cannot persist",
            Self::Password => "wrong password",
            Self::Certificate => "invalid certificate",
            Self::NoPermission => "no permission",
            Self::OtherTerms => "other terms",
            Self::OtherMembers => "another set of masters",
            Self::NoSet => "no set of masters",
            Self::Removed => "removed from the set",
            Self::Moved => "the set of masters has changed",
            Self::Unsupported => "unsupported server",
            Self::WrongType => "not a lock",
            Self::AnotherKind => "held as another kind",
            Self::Stale => "overtaken by a later round",
            Self::Forgot => "has forgotten what it granted",
            Self::Quarantined => "in quarantine",
            Self::Clock => "wrong clock",
            Self::Other => "error",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => f.write_str("granted"),
            Self::Held { owner, label, remaining, .. } => {
                write!(f, "held by {}", named(owner, label.as_deref(), usize::MAX))?;
                match remaining {
                    Some(left) => write!(f, " with {left:?} left"),
                    None => f.write_str(" with no expiry"),
                }
            }
            Self::Absent => f.write_str("no such lock"),
            Self::Answered(why) => write!(f, "answered ({})", whole(why)),
            Self::Refused { reason: Refusal::Other, detail } => write!(f, "refused ({})", whole(detail)),
            Self::Refused { reason, detail } => write!(f, "refused, {reason} ({})", whole(detail)),
            Self::Unreachable(why) => write!(f, "unreachable ({})", whole(why)),
            Self::Unknown(Silence::TimedOut) => f.write_str("no answer in time"),
            Self::Unknown(Silence::ConnectionLost(why)) => write!(f, "connection lost ({})", whole(why)),
            Self::Pending => f.write_str("not waited for"),
            Self::NotAsked => f.write_str("not asked"),
        }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outcome, latency, .. } = self;
        let master = whole(&self.master);
        match outcome {
            Outcome::Unreachable(_) | Outcome::Pending | Outcome::NotAsked => write!(f, "{master} {outcome}"),
            _ if latency.is_zero() => write!(f, "{master} {outcome}"), // not measured
            _ => write!(f, "{master} {outcome} ({:.1} ms)", latency.as_secs_f64() * 1e3),
        }
    }
}

/// An owner and its label in one line, with at most `most` characters of the label, and all of an
/// owner of this library.
pub(crate) fn named(owner: &str, label: Option<&str>, most: usize) -> String {
    const OWNER: usize = 44;
    let owner = shortened(owner, most.max(OWNER));
    match label {
        Some(label) => format!("{owner} ({})", shortened(label, most)),
        None => owner,
    }
}

/// A text of any kind as a part of a line.
fn whole(text: &str) -> String {
    shortened(text, usize::MAX)
}

/// The votes of a granted round, compact because there are many guards: a latency in whole
/// microseconds for each master, and apart from that only the unusual outcomes.
#[derive(Debug)]
pub(crate) struct Record {
    micros: Box<[u32]>,
    /// The masters that granted, a bit each.
    granted: u16,
    /// Those that were not asked. The others are pending, except those in `rest`.
    not_asked: u16,
    rest: Box<[(u8, Outcome)]>,
}

impl Record {
    /// Keeps votes, in the masters' order.
    pub(crate) fn new<'a>(votes: impl Iterator<Item = (&'a Outcome, Duration)>) -> Self {
        let mut granted = 0;
        let mut not_asked = 0;
        let mut rest = Vec::new();
        let micros = votes.enumerate().map(|(index, (outcome, latency))| {
            match outcome {
                Outcome::Granted => granted |= 1 << index,
                Outcome::NotAsked => not_asked |= 1 << index,
                Outcome::Pending => {}
                other => rest.push((index as u8, other.clone())),
            }
            latency.as_micros().try_into().unwrap_or(u32::MAX)
        });
        let micros = micros.collect();
        Self { micros, granted, not_asked, rest: rest.into() }
    }

    /// The votes, of these masters.
    pub(crate) fn read(&self, masters: &[Arc<str>]) -> Vec<Vote> {
        let outcome = |index: usize| match self.rest.iter().find(|(other, _)| usize::from(*other) == index) {
            Some((_, outcome)) => outcome.clone(),
            None if self.granted & (1 << index) != 0 => Outcome::Granted,
            None if self.not_asked & (1 << index) != 0 => Outcome::NotAsked,
            None => Outcome::Pending,
        };
        let vote = |(index, (master, micros)): (usize, (&Arc<str>, &u32))| Vote {
            master: master.clone(),
            outcome: outcome(index),
            latency: Duration::from_micros((*micros).into()),
        };
        masters.iter().zip(&self.micros).enumerate().map(vote).collect()
    }
}

#[cfg(test)]
impl Vote {
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self { master: "m".into(), outcome, latency: Duration::ZERO }
    }
}

#[cfg(test)]
impl Outcome {
    /// A master's refusal because of this owner.
    pub(crate) fn held_by(
        owner: &str,
        remaining: Option<Duration>,
        ahead: Option<u32>,
        permits: Option<Permits>,
    ) -> Self {
        let owner = owner.into();
        let permits = permits.map(Arc::new);
        Self::Held { owner, label: None, held_for: None, remaining, count: 1, ahead, permits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_what_it_kept() {
        let outcomes = [
            Outcome::Granted,
            Outcome::Pending,
            Outcome::Unknown(Silence::TimedOut),
            Outcome::Granted,
            Outcome::Refused { reason: Refusal::OutOfMemory, detail: "OOM".into() },
            Outcome::NotAsked,
        ];
        let latency = |index: usize| Duration::from_micros(100 + index as u64);
        let record = Record::new(outcomes.iter().enumerate().map(|(i, outcome)| (outcome, latency(i))));
        let masters: Vec<Arc<str>> = (0..6).map(|i| format!("master {i}").into()).collect();
        for (i, vote) in record.read(&masters).into_iter().enumerate() {
            assert_eq!(
                (vote.master, vote.outcome, vote.latency),
                (masters[i].clone(), outcomes[i].clone(), latency(i))
            );
        }
    }
}
