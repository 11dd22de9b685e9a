//! One lock over several names: all of them or none, on every master.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quorate::{Error, Guard, Handover, Loss, Redlock};
use quorate_testkit::{Masters, RedisServer, cancel_at_every_poll, eventually};

use crate::cancel::same_runtime;
use crate::waiting::waiter;
use crate::{SOON, all_new, answering, ms, patient, until};

/// Who has the lock of one name on a master.
fn has(server: &RedisServer, name: &str, guard: &Guard) -> bool {
    crate::holds(server, &format!("quorate:{{{name}}}"), &guard.owner().to_string()).is_some()
}

/// Waits until a guard has these names on every master.
async fn on_every_master(masters: &Masters, names: &[&str], guard: &Guard) {
    let all = || masters.iter().all(|server| names.iter().all(|name| has(server, name, guard)));
    until("the names on every master", async || all()).await;
}

/// Whether a master has nothing of this name: no lock, and nobody who waits.
fn has_nothing_of(server: &RedisServer, name: &str) -> bool {
    !server.keys().iter().any(|key| key.ends_with(&format!("{{{name}}}")))
}

/// How many stand in the queue of a name, on each master.
fn queue(server: &RedisServer, name: &str) -> usize {
    server.command(&["ZCARD", &format!("quorate:waiting:{{{name}}}")])
}

async fn stands_for(masters: &Masters, name: &str, count: usize) {
    until("a place", async || masters.iter().all(|server| queue(server, name) == count)).await;
}

async fn is_free(redlock: &Redlock, names: &[&str]) {
    for name in names {
        redlock.lock(*name).wait(SOON).acquire().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn it_excludes_locks_of_its_names_and_others_over_them_and_they_exclude_it() {
    let masters = Masters::start(5);
    let (here, there) = (patient(&masters), patient(&masters));
    let all = here.lock_all(["b", "c", "a"]).try_acquire().await.unwrap();
    assert_eq!(all.name(), "a+b+c");
    on_every_master(&masters, &["a", "b", "c"], &all).await;
    for name in ["a", "b", "c"] {
        let error = there.lock(name).try_acquire().await.unwrap_err();
        assert_eq!(*error.holder().unwrap().owner, *all.owner().to_string());
        let error = there.lock_all(["0", name, "z"]).try_acquire().await.unwrap_err();
        let Error::Held { name: its, holder, .. } = &error else { panic!("{error}") };
        assert_eq!((&**its, &*holder.owner), (&*format!("0+{name}+z"), &*all.owner().to_string()));
    }
    there.lock_all(["0", "z"]).try_acquire().await.unwrap().release().await.unwrap();
    all.release().await.unwrap();
    for name in ["a", "b", "c"] {
        let one = there.lock(name).try_acquire().await.unwrap();
        let error = here.lock_all(["c", "b", "a"]).try_acquire().await.unwrap_err();
        assert_eq!(*error.holder().unwrap().owner, *one.owner().to_string());
        one.release().await.unwrap();
    }
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn where_one_name_is_held_no_other_is_taken_on_any_master() {
    let masters = Masters::start(5);
    let (here, there) = (patient(&masters), patient(&masters));
    for held in ["a", "b", "c"] {
        let one = there.lock(held).try_acquire().await.unwrap();
        on_every_master(&masters, &[held], &one).await;
        assert!(matches!(here.lock_all(["a", "b", "c"]).try_acquire().await, Err(Error::Held { .. })));
        let wait = here.lock_all(["a", "b", "c"]).wait(ms(100)).acquire().await;
        assert!(matches!(wait, Err(Error::WaitTimedOut { .. })));
        let others: Vec<&str> = ["a", "b", "c"].into_iter().filter(|name| *name != held).collect();
        let nothing = || masters.iter().all(|server| others.iter().all(|name| has_nothing_of(server, name)));
        assert!(nothing(), "nothing was ever taken");
        for name in others {
            there.lock(name).try_acquire().await.unwrap().release().await.unwrap();
        }
        until("its places to be given up", async || masters.iter().all(|server| queue(server, held) == 0))
            .await;
        one.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

/// Read, sleep, write, for each name: an update is lost as soon as two are inside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_over_shared_names_in_any_order_and_single_ones_all_come_through() {
    const SETS: [&[&str]; 8] =
        [&["a", "b"], &["b", "a"], &["a"], &["b", "c"], &["b"], &["c", "a"], &["c"], &["c", "b", "a"]];
    let masters = Masters::start(5);
    let clients = [patient(&masters), patient(&masters), patient(&masters)];
    let counters: Arc<[AtomicU32; 3]> = Arc::default();
    let task = |i: usize| {
        let (redlock, counters, names) = (clients[i % 3].clone(), counters.clone(), SETS[i % SETS.len()]);
        tokio::spawn(async move {
            for _ in 0..4 {
                let lock = match names {
                    [name] => redlock.lock(*name),
                    names => redlock.lock_all(names),
                };
                let guard = lock.wait(ms(120_000)).acquire().await.unwrap();
                let its = || names.iter().map(|name| &counters["abc".find(name).unwrap()]);
                let read: Vec<u32> = its().map(|counter| counter.load(Ordering::SeqCst)).collect();
                tokio::time::sleep(ms(1)).await;
                its().zip(read).for_each(|(counter, read)| counter.store(read + 1, Ordering::SeqCst));
                guard.release().await.unwrap();
            }
        })
    };
    let tasks: Vec<_> = (0..32).map(task).collect();
    for task in tasks {
        tokio::time::timeout(SOON * 6, task).await.expect("no deadlock").unwrap();
    }
    let counts = counters.iter().map(|counter| counter.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let wanted =
        ["a", "b", "c"].map(|name| SETS.iter().filter(|set| set.contains(&name)).count() as u32 * 16);
    assert_eq!(counts, wanted);
    eventually(SOON, || masters.empty()).await;
}

/// Nobody else would wake it before the TTL of 30 seconds is over.
#[tokio::test]
async fn a_waiter_is_woken_when_the_last_of_its_names_is_released() {
    let masters = Masters::start(5);
    let (here, there) = (patient(&masters), patient(&masters));
    let (a, b) = (there.lock("a").acquire().await.unwrap(), there.lock("b").acquire().await.unwrap());
    on_every_master(&masters, &["a"], &a).await;
    on_every_master(&masters, &["b"], &b).await;
    let waiting = waiter(here.lock_all(["b", "a", "c"])).await;
    stands_for(&masters, "a", 1).await;
    a.release().await.unwrap();
    stands_for(&masters, "b", 1).await;
    stands_for(&masters, "a", 0).await;
    assert!(!waiting.is_finished());
    b.release().await.unwrap();
    let guard = tokio::time::timeout(SOON, waiting).await.expect("it is woken").unwrap().unwrap();
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn who_is_called_for_a_name_that_it_cannot_use_calls_the_next() {
    let masters = Masters::start(5);
    let clients = [patient(&masters), patient(&masters), patient(&masters)];
    let [holder, first, second] = &clients;
    let a = holder.lock("a").acquire().await.unwrap();
    let b = holder.lock("b").acquire().await.unwrap();
    on_every_master(&masters, &["a"], &a).await;
    on_every_master(&masters, &["b"], &b).await;
    let both = waiter(first.lock_all(["a", "b"])).await;
    stands_for(&masters, "a", 1).await;
    let one = waiter(second.lock("a")).await;
    stands_for(&masters, "a", 2).await;
    a.release().await.unwrap();
    let one = tokio::time::timeout(SOON, one).await.expect("the call is passed on").unwrap().unwrap();
    b.release().await.unwrap();
    one.release().await.unwrap();
    let both = tokio::time::timeout(SOON, both).await.expect("it is woken again").unwrap().unwrap();
    both.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn an_acquire_dropped_after_any_number_of_polls_leaves_no_name() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    is_free(&redlock, &["a", "b", "c"]).await;
    let polls = cancel_at_every_poll(
        100_000,
        || async { redlock.lock_all(["a", "b", "c"]).try_acquire().await },
        async |polls, guard| {
            if let Some(guard) = guard {
                assert!(guard.is_ok(), "after {polls} polls: {guard:?}");
            }
            is_free(&redlock, &["a", "b", "c"]).await;
        },
    )
    .await;
    assert!(polls.unwrap() > 1, "it was never cancelled half-way");
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_no_place() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let held = redlock.lock("b").acquire().await.unwrap();
    let polls = cancel_at_every_poll(
        500,
        || async { redlock.lock_all(["a", "b", "c"]).acquire().await },
        async |_, outcome| assert!(outcome.is_none()),
    )
    .await;
    assert_eq!(polls, None);
    is_free(&redlock, &["a", "c"]).await;
    held.release().await.unwrap();
    is_free(&redlock, &["b"]).await;
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn two_of_five_masters_may_be_down() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    answering(&redlock, 5).await;
    masters[0].kill();
    masters[3].kill();
    let guard = redlock.lock_all(["a", "b"]).try_acquire().await.unwrap();
    assert!(matches!(redlock.lock("b").try_acquire().await, Err(Error::Held { .. })));
    guard.extend(ms(20_000)).await.unwrap();
    guard.release().await.unwrap();
    masters[4].kill();
    let error = redlock.lock_all(["a", "b"]).try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { needed: 3, .. }), "{error}");
    let free = || masters.iter().skip(1).take(2).all(|server| server.keys().is_empty());
    until("what was granted to be taken back", async || free()).await;
}

#[tokio::test]
async fn a_lock_that_lost_one_name_is_lost_and_told() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    let guard = here.lock_all(["a", "b"]).renew_every(ms(20)).acquire().await.unwrap();
    on_every_master(&masters, &["a", "b"], &guard).await;
    there.lock("b").force_release(&guard.owner()).await.unwrap();
    let loss = tokio::time::timeout(SOON, guard.lost()).await.unwrap();
    assert!(matches!(loss, Error::Lost { cause: Loss::NotOurs, .. }), "{loss}");
    assert!(!guard.is_valid());
    assert!(guard.release().await.is_err());
    is_free(&there, &["a", "b"]).await;
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn one_name_that_a_master_lost_is_taken_back_there() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock_all(["a", "b"]).ttl(ms(30_000)).no_renewal().acquire().await.unwrap();
    on_every_master(&masters, &["a", "b"], &guard).await;
    assert_eq!(masters[1].command::<i64>(&["DEL", "quorate:{b}"]), 1);
    assert!(matches!(redlock.lock("b").try_acquire().await, Err(Error::Held { .. })));
    guard.extend(ms(30_000)).await.unwrap();
    on_every_master(&masters, &["a", "b"], &guard).await;
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn it_changes_hands_once_and_as_a_whole() {
    let masters = Masters::start(5);
    let (here, there) = (patient(&masters), patient(&masters));
    let guard = here.lock_all(["a", "b"]).acquire().await.unwrap();
    let token: Handover = guard.hand_over().await.unwrap().to_string().parse().unwrap();
    assert!(matches!(there.lock("b").try_acquire().await, Err(Error::Held { .. })));
    let wrong = there.lock_all(["a", "c"]).adopt(&token).await.unwrap_err();
    assert!(matches!(&wrong, Error::Invalid(why) if why.to_string().starts_with("hand-over ")), "{wrong}");
    let adopted = there.lock_all(["b", "a"]).adopt(&token).await.unwrap();
    on_every_master(&masters, &["a", "b"], &adopted).await;
    assert!(adopted.fencing_token() > guard.fencing_token());
    assert!(matches!(here.lock_all(["a", "b"]).adopt(&token).await, Err(Error::Held { .. })));
    adopted.release().await.unwrap();
    is_free(&here, &["a", "b"]).await;
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn it_can_be_looked_at_and_broken() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    let lock = there.lock_all(["a", "b"]);
    assert!(lock.inspect().await.unwrap().is_free());
    let one = here.lock("b").acquire().await.unwrap();
    let seen = lock.inspect().await.unwrap();
    assert!(!seen.is_free() && *seen.holder().unwrap().owner == *one.owner().to_string());
    assert!(!lock.is_held_by(&one.owner()).await.unwrap(), "it has one of them only");
    one.release().await.unwrap();

    let guard = here.lock_all(["b", "a"]).acquire().await.unwrap();
    on_every_master(&masters, &["a", "b"], &guard).await;
    assert!(lock.is_held_by(&guard.owner()).await.unwrap());
    lock.force_release(&guard.owner()).await.unwrap();
    assert!(lock.inspect().await.unwrap().is_free());
    let next = there.lock("a").try_acquire().await.unwrap();
    assert!(guard.extend(ms(30_000)).await.is_err());
    assert!(next.fencing_token() > guard.fencing_token());
    next.release().await.unwrap();
    drop(guard);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn tokens_rise_whether_a_name_is_locked_by_itself_or_with_others() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let mut last = 0;
    for names in [&["a", "b"][..], &["a"], &["b"], &["b", "c"], &["c"], &["a", "b", "c"], &["a"], &["c", "a"]]
    {
        let lock = match names {
            [name] => redlock.lock(*name),
            names => redlock.lock_all(names),
        };
        let guard = lock.wait(SOON).acquire().await.unwrap();
        assert!(guard.fencing_token().get() > last, "{names:?}");
        last = guard.fencing_token().get();
        on_every_master(&masters, names, &guard).await;
        guard.release().await.unwrap();
    }
    // One name is far ahead of the others, on all masters.
    let ahead = last + 100_000;
    for server in masters.iter() {
        let _: i64 = server.command(&["HSET", "quorate:{b}", "fence", &ahead.to_string()]);
    }
    let guard = redlock.lock_all(["a", "b", "c"]).wait(SOON).acquire().await.unwrap();
    assert!(guard.fencing_token().get() > ahead);
    let fence = guard.fencing_token();
    guard.release().await.unwrap();
    assert!(redlock.lock("c").wait(SOON).acquire().await.unwrap().fencing_token() > fence);
}

#[tokio::test]
async fn a_named_owner_enters_the_same_names_again_and_its_other_locks_are_others() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let both = redlock.lock_all(["a", "b"]).owned_by(&me);
    let outer = both.acquire().await.unwrap();
    let inner = redlock.lock_all(["b", "a"]).owned_by(&me).acquire().await.unwrap();
    assert_eq!(outer.owner(), inner.owner());
    assert!(both.is_held_by(&me).await.unwrap() && both.is_held_by(&outer.owner()).await.unwrap());
    for other in [redlock.lock("a"), redlock.lock_all(["b"]), redlock.lock_all(["b", "c"])] {
        assert!(matches!(other.owned_by(&me).try_acquire().await, Err(Error::Held { .. })));
    }
    inner.release().await.unwrap();
    assert!(outer.is_valid());
    both.release().await.unwrap();
    assert!(!outer.is_valid());

    let one = redlock.lock("b").owned_by(&me).acquire().await.unwrap();
    assert!(matches!(both.try_acquire().await, Err(Error::Held { .. })));
    assert!(one.is_valid());
    one.release().await.unwrap();
    let broken = both.acquire().await.unwrap();
    both.force_release(&me).await.unwrap();
    assert!(!broken.is_valid(), "it is told at once");
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn names_may_be_anything() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let odd = ["a+b", "a", "b", "\\", "+", "{", "}", "a\\+b", " ", "\u{e9}\n"];
    let all = redlock.lock_all(odd).acquire().await.unwrap();
    on_every_master(&masters, &odd, &all).await;
    all.release().await.unwrap();
    assert!(format!("{:?}", redlock.lock_all(["b", "a"])).contains("\"a+b\""));
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_name_that_reads_the_same_is_another_lock_with_another_line() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let one = redlock.lock("a+b").acquire().await.unwrap();
    let behind = waiter(redlock.lock("a+b")).await;
    stands_for(&masters, "a+b", 1).await;
    let a = redlock.lock("a").acquire().await.unwrap();
    let waiting = waiter(redlock.lock_all(["b", "a"])).await;
    stands_for(&masters, "a", 1).await;
    a.release().await.unwrap();
    let both = tokio::time::timeout(SOON, waiting).await.expect("it is first").unwrap().unwrap();
    assert_eq!(both.name(), one.name());
    assert!(one.is_valid() && both.is_valid() && !behind.is_finished());
    one.release().await.unwrap();
    behind.await.unwrap().unwrap().release().await.unwrap();
    both.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn bad_names_are_refused_before_anything_is_sent() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    let names: Vec<String> = (0..17).map(|i| format!("n{i:02}")).collect();
    let long = "n".repeat(513);
    let none: [&str; 0] = [];
    const EMPTY: &str = "the lock's name is empty; it must have 1 to 512 bytes";
    let refused = [
        (redlock.lock_all(none), "no names: give 1 to 16 of them"),
        (redlock.lock_all(&names), "a lock over 17 names: at most 16 are allowed"),
        (
            redlock.lock_all(["b", "a", "b"]),
            "the name \"b\" is given twice; the names of one lock must differ",
        ),
        (redlock.lock_all(["b", ""]), EMPTY),
        (redlock.lock_all([""]), EMPTY),
    ];
    let foreign = "00000000-0000-0000-0000-000000000007:1".parse().unwrap();
    for (lock, wanted) in refused {
        let outcomes = [
            lock.try_acquire().await.map(drop),
            lock.acquire().await.map(drop),
            lock.inspect().await.map(drop),
            lock.force_release(&foreign).await,
            lock.clone().owned_by(&redlock.owner()).release().await,
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert!(matches!(&error, Error::Invalid(why) if why.to_string() == wanted), "{error}");
        }
    }
    let error = redlock.lock_all(["a", &long]).try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("513 bytes"), "{error}");
    for server in masters.iter() {
        assert!(!server.command::<String>(&["INFO", "commandstats"]).contains("eval"), "something was sent");
    }
    let guard = redlock.lock_all(&names[..16]).acquire().await.unwrap();
    guard.release().await.unwrap();
    redlock.lock_all(["n".repeat(512)]).acquire().await.unwrap().release().await.unwrap();
}
