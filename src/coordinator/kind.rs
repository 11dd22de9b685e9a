//! What a lock kind gives to the engine: the scripts and their arguments. The engine gives everything else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::master::{Call, Script, Terms};

/// What an operation is about, in the same words for every kind.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    pub(crate) keys: &'a Keys,
    /// The owner as it stands on the masters.
    pub(crate) owner: &'a Arc<str>,
    /// The hold count to end up with.
    pub(crate) count: u32,
    pub(crate) ttl: Duration,
    /// Rises with every round of a client; a master refuses what comes after a later round.
    pub(crate) round: u64,
    /// For an acquire, the place in the queue to take where it is refused; for a release, the place to take instead of
    /// waking others.
    pub(crate) place: Option<&'a Place>,
    /// The ticket of the acquire before of the same waiter, whose place this one gives up.
    pub(crate) before: Option<&'a Arc<str>>,
}

/// What a lock is called on every master.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The lock.
    pub(crate) lock: Arc<str>,
    /// Its queue.
    pub(crate) queue: Arc<str>,
    /// What the channels begin with that clients are woken on.
    pub(crate) wakes: Arc<str>,
}

/// A waiter's place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Whom to call: used for one acquire only. Where the owner is, too, it is the owner.
    pub(crate) ticket: Arc<str>,
    /// Since when it waits, by its own wall clock.
    pub(crate) since: Duration,
    /// For how long that is.
    pub(crate) waited: Duration,
}

/// A script with its arguments, for all masters.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    pub(crate) script: &'static Script,
    pub(crate) keys: Arc<[Arc<str>]>,
    pub(crate) args: Arc<[Arc<str>]>,
}

impl Errand {
    /// One errand that does what all of these do, which have the same script.
    pub(crate) fn join(errands: &[Errand]) -> Self {
        let words = |of: fn(&Errand) -> &Arc<[Arc<str>]>| -> Arc<[Arc<str>]> {
            errands.iter().flat_map(|errand| of(errand).iter().cloned()).collect()
        };
        let script = errands.first().expect("there is one at least").script;
        Self { script, keys: words(|errand| &errand.keys), args: words(|errand| &errand.args) }
    }

    pub(crate) fn call(&self, terms: Terms) -> Call {
        Call { script: self.script, keys: self.keys.clone(), args: self.args.clone(), terms }
    }
}

/// A lock kind. Its scripts answer in the words that `reply.rs` reads.
pub(crate) trait Kind: fmt::Debug + Send + Sync + 'static {
    fn acquire(&self, operation: &Operation<'_>) -> Errand;
    fn extend(&self, operation: &Operation<'_>) -> Errand;
    fn release(&self, operation: &Operation<'_>) -> Errand;
    /// Gives the lock from the owner `from` to the operation's owner.
    fn transfer(&self, operation: &Operation<'_>, from: &Arc<str>) -> Errand;
    fn inspect(&self, keys: &Keys) -> Errand;
}
