//! Every kind of lock: each excludes, waits, renews and is lost as the others.

use std::sync::Arc;
use std::time::Duration;

use quorate::fence::FencingToken;
use quorate::{Error, Loss, Redlock, compat};
use quorate_testkit::{Masters, cancel_at_every_poll, eventually};

use crate::cancel::same_runtime;
use crate::clock::{Jumping, NOTICE};
use crate::waiting::{standing, waiter};
use crate::wake_ups::{LONG, handed};
use crate::{SOON, TTL, builder, ms, on_all, patient, until};

/// What makes a lock of a kind, and whether its owner may enter again.
type Kind = (&'static str, fn(&Redlock, &str) -> compat::UnfencedLock, bool);

const KINDS: [Kind; 6] = [
    ("reentrant", |redlock, name| redlock.lock(name).into(), true),
    ("mutex", |redlock, name| redlock.mutex(name).into(), false),
    ("plain mutex", |redlock, name| redlock.plain_mutex(name), false),
    ("redisson", |redlock, name| redlock.redisson_lock(name), true),
    ("fair", |redlock, name| redlock.fair_lock(name).into(), true),
    ("write", |redlock, name| redlock.write_lock(name).into(), true),
];

/// Whether a token is above one of before. The layouts of other libraries have none.
fn is_next(kind: &str, before: Option<FencingToken>, token: Option<FencingToken>) -> bool {
    match kind {
        "plain mutex" | "redisson" => (before, token) == (None, None),
        _ => token > before,
    }
}

/// Those whose guards have owners of their own.
const OTHERS: [Kind; 2] = [
    ("semaphore", |redlock, name| redlock.semaphore(name, 1).into(), false),
    ("several names", |redlock, name| redlock.lock_all([name, "beside"]).into(), true),
];

/// What is left on the masters is nothing of a lock.
async fn nothing_is_left(masters: &Masters) {
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn of_every_kind_one_has_it_and_the_next_one_is_woken() {
    for (kind, lock, _) in KINDS {
        let masters = Masters::start(5);
        let (one, other) = (patient(&masters), patient(&masters));
        let held = lock(&one, "l").acquire().await.unwrap();
        let Err(Error::Held { holder, .. }) = lock(&other, "l").try_acquire().await else { panic!("{kind}") };
        assert_eq!(*holder.owner, *held.owner().to_string(), "{kind}");
        let waiting = waiter(lock(&other, "l").ttl(LONG)).await;
        until("a place on every master", async || masters.iter().all(|server| places(server) == 1)).await;
        let before = held.fencing_token_if_any();
        held.release().await.unwrap();
        let next = handed(waiting).await;
        assert!(is_next(kind, before, next.fencing_token_if_any()), "{kind}");
        next.release().await.unwrap();
        nothing_is_left(&masters).await;
    }
}

/// How many wait for any lock.
fn places(server: &quorate_testkit::RedisServer) -> usize {
    let queues: Vec<String> = server.command(&["KEYS", "quorate:waiting:*"]);
    queues.iter().map(|queue| server.command::<usize>(&["ZCARD", queue])).sum()
}

#[tokio::test]
async fn of_every_kind_an_owner_enters_again_or_hears_that_it_cannot() {
    for (kind, lock, reenters) in KINDS {
        let masters = Masters::start(3);
        let redlock = patient(&masters);
        let (me, you) = (redlock.owner(), redlock.owner());
        let lock = lock(&redlock, "l").owned_by(&me);
        assert!(!lock.is_held_by(&me).await.unwrap(), "{kind}");
        let Err(Error::NotHeld { .. }) = lock.release().await else { panic!("{kind}") };
        let outer = lock.acquire().await.unwrap();
        assert!(lock.is_held_by(&me).await.unwrap() && !lock.is_held_by(&you).await.unwrap(), "{kind}");
        match (reenters, lock.acquire().await) {
            (true, Ok(inner)) => inner.release().await.unwrap(),
            (false, Err(Error::AlreadyHeld { name, owner, .. })) => assert_eq!((&*name, owner), ("l", me)),
            (_, other) => panic!("{kind}: {other:?}"),
        }
        match (reenters, lock.try_acquire().await) {
            (true, Ok(inner)) => inner.release().await.unwrap(),
            (false, Err(Error::AlreadyHeld { .. })) => {}
            (_, other) => panic!("{kind}: {other:?}"),
        }
        assert!(outer.is_valid(), "{kind}");
        lock.release().await.unwrap();
        let Err(Error::NotHeld { .. }) = outer.release().await else { panic!("{kind}") };
        lock.acquire().await.unwrap().release().await.unwrap();
        nothing_is_left(&masters).await;
    }
}

/// A lock of each kind, under the kind's name, with its guard.
async fn one_of_every_kind(
    redlock: &Redlock,
    ttl: Duration,
) -> Vec<(&'static str, compat::UnfencedLock, compat::UnfencedGuard)> {
    let mut all = Vec::new();
    for (kind, lock, _) in KINDS.into_iter().chain(OTHERS) {
        let lock = lock(redlock, kind).ttl(ttl);
        let held = lock.acquire().await.unwrap();
        all.push((kind, lock, held));
    }
    all
}

#[tokio::test]
async fn of_every_kind_a_lease_outlives_its_ttl_and_is_extended_seen_and_broken() {
    let masters = Masters::start(3);
    // Short enough to be waited for, and longer than a busy machine stands still.
    let redlock = builder(&masters).timeout(ms(2_000)).build().unwrap();
    let all = one_of_every_kind(&redlock, ms(4_000)).await;
    let first = all.iter().map(|(_, _, held)| held.deadline()).max().unwrap();
    until("the end of the first leases", async || redlock.now() > first).await;
    for (kind, lock, held) in all {
        assert!(held.is_valid() && !held.lost_token().is_cancelled(), "{kind}");
        assert!(matches!(lock.try_acquire().await, Err(Error::Held { .. })), "{kind}");
        held.extend(Duration::from_secs(20)).await.unwrap();
        assert!(held.remaining() > Duration::from_secs(10), "{kind}");
        let holder = lock.inspect().await.unwrap().holder().unwrap();
        assert_eq!(*holder.owner, *held.owner().to_string(), "{kind}");
        assert!(holder.remaining.unwrap() > Duration::from_secs(10), "{kind}");
        lock.force_release(&held.owner()).await.unwrap();
        let next = lock.try_acquire().await.unwrap();
        assert!(is_next(kind, held.fencing_token_if_any(), next.fencing_token_if_any()), "{kind}");
        assert!(lock.inspect().await.unwrap().holder().unwrap().owner != holder.owner, "{kind}");
        next.release().await.unwrap();
    }
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn of_every_kind_a_lock_is_handed_over() {
    for (kind, lock, _) in KINDS {
        let masters = Masters::start(3);
        let (one, other) = (patient(&masters), patient(&masters));
        let held = lock(&one, "l").acquire().await.unwrap();
        let fence = held.fencing_token_if_any();
        let token = held.hand_over().await.unwrap();
        assert!(matches!(lock(&other, "l").try_acquire().await, Err(Error::Held { .. })), "{kind}");
        let adopted = lock(&other, "l").adopt(&token).await.unwrap();
        assert!(is_next(kind, fence, adopted.fencing_token_if_any()), "{kind}");
        assert!(matches!(lock(&one, "l").adopt(&token).await, Err(Error::Held { .. })), "{kind}");
        adopted.release().await.unwrap();
        nothing_is_left(&masters).await;
    }
}

#[tokio::test]
async fn of_every_kind_two_of_five_masters_may_be_down_and_three_are_a_loss() {
    let masters = Masters::start(5);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    (0..2).for_each(|i| masters[i].kill());
    let mut all = one_of_every_kind(&redlock, TTL).await;
    for (kind, lock, _) in &all {
        assert!(matches!(lock.try_acquire().await, Err(Error::Held { .. })), "{kind}");
    }
    masters[2].kill();
    clock.jump(TTL / 2);
    let failed = async || all.iter().all(|(_, _, held)| held.renewal_error().is_some());
    until("renewals that fail", failed).await;
    all.sort_by_key(|(_, _, held)| held.deadline());
    for (kind, _, held) in &all {
        clock.stand_at(held.deadline() - NOTICE);
        let loss = tokio::time::timeout(SOON, held.lost()).await.expect(kind);
        assert!(redlock.now() < held.deadline(), "{kind}");
        assert!(matches!(loss, Error::Lost { cause: Loss::Expired, .. }), "{kind}: {loss}");
    }
}

#[tokio::test]
async fn of_every_kind_an_acquire_dropped_after_any_number_of_polls_leaves_nothing() {
    for (kind, lock, _) in KINDS {
        let masters = Masters::start(3);
        let redlock = same_runtime(&masters);
        lock(&redlock, "l").acquire().await.unwrap().release().await.unwrap();
        let free = async |polls, guard: Option<Result<compat::UnfencedGuard, Error>>| {
            if let Some(guard) = guard {
                assert!(guard.is_ok(), "{kind}, after {polls} polls: {guard:?}");
            }
            lock(&redlock, "l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
        };
        let acquire = || async { lock(&redlock, "l").try_acquire().await };
        assert!(cancel_at_every_poll(100_000, acquire, free).await.unwrap() > 1, "{kind}");
        nothing_is_left(&masters).await;
    }
}

/// An owner may hold two kinds of one name, and releases one of them.
#[tokio::test]
async fn an_owner_has_each_kind_by_itself() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let (lock, shared) = (redlock.lock("l").owned_by(&me), redlock.redisson_lock("l").owned_by(&me));
    let (one, other) = (lock.acquire().await.unwrap(), shared.acquire().await.unwrap());
    lock.release().await.unwrap();
    assert!(!one.is_valid() && other.is_valid());
    assert!(shared.is_held_by(&me).await.unwrap() && !lock.is_held_by(&me).await.unwrap());
    drop((one, other));
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn who_holds_a_lock_is_not_known_without_a_quorum() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(100)).build().unwrap();
    let held = redlock.mutex("l").acquire().await.unwrap();
    on_all(&masters).await;
    (0..2).for_each(|i| masters[i].kill());
    let unknown = redlock.mutex("l").is_held_by(&held.owner()).await;
    assert!(matches!(unknown, Err(Error::NoQuorum { .. })), "{unknown:?}");
}

#[tokio::test]
async fn of_every_kind_many_take_turns() {
    for (kind, lock, _) in KINDS {
        let masters = Masters::start(3);
        let clients = [patient(&masters), patient(&masters)];
        let held = lock(&clients[0], "l").acquire().await.unwrap();
        let mut waiters = Vec::new();
        for i in 0..10 {
            waiters.push(waiter(lock(&clients[i % 2], "l").ttl(LONG)).await);
        }
        held.release().await.unwrap();
        let turns = waiters.into_iter().map(|waiting| async {
            let guard = tokio::time::timeout(SOON, waiting).await.expect(kind).unwrap().unwrap();
            let fence = guard.fencing_token_if_any();
            guard.release().await.unwrap();
            fence
        });
        let mut fences = futures::future::join_all(turns).await;
        fences.sort_unstable();
        assert!(fences.is_sorted_by(|one, next| is_next(kind, *one, *next)), "{kind}: {fences:?}");
        assert_eq!(fences.len(), 10, "{kind}");
        standing(masters.iter(), 0).await;
        nothing_is_left(&masters).await;
    }
}
