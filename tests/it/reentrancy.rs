//! An owner may hold a lock more than once; the masters mirror how often.

use std::sync::Arc;

use quorate::{Error, Owner, Redlock};
use quorate_testkit::{Masters, eventually};

use crate::clock::Jumping;
use crate::{SOON, TTL, all_new, ms, patient};

/// Waits until every master has this hold count for the owner.
async fn counts(masters: &Masters, owner: Owner, wanted: Option<&str>) {
    let owner = owner.to_string();
    eventually(SOON, || {
        let count = |server: &quorate_testkit::RedisServer| -> Option<String> {
            crate::holds(server, "quorate:{l}", &owner).map(|holds| holds.to_string())
        };
        let counts: Vec<_> = masters.iter().map(count).collect();
        if counts.iter().all(|count| count.as_deref() == wanted) { Ok(()) } else { Err(counts) }
    })
    .await;
}

#[tokio::test]
async fn an_owner_re_enters_and_the_last_release_frees_the_lock() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let first = lock.acquire().await.unwrap();
    let second = lock.acquire().await.unwrap();
    let third = lock.acquire().await.unwrap();
    assert!([&first, &second, &third].iter().all(|guard| guard.owner() == me));
    counts(&masters, me, Some("3")).await;
    first.release().await.unwrap(); // in any order
    counts(&masters, me, Some("2")).await;
    drop(third);
    counts(&masters, me, Some("1")).await;
    assert!(second.is_valid());
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    second.release().await.unwrap();
    counts(&masters, me, None).await;
    assert_eq!(masters.empty(), Ok(()));
}

#[tokio::test]
async fn without_a_named_owner_two_tasks_exclude_each_other() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let _guard = redlock.lock("l").try_acquire().await.unwrap();
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    let other = redlock.owner();
    assert!(matches!(redlock.lock("l").owned_by(&other).try_acquire().await, Err(Error::Held { .. })));
}

#[tokio::test]
async fn an_owner_scope_re_enters_and_ends_with_its_future() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let guards = me
        .scope(async {
            let outer = redlock.lock("l").acquire().await.unwrap();
            let inner = redlock.lock("l").acquire().await.unwrap();
            assert_eq!((outer.owner(), inner.owner()), (me, me));
            let named = redlock.owner();
            let other = redlock.lock("l").owned_by(&named).try_acquire().await;
            assert!(matches!(other, Err(Error::Held { .. })), "a named owner goes before the scope's");
            let spawned = redlock.clone();
            let outside = tokio::spawn(async move { spawned.lock("l").try_acquire().await.map(drop) });
            assert!(matches!(outside.await.unwrap(), Err(Error::Held { .. })), "a spawned task is outside");
            redlock.lock("l").release().await.unwrap(); // of the scope's owner
            (outer, inner)
        })
        .await;
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    drop(guards);
}

#[tokio::test]
async fn a_scope_counts_only_for_the_client_that_made_its_owner() {
    let masters = Masters::start(3);
    let (one, other) = (patient(&masters), patient(&masters));
    one.owner()
        .scope(async {
            let guard = other.lock("l").acquire().await.unwrap();
            assert!(matches!(one.lock("l").try_acquire().await, Err(Error::Held { .. })));
            drop(guard);
        })
        .await;
}

#[tokio::test]
async fn re_entering_never_shortens_the_lease() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let outer = lock.clone().ttl(ms(60_000)).acquire().await.unwrap();
    let inner = lock.clone().ttl(ms(5_000)).acquire().await.unwrap();
    assert_eq!(outer.deadline(), inner.deadline());
    assert!(inner.remaining() > ms(50_000));
    let longer = lock.ttl(ms(90_000)).acquire().await.unwrap();
    assert!(outer.remaining() > ms(80_000));
    drop(longer);
}

#[tokio::test]
async fn giving_back_one_hold_leaves_the_lease_as_it_is() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let outer = lock.clone().ttl(ms(20_000)).no_renewal().acquire().await.unwrap();
    let inner = lock.ttl(ms(5000)).no_renewal().acquire().await.unwrap();
    counts(&masters, me, Some("2")).await;
    // Until when it is kept, on each master.
    let ends = || -> Vec<String> {
        let entry = |server: &quorate_testkit::RedisServer| -> String {
            server.command(&["HGET", "quorate:{l}", "x"])
        };
        masters.iter().map(|server| entry(server).split(' ').next().unwrap().to_owned()).collect()
    };
    let (before, deadline) = (ends(), outer.deadline());
    inner.release().await.unwrap();
    counts(&masters, me, Some("1")).await;
    assert_eq!(ends(), before);
    assert_eq!(outer.deadline(), deadline);
    outer.release().await.unwrap();
}

#[tokio::test]
async fn a_master_that_missed_a_hold_is_mended_by_the_next_round() {
    let mut masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let first = lock.acquire().await.unwrap();
    masters[0].restart(); // empty
    let third = reenter_until_all_grant(&masters, &redlock, me).await;
    drop(third);
    counts(&masters, me, Some("1")).await;
    first.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// Re-enters again and again, until the master that was restarted takes part.
async fn reenter_until_all_grant(masters: &Masters, redlock: &Redlock, me: Owner) -> quorate::Guard {
    for _ in 0..1000 {
        let guard = redlock.lock("l").owned_by(&me).acquire().await.unwrap();
        if masters.keys().len() == 3 {
            return guard;
        }
        drop(guard);
        tokio::time::sleep(ms(10)).await;
    }
    panic!("the master that was restarted never took part again");
}

/// Two tasks with one owner: rounds about one hold run one at a time, so the counts cannot cross.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_re_entries_of_one_owner_keep_count() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let lock = redlock.lock("l").owned_by(&me);
            tokio::spawn(async move {
                for _ in 0..20 {
                    drop(lock.acquire().await.unwrap());
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    eventually(SOON, || masters.empty()).await;
    redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
}

/// A lease that ran out takes its guards with it: the owner's next acquire is a new lease, which
/// they cannot release.
#[tokio::test]
async fn a_lease_that_lapsed_is_not_revived_by_the_next() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = crate::builder(&masters).clock(clock.clone()).build().unwrap();
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let old = lock.clone().ttl(TTL).no_renewal().acquire().await.unwrap();
    clock.jump(TTL);
    let new = lock.clone().ttl(ms(30_000)).acquire().await.unwrap();
    assert!(!old.is_valid() && new.is_valid());
    assert!(matches!(old.extend(ms(30_000)).await, Err(Error::Lost { .. })));
    assert!(matches!(old.release().await, Err(Error::Lost { .. })));
    assert!(new.is_valid());
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    new.release().await.unwrap();
}
