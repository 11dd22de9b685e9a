//! Reads what a script replied: one master's vote on one operation.

use std::sync::Arc;
use std::time::Duration;

use crate::master::{Failure, Value};
use crate::vote::{Outcome, Permits, Refusal};

/// What a master said to one operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) outcome: Outcome,
    /// The token of a new grant, or of the one that the lock is held by; 0 where it is not told.
    pub(crate) token: u64,
    /// The version of the record to watch, and for how long, where another owner has the lock or did not release it.
    pub(crate) watch: Option<(Arc<str>, Duration)>,
}

impl From<Outcome> for Said {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, token: 0, watch: None }
    }
}

/// What the answer to one operation says.
pub(crate) fn said(answer: Result<Value, Failure>) -> Said {
    let (token, watch) = match &answer {
        Ok(Value::Int(token)) if *token > GRANTED => (token.unsigned_abs(), None),
        Ok(Value::List(items)) => {
            let watch = watch(items);
            (watch.as_ref().map_or(0, |(version, _)| token_of(version)), watch)
        }
        _ => (0, None),
    };
    Said { outcome: outcome(answer), token, watch }
}

/// The outcome of one operation.
pub(crate) fn outcome(answer: Result<Value, Failure>) -> Outcome {
    match answer {
        Ok(Value::Int(GRANTED..)) => Outcome::Granted,
        Ok(Value::Int(ABSENT)) => Outcome::Absent,
        Ok(value) => value
            .list()
            .and_then(read)
            .unwrap_or_else(|| refused(Refusal::Other, format!("a reply of an unknown form: {value:?}"))),
        Err(Failure::Refused { reason, detail }) => Outcome::Refused { reason, detail },
        Err(Failure::Unreachable(why)) => Outcome::Unreachable(why),
        Err(Failure::Unknown(silence)) => Outcome::Unknown(silence),
    }
}

/// The replies without words, as `lock.lua` has them; what is above them is a token.
const GRANTED: i64 = 1;
const ABSENT: i64 = 0;

fn read(reply: &[Value]) -> Option<Outcome> {
    let text = |i: usize| reply.get(i).and_then(Value::text);
    match &**text(0)? {
        "held" => {
            let left = reply.get(3).and_then(Value::int)?;
            Some(Outcome::Held {
                owner: text(1)?.clone(),
                count: reply.get(2).and_then(Value::int)?.try_into().ok()?,
                remaining: u64::try_from(left).ok().map(Duration::from_millis),
                ahead: reply.get(4).and_then(Value::int).and_then(|ahead| ahead.try_into().ok()),
                permits: permits(reply),
            })
        }
        "stale" => Some(refused(Refusal::Stale, format!("{} was here first", text(1)?))),
        "refused" => match Failure::from_error_reply(text(1)?) {
            Failure::Refused { reason, detail } => Some(Outcome::Refused { reason, detail }),
            _ => None,
        },
        _ => None,
    }
}

/// The token that a version of a record begins with.
fn token_of(version: &str) -> u64 {
    version.split(':').next().and_then(|token| token.parse().ok()).unwrap_or(0)
}

fn watch(reply: &[Value]) -> Option<(Arc<str>, Duration)> {
    let version = reply.get(5).and_then(Value::text).filter(|version| !version.is_empty())?;
    let millis = reply.get(6).and_then(Value::int)?.try_into().ok()?;
    Some((version.clone(), Duration::from_millis(millis)))
}

/// Which permits of a semaphore are taken: `number/all of them` each.
fn permits(reply: &[Value]) -> Option<Arc<Permits>> {
    let number = |item: &Value| item.text()?.split('/').next()?.parse().ok();
    let taken: Option<Box<[u32]>> = reply.get(7)?.list()?.iter().map(number).collect();
    let first = reply.get(8).and_then(Value::int).and_then(|millis| millis.try_into().ok());
    Some(Arc::new(Permits::new(taken?, first.map(Duration::from_millis))))
}

fn refused(reason: Refusal, detail: String) -> Outcome {
    Outcome::Refused { reason, detail: Arc::from(detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(words: &[&str]) -> Outcome {
        let words = words.iter().map(|word| match word.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Text((*word).into()),
        });
        outcome(Ok(Value::List(words.collect())))
    }

    #[test]
    fn every_word_of_the_scripts_is_read() {
        assert_eq!(outcome(Ok(Value::Int(1))), Outcome::Granted);
        assert_eq!(outcome(Ok(Value::Int(0))), Outcome::Absent);
        let held = |remaining| Outcome::Held {
            owner: "x:1".into(),
            count: 2,
            remaining,
            ahead: None,
            permits: None,
        };
        assert_eq!(reply(&["held", "x:1", "2", "1500"]), held(Some(Duration::from_millis(1500))));
        assert_eq!(reply(&["held", "x:1", "2", "-1"]), held(None));
        assert_eq!(reply(&["held", "x:1", "2", "-1", "-1"]), held(None), "it got no place");
        let Outcome::Held { ahead, .. } = reply(&["held", "x:1", "2", "1500", "3"]) else { panic!() };
        assert_eq!(ahead, Some(3));
        let refusal = |words: &[&str]| match reply(words) {
            Outcome::Refused { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(refusal(&["refused", "WRONGTYPE x"]), Refusal::WrongType);
        assert_eq!(refusal(&["refused", "OOM x"]), Refusal::OutOfMemory);
    }

    #[test]
    fn a_grant_has_a_token_and_what_is_held_may_be_watched() {
        let granted = said(Ok(Value::Int(17)));
        assert_eq!((granted.outcome, granted.token), (Outcome::Granted, 17));
        assert_eq!(said(Ok(Value::Int(1))).token, 0);
        let words = ["held", "x:1", "0", "300"].map(|word| Value::Text(word.into()));
        let watched = [Value::Int(-1), Value::Text("17:3".into()), Value::Int(300)];
        let held = said(Ok(Value::List(words.into_iter().chain(watched).collect())));
        assert_eq!(held.watch, Some(("17:3".into(), Duration::from_millis(300))));
        let Outcome::Held { count: 0, ahead: None, .. } = held.outcome else { panic!("{held:?}") };
    }

    #[test]
    fn a_refused_permit_tells_which_are_taken() {
        let text = |word: &str| Value::Text(word.into());
        let held =
            [text("held"), text("x:1"), text("1"), Value::Int(300), Value::Int(-1), text(""), Value::Int(0)];
        let permits = [Value::List(vec![text("2/3"), text("0/3")]), Value::Int(250)];
        let told = said(Ok(Value::List(held.into_iter().chain(permits).collect())));
        let Outcome::Held { permits: Some(permits), .. } = told.outcome else { panic!("{told:?}") };
        assert_eq!((permits.taken(), permits.first_over()), (&[2, 0][..], Some(Duration::from_millis(250))));
        assert_eq!(told.watch, None);
    }

    #[test]
    fn what_no_script_says_is_no_vote() {
        for words in [&["maybe"][..], &[], &["held"], &["held", "x", "y", "z"]] {
            assert!(matches!(reply(words), Outcome::Refused { reason: Refusal::Other, .. }), "{words:?}");
        }
        for value in [Value::Nil, Value::Int(-1), Value::List(vec![]), Value::Text("granted".into())] {
            assert!(matches!(outcome(Ok(value)), Outcome::Refused { .. }));
        }
    }
}
