//! What a client may expect of a master, whatever its kind: each of these is run on every kind.

use std::sync::{Arc, Mutex};

use quorate::seam::{
    Call, CallKind, Failure, MasterIndex, ReplySink, Script, SubscriptionEvent, Value, Words,
};
use quorate::{Refusal, Silence};

use crate::masters_kinds::{Embedded, Freezes, Kind, Real, Simulated};
use crate::{PATIENT, until};

/// Adds to a number, an operation a key. As in all scripts, three arguments and one reply stand
/// before those of operations.
static ADD: Script = Script::new(
    "add",
    "local replies = {1000} \
     for i, key in ipairs(KEYS) do replies[i + 1] = redis.call('HINCRBY', key, 'n', ARGV[i + 4]) end \
     return replies",
);

/// Replies with what the argument names, an operation an argument.
static SHAPE: Script = Script::new(
    "shape",
    "local shapes = {none = false, number = -7.9, text = 'x', list = {1, {'y', true}, nil, 2}} \
     local replies = {false} \
     for i = 5, #ARGV do replies[i - 3] = shapes[ARGV[i]] end \
     return replies",
);

/// Replies with no list.
static STRANGE: Script = Script::new("strange", "return 5");

/// Fails in Lua itself.
static BROKEN: Script = Script::new("broken", "local none = nil\nreturn none.field");

/// Hears answers, with the masters that they are of.
struct Answers {
    heard: Mutex<Vec<(MasterIndex, Result<Value, Failure>)>>,
    wants: bool,
}

impl ReplySink for Answers {
    fn is_wanted(&self, _index: MasterIndex) -> bool {
        self.wants
    }

    fn receive(&self, index: MasterIndex, answer: Result<Value, Failure>, _time: Option<u64>) {
        self.heard.lock().unwrap().push((index, answer));
    }
}

impl Answers {
    fn new(wants: bool) -> Arc<Self> {
        Arc::new(Self { heard: Mutex::default(), wants })
    }

    fn ask(self: &Arc<Self>, kind: &impl Kind, place: usize, script: &'static Script, words: Words) {
        self.ask_on(CallKind::Vote { timeout: PATIENT }, kind, place, script, words);
    }

    fn ask_on(
        self: &Arc<Self>,
        terms: CallKind,
        kind: &impl Kind,
        place: usize,
        script: &'static Script,
        words: Words,
    ) {
        let call = Call::new(script, words, terms, self.clone());
        kind.master().call(Arc::new(call), place.into());
    }

    async fn all(&self, count: usize) -> Vec<(MasterIndex, Result<Value, Failure>)> {
        until("the answers", async || self.heard.lock().unwrap().len() >= count).await;
        self.heard.lock().unwrap().clone()
    }
}

/// The answer to one operation.
async fn answer(kind: &impl Kind, script: &'static Script, words: Words) -> Result<Value, Failure> {
    let answers = Answers::new(true);
    answers.ask(kind, 0, script, words);
    answers.all(1).await.remove(0).1
}

fn add(key: &str) -> Words {
    Words::new(1).with(key).with(1)
}

fn refused(answer: Result<Value, Failure>) -> (Refusal, Arc<str>) {
    match answer {
        Err(Failure::Refused { reason, detail }) => (reason, detail),
        other => panic!("{other:?}"),
    }
}

async fn calls_run_in_their_order_and_each_has_its_own_reply<K: Kind>() {
    let kind = K::start();
    let answers = Answers::new(true);
    (0..300).for_each(|call| answers.ask(&kind, call % 50, &ADD, add("n")));
    let expected: Vec<_> =
        (0..300).map(|call| ((call % 50).into(), Ok(Value::Int(call as i64 + 1)))).collect();
    assert_eq!(answers.all(300).await, expected);
}

async fn replies_have_the_forms_that_lua_gives_them<K: Kind>() {
    let kind = K::start();
    let text = |text: &str| Value::Text(text.into());
    let list = Value::List(vec![Value::Int(1), Value::List(vec![text("y"), Value::Int(1)])]);
    for (name, value) in
        [("none", Value::Nil), ("number", Value::Int(-7)), ("text", text("x")), ("list", list)]
    {
        assert_eq!(answer(&kind, &SHAPE, Words::new(0).with(name)).await, Ok(value), "{name}");
    }
    assert_eq!(answer(&kind, &STRANGE, Words::new(0)).await, Ok(Value::Int(5)));
}

async fn an_error_of_a_call_is_a_refusal_in_the_masters_words<K: Kind>() {
    let kind = K::start();
    kind.server().set("text");
    let (reason, detail) = refused(answer(&kind, &ADD, add("text")).await);
    assert_eq!(reason, Refusal::WrongType);
    assert!(detail.starts_with("WRONGTYPE Operation against a key"), "{detail}");
    let (reason, detail) = refused(answer(&kind, &BROKEN, Words::new(0)).await);
    assert_eq!(reason, Refusal::Other);
    // Some servers name the script behind it.
    let expected = "ERR user_script:2: attempt to index local 'none' (a nil value) script: ";
    assert!(detail.starts_with(expected) && detail.ends_with("on @user_script:2."), "{detail}");
}

async fn a_call_that_nobody_wants_is_not_sent<K: Kind>() {
    let kind = K::start();
    let unwanted = Answers::new(false);
    unwanted.ask(&kind, 3, &ADD, add("unwanted"));
    assert_eq!(answer(&kind, &ADD, add("wanted")).await, Ok(Value::Int(1)));
    let heard = unwanted.all(1).await.remove(0);
    assert_eq!(heard, (3.into(), Err(Failure::not_sent())));
    assert_eq!(kind.server().keys(), ["wanted"]);
}

async fn a_clean_up_is_carried_out_behind_what_it_undoes<K: Kind>() {
    let kind = K::start();
    let answers = Answers::new(true);
    answers.ask(&kind, 0, &ADD, add("n"));
    let terms = CallKind::CleanUp { timeout: PATIENT };
    answers.ask_on(terms, &kind, 1, &ADD, Words::new(1).with("n").with(-1));
    assert_eq!(answers.all(2).await, [(0.into(), Ok(Value::Int(1))), (1.into(), Ok(Value::Int(0)))]);
}

async fn a_silent_master_is_known_and_does_what_it_was_sent_when_it_goes_on<K: Freezes>() {
    let kind = K::start();
    let timed_out = || Err(Failure::Unknown(Silence::TimedOut));
    assert_eq!(answer(&kind, &ADD, add("n")).await, Ok(Value::Int(1)));
    kind.freeze();
    assert_eq!(answer(&kind, &ADD, add("n")).await, timed_out());
    let begun = std::time::Instant::now();
    let next = answer(&kind, &ADD, add("unsent")).await;
    assert!(matches!(next, Err(Failure::Unreachable(_))) && begun.elapsed() < PATIENT / 2, "{next:?}");
    let answers = Answers::new(true);
    let terms = CallKind::CleanUp { timeout: PATIENT / 10 };
    answers.ask_on(terms, &kind, 7, &ADD, Words::new(1).with("n").with(-2));
    assert_eq!(answers.all(1).await, [(7.into(), timed_out())]);
    kind.thaw();
    assert_eq!(answers.all(2).await[1], (7.into(), Ok(Value::Int(0))), "behind what timed out");
    kind.master().ready().await;
    assert_eq!(answer(&kind, &ADD, add("n")).await, Ok(Value::Int(1)));
    assert_eq!(kind.server().keys(), ["n"]);
}

async fn a_master_that_is_cut_off_says_so_and_is_ready_when_it_is_back<K: Kind>() {
    let mut kind = K::start();
    kind.master().ready().await;
    assert_eq!(answer(&kind, &ADD, add("n")).await, Ok(Value::Int(1)));
    kind.cut_off();
    until("it to be out of reach", async || {
        let answer = answer(&kind, &ADD, add("late")).await;
        assert!(answer.is_err(), "{answer:?}");
        matches!(answer, Err(Failure::Unreachable(_)))
    })
    .await;
    let mut ready = kind.master().ready();
    assert!(futures::poll!(&mut ready).is_pending());
    kind.mend();
    ready.await;
    assert_eq!(answer(&kind, &ADD, add("late")).await, Ok(Value::Int(1)), "what failed was not done");
}

async fn who_listens_hears_what_is_published_while_it_does<K: Kind>() {
    let mut kind = K::start();
    let heard: Arc<Mutex<Vec<SubscriptionEvent>>> = Arc::default();
    let (ear, channel) = (heard.clone(), "news");
    let listening =
        kind.master().listen(channel.into(), Arc::new(move |what| ear.lock().unwrap().push(what)));
    let listening = tokio::spawn(listening);
    let hears = async |count: usize| {
        until("it to be heard", async || heard.lock().unwrap().len() >= count).await;
        std::mem::take(&mut *heard.lock().unwrap())
    };
    assert_eq!(hears(1).await, [SubscriptionEvent::Subscribed]);
    assert_eq!(
        [
            kind.server().publish("other", "x"),
            kind.server().publish(channel, "1"),
            kind.server().publish(channel, "2")
        ],
        [0, 1, 1]
    );
    assert_eq!(
        hears(2).await,
        [SubscriptionEvent::Message("1".into()), SubscriptionEvent::Message("2".into())]
    );
    kind.cut_off();
    assert!(
        hears(1).await.iter().all(|what| *what == SubscriptionEvent::Disconnected),
        "once for each attempt"
    );
    kind.mend();
    until("it to listen again", async || heard.lock().unwrap().contains(&SubscriptionEvent::Subscribed))
        .await;
    assert_eq!(kind.server().publish(channel, "3"), 1);
    until("the third message", async || {
        heard.lock().unwrap().contains(&SubscriptionEvent::Message("3".into()))
    })
    .await;
    listening.abort();
    until("nobody to listen", async || kind.server().publish(channel, "4") == 0).await;
    heard.lock().unwrap().clear();
    assert_eq!(kind.server().publish(channel, "5"), 0);
    assert_eq!(*heard.lock().unwrap(), []);
}

macro_rules! on_every_kind {
    ($($property:ident),* $(,)?) => {
        mod real {
            #[tokio::test]
            async fn a_silent_master_is_known_and_does_what_it_was_sent_when_it_goes_on() {
                super::a_silent_master_is_known_and_does_what_it_was_sent_when_it_goes_on::<super::Real>().await;
            }
            $(#[tokio::test] async fn $property() { super::$property::<super::Real>().await; })*
        }
        mod embedded {
            $(#[tokio::test] async fn $property() { super::$property::<super::Embedded>().await; })*
        }
        mod simulated {
            #[tokio::test]
            async fn a_silent_master_is_known_and_does_what_it_was_sent_when_it_goes_on() {
                super::a_silent_master_is_known_and_does_what_it_was_sent_when_it_goes_on::<super::Simulated>().await;
            }
            $(#[tokio::test] async fn $property() { super::$property::<super::Simulated>().await; })*
        }
    };
}

on_every_kind!(
    calls_run_in_their_order_and_each_has_its_own_reply,
    replies_have_the_forms_that_lua_gives_them,
    an_error_of_a_call_is_a_refusal_in_the_masters_words,
    a_call_that_nobody_wants_is_not_sent,
    a_clean_up_is_carried_out_behind_what_it_undoes,
    a_master_that_is_cut_off_says_so_and_is_ready_when_it_is_back,
    who_listens_hears_what_is_published_while_it_does,
);
