//! The acquires of a history, and how each ended.

use crate::history::{Call, History, Lock, Made, Outcome, Time};

/// An acquire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquire<'a> {
    /// What was asked for.
    pub(crate) lock: &'a Lock,
    /// Who asked.
    pub(crate) process: &'a str,
    /// When.
    pub(crate) began: Time,
    /// When its caller got the result, or gave it up.
    pub(crate) ended: Option<Time>,
    /// How it ended.
    pub(crate) ending: Ending,
    /// How long it was ready to wait.
    pub(crate) wait: Time,
}

/// How an acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With a guard.
    Granted,
    /// With an error.
    Failed,
    /// Its caller dropped it.
    Cancelled,
    /// Not yet, or its process was killed.
    Pending,
}

/// All of them.
pub(crate) fn acquires(history: &History) -> Vec<Acquire<'_>> {
    let acquires = history.calls.iter().filter_map(|made| {
        let Call::Acquire { lock, wait, .. } = &made.call else { return None };
        let ending = match (&made.outcome, made.returned) {
            (Outcome::Granted { .. }, _) => Ending::Granted,
            (Outcome::Cancelled, _) => Ending::Cancelled,
            (_, Some(_)) => Ending::Failed,
            (_, None) => Ending::Pending,
        };
        let Made { process, invoked, returned, .. } = made;
        Some(Acquire { lock, process, began: *invoked, ended: *returned, ending, wait: *wait })
    });
    acquires.collect()
}
