//! Holds a lock while it works: the example of the README. `QUORATE_MASTERS` names the masters, of
//! which `quorate init` made a set.

use quorate::Redlock;

#[tokio::main]
async fn main() -> Result<(), quorate::Error> {
    let redlock = Redlock::from_env()?; // or Redlock::builder().masters(["redis://...", ...]).build()?
    let guard = redlock.lock("invoice:42").await?; // waits up to 60 s (`wait`); renews the lease of 10 s (`ttl`)
    let work = async { println!("nobody else has invoice:42") };
    guard.run(work).await?; // if the lease cannot be renewed: drops the work before it ends, and returns an error
    drop(guard); // ends the renewal, and releases the lock in the background, also if `main` ends here
    Ok(())
}
