//! The reentrant lock: one owner at a time, which may enter more than once.
//!
//! On a master it is a HASH, owner -> hold count, with the lease as its PEXPIRE; see `scripts/lua/reentrant/`.

use std::time::Duration;

use crate::config;
use crate::coordinator::{Kind, Operation, Place};
use crate::master::{Script, Words};
use crate::owner::Owner;

macro_rules! files {
    ($($folder:literal: $($name:literal),*;)*) => {
        concat!($($(include_str!(concat!("../../scripts/lua/", $folder, "/", $name, ".lua"))),*),*)
    };
}

static SCRIPT: Script = Script::new(
    "reentrant",
    files!(
        "common": "head", "fence";
        "reentrant": "lock", "acquire", "queue", "extend", "release", "withdraw", "transfer", "inspect", "run";
    ),
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
        let Operation { before, place, watched, .. } = *operation;
        if before.is_none() && place.is_none() {
            return hold(on_lock(operation, "acquire"), operation).with(watched);
        }
        let words = hold(on_queue(operation, "queue"), operation).with(watched);
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
        hold(on_lock(operation, "extend"), operation).with(u8::from(operation.heals))
    }

    fn release(&self, operation: &Operation<'_>) -> Words {
        let Operation { prefix, owner, count, round, place, fence, undoes, .. } = *operation;
        match place {
            None => {
                let words = on_queue(operation, "release").with(owner).with(count).with(round);
                words.with(config::Wakes(prefix)).with(if undoes { 1 } else { fence })
            }
            Some(place) => {
                standing(on_queue(operation, "withdraw").with(owner).with(count).with(round), place)
            }
        }
    }

    fn transfer(&self, operation: &Operation<'_>, from: Owner) -> Words {
        hold(on_lock(operation, "transfer"), operation).with(from)
    }

    fn inspect(&self, prefix: &str, name: &str) -> Words {
        Words::new(2).with(config::Key(prefix, name)).with(config::Record(prefix, name)).with("inspect")
    }
}

/// An operation that has to do with the lock and its record.
fn on_lock(operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, .. } = *operation;
    Words::new(2).with(config::Key(prefix, name)).with(config::Record(prefix, name)).with(verb)
}

/// An operation that has to do with the lock, its record and its queue.
fn on_queue(operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, .. } = *operation;
    let words = Words::new(3).with(config::Key(prefix, name)).with(config::Record(prefix, name));
    words.with(config::Queue(prefix, name)).with(verb)
}

/// What is to be held, and by which grant.
fn hold(words: Words, operation: &Operation<'_>) -> Words {
    let Operation { owner, count, ttl, round, fence, kept, .. } = *operation;
    let words = words.with(owner).with(count).with(millis(ttl)).with(round);
    let words = if fence == 0 { words.with("") } else { words.with(fence) };
    words.with(millis(kept))
}

/// A waiter's ticket, since when it waits, and for how long, in microseconds.
fn standing(words: Words, Place { ticket, since, waited }: Place) -> Words {
    words.with(ticket).with(since.as_micros()).with(waited.as_micros())
}

/// A part of a millisecond counts as a whole one: the key outlives the lease, never the reverse.
fn millis(ttl: Duration) -> u128 {
    ttl.as_nanos().div_ceil(1_000_000)
}
