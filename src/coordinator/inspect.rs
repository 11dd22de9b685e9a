//! Inspect: ask every master who holds a lock.

use std::sync::Arc;

use super::Coordinator;
use super::kind::Kind;
use super::permits::{Permit, site};
use super::round::Round;
use super::verdict::holder;
use crate::config::check_permits;
use crate::error::Error;
use crate::master::Terms;
use crate::owner::Owner;
use crate::vote::Vote;

/// What masters said of a lock.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) votes: Arc<[Vote]>,
    /// The token of the owner that most masters name, if any of them told it.
    pub(crate) fence: Option<u64>,
}

impl Coordinator {
    /// Every master's view of the lock, each within its time-out; of a semaphore, of each of its permits. Where several may hold it,
    /// whether `asked` does.
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        name: Arc<str>,
        kind: &'static dyn Kind,
        permits: Option<u32>,
        asked: Option<Owner>,
    ) -> Result<Vec<Sighting>, Error> {
        kind.check_name(&name)?;
        check_permits(permits)?;
        self.run(|engine| async move {
            let ask = |permit: Option<Permit>| {
                let words = kind.inspect(&engine.settings.prefix, &name, permit, asked);
                engine.ask(&site(&name, permit), kind.script(), words, engine.unconditional(), None)
            };
            let rounds: Vec<Round> = match permits {
                Some(of) => (0..of).map(|number| ask(Some(Permit { number, of }))).collect(),
                None => vec![ask(None)],
            };
            let mut views = Vec::with_capacity(rounds.len());
            for round in rounds {
                round.finish().await;
                let votes = round.votes();
                let token = holder(&votes).map_or(0, |holder| round.token_of(&holder.owner));
                views.push(Sighting { votes, fence: (token > 0).then_some(token) });
            }
            Ok(views)
        })
        .await
    }

    /// A vote within the time-out that has nothing to do with a lease.
    pub(super) fn unconditional(&self) -> Terms {
        Terms::Vote { timeout: self.settings.timeout() }
    }
}
