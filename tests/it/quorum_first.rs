//! A fresh acquire that asks a quorum of the masters first: `Builder::quorum_first_above`.
//! Exclusion does not rest on it, but all else has to be as if all had been asked.

use futures::future::join_all;
use quorate::{Guard, Outcome, Redlock};
use quorate_testkit::{Masters, Proxy, Toxic, Way, eventually};

use crate::cancel::same_runtime;
use crate::waiting::waiter;
use crate::wake_ups::LONG;
use crate::{PATIENT, SOON, answering, builder, ms, on_all, until};

/// A client that always asks a quorum first, of those masters that have voted.
async fn quorum_first(masters: &Masters) -> Redlock {
    let redlock = builder(masters).quorum_first_above(0).build().unwrap();
    knows_all(&redlock, masters.iter().len()).await;
    redlock
}

/// Each master votes some times, so that the client knows how near it is, and that it is well.
async fn knows_all(redlock: &Redlock, count: usize) {
    for _ in 0..10 {
        answering(redlock, count).await;
    }
    let guard = redlock.lock("known").acquire().await.unwrap();
    guard.extend(guard.remaining()).await.unwrap();
    guard.release().await.unwrap();
}

/// Which masters were asked for this grant.
fn asked(guard: &Guard) -> Vec<usize> {
    let votes = guard.votes();
    let asked = votes.iter().enumerate().filter(|(_, vote)| vote.outcome != Outcome::NotAsked);
    asked.map(|(index, _)| index).collect()
}

/// A lock whose first attempt asks a quorum and nobody else. Once a second it asks one more. It is
/// not renewed, which would give it to all masters.
async fn of_a_quorum(redlock: &Redlock, quorum: usize) -> Guard {
    for number in 0.. {
        let guard = redlock.lock(format!("q{number}")).no_renewal().acquire().await.unwrap();
        if asked(&guard).len() == quorum {
            return guard;
        }
        guard.release().await.unwrap();
    }
    unreachable!()
}

#[tokio::test]
async fn a_lease_of_a_quorum_that_lasts_is_given_to_the_rest() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let guard = of_a_quorum(&redlock, 3).await;
    assert_eq!(guard.votes().iter().filter(|vote| vote.outcome == Outcome::Granted).count(), 3);
    on_all(&masters).await;
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn each_name_has_its_own_quorum_and_all_masters_are_asked_in_turn() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let mut times_asked = [0; 5];
    for number in 0..200 {
        let guard = redlock.lock(format!("l{number}")).acquire().await.unwrap();
        asked(&guard).into_iter().for_each(|index| times_asked[index] += 1);
        guard.release().await.unwrap();
    }
    assert!(times_asked.iter().all(|times| *times > 0), "{times_asked:?}");
    assert!(times_asked.iter().sum::<i32>() <= 200 * 4, "{times_asked:?}");
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn locks_are_taken_and_released_while_masters_are_down() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let held = of_a_quorum(&redlock, 3).await;
    let down = asked(&held)[0];
    masters[down].kill();
    held.release().await.unwrap(); // a quorum has no such lock any more, counting those never asked
    let mut of_some = 0;
    for number in 0..50 {
        let guard = redlock.lock(format!("l{number}")).acquire().await.unwrap();
        of_some += usize::from(asked(&guard).len() < 5);
        guard.release().await.unwrap();
    }
    assert!(of_some > 0);
}

/// The first acquires that ask it wait for the hedge, and those that come later for nothing. One a
/// second asks it besides.
#[tokio::test]
async fn a_master_that_freezes_is_seldom_asked_and_preferred_again_when_it_goes_on() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let before = redlock.quorum_first_counts().hedged;
    masters[2].freeze();
    let mut times_asked = 0;
    for number in 0..100 {
        let guard = redlock.lock(format!("l{number}")).acquire().await.unwrap();
        times_asked += usize::from(asked(&guard).contains(&2));
        guard.release().await.unwrap();
    }
    assert!((1..50).contains(&times_asked), "asked {times_asked} times in 100");
    assert!(redlock.quorum_first_counts().hedged > before);
    masters[2].thaw();
    eventually(SOON, || masters.empty()).await;
    until("it to be preferred", async || {
        let mut times_asked = 0;
        for number in 0..20 {
            let guard = redlock.lock(format!("l{number}")).acquire().await.unwrap();
            times_asked += usize::from(asked(&guard).contains(&2));
            guard.release().await.unwrap();
        }
        times_asked > 5
    })
    .await;
}

#[tokio::test]
async fn a_slow_master_is_not_preferred() {
    let masters = Masters::start(5);
    let slow = Proxy::start_slow(masters[0].address(), ms(50)).await;
    let urls = std::iter::once(slow.url()).chain(masters.urls().into_iter().skip(1));
    let redlock = crate::begin().masters(urls).timeout(PATIENT).quorum_first_above(0).build().unwrap();
    knows_all(&redlock, 5).await;
    let mut times_asked = 0;
    for number in 0..100 {
        let guard = redlock.lock(format!("l{number}")).acquire().await.unwrap();
        times_asked += u32::from(asked(&guard).contains(&0));
        guard.release().await.unwrap();
    }
    assert!(times_asked < 50, "asked {times_asked} times in 100");
}

/// To each of them two other masters are far away.
async fn two_with_other_masters(masters: &Masters) -> (Redlock, Redlock, Vec<Proxy>) {
    let mut proxies = Vec::new();
    let mut clients = Vec::new();
    for far in [[0, 1], [3, 4]] {
        let mut urls = masters.urls();
        for index in far {
            let proxy = Proxy::start(masters[index].address()).await;
            urls[index] = proxy.url();
            proxies.push(proxy);
        }
        let redlock = crate::begin().masters(urls).timeout(PATIENT).quorum_first_above(0).build().unwrap();
        answering(&redlock, 5).await;
        clients.push(redlock);
    }
    proxies.iter().for_each(|proxy| {
        proxy.add(Way::Both, Toxic::Latency { delay: ms(10), jitter: ms(1) });
    });
    for redlock in &clients {
        knows_all(redlock, 5).await;
    }
    let second = clients.pop().unwrap();
    (clients.pop().unwrap(), second, proxies)
}

#[tokio::test]
async fn one_of_two_that_prefer_other_masters_gets_the_lock() {
    let masters = Masters::start(5);
    let (first, second, _proxies) = two_with_other_masters(&masters).await;
    for number in 0..100 {
        let name = format!("l{number}");
        let one = first.lock(name.clone());
        let other = second.lock(name);
        let (one, other) = tokio::join!(one.try_acquire(), other.try_acquire());
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        one.or(other).unwrap().release().await.unwrap();
    }
    assert!(first.quorum_first_counts().rounds > 0 && second.quorum_first_counts().rounds > 0);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn tokens_of_clients_that_prefer_other_masters_rise() {
    let masters = Masters::start(5);
    let (first, second, _proxies) = two_with_other_masters(&masters).await;
    let mut last = 0;
    for _ in 0..50 {
        for client in [&first, &second] {
            let guard = client.lock("l").acquire().await.unwrap();
            let token = u64::from(guard.fencing_token());
            assert!(token > last);
            last = token;
            guard.release().await.unwrap();
        }
    }
}

/// It is given to the other two, though waiters ask for these.
#[tokio::test]
async fn a_lease_of_three_survives_the_loss_of_two_of_them_while_others_wait() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let others: Vec<Redlock> = join_all((0..4).map(|_| quorum_first(&masters))).await;
    let guard = of_a_quorum(&redlock, 3).await;
    let has_it = asked(&guard);
    let mut waiters = Vec::new();
    for client in others.iter().cycle().take(40) {
        waiters.push(waiter(client.lock(guard.name()).wait(LONG)).await);
    }
    let owner = guard.owner().to_string();
    until("the lease to be on all masters", async || {
        let holder = redlock.lock(guard.name()).inspect().await.unwrap().holder();
        holder.is_some_and(|holder| *holder.owner == *owner && holder.masters == 5)
    })
    .await;
    has_it[..2].iter().for_each(|index| masters[*index].kill());
    guard.extend(guard.remaining()).await.unwrap();
    guard.release().await.unwrap();
    waiters.iter().for_each(tokio::task::JoinHandle::abort);
}

/// All masters have to have it before: a transfer writes nothing where there is nothing.
#[tokio::test]
async fn a_lease_of_a_quorum_is_handed_over_whole() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let guard = of_a_quorum(&redlock, 3).await;
    let has_it = asked(&guard);
    let handover = guard.hand_over().await.unwrap();
    masters[has_it[0]].kill();
    masters[has_it[1]].kill();
    let adopted = redlock.lock(handover.name().clone()).adopt(&handover).await.unwrap();
    adopted.release().await.unwrap();
}

#[tokio::test]
async fn who_may_be_known_to_others_asks_all() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let owner = redlock.owner();
    let token = tokio_util::sync::CancellationToken::new();
    for number in 0..20 {
        let name = format!("l{number}");
        let guards = [
            redlock.lock(name.clone()).owned_by(&owner).acquire().await.unwrap(),
            redlock.lock(format!("{name}-c")).cancelled_by(token.clone()).acquire().await.unwrap(),
            redlock.fair_lock(format!("{name}-f")).acquire().await.unwrap(),
            redlock.write_lock(format!("{name}-w")).acquire().await.unwrap(),
        ];
        for guard in guards {
            assert_eq!(asked(&guard).len(), 5);
            guard.release().await.unwrap();
        }
    }
}

/// However each ends.
#[tokio::test]
async fn no_round_is_under_way_for_ever() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    let held = redlock.lock("held").acquire().await.unwrap();
    drop(redlock.lock("l").acquire().await.unwrap());
    drop(futures::poll!(&mut Box::pin(redlock.lock("dropped").acquire())));
    assert!(redlock.lock("held").try_acquire().await.is_err());
    masters[0].kill();
    held.release().await.unwrap();
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    until("all rounds to end", async || redlock.quorum_first_counts().under_way == 0).await;
}

/// The master was asked late, and has it when it goes on.
#[tokio::test]
async fn a_release_reaches_every_master_that_was_asked() {
    let masters = Masters::start(5);
    let redlock = quorum_first(&masters).await;
    masters[1].freeze();
    masters[3].freeze();
    let guards = join_all((0..20).map(|number| redlock.lock(format!("l{number}")).acquire())).await;
    for guard in guards {
        guard.unwrap().release().await.unwrap();
    }
    masters[1].thaw();
    masters[3].thaw();
    eventually(SOON, || masters.empty()).await; // long before the TTL is over
}

/// Whenever it goes away, and whether or not the rest was asked: one master is frozen at times.
#[tokio::test]
async fn an_acquire_dropped_after_any_number_of_steps_leaves_nothing() {
    let masters = Masters::start(5);
    let redlock =
        builder(&masters).runtime(tokio::runtime::Handle::current()).quorum_first_above(0).build().unwrap();
    knows_all(&redlock, 5).await;
    for steps in 0..80 {
        match steps % 20 {
            5 => masters[1].freeze(),
            15 => masters[1].thaw(),
            _ => {}
        }
        let lock = redlock.lock(format!("l{steps}"));
        let mut acquire = Box::pin(lock.acquire());
        assert!(futures::poll!(&mut acquire).is_pending());
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        drop(acquire);
    }
    masters[1].thaw();
    eventually(SOON, || masters.empty()).await;
}

/// A few acquires at a time are no load.
#[tokio::test]
async fn by_default_a_client_with_little_to_do_asks_all() {
    let masters = Masters::start(5);
    let redlock = same_runtime(&masters);
    knows_all(&redlock, 5).await;
    for number in 0..20 {
        let guard = redlock.lock(format!("l{number}")).acquire().await.unwrap();
        assert_eq!(asked(&guard).len(), 5);
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn by_default_a_client_with_much_to_do_asks_a_quorum_first() {
    let masters = Masters::start(5);
    let redlock = builder(&masters).build().unwrap();
    knows_all(&redlock, 5).await;
    let guards = join_all((0..200).map(|number| redlock.lock(format!("l{number}")).acquire())).await;
    let guards: Vec<Guard> = guards.into_iter().map(Result::unwrap).collect();
    assert!(guards.iter().any(|guard| asked(guard).len() < 5));
    for guard in guards {
        guard.release().await.unwrap();
    }
}
