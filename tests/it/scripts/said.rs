//! What an operation is answered, in the forms that `lock.lua` names and in no other.

use quorate_testkit::Resp;

use super::lab::text;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Granted,
    Token(u64),
    Absent,
    Held(Held),
    Stale(String),
    Refused(String),
}

/// Who has the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) owner: String,
    pub(super) count: String,
    pub(super) ttl: i64,
    pub(super) ahead: Option<i64>,
    /// The version to watch, and for how long (ms).
    pub(super) watch: Option<(String, i64)>,
    /// The permits that are taken, and how soon (ms) one of them is over.
    pub(super) permits: Option<(Vec<String>, i64)>,
}

impl Said {
    pub(super) fn read(reply: &Resp) -> Self {
        let items = match reply {
            Resp::Int(0) => return Self::Absent,
            Resp::Int(1) => return Self::Granted,
            &Resp::Int(token @ 2..) => return Self::Token(token.try_into().unwrap()),
            Resp::List(items) => items,
            other => panic!("{other:?}"),
        };
        let number = |item: &Resp| match item {
            &Resp::Int(number) => number,
            other => panic!("{other:?} in {items:?}"),
        };
        match (&*text(&items[0]), &items[1..]) {
            ("held", [owner, count, ttl, rest @ ..]) => {
                let (rest, permits) = match rest {
                    [rest @ .., Resp::List(taken), first] if rest.len() == 3 => {
                        (rest, Some((taken.iter().map(text).collect(), number(first))))
                    }
                    _ => (rest, None),
                };
                let (ahead, watch) = match rest {
                    [] => (None, None),
                    [ahead] => (Some(number(ahead)), None),
                    [ahead, version, watch] => (Some(number(ahead)), Some((text(version), number(watch)))),
                    _ => panic!("{items:?}"),
                };
                let watch = watch.filter(|(version, _)| !version.is_empty());
                let (owner, count, ttl) = (text(owner), text(count), number(ttl));
                Self::Held(Held { owner, count, ttl, ahead, watch, permits })
            }
            ("stale", [by]) => Self::Stale(text(by)),
            ("refused", [why]) => Self::Refused(text(why)),
            _ => panic!("{items:?}"),
        }
    }

    pub(super) fn is_grant(&self) -> bool {
        matches!(self, Self::Granted | Self::Token(_))
    }

    pub(super) fn token(self) -> u64 {
        match self {
            Self::Token(token) => token,
            other => panic!("not a token: {other:?}"),
        }
    }

    pub(super) fn held(self) -> Held {
        match self {
            Self::Held(held) => held,
            other => panic!("not held: {other:?}"),
        }
    }

    /// The first word of a refusal, which says what kind it is.
    pub(super) fn refused(self) -> String {
        match self {
            Self::Refused(why) => why.split(' ').next().unwrap().to_owned(),
            other => panic!("not refused: {other:?}"),
        }
    }
}
