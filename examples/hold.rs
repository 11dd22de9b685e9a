//! Holds a lock on the masters in `QUORATE_MASTERS` while it works: the example of the README.

use quorate::{Error, Redlock};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters = std::env::var("QUORATE_MASTERS")?; // redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
    let redlock = Redlock::builder().masters(masters.split(',')).build()?; // connects with its first use

    // Waits for up to five seconds. From here on nobody else has invoice:42, for guard.remaining().
    let lock = redlock.lock("invoice:42").ttl(Duration::from_secs(10)).wait(Duration::from_secs(5));
    let guard = match lock.acquire().await {
        Ok(guard) => guard,
        Err(Error::WaitTimedOut { holder, .. }) => return Err(format!("busy: {holder}").into()),
        Err(error) => return Err(error.into()), // it says what happened on every master
    };

    println!("working as {}, with {:?} left", guard.owner(), guard.remaining());
    guard.extend(Duration::from_secs(30)).await?; // fails without harm: the lease stands as it did

    guard.release().await?; // or drop it: released in the background
    Ok(())
}
