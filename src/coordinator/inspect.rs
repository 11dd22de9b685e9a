//! Inspect: ask every master who holds a lock.

use std::sync::Arc;

use super::Coordinator;
use super::kind::Kind;
use crate::config::check_name;
use crate::error::Error;
use crate::master::Terms;
use crate::vote::Vote;

impl Coordinator {
    /// Every master's view of the lock, each within its time-out.
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        name: Arc<str>,
        kind: &'static dyn Kind,
    ) -> Result<Arc<[Vote]>, Error> {
        check_name(&name)?;
        self.run(|engine| async move {
            let words = kind.inspect(&engine.settings.prefix, &name);
            let round = engine.ask(&name, kind.script(), words, engine.unconditional(), None);
            round.finish().await;
            Ok(round.votes())
        })
        .await
    }

    /// A vote within the time-out that has nothing to do with a lease.
    pub(super) fn unconditional(&self) -> Terms {
        Terms::Vote { timeout: self.settings.timeout() }
    }
}
