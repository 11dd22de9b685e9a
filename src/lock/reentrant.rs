//! The reentrant lock: one owner at a time, which may enter more than once.
//!
//! On a master it is a HASH, owner -> hold count, with the lease as its PEXPIRE; see `scripts/lua/reentrant/`.

use std::sync::Arc;

use crate::coordinator::{Errand, Kind, Operation};
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
static INSPECT: Script = script!("inspect");

/// The scripts that a connection loads when it is opened.
pub(crate) static SCRIPTS: &[&Script] = &[&ACQUIRE, &EXTEND, &RELEASE, &INSPECT];

/// What waiters are told on a full release. Its content has no meaning; Redisson sends the same.
const RELEASED: &str = "0";

/// The kind.
#[derive(Debug)]
pub(crate) struct Reentrant;

impl Kind for Reentrant {
    fn acquire(&self, operation: &Operation<'_>) -> Errand {
        leasing(&ACQUIRE, operation)
    }

    fn extend(&self, operation: &Operation<'_>) -> Errand {
        leasing(&EXTEND, operation)
    }

    fn release(&self, operation: &Operation<'_>) -> Errand {
        let Operation { key, channel, owner, count, round, .. } = *operation;
        let args = [owner.clone(), text(count), text(round), channel.clone(), RELEASED.into()];
        Errand { script: &RELEASE, keys: [key.clone()].into(), args: args.into() }
    }

    fn inspect(&self, key: &Arc<str>) -> Errand {
        Errand { script: &INSPECT, keys: [key.clone()].into(), args: [].into() }
    }
}

fn leasing(script: &'static Script, operation: &Operation<'_>) -> Errand {
    let Operation { key, owner, count, ttl, round, .. } = *operation;
    // A part of a millisecond counts as a whole one: the key outlives the lease, never the reverse.
    let ttl = ttl.as_nanos().div_ceil(1_000_000);
    let args = [owner.clone(), text(count), text(ttl), text(round)];
    Errand { script, keys: [key.clone()].into(), args: args.into() }
}

fn text(number: impl ToString) -> Arc<str> {
    number.to_string().into()
}
