//! Two schedulers of which one works at a time, and somebody who watches who that is. It needs
//! nothing: its masters live in the process.

use std::time::Duration;

use quorate::fence::FencingToken;
use quorate::{Observed, Redlock};
use quorate_testkit::EmbeddedMasters;

/// Works as the leader until it has had enough. In a service this is the loop that never ends.
async fn schedule(name: &str, term: FencingToken) -> FencingToken {
    println!("{name} leads, in term {term}"); // to be written with whatever it changes: see quorate::fence
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("{name} has had enough");
    term
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let masters = EmbeddedMasters::new(3); // or servers: ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]

    // A process each, as a rule.
    let candidate = |name: &'static str| {
        let redlock = Redlock::builder().masters(&masters).build()?;
        Ok::<_, quorate::Error>(tokio::spawn(async move {
            let election = redlock.election("scheduler").ttl(Duration::from_secs(5));
            // Waits until it leads. Should that be lost, the work is dropped in time, and it waits
            // to lead again.
            election.lead(|leadership| async move { schedule(name, leadership.term()).await }).await
        }))
    };
    let (ada, bob) = (candidate("ada")?, candidate("bob")?);

    let watching = Redlock::builder().masters(&masters).build()?;
    let mut observer = watching.election("scheduler").look_every(Duration::from_millis(50)).observe()?;
    let watcher = tokio::spawn(async move {
        let mut terms = Vec::new();
        while terms.len() < 2 {
            let seen = observer.changed().await?;
            println!("seen: {seen}");
            if let Observed::Leader(leader) = seen {
                terms.extend(leader.term);
            }
        }
        Ok::<_, quorate::Error>(terms)
    });

    let mut terms = [ada.await??, bob.await??];
    terms.sort_unstable();
    assert_eq!(watcher.await??, terms, "each term is higher than the one before");
    Ok(())
}
