//! How a set of masters begins, and changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::time::Moment;

/// How a set of masters begins: see [`Redlock::init`](crate::Redlock::init).
///
/// # Examples
///
/// ```no_run
/// # async fn begin(redlock: quorate::Redlock) -> Result<(), quorate::SetError> {
/// use quorate::Init;
///
/// let fingerprint = redlock.fingerprint().await?; // show it to the person who says that they are new
/// redlock.init(Init::new().never_used(fingerprint)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Init {
    pub(crate) never_used: Option<Arc<str>>,
    pub(crate) tell: Tell,
}

impl Init {
    /// Begins a set of masters that clients may know already. They have no vote for a little more
    /// than one [`max_ttl`](crate::Builder::max_ttl): by then every earlier lease has expired.
    pub fn new() -> Self {
        Self::default()
    }

    /// Skips the initial quarantine. The operator asserts that no client has ever used these
    /// masters. The [fingerprint](crate::Redlock::fingerprint) ties that to the running processes:
    /// if one of them has restarted since, or any master has a record, `init` refuses.
    pub fn never_used(mut self, fingerprint: impl AsRef<str>) -> Self {
        self.never_used = Some(fingerprint.as_ref().into());
        self
    }

    /// Reports progress: calls `tell` with the reason for the wait, and the longest time left,
    /// after a second and then every ten seconds. The default is a `tracing` event of level INFO.
    pub fn on_progress(mut self, tell: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        self.tell = Tell::new(tell);
        self
    }
}

/// A change of a set of masters: see [`Redlock::change_members`](crate::Redlock::change_members).
///
/// # Examples
///
/// ```
/// use quorate::SetChange;
///
/// let change = SetChange::replace("redis://10.0.0.3", "redis://10.0.0.4")
///     .on_progress(|what, left| println!("waiting for {what}, {left:?} yet"));
/// ```
#[derive(Clone)]
#[must_use = "it does nothing before `change_members`"]
pub struct SetChange {
    /// The URL of a master that joins.
    pub(crate) add: Option<Arc<str>>,
    /// The URL or name of a master that leaves, after that.
    pub(crate) remove: Option<Arc<str>>,
    /// Whether these are names of masters that have no URL.
    pub(crate) by_name: bool,
    pub(crate) tell: Tell,
}

impl SetChange {
    fn new(add: Option<&str>, remove: Option<&str>) -> Self {
        let add = add.map(Into::into);
        let remove = remove.map(Into::into);
        Self { add, remove, by_name: false, tell: Tell::default() }
    }

    /// One more master, by its URL. Other clients connect to it with their own users and passwords.
    pub fn add(url: impl AsRef<str>) -> Self {
        Self::new(Some(url.as_ref()), None)
    }

    /// One master less, by its URL or its name, dead or not. Most of the masters have to
    /// answer for that.
    pub fn remove(master: impl AsRef<str>) -> Self {
        Self::new(None, Some(master.as_ref()))
    }

    /// Replaces a master. The new one joins before the old one leaves, or afterwards if the old one
    /// does not answer.
    pub fn replace(old: impl AsRef<str>, new: impl AsRef<str>) -> Self {
        Self::new(Some(new.as_ref()), Some(old.as_ref()))
    }

    /// The masters are given by their names, which have no URL: those of a simulation.
    #[cfg(feature = "unstable-testing")]
    pub fn by_name(mut self) -> Self {
        self.by_name = true;
        self
    }

    /// Reports progress as [`Init::on_progress`] does.
    pub fn on_progress(mut self, tell: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        self.tell = Tell::new(tell);
        self
    }
}

impl fmt::Debug for SetChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may contain a password.
        f.debug_struct("SetChange").finish_non_exhaustive()
    }
}

/// Takes the reason for a wait, and the longest time left.
type OnProgress = dyn Fn(&str, Duration) + Send + Sync;

/// Reports why an operation on the set waits.
#[derive(Clone)]
pub(crate) struct Tell {
    to: Arc<OnProgress>,
    /// When to report next; `None` before the first wait.
    next: Option<Moment>,
}

impl Tell {
    const FIRST: Duration = Duration::from_secs(1);
    const EVERY: Duration = Duration::from_secs(10);

    fn new(to: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        Self { to: Arc::new(to), next: None }
    }

    /// The operation waits at `now`, for at most the time that is left. Reports that if it is due.
    pub(crate) fn waits_for(&mut self, what: &str, left: Duration, now: Moment) {
        if now >= *self.next.get_or_insert(now + Self::FIRST) {
            self.next = Some(now + Self::EVERY);
            (self.to)(what, left);
        }
    }
}

impl Default for Tell {
    fn default() -> Self {
        Self::new(|what, left| tracing::info!(?left, "waiting for {what}"))
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tell").finish_non_exhaustive()
    }
}

/// Why a set of masters was not begun, changed or recovered. The text is one line.
#[derive(Clone)]
#[non_exhaustive]
pub enum SetError {
    /// The set was not begun, nor completed.
    #[non_exhaustive]
    NotBegun {
        /// What stands in the way.
        why: Arc<str>,
        /// Whether another try does not help before that is mended.
        permanent: bool,
    },

    /// The set was not recovered: see [`Redlock::recover`](crate::Redlock::recover).
    #[non_exhaustive]
    NotRecovered {
        /// What stands in the way.
        why: Arc<str>,
        /// Whether another try does not help before that is mended.
        permanent: bool,
    },

    /// The masters have no fingerprint: see [`Redlock::fingerprint`](crate::Redlock::fingerprint).
    #[non_exhaustive]
    NoFingerprint {
        /// What stands in the way.
        why: Arc<str>,
        /// Whether another try does not help before that is mended.
        permanent: bool,
    },

    /// The set was not changed.
    #[non_exhaustive]
    NotChanged {
        /// What stands in the way.
        why: Arc<str>,
    },

    /// Too few masters answer to complete the change. The set has changed, or can change yet: the
    /// same call finds out, and goes on.
    #[non_exhaustive]
    Unfinished {
        /// The state of the change, and the masters that do not answer.
        why: Arc<str>,
    },

    /// The input, or the thread that made the call, was refused before anything was sent.
    Invalid(Invalid),

    /// The client was shut down.
    Closed,
}

impl SetError {
    pub(crate) fn not_begun(why: impl Into<Arc<str>>, permanent: bool) -> Self {
        Self::NotBegun { why: why.into(), permanent }
    }

    /// The same error of a recovery.
    pub(crate) fn of_recovery(self) -> Self {
        match self {
            Self::NotBegun { why, permanent } => Self::NotRecovered { why, permanent },
            other => other,
        }
    }

    /// The same error of a fingerprint.
    pub(crate) fn of_fingerprint(self) -> Self {
        match self {
            Self::NotBegun { why, permanent } => Self::NoFingerprint { why, permanent },
            other => other,
        }
    }

    pub(crate) fn not_changed(why: impl Into<Arc<str>>) -> Self {
        Self::NotChanged { why: why.into() }
    }

    pub(crate) fn unfinished(why: impl Into<Arc<str>>) -> Self {
        Self::Unfinished { why: why.into() }
    }

    /// Whether the same call can succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotBegun { permanent, .. }
            | Self::NotRecovered { permanent, .. }
            | Self::NoFingerprint { permanent, .. } => !permanent,
            Self::Unfinished { .. } => true,
            Self::NotChanged { .. } | Self::Invalid(_) | Self::Closed => false,
        }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBegun { why, .. } => write!(f, "the set of masters was not begun: {why}"),
            Self::NotRecovered { why, .. } => write!(f, "the set of masters was not recovered: {why}"),
            Self::NoFingerprint { why, .. } => write!(f, "the masters have no fingerprint: {why}"),
            Self::NotChanged { why } => write!(f, "the set of masters was not changed: {why}"),
            Self::Unfinished { why } => write!(f, "the change is not finished: {why}: run it again"),
            Self::Invalid(invalid) => write!(f, "{invalid}"),
            Self::Closed => f.write_str("the client was shut down"),
        }
    }
}

impl fmt::Debug for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SetError {}

impl From<Invalid> for SetError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_wait_is_told_after_a_second_and_then_every_ten() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let to = told.clone();
        let mut tell =
            Tell::new(move |what, left| to.lock().unwrap().push((what.to_owned(), left.as_secs())));
        for quarter in 0..100 {
            let now = Moment::default() + Duration::from_millis(quarter * 250);
            tell.waits_for(&quarter.to_string(), Duration::from_secs(100), now);
        }
        let quarters = ["4", "44", "84"].map(|quarter| (quarter.to_owned(), 100));
        assert_eq!(*told.lock().unwrap(), quarters);
    }
}
