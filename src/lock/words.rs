//! What the kinds of locks have in common: the parts of their scripts, and the words of each operation.

use std::fmt::Display;
use std::time::Duration;

use crate::config::{Key, PermitKey, PermitRecord, Queue, Record, Wakes, check_name};
use crate::coordinator::{Kind, Operation, Permit, Place};
use crate::error::Invalid;
use crate::master::{Script, Words};
use crate::owner::Owner;

/// The text of the file of this name below `scripts/lua`, with its name.
macro_rules! part {
    ($name:expr) => {
        ($name, include_str!(concat!("../../scripts/lua/", $name, ".lua")))
    };
}

/// The script of a kind, which is kept as these files say. See `scripts/lua/common/lock.lua`.
macro_rules! script {
    ($kind:literal: $($file:literal),+) => {
        $crate::lock::words::script!($kind: [$($file),+] [] ["verbs/queue", "verbs/run"])
    };
    // The files of the kind, what the verbs' files stand behind, and what stands behind them.
    ($kind:literal: [$($file:literal),+] [$($before:literal),*] [$($behind:literal),+]) => {
        $crate::master::Script::of($kind, &[
            $crate::lock::words::part!("common/head"),
            $crate::lock::words::part!("common/fence"),
            $crate::lock::words::part!("common/replies"),
            $crate::lock::words::part!("common/queue"),
            $($crate::lock::words::part!($file),)+
            $crate::lock::words::part!("common/lock"),
            $($crate::lock::words::part!($before),)*
            $crate::lock::words::part!("verbs/acquire"),
            $crate::lock::words::part!("verbs/extend"),
            $crate::lock::words::part!("verbs/release"),
            $crate::lock::words::part!("verbs/withdraw"),
            $crate::lock::words::part!("verbs/transfer"),
            $crate::lock::words::part!("verbs/inspect"),
            $($crate::lock::words::part!($behind),)+
        ])
    };
}
pub(super) use {part, script};

/// What tells one kind from the others: how a lock is kept on a master. The rest is the same for all.
pub(super) trait Layout: std::fmt::Debug + Send + Sync + 'static {
    fn name(&self) -> &'static str;

    fn script(&self) -> &'static Script;

    /// Whether an owner may enter again.
    fn is_reentrant(&self) -> bool {
        true
    }

    /// Whether the lock's key is its bare name, which other libraries have locks under, too. They leave no record of what
    /// they do there, so that a key that is gone is not made again.
    fn is_shared(&self) -> bool {
        false
    }

    /// The channel on which others tell of a release.
    fn channel(&self, _name: &str) -> Option<String> {
        None
    }
}

impl<L: Layout> Kind for L {
    fn name(&self) -> &'static str {
        Layout::name(self)
    }

    fn script(&self) -> &'static Script {
        Layout::script(self)
    }

    fn check_name(&self, name: &str) -> Result<(), Invalid> {
        check_name(name)
    }

    fn is_reentrant(&self) -> bool {
        Layout::is_reentrant(self)
    }

    fn is_held_by_name(&self) -> bool {
        true
    }

    fn channel(&self, name: &str) -> Option<String> {
        Layout::channel(self, name)
    }

    fn acquire(&self, operation: &Operation<'_>) -> Words {
        let Operation { before, place, watched, .. } = *operation;
        if before.is_none() && place.is_none() {
            return hold(on_lock(self, operation, "acquire"), operation).with(watched);
        }
        let words = hold(on_queue(self, operation, "queue"), operation).with(watched);
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
        let heals = operation.heals && !self.is_shared();
        hold(on_lock(self, operation, "extend"), operation).with(u8::from(heals))
    }

    fn release(&self, operation: &Operation<'_>) -> Words {
        let Operation { prefix, owner, count, round, place, fence, undoes, .. } = *operation;
        match place {
            None => {
                let words = on_queue(self, operation, "release").with(owner).with(count).with(round);
                words.with(Wakes(prefix)).with(if undoes { 1 } else { fence })
            }
            Some(place) => {
                standing(on_queue(self, operation, "withdraw").with(owner).with(count).with(round), place)
            }
        }
    }

    fn transfer(&self, operation: &Operation<'_>, from: Owner) -> Words {
        hold(on_lock(self, operation, "transfer"), operation).with(from)
    }

    fn inspect(&self, prefix: &str, name: &str, permit: Option<Permit>) -> Words {
        keys(self, Words::new(2), prefix, name, permit).with("inspect")
    }
}

/// An operation that has to do with the lock and its record.
fn on_lock(layout: &impl Layout, operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, permit, .. } = *operation;
    keys(layout, Words::new(2), prefix, name, permit).with(verb)
}

/// An operation that has to do with the lock, its record and its queue.
fn on_queue(layout: &impl Layout, operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, permit, .. } = *operation;
    keys(layout, Words::new(3), prefix, name, permit).with(Queue(prefix, layout.is_shared(), name)).with(verb)
}

/// The lock and its record. Of a semaphore each permit has its own; they have one queue.
fn keys(layout: &impl Layout, words: Words, prefix: &str, name: &str, permit: Option<Permit>) -> Words {
    if let Some(Permit { number, of }) = permit {
        return words.with(PermitKey(prefix, name, number, of)).with(PermitRecord(prefix, name, number));
    }
    let record = Record(prefix, layout.is_shared(), name);
    if layout.is_shared() {
        return words.with(name).with(record);
    }
    words.with(Key(prefix, name)).with(record)
}

/// What is to be held, and by which grant.
pub(super) fn hold(words: Words, operation: &Operation<'_>) -> Words {
    let Operation { owner, count, ttl, round, fence, kept, .. } = *operation;
    let words = words.with(owner).with(count).with(millis(ttl)).with(round);
    let words = if fence == 0 { words.with("") } else { words.with(fence) };
    words.with(millis(kept))
}

/// A waiter's ticket, since when it waits, and for how long, in microseconds.
pub(super) fn standing(words: Words, Place { ticket, since, waited }: Place) -> Words {
    words.with(ticket).with(since.as_micros()).with(waited.as_micros())
}

/// A part of a millisecond counts as a whole one: the key outlives the lease, never the reverse.
fn millis(ttl: Duration) -> impl Display {
    ttl.as_nanos().div_ceil(1_000_000)
}
