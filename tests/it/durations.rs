//! Any duration may be given to any setter: it is taken, or refused with an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use quorate::{Builder, Election, Lock, fence};
use quorate_testkit::RedisServer;

use crate::{begin, ms};

/// Setters of a duration, by name.
type Setters<T> = [(&'static str, fn(T, Duration) -> T)];

const BUILDER: &Setters<Builder> = &[
    ("ttl", Builder::ttl),
    ("max_ttl", Builder::max_ttl),
    ("wait", Builder::wait),
    ("timeout", Builder::timeout),
];

const LOCK: &Setters<Lock> = &[
    ("ttl", Lock::ttl),
    ("lock_delay", Lock::lock_delay),
    ("renew_every", Lock::renew_every),
    ("hold_at_most", Lock::hold_at_most),
    ("heartbeat", Lock::heartbeat),
    ("wait", Lock::wait),
    ("poll_every", |lock, interval| lock.poll_every(interval, 2)),
];

const ELECTION: &Setters<Election> = &[
    ("ttl", Election::ttl),
    ("wait", Election::wait),
    ("lock_delay", Election::lock_delay),
    ("look_every", Election::look_every),
];

fn any_duration() -> impl Strategy<Value = Duration> {
    let near = |at: Duration| (0u64..3).prop_map(move |by| at.saturating_add(Duration::from_nanos(by)));
    prop_oneof![
        2 => Just(Duration::MAX),
        1 => Just(Duration::MAX - ms(10_000)), // with a TTL of 10 s it is the longest
        1 => near(Duration::from_nanos(u64::MAX - 1)),
        1 => near(Duration::from_millis(u64::MAX - 1)),
        1 => near(quorate::config::MAX_TTL - Duration::from_nanos(1)),
        2 => (0u64..30_000).prop_map(ms),
        1 => any::<Duration>(),
    ]
}

/// Some options, each by its place in a table and with its value.
fn options<T>(table: &[T]) -> impl Strategy<Value = Vec<(usize, Duration)>> + use<T> {
    proptest::collection::vec((0..table.len(), any_duration()), 1..4)
}

fn with<T>(table: &Setters<T>, options: &[(usize, Duration)], bare: T) -> T {
    options.iter().fold(bare, |built, (option, value)| (table[*option].1)(built, *value))
}

#[test]
fn no_duration_makes_a_client_panic() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let redlock = begin().master(server.url()).wait(ms(5)).build().unwrap();
    let names = Arc::new(AtomicUsize::new(0));
    let name = || format!("l{}", names.fetch_add(1, Ordering::Relaxed));
    // What is taken may wait for as long as it says.
    let moment = ms(if cfg!(debug_assertions) { 10 } else { 5 });
    let held = runtime.block_on(redlock.lock("held").acquire()).unwrap();
    proptest!(ProptestConfig::with_cases(96), |(
        builder in options(BUILDER), lock in options(LOCK), election in options(ELECTION), time in any_duration(),
    )| {
        let _ = with(BUILDER, &builder, begin().master(server.url())).build();
        runtime.block_on(async {
            if let Ok(Ok(guard)) = tokio::time::timeout(moment, with(LOCK, &lock, redlock.lock(name())).acquire()).await {
                let _ = guard.extend(time).await;
                guard.touch();
                let _ = tokio::time::timeout(moment, guard.lost()).await;
            }
            let _ = tokio::time::timeout(moment, with(LOCK, &lock, redlock.lock("held")).acquire()).await;
            let _ = tokio::time::timeout(moment, redlock.lock("held").lock_delay(time).acquire()).await;
            let election = with(ELECTION, &election, redlock.election(name()));
            let _ = tokio::time::timeout(moment, election.campaign()).await;
            if let Ok(mut observer) = election.observe() {
                let _ = tokio::time::timeout(moment, observer.changed()).await;
            }
        });
        let _ = fence::set_args(7u64, "value", Some(time));
        prop_assert!(held.is_valid(), "its client goes on");
    });
    let handed = runtime.block_on(held.hand_over()).unwrap();
    let adopted = runtime.block_on(redlock.lock("held").ttl(Duration::MAX).adopt(&handed));
    adopted.unwrap_err();
    assert!(runtime.block_on(redlock.shutdown(Duration::MAX)).is_complete());
}

/// The tables have every setter that there is.
#[test]
fn every_setter_of_a_duration_is_tried() {
    fn names<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
        table.iter().map(|(name, _)| *name).collect()
    }
    for (file, tried) in [("builder", names(BUILDER)), ("lock", names(LOCK)), ("election", names(ELECTION))] {
        let path = format!("{}/src/{file}.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).unwrap();
        let setters = source.lines().filter_map(|line| {
            let (name, arguments) = line.trim().strip_prefix("pub fn ")?.split_once("(mut self, ")?;
            arguments.contains(": Duration").then_some(name)
        });
        let setters: Vec<&str> = setters.collect();
        assert_eq!(setters.len(), tried.len(), "{file}: {setters:?}");
        assert!(setters.iter().all(|setter| tried.contains(setter)), "{file}: {setters:?}");
    }
}
