//! Holds a lock while it works: the example of the README. It needs nothing: its masters live in
//! the process.

use quorate::{Error, Redlock};
use quorate_testkit::EmbeddedMasters;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters = EmbeddedMasters::new(3); // or servers: ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]
    let redlock = Redlock::builder().masters(&masters).build()?; // connects with its first use

    // Waits for up to five seconds. From here on nobody else has invoice:42, and the lease is
    // renewed.
    let guard = match redlock.lock("invoice:42").wait(Duration::from_secs(5)).acquire().await {
        Ok(guard) => guard,
        Err(Error::WaitTimedOut { holder, .. }) => return Err(format!("busy: {holder}").into()),
        Err(error) => return Err(error.into()), // {error:#} has every master's vote
    };

    let work = async {
        println!("working as {}, with {:?} left", guard.owner(), guard.remaining());
        Ok::<(), Box<dyn std::error::Error>>(()) // or an error of yours
    };
    guard.run(work).await?; // should the lease be lost, the work is dropped before it ends

    guard.release().await?; // or drop it: released in the background
    Ok(())
}
