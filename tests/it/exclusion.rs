//! One holder at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quorate::{Error, Outcome};
use quorate_testkit::Masters;

use crate::{all_new, ms, patient};

#[tokio::test]
async fn a_lock_is_granted_by_a_majority_and_refused_to_others() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    let granted = guard.votes().iter().filter(|vote| vote.outcome == Outcome::Granted).count();
    assert!(granted >= 3, "{:?}", guard.votes());
    assert!(guard.is_valid() && guard.remaining() < ms(30_000) - ms(302), "{:?}", guard.remaining());

    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    let Error::Held { name, holder, votes, .. } = &error else { panic!("{error}") };
    assert_eq!((&**name, &*holder.owner), ("l", &*guard.owner().to_string()));
    assert!(holder.remaining.unwrap() <= ms(30_500) && holder.remaining.unwrap() > ms(20_000));
    assert_eq!(votes.len(), 5);

    guard.release().await.unwrap();
    redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn different_names_and_prefixes_are_different_locks() {
    let masters = Masters::start(3);
    let (one, other) =
        (all_new(&masters).build().unwrap(), all_new(&masters).prefix("other:").build().unwrap());
    let guards = [
        one.lock("a").try_acquire().await.unwrap(),
        one.lock("b").try_acquire().await.unwrap(),
        other.lock("a").try_acquire().await.unwrap(),
    ];
    assert!(guards.iter().all(quorate::Guard::is_valid));
}

/// Read, sleep, write: an update is lost as soon as two are inside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_never_lose_an_update() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let counter = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (redlock, counter) = (redlock.clone(), counter.clone());
            tokio::spawn(async move {
                for _ in 0..3 {
                    let guard = redlock.lock("l").wait(ms(120_000)).acquire().await.unwrap();
                    let read = counter.load(Ordering::SeqCst);
                    tokio::time::sleep(ms(1)).await;
                    counter.store(read + 1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), 64 * 3);
}

#[tokio::test]
async fn one_master_is_the_single_instance_lock() {
    let masters = Masters::start(1);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    guard.release().await.unwrap();
    assert_eq!(masters.empty(), Ok(()));
}

#[tokio::test]
async fn an_even_number_of_masters_needs_more_than_half() {
    let masters = Masters::start(4);
    let redlock = patient(&masters);
    masters[0].kill();
    redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
    masters[1].kill();
    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { needed: 3, .. }), "{error}");
}

#[tokio::test]
async fn a_waiter_gets_the_lock_when_it_is_released() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    let waiting = tokio::spawn({
        let redlock = redlock.clone();
        async move { redlock.lock("l").wait(ms(20_000)).acquire().await }
    });
    tokio::time::sleep(ms(30)).await;
    assert!(!waiting.is_finished());
    guard.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_valid());
}
