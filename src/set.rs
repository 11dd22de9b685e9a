//! How a set of masters begins, and changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::invalid::Invalid;

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
}

impl Init {
    /// For masters that may have been used: they have no vote for a little more than one
    /// [`max_ttl`](crate::Builder::max_ttl), in which whatever they may have granted ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// For masters that no client ever used, by the word of a person: they vote at once. Their
    /// [fingerprint](crate::Redlock::fingerprint) names their processes, so that what is run again
    /// later, when other processes are there, does not repeat that word: it is refused. So it is
    /// where any master has a record.
    pub fn never_used(mut self, fingerprint: impl AsRef<str>) -> Self {
        self.never_used = Some(fingerprint.as_ref().into());
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

/// Is told what is waited for, and for how long yet at most.
pub(crate) type Tell = Arc<dyn Fn(&str, Duration) + Send + Sync>;

impl SetChange {
    fn new(add: Option<&str>, remove: Option<&str>) -> Self {
        let add = add.map(Into::into);
        let remove = remove.map(Into::into);
        Self { add, remove, by_name: false, tell: Arc::new(|_, _| {}) }
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

    /// Another master in place of one: it joins before the old one leaves, or afterwards if the old
    /// one does not answer.
    pub fn replace(old: impl AsRef<str>, new: impl AsRef<str>) -> Self {
        Self::new(Some(new.as_ref()), Some(old.as_ref()))
    }

    /// The masters are given by their names, which have no URL: those of a simulation.
    #[cfg(feature = "unstable-testing")]
    pub fn by_name(mut self) -> Self {
        self.by_name = true;
        self
    }

    /// Calls `tell` a few times a second with what the change waits for, and for how long yet at
    /// most.
    pub fn on_progress(mut self, tell: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        self.tell = Arc::new(tell);
        self
    }
}

impl fmt::Debug for SetChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may contain a password.
        f.debug_struct("SetChange").finish_non_exhaustive()
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

    /// The set was not changed.
    #[non_exhaustive]
    NotChanged {
        /// What stands in the way.
        why: Arc<str>,
    },

    /// Too few masters answer for a change to come to its end. It may have changed the set, or has:
    /// the same call finds out, and goes on.
    #[non_exhaustive]
    Unfinished {
        /// What is known, and what is not.
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

    pub(crate) fn not_changed(why: impl Into<Arc<str>>) -> Self {
        Self::NotChanged { why: why.into() }
    }

    /// Whether the same call may succeed later by itself.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::NotBegun { permanent: false, .. } | Self::Unfinished { .. })
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBegun { why, .. } => write!(f, "the set of masters was not begun: {why}"),
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
