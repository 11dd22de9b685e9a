//! What a lock kind gives to the engine: the scripts and their arguments. The engine gives everything else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::master::{Call, Script, Terms};

/// What an operation is about, in the same words for every kind.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    pub(crate) key: &'a Arc<str>,
    pub(crate) channel: &'a Arc<str>,
    /// The owner as it stands on the masters.
    pub(crate) owner: &'a Arc<str>,
    /// The hold count to end up with.
    pub(crate) count: u32,
    pub(crate) ttl: Duration,
    /// Rises with every round of a client; a master refuses what comes after a later round.
    pub(crate) round: u64,
}

/// A script with its arguments, for all masters.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    pub(crate) script: &'static Script,
    pub(crate) keys: Arc<[Arc<str>]>,
    pub(crate) args: Arc<[Arc<str>]>,
}

impl Errand {
    pub(crate) fn call(&self, terms: Terms) -> Call {
        Call { script: self.script, keys: self.keys.clone(), args: self.args.clone(), terms }
    }
}

/// A lock kind. Its scripts answer in the words that `reply.rs` reads.
pub(crate) trait Kind: fmt::Debug + Send + Sync + 'static {
    fn acquire(&self, operation: &Operation<'_>) -> Errand;
    fn extend(&self, operation: &Operation<'_>) -> Errand;
    fn release(&self, operation: &Operation<'_>) -> Errand;
    fn inspect(&self, key: &Arc<str>) -> Errand;
}
