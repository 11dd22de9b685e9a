//! The handshake: the last step of a connection before it carries calls. It finds out whether the
//! master may vote.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::handle::Event;
use super::knowledge::{TimePrecision, Trust};
use super::peer::Reading;
use super::record::MasterRecord;
use super::rules::Verdict;
use super::standing::Standing;
use super::write::{FreshIds, RecordWrite};
use crate::time::Moment;
use crate::vote::Refusal;
use crate::wire::{Failure, MasterIndex, Script, TrustedTime, Value, Words};

/// The client writes nothing by an answer that is older than this: the master can have changed.
const OLDEST_ANSWER: Duration = Duration::from_secs(1);

/// The script that reads a master's record, before a connection carries calls.
pub static HELLO: Script = Script::of("hello", &[&[("hello", include_str!("../../scripts/lua/hello.lua"))]]);

/// The script that writes a master's record, after [`HELLO`].
pub static RECORD: Script =
    Script::of("record", &[&[("record", include_str!("../../scripts/lua/record.lua"))]]);

/// The handshake of one client with one master. Each new connection sends the request of
/// [`hello`](Handshake::hello), and then the request of each [`outcome`](Handshake::outcome),
/// before any call. It makes the handshake again when the record may have changed, or the view has.
#[derive(Clone)]
pub struct Handshake {
    trust: Arc<Trust>,
    index: MasterIndex,
}

/// What every call on one connection begins with: see `scripts/lua/call.lua`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader(Arc<Words>);

/// A request of a handshake, and when it was made. A call has this script only, and one reply.
#[derive(Debug)]
pub struct Hello {
    /// The script.
    pub script: &'static Script,
    /// Its arguments; it has no keys.
    pub words: Words,
    asked: Moment,
    /// Whether the time in it is that of most masters, known exactly, and not this host's.
    has_masters_time: bool,
    is_new: bool,
}

/// What came of a [`Hello`].
#[derive(Debug)]
pub enum HelloOutcome {
    /// The connection may be used, with this at the head of every call.
    Known(SessionHeader),
    /// Ask this next.
    Ask(Hello),
    /// This client needs the exact time of most masters, and does not know it yet. Either this
    /// host's clock differs from the master's, or the client has to write the master's record.
    /// Shake hands again after [`Handshake::until_time_is_known`]; meanwhile calls fail with this.
    Again(Failure),
    /// This client has not heard of enough masters yet to know what this one is. Shake hands again
    /// after [`Handshake::until_more_is_heard`] with this number; if that takes long, the
    /// connection may not be used, and calls fail with this.
    Hear(u64, Failure),
    /// The connection may not be used. Calls fail with this.
    Refused(Failure),
}

impl Default for SessionHeader {
    /// The header without a handshake: with it no master votes.
    fn default() -> Self {
        Self(Arc::new((0..4).fold(Words::new(0), |words, _| words.with(""))))
    }
}

impl SessionHeader {
    /// The arguments that stand before those of the operations.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.args()
    }

    /// The same arguments in RESP, as they are sent.
    pub(crate) fn packed_args(&self) -> &str {
        self.0.packed_args()
    }
}

impl Handshake {
    /// The handshake with the master at `index`.
    pub(crate) fn new(trust: Arc<Trust>, index: MasterIndex) -> Self {
        Self { trust, index }
    }

    /// The key of the master's record, whose changes end a connection.
    pub fn key(&self) -> &str {
        &self.trust.terms.record
    }

    /// The request to send now. The master is new if it never restarted, nor lost a key: only one
    /// that lives in this process can be known so well.
    pub fn hello(&self, is_new: bool) -> Hello {
        let words = Words::new(0).with(self.key()).with(self.trust.time()).with(&self.trust.terms.decree);
        self.ask(&HELLO, words, is_new || self.trust.terms.all_new)
    }

    fn ask(&self, script: &'static Script, words: Words, is_new: bool) -> Hello {
        let has_masters_time = self.trust.time_precision() == TimePrecision::Exact;
        Hello { script, words, asked: self.trust.clock.now(), has_masters_time, is_new }
    }

    fn write(&self, write: &RecordWrite, trusted: TrustedTime, is_new: bool) -> Hello {
        self.ask(&RECORD, write.words(&self.trust.terms, trusted), is_new)
    }

    /// Reads the master's answer, and notes whether the master may vote.
    pub fn outcome(&self, hello: &Hello, answer: Result<Value, Failure>) -> HelloOutcome {
        let (time, answer) = match answer.map(|value| read(&value)) {
            Ok(Some(read)) => read,
            Ok(None) => {
                let why = "it answered the handshake in an unknown form";
                return self.refused(Failure::refused(Refusal::Other, why));
            }
            Err(Failure::Refused { reason, detail }) => {
                return self.refused(Failure::refused(reason, format!("the handshake failed: {detail}")));
            }
            Err(unreachable @ Failure::Unreachable(_)) => return HelloOutcome::Refused(unreachable),
            Err(Failure::Unknown(_)) => {
                return HelloOutcome::Refused(Failure::Unreachable("it did not answer the handshake".into()));
            }
        };
        self.note_time(hello, time);
        match answer {
            Answer::Master(reading) => self.next(hello, *reading),
            Answer::OtherRecord => {
                let why = "its record is none that this version knows: use the version that wrote it";
                self.refused(Failure::refused(Refusal::OtherTerms, why))
            }
            Answer::Written => HelloOutcome::Ask(self.hello(hello.is_new)),
            Answer::Refused(error) => match error.strip_prefix("CLOCK ") {
                Some(why) if !hello.has_masters_time => {
                    let why = why.strip_suffix("the others").unwrap_or(why);
                    let which = "this host's, and too few masters answer to tell which is right";
                    HelloOutcome::Again(Failure::refused(Refusal::Clock, format!("{why}{which}")))
                }
                Some(why) => self.refused(Failure::refused(Refusal::Clock, why)),
                None => {
                    let why = error.split_once(' ').map_or(&*error, |(_, why)| why);
                    self.refused(Failure::refused(Refusal::of_reply(&error), why))
                }
            },
        }
    }

    /// What to do about a master that showed this.
    fn next(&self, hello: &Hello, mut reading: Reading) -> HelloOutcome {
        let trust = &self.trust;
        let time = reading.time;
        let trusted = trust.known_time();
        if let Some(trusted) = trusted {
            reading.time = time.min(trusted.low);
            reading.latest = time.max(trusted.low);
        }
        let now = reading.time;
        let record = reading.record.clone();
        let ids = FreshIds::draw(|| trust.random.fresh_u64());
        let mut set = trust.set();
        let event = Event::Hello { master: self.index, reading, is_new: hello.is_new, ids };
        let verdict = set.handle(now, event).verdict.expect("every hello has a verdict");
        trust.note_other_list(&set);
        let news = set.news();
        let view = record.as_ref().map(|record| set.view_of(record));
        drop(set);
        trust.follow();
        trust.record_seen.notify_waiters();
        trust.evidence_wanted.notify_one();
        match (verdict, record) {
            (Verdict::Vote, Some(record)) => {
                HelloOutcome::Known(self.session(&record, view.unwrap_or_default(), time))
            }
            (Verdict::Vote, None) => unreachable!("only a record has a vote"),
            // The answer may have waited: this process may have stood still.
            (Verdict::Write(_), _) if trust.clock.now().since(hello.asked) > OLDEST_ANSWER => {
                HelloOutcome::Ask(self.hello(hello.is_new))
            }
            (Verdict::Write(_), _) if !hello.is_new && trust.time_precision() != TimePrecision::Exact => {
                let why = "its record has to be written, and too few masters answer to tell the time by which \
                           its quarantine would end";
                HelloOutcome::Again(Failure::refused(Refusal::Quarantined, why))
            }
            (Verdict::Write(write), _) => {
                // Only a master in this process may be written before the time is known.
                HelloOutcome::Ask(self.write(&write, trusted.unwrap_or(TrustedTime::UNKNOWN), hello.is_new))
            }
            (Verdict::AwaitPeers(why), _) => {
                let why = Failure::refused(Refusal::Other, why);
                self.note_refusal(&why);
                HelloOutcome::Hear(news, why)
            }
            (Verdict::Wait(why), _) => self.refused(Failure::refused(Refusal::Other, why)),
            (Verdict::Refuse(reason, why), _) => self.refused(Failure::refused(reason, why)),
        }
    }

    /// A connection begins to a master that has this record, and showed this time (us).
    fn session(&self, record: &MasterRecord, view: u64, time: u64) -> SessionHeader {
        let trust = &self.trust;
        let left = Duration::from_micros(record.quarantine.saturating_sub(time));
        let until = trust.clock.now() + left;
        trust.standings()[self.index] =
            if left.is_zero() { Standing::Trusted } else { Standing::Quarantined { until, left } };
        trust.note_denial(self.index, None);
        trust.begin_session(self.index, view);
        let terms = &trust.terms;
        let words = Words::new(0).with(&terms.record).with(&record.stamp).with(record.quarantine);
        let words = words.with(terms.kept_free().as_millis());
        SessionHeader(Arc::new(words))
    }

    fn refused(&self, failure: Failure) -> HelloOutcome {
        self.note_refusal(&failure);
        HelloOutcome::Refused(failure)
    }

    fn note_refusal(&self, failure: &Failure) {
        self.trust.end_session(self.index);
        self.trust.standings()[self.index] = Standing::Refused(failure.text().into());
    }

    /// Whether the view has changed since the last handshake, or the master has left the set. Then
    /// the connection makes the handshake again, before it sends anything else.
    pub fn is_outdated(&self) -> bool {
        !self.trust.votes_under(self.index, self.trust.view())
    }

    /// Whether the master has left the set, so that no connection to it is of use.
    pub fn has_left(&self) -> bool {
        self.trust.set().has_left(self.index)
    }

    /// Whether the master is not a member of the set: nobody has to wait for it.
    pub fn is_no_member(&self) -> bool {
        self.trust.set().is_no_member(self.index)
    }

    /// The connection could not be opened.
    pub fn not_opened(&self, why: &Failure) {
        use Refusal::{NoSet, OtherMembers, OtherTerms};
        let is_about_set = matches!(why, Failure::Refused { reason: OtherMembers | OtherTerms | NoSet, .. });
        if !is_about_set {
            let mut set = self.trust.set();
            set.handle(0, Event::Unreachable { master: self.index });
            self.trust.note_other_list(&set);
        }
        let is_permanent = matches!(why, Failure::Refused { reason, .. } if reason.is_permanent());
        let denial = (is_permanent && !is_about_set).then(|| why.text());
        self.trust.note_denial(self.index, denial);
        if denial.is_some() {
            self.trust.record_seen.notify_waiters();
        }
    }

    /// Resolves when this client knows more of the masters' records than after so many news.
    pub async fn until_more_is_heard(&self, news: u64) {
        loop {
            let heard = self.trust.record_seen.notified();
            if self.trust.set().news() > news {
                return;
            }
            heard.await;
        }
    }

    /// Resolves when this client knows exactly what time most masters show, so that another hello
    /// may succeed.
    pub async fn until_time_is_known(&self) {
        self.trust.until_time_is(|precision| precision == TimePrecision::Exact).await;
    }

    fn note_time(&self, hello: &Hello, time: u64) {
        // A master with a wrong clock has no vote, but may be connected.
        let _ = self.trust.hear_time(self.index, hello.asked, self.trust.clock.now(), time);
        self.trust.time_seen.notify_waiters();
    }
}

pub(super) enum Answer {
    Master(Box<Reading>),
    /// What is at the record's key makes no sense, or is that of a later version.
    OtherRecord,
    Written,
    Refused(Arc<str>),
}

/// The master's time (us), and its answer; `None` if that has an unknown form.
pub(super) fn read(reply: &Value) -> Option<(u64, Answer)> {
    let items = reply.list()?;
    let text = |i: usize| items.get(i).and_then(Value::text).cloned();
    let number = |i: usize| items.get(i).and_then(Value::int)?.try_into().ok();
    match &*text(0)? {
        "master" => {
            let fields = items.get(5..)?;
            let time = number(1)?;
            let record = MasterRecord::read(fields);
            if record.is_none() && !fields.is_empty() {
                return Some((time, Answer::OtherRecord));
            }
            let reading = Reading {
                time,
                latest: u64::MAX,
                run_id: text(2)?,
                replid2: text(3)?,
                acceptor: text(4)?,
                record,
            };
            Some((time, Answer::Master(Box::new(reading))))
        }
        "written" | "changed" => Some((number(1)?, Answer::Written)),
        "refused" => Some((number(2)?, Answer::Refused(text(1)?))),
        _ => None,
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").field("index", &self.index).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{MemberState, Members, SetTerms};
    use super::*;
    use crate::random::SystemRandom;
    use crate::set::{Beginning, Terms};
    use crate::time::{BootClock, Clock};

    /// The machine's, and later.
    #[derive(Debug, Default)]
    struct Ahead(std::sync::Mutex<Duration>);

    impl Clock for Ahead {
        fn now(&self) -> Moment {
            BootClock.now() + *self.0.lock().unwrap()
        }

        fn wall(&self) -> Duration {
            BootClock.wall() + *self.0.lock().unwrap()
        }
    }

    fn terms() -> Terms {
        Terms { record: "r".into(), decree: "d".into(), max_ttl: Duration::from_secs(1), all_new: false }
    }

    /// A handshake of a client that begins a set. The master's answer, that it has no record, takes
    /// this long.
    fn begins_after(waited: Duration) -> (Terms, Hello) {
        let terms = terms();
        let clock = Arc::new(Ahead::default());
        let trust = Trust::new(vec!["m".into()], terms.clone(), clock.clone(), Arc::new(SystemRandom));
        trust.set().begin(Some(Beginning { id: "id".into(), never_used: None }));
        let handshake = Handshake::new(trust, 0.into());
        let hello = handshake.hello(false);
        let text = |text: &str| Value::Text(text.into());
        let time = Value::Int(clock.wall().as_micros() as i64);
        let answer = Value::List(vec![text("master"), time, text("run"), text("0000"), text("")]);
        *clock.0.lock().unwrap() += waited;
        let HelloOutcome::Ask(next) = handshake.outcome(&hello, Ok(answer)) else { panic!("{waited:?}") };
        (terms, next)
    }

    /// What a master of the set answers that has this second replication id.
    fn answer(record: &MasterRecord, replid2: &str) -> Value {
        let text = |text: &str| Value::Text(text.into());
        let time = Value::Int(BootClock.wall().as_micros() as i64);
        let head = [text("master"), time, text(&record.run_id), text(replid2), text(&record.incarnation)];
        let more = [("run_id", &*record.run_id), ("replid2", &*record.replid2), ("quarantine", "0")]
            .map(|(field, value)| (field, value.to_owned()));
        let fields = record.fields().chain(more).flat_map(|(field, value)| [text(field), text(&value)]);
        Value::List(head.into_iter().chain(fields).collect())
    }

    /// The record of the first master has to be written: its second replication id is zeros again.
    #[test]
    fn nothing_is_written_before_a_majority_told_the_time() {
        let names: Vec<Arc<str>> = ["a", "b", "c"].map(Into::into).to_vec();
        let terms = terms();
        let trust = Trust::new(names.clone(), terms.clone(), Arc::new(BootClock), Arc::new(SystemRandom));
        let record = |member| MasterRecord {
            set: "s".into(),
            member,
            members: Members::first(&names),
            incarnation: "i".into(),
            run_id: "run".into(),
            replid2: "12".into(),
            stamp: "stamp".into(),
            quarantine: 0,
            generation: 0,
            terms: SetTerms::of(&terms),
            earlier: vec![],
            state: MemberState::Member,
        };
        let outcome = |index: usize, replid2: &str| {
            let handshake = Handshake::new(trust.clone(), index.into());
            handshake.outcome(&handshake.hello(false), Ok(answer(&record(index as u32 + 1), replid2)))
        };
        let HelloOutcome::Again(why) = outcome(0, "00") else { panic!("it goes by one master") };
        assert!(why.text().contains("too few masters answer"), "{}", why.text());
        assert!(matches!(outcome(1, "12"), HelloOutcome::Known(_)));
        let HelloOutcome::Ask(next) = outcome(0, "00") else { panic!("two of three told the time") };
        assert!(std::ptr::eq(next.script, &RECORD));
    }

    #[test]
    fn nothing_is_written_by_an_answer_that_waited() {
        assert!(std::ptr::eq(begins_after(Duration::ZERO).1.script, &RECORD));
        assert!(std::ptr::eq(begins_after(OLDEST_ANSWER + Duration::from_millis(1)).1.script, &HELLO));
    }

    /// It may be as much later there as this client does not know of the time.
    #[test]
    fn a_quarantine_is_longer_by_what_is_not_known_of_the_time() {
        let waited = OLDEST_ANSWER / 2;
        let (terms, written) = begins_after(waited);
        let pause = written.words.args().nth(5).unwrap().parse().map(Duration::from_micros).unwrap();
        let longer = pause - terms.quarantine();
        assert!(longer >= waited && longer < waited + Duration::from_secs(1), "{longer:?}");
    }
}
