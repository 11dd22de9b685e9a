//! Inspect: ask every master who holds a lock.

use std::sync::Arc;

use super::Coordinator;
use super::kind::Kind;
use super::verdict::holder;
use crate::error::Error;
use crate::master::Terms;
use crate::vote::Vote;

/// What masters said of a lock.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) votes: Arc<[Vote]>,
    /// The token of the owner that most masters name, if any of them told it.
    pub(crate) fence: Option<u64>,
}

impl Coordinator {
    /// Every master's view of the lock, each within its time-out.
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        name: Arc<str>,
        kind: &'static dyn Kind,
    ) -> Result<Sighting, Error> {
        kind.check_name(&name)?;
        self.run(|engine| async move {
            let words = kind.inspect(&engine.settings.prefix, &name);
            let round = engine.ask(&name, kind.script(), words, engine.unconditional(), None);
            round.finish().await;
            let votes = round.votes();
            let token = holder(&votes).map_or(0, |holder| round.token_of(&holder.owner));
            Ok(Sighting { votes, fence: (token > 0).then_some(token) })
        })
        .await
    }

    /// A vote within the time-out that has nothing to do with a lease.
    pub(super) fn unconditional(&self) -> Terms {
        Terms::Vote { timeout: self.settings.timeout() }
    }
}
