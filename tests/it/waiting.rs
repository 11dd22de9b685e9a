//! Waiting in line: the order, the bounds, and what each way out of it leaves behind.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::poll;
use quorate::{Error, Guard, Lock, Loss, Redlock, compat};
use quorate_testkit::{Masters, RedisServer, eventually};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{PATIENT, SOON, all_new, builder, ms, on_all, patient, until};

/// Who stands in the queue of the lock `l` on a master, from the first to the last.
pub(crate) fn queue(server: &RedisServer) -> Vec<String> {
    server.command(&["ZRANGE", "quorate:waiting:{l}", "0", "-1"])
}

/// Waits until so many stand in the queue on each of these masters.
pub(crate) async fn standing<'a>(servers: impl IntoIterator<Item = &'a RedisServer>, count: usize) {
    for server in servers {
        until("places in a queue", async || queue(server).len() == count).await;
    }
}

/// How many connections listen, on all masters.
pub(crate) fn listeners(masters: &Masters) -> usize {
    let on = |server: &RedisServer| {
        server.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count()
    };
    masters.iter().map(on).sum()
}

/// Begins an acquire: from here on it is in line.
pub(crate) async fn waiter<G, L>(lock: L) -> JoinHandle<Result<G, Error>>
where
    L: IntoFuture<Output = Result<G, Error>, IntoFuture: Unpin + Send + 'static>,
    G: Send + 'static,
{
    let mut acquire = lock.into_future();
    assert!(poll!(&mut acquire).is_pending());
    tokio::spawn(acquire)
}

/// Begins so many acquires of the lock `l`, which is held: they are in line, in this order.
pub(crate) async fn line_of(
    masters: &Masters,
    redlock: &Redlock,
    count: usize,
) -> Vec<JoinHandle<Result<Guard, Error>>> {
    let mut line = Vec::new();
    for _ in 0..count {
        line.push(waiter(redlock.lock("l")).await);
        // From the first on there is a line, which the others join when they are first polled.
        standing(masters.iter(), 1).await;
    }
    line
}

/// Takes the lock, on every master.
pub(crate) async fn hold(masters: &Masters, redlock: &Redlock) -> Guard {
    let held = redlock.lock("l").acquire().await.unwrap();
    on_all(masters).await;
    held
}

#[tokio::test]
async fn a_place_has_the_label_of_its_waiter_and_is_given_up_with_it() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let kinds: [fn(&Redlock, &str) -> compat::UnfencedLock; 3] = [
        |redlock, label| redlock.lock("l").label(label).into(),
        |redlock, label| redlock.fair_lock("l").label(label).into(),
        |redlock, label| redlock.write_lock("l").label(label).into(),
    ];
    for lock in kinds {
        let held = lock(&redlock, "").acquire().await.unwrap();
        let waiting = waiter(lock(&redlock, "its job")).await;
        standing(masters.iter(), 1).await;
        assert!(queue(&masters[0])[0].ends_with(" its job"));
        held.release().await.unwrap();
        waiting.await.unwrap().unwrap().release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn waiters_of_one_client_are_served_in_the_order_in_which_they_came() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = hold(&masters, &redlock).await;
    let (turn, mut turns) = tokio::sync::mpsc::unbounded_channel();
    for (i, waiting) in line_of(&masters, &redlock, 20).await.into_iter().enumerate() {
        let turn = turn.clone();
        tokio::spawn(async move {
            let guard = waiting.await.unwrap().unwrap();
            turn.send(i).unwrap();
            guard.release().await.unwrap();
        });
    }
    held.release().await.unwrap();
    for i in 0..20 {
        assert_eq!(tokio::time::timeout(SOON, turns.recv()).await.unwrap(), Some(i));
    }
}

#[tokio::test]
async fn of_many_waiters_of_one_client_only_the_first_asks_the_masters_and_it_asks_once() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = hold(&masters, &redlock).await;
    let waiters = line_of(&masters, &redlock, 50).await;
    let calls = || -> u32 { masters.iter().map(|server| crate::faults::calls(server, "evalsha")).sum() };
    let before = calls();
    tokio::time::sleep(ms(300)).await; // time to ask again, if anybody did
    assert!(calls() <= before + 3, "{before} calls, and {} after a while", calls());
    for server in masters.iter() {
        assert_eq!(queue(server).len(), 1);
    }
    held.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_cancelled_or_dropped_waiter_leaves_its_line_and_the_queues() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = hold(&masters, &redlock).await;
    let token = CancellationToken::new();
    let first = waiter(redlock.lock("l").cancelled_by(token.clone())).await;
    standing(masters.iter(), 1).await;
    let second = waiter(redlock.lock("l").cancelled_by(token.clone())).await;
    let third = waiter(redlock.lock("l")).await;
    token.cancel();
    for cancelled in [first, second] {
        let error = cancelled.await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Cancelled { name, .. } if &**name == "l"), "{error}");
    }
    standing(masters.iter(), 1).await;
    third.abort();
    standing(masters.iter(), 0).await;
    assert_eq!(masters.keys().len(), 3, "only the lock is left: {:?}", masters.keys());
    let error = redlock.lock("l").cancelled_by(token).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "cancelled before: {error}");
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_full_line_is_an_error_at_once_and_others_lines_are_not() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).max_waiters(2).build().unwrap();
    let held = hold(&masters, &redlock).await;
    let first = waiter(redlock.lock("l")).await;
    standing(masters.iter(), 1).await;
    let waiters = [first, waiter(redlock.lock("l")).await];
    let error = redlock.lock("l").acquire().await.unwrap_err();
    assert!(matches!(&error, Error::QueueFull { name, limit: 2, .. } if &**name == "l"), "{error}");
    assert!(
        matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })),
        "it does not stand in line"
    );
    drop(redlock.lock("other").acquire().await.unwrap());
    held.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    drop(redlock.lock("l").acquire().await.unwrap());
    let error = builder(&masters).max_waiters(0).build().unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(why) if why.to_string().contains("at most 0 waiters")),
        "{error}"
    );
}

#[tokio::test]
async fn whoever_waits_in_vain_hears_who_has_it_even_from_the_middle_of_the_line() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = hold(&masters, &redlock).await;
    let long = ms(4_000); // it is first until the other's wait is over, on a busy machine as well
    let first = waiter(redlock.lock("l").wait(long)).await;
    standing(masters.iter(), 1).await;
    let second = waiter(redlock.lock("l").wait(ms(300))).await;
    for (waiter, wait, tried) in [(second, ms(300), false), (first, long, true)] {
        let error = waiter.await.unwrap().unwrap_err();
        let Error::WaitTimedOut { holder, waited, attempts, votes, .. } = &error else { panic!("{error}") };
        assert_eq!(*holder.owner, *held.owner().to_string());
        assert_eq!((votes.len(), *attempts > 0), (3, tried), "{error}");
        assert!(*waited >= wait && *waited < wait + PATIENT * 2, "{error}");
    }
    standing(masters.iter(), 0).await;
}

#[tokio::test]
async fn a_wait_of_zero_is_one_try() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = hold(&masters, &redlock).await;
    let error = redlock.lock("l").wait(Duration::ZERO).acquire().await.unwrap_err();
    let Error::Held { holder, .. } = &error else { panic!("{error}") };
    assert_eq!(*holder.owner, *held.owner().to_string());
}

#[tokio::test]
async fn polling_asks_at_its_interval_as_often_as_it_was_told_and_stands_in_no_queue() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = hold(&masters, &redlock).await;
    let begun = Instant::now();
    let error = redlock.lock("l").poll_every(ms(50), 5).acquire().await.unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { attempts: 5, .. }), "{error}");
    assert!(begun.elapsed() >= ms(50) * 4, "{:?}", begun.elapsed());
    let error = redlock.lock("l").wait(ms(1_500)).poll_every(ms(50), u32::MAX).acquire().await.unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { attempts: 2.., .. }), "{error}");

    let polling = waiter(redlock.lock("l").poll_every(ms(10), 10_000)).await;
    tokio::time::sleep(ms(100)).await; // time for some tries
    assert_eq!((masters.keys().len(), listeners(&masters)), (3, 0), "{:?}", masters.keys());
    held.release().await.unwrap();
    drop(tokio::time::timeout(SOON, polling).await.unwrap().unwrap().unwrap());
    for (interval, tries) in [(Duration::ZERO, 5), (ms(5), 0)] {
        let error = redlock.lock("l").poll_every(interval, tries).acquire().await.unwrap_err();
        assert!(matches!(&error, Error::Invalid(why) if why.to_string().starts_with("polling ")), "{error}");
    }
}

#[tokio::test]
async fn whoever_polls_once_asks_once() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let once = redlock.lock("l").poll_every(SOON, 1);
    let held = once.acquire().await.unwrap();
    let begun = Instant::now();
    let error = once.acquire().await.unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { attempts: 1, .. }), "{error}");
    assert!(begun.elapsed() < SOON, "it waited for another try");
    held.release().await.unwrap();
}

#[tokio::test]
async fn whoever_re_enters_does_not_line_up_behind_those_who_wait() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let outer = lock.acquire().await.unwrap();
    let waiters = line_of(&masters, &redlock, 3).await;
    let inner = tokio::time::timeout(PATIENT, lock.acquire()).await.unwrap().unwrap();
    outer.release().await.unwrap();
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    inner.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
}

/// The caller's thread, or its whole process, may stand still for longer than a lease.
#[tokio::test]
async fn a_lease_that_ended_before_its_caller_ran_is_taken_anew_while_there_is_time() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let late = builder(&masters).timeout(ms(500)).build().unwrap();
    let seen = async || redlock.lock("l").inspect().await.unwrap();
    for (wait, is_over) in [(SOON, false), (ms(1_500), true)] {
        let held = hold(&masters, &redlock).await;
        let short = late.lock("l").ttl(ms(1_000)).no_renewal().wait(wait);
        let mut acquire = pin!(short.acquire());
        until("its places in the queues", async || {
            assert!(poll!(&mut acquire).is_pending());
            masters.iter().all(|server| queue(server).len() == 1)
        })
        .await;
        let begun = Instant::now();
        let before = held.fencing_token();
        held.release().await.unwrap();
        // Granted and over, both without the caller.
        let mut unseen = None;
        until("another grant", async || {
            unseen = seen().await.fencing_token().filter(|fence| *fence > before);
            unseen.is_some()
        })
        .await;
        until("the end of its lease", async || seen().await.is_free()).await;
        until("the end of the wait", async || !is_over || begun.elapsed() > wait).await;
        match acquire.await {
            Ok(guard) if !is_over => {
                assert!(Some(guard.fencing_token()) > unseen && guard.is_valid(), "{guard:?}")
            }
            Err(Error::Lost { cause: Loss::Expired, .. }) if is_over => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_waiter_without_a_quorum_says_so_and_goes_on_when_there_is_one_again() {
    let mut masters = Masters::start(5);
    let redlock = all_new(&masters).build().unwrap();
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    (0..3).for_each(|i| masters[i].kill());
    let error = redlock.lock("l").wait(ms(200)).acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { needed: 3, .. }), "{error}");
    let waiting = waiter(redlock.lock("l")).await;
    masters[0].restart();
    drop(tokio::time::timeout(SOON, waiting).await.unwrap().unwrap().unwrap());
}

#[tokio::test]
async fn a_shutdown_ends_those_who_wait_and_leaves_nothing_of_them() {
    let masters = Masters::start(3);
    let (redlock, holder) = (patient(&masters), patient(&masters));
    let held = hold(&masters, &holder).await;
    let waiters = line_of(&masters, &redlock, 3).await;
    assert!(redlock.shutdown(SOON).await.is_complete());
    assert_eq!(masters.keys().len(), 3, "{:?}", masters.keys());
    for waiter in waiters {
        let error = waiter.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Closed), "{error}");
    }
    until("nobody to listen", async || listeners(&masters) == 0).await;
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// When the thousand waiters are cancelled, and how.
const SEED: u64 = 4_217;

#[tokio::test]
async fn a_thousand_waiters_cancelled_at_random_leave_nothing_behind() {
    let masters = Masters::start(5);
    let (redlock, rival) = (builder(&masters).runtime(Handle::current()).build().unwrap(), patient(&masters));
    let names = ["l", "m", "n"];
    for client in [&redlock, &rival] {
        client.lock("l").acquire().await.unwrap().release().await.unwrap();
    }
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let idle = tasks();
    let mut random = StdRng::seed_from_u64(SEED);
    let mut waiters = JoinSet::new();
    for i in 0..1_000 {
        let (after, dropped) = (ms(random.random_range(0..1_500)), random.random());
        waiters.spawn(give_up(redlock.lock(names[i % 3]), after, dropped));
    }
    let contending = async {
        loop {
            for name in names {
                drop(rival.lock(name).acquire().await.unwrap());
            }
        }
    };
    tokio::select! {
        all = waiters.join_all() => assert!(all.contains(&true) && all.contains(&false), "{SEED}: {all:?}"),
        () = contending => {}
    }
    eventually(SOON, || masters.empty()).await;
    until("nobody to listen", async || listeners(&masters) == 0).await;
    until("no task to be left", async || tasks() <= idle).await;
    for name in names {
        redlock.lock(name).try_acquire().await.unwrap().release().await.unwrap();
    }
    assert!(redlock.shutdown(SOON).await.is_complete());
}

/// Waits for a lock, for so long at most. Whether it had it.
async fn give_up(lock: Lock, after: Duration, dropped: bool) -> bool {
    let token = CancellationToken::new();
    let lock = lock.cancelled_by(token.clone());
    let mut acquire = pin!(lock.acquire());
    let outcome = match tokio::time::timeout(after, &mut acquire).await {
        Ok(outcome) => outcome,
        Err(_) if dropped => return false,
        Err(_) => {
            token.cancel();
            acquire.await
        }
    };
    match outcome {
        Ok(_guard) => {
            tokio::time::sleep(ms(5)).await; // it works
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::Cancelled { .. }), "{error}");
            false
        }
    }
}

/// A task that hangs, or a `select!` that is never polled again.
#[tokio::test]
async fn a_waiter_that_is_not_polled_holds_the_lock_for_a_ttl() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = redlock.lock("l").acquire().await.unwrap();
    let other = builder(&masters).timeout(ms(500)).build().unwrap();
    let mut waiting = Box::pin(other.lock("l").ttl(ms(1_000)).wait(SOON * 3).acquire());
    tokio::select! {
        acquired = &mut waiting => panic!("{acquired:?}"),
        () = standing(masters.iter(), 1) => {}
    }
    let owner = held.owner().to_string();
    held.release().await.unwrap();
    until("the waiter to be granted", async || {
        let holder = redlock.lock("l").inspect().await.unwrap().holder();
        holder.is_some_and(|holder| *holder.owner != *owner)
    })
    .await;
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap(); // it has time to wait again
}
