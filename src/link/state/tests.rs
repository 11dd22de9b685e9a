//! The link, driven step by step.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::*;
use crate::random::SystemRandom;
use crate::vote::Refusal;
use crate::wire::{NOT_HANDLED, ReplySink, Words};

static ONE: Script = Script::new("one", "return {0, 1}");
static HOT: Script = Script::new("hot", "return {0, -1}");
static OTHER: Script = Script::new("other", "return {0, 2}");

const PATIENCE: Duration = Duration::from_millis(250);
const VOTE: CallKind = CallKind::Vote { timeout: PATIENCE };
const CLEAN_UP: CallKind = CallKind::CleanUp { timeout: PATIENCE };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One who called.
struct Caller {
    wants: AtomicBool,
    heard: Mutex<Vec<Result<Value, Failure>>>,
}

impl ReplySink for Caller {
    fn is_wanted(&self, _index: MasterIndex) -> bool {
        self.wants.load(Ordering::Relaxed)
    }

    fn receive(&self, _index: MasterIndex, answer: Result<Value, Failure>, _time: Option<u64>) {
        self.heard.lock().unwrap().push(answer);
    }
}

impl Caller {
    fn heard(&self) -> Vec<Result<Value, Failure>> {
        self.heard.lock().unwrap().clone()
    }

    /// What it heard, except that its clean-up takes long.
    fn last_words(&self, kind: CallKind) -> Vec<Result<Value, Failure>> {
        let timed_out = Err(Failure::Unknown(Silence::TimedOut));
        let is_clean_up = matches!(kind, CallKind::CleanUp { .. });
        self.heard().into_iter().filter(|answer| !is_clean_up || *answer != timed_out).collect()
    }
}

/// One call, and what became of it.
struct Asked {
    caller: Arc<Caller>,
    kind: CallKind,
    until: Instant,
    /// Whether it was sent, and the master may have run it.
    may_have_run: bool,
    was_sent: bool,
    /// Whether the hot script left it to the full one.
    was_left: bool,
}

/// A link, and a driver that knows what it sent.
struct Driven {
    link: LinkState,
    now: Instant,
    calls: Vec<Asked>,
    /// The calls in each message that is not answered, which are none in a ping.
    sent: VecDeque<Vec<usize>>,
    /// Whether the record may be another one than the last handshake saw.
    may_have_changed: bool,
}

#[allow(clippy::disallowed_methods, reason = "an origin of times that the test makes up")]
fn origin() -> Instant {
    Instant::now()
}

impl Driven {
    fn new() -> Self {
        let link = LinkState::new("one".into(), PATIENCE, Arc::new(SystemRandom));
        Self { link, now: origin(), calls: Vec::new(), sent: VecDeque::new(), may_have_changed: false }
    }

    /// A link that is up.
    fn up() -> Self {
        let mut driven = Self::new();
        driven.link.want_connection(driven.now);
        driven.open(true);
        driven
    }

    fn reach(&self) -> Reach {
        self.link.reach().clone()
    }

    fn deliver(&mut self) {
        let mut deliveries = Vec::new();
        self.link.take_deliveries(&mut deliveries);
        deliveries.into_iter().for_each(Delivery::deliver);
    }

    fn call(&mut self, kind: CallKind) -> usize {
        self.call_of(&ONE, kind)
    }

    fn call_of(&mut self, script: &'static Script, kind: CallKind) -> usize {
        let words = Words::new(0).with(self.calls.len());
        self.call_with(script, words, None, kind)
    }

    /// A call about this key that the hot script may handle.
    fn call_hot(&mut self, key: &str, kind: CallKind) -> usize {
        self.call_hot_or(&ONE, key, kind)
    }

    /// One with this full script.
    fn call_hot_or(&mut self, script: &'static Script, key: &str, kind: CallKind) -> usize {
        let number = self.calls.len();
        let words = || Words::new(1).with(key).with(number);
        self.call_with(script, words(), Some((&HOT, words())), kind)
    }

    fn call_with(
        &mut self,
        script: &'static Script,
        words: Words,
        hot: Option<(&'static Script, Words)>,
        kind: CallKind,
    ) -> usize {
        let caller = Arc::new(Caller { wants: AtomicBool::new(true), heard: Mutex::default() });
        let number = self.calls.len();
        let call = Call { hot, ..Call::new(script, words, kind, caller.clone()) };
        self.link.call(Arc::new(call), 0.into(), self.now);
        let until = self.now + kind.timeout();
        self.calls.push(Asked { caller, kind, until, may_have_run: false, was_sent: false, was_left: false });
        self.deliver();
        number
    }

    fn open(&mut self, succeeds: bool) {
        let Some(at) = self.link.opens_at() else { return };
        self.wait_until(at);
        self.link.opening(self.now);
        if succeeds {
            self.link.opened(true, self.now);
        } else {
            self.link.not_opened(Failure::Unreachable("it refused".into()), self.now);
        }
        self.lose_sent();
        self.deliver();
    }

    /// The connection is another one, or there is none.
    fn lose_sent(&mut self) {
        self.sent.clear();
        self.may_have_changed = false;
    }

    /// Sends everything that there is to send, and says how many messages that was.
    fn send(&mut self) -> usize {
        let numbers = |message: Message<'_>| match message {
            Message::Ping | Message::Look | Message::Ask(_) => (None, Vec::new()),
            Message::Evaluate { script, calls, .. } => {
                assert!(!calls.is_empty() && calls.len() <= 64);
                assert!(calls.iter().all(|pending| std::ptr::eq(pending.script(), script)));
                let number = |pending: &Pending| pending.words().args().next().unwrap().parse().unwrap();
                (Some(script), calls.iter().map(number).collect::<Vec<usize>>())
            }
        };
        let mut count = 0;
        while let Some((_, numbers)) = self.link.send_next(self.now, numbers) {
            for number in &numbers {
                assert!(self.calls[*number].caller.wants.load(Ordering::Relaxed), "{number} is not wanted");
                let never_sent = !self.calls[*number].was_sent;
                let later = &self.calls[number + 1..];
                assert!(!never_sent || later.iter().all(|call| !call.was_sent), "{number} was overtaken");
                self.calls[*number].may_have_run = true;
            }
            numbers.iter().for_each(|number| self.calls[*number].was_sent = true);
            self.sent.push_back(numbers);
            count += 1;
        }
        self.deliver();
        count
    }

    /// A vote in a message of its own.
    fn sent_vote(&mut self) -> usize {
        let number = self.call(VOTE);
        self.send();
        number
    }

    /// The oldest message is answered: granted to all of its calls.
    fn answer(&mut self) {
        let count = self.sent.front().map_or(0, Vec::len);
        self.answer_with(Ok(Value::List(vec![Value::Int(7); count + 1])));
    }

    fn answer_with(&mut self, reply: Result<Value, String>) {
        let Some(numbers) = self.sent.pop_front() else { return };
        if reply.is_err() {
            for number in &numbers {
                let call = &mut self.calls[*number];
                call.may_have_run = call.was_left;
            }
        }
        let may_be_granted = !self.may_have_changed;
        let is_forgotten = |reply: &Value| reply.list().is_some_and(|items| items[0] == Value::Nil);
        let has_forgotten = !numbers.is_empty() && reply.as_ref().is_ok_and(is_forgotten);
        self.link.answered(reply, self.now);
        self.may_have_changed |= has_forgotten;
        if !self.link.is_open() {
            self.lose_sent();
        }
        self.deliver();
        let votes =
            numbers.iter().filter(|number| matches!(self.calls[**number].kind, CallKind::Vote { .. }));
        for number in votes {
            let is_granted = self.heard(*number).contains(&Ok(Value::Int(7)));
            assert!(may_be_granted || !is_granted, "{number} is granted by who knows what record");
        }
    }

    /// The oldest message is answered: nothing of it is handled, if the hot script was asked.
    fn leave(&mut self) {
        let Some(numbers) = self.sent.front().filter(|numbers| !numbers.is_empty()).cloned() else { return };
        let mut items = vec![NOT_HANDLED; numbers.len() + 1];
        items[0] = Value::Int(7);
        numbers.iter().for_each(|number| self.calls[*number].was_left = true);
        self.answer_with(Ok(Value::List(items)));
    }

    fn broke(&mut self) {
        self.link.broke("it broke", self.now);
        self.lose_sent();
        self.deliver();
    }

    fn record_changed(&mut self) {
        self.link.pushed(&[Value::Text("invalidate".into()), Value::Nil]);
        self.may_have_changed = self.link.is_open();
        self.deliver();
    }

    /// The oldest message is answered: the record is another one, so each of its calls was refused.
    fn forget(&mut self) {
        let numbers = self.sent.front().cloned().unwrap_or_default();
        numbers.iter().for_each(|number| self.calls[*number].may_have_run = false);
        let refused = ["refused", "FORGOT it restarted"].map(|word| Value::Text(word.into()));
        let mut items = vec![Value::List(refused.to_vec()); numbers.len() + 1];
        items[0] = Value::Nil;
        self.answer_with(Ok(Value::List(items)));
    }

    /// The handshake is made again, if it is due.
    fn greet(&mut self, succeeds: bool) -> bool {
        let is_due = self.link.takes_up_handshake();
        if is_due && succeeds {
            self.link.greeted();
            self.may_have_changed = false;
        } else if is_due {
            self.link.not_greeted(Failure::Unreachable("it refused".into()), self.now);
            self.lose_sent();
        }
        self.deliver();
        is_due
    }

    /// Time goes on, and the link is looked at whenever it wants to be.
    fn wait_until(&mut self, then: Instant) {
        while let Some(alarm) = self.link.alarm().filter(|alarm| *alarm <= then) {
            self.now = self.now.max(alarm);
            self.link.tick(self.now);
            assert!(self.link.alarm().is_none_or(|alarm| alarm > self.now), "it would ring for ever");
            self.deliver();
        }
        self.now = self.now.max(then);
        if !self.link.is_open() {
            self.lose_sent();
        }
    }

    fn wait(&mut self, time: Duration) {
        self.wait_until(self.now + time);
    }

    fn heard(&self, number: usize) -> Vec<Result<Value, Failure>> {
        self.calls[number].caller.heard()
    }

    /// What must hold at any time.
    fn check(&self) {
        for (number, call) in self.calls.iter().enumerate() {
            let last_words = call.caller.last_words(call.kind);
            assert!(last_words.len() <= 1, "{number} heard {last_words:?}");
            match last_words.first() {
                Some(Err(
                    Failure::Unreachable(why) | Failure::Refused { reason: Refusal::Moved, detail: why },
                )) => {
                    assert!(!call.may_have_run, "{number} may have run, and heard: {why}");
                }
                Some(_) => assert!(call.was_sent, "{number} heard {last_words:?} and was never sent"),
                None => {}
            }
            assert!(call.caller.heard().len() <= 2, "{number} heard {:?}", call.caller.heard());
            let is_due = call.until <= self.now;
            assert!(!is_due || !call.caller.heard().is_empty(), "{number} heard nothing in time");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Call { vote: bool, other: bool, millis: u64 },
    CallHot { vote: bool, key: &'static str },
    Leave,
    GiveUp(usize),
    Open(bool),
    Send,
    Delivery,
    Refuse(&'static str),
    Strange,
    Forget(bool),
    Greet(bool),
    Push,
    Renew,
    Break,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), prop::bool::weighted(0.1), 1..400u64)
            .prop_map(|(vote, other, millis)| Step::Call { vote, other, millis }),
        3 => (any::<bool>(), prop::sample::select(vec!["a", "b"]))
            .prop_map(|(vote, key)| Step::CallHot { vote, key }),
        2 => Just(Step::Leave),
        1 => (0..50usize).prop_map(Step::GiveUp),
        2 => prop::bool::weighted(0.7).prop_map(Step::Open),
        4 => Just(Step::Send),
        4 => Just(Step::Delivery),
        2 => prop::sample::select(vec!["NOSCRIPT none", "NOPERM no", "OOM full"]).prop_map(Step::Refuse),
        1 => Just(Step::Strange),
        1 => any::<bool>().prop_map(Step::Forget),
        3 => prop::bool::weighted(0.8).prop_map(Step::Greet),
        1 => Just(Step::Push),
        1 => Just(Step::Renew),
        1 => Just(Step::Break),
        3 => (0..2_000u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Each call is answered once, in time and truthfully; calls are sent in their order; no vote
    /// counts whose record may be another one; and nothing is left in the end.
    #[test]
    fn whatever_happens_each_call_is_answered_once(steps in prop::collection::vec(step(), 1..80)) {
        let mut driven = Driven::new();
        for step in steps {
            match step {
                Step::Call { vote, other, millis } => {
                    let timeout = ms(millis);
                    let kind = if vote { CallKind::Vote { timeout } } else { CallKind::CleanUp { timeout } };
                    let number = driven.call_of(if other { &OTHER } else { &ONE }, kind);
                    let is_refused = match driven.link.reach() {
                        Reach::Down(_) => true,
                        Reach::Silent => vote,
                        _ => false,
                    };
                    prop_assert_eq!(!driven.heard(number).is_empty(), is_refused);
                }
                Step::CallHot { vote, key } => {
                    driven.call_hot(key, if vote { VOTE } else { CLEAN_UP });
                }
                Step::Leave => driven.leave(),
                Step::GiveUp(number) => {
                    if let Some(call) = driven.calls.get(number) {
                        call.caller.wants.store(false, Ordering::Relaxed);
                    }
                }
                Step::Open(succeeds) => driven.open(succeeds),
                Step::Send => {
                    driven.send();
                }
                Step::Delivery => driven.answer(),
                Step::Refuse(why) => driven.answer_with(Err(why.to_owned())),
                Step::Strange => driven.answer_with(Ok(Value::Int(5))),
                Step::Forget(true) => driven.forget(),
                Step::Greet(succeeds) => {
                    driven.greet(succeeds);
                }
                Step::Forget(false) => {
                    let count = driven.sent.front().map_or(0, Vec::len);
                    let mut items = vec![Value::Int(1); count + 1];
                    items[0] = Value::Nil;
                    driven.answer_with(Ok(Value::List(items)));
                }
                Step::Push => driven.record_changed(),
                Step::Renew => driven.link.renew_handshake(),
                Step::Break => driven.broke(),
                Step::Wait(millis) => driven.wait(ms(millis)),
            }
            driven.check();
        }
        driven.link.close();
        driven.deliver();
        driven.check();
        for call in &driven.calls {
            prop_assert_eq!(call.caller.last_words(call.kind).len(), 1);
        }
    }
}

#[test]
fn nothing_is_opened_before_the_first_call_which_waits_for_it() {
    let mut driven = Driven::new();
    assert_eq!((driven.link.opens_at(), driven.link.reach()), (None, &Reach::Idle));
    let number = driven.call(VOTE);
    assert_eq!((driven.send(), driven.reach()), (0, Reach::Connecting));
    driven.open(true);
    assert_eq!((driven.send(), driven.reach()), (1, Reach::Up));
    driven.answer();
    assert_eq!(driven.heard(number), [Ok(Value::Int(7))]);
}

#[test]
fn what_waits_leaves_together_with_its_script_and_not_too_many_at_once() {
    let mut driven = Driven::up();
    for _ in 0..70 {
        driven.call(VOTE);
    }
    driven.call_of(&OTHER, VOTE);
    driven.call(VOTE);
    assert_eq!(driven.send(), 4);
    assert_eq!(driven.sent.iter().map(Vec::len).collect::<Vec<_>>(), [64, 6, 1, 1]);
}

#[test]
fn a_master_that_answers_nothing_gets_so_many_messages_and_no_more() {
    let mut driven = Driven::up();
    for i in 0..MOST_UNDER_WAY + 5 {
        driven.call_of(if i % 2 == 0 { &ONE } else { &OTHER }, VOTE);
    }
    assert_eq!(driven.send(), MOST_UNDER_WAY);
    driven.answer();
    assert_eq!(driven.send(), 1);
}

#[test]
fn a_vote_that_had_as_much_time_as_everybody_gives_makes_a_master_silent_until_it_has_caught_up() {
    let mut driven = Driven::up();
    let number = driven.sent_vote();
    driven.wait(PATIENCE);
    assert_eq!(driven.heard(number), [Err(Failure::Unknown(Silence::TimedOut))]);
    assert_eq!(driven.link.reach(), &Reach::Silent);
    let vote = driven.call(VOTE);
    let undo = driven.call(CLEAN_UP);
    assert_eq!(driven.heard(vote), [Err(Failure::Unreachable(DOES_NOT_ANSWER.into()))]);
    assert_eq!(driven.send(), 2, "a ping and the clean-up");
    driven.answer();
    assert_eq!(driven.link.reach(), &Reach::Silent, "that was the vote");
    driven.answer();
    assert_eq!(driven.link.reach(), &Reach::Up);
    driven.answer();
    assert_eq!(driven.heard(undo), [Ok(Value::Int(7))]);
}

/// The simulator once had a link of its own, which fell silent here.
#[test]
fn a_vote_with_a_shorter_time_out_only_speaks_for_itself() {
    let mut driven = Driven::up();
    driven.call(CallKind::Vote { timeout: ms(20) });
    driven.send();
    driven.wait(ms(20));
    assert_eq!((driven.reach(), driven.send()), (Reach::Up, 1), "a ping");
    driven.wait(PATIENCE - ms(1));
    assert_eq!(driven.link.reach(), &Reach::Up);
    driven.wait(ms(1));
    assert_eq!(driven.link.reach(), &Reach::Silent);
}

/// And here.
#[test]
fn an_overdue_clean_up_is_looked_into_with_a_ping() {
    let mut driven = Driven::up();
    let number = driven.call(CLEAN_UP);
    driven.send();
    driven.wait(PATIENCE);
    assert_eq!(driven.heard(number), [Err(Failure::Unknown(Silence::TimedOut))]);
    assert_eq!((driven.reach(), driven.send()), (Reach::Up, 1), "a ping");
    driven.answer();
    driven.answer();
    assert_eq!(driven.heard(number).len(), 2);
    driven.wait(PATIENCE * 2);
    assert_eq!((driven.reach(), driven.send()), (Reach::Up, 0));
}

#[test]
fn a_process_that_stood_still_before_it_sent_its_ping_does_not_hold_that_against_the_master() {
    let mut driven = Driven::up();
    driven.call(CallKind::Vote { timeout: ms(20) });
    driven.send();
    driven.wait(ms(20));
    driven.now += PATIENCE;
    assert_eq!(driven.send(), 1, "the ping");
    driven.link.tick(driven.now);
    assert_eq!(driven.reach(), Reach::Up);
    driven.wait(PATIENCE);
    assert_eq!(driven.reach(), Reach::Silent);
}

#[test]
fn a_clean_up_is_sent_though_its_time_was_up_before_there_was_a_connection_and_a_vote_is_not() {
    let mut driven = Driven::new();
    let clean_up = driven.call(CallKind::CleanUp { timeout: ms(20) });
    let vote = driven.call(CallKind::Vote { timeout: ms(20) });
    driven.wait(ms(20));
    assert_eq!(driven.heard(clean_up), [Err(Failure::Unknown(Silence::TimedOut))]);
    assert_eq!(driven.heard(vote), [Err(Failure::Unreachable("not sent within 20ms".into()))]);
    driven.open(true);
    driven.send();
    assert_eq!(driven.sent, [vec![], vec![clean_up]], "and a ping looks whether the master answers");
    driven.answer();
    assert_eq!(driven.send(), 1, "which it does not say of what comes behind");
    driven.answer();
    assert_eq!(driven.heard(clean_up)[1], Ok(Value::Int(7)));
}

#[test]
fn what_was_sent_behind_a_ping_and_is_overdue_has_a_ping_of_its_own() {
    let mut driven = Driven::up();
    driven.call(CallKind::Vote { timeout: ms(20) });
    driven.send();
    driven.wait(ms(20));
    driven.send();
    driven.call(CallKind::CleanUp { timeout: ms(20) });
    driven.send();
    driven.wait(ms(20));
    driven.answer();
    driven.answer();
    assert_eq!(driven.send(), 1, "another ping");
    driven.wait(PATIENCE);
    assert_eq!(driven.link.reach(), &Reach::Silent);
}

#[test]
fn a_silent_connection_is_given_up_in_the_end() {
    let mut driven = Driven::up();
    let number = driven.call(CLEAN_UP);
    driven.send();
    driven.wait(PATIENCE + SILENCE_LIMIT);
    assert!(
        matches!(driven.link.reach(), Reach::Down(why) if why.text().contains("5s")),
        "{:?}",
        driven.link.reach()
    );
    let lost = Failure::Unknown(Silence::ConnectionLost("it has not answered for 5s".into()));
    assert_eq!(driven.heard(number)[1], Err(lost));
    assert!(driven.link.opens_at().is_some_and(|at| at > driven.now));
}

#[test]
fn a_connection_that_was_of_use_is_opened_again_at_once_and_others_later() {
    let mut driven = Driven::up();
    driven.broke();
    assert!(matches!(driven.link.reach(), Reach::Down(_)), "it was of no use");
    let delay = driven.link.opens_at().unwrap() - driven.now;
    assert!(delay >= RECONNECT.0 / 2 && delay <= RECONNECT.0, "{delay:?}");
    driven.open(true);
    driven.call(VOTE);
    driven.send();
    driven.answer();
    driven.broke();
    assert_eq!((driven.link.reach(), driven.link.opens_at()), (&Reach::Connecting, Some(driven.now)));
    let number = driven.call(VOTE);
    assert_eq!(driven.heard(number), [], "it waits for the connection");
}

#[test]
fn a_master_with_another_place_in_the_set_is_connected_to_at_once_if_it_is_not_yet() {
    let mut driven = Driven::up();
    driven.broke();
    driven.open(false);
    assert!(driven.link.opens_at().unwrap() > driven.now, "it refused");
    driven.link.connect_now(driven.now);
    assert_eq!(driven.link.opens_at(), Some(driven.now));
    driven.link.put_off(driven.now);
    assert_eq!(driven.link.opens_at(), Some(driven.now + OUTSIDE));
    driven.link.connect_now(driven.now);
    driven.open(true);
    driven.link.connect_now(driven.now);
    assert_eq!((driven.reach(), driven.link.opens_at()), (Reach::Up, None));
}

#[test]
fn callers_do_not_wait_for_a_connection_that_takes_long_and_an_attempt_has_a_limit() {
    let mut driven = Driven::new();
    let number = driven.call(CallKind::CleanUp { timeout: ms(9_000) });
    driven.link.opening(driven.now);
    driven.wait(PATIENCE);
    assert_eq!(driven.heard(number), [Err(Failure::Unreachable("no connection within 250ms".into()))]);
    assert!(driven.link.is_opening());
    driven.wait(OPEN_LIMIT - PATIENCE);
    assert!(!driven.link.is_opening() && driven.link.opens_at().is_some());
}

#[test]
fn callers_are_told_what_a_connection_waits_for() {
    for timeout in [PATIENCE / 2, PATIENCE * 2] {
        let mut driven = Driven::new();
        let number = driven.call(CallKind::Vote { timeout });
        driven.link.opening(driven.now);
        let why = Failure::Unreachable("another one has to answer first".into());
        driven.link.waits_for(why.clone());
        driven.wait(PATIENCE.min(timeout));
        assert_eq!(driven.heard(number), [Err(why)], "{timeout:?}");
    }
}

#[test]
fn with_a_master_that_has_another_record_the_handshake_is_made_again() {
    let mut driven = Driven::up();
    let number = driven.sent_vote();
    driven.answer_with(Ok(Value::List(vec![Value::Nil, Value::Int(3)])));
    assert_eq!(driven.heard(number), [Ok(Value::Int(3))], "it did something");
    assert!(driven.link.is_open() && driven.greet(true));
}

#[test]
fn a_script_that_is_not_known_is_sent_again_with_its_source_before_everything_else() {
    let mut driven = Driven::up();
    let first = driven.call(VOTE);
    driven.send();
    let second = driven.call(VOTE);
    driven.answer_with(Err("NOSCRIPT No matching script.".to_owned()));
    let with_source = |message: Message<'_>| matches!(message, Message::Evaluate { with_source: true, .. });
    assert_eq!(driven.link.send_next(driven.now, with_source), Some(true));
    assert_eq!(driven.link.send_next(driven.now, with_source), Some(false));
    driven.sent.extend([vec![first], vec![second]]);
    driven.answer_with(Err("NOSCRIPT not even so".to_owned()));
    driven.answer();
    assert!(matches!(&driven.heard(first)[..], [Err(Failure::Refused { .. })]));
    assert_eq!(driven.heard(second), [Ok(Value::Int(7))]);
}

fn reply(items: impl IntoIterator<Item = Value>) -> Result<Value, String> {
    Ok(Value::List([Value::Int(7)].into_iter().chain(items).collect()))
}

fn held() -> Value {
    Value::List(vec![Value::Text("held".into())])
}

#[test]
fn what_the_hot_script_leaves_is_sent_in_full_before_later_calls() {
    let mut driven = Driven::up();
    let calls: Vec<_> = ["a", "b", "c"].map(|key| driven.call_hot(key, VOTE)).into();
    driven.send();
    let later = driven.call_hot("a", VOTE);
    driven.answer_with(reply([NOT_HANDLED, Value::Int(9), NOT_HANDLED]));
    assert_eq!(driven.heard(calls[1]), [Ok(Value::Int(9))]);
    let script = |message: Message<'_>| match message {
        Message::Evaluate { script, calls, .. } => Some((script.name(), calls.len())),
        _ => None,
    };
    assert_eq!(driven.link.send_next(driven.now, script).flatten(), Some(("one", 2)));
    assert_eq!(driven.link.send_next(driven.now, script).flatten(), Some(("hot", 1)));
    driven.sent.extend([vec![calls[0], calls[2]], vec![later]]);
    driven.answer_with(reply([NOT_HANDLED, held()]));
    assert_eq!(driven.heard(calls[0]), [Ok(NOT_HANDLED)], "the full script has the last word");
    assert_eq!(driven.heard(calls[2]), [Ok(held())]);
}

#[test]
fn what_the_hot_script_leaves_goes_to_the_full_script_of_each_call() {
    let mut driven = Driven::up();
    let lock = driven.call_hot("a", VOTE);
    let fair = driven.call_hot_or(&OTHER, "b", VOTE);
    let again = driven.call_hot("a", CLEAN_UP);
    driven.send();
    driven.leave();
    assert_eq!(driven.send(), 3);
    assert_eq!(driven.sent, [[lock], [fair], [again]]);
}

#[test]
fn what_was_left_and_nobody_wants_any_more_is_not_sent_again() {
    let mut driven = Driven::up();
    let number = driven.call_hot("a", VOTE);
    driven.send();
    driven.calls[number].caller.wants.store(false, Ordering::Relaxed);
    driven.leave();
    assert_eq!(driven.send(), 0);
    assert!(matches!(&driven.heard(number)[..], [Err(Failure::Unknown(_))]), "it may be half done");
}

#[test]
fn what_was_left_and_is_refused_as_a_whole_may_be_half_done() {
    let mut driven = Driven::up();
    let number = driven.call_hot("a", VOTE);
    driven.send();
    driven.leave();
    driven.send();
    driven.answer_with(Err("BUSY a script runs".to_owned()));
    assert!(matches!(&driven.heard(number)[..], [Err(Failure::Unknown(_))]));
}

#[test]
fn a_refusal_of_what_was_sent_behind_one_that_was_left_on_the_same_key_does_not_count() {
    let mut driven = Driven::up();
    let release = driven.call_hot("a", CLEAN_UP);
    driven.send();
    let [acquire, other] = ["a", "b"].map(|key| driven.call_hot(key, VOTE));
    driven.send();
    driven.leave();
    driven.answer_with(reply([held(), held()]));
    assert_eq!(driven.heard(other), [Ok(held())]);
    assert_eq!(driven.send(), 2);
    assert_eq!(driven.sent, [[release], [acquire]]);
    driven.answer();
    driven.answer_with(reply([held()]));
    assert_eq!(driven.heard(acquire), [Ok(held())]);
}

/// One goes to the full script, and has the name second. One is to be sent again for NOSCRIPT.
#[test]
fn calls_to_any_script_that_went_before_one_that_was_left_are_sent_again_if_they_are_refused() {
    let mut driven = Driven::up();
    let release = driven.call_hot("a", CLEAN_UP);
    driven.send();
    let two_names = Words::new(4).with("b").with("bq").with("a").with("aq").with(1);
    let several = driven.call_with(&ONE, two_names, None, VOTE);
    driven.send();
    let [acquire, other] = ["a", "c"].map(|key| driven.call_hot(key, VOTE));
    driven.send();
    driven.leave();
    driven.answer_with(reply([held()]));
    driven.answer_with(Err("NOSCRIPT no such script".to_owned()));
    assert_eq!(driven.send(), 3);
    assert_eq!(driven.sent, [vec![release], vec![several], vec![acquire, other]]);
    driven.answer();
    driven.answer();
    assert_eq!(driven.heard(several), [Ok(Value::Int(7))]);
    driven.answer_with(reply([held(), held()]));
    assert_eq!(driven.heard(other), [Ok(held())]);
    assert_eq!(driven.send(), 1);
    driven.answer();
    assert_eq!(driven.heard(acquire), [Ok(Value::Int(7))]);
}

/// Neither is early for the other any more.
#[test]
fn calls_that_were_sent_again_and_are_refused_are_not_sent_a_third_time() {
    let mut driven = Driven::up();
    let release = driven.call_hot("a", CLEAN_UP);
    driven.send();
    let acquire = driven.call_hot("a", VOTE);
    driven.send();
    driven.leave();
    driven.send();
    driven.answer_with(reply([held()]));
    driven.send();
    assert_eq!(driven.sent, [[release], [acquire]]);
    driven.answer_with(reply([held()]));
    driven.answer_with(reply([held()]));
    assert_eq!(driven.send(), 0);
    for number in [release, acquire] {
        assert_eq!(driven.heard(number), [Ok(held())]);
    }
}

/// The master answered the first sending just before.
#[test]
fn a_call_that_is_sent_again_in_vain_does_not_make_a_master_silent() {
    let mut driven = Driven::up();
    let number = driven.call_hot("a", VOTE);
    driven.send();
    driven.wait(PATIENCE - ms(10));
    driven.leave();
    driven.send();
    driven.wait(ms(10));
    assert_eq!(driven.heard(number), [Err(Failure::Unknown(Silence::TimedOut))]);
    assert_eq!(driven.link.reach(), &Reach::Up);
}

#[test]
fn what_was_left_and_is_not_sent_in_time_may_be_half_done() {
    let mut driven = Driven::up();
    let calls = ["a", "b"].map(|key| driven.call_hot(key, VOTE));
    driven.send();
    driven.leave();
    driven.send();
    driven.answer_with(Err("NOPERM no right".to_owned()));
    driven.wait_until(driven.now + VOTE.timeout());
    for number in calls {
        assert!(matches!(&driven.heard(number)[..], [Err(Failure::Unknown(_))]));
    }
}

#[test]
fn what_the_hot_script_leaves_without_the_record_is_not_begun() {
    let mut driven = Driven::up();
    let number = driven.call_hot("a", VOTE);
    driven.send();
    driven.calls[number].caller.wants.store(false, Ordering::Relaxed);
    driven.answer_with(Ok(Value::List(vec![Value::Nil, NOT_HANDLED])));
    assert!(driven.greet(true));
    assert_eq!(driven.send(), 0);
    assert_eq!(driven.heard(number), [Err(Failure::not_sent())]);
}

#[test]
fn what_the_hot_script_leaves_without_the_record_waits_for_the_handshake() {
    let mut driven = Driven::up();
    let number = driven.call_hot("a", VOTE);
    driven.send();
    driven.answer_with(Ok(Value::List(vec![Value::Nil, NOT_HANDLED])));
    assert_eq!(driven.send(), 0);
    assert!(driven.greet(true));
    assert_eq!(driven.send(), 1);
    driven.answer();
    assert_eq!(driven.heard(number), [Ok(Value::Int(7))]);
}

#[test]
fn calls_that_were_refused_for_one_of_them_are_sent_alone() {
    let mut driven = Driven::up();
    let calls: Vec<_> = (0..3).map(|_| driven.call(VOTE)).collect();
    driven.send();
    let later = driven.call(VOTE);
    driven.answer_with(Err("NOPERM not these keys".to_owned()));
    assert_eq!(driven.send(), 4);
    assert_eq!(driven.sent, [[calls[0]], [calls[1]], [calls[2]], [later]]);
    driven.answer();
    driven.answer_with(Err("NOPERM not this key".to_owned()));
    assert_eq!(driven.heard(calls[0]), [Ok(Value::Int(7))]);
    assert!(matches!(&driven.heard(calls[1])[..], [Err(Failure::Refused { .. })]));
}

#[test]
fn whoever_shuts_down_is_told_and_nothing_is_opened_any_more() {
    let mut driven = Driven::up();
    let sent = driven.call(CLEAN_UP);
    driven.send();
    let waits = driven.call(CLEAN_UP);
    driven.link.close();
    driven.deliver();
    let late = driven.call(VOTE);
    assert!(matches!(&driven.heard(sent)[..], [Err(Failure::Unknown(Silence::ConnectionLost(_)))]));
    assert!(
        [waits, late]
            .iter()
            .all(|number| matches!(driven.heard(*number)[..], [Err(Failure::Unreachable(_))]))
    );
    assert!(driven.link.opens_at().is_none() && !driven.link.is_open());
}

#[test]
fn what_a_master_says_unasked_is_no_reply() {
    let mut driven = Driven::up();
    let call = driven.call(VOTE);
    driven.send();
    driven.link.pushed(&[Value::Text("message".into())]);
    driven.deliver();
    assert_eq!((driven.heard(call).len(), driven.reach()), (0, Reach::Up));
    driven.answer();
    assert_eq!(driven.heard(call), [Ok(Value::Int(7))]);
}

#[test]
fn no_reply_counts_behind_the_word_that_the_record_changed_and_no_call_is_sent_before_the_handshake() {
    let mut driven = Driven::up();
    let [before, behind] = [(); 2].map(|()| driven.sent_vote());
    driven.answer();
    driven.record_changed();
    let later = driven.call(VOTE);
    assert_eq!(driven.send(), 0);
    driven.answer();
    assert_eq!(driven.heard(before), [Ok(Value::Int(7))]);
    assert!(matches!(driven.heard(behind)[..], [Err(Failure::Unknown(Silence::ConnectionLost(_)))]));
    assert!(driven.greet(true) && !driven.greet(true), "it is due once");
    assert_eq!((driven.send(), driven.reach()), (1, Reach::Up));
    driven.answer();
    assert_eq!(driven.heard(later), [Ok(Value::Int(7))]);
}

#[test]
fn what_was_sent_before_a_client_makes_the_handshake_again_by_itself_counts_while_the_record_stays() {
    let mut driven = Driven::up();
    let [counts, behind] = [(); 2].map(|()| driven.sent_vote());
    driven.link.renew_handshake();
    driven.call(VOTE);
    assert_eq!(driven.send(), 0);
    assert!(driven.link.takes_up_handshake());
    driven.answer();
    assert_eq!(driven.heard(counts), [Ok(Value::Int(7))]);
    driven.record_changed();
    driven.answer();
    assert!(matches!(driven.heard(behind)[..], [Err(Failure::Unknown(Silence::ConnectionLost(_)))]));
    driven.link.greeted();
    assert!(driven.greet(true), "the record was changed meanwhile");
    assert_eq!(driven.send(), 1);
}

#[test]
fn what_is_refused_for_another_record_is_sent_again_after_the_handshake_and_before_later_calls() {
    let mut driven = Driven::up();
    let votes = [(); 3].map(|()| driven.call(VOTE));
    driven.send();
    let later = driven.call(CLEAN_UP);
    driven.calls[votes[1]].caller.wants.store(false, Ordering::Relaxed);
    driven.forget();
    assert_eq!(driven.send(), 0);
    assert!(driven.greet(true) && !driven.greet(true));
    assert_eq!(driven.send(), 2);
    assert_eq!(driven.sent, [vec![votes[0], votes[2]], vec![later]]);
    driven.answer();
    assert_eq!(driven.heard(votes[0]), [Ok(Value::Int(7))]);
    assert_eq!(driven.heard(votes[1]), [Err(Failure::not_sent())], "nobody wants it");
}

#[test]
fn a_record_that_changes_during_the_handshake_has_it_made_once_more() {
    let mut driven = Driven::up();
    driven.record_changed();
    assert!(driven.link.takes_up_handshake());
    driven.record_changed();
    driven.call(VOTE);
    driven.link.greeted();
    assert_eq!(driven.send(), 0);
    assert!(driven.greet(true));
    assert_eq!(driven.send(), 1);
}

#[test]
fn calls_that_are_refused_while_the_handshake_is_under_way_ask_for_no_other_one() {
    let mut driven = Driven::up();
    driven.call(VOTE);
    driven.send();
    driven.record_changed();
    assert!(driven.link.takes_up_handshake());
    driven.forget();
    driven.link.greeted();
    assert!(!driven.greet(true));
    assert_eq!(driven.send(), 1);
}

#[test]
fn where_the_handshake_comes_to_nothing_the_connection_is_given_up() {
    let mut driven = Driven::up();
    let sent = driven.call(VOTE);
    driven.send();
    driven.record_changed();
    let waits = driven.call(VOTE);
    assert!(driven.greet(false));
    assert!(matches!(driven.heard(sent)[..], [Err(Failure::Unknown(Silence::ConnectionLost(_)))]));
    assert!(matches!(driven.heard(waits)[..], [Err(Failure::Unreachable(_))]));
    assert!(!driven.link.is_open() && driven.link.opens_at().is_some());
}

#[test]
fn a_question_for_a_connection_that_is_gone_is_not_sent_on_the_next() {
    let mut driven = Driven::up();
    driven.broke();
    let (reply, mut replied) = oneshot::channel();
    driven.link.ask(Question { words: vec!["EVAL".into()], reply });
    assert_eq!(replied.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    driven.open(true);
    assert!(driven.link.send_next(driven.now, |_| ()).is_none());
}

/// A master that may drop keys by now gives no vote, once it was looked at.
#[test]
fn a_memory_policy_is_examined_every_five_seconds() {
    let mut driven = Driven::up();
    driven.call(VOTE);
    assert_eq!(driven.send(), 1, "it was looked at just before");
    driven.answer();
    let info = |limit: u64, policy| {
        Ok(Value::Text(format!("maxmemory:{limit}\r\nmaxmemory_policy:{policy}").into()))
    };
    for (said, counts) in [
        (info(1, "noeviction"), true),
        (info(0, "allkeys-lru"), true),
        (Err("NOPERM".to_owned()), true),
        (info(1, "allkeys-lru"), false),
    ] {
        driven.now += Duration::from_secs(5); // SAFETY.md promises that
        let call = driven.call(VOTE);
        assert_eq!(driven.send(), 2);
        driven.answer_with(said);
        if counts {
            driven.answer();
            assert_eq!(driven.heard(call), [Ok(Value::Int(7))]);
        } else {
            let heard = driven.heard(call);
            assert!(matches!(&heard[..], [Err(Failure::Unknown(Silence::ConnectionLost(_)))]), "{heard:?}");
        }
    }
}
