//! The first attempt of an acquire is its caller's own: whatever becomes of the caller, nothing is
//! left of it.

use std::task::Poll;

use futures::{FutureExt, poll};
use quorate::{Error, Loss};
use quorate_testkit::{Masters, RedisServer, eventually};
use tokio_util::sync::CancellationToken;

use crate::cancel::same_runtime;
use crate::renewal::scripts_run;
use crate::{SOON, TTL, answering, builder, ms, until};

/// The lock `l` is another's on these masters.
fn held_by_another(servers: &[&RedisServer]) {
    for server in servers {
        crate::give(server, "l", "other:1", TTL * 2);
    }
}

/// One of three has granted it, so it is denied, and nobody hears that.
#[tokio::test]
async fn a_denied_acquire_that_is_held_and_not_run_any_more_gives_back_what_it_has() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    answering(&redlock, 3).await;
    held_by_another(&[&masters[0], &masters[1]]);
    for waits in [false, true] {
        let lock = redlock.lock("l");
        let before = scripts_run(&masters[2]);
        let mut acquire = match waits {
            true => lock.acquire().boxed(),
            false => lock.try_acquire().boxed(),
        };
        assert!(poll!(&mut acquire).is_pending());
        let undone = async || scripts_run(&masters[2]) >= before + 2 && masters[2].keys().is_empty();
        until("the grant to be given back", undone).await;
        if !waits {
            assert!(matches!(acquire.await, Err(Error::Held { .. })));
        }
    }
}

/// With all masters free, and with one of them: what was granted, and was not handed out, is given
/// back.
#[tokio::test]
async fn an_acquire_dropped_after_any_number_of_steps_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    answering(&redlock, 3).await;
    for split in [false, true] {
        if split {
            held_by_another(&[&masters[0], &masters[1]]);
        }
        let others = masters.keys().len();
        for steps in 0..20 {
            let lock = redlock.lock("l");
            let mut acquire = Box::pin(lock.acquire());
            assert!(poll!(&mut acquire).is_pending());
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
            drop(acquire);
            until("nothing to be left", async || masters.keys().len() == others).await;
        }
    }
}

#[tokio::test]
async fn a_shutdown_after_any_number_of_steps_ends_an_acquire_or_leaves_a_guard() {
    let masters = Masters::start(3);
    for steps in 0..20 {
        let redlock = same_runtime(&masters);
        answering(&redlock, 3).await;
        let lock = redlock.lock("l");
        let mut acquire = Box::pin(lock.acquire());
        assert!(poll!(&mut acquire).is_pending());
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        assert!(redlock.shutdown(SOON).await.is_complete());
        if steps == 0 {
            assert_eq!(
                masters.empty(),
                Ok(()),
                "it was undecided, and the shutdown waits for what is left of it"
            );
        }
        match steps % 2 {
            1 => drop(acquire),
            _ => match acquire.await {
                Ok(guard) => assert!(steps > 0 && guard.is_valid()),
                Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
            },
        }
        eventually(SOON, || masters.empty()).await;
    }
}

/// The masters granted in time, so a longer TTL would be no help.
#[tokio::test]
async fn a_caller_that_comes_when_its_lease_is_over_has_lost_it() {
    let masters = Masters::start(3);
    let here = tokio::runtime::Handle::current();
    let redlock = builder(&masters).timeout(ms(250)).runtime(here).build().unwrap();
    answering(&redlock, 3).await;
    let lock = redlock.lock("l").ttl(ms(500));
    let mut acquire = lock.try_acquire().boxed();
    assert!(poll!(&mut acquire).is_pending());
    until("the grant", async || masters.keys().len() >= 3).await;
    until("its end", async || masters.empty().is_ok()).await;
    let lost = acquire.await.unwrap_err();
    assert!(matches!(lost, Error::Lost { cause: Loss::Expired, .. }), "{lost}");
}

#[tokio::test]
async fn a_cancelled_acquire_ends_while_it_connects() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).build().unwrap();
    masters.iter().for_each(RedisServer::freeze);
    let token = CancellationToken::new();
    let mut acquire = redlock.lock("l").wait(SOON).cancelled_by(token.clone()).acquire().boxed();
    assert!(poll!(&mut acquire).is_pending());
    token.cancel();
    assert!(matches!(poll!(&mut acquire), Poll::Ready(Err(Error::Cancelled { .. }))));
}
