//! Extending a lease, and failing to.

use std::sync::Arc;

use quorate::Error;
use quorate_testkit::{Masters, eventually};

use crate::clock::Jumping;
use crate::{SOON, TTL, all_new, builder, granted_since, ms, on_all, patient, until};

#[tokio::test]
async fn an_extend_moves_the_deadline_on_the_masters_too() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    let before = guard.deadline();
    guard.extend(ms(120_000)).await.unwrap();
    assert!(guard.deadline() > before && guard.remaining() > ms(100_000));
    let long =
        masters.iter().filter(|server| server.command::<i64>(&["PTTL", "quorate:{l}"]) > 100_000).count();
    assert!(long >= 3, "{long}");
}

#[tokio::test]
async fn a_shorter_extend_never_shortens() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").ttl(ms(60_000)).try_acquire().await.unwrap();
    on_all(&masters).await;
    let before = guard.deadline();
    guard.extend(ms(5_000)).await.unwrap();
    assert_eq!(guard.deadline(), before);
    let shortest = masters.iter().map(|server| server.command::<i64>(&["PTTL", "quorate:{l}"])).min();
    assert!(shortest.unwrap() > 50_000);
}

#[tokio::test]
async fn an_extend_beyond_the_max_ttl_is_refused_before_anything_is_sent() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).max_ttl(TTL * 2).build().unwrap();
    let guard = redlock.lock("l").ttl(TTL).no_renewal().lock_delay(TTL / 2).acquire().await.unwrap();
    on_all(&masters).await;
    let ends = || -> Vec<_> {
        masters.iter().map(|server| server.command::<Vec<String>>(&["HGETALL", "quorate:{l}"])).collect()
    };
    let before = (guard.deadline(), ends());
    for (ttl, part) in [(TTL * 3, "a TTL of 90s"), (TTL * 2, "a lock delay of 15s")] {
        let error = guard.extend(ttl).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)) && error.to_string().contains(part), "{error}");
    }
    assert_eq!((guard.deadline(), ends()), before);
    guard.extend(TTL + ms(1)).await.unwrap();
    assert!(guard.deadline() > before.0);
}

/// Some peers release a lock that they failed to extend. The lease stands to its deadline.
#[tokio::test]
async fn an_extend_that_fails_leaves_the_lease_as_it_was() {
    let masters = Masters::start(3);
    let redlock = patient(&masters); // the third has time to grant it
    let guard = redlock.lock("l").ttl(ms(60_000)).try_acquire().await.unwrap();
    on_all(&masters).await;
    let before = guard.deadline();
    masters[0].freeze();
    masters[1].freeze();
    let error = guard.extend(ms(90_000)).await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { granted: 1, needed: 2, .. }), "{error}");
    assert_eq!(guard.deadline(), before);
    assert!(guard.is_valid());
    masters[0].thaw();
    masters[1].thaw();
    assert_eq!(masters.keys().len(), 3, "nobody released it");
    until("a quorum", async || guard.extend(ms(90_000)).await.is_ok()).await;
    assert!(guard.deadline() > before);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_extend_of_a_lock_that_most_masters_lost_tells_at_once() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    on_all(&masters).await;
    (0..2).for_each(|i| granted_since(&masters[i]));
    guard.extend(ms(60_000)).await.unwrap(); // three still have it
    granted_since(&masters[2]);
    let error = guard.extend(ms(60_000)).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    drop(guard);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_lease_that_is_over_is_not_extended() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let guard = redlock.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
    clock.jump(TTL);
    assert!(matches!(guard.extend(ms(60_000)).await, Err(Error::Lost { .. })));
    assert!(!guard.is_valid());
}

/// The keys outlive the lease, never the other way round.
#[tokio::test]
async fn a_lease_ends_before_its_keys() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(900)).build().unwrap();
    let guard = redlock.lock("l").ttl(ms(1_000)).no_renewal().acquire().await.unwrap();
    while guard.is_valid() {
        let other = redlock.lock("l").try_acquire().await;
        assert!(!guard.is_valid() || other.is_err(), "a second grant while the first is valid");
        tokio::time::sleep(ms(1)).await;
    }
}
