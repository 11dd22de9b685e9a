//! Holds a lock while it works: the example of the README. `QUORATE_MASTERS` names the masters.

use quorate::{Init, Redlock};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let redlock = Redlock::from_env()?; // or Redlock::builder().masters(["redis://...", ...]).build()?
    redlock.init(Init::new()).await?; // begins the set of masters: 35 s, once, as they may have granted locks before

    let guard = redlock.lock("invoice:42").await?; // waits up to 60 s; renews the lease of 10 s until the drop
    let work = async { println!("nobody else has invoice:42") };
    guard.run(work).await?; // if the lease cannot be renewed: drops the work in time, returns an error
    drop(guard); // releases the lock in the background, also if `main` ends here
    Ok(())
}
