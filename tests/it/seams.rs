//! Time, randomness and masters of another kind: what a simulator puts in.

use std::sync::Arc;

use quorate::seam::{BootClock, Clock, Random};
use quorate::{Error, Moment};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::clock::Jumping;
use crate::{PATIENT, SOON, TTL, builder, ms};

#[tokio::test]
async fn a_process_that_stood_still_for_longer_than_its_lease_finds_it_over() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let guard = redlock.lock("l").ttl(TTL).no_renewal().acquire().await.unwrap();
    clock.jump(TTL / 2);
    assert!(guard.is_valid() && guard.remaining() < TTL / 2);
    clock.jump(TTL / 2);
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    assert!(matches!(guard.extend(TTL).await, Err(Error::Lost { .. })));
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    eventually(SOON, || masters.empty()).await;
}

/// The quorum granted in time, but the caller was not run until the lease was over.
#[tokio::test]
async fn a_grant_that_its_caller_hears_of_too_late_is_no_guard() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    crate::answering(&redlock, 3).await;
    let lock = redlock.lock("l");
    let mut acquire = Box::pin(lock.try_acquire());
    masters.iter().for_each(RedisServer::freeze);
    assert!(futures::poll!(&mut acquire).is_pending());
    masters.iter().for_each(RedisServer::thaw);
    crate::on_all(&masters).await;
    tokio::time::sleep(ms(50)).await; // the decision is made, and waits for the caller
    clock.jump(TTL);
    let error = acquire.await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. } | Error::NoQuorum { late: true, .. }), "{error}");
    eventually(SOON, || masters.empty()).await;
}

/// The votes come in after the lease has ended: whoever looked in between has seen it end.
#[tokio::test]
async fn a_lease_that_ends_while_it_is_extended_or_re_entered_does_not_come_back() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock =
        builder(&masters).clock(clock.clone()).runtime(tokio::runtime::Handle::current()).build().unwrap();
    for extend in [true, false] {
        let lock = redlock.lock("l").owned_by(&redlock.owner());
        let old = lock.acquire().await.unwrap();
        (0..3).for_each(|i| masters[i].freeze());
        let long = lock.clone().ttl(TTL * 3);
        let mut operation: std::pin::Pin<Box<dyn Future<Output = Result<Option<quorate::Guard>, Error>>>> =
            if extend {
                Box::pin(async { old.extend(TTL * 3).await.map(|()| None) })
            } else {
                Box::pin(async { long.try_acquire().await.map(Some) })
            };
        assert!(futures::poll!(&mut operation).is_pending());
        tokio::time::sleep(ms(50)).await; // it is sent
        clock.jump(TTL);
        assert!(!old.is_valid());
        (0..3).for_each(|i| masters[i].thaw());
        let outcome = operation.await;
        assert!(!old.is_valid(), "it came back");
        match outcome {
            Err(Error::Lost { .. }) => assert!(extend),
            Err(Error::NoQuorum { .. }) => assert!(!extend),
            other => panic!("{other:?}"),
        }
        assert!(matches!(old.release().await, Err(Error::Lost { .. } | Error::NotHeld { .. })));
        eventually(SOON, || masters.empty()).await;
    }
}

/// The machine stood still, and the clock of nobody else: the masters refuse the time that the
/// client goes by, and tell theirs.
#[tokio::test]
async fn a_client_that_has_lost_the_time_asks_again_with_the_right_one() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    crate::answering(&redlock, 3).await;
    clock.jump(TTL);
    redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
}

/// The votes come in, but the lease is over before there is a quorum of them.
#[tokio::test]
async fn a_quorum_that_comes_after_the_lease_is_no_lease() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    crate::answering(&redlock, 3).await;
    let lock = redlock.lock("l");
    masters.iter().for_each(RedisServer::freeze);
    let acquire = tokio::spawn(async move { lock.try_acquire().await });
    tokio::time::sleep(ms(50)).await; // it is sent
    clock.jump(TTL);
    masters.iter().for_each(RedisServer::thaw);
    let error = acquire.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::NoQuorum { late: true, granted: 2.., .. }), "{error}");
    assert!(error.to_string().contains("when the lease was over already"), "{error}");
    eventually(SOON, || masters.empty()).await;
}

/// `/proc/uptime` counts suspend, as leases must.
#[cfg(target_os = "linux")]
#[test]
fn the_clock_counts_time_in_suspend() {
    let uptime = || -> f64 {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    let before = uptime();
    let now = BootClock.now().since(Moment::default()).as_secs_f64();
    assert!(now >= before - 0.01 && now <= uptime() + 0.011, "{before} {now}");
}

#[derive(Debug)]
struct Always(u64);

impl Random for Always {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

#[test]
fn identities_come_from_the_randomness_that_was_put_in() {
    let owner = |seed| {
        let builder = crate::begin().master("redis://h").random(Arc::new(Always(seed)));
        builder.build().unwrap().owner()
    };
    let client = |owner: quorate::Owner| owner.to_string()[..36].to_owned();
    assert_eq!(client(owner(1)), client(owner(1)));
    assert_ne!(client(owner(1)), client(owner(2)));
    let system = || crate::begin().master("redis://h").build().unwrap().owner();
    assert_ne!(system().to_string(), system().to_string());
}

#[test]
fn an_owner_is_never_given_out_twice() {
    let redlock = crate::begin().master("redis://h").build().unwrap();
    let owners: std::collections::HashSet<_> = (0..1000).map(|_| redlock.owner()).collect();
    assert_eq!(owners.len(), 1000);
}

/// Each attempt has an identity of its own, so that the clean-up of one cannot undo the next.
#[tokio::test]
async fn every_attempt_has_a_fresh_owner() {
    let masters = Masters::start(1);
    let redlock = builder(&masters).timeout(PATIENT).build().unwrap();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let guard = redlock.lock("l").acquire().await.unwrap();
        assert!(seen.insert(guard.owner()));
        guard.release().await.unwrap();
    }
}
