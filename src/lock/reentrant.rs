//! The reentrant lock: one owner at a time, which may enter more than once.
//!
//! On a master it is a HASH, owner -> hold count, with the lease as its PEXPIRE; see `scripts/lua/reentrant/`.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::coordinator::{Errand, Keys, Kind, Operation, Place};
use crate::master::Script;

macro_rules! script {
    ($name:literal) => {
        Script::new(
            concat!("reentrant/", $name),
            concat!(
                include_str!("../../scripts/lua/reentrant/lock.lua"),
                include_str!(concat!("../../scripts/lua/reentrant/", $name, ".lua")),
            ),
        )
    };
}

static ACQUIRE: Script = script!("acquire");
static EXTEND: Script = script!("extend");
static RELEASE: Script = script!("release");
static TRANSFER: Script = script!("transfer");
static INSPECT: Script = script!("inspect");

/// The scripts that a connection loads when it is opened.
pub(crate) static SCRIPTS: &[&Script] = &[&ACQUIRE, &EXTEND, &RELEASE, &TRANSFER, &INSPECT];

/// The kind.
#[derive(Debug)]
pub(crate) struct Reentrant;

impl Kind for Reentrant {
    fn acquire(&self, operation: &Operation<'_>) -> Errand {
        let Operation { keys, owner, count, ttl, round, before, place } = *operation;
        let before = before.cloned().unwrap_or_else(nothing);
        let [ticket, since, waited] = standing(place, nothing());
        let args =
            [owner.clone(), text(count), milliseconds(ttl), text(round), before, ticket, since, waited];
        Errand { script: &ACQUIRE, keys: lock_and_queue(keys), args: args.into() }
    }

    fn extend(&self, operation: &Operation<'_>) -> Errand {
        let Operation { keys, owner, count, ttl, round, .. } = *operation;
        let args = [owner.clone(), text(count), milliseconds(ttl), text(round)];
        Errand { script: &EXTEND, keys: [keys.lock.clone()].into(), args: args.into() }
    }

    fn release(&self, operation: &Operation<'_>) -> Errand {
        let Operation { keys, owner, count, round, place, .. } = *operation;
        let [ticket, since, waited] = standing(place, owner.clone());
        let args = [owner.clone(), text(count), text(round), keys.wakes.clone(), ticket, since, waited];
        Errand { script: &RELEASE, keys: lock_and_queue(keys), args: args.into() }
    }

    fn transfer(&self, operation: &Operation<'_>, from: &Arc<str>) -> Errand {
        let Operation { keys, owner, count, ttl, round, .. } = *operation;
        let args = [owner.clone(), text(count), milliseconds(ttl), text(round), from.clone()];
        Errand { script: &TRANSFER, keys: [keys.lock.clone()].into(), args: args.into() }
    }

    fn inspect(&self, keys: &Keys) -> Errand {
        Errand { script: &INSPECT, keys: [keys.lock.clone()].into(), args: [].into() }
    }
}

fn lock_and_queue(keys: &Keys) -> Arc<[Arc<str>]> {
    [keys.lock.clone(), keys.queue.clone()].into()
}

/// A waiter's ticket, since when it waits, and for how long, in microseconds.
fn standing(place: Option<&Place>, otherwise: Arc<str>) -> [Arc<str>; 3] {
    match place {
        Some(Place { ticket, since, waited }) => {
            [ticket.clone(), text(since.as_micros()), text(waited.as_micros())]
        }
        None => [otherwise, nothing(), nothing()],
    }
}

/// A part of a millisecond counts as a whole one: the key outlives the lease, never the reverse.
fn milliseconds(ttl: Duration) -> Arc<str> {
    text(ttl.as_nanos().div_ceil(1_000_000))
}

fn text(number: impl ToString) -> Arc<str> {
    number.to_string().into()
}

fn nothing() -> Arc<str> {
    static NOTHING: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
    NOTHING.clone()
}
