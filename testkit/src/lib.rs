//! Real Redis servers to test locks against, and the faults to put them through.
//!
//! It needs `redis-server` on the path, and Linux: it looks at `/proc` to know that a process has stopped. Nothing it
//! starts outlives the process that started it, however that ends.
//!
//! - [`RedisServer`] is one server: start, freeze, thaw, kill, restart empty. [`Masters`] is several.
//! - [`CutProxy`] stands between a client and a server and cuts connections at chosen moments.
//! - [`DelayProxy`] stands there as well and delays every byte, as a slow network does.
//! - [`cancel_at_every_poll`] drops an operation after 0, 1, 2, … polls.
//! - [`eventually`] waits for a condition, with a bound.

mod cancel;
mod cut;
mod delay;
mod masters;
mod server;
#[cfg(test)]
mod tests;

pub use cancel::cancel_at_every_poll;
pub use cut::{Cut, CutProxy};
pub use delay::DelayProxy;
pub use masters::Masters;
pub use server::{RedisServer, StartError};

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

/// Waits until `condition` answers `Ok`, and panics with its last `Err` when that does not happen within `bound`.
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

/// Runs an example of the documentation against three servers of its own.
///
/// # Panics
///
/// When the example fails.
pub fn doc<F, E: Debug>(example: impl FnOnce(Vec<String>) -> F)
where
    F: Future<Output = Result<(), E>>,
{
    let masters = Masters::start(3);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(example(masters.urls())).expect("the example works");
}
