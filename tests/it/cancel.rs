//! Operations dropped at every moment leave nothing on any master.

use std::time::Duration;

use quorate::seam::{Random, SystemRandom};
use quorate_testkit::{Masters, cancel_at_every_poll, eventually};

use crate::{SOON, answering, builder, ms, on_all, patient, until};

/// A time from zero to a millisecond: an acquire takes about a tenth of that.
fn moment() -> Duration {
    Duration::from_nanos(SystemRandom.next_u64() % 1_000_000)
}

/// Drops `count` acquires at random moments, each of its own lock, some of them after they were
/// granted.
async fn drop_acquires(redlock: &quorate::Redlock, count: usize) -> usize {
    let mut granted = 0;
    for i in 0..count {
        let lock = redlock.lock(format!("l{i}"));
        let acquire = lock.acquire();
        tokio::select! {
            biased;
            // A timer would be too coarse: it wakes once a millisecond.
            () = spin(moment()) => {}
            guard = acquire => { drop(guard.unwrap()); granted += 1; }
        }
    }
    granted
}

async fn spin(time: Duration) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < time {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_thousand_acquires_dropped_at_random_moments_leave_no_key() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    let granted = drop_acquires(&redlock, 1_000).await;
    assert!(granted < 1_000, "none was dropped before it was granted");
    eventually(SOON, || masters.empty()).await; // long before their TTL is over
    assert!(redlock.shutdown(SOON).await.is_complete());
}

#[tokio::test]
async fn acquires_dropped_while_masters_are_frozen_leave_no_key_when_they_go_on() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    for frozen in [&[0][..], &[0, 1], &[0, 1, 2]] {
        frozen.iter().for_each(|i| masters[*i].freeze());
        drop_acquires_early(&redlock, 200).await;
        frozen.iter().for_each(|i| masters[*i].thaw());
        eventually(SOON, || masters.empty()).await; // long before their TTL is over
        answering(&redlock, 5).await;
    }
}

/// The same where an acquire may not be granted at all.
async fn drop_acquires_early(redlock: &quorate::Redlock, count: usize) {
    for i in 0..count {
        let lock = redlock.lock(format!("l{i}"));
        let acquire = lock.acquire();
        tokio::select! {
            biased;
            () = spin(moment()) => {}
            _ = acquire => {}
        }
    }
}

/// More polls than any operation takes.
const MANY: usize = 100_000;

/// With the engine on this test's own runtime: it gets one step between two polls.
pub(crate) fn same_runtime(masters: &Masters) -> quorate::Redlock {
    builder(masters).runtime(tokio::runtime::Handle::current()).build().unwrap()
}

#[tokio::test]
async fn an_acquire_dropped_after_any_number_of_polls_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    let polls = cancel_at_every_poll(
        MANY,
        || async { redlock.lock("l").try_acquire().await },
        async |polls, guard| {
            if let Some(guard) = guard {
                assert!(guard.is_ok(), "after {polls} polls: {guard:?}");
            }
            // Nobody holds it, so the next one gets it as soon as the clean-up is through.
            let next = redlock.lock("l").wait(SOON).acquire().await.unwrap();
            next.release().await.unwrap();
        },
    )
    .await;
    assert!(polls.unwrap() > 1, "it was never cancelled half-way");
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let holder = redlock.owner();
    let held = redlock.lock("l").owned_by(&holder).acquire().await.unwrap();
    let polls = cancel_at_every_poll(
        500, // it waits for ever, so it is cancelled in its first tries and in the pauses between them
        || async { redlock.lock("l").acquire().await },
        async |_, outcome| assert!(outcome.is_none()),
    )
    .await;
    assert_eq!(polls, None);
    held.release().await.unwrap();
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_re_entry_dropped_after_any_number_of_polls_leaves_the_holds_there_were() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let outer = lock.acquire().await.unwrap();
    let field = me.to_string();
    let polls = cancel_at_every_poll(
        MANY,
        || async { lock.try_acquire().await },
        async |polls, guard| {
            drop(guard);
            assert!(outer.is_valid(), "after {polls} polls");
            let counts = || -> Vec<Option<u32>> {
                masters.iter().map(|server| crate::holds(server, "quorate:{l}", &field)).collect()
            };
            // Commands to the servers block this thread, and the engine with it: it goes on in
            // between.
            until("one hold to be left", async || counts() == [Some(1); 3]).await;
        },
    )
    .await;
    assert!(polls.is_some());
    outer.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn an_extend_dropped_after_any_number_of_polls_leaves_the_lease() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let guard = redlock.lock("l").acquire().await.unwrap();
    let polls =
        cancel_at_every_poll(MANY, || guard.extend(ms(60_000)), async |_, _| assert!(guard.is_valid())).await;
    assert!(polls.is_some());
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_release_dropped_after_any_number_of_polls_is_done_all_the_same() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    for polls in 0..40 {
        let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
        let mut release = Box::pin(guard.release());
        for _ in 0..polls {
            if futures::poll!(&mut release).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_broken_lock_is_broken_though_nobody_waits_for_it() {
    let masters = Masters::start(3);
    let (redlock, operator) = (patient(&masters), same_runtime(&masters));
    operator.lock("l").inspect().await.unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    {
        let (lock, owner) = (operator.lock("l"), guard.owner());
        let mut breaking = Box::pin(lock.force_release(&owner));
        assert!(futures::poll!(&mut breaking).is_pending());
    }
    eventually(SOON, || masters.empty()).await;
}
