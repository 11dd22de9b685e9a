//! A waiter in the queues of masters.

use std::sync::Arc;

use super::kind::Kind;
use crate::owner::Owner;

/// Whom to wake. It is used for one acquire only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// An owner that is made for one acquire is that of its own ticket.
    pub(crate) owner: Owner,
    /// What others see of the waiter; may be empty.
    pub(crate) label: Arc<str>,
}

impl Ticket {
    /// What stands in the queue of a lock of this kind. Readers and writers share one, so their
    /// tickets say which they are.
    pub(super) fn text(&self, kind: Kind) -> String {
        let Self { owner, label } = self;
        let half = match kind {
            Kind::Read => "r:",
            Kind::Write => "w:",
            _ => "",
        };
        let space = if label.is_empty() { "" } else { " " };
        format!("{half}{owner}{space}{label}")
    }
}
