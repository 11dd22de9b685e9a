//! How a set of masters begins, and changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a set of masters begins: see [`Redlock::init`](crate::Redlock::init).
///
/// # Examples
///
/// ```
/// use quorate::Init;
///
/// let init = Init::new().never_used("8b1a9953");
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

    /// For masters that no client ever used, by the word of a person: they vote at once. The
    /// fingerprint names their processes, so that what is run again later, when other processes
    /// are there, does not repeat that word; a wrong one is refused with the right one in
    /// [`Error::NotBegun`](crate::Error::NotBegun). Refused where any master has a record.
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
    pub(crate) tell: Tell,
}

/// Is told what is waited for, and for how long yet at most.
pub(crate) type Tell = Arc<dyn Fn(&str, Duration) + Send + Sync>;

impl SetChange {
    fn new(add: Option<&str>, remove: Option<&str>) -> Self {
        Self { add: add.map(Into::into), remove: remove.map(Into::into), tell: Arc::new(|_, _| {}) }
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
