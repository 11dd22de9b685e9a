//! Hand-overs: one waiter is woken by a release, at once, whatever became of the others and of what
//! carries wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate::{Error, Guard, Redlock};
use quorate_testkit::{Masters, Proxy, RedisServer, eventually};
use tokio::sync::Barrier;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::faults::calls;
use crate::waiting::{hold, standing, waiter};
use crate::{PATIENT, SOON, builder, ms};

/// A bound for a hand-over: far below the TTLs here and in most tests, 30 seconds at least, after
/// which a waiter that was not woken would look by itself; and above what a busy machine stands
/// still.
const PROMPT: Duration = Duration::from_secs(10);

pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn clients(masters: &Masters, count: usize) -> Vec<Redlock> {
    (0..count).map(|_| builder(masters).ttl(LONG).wait(LONG).build().unwrap()).collect()
}

/// The waiter gets the lock at once.
pub(crate) async fn handed<G>(waiter: JoinHandle<Result<G, Error>>) -> G {
    tokio::time::timeout(PROMPT, waiter).await.expect("a prompt hand-over").unwrap().unwrap()
}

/// Somebody who stands first in every queue, and is not one of ours.
fn stranger(masters: &Masters, client: &str) {
    for server in masters.iter() {
        crate::queue_up(server, "lock", &format!("{client}:1"), 1);
    }
}

#[tokio::test]
async fn a_waiter_gets_the_lock_when_it_is_released_and_not_when_its_lease_ends() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let held = hold(&masters, &clients[0]).await;
        let waiting = waiter(clients[1].lock("l")).await;
        standing(masters.iter(), 1).await;
        let begun = Instant::now();
        held.release().await.unwrap();
        let next = handed(waiting).await;
        quickest = quickest.min(begun.elapsed());
        next.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
    assert!(quickest < ms(500), "the quickest hand-over took {quickest:?}");
}

#[tokio::test]
async fn a_waiter_gets_the_lock_at_once_with_two_of_five_masters_dead_or_one_frozen() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    for round in ["frozen while it waits", "frozen before", "dead while it waits", "dead before"] {
        let late = round.ends_with("waits");
        let fault = || match round.starts_with("frozen") {
            true => masters[0].freeze(),
            false => (0..2).for_each(|i| masters[i].kill()),
        };
        let held = clients[0].lock("l").acquire().await.unwrap();
        if !late {
            fault();
        }
        let waiting = waiter(clients[1].lock("l")).await;
        standing(masters.iter().skip(2), 1).await;
        if late {
            fault();
        }
        held.release().await.unwrap();
        handed(waiting).await.release().await.unwrap();
        masters[0].thaw();
        let alive = masters.iter().skip(2);
        eventually(SOON, || {
            if alive.clone().all(|server| server.keys().is_empty()) { Ok(()) } else { Err(round) }
        })
        .await;
    }
}

#[tokio::test]
async fn a_waiter_gets_the_lock_of_a_holder_that_died_soon_after_its_ttl() {
    let masters = Masters::start(5);
    let ttl = ms(1_500);
    let client = || builder(&masters).ttl(ttl).timeout(ms(700)).build().unwrap();
    let (holder, next) = (client(), client());
    let _held = holder.lock("l").ttl(ttl).no_renewal().acquire().await.unwrap();
    let begun = Instant::now();
    let waiting = waiter(next.lock("l")).await;
    let next = tokio::time::timeout(ttl + PROMPT, waiting).await.unwrap().unwrap().unwrap();
    assert!(begun.elapsed() >= ttl / 2, "it was not held: {:?}", begun.elapsed());
    let _ = next.release().await; // a stall of this machine may end a short lease
}

#[tokio::test]
async fn a_dead_waiter_is_skipped_at_once() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    let held = hold(&masters, &clients[0]).await;
    let waiting = waiter(clients[1].lock("l")).await;
    standing(masters.iter(), 1).await;
    for i in 0..20 {
        stranger(&masters, &format!("00000000-0000-4000-8000-{i:012}"));
    }
    standing(masters.iter(), 21).await;
    held.release().await.unwrap();
    handed(waiting).await.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// It listens, and stands first, and does nothing when it is woken: its process stands still.
#[tokio::test]
async fn a_frozen_waiter_delays_the_next_one_by_a_ttl_for_each_place_and_the_others_by_nothing() {
    const FROZEN: &str = "00000000-0000-4000-8000-00000000000f";
    let masters = Masters::start(5);
    let mut ears: Vec<_> = masters
        .urls()
        .into_iter()
        .map(|url| redis::Client::open(url).unwrap().get_connection().unwrap())
        .collect();
    for ear in &mut ears {
        redis::cmd("SUBSCRIBE").arg(format!("quorate:wake:{FROZEN}")).exec(ear).unwrap();
    }
    // So long that the holder has it until all stand in the queues, though the machine stands still
    // for a second or two.
    let ttl = ms(3_000);
    let client = || builder(&masters).ttl(ttl).timeout(ms(1_500)).build().unwrap();
    let (holder, first, second) = (client(), client(), client());
    let held = holder.lock("l").acquire().await.unwrap();
    stranger(&masters, FROZEN);
    let waiting = waiter(first.lock("l")).await;
    standing(masters.iter(), 2).await;
    let last = waiter(second.lock("l")).await;
    standing(masters.iter(), 3).await;
    let begun = Instant::now();
    held.release().await.unwrap();
    let (one, other) = (handed_within(ttl * 2 + PROMPT, waiting), handed_within(ttl * 3 + PROMPT, last));
    tokio::join!(one, other);
    assert!(begun.elapsed() < ttl * 3 + PROMPT, "{:?}", begun.elapsed());
}

async fn handed_within(bound: Duration, waiter: JoinHandle<Result<Guard, Error>>) {
    let guard = tokio::time::timeout(bound, waiter).await.expect("the time bound").unwrap().unwrap();
    let _ = guard.release().await; // a stall of this machine may end a short lease
}

#[tokio::test]
async fn a_release_wakes_one_however_many_wait_and_however_long_it_was_held() {
    let masters = Masters::start(5);
    for (count, held) in [(3u32, ms(5)), (10, ms(5)), (10, ms(300))] {
        let clients = clients(&masters, count as usize + 1);
        let guard = hold(&masters, &clients[0]).await;
        let mut waiters = JoinSet::new();
        for client in &clients[1..] {
            let waiting = waiter(client.lock("l")).await;
            waiters.spawn(async move {
                let guard = waiting.await.unwrap().unwrap();
                tokio::time::sleep(held).await; // it works
                guard.release().await.unwrap();
            });
        }
        standing(masters.iter(), count as usize).await;
        let told = |command| -> u32 { masters.iter().map(|server| calls(server, command)).sum() };
        let (scripts, wakes) = (told("evalsha"), told("publish"));
        guard.release().await.unwrap();
        tokio::time::timeout(SOON * 2, waiters.join_all()).await.unwrap();
        eventually(SOON, || masters.empty()).await;
        let (scripts, wakes) = (told("evalsha") - scripts, told("publish") - wakes);
        assert!(scripts < count * 25, "{scripts} calls for {count} hand-overs, held for {held:?}");
        assert!(wakes < count * 10, "{wakes} wake-ups for {count} hand-overs, held for {held:?}");
    }
}

/// Each client takes the lock so often, and nobody else has it meanwhile.
pub(crate) async fn take_turns(clients: &[Redlock], turns: usize, held: Duration, bound: Duration) {
    let taken = Arc::new(AtomicBool::new(false));
    let mut all = JoinSet::new();
    for client in clients {
        let (lock, taken) = (client.lock("l"), taken.clone());
        all.spawn(async move {
            for _ in 0..turns {
                let guard = lock.acquire().await.unwrap();
                assert!(!taken.swap(true, Ordering::SeqCst), "two have it");
                tokio::time::sleep(held).await;
                taken.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        });
    }
    let took = tokio::time::timeout(bound, all.join_all()).await;
    assert!(took.is_ok(), "some had not had their {turns} turns within {bound:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_clients_all_get_their_turns() {
    let masters = Masters::start(5);
    take_turns(&clients(&masters, 16), 10, ms(2), SOON * 2).await;
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_come_at_once_one_has_the_lock_at_once() {
    let masters = Masters::start(5);
    all_come_at_once(&masters, &clients(&masters, 12), 10).await;
}

/// Each is near to one master and takes it before anybody else can, so nobody has a quorum: one
/// goes on, and the others withdraw.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_clients_that_split_the_masters_among_them_one_has_the_lock_at_once() {
    let masters = Masters::start(5);
    let (mut clients, mut far) = (Vec::new(), Vec::new());
    for near in 0..5 {
        let mut urls = masters.urls();
        for (i, server) in masters.iter().enumerate().filter(|(i, _)| *i != near) {
            let proxy = Proxy::start_slow(server.address(), ms(20)).await;
            urls[i] = proxy.url();
            far.push(proxy);
        }
        let builder = crate::begin().masters(urls).ttl(LONG).timeout(PATIENT);
        clients.push(builder.wait(LONG).build().unwrap());
    }
    all_come_at_once(&masters, &clients, 6).await;
}

/// In the first round they have to begin to listen; in the others they hear each other.
async fn all_come_at_once(masters: &Masters, clients: &[Redlock], rounds: usize) {
    for round in 0..rounds {
        let together = Arc::new(Barrier::new(clients.len()));
        let mut all = JoinSet::new();
        for client in clients {
            let (lock, together) = (client.lock("l"), together.clone());
            all.spawn(async move {
                together.wait().await;
                let begun = Instant::now();
                let guard = tokio::time::timeout(SOON, lock.acquire()).await.expect("its turn").unwrap();
                let took = begun.elapsed();
                guard.release().await.unwrap();
                took
            });
        }
        let took = all.join_all().await;
        assert!(took.iter().min().unwrap() < &PROMPT, "round {round}: {took:?}");
        eventually(SOON, || masters.empty()).await;
    }
}

/// In the same process it leaves the line; in another it has to pass on the wake-up that it was
/// just given.
#[tokio::test]
async fn a_waiter_cancelled_in_the_moment_of_the_release_passes_the_wake_up_on() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    for round in 0..40 {
        let held = hold(&masters, &clients[0]).await;
        let token = CancellationToken::new();
        let first = waiter(clients[1].lock("l").cancelled_by(token.clone())).await;
        standing(masters.iter(), 1).await;
        let (places, next) = if round % 4 == 0 { (1, &clients[1]) } else { (2, &clients[2]) };
        let second = waiter(next.lock("l")).await;
        standing(masters.iter(), places).await;
        let cancelling = tokio::spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(50) * round {
                tokio::task::yield_now().await;
            }
            token.cancel();
        });
        held.release().await.unwrap();
        cancelling.await.unwrap();
        match first.await.unwrap() {
            Ok(guard) => drop(guard),
            Err(error) => assert!(matches!(error, Error::Cancelled { .. }), "round {round}: {error}"),
        }
        let second = tokio::time::timeout(PROMPT, second).await;
        let guard =
            second.unwrap_or_else(|_| panic!("round {round}: the wake-up was lost")).unwrap().unwrap();
        guard.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

/// A place that is left behind would take a wake-up from those who wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_ends_while_masters_are_silent_leaves_no_place_when_they_go_on() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    for cancelled in [true, false] {
        let client = builder(&masters).timeout(ms(300)).build().unwrap();
        let held = [hold(&masters, &clients[0]).await, clients[0].lock("other").acquire().await.unwrap()];
        let other = waiter(client.lock("other")).await; // for whom the client listens
        let token = CancellationToken::new();
        let wait = if cancelled { LONG } else { ms(5_000) }; // the masters are silent before it is over
        let first = waiter(client.lock("l").wait(wait).cancelled_by(token.clone())).await;
        standing(masters.iter(), 1).await;
        let second = waiter(clients[1].lock("l")).await;
        standing(masters.iter(), 2).await;
        masters.iter().for_each(RedisServer::freeze);
        client.lock("x").inspect().await.unwrap(); // it finds that they are silent
        if cancelled {
            token.cancel();
        }
        let error = first.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. } | Error::NoQuorum { .. }), "{error}");
        masters.iter().for_each(RedisServer::thaw);
        standing(masters.iter(), 1).await;
        drop(held);
        for waiter in [second, other] {
            handed(waiter).await.release().await.unwrap();
        }
        eventually(SOON, || masters.empty()).await;
    }
}

/// What is left of a client that died in the middle: it has one master, never withdraws, and comes
/// first in the order of text, so that the rule for split votes favours it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_owner_with_a_minority_does_not_keep_the_others_from_the_lock() {
    let masters = Masters::start(3);
    let dead = "00000000-0000-0000-0000-000000000001:1";
    crate::give(&masters[2], "l", dead, Duration::from_secs(600));
    take_turns(&clients(&masters, 6), 20, ms(2), SOON * 2).await;
}
