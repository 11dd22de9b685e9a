//! Threads that take turns, without async. It needs nothing: its masters live in the process.

use quorate::{Error, Redlock};
use quorate_testkit::EmbeddedMasters;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Withdraws from a balance that does not lock by itself: it is read, and written a while later.
fn withdraw(redlock: &Redlock, balance: &AtomicU32, amount: u32) -> Outcome {
    // Waits for up to five seconds. From here on nobody else has account:42, and the lease is
    // renewed.
    let guard = match redlock.lock("account:42").wait(Duration::from_secs(5)).acquire_blocking() {
        Ok(guard) => guard,
        Err(Error::WaitTimedOut { holder, .. }) => return Err(format!("busy: {holder}").into()),
        Err(error) => return Err(error.into()), // it says what happened on every master
    };
    let seen = balance.load(Relaxed);
    guard.sleep_blocking(Duration::from_millis(20))?; // it takes its time; should the lease be lost, it ends here
    balance.store(seen - amount, Relaxed);
    guard.release_blocking()?; // or drop it: released in the background
    Ok(())
}

fn main() -> Outcome {
    let masters = EmbeddedMasters::new(3); // or servers: ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]
    let redlock = Redlock::builder().masters(&masters).build()?; // connects with its first use

    let balance = AtomicU32::new(100);
    std::thread::scope(|scope| {
        let threads = [10, 20, 30].map(|amount| {
            let (redlock, balance) = (&redlock, &balance);
            scope.spawn(move || withdraw(redlock, balance, amount))
        });
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    println!("{} are left", balance.into_inner());
    Ok(())
}
