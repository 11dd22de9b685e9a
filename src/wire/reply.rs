//! Reads the reply of a script: one master's vote on one operation.

use std::sync::Arc;
use std::time::Duration;

use super::answer::{Failure, Value};
use crate::vote::{Outcome, Permits, Refusal};

/// A master's reply to one operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) outcome: Outcome,
    /// Of a grant its token, of a lock that is held that of its entry, of a
    /// [stale](Refusal::Stale) operation the later round or the higher token; otherwise 0.
    pub(crate) token: u64,
    /// What an inspection found.
    pub(crate) seen: Option<Arc<Seen>>,
    /// Whether the master granted, which does not count because its clock is off.
    pub(crate) is_discounted: bool,
}

/// What a master knows of a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Its kind, as masters call it; empty if the master knows nothing of the name.
    pub(crate) kind: Arc<str>,
    /// How many wait in the queue.
    pub(crate) waiting: u64,
    pub(crate) entries: Vec<Entry>,
}

/// One holder of the lock, or of a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Which part: `x`, `r:OWNER` or `p:NUMBER`; empty in a layout of another library.
    pub(crate) field: Arc<str>,
    pub(crate) owner: Arc<str>,
    pub(crate) holds: u64,
    /// `None` when it never ends.
    pub(crate) left: Option<Duration>,
    pub(crate) token: u64,
    /// The label of its holder, if it has one.
    pub(crate) label: Option<Arc<str>>,
    /// The round that wrote it.
    pub(crate) round: u64,
}

impl From<Outcome> for Decoded {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, token: 0, seen: None, is_discounted: false }
    }
}

/// Reads the answer to one operation.
pub(crate) fn decode(answer: Result<Value, Failure>) -> Decoded {
    match answer {
        Ok(Value::Int(GRANTED)) => Outcome::Granted.into(),
        Ok(Value::Int(ABSENT)) => Outcome::Absent.into(),
        Ok(Value::Int(token @ 2..)) => Decoded { token: token.unsigned_abs(), ..Outcome::Granted.into() },
        Ok(value) => value.list().and_then(read).unwrap_or_else(|| {
            refused(Refusal::Other, format!("a reply of an unknown form: {value:?}")).into()
        }),
        Err(Failure::Refused { reason, detail }) => Outcome::Refused { reason, detail }.into(),
        Err(Failure::Unreachable(why)) => Outcome::Unreachable(why).into(),
        Err(Failure::Unknown(silence)) => Outcome::Unknown(silence).into(),
    }
}

/// The outcome of one operation.
pub(crate) fn outcome(answer: Result<Value, Failure>) -> Outcome {
    decode(answer).outcome
}

/// The replies that are numbers; a higher one is a token.
const GRANTED: i64 = 1;
const ABSENT: i64 = 0;

fn read(reply: &[Value]) -> Option<Decoded> {
    let text = |i: usize| reply.get(i).and_then(Value::text);
    match &**text(0)? {
        "held" => held(reply),
        "seen" => seen(reply),
        "stale" => {
            let later = number(reply, 1)?;
            let outcome = refused(Refusal::Stale, format!("{later} was here first"));
            Some(Decoded { token: later, ..outcome.into() })
        }
        "refused" => {
            let text = text(1)?;
            let no_vote = match text.strip_prefix("NOTIME ") {
                Some(why) => Outcome::Answered(why.into()),
                None => Outcome::Refused { reason: Refusal::of_reply(text), detail: text.clone() },
            };
            Some(no_vote.into())
        }
        _ => None,
    }
}

/// `held` OWNER HOLDS LEFT TOKEN LABEL AHEAD FREE NEXT; the last ones may be missing.
fn held(reply: &[Value]) -> Option<Decoded> {
    let outcome = Outcome::Held {
        owner: text(reply, 1)?,
        label: label(reply, 5),
        held_for: None,
        count: number(reply, 2)?,
        remaining: reply.get(3).and_then(Value::int).map(left)?,
        ahead: number(reply, 6).and_then(|ahead| ahead.try_into().ok()),
        permits: permits(reply),
    };
    Some(Decoded { token: number(reply, 4)?, ..outcome.into() })
}

/// Which other permits of a semaphore are free on this master, and when the first of the rest ends.
fn permits(reply: &[Value]) -> Option<Arc<Permits>> {
    let number_of = |item: &Value| item.int()?.try_into().ok();
    let free: Option<Box<[u32]>> = reply.get(7)?.list()?.iter().map(number_of).collect();
    Some(Arc::new(Permits::new(free?, number(reply, 8).map(Duration::from_millis))))
}

/// `seen` KIND WAITING, and for each entry a list.
fn seen(reply: &[Value]) -> Option<Decoded> {
    let entries: Option<Vec<Entry>> = reply.get(3..)?.iter().map(|item| entry(item.list()?)).collect();
    let seen = Seen { kind: text(reply, 1)?, waiting: number(reply, 2)?, entries: entries? };
    let outcome = seen.entries.first().map_or(Outcome::Absent, Entry::outcome);
    Some(Decoded { seen: Some(Arc::new(seen)), ..outcome.into() })
}

/// One step through the keys of a master.
#[derive(Debug)]
pub(crate) struct ListStep {
    /// Where to go on; `None` where that was all.
    pub(crate) next: Option<u64>,
    /// The keys of names that may be in use.
    pub(crate) keys: Vec<Arc<str>>,
}

/// Reads the answer to one step: NEXT, and keys. Keys that are no text are none of Quorate's.
pub(crate) fn step(answer: Result<Value, Failure>) -> Result<ListStep, Outcome> {
    match answer {
        Ok(Value::List(items)) if number(&items, 0).is_some() => Ok(ListStep {
            next: number(&items, 0).filter(|next| *next > 0),
            keys: items[1..].iter().filter_map(Value::text).cloned().collect(),
        }),
        other => Err(outcome(other)),
    }
}

/// FIELD OWNER HOLDS LEFT TOKEN LABEL ROUND.
fn entry(items: &[Value]) -> Option<Entry> {
    Some(Entry {
        field: text(items, 0)?,
        owner: text(items, 1)?,
        holds: number(items, 2)?,
        left: items.get(3).and_then(Value::int).map(left)?,
        token: number(items, 4)?,
        label: label(items, 5),
        round: number(items, 6)?,
    })
}

impl Entry {
    /// The outcome for a caller that is refused because of this entry.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::Held {
            owner: self.owner.clone(),
            label: self.label.clone(),
            held_for: None,
            count: self.holds,
            remaining: self.left,
            ahead: None,
            permits: None,
        }
    }
}

fn label(items: &[Value], i: usize) -> Option<Arc<str>> {
    text(items, i).filter(|label| !label.is_empty())
}

fn text(items: &[Value], i: usize) -> Option<Arc<str>> {
    items.get(i).and_then(Value::text).cloned()
}

fn number(items: &[Value], i: usize) -> Option<u64> {
    items.get(i).and_then(Value::int)?.try_into().ok()
}

/// So many milliseconds; `None` for -1: the entry never ends.
fn left(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}

fn refused(reason: Refusal, detail: String) -> Outcome {
    Outcome::Refused { reason, detail: Arc::from(detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Value {
        let words = words.iter().map(|word| match word.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Text((*word).into()),
        });
        Value::List(words.collect())
    }

    fn reply(words: &[&str]) -> Decoded {
        decode(Ok(list(words)))
    }

    #[test]
    fn every_word_of_the_scripts_is_read() {
        assert_eq!(outcome(Ok(Value::Int(1))), Outcome::Granted);
        assert_eq!(outcome(Ok(Value::Int(0))), Outcome::Absent);
        let held = |remaining, ahead| Outcome::held_by("x:1", remaining, ahead, None);
        let left = Some(Duration::from_millis(1500));
        let said = reply(&["held", "x:1", "1", "1500", "17", "", "-1"]);
        assert_eq!((said.outcome, said.token), (held(left, None), 17));
        assert_eq!(reply(&["held", "x:1", "1", "1500", "0", "", "3"]).outcome, held(left, Some(3)));
        assert_eq!(reply(&["held", "x:1", "1", "-1", "0", "", "-1"]).outcome, held(None, None));
        let refusal = |words: &[&str]| match reply(words).outcome {
            Outcome::Refused { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(refusal(&["stale", "7"]), Refusal::Stale);
        assert_eq!(refusal(&["refused", "WRONGTYPE x"]), Refusal::WrongType);
        assert_eq!(refusal(&["refused", "KIND it is held as fair"]), Refusal::AnotherKind);
        assert_eq!(refusal(&["refused", "OOM x"]), Refusal::OutOfMemory);
        assert_eq!(reply(&["refused", "NOTIME x"]).outcome, Outcome::Answered("x".into()));
    }

    #[test]
    fn a_grant_has_a_token() {
        let granted = decode(Ok(Value::Int(17)));
        assert_eq!((granted.outcome, granted.token), (Outcome::Granted, 17));
        assert_eq!(decode(Ok(Value::Int(1))).token, 0);
    }

    #[test]
    fn a_refused_permit_tells_which_others_are_free() {
        let Value::List(mut held) = list(&["held", "x:1", "1", "300", "7", "", "-1"]) else { panic!() };
        held.extend([list(&["2", "0"]), Value::Int(250)]);
        let Outcome::Held { permits: Some(permits), .. } = decode(Ok(Value::List(held))).outcome else {
            panic!()
        };
        assert_eq!((permits.free(), permits.first_over()), (&[2, 0][..], Some(Duration::from_millis(250))));
    }

    #[test]
    fn an_inspection_tells_each_entry() {
        let Value::List(mut items) = list(&["seen", "rw", "2"]) else { panic!() };
        items.push(list(&["r:x:1", "x:1", "1", "300", "7", "", "12"]));
        let said = decode(Ok(Value::List(items)));
        let seen = said.seen.unwrap();
        assert_eq!((&*seen.kind, seen.entries.len()), ("rw", 1));
        let Entry { field, owner, round, token, .. } = &seen.entries[0];
        assert_eq!((&**field, &**owner, *round, *token), ("r:x:1", "x:1", 12, 7));
        assert!(matches!(said.outcome, Outcome::Held { count: 1, .. }));
        assert_eq!(reply(&["seen", "", "0"]).outcome, Outcome::Absent);
    }

    #[test]
    fn what_no_script_says_is_no_vote() {
        for words in [&["maybe"][..], &[], &["held"], &["held", "x", "y", "z"], &["seen"]] {
            let outcome = reply(words).outcome;
            assert!(matches!(outcome, Outcome::Refused { reason: Refusal::Other, .. }), "{words:?}");
        }
        for value in [Value::Nil, Value::Int(-1), Value::List(vec![]), Value::Text("granted".into())] {
            assert!(matches!(outcome(Ok(value)), Outcome::Refused { .. }));
        }
    }
}
