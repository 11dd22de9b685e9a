//! This library, by its public API.

use std::time::{Duration, Instant};

use quorate::{Builder, Outcome, Redlock, compat};

use super::{Client, TTL};
use crate::measure::Cycle;

/// The library's own default for how long one master may take.
pub(crate) const TIMEOUT: Duration = quorate::config::DEFAULT_TIMEOUT;

/// Enough for a process that runs under valgrind.
const LONG_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct Quorate {
    pub(crate) redlock: Redlock,
    kind: Kind,
}

/// What makes a lock.
type Kind = fn(&Redlock, String) -> compat::UnfencedLock;

/// A client's locks of the usual kind.
const USUAL: Kind = |redlock, name| redlock.lock(name).into();

/// The other kinds, with the name of a contender that has locks of this kind.
pub(crate) const KINDS: [(&str, Kind); 8] = [
    ("quorate, fair", |redlock, name| redlock.fair_lock(format!("{name}-fair")).into()),
    ("quorate, mutex", |redlock, name| redlock.mutex(name).into()),
    ("quorate, plain mutex", |redlock, name| redlock.plain_mutex(name)),
    ("quorate, redisson", |redlock, name| redlock.redisson_lock(name)),
    ("quorate, all of two", |redlock, name| {
        redlock.lock_all([format!("{name}-a"), format!("{name}-b")]).into()
    }),
    ("quorate, semaphore", |redlock, name| redlock.semaphore(format!("{name}-permits"), 10).into()),
    ("quorate, read", |redlock, name| redlock.read_lock(format!("{name}-rw")).into()),
    ("quorate, write", |redlock, name| redlock.write_lock(format!("{name}-rw")).into()),
];

/// A client of masters that are new, and vote at once. It waits long for them: on a busy machine a
/// good one may stall.
pub(crate) fn new(masters: &[String]) -> Builder {
    Redlock::builder().masters(masters).ttl(TTL).timeout(LONG_TIMEOUT).all_new()
}

impl Quorate {
    /// One with the usual locks.
    pub(crate) fn new(builder: Builder) -> Self {
        Self { redlock: builder.build().unwrap(), kind: USUAL }
    }

    /// One with locks of another kind, whose names no other contender has.
    pub(crate) fn of(kind: Kind, masters: &[String]) -> Self {
        Self { redlock: new(masters).prefix("kinds:").build().unwrap(), kind }
    }

    /// One with the library's own time-out, for masters that fail.
    pub(crate) fn with_default_timeout(masters: &[String]) -> Self {
        Self::new(new(masters).timeout(TIMEOUT))
    }

    /// Waits until the client has an answer from so many masters, and knows that the others are out
    /// of reach.
    pub(crate) async fn knows(&self, answering: usize) {
        loop {
            let seen = self.redlock.lock("look").inspect().await;
            let votes = seen.iter().flat_map(|seen| seen.votes());
            let unreachable = votes.filter(|vote| matches!(vote.outcome, Outcome::Unreachable(_))).count();
            if seen.is_ok_and(|seen| {
                seen.answered() == answering && unreachable == seen.votes().len() - answering
            }) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Client for Quorate {
    const NAME: &'static str = "quorate";
    const REUSED: &'static str = "quorate, names reused";
    const ONE_THREAD: &'static str = "quorate, one thread";

    async fn cycle(&self, name: String) -> Option<Cycle> {
        let began = Instant::now();
        let guard = (self.kind)(&self.redlock, name).try_acquire().await.ok()?;
        let granted = Instant::now();
        guard.release().await.ok()?;
        Some(Cycle { acquire: granted - began, release: granted.elapsed() })
    }
}
