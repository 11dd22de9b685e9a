//! Sends one operation to some of the masters, and has a round count their votes.
//!
//! Any thread may send. When a send returns, the call is in order behind everything that was sent
//! before; a master that is out of reach has answered by then, on this thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::sync::mpsc;

use super::caller_waker::CallerWaker;
use super::epoch::Epoch;
use super::preference::{FirstMasters, Patience, Preference};
use super::tally::{Deferred, Round, RoundContext};
use crate::config::Settings;
use crate::executor::Executor;
use crate::link::{Master, Masters};
use crate::random::Random;
use crate::set::{Handshake, Terms, TimePrecision, Trust, Voters};
use crate::time::{Clock, Schedule};
use crate::vote::Refusal;
use crate::wire::{
    Call, CallKind, Failure, HOT, Kind, LockId, MasterIndex, MasterSet, Op, ReplySink, Script, TrustedTime,
    Value, Words,
};

/// How many rounds are looked at in a row for whether to ask the rest.
const HEDGES_AT_ONCE: usize = 64;

/// How often in a row to ask for the time: answers that come as late as before tell no more.
const TIME_QUESTIONS: usize = 3;

/// How long to wait for masters to be connected.
pub(crate) const CONNECTING: Duration = Duration::from_secs(3);

/// Of a master that joined the set.
const NO_CONNECTION: &str = "this client cannot connect to it: the log says why";

/// Sends operations to the masters.
pub(crate) struct Dispatcher {
    masters: Arc<Masters>,
    context: Arc<RoundContext>,
    /// What keys begin with.
    prefix: Arc<str>,
    /// The usual per-master time-out.
    timeout: Duration,
    /// Whether a caller has waited for the masters to be connected.
    has_waited_for_connections: AtomicBool,
    /// The last round number.
    rounds: AtomicU64,
}

impl Dispatcher {
    pub(crate) fn new(
        masters: Arc<Masters>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        settings: &Settings,
        executor: &Executor,
    ) -> Arc<Self> {
        let names: Vec<_> = masters.iter().map(|(_, master)| master.name().clone()).collect();
        let trust = Trust::new(names, Terms::of(settings), clock.clone(), random);
        let introduce = |(index, master): (MasterIndex, &Arc<dyn Master>)| {
            master.introduce(Handshake::new(trust.clone(), index));
        };
        masters.iter().for_each(introduce);
        let (caller_waker, waking) = CallerWaker::new();
        executor.spawn(waking);
        let hedges = Schedule::new(clock.clone());
        executor.spawn(hedge(hedges.clone()));
        let preference = Preference::new(settings.quorum_first_above);
        let context = Arc::new(RoundContext { trust, clock, caller_waker, preference, hedges });
        Arc::new(Self {
            masters,
            context,
            prefix: settings.prefix.clone(),
            timeout: settings.timeout(),
            has_waited_for_connections: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
        })
    }

    /// The masters, by their indices.
    pub(crate) fn masters(&self) -> &Arc<Masters> {
        &self.masters
    }

    /// The masters whose votes count now.
    pub(crate) fn voters(&self) -> Arc<Voters> {
        self.trust().voters()
    }

    /// Connects to a master, and resolves when it answers; never where there is none.
    pub(crate) fn ready(&self, index: MasterIndex) -> BoxFuture<'static, ()> {
        let master = self.masters.get(index);
        master.map_or_else(|| std::future::pending().boxed(), |master| master.ready())
    }

    /// Resolves when all of these are connected and answer, if that ever is.
    pub(crate) fn all_ready(&self, masters: MasterSet) -> impl Future<Output = ()> + use<> {
        let all = join_all(masters.iter().map(|index| self.ready(index)));
        async move { drop(all.await) }
    }

    /// The voters are others from now on. Connects to those that are new.
    pub(crate) fn follow(&self, voters: &Voters) {
        for (index, name) in voters.masters.iter().zip(&voters.names) {
            self.join(index, name);
        }
        self.has_waited_for_connections.store(false, Ordering::Relaxed);
    }

    /// Makes the master with this URL, or this name, if there is none at this index, and connects
    /// to it.
    pub(crate) fn join(&self, index: MasterIndex, url: &str) {
        if let Some(master) = self.masters.join(index, url) {
            master.introduce(Handshake::new(self.trust().clone(), index));
        }
        self.masters.get(index).into_iter().for_each(|master| master.connect_now());
    }

    /// Which masters may vote.
    pub(crate) fn trust(&self) -> &Arc<Trust> {
        &self.context.trust
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.context.clock
    }

    /// Ends what goes on in the background: the client is gone.
    pub(crate) fn end(&self) {
        self.context.hedges.close();
        self.context.caller_waker.end();
    }

    #[cfg(feature = "unstable-testing")]
    pub(crate) fn quorum_first_counts(&self) -> super::QuorumFirstCounts {
        self.context.preference.counts()
    }

    /// Wakes the callers whose rounds are decided.
    pub(crate) fn caller_waker(&self) -> &Arc<CallerWaker> {
        &self.context.caller_waker
    }

    /// What time it is (since 1970), as most masters show.
    pub(crate) fn time(&self) -> Duration {
        self.context.time()
    }

    /// The usual per-master time-out.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A round number above all that were given before.
    pub(crate) fn next_round_number(&self) -> u64 {
        self.rounds.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends an operation to all masters. What was not sent yet when the round is cancelled, or
    /// when `epoch` is over, is not sent any more.
    pub(crate) fn ask(
        &self,
        lock: &LockId,
        round_number: u64,
        op: &Op,
        timeout: Duration,
        epoch: Option<Epoch>,
    ) -> Arc<Round> {
        let voters = self.voters();
        let to = voters.masters;
        let round = self.begin_round(voters, epoch);
        self.send_round(round, to, lock, round_number, op, timeout)
    }

    /// Sends an acquire to a quorum first if this client has much to do, and otherwise to all.
    pub(crate) fn ask_quorum_first(
        &self,
        lock: &LockId,
        round_number: u64,
        op: &Op,
        timeout: Duration,
        epoch: Option<Epoch>,
    ) -> Arc<Round> {
        let voters = self.voters();
        let first = self.context.preference.choose(&voters, &lock.name, timeout, self.clock().now());
        let Some(FirstMasters { masters, patience }) = first else {
            return self.ask(lock, round_number, op, timeout, epoch);
        };
        let rest = voters.masters.without(masters);
        let round = self.begin_round(voters, epoch);
        let (call, width) = self.call_for(lock, round_number, op, CallKind::Vote { timeout }, round.clone());
        round.set_width(width);
        let later = call.clone();
        let links = self.masters.clone();
        let ask = Box::new(move |rest| send_to(&links, &later, rest));
        round.defer(Deferred { masters: rest, released_by: None, ask, patience });
        send_to(&self.masters, &call, masters);
        round
    }

    /// For how long to wait for some masters before the rest is asked. `None` to ask all at once.
    pub(crate) fn patience(&self, asked: MasterSet, rest: MasterSet, timeout: Duration) -> Option<Patience> {
        self.context.preference.patience(asked, rest, timeout)
    }

    /// Sends a round to some of its voters. The others count as refused.
    pub(crate) fn send_round(
        &self,
        round: Arc<Round>,
        to: MasterSet,
        lock: &LockId,
        round_number: u64,
        op: &Op,
        timeout: Duration,
    ) -> Arc<Round> {
        let voters = round.voters.masters;
        let to = to.and(voters);
        let kind = CallKind::Vote { timeout };
        round.set_width(self.send_op(to, lock, round_number, op, kind, round.clone()));
        for index in voters.without(to).iter() {
            let why = "its clock is off, or it has joined just now";
            round.count_unasked(index, Refusal::Clock, why);
        }
        round
    }

    /// A round of which nothing was sent to these voters yet. Leases count from here.
    pub(crate) fn begin_round(&self, voters: Arc<Voters>, epoch: Option<Epoch>) -> Arc<Round> {
        Round::new(&self.context, voters, epoch)
    }

    /// Sends an operation to some masters. Their answers go to `sink`. Returns the width of the
    /// time that it goes by.
    pub(crate) fn send_op(
        &self,
        to: MasterSet,
        lock: &LockId,
        round_number: u64,
        op: &Op,
        call_kind: CallKind,
        sink: Arc<dyn ReplySink>,
    ) -> Duration {
        let (call, width) = self.call_for(lock, round_number, op, call_kind, sink);
        send_to(&self.masters, &call, to);
        width
    }

    /// The call of an operation, and the width of the time that it goes by.
    fn call_for(
        &self,
        lock: &LockId,
        round_number: u64,
        op: &Op,
        kind: CallKind,
        sink: Arc<dyn ReplySink>,
    ) -> (Arc<Call>, Duration) {
        let time = self.time_for(op);
        let hot = op.hot_words(&self.prefix, lock, round_number, time).map(|words| (&HOT, words));
        let script = lock.kind.script();
        let prefix = self.prefix.clone();
        let lock = lock.clone();
        let op = op.clone();
        let words = move || op.words(&prefix, &lock, round_number, time);
        (Arc::new(Call { script, words: LazyLock::new(Box::new(words)), hot, kind, sink }), time.width)
    }

    /// Has a script run on some masters. `sink` gets an answer of each, also where the call fails.
    pub(crate) fn send(
        &self,
        script: &'static Script,
        words: Words,
        kind: CallKind,
        sink: Arc<dyn ReplySink>,
        to: MasterSet,
    ) {
        send_to(&self.masters, &Arc::new(Call::new(script, words, kind, sink)), to);
    }

    /// The time that an operation goes by. A new grant proposes it as the token.
    fn time_for(&self, op: &Op) -> TrustedTime {
        match op {
            Op::Acquire { .. } | Op::Transfer { renews: true, .. } => self.trust().propose(),
            Op::Extend { .. } | Op::Transfer { .. } => self.trust().trusted(),
            Op::Release { .. } | Op::Withdraw { .. } | Op::Inspect | Op::Time => {
                TrustedTime::UNKNOWN // they go by none
            }
        }
    }

    /// Connects to the masters, unless a caller has waited for that before, and asks them for the
    /// time if it is known vaguely: a new grant proposes the time that most of them show as its
    /// token. `None` where there is nothing to wait for.
    pub(crate) fn learn_the_time(
        self: &Arc<Self>,
        name: &Arc<str>,
        kind: Kind,
        timeout: Duration,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let precision = self.trust().time_precision();
        match precision {
            TimePrecision::Exact => return None,
            TimePrecision::Unknown if self.has_waited_for_connections.load(Ordering::Relaxed) => return None,
            TimePrecision::Unknown | TimePrecision::Vague => {}
        }
        let connecting = self.all_ready(self.voters().masters);
        let dispatcher = self.clone();
        let name = name.clone();
        Some(async move {
            if precision == TimePrecision::Vague {
                return dispatcher.ask_for_time(&name, kind).await;
            }
            let known = async {
                tokio::select! {
                    biased;
                    () = dispatcher.trust().until_time_is(|precision| precision != TimePrecision::Unknown) => {}
                    () = connecting => {}
                }
            };
            let _ = tokio::time::timeout(timeout, known).await; // the round will show who did not answer
            dispatcher.has_waited_for_connections.store(true, Ordering::Relaxed);
            dispatcher.ask_for_time(&name, kind).await;
        })
    }

    /// Asks all masters what they know of a name.
    pub(crate) fn inspect(&self, name: &str, kind: Kind) -> Arc<Round> {
        self.look(&Op::Inspect, name, kind)
    }

    /// An operation of no owner.
    fn look(&self, op: &Op, name: &str, kind: Kind) -> Arc<Round> {
        let lock = LockId::of_nobody(name.into(), kind.to_look_at());
        self.ask(&lock, 0, op, self.timeout, None)
    }

    /// Asks the masters for the time while it is known vaguely. This name's keys may be used.
    pub(crate) async fn ask_for_time(&self, name: &str, kind: Kind) {
        for _ in 0..TIME_QUESTIONS {
            if self.trust().time_precision() != TimePrecision::Vague {
                return;
            }
            let round = self.look(&Op::Time, &kind.names(name)[0], kind);
            round.decision().await; // most have answered
            if self.trust().time_precision() == TimePrecision::Vague {
                round.until_all().await;
            }
        }
    }
}

/// Hands a call over to the links of some masters.
fn send_to(masters: &Masters, call: &Arc<Call>, to: MasterSet) {
    for index in to.iter() {
        match masters.get(index) {
            Some(master) => master.call(call.clone(), index),
            None => call.sink.receive(index, Err(Failure::Unreachable(NO_CONNECTION.into())), None),
        }
    }
}

/// Asks the rest of each round whose first masters are slow, until the client is gone.
async fn hedge(hedges: Arc<Schedule<Weak<Round>>>) {
    while let Some(due) = hedges.due(HEDGES_AT_ONCE).await {
        tokio::task::yield_now().await; // read first what was received while this process stood still
        due.iter().filter_map(Weak::upgrade).for_each(|round| round.hedge());
    }
}

/// Hands each answer on, as what `read` makes of it and of the master's time, with the master's
/// index. What nobody waits for any more is not sent.
pub(crate) struct Forward<T> {
    pub(crate) to: mpsc::UnboundedSender<(MasterIndex, T)>,
    pub(crate) read: fn(Result<Value, Failure>, Option<u64>) -> T,
}

impl<T: Send> ReplySink for Forward<T> {
    fn is_wanted(&self, _index: MasterIndex) -> bool {
        !self.to.is_closed()
    }

    fn receive(&self, index: MasterIndex, answer: Result<Value, Failure>, time: Option<u64>) {
        let _ = self.to.send((index, (self.read)(answer, time))); // the caller may be gone
    }
}
