//! Fencing tokens: higher with every grant, whatever happens to the masters, and in one round trip.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate::{Builder, Error, Loss, Redlock, Standing};
use quorate_testkit::{Masters, RedisServer};

use crate::faults::calls;
use crate::{SOON, TTL, answering, builder, ms, on_all, patient, until};

/// How many grants; `QUORATE_GRANTS` says otherwise.
fn grants() -> u64 {
    std::env::var("QUORATE_GRANTS").ok().map_or(1_500, |grants| grants.parse().unwrap())
}

const CLIENTS: usize = 32;

/// One grant: when it was asked for and when it was there, on one clock.
#[derive(Clone, Copy, Debug)]
struct Granted {
    asked: Instant,
    at: Instant,
    token: u64,
}

/// Each token is higher than those of all grants that were there before it was asked for.
fn rise(mut granted: Vec<Granted>) {
    let mut tokens: Vec<_> = granted.iter().map(|granted| granted.token).collect();
    tokens.sort_unstable();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "each is another one");
    let mut by_time = granted.clone();
    by_time.sort_by_key(|granted| granted.at);
    granted.sort_by_key(|granted| granted.asked);
    let (mut there, mut highest) = (by_time.iter().peekable(), 0);
    for next in &granted {
        while let Some(before) = there.next_if(|before| before.at < next.asked) {
            highest = highest.max(before.token);
        }
        assert!(next.token > highest, "{next:?} is not above {highest}");
    }
}

#[test]
#[should_panic(expected = "is not above 9")]
fn the_check_can_fail() {
    let now = Instant::now();
    let granted = |after, token| Granted { asked: now + ms(after), at: now + ms(after + 1), token };
    rise(vec![granted(0, 5), granted(10, 9), granted(20, 7)]);
}

#[tokio::test]
async fn a_token_rises_with_every_grant_and_stays_where_an_owner_enters_again() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let mut before = 0;
    for _ in 0..5 {
        let outer = lock.acquire().await.unwrap();
        let inner = lock.acquire().await.unwrap();
        outer.extend(TTL).await.unwrap();
        assert!(outer.fencing_token().get() > before && inner.fencing_token() == outer.fencing_token());
        before = outer.fencing_token().get();
        inner.release().await.unwrap();
        outer.release().await.unwrap();
    }
}

#[tokio::test]
async fn whoever_adopts_a_lock_has_a_higher_token_than_whoever_handed_it_over() {
    let masters = Masters::start(3);
    let (one, other) = (patient(&masters), patient(&masters));
    let guard = one.lock("l").acquire().await.unwrap();
    let before = guard.fencing_token();
    let token = guard.hand_over().await.unwrap();
    let adopted = other.lock("l").adopt(&token).await.unwrap();
    assert!(adopted.fencing_token() > before);
    adopted.extend(TTL).await.unwrap();
    adopted.release().await.unwrap();
    assert!(one.lock("l").acquire().await.unwrap().fencing_token() > before);
}

/// A master that was not there for the last grants has a lower counter, and a record of one that
/// came to nothing a higher.
#[tokio::test]
async fn masters_that_give_different_tokens_are_brought_to_the_highest() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    answering(&redlock, 3).await;
    let ahead = |server: &RedisServer, by: u64| {
        let now: Vec<String> = server.command(&["TIME"]);
        let token = now[0].parse::<u64>().unwrap() * 1_000_000 + by * 1_000_000;
        let _: i64 = server.command(&["HSET", "quorate:{l}", "kind", "lock", "fence", &token.to_string()]);
        token
    };
    let (one, other) = (ahead(&masters[0], 100), ahead(&masters[1], 200));
    let guard = redlock.lock("l").acquire().await.unwrap();
    assert!(guard.fencing_token().get() > one.min(other));
    let entries = || -> Vec<Option<String>> {
        masters.iter().map(|server| server.command(&["HGET", "quorate:{l}", "x"])).collect()
    };
    until("a majority with this token", async || {
        let token = guard.fencing_token().to_string();
        let same = |entry: &&String| entry.split(' ').nth(1) == Some(&token);
        entries().iter().flatten().filter(same).count() >= 2
    })
    .await;
    guard.extend(TTL).await.unwrap();
    let before = guard.fencing_token();
    guard.release().await.unwrap();
    assert!(redlock.lock("l").acquire().await.unwrap().fencing_token() > before);
}

/// What servers were asked, beyond an acquire and a release each. A cycle begins when all masters
/// have had the one before. On a busy machine a master may otherwise hear of a grant after the next
/// one: then its token is another, and a second round is due.
#[tokio::test]
async fn a_token_costs_no_second_round_trip() {
    const CYCLES: u32 = 150;
    let masters = Masters::start(5);
    let clients: Vec<_> = (0..4).map(|_| patient(&masters)).collect();
    for client in &clients {
        answering(client, 5).await;
    }
    let asked = || masters.iter().map(|server| calls(server, "evalsha")).sum::<u32>();
    let before = asked();
    for cycle in 1..=CYCLES {
        let redlock = &clients[cycle as usize % clients.len()];
        redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
        until("the last release", async || asked() >= before + 2 * 5 * cycle).await;
    }
    let beyond = asked() - before - 2 * 5 * CYCLES;
    println!("{CYCLES} grants: {beyond} calls too many");
    assert!(beyond * 100 <= 5 * CYCLES, "{beyond} calls too many: more than one grant of a hundred");
}

/// One after the other, each for a while: frozen, killed and back, or back without its keys.
async fn harm(masters: &Mutex<Masters>, watcher: &Redlock, stop: &AtomicBool) -> usize {
    let mut harmed = 0;
    while !stop.load(Ordering::Relaxed) {
        let victim = harmed % 5;
        match harmed % 3 {
            0 => masters.lock().unwrap()[victim].freeze(),
            1 => masters.lock().unwrap()[victim].kill(),
            _ => tokio::task::block_in_place(|| masters.lock().unwrap()[victim].restart_empty()),
        }
        tokio::time::sleep(ms(150)).await;
        match harmed % 3 {
            0 => masters.lock().unwrap()[victim].thaw(),
            1 => tokio::task::block_in_place(|| masters.lock().unwrap()[victim].restart()),
            _ => {}
        }
        harmed += 1;
        let trusted = async || {
            let _ = watcher.lock("x").inspect().await; // so that it connects
            watcher.master_status()[victim].standing == Standing::Trusted
        };
        until("the master to have its vote again", trusted).await;
    }
    harmed
}

/// So many clients of five masters, which ask while these are harmed. Answers how often they were.
pub(crate) async fn while_harmed(count: usize, asking: impl AsyncFnOnce(&[Redlock])) -> usize {
    let ttl = Duration::from_secs(2);
    let masters = Masters::start(5);
    let urls = masters.urls();
    let client =
        |builder: Builder| builder.masters(urls.clone()).ttl(ttl).max_ttl(ttl).timeout(ms(300)).wait(SOON);
    answering(&client(crate::begin_new()).build().unwrap(), 5).await; // they have records from now on
    let client = || client(Redlock::builder()).build().unwrap();
    let clients: Vec<_> = (0..count).map(|_| client()).collect();
    let (stop, masters, watcher) = (AtomicBool::new(false), Mutex::new(masters), client());
    let asking = async {
        asking(&clients).await;
        stop.store(true, Ordering::Relaxed);
    };
    let ((), harmed) = tokio::join!(asking, harm(&masters, &watcher, &stop));
    harmed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_in_real_time_while_masters_die_and_come_back() {
    let (left, granted) = (AtomicU64::new(grants()), Mutex::new(Vec::new()));
    let ask = async |redlock: &Redlock| {
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            let asked = Instant::now();
            match redlock.lock("l").acquire().await {
                Ok(guard) => {
                    let at = Instant::now();
                    granted.lock().unwrap().push(Granted { asked, at, token: guard.fencing_token().get() });
                    let _ = guard.release().await; // a quorum may not be there at the moment
                }
                Err(_) => drop(left.fetch_add(1, Ordering::Relaxed)),
            }
        }
    };
    let harmed = while_harmed(CLIENTS, async |clients| drop(join_all(clients.iter().map(ask)).await)).await;
    let granted = granted.into_inner().unwrap();
    println!("{} grants to {CLIENTS} clients, while masters were harmed {harmed} times", granted.len());
    assert!(granted.len() as u64 == grants() && harmed > 0);
    rise(granted);
}

/// Each master restarts without its keys, sits out its quarantine, and gets the lock back by the
/// next renewal.
#[tokio::test]
async fn five_rolling_restarts_never_cost_a_holder_its_lease() {
    let ttl = Duration::from_secs(2);
    let mut masters = Masters::start(5);
    let urls = masters.urls();
    let client = |builder: Builder| {
        builder.masters(urls.clone()).ttl(ttl).max_ttl(ttl).timeout(ms(400)).build().unwrap()
    };
    answering(&client(crate::begin_new()), 5).await;
    let client = || client(Redlock::builder());
    let (redlock, rival) = (client(), client());
    let guard = redlock.lock("l").acquire().await.unwrap();
    let token = guard.fencing_token();
    for place in 0..5 {
        masters[place].restart_empty();
        until("the lock on the master that restarted", async || {
            assert!(guard.is_valid() && !guard.lost_token().is_cancelled(), "restart {place}");
            assert!(rival.lock("l").try_acquire().await.is_err(), "held by two");
            masters[place].keys() == ["quorate:{l}"]
        })
        .await;
    }
    assert_eq!(guard.fencing_token(), token);
    guard.release().await.unwrap();
}

/// The holder of the highest of three tokens is gone, and so is the master that gave it.
#[tokio::test]
async fn a_token_of_a_split_vote_is_known_to_a_majority() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    answering(&redlock, 3).await;
    let (seconds, micros): (u64, u64) = masters[0].command(&["TIME"]);
    for (place, server) in masters.iter().enumerate().skip(1) {
        let fence = (seconds * 1_000_000 + micros + 100_000_000 * place as u64).to_string();
        let _: i64 = server.command(&["HSET", "quorate:{l}", "kind", "lock", "fence", &fence]);
    }
    let holder = builder(&masters).timeout(ms(900)).build().unwrap();
    let guard = holder.lock("l").ttl(ms(1_000)).no_renewal().acquire().await.unwrap();
    let before = guard.fencing_token();
    std::mem::forget(guard); // it dies
    masters[2].kill();
    let next = redlock.lock("l").wait(SOON).acquire().await.unwrap();
    assert!(next.fencing_token() > before, "{} after {before}", next.fencing_token());
}

/// A guard that is dropped or released when its lease is lost: what its holder sent may be under
/// way.
#[tokio::test]
async fn a_lock_delay_outlasts_the_guard_of_a_lost_lease() {
    let masters = Masters::start(3);
    let delay = ms(2_000);
    let redlock = builder(&masters).timeout(ms(500)).build().unwrap();
    answering(&redlock, 3).await;
    let next_owner_waits = async |name: &str, is_released: bool| {
        let lock = redlock.lock(name).ttl(ms(1_000)).no_renewal().lock_delay(delay);
        let guard = lock.acquire().await.unwrap();
        guard.lost().await;
        let deadline = guard.deadline();
        if is_released {
            let error = guard.release().await.unwrap_err();
            assert!(matches!(error, Error::Lost { cause: Loss::Expired, .. }), "{error}");
        } else {
            drop(guard);
        }
        let next = redlock.lock(name).wait(SOON).acquire().await.unwrap();
        assert!(redlock.now() >= deadline + delay, "{:?} too early", (deadline + delay).since(redlock.now()));
        next.release().await.unwrap();
    };
    tokio::join!(next_owner_waits("dropped", false), next_owner_waits("released", true));

    let guard = redlock.lock("l").ttl(ms(1_000)).no_renewal().lock_delay(TTL).acquire().await.unwrap();
    guard.lost().await;
    let owner = guard.owner();
    drop(guard);
    redlock.lock("l").force_release(&owner).await.unwrap();
    redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
}

/// A renewal without it would not move the end of the entry.
#[tokio::test]
async fn a_renewal_keeps_the_lock_delay() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").renew_every(ms(200)).lock_delay(TTL * 2);
    let guard = lock.acquire().await.unwrap();
    on_all(&masters).await;
    let ends = || masters.iter().map(|server| redlock.now() + crate::kept_for(server).unwrap());
    let before: Vec<_> = ends().collect();
    until("the end on every master to move", async || {
        ends().zip(&before).all(|(end, before)| end > *before + ms(150))
    })
    .await;
    guard.release().await.unwrap();
}

/// Where a lock was not released, its record keeps it from others for what is asked for beyond the
/// TTL.
#[tokio::test]
async fn a_lock_delay_keeps_others_away_after_a_lease_that_was_not_released() {
    let masters = Masters::start(3);
    let (ttl, delay) = (ms(500), ms(1_500));
    let holder = builder(&masters).timeout(ms(200)).build().unwrap();
    answering(&holder, 3).await;
    for delay in [Duration::ZERO, delay] {
        let guard = holder.lock("l").ttl(ttl).no_renewal().lock_delay(delay).acquire().await.unwrap();
        let began = Instant::now();
        std::mem::forget(guard); // it dies
        let next = patient(&masters).lock("l").wait(SOON).acquire().await.unwrap();
        let took = began.elapsed();
        assert!(took > ttl + delay && took < ttl + delay + ms(10_000), "{took:?} with {delay:?}");
        next.release().await.unwrap();
        let guard =
            patient(&masters).lock("l").ttl(TTL).no_renewal().lock_delay(delay).acquire().await.unwrap();
        guard.release().await.unwrap();
        // What is released is free at once: this does not wait for as long as the lease would have
        // lasted.
        patient(&masters).lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
    }
    let error = holder.lock("l").ttl(Duration::from_secs(86_000)).lock_delay(Duration::from_secs(401));
    let error = error.try_acquire().await.unwrap_err().to_string();
    assert!(error.contains("401s") && error.contains("86000s") && error.contains("86400s"), "{error}");
}
