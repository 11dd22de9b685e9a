//! Inspect: ask every master who holds a lock.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Coordinator;
use super::kind::{Errand, Kind};
use super::round::Round;
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
            let mut round = engine.ask_all(&kind.inspect(&engine.keys(&name)));
            round.finish().await;
            Ok(round.votes())
        })
        .await
    }

    /// A round that nothing withdraws.
    pub(super) fn ask_all(&self, errand: &Errand) -> Round {
        self.ask(errand, self.unconditional())
    }

    /// A vote that nothing withdraws.
    pub(super) fn unconditional(&self) -> Terms {
        Terms::Vote { timeout: self.settings.timeout(), withdrawn: CancellationToken::new() }
    }
}
