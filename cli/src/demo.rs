//! `quorate demo`: the lock at work on five servers of its own.

use std::time::Duration;

use quorate::{Error, Guard, Init, Outcome, Redlock, SetError, Vote};
use quorate_cli::out;
use quorate_testkit::{Masters, RedisServer};

use crate::args::DemoArgs;
use crate::exit::{self, Code, Failure};

const LOCK: &str = "invoice:42";

/// As short as leases may be here, so that a master that forgot its locks is back soon.
const MAX_TTL: Duration = Duration::from_secs(2);

pub(crate) async fn demo(args: DemoArgs) -> Result<Code, Failure> {
    // One is started first: it tells what is wrong if none can be.
    drop(RedisServer::try_start(&[]).map_err(|error| {
        let install = "the demo needs redis-server; on Debian: apt-get install redis-server";
        Failure::new(exit::FAILED, format!("{install}\n{error}"))
    })?);
    let mut show = Show::new(args.pause).await?;
    show.grant_and_refusal().await?;
    show.two_dead().await?;
    show.three_dead().await?;
    show.masters_back().await?;
    Ok(exit::OK)
}

/// Makes masters that were just started a set.
async fn begin(redlock: &Redlock) -> Result<(), SetError> {
    let fingerprint = redlock.fingerprint().await?;
    redlock.init(Init::new().never_used(fingerprint)).await
}

struct Show {
    masters: Masters,
    first: Redlock,
    second: Redlock,
    pause: Duration,
}

impl Show {
    async fn new(pause: Duration) -> Result<Self, Failure> {
        let masters = Masters::start(5);
        let ports: Vec<_> = masters.iter().map(|server| server.port().to_string()).collect();
        out!("Five independent redis-servers are up, on ports {}.", ports.join(", "));
        let client = || Redlock::builder().masters(masters.urls()).max_ttl(MAX_TTL).ttl(MAX_TTL).build();
        let first = client()?;
        let second = client()?;
        begin(&first).await?;
        out!(
            "They are one set now, and new: quorate init --never-used. A lock needs a majority of them: three."
        );
        Ok(Self { masters, first, second, pause })
    }

    async fn grant_and_refusal(&mut self) -> Result<(), Failure> {
        self.step("The first client asks for the lock.").await;
        let warm = self.first.lock(LOCK).acquire().await?; // connects
        warm.release().await?;
        let guard = self.acquire_and_tell(&self.first).await?;
        let seen = self.first.lock(LOCK).inspect().await?;
        let on = seen.holder().map_or(0, |holder| holder.masters);
        out!("  All in all {on} of 5 masters have granted it. Its owner is {}.", guard.owner());

        self.step("A second client asks for the same lock.").await;
        let begun = self.second.now();
        match self.second.lock(LOCK).try_acquire().await {
            Err(Error::Held { holder, .. }) => {
                out!("  Refused in {}: it is {holder}.", self.since(begun));
            }
            other => return Err(surprise(other)),
        }
        guard.release().await?;
        out!("  The first client releases it.");
        Ok(())
    }

    async fn two_dead(&mut self) -> Result<(), Failure> {
        self.step("Two masters are killed (kill -9).").await;
        self.masters[0].kill();
        self.masters[1].kill();
        let guard = self.acquire_and_tell(&self.second).await?;
        out!("  Three of five are a majority still, and nobody waits for the dead.");
        guard.release().await?;
        Ok(())
    }

    async fn three_dead(&mut self) -> Result<(), Failure> {
        self.step("A third master is killed.").await;
        self.masters[2].kill();
        let begun = self.first.now();
        match self.first.lock(LOCK).try_acquire().await {
            Err(error @ Error::NoQuorum { .. }) => {
                out!(
                    "  No lock, after {}, and a clear error with what happened on each master:",
                    self.since(begun)
                );
                for vote in error.votes() {
                    out!("    {vote}");
                }
                Ok(())
            }
            other => Err(surprise(other)),
        }
    }

    async fn masters_back(&mut self) -> Result<(), Failure> {
        self.step(
            "The three are started again, without their keys. Most masters have no record of the set now.",
        )
        .await;
        for dead in 0..3 {
            self.masters[dead].restart();
        }
        out!(
            "  It has to begin again: quorate init. That takes as long as the longest lease, and some time more."
        );
        let begun = self.first.now();
        self.first.init(Init::new()).await?;
        let guard = self.first.lock(LOCK).acquire().await?;
        out!("  Granted again, {} after they were back.", self.since(begun));
        guard.release().await?;
        out!("\nThat was quorate. Try: quorate run {LOCK} --master redis://... -- your command");
        Ok(())
    }

    async fn acquire_and_tell(&self, client: &Redlock) -> Result<Guard, Failure> {
        let begun = client.now();
        let guard = client.lock(LOCK).acquire().await?;
        let took = self.since(begun);
        let granted = |vote: &&Vote| vote.outcome == Outcome::Granted;
        let votes = guard.votes().iter().filter(granted).count();
        out!(
            "  Granted in {took}, with the first {votes} votes. The lease lasts for {:.1?}.",
            guard.remaining()
        );
        Ok(guard)
    }

    fn since(&self, begun: quorate::Moment) -> String {
        format!("{:.1?}", self.first.now().since(begun))
    }

    async fn step(&self, what: &str) {
        tokio::time::sleep(self.pause).await;
        out!("\n{what}");
        tokio::time::sleep(self.pause).await;
    }
}

fn surprise(what: Result<Guard, Error>) -> Failure {
    match what {
        Ok(_) => Failure::new(exit::FAILED, "the lock was granted, and should not have been"),
        Err(error) => error.into(),
    }
}
