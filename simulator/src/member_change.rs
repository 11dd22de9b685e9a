//! A change of the set of masters, as a plan has it.

use std::fmt;

/// What one process changes.
#[derive(Clone, Debug)]
pub(crate) struct MemberChange {
    pub(crate) what: Replacement,
    /// How many messages it sends before it is killed.
    pub(crate) dies_after: Option<u64>,
}

/// Which master joins, and which leaves, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) joins: Option<usize>,
    pub(crate) leaves: Option<usize>,
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.joins, self.leaves) {
            (Some(joins), Some(leaves)) => write!(f, "replaces m{leaves} by m{joins}"),
            (Some(joins), None) => write!(f, "adds m{joins}"),
            (None, Some(leaves)) => write!(f, "removes m{leaves}"),
            (None, None) => f.write_str("changes nothing"),
        }
    }
}

impl fmt::Display for MemberChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)?;
        self.dies_after.map_or(Ok(()), |messages| write!(f, ", and is killed after {messages} messages"))
    }
}
