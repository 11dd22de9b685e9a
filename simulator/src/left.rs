//! What clients still have to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::stage::Stage;

/// How long a client may take for what it does when all is calm: more than it waits, or the next
/// needs.
const LONGEST_CALM: Duration = Duration::from_secs(60);

/// How much each client still has to do.
#[derive(Clone)]
pub(crate) struct Left(Arc<Vec<AtomicUsize>>, Arc<Notify>);

impl Left {
    pub(crate) fn of(stage: &Arc<Stage>) -> Self {
        Self(Arc::new(stage.clients.iter().map(|_| AtomicUsize::new(0)).collect()), Arc::default())
    }

    /// Has a client do something.
    pub(crate) fn run(
        &self,
        stage: &Arc<Stage>,
        client: usize,
        acting: impl Future<Output = ()> + Send + 'static,
    ) {
        let its = self.clone();
        its.0[client].fetch_add(1, Ordering::Relaxed);
        stage.clients[client].process.run(async move {
            acting.await;
            its.0[client].fetch_sub(1, Ordering::Relaxed);
            its.1.notify_one();
        });
    }

    /// The clients that live, and are not done.
    pub(crate) fn clients(&self, stage: &Arc<Stage>) -> impl Iterator<Item = usize> {
        stage.living().filter(|client| self.0[*client].load(Ordering::Relaxed) > 0)
    }

    /// Waits for all that live, for so long as it may take.
    pub(crate) async fn wait(&self, stage: &Arc<Stage>) {
        let all_done = async {
            while self.clients(stage).next().is_some() {
                self.1.notified().await;
            }
        };
        if tokio::time::timeout(LONGEST_CALM, all_done).await.is_err() {
            self.note(stage);
        }
    }

    /// It is too late for those that are not done.
    pub(crate) fn note(&self, stage: &Arc<Stage>) {
        let now = stage.world.look_at_the_time();
        self.clients(stage).for_each(|client| stage.world.recorder.stuck(client, now));
    }
}
