//! Waiting by name: one owner may wait more than once, and for a lock that it is about to have.

use quorate::Error;
use quorate_testkit::{Masters, RedisServer, eventually};
use tokio_util::sync::CancellationToken;

use crate::renewal::scripts_run;
use crate::waiting::{hold, queue, standing, waiter};
use crate::wake_ups::{LONG, handed};
use crate::{SOON, TTL, builder, ms, patient, until};

/// Both wait under one name: what the first gives up is not the place of the second.
#[tokio::test]
async fn a_cancelled_waiter_leaves_its_owners_next_one_its_place() {
    let masters = Masters::start(3);
    let (holder, redlock) = (patient(&masters), patient(&masters));
    let held = hold(&masters, &holder).await;
    let mine = redlock.lock("l").owned_by(&redlock.owner()).wait(LONG);
    let token = CancellationToken::new();
    let first = waiter(mine.clone().cancelled_by(token.clone())).await;
    standing(masters.iter(), 1).await;
    let before = queue(&masters[0]);
    let second = waiter(mine).await;
    token.cancel();
    assert!(matches!(first.await.unwrap(), Err(Error::Cancelled { .. })));
    let moved_up = async || masters.iter().all(|server| queue(server).len() == 1 && queue(server) != before);
    until("the second to stand", moved_up).await;
    held.release().await.unwrap();
    handed(second).await.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_named_waiter_that_gives_up_leaves_no_place() {
    for count in [1, 3] {
        let masters = Masters::start(count);
        let (holder, redlock) = (patient(&masters), patient(&masters));
        let held = hold(&masters, &holder).await;
        let owner = redlock.owner();
        let waiting = waiter(redlock.lock("l").owned_by(&owner).wait(ms(4_000))).await;
        // It stands there before its wait is over, on a busy machine as well.
        standing(masters.iter(), 1).await;
        assert!(matches!(waiting.await.unwrap(), Err(Error::WaitTimedOut { .. })));
        until("no place", async || masters.iter().all(|server| queue(server).is_empty())).await;
        held.release().await.unwrap();
    }
}

/// The stranger waits for the owner, so the owner must not wait for the stranger.
#[tokio::test]
async fn an_owner_that_enters_does_not_stay_in_line_behind_a_stranger() {
    let masters = Masters::start(3);
    let (holder, redlock) = (patient(&masters), patient(&masters));
    let held = hold(&masters, &holder).await;
    let mine = redlock.lock("l").owned_by(&redlock.owner()).wait(SOON);
    let first = waiter(mine.clone()).await;
    standing(masters.iter(), 1).await;
    let stranger = waiter(redlock.lock("l").wait(LONG)).await;
    let second = waiter(mine).await;
    held.release().await.unwrap();
    let (outer, inner) = (handed(first).await, handed(second).await);
    assert_eq!(outer.owner(), inner.owner());
    assert!(outer.remaining() > TTL / 2);
    drop((outer, inner));
    handed(stranger).await.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// Its owner got the lock while it waited, and when it is called, most masters do not answer: what
/// it takes back is its own hold.
#[tokio::test]
async fn a_waiter_that_fails_to_enter_again_leaves_the_lease_that_stands() {
    let masters = Masters::start(3);
    let (redlock, other) =
        (builder(&masters).timeout(ms(500)).build().unwrap(), builder(&masters).build().unwrap());
    let me = redlock.owner();
    let held = other.lock("l").acquire().await.unwrap();
    let waiting = tokio::spawn({
        let lock = redlock.lock("l").owned_by(&me).wait(SOON * 2);
        async move { lock.acquire().await }
    });
    standing(masters.iter(), 1).await;
    // The lock is free, and nobody is called.
    for server in masters.iter() {
        let _: i64 = server.command(&["HDEL", "quorate:{l}", "x", "o:x"]);
    }
    let guard = redlock.lock("l").owned_by(&me).ttl(SOON * 2).no_renewal().try_acquire().await.unwrap();
    let key = "quorate:{l}";
    let holds = |server: &RedisServer| crate::holds(server, key, &me.to_string());
    until("the lock on every master", async || masters.iter().all(|server| holds(server) == Some(1))).await;
    (1..3).for_each(|i| masters[i].freeze());
    let before = scripts_run(&masters[0]);
    let tickets: Vec<String> = masters[0].command(&["ZRANGE", "quorate:waiting:{l}", "0", "-1"]);
    let (client, number) = crate::client_and_number(&tickets[0]);
    let _: i64 = masters[0].command(&["PUBLISH", &format!("quorate:wake:{client}"), number]);
    until("the lease on that master after the waiter's attempt", async || {
        scripts_run(&masters[0]) >= before + 2 && holds(&masters[0]) == Some(1)
    })
    .await;
    (1..3).for_each(|i| masters[i].thaw());
    assert!(guard.is_valid());
    waiting.abort();
    drop((guard, held));
}

/// It asks to enter again when its lease has been taken away, and goes on when that is over.
#[tokio::test]
async fn an_owner_whose_lease_ends_before_it_enters_again_lines_up() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(250)).build().unwrap();
    let other = patient(&masters);
    let mine = redlock.lock("l").owned_by(&redlock.owner());
    let outer = mine.clone().ttl(ms(1_000)).acquire().await.unwrap();
    other.lock("l").force_release(&outer.owner()).await.unwrap();
    let held = hold(&masters, &other).await;
    let inner = waiter(mine.wait(LONG)).await;
    standing(masters.iter(), 1).await;
    held.release().await.unwrap();
    handed(inner).await.release().await.unwrap();
    drop(outer);
    eventually(SOON, || masters.empty()).await;
}
