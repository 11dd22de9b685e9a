//! The reentrant lock: one owner at a time, which may enter more than once.
//!
//! On a master it is a HASH, owner -> hold count, with the lease as its PEXPIRE; see `scripts/lua/reentrant/`.

use std::time::Duration;

use crate::config;
use crate::coordinator::{Kind, Operation, Place};
use crate::master::{Script, Words};
use crate::owner::Owner;

macro_rules! verbs {
    ($($name:literal),*) => {
        concat!($(include_str!(concat!("../../scripts/lua/reentrant/", $name, ".lua"))),*)
    };
}

static SCRIPT: Script = Script::new(
    "reentrant",
    verbs!("lock", "acquire", "queue", "extend", "release", "withdraw", "transfer", "inspect", "run"),
);

/// The scripts that a connection loads when it is opened.
pub(crate) static SCRIPTS: &[&Script] = &[&SCRIPT];

/// The kind.
#[derive(Debug)]
pub(crate) struct Reentrant;

impl Kind for Reentrant {
    fn script(&self) -> &'static Script {
        &SCRIPT
    }

    fn acquire(&self, operation: &Operation<'_>) -> Words {
        let Operation { owner, count, ttl, round, before, place, .. } = *operation;
        if before.is_none() && place.is_none() {
            return on_lock(operation, "acquire").with(owner).with(count).with(millis(ttl)).with(round);
        }
        let words = on_queue(operation, "queue").with(owner).with(count).with(millis(ttl)).with(round);
        let words = match before {
            Some(before) => words.with(before),
            None => words.with(""),
        };
        match place {
            Some(place) => standing(words, place),
            None => words.with("").with("").with(""),
        }
    }

    fn extend(&self, operation: &Operation<'_>) -> Words {
        let Operation { owner, count, ttl, round, .. } = *operation;
        on_lock(operation, "extend").with(owner).with(count).with(millis(ttl)).with(round)
    }

    fn release(&self, operation: &Operation<'_>) -> Words {
        let Operation { prefix, owner, count, round, place, .. } = *operation;
        match place {
            None => {
                let words = on_queue(operation, "release").with(owner).with(count).with(round);
                words.with(config::Wakes(prefix))
            }
            Some(place) => {
                standing(on_queue(operation, "withdraw").with(owner).with(count).with(round), place)
            }
        }
    }

    fn transfer(&self, operation: &Operation<'_>, from: Owner) -> Words {
        let Operation { owner, count, ttl, round, .. } = *operation;
        on_lock(operation, "transfer").with(owner).with(count).with(millis(ttl)).with(round).with(from)
    }

    fn inspect(&self, prefix: &str, name: &str) -> Words {
        Words::new(1).with(config::Key(prefix, name)).with("inspect")
    }
}

/// An operation that has to do with the lock alone.
fn on_lock(operation: &Operation<'_>, verb: &str) -> Words {
    Words::new(1).with(config::Key(operation.prefix, operation.name)).with(verb)
}

/// An operation that has to do with the lock and its queue.
fn on_queue(operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, .. } = *operation;
    Words::new(2).with(config::Key(prefix, name)).with(config::Queue(prefix, name)).with(verb)
}

/// A waiter's ticket, since when it waits, and for how long, in microseconds.
fn standing(words: Words, Place { ticket, since, waited }: Place) -> Words {
    words.with(ticket).with(since.as_micros()).with(waited.as_micros())
}

/// A part of a millisecond counts as a whole one: the key outlives the lease, never the reverse.
fn millis(ttl: Duration) -> u128 {
    ttl.as_nanos().div_ceil(1_000_000)
}
