//! Clients that try at the same moment, and do not wait, as a job does that several hosts start by
//! the clock. Nobody has the lock, and all masters answer: one client gets it.

use std::time::Duration;

use futures::future::join_all;
use quorate::compat::UnfencedLock;
use quorate::{Error, Redlock};
use quorate_testkit::{Masters, Proxy, Toxic, Way};

use crate::{PATIENT, answering, ms};

const CLIENTS: usize = 10;

/// How many rounds are under way at the same time, each for a name of its own.
const ABREAST: usize = 5;

type Kind = fn(&Redlock, String) -> UnfencedLock;

const LOCK: Kind = |redlock, name| redlock.lock(name).into();
const MUTEX: Kind = |redlock, name| redlock.mutex(name).into();
const FAIR: Kind = |redlock, name| redlock.fair_lock(name).into();
const WRITE: Kind = |redlock, name| redlock.write_lock(name).into();

/// How many rounds a test has; `QUORATE_TRIES` says how many times as many.
fn rounds(least: usize) -> usize {
    least * std::env::var("QUORATE_TRIES").map_or(1, |times| times.parse().unwrap())
}

async fn clients(urls: impl Iterator<Item = String> + Clone) -> Vec<Redlock> {
    let client = |_| crate::begin().masters(urls.clone()).timeout(PATIENT).build().unwrap();
    let all: Vec<Redlock> = (0..CLIENTS).map(client).collect();
    for client in &all {
        answering(client, urls.clone().count()).await;
    }
    all
}

/// How many of the clients get the lock. Each holds it until all of them have an answer.
async fn winners(clients: &[Redlock], kind: Kind, name: &str) -> usize {
    let tries = clients.iter().map(|client| {
        let lock = kind(client, name.to_owned());
        tokio::spawn(async move { lock.try_acquire().await })
    });
    let outcomes: Vec<_> = join_all(tries).await.into_iter().map(Result::unwrap).collect();
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(matches!(error, Error::Held { .. }), "{error}");
    }
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

async fn one_wins(masters: usize, delay: Duration, kind: Kind, rounds: usize) {
    let servers = Masters::start(masters);
    let proxies = join_all(servers.iter().map(|server| Proxy::start(server.address()))).await;
    let clients = clients(proxies.iter().map(Proxy::url)).await;
    for proxy in proxies.iter().filter(|_| !delay.is_zero()) {
        proxy.add(Way::Both, Toxic::Latency { delay, jitter: ms(5) });
    }
    for round in 0..rounds.div_ceil(ABREAST) {
        let names: Vec<String> = (0..ABREAST).map(|name| format!("{round}-{name}")).collect();
        let winners = join_all(names.iter().map(|name| winners(&clients, kind, name))).await;
        assert_eq!(winners, [1; ABREAST], "with {masters} masters, in round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_ten_that_try_at_once_gets_the_lock() {
    for masters in 1..=7 {
        one_wins(masters, Duration::ZERO, LOCK, rounds(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_ten_that_try_at_once_gets_the_lock_where_masters_are_far() {
    for masters in 1..=7 {
        one_wins(masters, ms(3), LOCK, rounds(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_ten_that_try_at_once_gets_a_lock_of_any_kind() {
    for kind in [MUTEX, FAIR, WRITE] {
        one_wins(4, ms(3), kind, rounds(10)).await;
    }
}
