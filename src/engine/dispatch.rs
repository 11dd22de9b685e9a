//! Sends one operation to some of the masters, and has their votes tallied. It knows no lock, only
//! whose hold it asks for.
//!
//! What is sent from any thread is handed over by one task, in the order in which it was sent:
//! however many masters there are, a send wakes the engine's thread once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::mpsc;

use super::hold::{Epoch, Hold};
use super::master_set::MasterSet;
use super::tally::{Common, Round};
use super::wake_batcher::WakeBatcher;
use crate::clock::Clock;
use crate::config::Settings;
use crate::executor::Executor;
use crate::master::{Call, CallKind, Failure, Master, ReplySink, Script, Words};
use crate::protocol::{Op, Subject};
use crate::trust::{Handshake, MasterStatus, Trust};

/// How many submissions are handed over before the masters' connections get their turn.
const AT_ONCE: usize = 256;

/// Sends operations to the masters.
pub(super) struct Dispatcher {
    masters: Vec<Arc<dyn Master>>,
    common: Arc<Common>,
    /// What keys begin with.
    prefix: Arc<str>,
    /// The usual per-master time-out.
    timeout: Duration,
    submissions: mpsc::UnboundedSender<Submission>,
    /// Whether somebody has waited for the masters to be connected.
    introduced: AtomicBool,
    /// The last number given to a round.
    rounds: AtomicU64,
}

impl Dispatcher {
    pub(super) fn new(
        masters: Vec<Arc<dyn Master>>,
        clock: Arc<dyn Clock>,
        settings: &Settings,
        executor: &Executor,
    ) -> Arc<Self> {
        let trust = Trust::new(settings.terms(masters.len()), clock.clone());
        let indexed = masters.iter().enumerate();
        indexed.for_each(|(index, master)| master.introduce(Handshake::new(trust.clone(), index)));
        let names = masters.iter().map(|master| master.name().clone()).collect();
        let (submissions, to_deliver) = mpsc::unbounded_channel();
        executor.spawn(deliver(to_deliver, masters.clone()));
        let (wake_batcher, relaying) = WakeBatcher::new();
        executor.spawn(relaying);
        let common = Arc::new(Common { names, trust, clock, wake_batcher });
        Arc::new(Self {
            masters,
            common,
            prefix: settings.prefix.clone(),
            timeout: settings.timeout(),
            submissions,
            introduced: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
        })
    }

    /// How many masters there are.
    pub(super) fn masters(&self) -> usize {
        self.masters.len()
    }

    pub(super) fn master(&self, index: usize) -> &Arc<dyn Master> {
        &self.masters[index]
    }

    /// The masters' names.
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.common.names
    }

    /// How the masters stand with this client.
    pub(super) fn status(&self) -> Vec<MasterStatus> {
        self.trust().status(self.masters.iter().map(|master| (master.name(), master.contact())))
    }

    /// Which masters may vote.
    pub(super) fn trust(&self) -> &Arc<Trust> {
        &self.common.trust
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.common.clock
    }

    /// Wakes the callers.
    pub(super) fn wake_batcher(&self) -> &Arc<WakeBatcher> {
        &self.common.wake_batcher
    }

    /// What time it is (since 1970), as most masters show.
    pub(super) fn time(&self) -> Duration {
        self.common.time()
    }

    /// The usual per-master time-out.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A round number above all before.
    pub(super) fn next_round(&self) -> u64 {
        self.rounds.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The same question of the owner of `hold` to all masters. What was not sent yet when the
    /// round is withdrawn, or when `epoch` is over, is not sent any more.
    pub(super) fn ask(
        &self,
        hold: &Hold,
        number: u64,
        op: &Op,
        call_kind: CallKind,
        epoch: Option<Epoch>,
    ) -> Round {
        self.ask_some(MasterSet::all(self.masters()), hold, number, op, call_kind, epoch)
    }

    /// The same, to some of the masters. The clocks of the others are off.
    pub(super) fn ask_some(
        &self,
        to: MasterSet,
        hold: &Hold,
        number: u64,
        op: &Op,
        call_kind: CallKind,
        epoch: Option<Epoch>,
    ) -> Round {
        let round = self.round(&hold.site, epoch); // leases count from here, so it comes first
        let trusted = self.trusted_for(op);
        let send = |op: &Op, to| {
            let words = self.words(hold, number, op, trusted);
            self.send(hold.kind.script(), words, call_kind, round.tally().clone(), to);
        };
        match op {
            // What was watched on one master says nothing of another.
            Op::Acquire { .. } if self.trust().is_strict() => {
                for index in to.iter() {
                    let watched = self.trust().watched.over(index, &hold.site);
                    send(&op.clone().watched(watched), [index].into_iter().collect());
                }
            }
            _ => send(op, to),
        }
        for index in MasterSet::all(self.masters()).without(to).iter() {
            round.tally().need_not_ask(index, "its clock is off");
        }
        round
    }

    /// A round in which nobody was asked yet.
    pub(super) fn round(&self, site: &Arc<str>, epoch: Option<Epoch>) -> Round {
        Round::new(&self.common, site, epoch)
    }

    /// Tells some masters an operation of the owner of `hold`. Their answers go to `sink`.
    pub(super) fn tell(
        &self,
        to: MasterSet,
        hold: &Hold,
        number: u64,
        op: &Op,
        kind: CallKind,
        sink: Arc<dyn ReplySink>,
    ) {
        let words = self.words(hold, number, op, self.trusted_for(op));
        self.send(hold.kind.script(), words, kind, sink, to);
    }

    /// Has a script run on some masters. Whatever becomes of it, the answers will come.
    pub(super) fn send(
        &self,
        script: &'static Script,
        words: Words,
        kind: CallKind,
        sink: Arc<dyn ReplySink>,
        to: MasterSet,
    ) {
        let call = Arc::new(Call { script, words, kind, sink });
        let _ = self.submissions.send(Submission { call, to }); // if dropped, it answers
    }

    /// Whether nothing can be sent any more, because the runtime has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.submissions.is_closed()
    }

    /// The words of an operation of the owner of `hold`. `trusted` is what it takes for the time.
    fn words(&self, hold: &Hold, round: u64, op: &Op, trusted: u64) -> Words {
        let Hold { name, owner, kind, permit, .. } = hold;
        let subject = Subject { prefix: &self.prefix, kind: *kind, name, permit: *permit };
        op.words(subject, *owner, round, trusted)
    }

    /// The time (us) that an operation goes by, T of docs/PROTOCOL.md: for a new grant, what it
    /// proposes as the token.
    fn trusted_for(&self, op: &Op) -> u64 {
        match op {
            Op::Acquire { .. } | Op::Transfer { renews: true, .. } => self.trust().propose(),
            _ => self.trust().time(),
        }
    }

    /// Connects to the masters, where nobody has tried to: what is proposed as a token is the time
    /// that most of them show. `None` where there is nothing to wait for.
    pub(super) fn learn_the_time(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Option<impl Future<Output = ()> + use<>> {
        if self.introduced.load(Ordering::Relaxed) || self.trust().knows_the_time() {
            return None;
        }
        let connecting = join_all(self.masters.iter().map(|master| master.ready()));
        let dispatcher = self.clone();
        Some(async move {
            let known = async {
                tokio::select! {
                    biased;
                    () = dispatcher.trust().until_it_knows_the_time() => {}
                    _ = connecting => {}
                }
            };
            let _ = tokio::time::timeout(timeout, known).await; // the round will tell who did not answer
            dispatcher.introduced.store(true, Ordering::Relaxed);
        })
    }
}

/// Hands submissions over until no more can come.
async fn deliver(mut submissions: mpsc::UnboundedReceiver<Submission>, masters: Vec<Arc<dyn Master>>) {
    let mut batch: Vec<Submission> = Vec::with_capacity(AT_ONCE);
    while submissions.recv_many(&mut batch, AT_ONCE).await > 0 {
        let is_full = batch.len() == AT_ONCE;
        batch.drain(..).for_each(|submission| submission.deliver(&masters));
        if is_full {
            tokio::task::yield_now().await;
        }
    }
}

/// A call on its way to the masters.
struct Submission {
    call: Arc<Call>,
    /// Those that do not have it yet.
    to: MasterSet,
}

impl Submission {
    fn deliver(mut self, masters: &[Arc<dyn Master>]) {
        for index in std::mem::take(&mut self.to).iter() {
            masters[index].call(self.call.clone(), index);
        }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        for index in self.to.iter() {
            self.call.sink.receive(index, Err(Failure::Unreachable("the client was shut down".into())), None);
        }
    }
}
