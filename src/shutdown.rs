//! What a shutdown came to.

use std::fmt;
use std::sync::Arc;

/// What a [shutdown](crate::Redlock::shutdown) came to: whether everything was done by its deadline, and what masters were
/// not told. There is no need to look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// The masters that have not confirmed every release and clean-up yet, in the order of the client's masters.
    pub untold: Vec<Untold>,
    pub(crate) is_complete: bool,
}

/// A master that was not told everything.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Untold {
    /// The master, as in its URL, without user and password.
    pub master: Arc<str>,
    /// How many releases and clean-ups it has not confirmed. What it has of them ends with its TTL.
    pub left: usize,
}

impl Shutdown {
    /// Whether every release and clean-up reached its masters by the deadline, or was not needed any more because the TTL was
    /// over, and no other operation was under way.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.untold {
            _ if self.is_complete => f.write_str("every master was told what there was to tell"),
            [] => f.write_str("operations are still under way"),
            [first, others @ ..] => {
                first.fmt(f)?;
                others.iter().try_for_each(|untold| write!(f, "; {untold}"))
            }
        }
    }
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has not confirmed {} releases, which end with their TTL", self.master, self.left)
    }
}
