//! A semaphore: so many permits, each a lease of its own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quorate::config::MAX_PERMITS;
use quorate::{Error, Guard, Handover, Lock, LockKind, Loss, Part, Redlock};
use quorate_testkit::{Masters, RedisServer, cancel_at_every_poll, eventually};

use crate::cancel::same_runtime;
use crate::waiting::{standing, waiter};
use crate::wake_ups::{clients, handed};
use crate::{SOON, TTL, all_new, answering, builder, ms, patient, until};

fn semaphore(redlock: &Redlock, permits: u32) -> Lock {
    redlock.semaphore("l", permits)
}

async fn take_all(redlock: &Redlock, permits: u32) -> Vec<Guard> {
    let mut guards = Vec::new();
    for _ in 0..permits {
        guards.push(semaphore(redlock, permits).try_acquire().await.unwrap());
    }
    guards
}

/// Waits until so many permits are taken on every master.
async fn on_every(masters: &Masters, permits: usize) {
    let taken = |server: &RedisServer| -> usize {
        let fields: Vec<String> = server.command(&["HKEYS", "quorate:{l}"]);
        fields.iter().filter(|field| field.starts_with("p:")).count()
    };
    until("the permits on every master", async || masters.iter().all(|server| taken(server) == permits))
        .await;
}

/// All that is on the masters, but for what stays.
fn contents(masters: &Masters) -> Vec<(usize, String, Vec<u8>)> {
    let dump = |(place, key): (usize, String)| {
        let dump = masters[place].command(&["DUMP", &key]);
        (place, key, dump)
    };
    let mut all: Vec<_> = masters.keys().into_iter().map(dump).collect();
    all.sort();
    all
}

#[tokio::test]
async fn all_permits_are_held_at_once_and_no_more() {
    let masters = Masters::start(5);
    let (redlock, other) = (patient(&masters), patient(&masters));
    let guards = take_all(&redlock, 3).await;
    let numbers: BTreeSet<u32> = guards.iter().filter_map(Guard::permit).collect();
    assert_eq!(numbers, [0, 1, 2].into(), "each is another permit");
    let owners: BTreeSet<String> = guards.iter().map(|guard| guard.owner().to_string()).collect();
    assert_eq!(owners.len(), 3);
    for client in [&redlock, &other] {
        let error = semaphore(client, 3).try_acquire().await.unwrap_err();
        let Error::Held { holder, .. } = &error else { panic!("{error}") };
        assert!(owners.contains(&*holder.owner));
    }
    for guard in guards {
        let number = guard.permit();
        guard.extend(Duration::from_secs(60)).await.unwrap();
        guard.release().await.unwrap();
        let next = semaphore(&other, 3).try_acquire().await.unwrap();
        assert_eq!(next.permit(), number, "it is the only one");
        next.release().await.unwrap();
        semaphore(&other, 3).wait(SOON).acquire().await.unwrap().release().await.unwrap();
        std::mem::forget(semaphore(&other, 3).try_acquire().await.unwrap());
    }
}

/// Two masters have not heard of the release when the same client asks again. Few guesses would
/// find the only permit.
#[tokio::test]
async fn a_permit_is_had_again_at_once_though_some_masters_are_slow() {
    const PERMITS: u32 = 20;
    let masters = Masters::start(5);
    let (redlock, other) = (patient(&masters), patient(&masters));
    let mut kept = Vec::new();
    for _ in 1..PERMITS {
        kept.push(semaphore(&other, PERMITS).try_acquire().await.unwrap());
    }
    on_every(&masters, PERMITS as usize - 1).await;
    answering(&redlock, 5).await;
    masters.iter().take(2).for_each(RedisServer::freeze);
    for _ in 0..3 {
        semaphore(&redlock, PERMITS).try_acquire().await.unwrap().release().await.unwrap();
    }
    masters.iter().take(2).for_each(RedisServer::thaw);
    drop(kept);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn whoever_waits_is_woken_by_the_release_of_any_permit() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    for place in 0..3 {
        let mut guards = take_all(&clients[0], 3).await;
        on_every(&masters, 3).await;
        let waiting = waiter(semaphore(&clients[1], 3)).await;
        standing(masters.iter(), 1).await;
        let freed = guards.remove(place);
        let number = freed.permit();
        freed.release().await.unwrap();
        let next = handed(waiting).await;
        assert_eq!(next.permit(), number);
        drop((guards, next));
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn all_who_wait_get_what_is_released_together() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let guards = take_all(&clients[0], 16).await;
    on_every(&masters, 16).await;
    let mut waiters = Vec::new();
    for i in 0..16 {
        waiters.push(waiter(semaphore(&clients[1 + i % 2], 16)).await);
    }
    until("those who stand first", async || {
        masters.iter().all(|server| crate::waiting::queue(server).len() == 16)
    })
    .await;
    let begun = Instant::now();
    drop(guards);
    let mut next = Vec::new();
    for waiter in waiters {
        next.push(handed(waiter).await);
    }
    println!("16 permits changed hands in {:?}", begun.elapsed());
    let numbers: BTreeSet<_> = next.iter().map(|guard| guard.permit().unwrap()).collect();
    assert_eq!(numbers.len(), 16);
    drop(next);
    eventually(SOON, || masters.empty()).await;
}

/// The one that was called goes away before it has asked: the permit is free, though not the one
/// that it asked for last.
#[tokio::test]
async fn a_waiter_that_was_called_and_goes_away_passes_it_on() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    for _ in 0..10 {
        let mut guards = take_all(&clients[0], 4).await;
        on_every(&masters, 4).await;
        let first = waiter(semaphore(&clients[1], 4)).await;
        standing(masters.iter(), 1).await;
        let second = waiter(semaphore(&clients[2], 4)).await;
        standing(masters.iter(), 2).await;
        let (released, ()) = tokio::join!(guards.pop().unwrap().release(), async { first.abort() });
        released.unwrap();
        let next = match first.await {
            Ok(Ok(guard)) => {
                drop(guard); // it was quicker
                handed(second).await
            }
            _ => handed(second).await,
        };
        drop((guards, next));
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn the_permit_of_a_holder_that_died_comes_back_after_its_ttl() {
    let masters = Masters::start(5);
    let ttl = ms(1_500);
    let client = || builder(&masters).timeout(ms(1_000)).build().unwrap();
    let (living, dead, next) = (client(), client(), client());
    let kept = semaphore(&living, 2).acquire().await.unwrap();
    let begun = Instant::now();
    let lost = semaphore(&dead, 2).ttl(ttl).no_renewal().acquire().await.unwrap();
    let number = lost.permit();
    std::mem::forget(lost);
    let got = semaphore(&next, 2).wait(SOON).acquire().await.unwrap();
    assert!(begun.elapsed() >= ttl / 2, "it was not held: {:?}", begun.elapsed());
    assert!(begun.elapsed() < TTL / 2, "it looks when the first permit is over: {:?}", begun.elapsed());
    assert_eq!(got.permit(), number);
    assert!(kept.is_valid());
}

#[tokio::test]
async fn a_minority_that_is_dead_changes_nothing() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    (0..2).for_each(|i| masters[i].kill());
    let mut guards = take_all(&clients[0], 3).await;
    assert!(matches!(semaphore(&clients[1], 3).try_acquire().await, Err(Error::Held { .. })));
    let waiting = waiter(semaphore(&clients[1], 3)).await;
    standing(masters.iter().skip(2), 1).await;
    guards.pop().unwrap().release().await.unwrap();
    handed(waiting).await.release().await.unwrap();
    masters[2].kill();
    let error = semaphore(&clients[1], 3).try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
}

#[tokio::test]
async fn a_permit_that_is_taken_away_is_lost_and_the_others_are_not() {
    let masters = Masters::start(3);
    let (redlock, operator) = (patient(&masters), patient(&masters));
    let permit = semaphore(&redlock, 2).renew_every(ms(200)); // which is when it is told
    let guards = [permit.try_acquire().await.unwrap(), permit.try_acquire().await.unwrap()];
    on_every(&masters, 2).await;
    assert!(semaphore(&operator, 2).is_held_by(&guards[1].owner()).await.unwrap());
    semaphore(&operator, 2).force_release(&guards[1].owner()).await.unwrap();
    let lost = tokio::time::timeout(SOON, guards[1].lost()).await.unwrap();
    assert!(matches!(lost, Error::Lost { cause: Loss::NotOurs, .. }), "{lost}");
    assert!(!semaphore(&operator, 2).is_held_by(&guards[1].owner()).await.unwrap());
    let error = semaphore(&operator, 2).force_release(&guards[1].owner()).await.unwrap_err();
    assert!(matches!(error, Error::NotHeld { .. }), "{error}");
    let next = semaphore(&operator, 2).try_acquire().await.unwrap();
    assert_eq!(next.permit(), guards[1].permit());
    guards[0].extend(TTL).await.unwrap();
    assert!(guards[0].is_valid());
}

#[tokio::test]
async fn whoever_looks_sees_each_permit_that_is_held() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let seen = semaphore(&redlock, 3).inspect().await.unwrap();
    assert!(seen.is_free() && seen.holder().is_none());
    let guards = take_all(&redlock, 2).await;
    drop(guards);
    eventually(SOON, || masters.empty()).await;
    let guard = semaphore(&redlock, 3).acquire().await.unwrap();
    on_every(&masters, 1).await;
    let seen = redlock.inspect("l").await.unwrap();
    assert_eq!((seen.kind(), seen.free(), seen.answered()), (Some(LockKind::Semaphore { permits: 3 }), 2, 3));
    let [held] = seen.held() else { panic!("{seen:?}") };
    assert_eq!(held.part, Part::Permit(guard.permit().unwrap()));
    assert_eq!(
        (&*held.holder.owner, held.fencing_token),
        (&*guard.owner().to_string(), Some(guard.fencing_token()))
    );
    let _others =
        [semaphore(&redlock, 3).acquire().await.unwrap(), semaphore(&redlock, 3).acquire().await.unwrap()];
    until("three to be seen", async || redlock.inspect("l").await.unwrap().held().len() == 3).await;
    assert!(!redlock.inspect("l").await.unwrap().is_free());
}

#[tokio::test]
async fn a_permit_changes_hands() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    let guards = take_all(&here, 2).await;
    let token: Handover = guards[0].hand_over().await.unwrap().to_string().parse().unwrap();
    assert!(matches!(semaphore(&there, 2).try_acquire().await, Err(Error::Held { .. })));
    for other in [semaphore(&there, 3), there.lock("l")] {
        let error = other.adopt(&token).await.unwrap_err();
        assert!(
            matches!(&error, Error::Invalid(why) if why.to_string().starts_with("hand-over ")),
            "{error}"
        );
    }
    let adopted = semaphore(&there, 2).adopt(&token).await.unwrap();
    assert_eq!(adopted.permit(), guards[0].permit());
    assert!(adopted.fencing_token() > guards[0].fencing_token());
    assert!(matches!(semaphore(&there, 2).try_acquire().await, Err(Error::Held { .. })));
    adopted.release().await.unwrap();
    semaphore(&there, 2).try_acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn the_fences_of_each_permit_rise_also_when_their_number_changes() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let mut last = [0; 4];
    for round in 0..10 {
        let permits = if round % 2 == 0 { 3 } else { 4 };
        let guards = take_all(&redlock, permits).await;
        for guard in &guards {
            let last = &mut last[guard.permit().unwrap() as usize];
            assert!(guard.fencing_token().get() > *last);
            *last = guard.fencing_token().get();
        }
        drop(guards);
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn another_number_of_permits_is_refused_while_one_is_held_and_nothing_is_written() {
    let masters = Masters::start(3);
    let (redlock, other) = (patient(&masters), patient(&masters));
    let guard = semaphore(&redlock, 3).acquire().await.unwrap();
    on_every(&masters, 1).await;
    let before = contents(&masters);
    for lock in [semaphore(&other, 2), semaphore(&other, 4), semaphore(&other, 4).wait(Duration::ZERO)] {
        let error = lock.acquire().await.unwrap_err(); // at once: it is not waited for
        let Error::OtherPermits { permits: 3, asked: 2 | 4, votes, .. } = &error else { panic!("{error}") };
        assert_eq!(votes.len(), 3);
        let text = error.to_string();
        assert!(text.contains("has 3 permits, and not") && text.contains("\"l\""), "{text}");
    }
    assert_eq!(semaphore(&other, 3).inspect().await.unwrap().answered(), 3); // behind all that came before
    assert_eq!(contents(&masters), before);
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
    semaphore(&other, 4).try_acquire().await.unwrap().release().await.unwrap();
}

/// What somebody with another number has left on a minority is no obstacle, and is not taken for
/// one of ours.
#[tokio::test]
async fn a_minority_of_another_number_refuses_and_does_not_matter() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    answering(&redlock, 3).await;
    let entry = "9000000000000000 7 1 1";
    let fields = ["kind", "semaphore/5", "fence", "7", "p:0", entry, "o:p:0", "a:1", "entries", "1"];
    let _: i64 = masters[0].command(&[&["HSET", "quorate:{l}"], &fields[..]].concat());
    let guards = take_all(&redlock, 2).await;
    assert!(matches!(semaphore(&redlock, 2).try_acquire().await, Err(Error::Held { .. })));
    guards[0].extend(TTL).await.unwrap();
    drop(guards);
    until("the others to be free", async || masters.keys() == [(0, "quorate:{l}".to_owned())]).await;
}

#[tokio::test]
async fn no_permits_and_too_many_are_refused_before_anything_is_sent() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    for permits in [0, MAX_PERMITS + 1, u32::MAX] {
        let lock = redlock.semaphore("l", permits);
        let owner = redlock.owner();
        let errors = [
            lock.acquire().await.unwrap_err(),
            lock.try_acquire().await.unwrap_err(),
            lock.inspect().await.unwrap_err(),
            lock.force_release(&owner).await.unwrap_err(),
        ];
        for error in errors {
            let wanted = format!("a semaphore of {permits} permits: it must have 1 to {MAX_PERMITS}");
            assert!(matches!(&error, Error::Invalid(why) if why.to_string() == wanted), "{error}");
        }
    }
    let error = semaphore(&redlock, 3).owned_by(&redlock.owner()).acquire().await.unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(why) if why.to_string().contains("an owner of its own")),
        "{error}"
    );
    let connections: Vec<String> =
        masters.iter().map(|server| server.command(&["CLIENT", "LIST", "TYPE", "normal"])).collect();
    assert!(connections.iter().all(|list| list.lines().count() == 1), "it connected: {connections:?}");
    let guards = take_all(&redlock, 3).await;
    assert_eq!(guards.len(), 3);
}

#[tokio::test]
async fn a_thousand_permits_are_given_and_not_one_more() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = semaphore(&redlock, MAX_PERMITS);
    let all = futures::future::join_all((0..MAX_PERMITS).map(|_| lock.acquire())).await;
    let guards: Vec<Guard> = all.into_iter().map(Result::unwrap).collect();
    let numbers: BTreeSet<_> = guards.iter().map(Guard::permit).collect();
    assert_eq!(numbers.len(), MAX_PERMITS as usize);
    assert!(matches!(
        patient(&masters).semaphore("l", MAX_PERMITS).try_acquire().await,
        Err(Error::Held { .. })
    ));
    drop(guards);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_scope_does_not_make_a_permit_its_owners() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let guards = me.scope(take_all(&redlock, 2)).await;
    assert!(guards.iter().all(|guard| guard.owner() != me));
    assert!(matches!(me.scope(semaphore(&redlock, 2).try_acquire()).await, Err(Error::Held { .. })));
}

/// More polls than any operation takes.
const MANY: usize = 100_000;

#[tokio::test]
async fn an_acquire_dropped_after_any_number_of_polls_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let other = semaphore(&redlock, 2).acquire().await.unwrap(); // so that some ask for the one that is taken
    let polls = cancel_at_every_poll(
        MANY,
        || async { semaphore(&redlock, 2).try_acquire().await },
        async |polls, guard| {
            if let Some(guard) = guard {
                assert!(guard.is_ok(), "after {polls} polls: {guard:?}");
            }
            let next = semaphore(&redlock, 2).wait(SOON).acquire().await.unwrap();
            next.release().await.unwrap();
        },
    )
    .await;
    assert!(polls.unwrap() > 1, "it was never cancelled half-way");
    other.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let held = take_all(&redlock, 2).await;
    let polls = cancel_at_every_poll(
        500, // it waits for ever, so it is cancelled in its first tries and in the pauses between them
        || async { semaphore(&redlock, 2).acquire().await },
        async |_, outcome| assert!(outcome.is_none()),
    )
    .await;
    assert_eq!(polls, None);
    for guard in held {
        guard.release().await.unwrap();
    }
    assert_eq!(take_all(&redlock, 2).await.len(), 2);
    eventually(SOON, || masters.empty()).await;
}
