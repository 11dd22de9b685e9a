//! The same locks without async: every call waits on its own thread, and no runtime is needed.
//!
//! ```
//! # quorate_testkit::doc_blocking(|masters| {
//! use quorate::Redlock;
//!
//! let redlock = Redlock::builder().masters(masters).build_blocking()?; // redis://10.0.0.1, redis://10.0.0.2, ...
//! let guard = redlock.lock("invoice:42").acquire()?; // waits, and is woken by the release
//! assert!(guard.is_valid()); // nobody else has invoice:42, and the lease is renewed meanwhile
//! guard.release()?; // or drop it: released in the background
//! # Ok::<(), Box<dyn std::error::Error>>(()) });
//! ```
//!
//! [`Redlock`], [`Lock`] and [`Guard`] are those of the same names [at the top](crate), with the same options, promises and
//! errors; what their docs say holds here. Both kinds can be had of one client, and exclude each other:
//! `blocking::Redlock::from(redlock.clone())`, and [`into_async`](Redlock::into_async) for the way back. So it is with locks
//! and guards.
//!
//! The engine runs on the client's own thread in any case, and renews leases there. A call costs no thread and no runtime: its
//! own thread sleeps until the masters have decided.
//!
//! # Where it may not be called
//!
//! Where tokio runs tasks on the thread, because all of them would stand still, the one that has the lock perhaps among them. Such
//! a call is refused with [`Error::Invalid`], before anything is sent; nothing panics. There, use the async API, or let
//! `tokio::task::spawn_blocking`, `block_in_place` or a thread of your own make the call: these may all wait. What needs no waiting
//! may be called anywhere: options, [`Guard::is_valid`], and the drop of a guard, which releases in the background.
//!
//! Two cases cannot be told: another runtime than tokio's, and a task within `tokio::task::unconstrained`. A call blocks there.
//!
//! A client whose engine runs on a [runtime](Builder::runtime) or [executor](Builder::executor) that it was lent does not block
//! either, which is [`Error::Invalid`], too: nobody might be driving it, and the call would never end. Wait with that
//! runtime's own `block_on` instead, which drives it.
//!
//! # How to stop a call
//!
//! A thread cannot be cancelled. An acquire ends after its [`wait`](Lock::wait), or as soon as the token of
//! [`cancelled_by`](Lock::cancelled_by) is cancelled by another thread; then it leaves nothing behind. All other calls end within a
//! few per-master [time-outs](Builder::timeout).
//!
//! # Work under a lock
//!
//! There is no `run`: a closure cannot be dropped half-way as a future can. Work looks at [`Guard::is_valid`] before each step that
//! must not be done without the lock, and waits in [`Guard::sleep`], which ends when the lease is lost;
//! [`Guard::lost_token`] tells other threads. For the same reason there is no election: whoever leads has work that is dropped
//! before another can lead. A [`Redlock::lock`] with a long [`wait`](Lock::wait) does for a thread that asks.

mod caller;
mod guard;
mod lock;
mod redlock;

pub use guard::Guard;
pub use lock::Lock;
pub use redlock::{Listing, Redlock};

use crate::builder::Builder;
use crate::doctor::Report;
use crate::error::Error;
use crate::invalid::Invalid;

impl Builder {
    /// [`build`](Builder::build), for the blocking API: see [`blocking`](crate::blocking).
    ///
    /// # Errors
    ///
    /// Those of [`build`](Builder::build), and [`Error::Invalid`] after [`runtime`](Builder::runtime) or
    /// [`executor`](Builder::executor).
    pub fn build_blocking(self) -> Result<Redlock, Error> {
        if !self.has_own_thread() {
            return Err(Invalid::lent_runtime().into());
        }
        self.build().map(Redlock::from)
    }

    /// [`examine`](Builder::examine), on the thread that calls: see [`blocking`](crate::blocking).
    ///
    /// # Errors
    ///
    /// As [`build_blocking`](Builder::build_blocking), and [`Error::Invalid`] on a thread that runs async tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// let report = quorate::Redlock::builder().master("redis://127.0.0.1:1").examine_blocking()?; // nobody is there
    /// assert!(!report.has_quorum());
    /// # Ok::<(), quorate::Error>(())
    /// ```
    pub fn examine_blocking(self) -> Result<Report, Error> {
        check(self.has_own_thread())?;
        caller::block_on(self.examine())
    }
}

/// Waits for an operation of this client on the thread that calls. Where that may not be, nothing has been sent: a future does
/// nothing before it is polled.
fn wait<T>(redlock: &crate::Redlock, operation: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    check(redlock.has_own_thread())?;
    caller::block_on(operation)
}

/// Whether the thread that calls may wait, and the engine goes on meanwhile.
fn check(has_own_thread: bool) -> Result<(), Invalid> {
    match (caller::runs_tasks(), has_own_thread) {
        (true, _) => Err(Invalid::inside_runtime()),
        (false, false) => Err(Invalid::lent_runtime()),
        (false, true) => Ok(()),
    }
}
