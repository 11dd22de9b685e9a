//! The reentrant lock: one owner at a time, which may enter more than once.
//!
//! On a master it is a HASH, owner -> hold count, with the lease as its PEXPIRE; see `scripts/lua/kinds/reentrant.lua`.

use std::sync::Arc;

use super::Lock;
use super::words::{Layout, script};
use crate::client::Redlock;
use crate::master::Script;

impl Redlock {
    /// The lock of this name: one owner has it at a time, which may enter it more than once. Nothing is sent, or checked,
    /// before it is acquired.
    ///
    /// Names have 1 to [`MAX_NAME`](crate::config::MAX_NAME) bytes. Kinds share them: a name that is held as one kind is
    /// refused as another, with [`Error::AnotherKind`](crate::Error::AnotherKind), and nothing is overwritten.
    pub fn lock(&self, name: impl Into<Arc<str>>) -> Lock {
        Lock::new(self, &REENTRANT, name.into())
    }
}

pub(super) static SCRIPT: Script = script!("reentrant": "kinds/hash", "kinds/reentrant", "kinds/single");

/// The kind.
pub(super) static REENTRANT: Layout = Layout::new("reentrant", &SCRIPT);
