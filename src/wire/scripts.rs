//! The scripts of the kinds, as they are sent. Each consists of three layers of files; each layer
//! is a function within the one before. Layers only make a call cheaper: Lua 5.1 runs all
//! definitions of a script on each call, and for each captured local of the same function it
//! searches a list of all locals that were captured before; locals of the functions around are not
//! in that list.

use super::script::Script;

/// A file of `scripts/lua`, with its name.
macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("../../scripts/lua/", $name, ".lua")))
    };
}

/// A script of these files, a list for each layer.
macro_rules! script {
    ($kind:literal: $([$($file:literal),+])+) => {
        Script::of($kind, &[$(&[$(part!($file)),+]),+])
    };
}

pub(super) static EXCLUSIVE: Script = script!("exclusive":
    ["call", "slots/one"]
    ["vote", "hooks", "name", "queue"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static FAIR: Script = script!("fair":
    ["call", "slots/one"]
    ["vote", "hooks", "name", "queue", "turn", "kinds/fair"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static SEMAPHORE: Script = script!("semaphore":
    ["call", "slots/semaphore", "free"]
    ["vote", "hooks", "name", "queue", "kinds/semaphore"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static RW: Script = script!("rw":
    ["call", "slots/rw", "free"]
    ["vote", "hooks", "name", "queue", "turn", "kinds/rw"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static PLAIN: Script = script!("plain":
    ["call"]
    ["vote", "hooks", "queue", "shared/plain"]
    ["shared/verbs", "run"]);

pub(super) static REDISSON: Script = script!("redisson":
    ["call"]
    ["vote", "hooks", "queue", "shared/redisson"]
    ["shared/verbs", "run"]);

/// The common case of a lock with one holder.
pub(crate) static HOT: Script = script!("hot": ["hot"]);

/// Which names are in use on a master, of all kinds but those of other libraries.
pub(crate) static LIST: Script = script!("list": ["call"] ["list"]);

/// What a master promises and accepts about the next generation of its set.
pub(crate) static DECREE: Script = script!("decree": ["call"] ["decree"]);

/// The scripts that a connection loads when it is opened: that of the usual lock first.
pub static SCRIPTS: &[&Script] =
    &[&HOT, &EXCLUSIVE, &FAIR, &SEMAPHORE, &RW, &PLAIN, &REDISSON, &LIST, &DECREE];
