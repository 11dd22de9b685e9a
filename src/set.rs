//! How a set of masters begins.

use std::sync::Arc;

use crate::trust::ColdStart;

/// How a set of masters begins: see [`Redlock::init`](crate::Redlock::init).
///
/// # Examples
///
/// ```
/// use quorate::{ColdStart, Init};
///
/// let init = Init::new().cold_start(ColdStart::Fsync);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Init {
    pub(crate) cold_start: ColdStart,
    pub(crate) never_used: Option<Arc<str>>,
}

impl Init {
    /// For masters that may have been used: they have no vote for a little more than one
    /// [`max_ttl`](crate::Builder::max_ttl), in which whatever they may have granted ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the set trusts of a master that restarted: see [`ColdStart`]. It is a term of the set,
    /// and no client has to name it.
    pub fn cold_start(mut self, policy: ColdStart) -> Self {
        self.cold_start = policy;
        self
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
