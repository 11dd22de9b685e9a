//! Sets whose masters change while clients hold and wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quorate::{Builder, Error, Init, Redlock, SetChange};
use quorate_testkit::{Masters, RedisServer};

use crate::{PATIENT, SOON, begun, ms, until};

const MAX_TTL: Duration = Duration::from_secs(1);

fn client(servers: &[&RedisServer]) -> Builder {
    let urls = servers.iter().map(|server| server.url());
    Redlock::builder().masters(urls).max_ttl(MAX_TTL).ttl(MAX_TTL).wait(SOON).timeout(ms(200))
}

fn names(redlock: &Redlock) -> Vec<String> {
    redlock.master_status().iter().map(|status| status.master.to_string()).collect()
}

fn urls(servers: &[&RedisServer]) -> Vec<String> {
    servers.iter().map(|server| server.url()).collect()
}

/// Clients that take a few locks in turn, and see that each of them has it alone.
struct Load {
    stop: Arc<AtomicBool>,
    grants: Arc<AtomicUsize>,
    workers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn begin(clients: &[Redlock]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let grants = Arc::new(AtomicUsize::new(0));
        let taken: Arc<[AtomicBool]> = (0..3).map(|_| AtomicBool::new(false)).collect();
        let worker = |number: usize, redlock: Redlock| {
            let (stop, grants, taken) = (stop.clone(), grants.clone(), taken.clone());
            tokio::spawn(async move {
                let mut turn = number;
                while !stop.load(Ordering::Relaxed) {
                    turn += 1;
                    let name = turn % taken.len();
                    let guard = redlock.lock(format!("l{name}")).acquire().await;
                    let guard = guard.unwrap_or_else(|error| panic!("client {number}: {error:#}"));
                    assert!(!taken[name].swap(true, Ordering::SeqCst), "two hold l{name}");
                    tokio::task::yield_now().await;
                    assert!(guard.is_valid());
                    taken[name].store(false, Ordering::SeqCst);
                    guard.release().await.unwrap_or_else(|error| panic!("client {number}: {error:#}"));
                    grants.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let workers = clients.iter().cloned().enumerate();
        let workers =
            workers.flat_map(|(number, redlock)| [worker(number, redlock.clone()), worker(number, redlock)]);
        let workers = workers.collect();
        Self { stop, grants, workers }
    }

    /// Waits until there were some more grants.
    async fn goes_on(&self) {
        let before = self.grants.load(Ordering::Relaxed);
        until("grants", async || self.grants.load(Ordering::Relaxed) > before + 20).await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_changes_under_load_no_acquire_fails_and_leases_go_on() {
    let servers = Masters::start(6);
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    let clients = [first, client(&[a, b, c]).build().unwrap(), client(&[c, b, a]).build().unwrap()];
    let held = clients[1].lock("held").acquire().await.unwrap();
    let load = Load::begin(&clients);
    load.goes_on().await;
    let operator = client(&[a, b, c]).build().unwrap();
    let change = async |change: SetChange| operator.change_members(change).await.unwrap();
    for (what, now) in [
        (SetChange::add(d.url()), vec![a, b, c, d]),
        (SetChange::add(e.url()), vec![a, b, c, d, e]),
        (SetChange::remove(b.url()), vec![a, c, d, e]),
        (SetChange::replace(a.url(), f.url()), vec![c, d, e, f]),
    ] {
        change(what).await;
        assert_eq!(names(&operator), urls(&now));
        load.goes_on().await;
        assert!(held.is_valid());
        for redlock in &clients {
            let mut its = names(redlock);
            its.sort();
            let mut now = urls(&now);
            now.sort();
            assert_eq!(its, now);
        }
    }
    // One that is dead is replaced by one that was there before.
    c.kill();
    load.goes_on().await;
    change(SetChange::replace(c.url(), b.url())).await;
    load.goes_on().await;
    assert!(held.is_valid());
    held.release().await.unwrap();
    load.end().await;
}

/// Of three masters of a list that had four, two are enough to go on without the third.
#[tokio::test]
async fn a_master_that_died_after_another_left_is_replaced() {
    let servers = Masters::start(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    c.kill();
    a.kill();
    let operator = client(&[a, b, d]).build().unwrap();
    let _ = operator.inspect("l").await; // to know who answers
    operator.change_members(SetChange::replace(a.url(), e.url())).await.unwrap();
    assert_eq!(names(&operator), urls(&[b, d, e]));
    operator.lock("l").acquire().await.unwrap().release().await.unwrap();
}

/// A waiter had a place in its queue, and gives that up.
#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_master_that_has_left() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    let held = first.lock("l").acquire().await.unwrap();
    let other = client(&[a, b, c]).build().unwrap();
    let waiting = other.clone();
    let waiter = tokio::spawn(async move { waiting.lock("l").acquire().await });
    until("a waiter on c", async || c.command::<Vec<String>>(&["KEYS", "*waiting*"]).len() == 1).await;
    c.kill();
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    waiter.abort();
    let shutdown = other.shutdown(SOON / 2).await;
    assert!(shutdown.is_complete(), "{shutdown}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_client_with_an_old_list_finds_the_set_and_one_with_another_is_refused() {
    let servers = Masters::start(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    let guard = first.lock("l").acquire().await.unwrap();
    for list in [[a, b, c], [c, a, b], [a, b, d]] {
        let redlock = client(&list).build().unwrap();
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        assert!(matches!(error, Error::Held { .. }), "{error:#}");
        until("the list of the set", async || {
            let mut its = names(&redlock);
            its.sort();
            let mut now = urls(&[a, b, d]);
            now.sort();
            its == now
        })
        .await;
    }
    guard.release().await.unwrap();
    let redlock = client(&[a, b, e]).wait(ms(100)).build().unwrap();
    let _ = redlock.lock("l").try_acquire().await;
    until("a refusal", async || matches!(redlock.lock("l").try_acquire().await, Err(Error::OtherSet { .. })))
        .await;
    // What was removed is no member, and a client with only that finds its set all the same.
    let alone = client(&[c]).timeout(PATIENT / 10).build().unwrap();
    assert!(alone.lock("l").try_acquire().await.is_err());
}
