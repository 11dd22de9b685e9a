//! The reentrant lock: one owner at a time, which may enter more than once.
//!
//! On a master it is the entry `x` of the name's hash; see `scripts/lua/name.lua`.

use super::Lock;
use crate::client::Redlock;
use crate::protocol::Kind;

impl Redlock {
    /// The lock of this name: one owner has it at a time, which may enter it more than once. Nothing is sent, or checked,
    /// before it is acquired.
    ///
    /// Names have 1 to [`MAX_NAME`](crate::config::MAX_NAME) bytes. Kinds share them: a name that is held as one kind is
    /// refused as another, with [`Error::AnotherKind`](crate::Error::AnotherKind), and nothing is overwritten.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(self.inner(), Kind::Lock, name.as_ref())
    }
}
