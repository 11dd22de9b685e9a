//! Redis servers to test locks against, real and embedded ones, and the faults to put them through.
//!
//! Real ones need `redis-server` on the path, and Linux: it looks at `/proc` to know that a process
//! has stopped. Nothing it starts outlives the process that started it, however that ends.
//!
//! - [`RedisServer`] is one server: start, freeze, thaw, kill, restart, wipe. [`Masters`] is
//!   several. With a wall clock of its own ([`RedisServer::start_with_clock`]), which a test steps
//!   while the server runs, and a disk that it makes slow, it takes a C compiler, `cc`.
//! - [`Project`] is servers in the containers of a compose file, where a Docker engine answers:
//!   each is a [`Container`], which is killed, frozen, and taken off its network.
//! - [`Proxy`] stands between clients and a server, and does what networks do, for as long as a
//!   test wants it ([`Toxic`]): delays, holes, one-way ones too, resets, half-open connections. It
//!   also cuts a connection at a chosen moment ([`Cut`]).
//! - [`Dice`] are what a seed decides.
//! - [`cancel_at_every_poll`] drops an operation after 0, 1, 2, … polls.
//! - [`EmbeddedMasters`] is masters within the process, for tests that need no server: they run the
//!   same Lua. Each has an [`EmbeddedServer`], whose keys, clock and restarts a test decides.
//!   (Feature `embedded`, on by default.)
//! - [`eventually`] waits for a condition, with a bound.
//!
//! # Where entropy comes from
//!
//! A test with embedded masters is the same every time if nothing else decides:
//!
//! | source | how to decide it |
//! |---|---|
//! | time | `Builder::clock` and `EmbeddedMasters::with_clock`; [`PausedClock`] for both |
//! | randomness | `Builder::random`: identities and jitter |
//! | scheduling | `Builder::runtime` with a current-thread runtime, or `Builder::executor` |
//! | hash order | nothing that is seen goes by it |
//!
//! `Builder::clock`, `random` and `executor` are there with the feature `unstable-testing` of
//! quorate, which this kit turns on. They may change with any version.
//!
//! # Paused time
//!
//! A test that waits for leases to end takes no time while tokio's clock is paused, if everything
//! goes by that clock: the masters, the leases, and the engine, which runs on the test's runtime.
//!
//! ```
//! # let test = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
//! # test.block_on(async {
//! use std::time::Duration;
//!
//! use quorate::Redlock;
//! use quorate_testkit::{EmbeddedMasters, PausedClock};
//! use tokio::runtime::Handle;
//!
//! // In a `#[tokio::test(start_paused = true)]`:
//! let clock = PausedClock::start();
//! let masters = EmbeddedMasters::with_clock(3, clock.of_masters());
//! let builder = Redlock::builder().masters(&masters).clock(clock).runtime(Handle::current());
//! let redlock = builder.build()?;
//! let guard = redlock.lock("invoice:42").ttl(Duration::from_secs(20)).no_renewal().acquire().await?;
//! tokio::time::sleep(Duration::from_secs(21)).await; // no time passes
//! assert!(!guard.is_valid());
//! redlock.lock("invoice:42").try_acquire().await?;
//! # Ok::<(), quorate::Error>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Do not pause tokio's time without the rest: the engine has a thread of its own, where time goes
//! on, and a paused test runs ahead of it. Short TTLs (500 ms, say) are the simpler way.
//!
//! # What the library may not use
//!
//! Lints ban new ones in the library: `clippy.toml` lists the functions, `iter_over_hash_type`
//! keeps hash order out, and `tests/it/house.rs` looks for `select!` that draws lots and for
//! threads. The simulator rests on that: see docs/SIMULATION.md.

mod cancel;
mod clock;
mod compose;
mod dice;
mod disk;
#[cfg(feature = "embedded")]
mod embedded;
mod keys;
mod masters;
mod process;
mod proxy;
mod server;
mod shim;
#[cfg(test)]
mod tests;
#[cfg(feature = "embedded")]
mod trusting;
mod wipe;

pub use cancel::cancel_at_every_poll;
pub use clock::ServerClock;
pub use compose::{ComposeError, Container, Project, compose_file, skipped};
pub use dice::Dice;
#[cfg(feature = "embedded")]
pub use embedded::{
    EmbeddedMaster, EmbeddedMasters, EmbeddedServer, PausedClock, Resp, Restart, Snapshot, Store,
    Subscription, WallClock,
};
pub use keys::{held_until, in_use};
pub use masters::Masters;
pub use process::ProcessHandle;
pub use proxy::{Cut, Proxy, Strobe, Toxic, ToxicId, Way};
pub use server::{RedisServer, StartError};
#[cfg(feature = "embedded")]
pub use trusting::trusting;

use std::fmt::Debug;
#[cfg(feature = "embedded")]
use std::future::Future;
use std::time::Duration;

/// Waits until `condition` answers `Ok`, and panics with its last `Err` when that does not happen
/// within `bound`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use quorate_testkit::{EmbeddedMasters, eventually};
///
/// let masters = EmbeddedMasters::new(3);
/// eventually(std::time::Duration::from_secs(1), || masters.empty()).await;
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// When the bound is over.
pub async fn eventually<T, E: Debug>(bound: Duration, mut condition: impl FnMut() -> Result<T, E>) -> T {
    let waiting = async {
        loop {
            if let Ok(value) = condition() {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    match tokio::time::timeout(bound, waiting).await {
        Ok(value) => value,
        Err(_) => panic!("not within {bound:?}: {:?}", condition().err()),
    }
}

/// The same on a thread that may wait.
///
/// # Panics
///
/// When the bound is over.
#[allow(clippy::disallowed_methods, reason = "it is a test kit, and this thread has nothing else to do")]
pub fn eventually_blocking<T, E: Debug>(bound: Duration, mut condition: impl FnMut() -> Result<T, E>) -> T {
    let begun = std::time::Instant::now();
    loop {
        match condition() {
            Ok(value) => return value,
            Err(error) => assert!(begun.elapsed() < bound, "not within {bound:?}: {error:?}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs an example of the documentation on three embedded masters of its own.
///
/// # Panics
///
/// When the example fails.
#[cfg(feature = "embedded")]
pub fn doc<F, E: Debug>(example: impl FnOnce(Vec<std::sync::Arc<dyn quorate::seam::Master>>) -> F)
where
    F: Future<Output = Result<(), E>>,
{
    let masters = EmbeddedMasters::new(3);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(example(masters.masters())).expect("the example works");
}

/// The same for an example of the blocking API, without a runtime.
///
/// # Panics
///
/// When the example fails.
#[cfg(feature = "embedded")]
pub fn doc_blocking<E: Debug>(
    example: impl FnOnce(Vec<std::sync::Arc<dyn quorate::seam::Master>>) -> Result<(), E>,
) {
    example(EmbeddedMasters::new(3).masters()).expect("the example works");
}
