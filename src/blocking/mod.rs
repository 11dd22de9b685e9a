//! Locks without async: methods whose names end in `_blocking` wait on their own thread, and need
//! no runtime.
//!
//! ```
//! # quorate_testkit::doc_blocking(|masters| {
//! use quorate::Redlock;
//!
//! let redlock = Redlock::builder().masters(masters).build()?; // redis://10.0.0.1, redis://10.0.0.2, ...
//! let guard = redlock.lock("invoice:42").acquire_blocking()?; // waits, and is woken by the release
//! assert!(guard.is_valid()); // nobody else has invoice:42, and the lease is renewed meanwhile
//! guard.release_blocking()?; // or drop it: released in the background
//! # Ok::<(), Box<dyn std::error::Error>>(()) });
//! ```
//!
//! Each of them is the async method of the same name, with the same options, promises and errors:
//! `acquire_blocking` is [`acquire`](crate::Lock::acquire), and so on. The handles are the same
//! too: one client, lock or guard serves async code and threads alike.
//!
//! The engine runs on the client's own thread in any case, and renews leases there. A call costs no
//! thread and no runtime: its own thread sleeps until the masters have decided.
//!
//! # Errors
//!
//! Besides the errors of the async method, a blocking call fails, before anything is sent, where it
//! must not wait:
//!
//! - with [`Error::Invalid`] on a thread that runs tokio's tasks. All tasks of that thread would
//!   stand still, the one that has the lock perhaps among them. Await the async method there, or
//!   make the call on a thread that may wait: one of your own, or that of
//!   `tokio::task::spawn_blocking` or `block_in_place`. Nothing panics.
//! - with [`Error::Invalid`] where the engine runs on a [runtime](crate::Builder::runtime) or
//!   executor that the client was lent. Nobody might be driving it, and
//!   the call would never end. Wait with that runtime's own `block_on` instead, which drives it.
//!
//! A guard that such a call consumed (`release_blocking`, `resign_blocking`) was dropped, and is
//! released in the background. What does not wait may be called anywhere: options,
//! [`Guard::is_valid`](crate::Guard::is_valid), and the drop of a guard.
//!
//! Two cases cannot be told: another runtime than tokio's, and a task within
//! `tokio::task::unconstrained`. A call blocks there.
//!
//! # How to stop a call
//!
//! A thread cannot be cancelled. An acquire ends after its [`wait`](crate::Lock::wait), or as soon
//! as another thread cancels the token of [`cancelled_by`](crate::Lock::cancelled_by); then it
//! leaves nothing behind. A campaign without a wait ends by that token alone. All other calls end
//! within a few per-master [time-outs](crate::Builder::timeout).
//!
//! # Work under a lock
//!
//! `run` and `lead` have no blocking twins: a closure cannot be dropped half-way as a future can.
//! Work looks at [`Guard::is_valid`](crate::Guard::is_valid) before each step that must not be done
//! without the lock, and waits in [`Guard::sleep_blocking`](crate::Guard::sleep_blocking), which
//! ends when the lease is lost: it is the twin of `lost`.
//! [`Guard::lost_token`](crate::Guard::lost_token) tells other threads. A leader has the same:
//! `campaign_blocking`, [`Leadership::is_leader`](crate::Leadership::is_leader) before each step,
//! and [`Leadership::sleep_blocking`](crate::Leadership::sleep_blocking) between them.

mod caller;

use std::time::Duration;

use crate::error::Error;
use crate::inner::Inner;
use crate::invalid::Invalid;

/// Waits for an operation of this client on this thread, if that may wait.
pub(crate) fn wait<T>(client: &Inner, operation: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    wait_unless_lent(client.has_own_thread(), operation)
}

/// Waits for `loss` on this thread, for `time` at most, by the client's clock.
pub(crate) fn wait_within(
    client: &Inner,
    time: Duration,
    loss: impl Future<Output = Error>,
) -> Result<Option<Error>, Error> {
    check(client.has_own_thread())?;
    let clock = client.engine().clock();
    let end = clock.now() + time;
    Ok(caller::block_on_within(loss, || end.since(clock.now())))
}

/// Waits for an operation on this thread, if that may wait, and what drives the operation has a
/// thread of its own.
pub(crate) fn wait_unless_lent<T>(
    has_own_thread: bool,
    operation: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    check(has_own_thread)?;
    caller::block_on(operation)
}

/// Whether this thread may wait, and somebody else drives the engine meanwhile.
fn check(has_own_thread: bool) -> Result<(), Invalid> {
    match (caller::runs_tasks(), has_own_thread) {
        (true, _) => Err(Invalid::inside_runtime()),
        (false, false) => Err(Invalid::lent_runtime()),
        (false, true) => Ok(()),
    }
}
