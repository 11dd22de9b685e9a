//! What is on its way from any thread to the masters, in the order in which it was sent. One task hands it over: however many
//! masters there are, whoever sends wakes the engine's thread once.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::places::Places;
use crate::master::{Call, Failure, Hears, Master, Reply, Script, Terms, Words};

/// How many parcels are handed over before the masters' connections get their turn.
const AT_ONCE: usize = 256;

/// Where parcels are put. When it is dropped, the task ends.
pub(super) struct Outbox(mpsc::UnboundedSender<Parcel>);

impl Outbox {
    /// An outbox, and the task that empties it.
    pub(super) fn new(masters: Vec<Arc<dyn Master>>) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (outbox, mut parcels) = mpsc::unbounded_channel();
        let deliver = async move {
            let mut batch: Vec<Parcel> = Vec::with_capacity(AT_ONCE);
            while parcels.recv_many(&mut batch, AT_ONCE).await > 0 {
                let is_full = batch.len() == AT_ONCE;
                batch.drain(..).for_each(|parcel| parcel.deliver(&masters));
                if is_full {
                    tokio::task::yield_now().await;
                }
            }
        };
        (Self(outbox), deliver)
    }

    /// Puts a parcel in. Whatever becomes of it, its answers will come.
    pub(super) fn send(&self, parcel: Parcel) {
        let _ = self.0.send(parcel); // a parcel that is dropped says so
    }

    /// Whether nothing can be sent any more, because the runtime has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// One operation for some of the masters.
pub(super) struct Parcel {
    script: &'static Script,
    words: Arc<Words>,
    terms: Terms,
    to: Arc<dyn Hears>,
    /// To whom it is still to be handed over.
    places: Places,
}

impl Parcel {
    pub(super) fn new(
        script: &'static Script,
        words: Arc<Words>,
        terms: Terms,
        to: Arc<dyn Hears>,
        places: Places,
    ) -> Self {
        Self { script, words, terms, to, places }
    }

    fn deliver(mut self, masters: &[Arc<dyn Master>]) {
        for place in std::mem::take(&mut self.places).iter() {
            let call = Call { script: self.script, words: self.words.clone(), terms: self.terms };
            masters[place].call(call, Reply::new(self.to.clone(), place));
        }
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        for place in self.places.iter() {
            self.to.hear(place, Err(Failure::Unreachable("the client was shut down".into())), None);
        }
    }
}
