//! Locks without async: methods whose names end in `_blocking` wait on the calling thread, without
//! a runtime.
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
//! Each is the async method of the same name, with the same options, promises and errors:
//! `acquire_blocking` is [`acquire`](crate::Lock::acquire), and so on. One client, lock or guard
//! serves async code and threads alike.
//!
//! The engine runs, and renews leases, on the client's own thread. A call just puts its thread to
//! sleep until the masters have decided.
//!
//! # Errors
//!
//! Besides the errors of the async method, a blocking call fails, before anything is sent, if it
//! must not wait:
//!
//! - with [`Error::Invalid`] on a thread that runs tokio's tasks, because all of them would be
//!   blocked, perhaps including the lock's holder. Await the async method there, or call from a
//!   thread that may wait: one of your own, or that of `tokio::task::spawn_blocking` or
//!   `block_in_place`.
//! - with [`Error::Invalid`] if the engine runs on a [runtime](crate::Builder::runtime) or executor
//!   that the client was lent. If nothing drives that, the call would never end. Use that runtime's
//!   own `block_on` instead, which drives it.
//!
//! A guard that such a call consumed (`release_blocking`, `resign_blocking`) was dropped, and is
//! released in the background. Methods that do not wait may be called anywhere, and guards dropped.
//!
//! Two cases cannot be detected: another runtime than tokio's, and a task within
//! `tokio::task::unconstrained`. A call blocks there.
//!
//! # How to stop a call
//!
//! An acquire ends after its [`wait`](crate::Lock::wait), or as soon as another thread cancels the
//! token of [`cancelled_by`](crate::Lock::cancelled_by); then it leaves nothing behind. A campaign
//! without a wait ends by that token only. All other calls end within a few per-master
//! [time-outs](crate::Builder::timeout).
//!
//! # Work under a lock
//!
//! `run` and `lead` have no blocking twins: a closure cannot be dropped half-way as a future can.
//! Check [`Guard::is_valid`](crate::Guard::is_valid) before each step that needs the lock, and wait
//! in [`Guard::sleep_blocking`](crate::Guard::sleep_blocking), the twin of `lost`, which ends when
//! the lease is lost. Other threads can watch [`Guard::lost_token`](crate::Guard::lost_token). A
//! leader has the same: [`Leadership::is_leader`](crate::Leadership::is_leader) and
//! [`Leadership::sleep_blocking`](crate::Leadership::sleep_blocking).

mod caller;

use std::time::Duration;

use crate::error::Error;
use crate::inner::Inner;
use crate::invalid::Invalid;

/// Waits for an operation of this client, if this thread may wait.
pub(crate) fn wait<T, E: From<Invalid>>(
    client: &Inner,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    wait_unless_lent(client.host.has_own_thread(), operation)
}

/// Waits for `loss`, for `time` at most by the client's clock, if this thread may wait.
pub(crate) fn wait_within(
    client: &Inner,
    time: Duration,
    loss: impl Future<Output = Error>,
) -> Result<Option<Error>, Error> {
    check(client.host.has_own_thread())?;
    let clock = client.engine.clock();
    let end = clock.now() + time;
    Ok(caller::block_on_within(loss, || end.since(clock.now())))
}

/// Waits for an operation, if this thread may wait and the engine has its own thread.
pub(crate) fn wait_unless_lent<T, E: From<Invalid>>(
    has_own_thread: bool,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    check(has_own_thread)?;
    caller::block_on(operation)
}

/// Checks that this thread may wait, and that another one drives the engine meanwhile.
fn check(has_own_thread: bool) -> Result<(), Invalid> {
    match (caller::runs_tasks(), has_own_thread) {
        (true, _) => Err(Invalid::inside_runtime()),
        (false, false) => Err(Invalid::lent_runtime()),
        (false, true) => Ok(()),
    }
}
