//! The scripts of the kinds, as they are sent. Each is made of three layers of files, each a
//! function within the one before: Lua 5.1 runs the definitions of a script on each call of it, and
//! for each local of the same function that a definition captures it goes through a list of all
//! that were captured before, but not for those of the functions around. So layers make a call
//! cheaper, and mean nothing else.

use crate::master::Script;

/// A file of `scripts/lua`, with its name.
macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("../../scripts/lua/", $name, ".lua")))
    };
}

/// A script of these files: those of the first layer, of the second, and of the third.
macro_rules! script {
    ($kind:literal: $([$($file:literal),+])+) => {
        Script::of($kind, &[$(&[$(part!($file)),+]),+])
    };
}

pub(super) static EXCLUSIVE: Script = script!("exclusive":
    ["call", "slots/one", "quick"]
    ["vote", "hooks", "name", "queue"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static FAIR: Script = script!("fair":
    ["call", "slots/one", "quick"]
    ["vote", "hooks", "name", "queue", "turn", "kinds/fair"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static SEMAPHORE: Script = script!("semaphore":
    ["call", "slots/semaphore", "quick"]
    ["vote", "hooks", "name", "queue", "kinds/semaphore"]
    ["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect", "run"]);

pub(super) static RW: Script = script!("rw":
    ["call", "slots/rw", "quick"]
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

/// Which names are in use on a master, of all kinds but those of other libraries.
pub(crate) static LIST: Script = script!("list": ["call"] ["list"]);

/// The scripts that a connection loads when it is opened: that of the usual lock first.
pub static SCRIPTS: &[&Script] = &[&EXCLUSIVE, &FAIR, &SEMAPHORE, &RW, &PLAIN, &REDISSON, &LIST];
