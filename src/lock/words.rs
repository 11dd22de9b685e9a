//! What the kinds of locks have in common: the parts of their scripts, and the words of each operation.

use std::fmt::{self, Display};
use std::time::Duration;

use crate::config::{Key, PermitKey, PermitRecord, Queue, Record, Wakes, check_name};
use crate::coordinator::{Arrival, Kind, Meeting, Operation, Permit, Place};
use crate::error::Invalid;
use crate::master::{Script, Words};
use crate::owner::Owner;

/// The text of the file of this name below `scripts/lua`, with its name.
macro_rules! part {
    ($name:expr) => {
        ($name, include_str!(concat!("../../scripts/lua/", $name, ".lua")))
    };
}

/// The script of a kind, which is kept as these files say, in three layers: what all kinds have in common, the kind, and the
/// verbs. See `scripts/lua/common/lock.lua`.
macro_rules! script {
    ($kind:literal: $($file:literal),+) => {
        $crate::lock::words::script!($kind: [$($file,)+ "common/lock"] ["verbs/queue", "verbs/run"])
    };
    // What the verbs' files stand behind, and what stands behind them.
    ($kind:literal: [$($file:literal),+] [$($behind:literal),+]) => {
        $crate::master::Script::of($kind, &[
            &[
                $crate::lock::words::part!("common/head"),
                $crate::lock::words::part!("common/fence"),
                $crate::lock::words::part!("common/replies"),
                $crate::lock::words::part!("common/queue"),
            ],
            &[$($crate::lock::words::part!($file),)+],
            &[
                $crate::lock::words::part!("verbs/acquire"),
                $crate::lock::words::part!("verbs/extend"),
                $crate::lock::words::part!("verbs/release"),
                $crate::lock::words::part!("verbs/withdraw"),
                $crate::lock::words::part!("verbs/transfer"),
                $crate::lock::words::part!("verbs/inspect"),
                $($crate::lock::words::part!($behind),)+
            ],
        ])
    };
}
pub(super) use {part, script};

/// What tells one kind from the others: how a lock is kept on a master. The rest is the same for all.
#[derive(Debug)]
pub(super) struct Layout {
    /// What tells it from the others within a client.
    pub(super) name: &'static str,
    pub(super) script: &'static Script,
    /// Whether an owner may enter again.
    pub(super) is_reentrant: bool,
    /// Whether the lock's key is its bare name, which other libraries have locks under, too. They leave no record of what
    /// they do there, so that a key that is gone is not made again.
    pub(super) is_shared: bool,
    /// How often the first in the queue looks though nobody calls it, where the lock is for whoever has waited longest.
    pub(super) in_turn: Option<Duration>,
    /// The channel on which others tell of a release, by the lock's name.
    pub(super) channel: Option<fn(&str) -> String>,
    /// What an owner's name on the masters begins with, where a script keeps two kinds.
    pub(super) mode: &'static str,
    /// Whether several owners may have it, which let others go first that wait.
    pub(super) admits_several: bool,
    /// The kind that its script keeps, too, and what becomes of its holder.
    pub(super) sibling: Option<(&'static Layout, Meeting)>,
}

impl Layout {
    /// A kind of which most is as usual: reentrant, with one holder, and a key of Quorate's own.
    pub(super) const fn new(name: &'static str, script: &'static Script) -> Self {
        let (is_reentrant, is_shared, admits_several) = (true, false, false);
        let (in_turn, channel, mode, sibling) = (None, None, "", None);
        Self { name, script, is_reentrant, is_shared, in_turn, channel, mode, admits_several, sibling }
    }
}

/// An owner as a script knows it.
struct Named(&'static str, Owner);

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(mode, owner) = self;
        write!(f, "{mode}{owner}")
    }
}

impl Kind for Layout {
    fn name(&self) -> &'static str {
        self.name
    }

    fn script(&self) -> &'static Script {
        self.script
    }

    fn check_name(&self, name: &str) -> Result<(), Invalid> {
        check_name(name)
    }

    fn is_reentrant(&self) -> bool {
        self.is_reentrant
    }

    fn is_held_by_name(&self) -> bool {
        true
    }

    fn looks_every(&self) -> Option<Duration> {
        self.in_turn
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn channel(&self, name: &str) -> Option<String> {
        self.channel.map(|channel| channel(name))
    }

    fn admits_several(&self) -> bool {
        self.admits_several
    }

    fn sibling(&self) -> Option<(&'static dyn Kind, Meeting)> {
        self.sibling.map(|(layout, meeting)| (layout as &dyn Kind, meeting))
    }

    fn acquire(&self, operation: &Operation<'_>) -> Words {
        let Operation { before, place, watched, .. } = *operation;
        let comes_first = self.in_turn.is_none() && !self.admits_several;
        if before.is_none() && place.is_none() && comes_first {
            return hold(self.mode, on_lock(self, operation, "acquire"), operation).with(watched);
        }
        let words = hold(self.mode, on_queue(self, operation, "queue"), operation).with(watched);
        queueing(self.mode, words, operation)
    }

    fn extend(&self, operation: &Operation<'_>) -> Words {
        let heals = operation.heals && !self.is_shared;
        hold(self.mode, on_lock(self, operation, "extend"), operation).with(u8::from(heals))
    }

    fn release(&self, operation: &Operation<'_>) -> Words {
        let Operation { prefix, owner, count, round, place, fence, undoes, .. } = *operation;
        let owned =
            |verb| on_queue(self, operation, verb).with(Named(self.mode, owner)).with(count).with(round);
        match place {
            None => owned("release").with(Wakes(prefix)).with(if undoes { 1 } else { fence }),
            Some(place) => standing(self.mode, owned("withdraw"), place),
        }
    }

    fn transfer(&self, operation: &Operation<'_>, from: Owner) -> Words {
        hold(self.mode, on_lock(self, operation, "transfer"), operation).with(Named(self.mode, from))
    }

    fn inspect(&self, prefix: &str, name: &str, permit: Option<Permit>, asked: Option<Owner>) -> Words {
        let words = keys(self, Words::new(2), prefix, name, permit).with("inspect");
        match asked {
            Some(owner) if !self.mode.is_empty() => words.with(Named(self.mode, owner)),
            _ => words.with(""),
        }
    }
}

/// An operation that has to do with the lock and its record.
fn on_lock(layout: &Layout, operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, permit, .. } = *operation;
    keys(layout, Words::new(2), prefix, name, permit).with(verb)
}

/// An operation that has to do with the lock, its record and its queue.
fn on_queue(layout: &Layout, operation: &Operation<'_>, verb: &str) -> Words {
    let Operation { prefix, name, permit, .. } = *operation;
    keys(layout, Words::new(3), prefix, name, permit).with(Queue(prefix, layout.is_shared, name)).with(verb)
}

/// The lock and its record. Of a semaphore each permit has its own; they have one queue.
fn keys(layout: &Layout, words: Words, prefix: &str, name: &str, permit: Option<Permit>) -> Words {
    if let Some(Permit { number, of }) = permit {
        return words.with(PermitKey(prefix, name, number, of)).with(PermitRecord(prefix, name, number));
    }
    let record = Record(prefix, layout.is_shared, name);
    if layout.is_shared {
        return words.with(name).with(record);
    }
    words.with(Key(prefix, name)).with(record)
}

/// What is to be held, and by which grant.
pub(super) fn hold(mode: &'static str, words: Words, operation: &Operation<'_>) -> Words {
    let Operation { owner, count, ttl, round, fence, kept, .. } = *operation;
    let words = words.with(Named(mode, owner)).with(count).with(millis(ttl)).with(round);
    let words = if fence == 0 { words.with("") } else { words.with(fence) };
    words.with(millis(kept))
}

/// The place that is given up, the one that is taken where it is refused, and how others are called.
pub(super) fn queueing(mode: &'static str, words: Words, operation: &Operation<'_>) -> Words {
    let words = match operation.before {
        Some(before) => words.with(Named(mode, before)),
        None => words.with(""),
    };
    let words = match (operation.place, operation.arrival) {
        (Some(place), _) => standing(mode, words, place),
        (None, Some(arrival)) => arrived(words.with(""), arrival),
        (None, None) => words.with("").with("").with(""),
    };
    words.with(Wakes(operation.prefix))
}

/// A waiter's ticket, since when it waits, and for how long.
pub(super) fn standing(mode: &'static str, words: Words, Place { ticket, arrival }: Place) -> Words {
    arrived(words.with(Named(mode, ticket)), arrival)
}

/// In microseconds.
fn arrived(words: Words, Arrival { since, waited }: Arrival) -> Words {
    words.with(since.as_micros()).with(waited.as_micros())
}

/// A part of a millisecond counts as a whole one: the key outlives the lease, never the reverse.
fn millis(ttl: Duration) -> impl Display {
    ttl.as_nanos().div_ceil(1_000_000)
}
