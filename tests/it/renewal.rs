//! The watchdog: leases are renewed for as long as they should be, and not a moment longer.

use std::sync::Arc;
use std::time::Duration;

use quorate::{Error, Guard, Lock, Loss, Moment, Redlock};
use quorate_testkit::{EmbeddedMaster, EmbeddedMasters, Masters, Proxy, RedisServer, Resp, eventually};

use crate::clock::{Jumping, NOTICE, masters_by};
use crate::{PATIENT, SOON, TTL, all_new, answering, builder, granted_since, ms, on_all, patient, until};

/// Short enough for a test to see several renewals, long enough to outlast a stall of the machine.
const SHORT: Duration = Duration::from_millis(1_200);

/// How often leases are renewed where a stall of the machine must not end them.
const OFTEN: Duration = Duration::from_millis(200);

/// A client whose per-master time-out fits short leases.
fn brisk(masters: &Masters) -> Redlock {
    builder(masters).ttl(SHORT).timeout(ms(400)).build().unwrap()
}

/// Masters and a client by one clock, which the test sets.
fn by_one_clock(count: usize) -> (Arc<Jumping>, EmbeddedMasters, Redlock) {
    let clock = Arc::new(Jumping::default());
    let masters = masters_by(&clock, count);
    let redlock = client_by(&clock, &masters);
    (clock, masters, redlock)
}

fn client_by(clock: &Arc<Jumping>, masters: &EmbeddedMasters) -> Redlock {
    crate::begin().masters(masters).ttl(TTL).timeout(PATIENT).clock(clock.clone()).build().unwrap()
}

/// The entry of the lock `l` on each master, word by word: until when (us) it is kept, its token,
/// its round and the holds.
fn entries(masters: &EmbeddedMasters) -> Vec<Vec<u64>> {
    let entry = |master: &EmbeddedMaster| match master.server().command(&["HGET", "quorate:{l}", "x"]) {
        Resp::Bulk(text) => {
            String::from_utf8(text).unwrap().split(' ').map(|word| word.parse().unwrap()).collect()
        }
        _ => Vec::new(),
    };
    masters.iter().map(entry).collect()
}

/// For how much longer (ms) each master keeps the lock `l`.
fn left(masters: &EmbeddedMasters) -> Vec<u64> {
    let now = |master: &EmbeddedMaster| match master.server().command(&["TIME"]) {
        Resp::List(parts) => {
            let part = |i: usize| match &parts[i] {
                Resp::Bulk(text) => std::str::from_utf8(text).unwrap().parse::<u64>().unwrap(),
                other => panic!("{other:?}"),
            };
            part(0) * 1_000_000 + part(1)
        }
        other => panic!("{other:?}"),
    };
    let left = |(entry, master): (Vec<u64>, &EmbeddedMaster)| (entry[0] - now(master)).div_ceil(1000);
    entries(masters).into_iter().zip(masters.iter()).map(left).collect()
}

/// Has this clock jump by a third of the TTL, and waits for the renewal that is due then.
async fn renewed_at_a_third(clock: &Jumping, guard: &Guard) {
    let before = guard.deadline();
    clock.jump(TTL / 3);
    until("a renewal", async || guard.deadline() > before).await;
}

/// How many scripts a server has run.
pub(crate) fn scripts_run(server: &RedisServer) -> u64 {
    calls(server, "evalsha")
}

pub(crate) fn calls(server: &RedisServer, command: &str) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// Waits until the lease was renewed, and tells its new deadline.
pub(crate) async fn renewed(guard: &Guard) -> Moment {
    let before = guard.deadline();
    until("a renewal", async || guard.deadline() > before).await;
    guard.deadline()
}

/// Waits for the loss, and tells its cause. The lease has not ended by then.
async fn lost_in_time(redlock: &Redlock, guard: &Guard) -> Loss {
    let Ok(loss) = tokio::time::timeout(SOON, guard.lost()).await else { panic!("it is not lost") };
    let Error::Lost { cause, .. } = loss else { panic!("{loss}") };
    assert!(redlock.now() < guard.deadline(), "told only after the deadline");
    assert!(guard.lost_token().is_cancelled());
    cause
}

/// Nothing brings a key back, and nothing is sent, for several renewals' time.
async fn stays_released(masters: &Masters, lock: &Lock) {
    until("the keys to be gone", async || masters.empty().is_ok()).await;
    let before: Vec<_> = masters.iter().map(scripts_run).collect();
    let looking = async {
        loop {
            assert_eq!(masters.empty(), Ok(()), "it came back");
            tokio::time::sleep(ms(10)).await;
        }
    };
    tokio::time::timeout(SHORT, looking).await.unwrap_err();
    let after: Vec<_> = masters.iter().map(scripts_run).collect();
    assert_eq!(before, after, "something is still being renewed");
    lock.clone().try_acquire().await.unwrap().release().await.unwrap();
}

/// Each deadline counts from the moment before its round was sent, so the steps between them are
/// those of the renewals.
#[tokio::test]
async fn a_lease_is_renewed_at_every_third_of_its_ttl_until_it_is_released() {
    let (clock, masters, redlock) = by_one_clock(5);
    let guard = redlock.lock("l").acquire().await.unwrap();
    for _ in 0..6 {
        let before = guard.deadline();
        clock.jump(TTL / 3 - ms(1));
        tokio::time::sleep(ms(150)).await; // the watchdog looks at its clock every 100 ms
        assert_eq!(guard.deadline(), before, "sooner than at a third");
        clock.jump(ms(1));
        until("a renewal", async || guard.deadline() > before).await;
        assert_eq!(guard.deadline(), before + TTL / 3, "later than at a third");
        assert!(guard.is_valid() && guard.renewal_error().is_none());
    }
    // A client that made no call for a third of the TTL knows the time to within 200 ms.
    let is_renewed = |left: &u64| (30_000..30_500).contains(left);
    until("the last renewal on every master", async || left(&masters).iter().all(is_renewed)).await;
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
    clock.jump(TTL / 3);
    tokio::time::sleep(ms(150)).await; // time to renew it again, if anybody did
    assert_eq!(masters.empty(), Ok(()), "it came back");
}

#[tokio::test]
async fn a_fixed_lease_is_not_renewed() {
    let (clock, masters, redlock) = by_one_clock(3);
    let guard = redlock.lock("l").ttl(TTL).no_renewal().acquire().await.unwrap();
    until("every entry", async || entries(&masters).iter().all(|entry| !entry.is_empty())).await;
    let before = entries(&masters);
    let deadline = guard.deadline();
    for _ in 0..2 {
        clock.jump(TTL / 3);
        tokio::time::sleep(ms(150)).await; // time to renew it, if anybody did
        assert!(guard.is_valid() && !guard.lost_token().is_cancelled());
    }
    clock.stand_at(deadline - NOTICE);
    assert_eq!(lost_in_time(&redlock, &guard).await, Loss::Expired);
    assert_eq!(guard.deadline(), deadline);
    clock.jump(NOTICE);
    assert!(!guard.is_valid());
    assert_eq!(entries(&masters), before, "it was renewed");
}

/// Nobody renews it any more, and its holder hears of its cap before it ends: when that is.
async fn capped(clock: &Jumping, redlock: &Redlock, guard: &Guard) -> Moment {
    let deadline = guard.deadline();
    clock.jump(TTL / 3);
    tokio::time::sleep(ms(150)).await; // time to renew it again, if anybody did
    clock.stand_at(deadline - NOTICE);
    assert_eq!(lost_in_time(redlock, guard).await, Loss::Capped);
    deadline
}

#[tokio::test]
async fn a_cap_on_the_time_held_is_used_and_kept() {
    let (clock, masters, redlock) = by_one_clock(3);
    let cap = TTL * 2;
    let begun = redlock.now();
    let guard = redlock.lock("l").hold_at_most(cap).acquire().await.unwrap();
    for _ in 0..3 {
        renewed_at_a_third(&clock, &guard).await;
    }
    capped(&clock, &redlock, &guard).await;
    assert!(guard.deadline() <= begun + cap, "held for too long");
    assert!(guard.deadline() >= begun + cap - TTL / 2, "given up too soon");
    clock.jump(NOTICE);
    assert!(!guard.is_valid());
    let left = left(&masters);
    assert!(left.iter().all(|left| *left <= 1_500), "{left:?}: it is kept from others beyond its cap");
}

#[tokio::test]
async fn a_cap_on_the_number_of_renewals_is_used_and_kept() {
    let (clock, masters, redlock) = by_one_clock(3);
    let guard = redlock.lock("l").renew_at_most(2).acquire().await.unwrap();
    for _ in 0..2 {
        renewed_at_a_third(&clock, &guard).await;
    }
    let before = entries(&masters);
    let deadline = capped(&clock, &redlock, &guard).await;
    assert_eq!(guard.deadline(), deadline, "renewed a third time");
    assert_eq!(entries(&masters), before, "renewed a third time");
}

#[tokio::test]
async fn leases_that_are_due_together_are_renewed_in_few_calls() {
    const LEASES: usize = 64;
    let masters = Masters::start(5);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    answering(&redlock, 5).await;
    let locks: Vec<_> = (0..LEASES).map(|i| redlock.lock(format!("l{i}"))).collect();
    let guards = futures::future::try_join_all(locks.iter().map(Lock::try_acquire)).await.unwrap();
    until("every key", async || masters.keys().len() == 5 * LEASES).await;
    for _ in 0..3 {
        let before: Vec<_> = masters.iter().map(scripts_run).collect();
        let deadlines: Vec<_> = guards.iter().map(Guard::deadline).collect();
        clock.jump(TTL / 3 + ms(500)); // all are due, also those that were granted last
        for (guard, deadline) in guards.iter().zip(deadlines) {
            until("a renewal", async || guard.deadline() > deadline).await;
        }
        for (server, before) in masters.iter().zip(before) {
            let calls = scripts_run(server) - before;
            assert!(calls <= 4, "{calls} calls for {LEASES} renewals");
        }
    }
}

/// Renewals take a round trip each, and come due one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_leases_are_kept_though_the_masters_are_far_away() {
    const LEASES: usize = 1_200;
    const LEASE: Duration = Duration::from_millis(4_800);
    let masters = Masters::start(3);
    let mut far = Vec::new();
    for server in masters.iter() {
        far.push(Proxy::start_slow(server.address(), ms(75)).await);
    }
    let urls = far.iter().map(Proxy::url);
    let redlock = crate::begin().masters(urls).ttl(LEASE).timeout(SHORT).build().unwrap();
    answering(&redlock, 3).await;
    let acquiring = (0..LEASES).map(|i| {
        let lock = redlock.lock(format!("l{i}"));
        async move {
            tokio::time::sleep(LEASE / 2 * i as u32 / LEASES as u32).await; // not all at once
            lock.acquire().await.unwrap()
        }
    });
    let guards = futures::future::join_all(acquiring).await;
    tokio::time::sleep(LEASE * 2).await;
    let lost = guards.iter().filter(|guard| guard.lost_token().is_cancelled()).count();
    assert_eq!(lost, 0, "of {LEASES} leases");
}

/// The one is heard out for as long as a master is silent; the other was renewed long before.
#[tokio::test]
async fn a_lease_whose_renewal_fails_does_not_hurry_the_one_that_is_renewed_beside_it() {
    let masters = Masters::start(5);
    let redlock = builder(&masters).timeout(ms(1_000)).build().unwrap();
    answering(&redlock, 5).await;
    let lock = |i: usize| redlock.lock(format!("l{i}")).renew_every(ms(400));
    let locks: Vec<_> = (0..8).map(lock).collect();
    let begun = redlock.now();
    let guards = futures::future::try_join_all(locks.iter().map(Lock::try_acquire)).await.unwrap();
    until("every key", async || masters.keys().len() == 40).await;
    for i in 0..2 {
        let _: i64 = masters[i].command(&["HSET", "quorate:{l0}", "last", "9000000000000000"]);
        let _: i64 = masters[i].command(&["HDEL", "quorate:{l0}", "x", "o:x"]);
    }
    masters[4].freeze();
    let before = calls(&masters[0], "pexpire");
    until("a renewal that fails", async || guards[0].renewal_error().is_some()).await;
    let _ = renewed(&guards[7]).await;
    let renewals = calls(&masters[0], "pexpire") - before;
    let most = 7 * redlock.now().since(begun).as_millis() / 400;
    assert!(u128::from(renewals) <= most, "{renewals} renewals in the time of {most}");
}

/// A thread of the user's that blocks: nothing of the user's runtime runs meanwhile.
#[tokio::test]
async fn a_runtime_that_is_blocked_for_three_ttls_keeps_its_lock_on_every_master() {
    let (clock, masters, redlock) = by_one_clock(5);
    let guard = redlock.lock("l").acquire().await.unwrap();
    let other = client_by(&clock, &masters);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let rival = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let trying = async {
                loop {
                    assert!(other.lock("l").try_acquire().await.is_err(), "granted to another");
                    tokio::time::sleep(ms(5)).await;
                }
            };
            tokio::select! { () = trying => {}, _ = stopped => {} }
        });
    });
    for _ in 0..9 {
        let (before, begun) = (guard.deadline(), std::time::Instant::now());
        clock.jump(TTL / 3);
        while guard.deadline() == before {
            assert!(begun.elapsed() < SOON, "it was not renewed");
            std::thread::sleep(ms(2));
        }
    }
    assert!(guard.is_valid(), "it was lost");
    assert!(!guard.lost_token().is_cancelled());
    assert_eq!(masters.keys().len(), 5);
    let owner = guard.owner().to_string().into_bytes();
    for master in masters.iter() {
        assert_eq!(master.server().command(&["HGET", "quorate:{l}", "o:x"]), Resp::Bulk(owner.clone()));
    }
    stop.send(()).unwrap();
    rival.join().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn work_that_misses_its_heartbeat_loses_the_lock_in_time_and_another_gets_it() {
    let (clock, masters, redlock) = by_one_clock(3);
    let heartbeat = TTL / 2;
    let guard = redlock.lock("l").heartbeat(heartbeat).acquire().await.unwrap();
    for _ in 0..6 {
        renewed_at_a_third(&clock, &guard).await;
        guard.touch();
        assert!(guard.is_valid() && !guard.lost_token().is_cancelled(), "lost in spite of its heartbeat");
    }
    let silent_since = redlock.now();
    renewed_at_a_third(&clock, &guard).await; // it is not silent for long enough yet
    let deadline = guard.deadline();
    clock.jump(TTL / 3);
    tokio::time::sleep(ms(150)).await; // time to renew it again, if anybody did
    clock.stand_at(deadline - NOTICE);
    assert_eq!(lost_in_time(&redlock, &guard).await, Loss::Silent);
    assert!(redlock.now() < silent_since + heartbeat + TTL, "renewed though it was silent");
    guard.touch(); // too late
    clock.jump(NOTICE);
    assert!(!guard.is_valid());
    assert!(matches!(guard.release().await, Err(Error::Lost { cause: Loss::Silent, .. })));
    let other = client_by(&clock, &masters).lock("l").wait(SOON).acquire().await.unwrap();
    assert!(other.is_valid());
}

/// The work hangs, and its runtime with it.
#[tokio::test]
async fn a_runtime_that_is_blocked_misses_its_heartbeat_and_another_gets_the_lock() {
    let masters = Masters::start(3);
    let redlock = brisk(&masters);
    let guard = redlock.lock("l").heartbeat(ms(300)).acquire().await.unwrap();
    let other = brisk(&masters);
    let rival = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { other.lock("l").wait(SOON).acquire().await.map(|guard| guard.release()) })
    });
    while !rival.is_finished() {
        std::thread::sleep(ms(5));
    }
    assert!(!guard.is_valid(), "both have it");
    let _ = rival.join().unwrap().unwrap().await;
    assert!(matches!(guard.lost().await, Error::Lost { cause: Loss::Silent, .. }));
}

#[tokio::test]
async fn a_guard_that_is_dropped_or_released_is_not_renewed_any_more() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").renew_every(OFTEN);
    for dropped in [true, false] {
        let guard = lock.acquire().await.unwrap();
        renewed(&guard).await;
        match dropped {
            true => drop(guard),
            false => guard.release().await.unwrap(),
        }
        stays_released(&masters, &lock).await;
    }
}

/// Renewals are under way at any moment here, so some meet a release.
#[tokio::test]
async fn a_renewal_that_crosses_a_release_brings_nothing_back() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = |i: u32| redlock.lock(format!("l{i}")).renew_every(ms(1));
    for i in 0..100 {
        let guard = lock(i).acquire().await.unwrap();
        tokio::time::sleep(Duration::from_micros(u64::from(i) * 60)).await;
        match i % 2 {
            0 => drop(guard),
            _ => guard.release().await.unwrap(),
        }
    }
    stays_released(&masters, &redlock.lock("l")).await;
}

#[tokio::test]
async fn a_renewal_makes_a_key_again_unless_somebody_else_was_granted_the_lock_since() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").renew_every(ms(200)).acquire().await.unwrap();
    on_all(&masters).await;
    let _: i64 = masters[0].command(&["DEL", "quorate:{l}"]);
    granted_since(&masters[1]);
    let before = scripts_run(&masters[1]);
    for _ in 0..3 {
        renewed(&guard).await;
    }
    until("renewals where the key is gone", async || scripts_run(&masters[1]) >= before + 3).await;
    let places: Vec<_> = masters.keys().into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, [0, 2, 3, 4]);
    assert!(guard.is_valid() && guard.renewal_error().is_none(), "three are a quorum");
}

#[tokio::test]
async fn a_renewal_that_fails_is_tried_again_and_what_was_wrong_is_known_meanwhile() {
    let masters = Masters::start(5);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let guard = redlock.lock("l").renew_every(ms(600)).acquire().await.unwrap();
    assert!(guard.renewal_error().is_none());
    (0..3).for_each(|i| masters[i].freeze());
    // One that the other two granted: on a busy machine one of them may be late now and then.
    let failed = || {
        guard.renewal_error().filter(|error| matches!(error, Error::NoQuorum { granted: 2, needed: 3, .. }))
    };
    until("a renewal that failed", async || failed().is_some_and(|error| error.votes().len() == 5)).await;
    let deadline = guard.deadline();
    (0..3).for_each(|i| masters[i].thaw());
    until("a renewal", async || guard.deadline() > deadline).await;
    until("the error to be over", async || guard.renewal_error().is_none()).await;
    assert!(guard.is_valid() && !guard.lost_token().is_cancelled());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_extend_by_hand_is_not_shortened_by_renewals_and_one_that_fails_does_not_stop_them() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let guard = redlock.lock("l").renew_every(ms(200)).acquire().await.unwrap();
    on_all(&masters).await;
    (0..2).for_each(|i| masters[i].freeze());
    assert!(matches!(guard.extend(TTL * 4).await, Err(Error::NoQuorum { .. })));
    assert!(guard.is_valid() && !guard.lost_token().is_cancelled());
    (0..2).for_each(|i| masters[i].thaw());
    renewed(&guard).await;
    let is_long = |server: &RedisServer| server.command::<i64>(&["PTTL", "quorate:{l}"]) > 60_000;
    // A quorum is enough for it, and one of those that were silent may not have heard of it.
    until("an extend on every master", async || {
        guard.extend(TTL * 10).await.is_ok() && masters.iter().all(is_long)
    })
    .await;
    let deadline = guard.deadline();
    let before = scripts_run(&masters[0]);
    until("renewals", async || scripts_run(&masters[0]) >= before + 3).await;
    assert_eq!(guard.deadline(), deadline);
    assert!(masters.iter().all(is_long));
}

#[tokio::test]
async fn guards_of_one_owner_share_a_lease_that_is_renewed_until_the_last_is_released() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner()).renew_every(OFTEN);
    let outer = lock.acquire().await.unwrap();
    let inner = lock.acquire().await.unwrap();
    renewed(&outer).await;
    until("one deadline", async || outer.deadline() == inner.deadline()).await; // a renewal may come between two looks
    outer.release().await.unwrap();
    for _ in 0..3 {
        renewed(&inner).await;
    }
    assert!(inner.is_valid() && !inner.lost_token().is_cancelled());
    drop(inner);
    stays_released(&masters, &lock).await;
}

/// A guard that counts on renewal has it, whatever its owner's other guards asked for.
#[tokio::test]
async fn a_fixed_lease_that_is_re_entered_with_renewal_is_renewed_and_the_reverse_ends_none() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    for fixed_first in [true, false] {
        let lock = redlock.lock("l").owned_by(&redlock.owner());
        let (fixed, kept) = (lock.clone().ttl(TTL).no_renewal(), lock.clone().renew_every(OFTEN));
        let (first, second) = if fixed_first { (fixed, kept) } else { (kept, fixed) };
        let (first, second) = (first.acquire().await.unwrap(), second.acquire().await.unwrap());
        for _ in 0..4 {
            renewed(&second).await;
        }
        assert!(first.is_valid() && second.is_valid());
        first.release().await.unwrap();
        second.release().await.unwrap();
    }
}

#[tokio::test]
async fn renewal_that_cannot_work_is_refused_and_nothing_is_sent() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    let refused = async |lock: Lock| match lock.acquire().await.unwrap_err() {
        Error::Invalid(invalid) => invalid.to_string(),
        other => panic!("{other}"),
    };
    let lock = || redlock.lock("l").ttl(ms(9_000));
    for interval in [Duration::ZERO, ms(6_001), ms(9_000), Duration::MAX] {
        let text = refused(lock().renew_every(interval)).await;
        let wanted = format!("a renewal interval of {interval:?} is not within 1ms and 6s");
        assert!(text.starts_with(&wanted) && text.ends_with("the TTL of 9s"), "{text}");
    }
    for cap in [Duration::ZERO, ms(8_999)] {
        let text = refused(lock().hold_at_most(cap)).await;
        assert!(text.starts_with(&format!("a cap of {cap:?} ")) && text.contains("9s"), "{text}");
    }
    for heartbeat in [Duration::ZERO, ms(9)] {
        let text = refused(lock().heartbeat(heartbeat)).await;
        assert!(
            text.starts_with(&format!("a heartbeat of {heartbeat:?} ")) && text.contains("10ms"),
            "{text}"
        );
    }
    let fixed = || redlock.lock("l").ttl(ms(9_000)).no_renewal();
    for (option, lock) in [
        ("renew_every", fixed().renew_every(ms(3_000))),
        ("hold_at_most", fixed().hold_at_most(ms(90_000))),
        ("renew_at_most", fixed().renew_at_most(3)),
        ("heartbeat", fixed().heartbeat(ms(1_000))),
    ] {
        let text = refused(lock).await;
        assert!(text.starts_with(&format!("`{option}` and `no_renewal`")), "{text}");
    }
    for server in masters.iter() {
        assert_eq!(scripts_run(server), 0, "something was sent");
    }
    let most = Duration::MAX;
    for lock in [
        lock().renew_every(ms(6_000)),
        lock().hold_at_most(ms(9_000)),
        lock().hold_at_most(most),
        lock().heartbeat(ms(10)),
        lock().heartbeat(most),
        lock().renew_at_most(0),
        lock().renew_every(ms(1)),
    ] {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
}
