//! Releasing, and releasing what is not held.

use std::sync::Arc;

use quorate::{Error, Init, Loss, MasterStatus, Outcome, Redlock, Standing};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::clock::Jumping;
use crate::{PATIENT, SOON, TTL, builder, ms, on_all, patient, until};

#[tokio::test]
async fn releasing_more_than_is_held_is_an_error() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let not_held = |result| matches!(result, Err(Error::NotHeld { owner, .. }) if owner == me);
    assert!(not_held(lock.release().await), "nothing was ever held");
    let (first, second) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    lock.release().await.unwrap();
    lock.release().await.unwrap();
    assert!(!first.is_valid() && !second.is_valid(), "their holds were given back");
    assert!(not_held(lock.release().await));
    assert!(not_held(first.release().await));
    drop(second);
    let other = redlock.lock("l").try_acquire().await.unwrap();
    assert!(not_held(lock.release().await), "another holds it");
    assert!(other.is_valid());
}

#[tokio::test]
async fn releasing_a_lease_that_is_over_says_so_and_cleans_up() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let guard = redlock.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
    on_all(&masters).await;
    clock.jump(TTL);
    assert!(!guard.is_valid());
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    eventually(SOON, || masters.empty()).await;
}

/// It waits for a renewal that two masters do not answer.
#[tokio::test]
async fn a_release_in_time_that_is_sent_too_late_is_no_loss() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).timeout(SOON).build().unwrap();
    let guard = redlock.lock("l").renew_every(ms(100)).acquire().await.unwrap();
    on_all(&masters).await;
    masters[0].freeze();
    masters[1].freeze();
    tokio::time::sleep(ms(500)).await; // a renewal is under way
    assert!(guard.is_valid());
    let deadline = guard.deadline();
    let mut releasing = Box::pin(guard.release());
    assert!(futures::poll!(&mut releasing).is_pending());
    clock.stand_at(deadline + ms(1));
    masters[0].thaw();
    masters[1].thaw();
    let released = releasing.await;
    assert!(matches!(released, Ok(()) | Err(Error::ReleaseUnconfirmed { .. })), "{released:?}");
    eventually(SOON, || masters.empty()).await;
}

/// Two lost their state, and their quarantine kept others out; only one says that the lock was
/// taken away.
#[tokio::test]
async fn a_release_that_a_majority_knows_nothing_of_is_not_known_to_have_been_one() {
    let masters = Masters::start(5);
    let settings = Redlock::builder().masters(masters.urls()).ttl(TTL).timeout(PATIENT);
    let redlock = crate::begun(settings, Init::new()).await;
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    on_all(&masters).await;
    for i in 0..2 {
        let _: () = masters[i].command(&["FLUSHALL"]);
    }
    let is_quarantined = |status: &MasterStatus| matches!(status.standing, Standing::Quarantined { .. });
    until("their quarantine", async || {
        redlock.lock("m").inspect().await.unwrap();
        redlock.master_status().iter().filter(|status| is_quarantined(status)).count() == 2
    })
    .await;
    let _: i64 = masters[2].command(&["DEL", "quorate:{l}"]);
    let error = guard.release().await.unwrap_err();
    let Error::ReleaseUnconfirmed { votes, confirmed: 2, needed: 3, .. } = &error else {
        panic!("{error:#}")
    };
    assert_eq!(votes.iter().filter(|vote| vote.outcome == Outcome::Absent).count(), 3, "{error:#}");
    eventually(SOON, || masters.empty()).await;
}

/// As an extend would: a master that answers is not one that is silent.
#[tokio::test]
async fn releasing_a_lock_that_was_taken_away_says_that_it_was_lost() {
    let masters = Masters::start(5);
    let (redlock, operator) = (patient(&masters), patient(&masters));
    let lost = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Lost { cause: Loss::NotOurs, .. }), "{error:#}");
        assert!(!error.is_retryable());
    };
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    operator.lock("l").force_release(&guard.owner()).await.unwrap();
    lost(guard.release().await);

    for deleted in [5, 3] {
        let guard = redlock.lock("l").acquire().await.unwrap();
        on_all(&masters).await;
        for master in masters.iter().take(deleted) {
            let _: i64 = master.command(&["DEL", "quorate:{l}"]);
        }
        lost(guard.release().await);
        eventually(SOON, || masters.empty()).await;
    }

    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    for master in masters.iter().take(2) {
        let _: i64 = master.command(&["DEL", "quorate:{l}"]);
    }
    guard.release().await.unwrap(); // a majority had it until now
}

/// Where somebody waited, the masters leave a release to another script, and what comes behind it
/// is refused at first.
#[tokio::test]
async fn what_was_just_dropped_can_be_had_again_though_somebody_waited() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    for i in 0..20 {
        let name = format!("l{i}");
        let guard = redlock.lock(&name).try_acquire().await.unwrap();
        let key = format!("quorate:{{{name}}}");
        let has_entry = |master: &RedisServer| master.command::<bool>(&["HEXISTS", &key, "x"]);
        until("the entry on every master", async || masters.iter().all(has_entry)).await;
        masters.iter().for_each(|master| master.command(&["HSET", &key, "queued", "1"]));
        drop(guard);
        let again = redlock.lock(&name).try_acquire().await;
        assert!(again.is_ok(), "{name}: {again:?}");
    }
}

#[tokio::test]
async fn a_release_never_touches_another_owners_lock() {
    let masters = Masters::start(1);
    let redlock = patient(&masters);
    let brief = builder(&masters).timeout(ms(200)).build().unwrap();
    let old = brief.lock("l").ttl(ms(300)).no_renewal().acquire().await.unwrap();
    let new = redlock.lock("l").wait(SOON).acquire().await.unwrap(); // once the key has expired
    assert!(matches!(old.release().await, Err(Error::Lost { .. })));
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    new.release().await.unwrap();
}

#[tokio::test]
async fn a_release_without_a_quorum_goes_on_in_the_background() {
    let mut masters = Masters::start(3);
    let redlock = patient(&masters); // the third has time to answer
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    on_all(&masters).await;
    masters[0].freeze();
    masters[1].freeze();
    let error = guard.release().await.unwrap_err();
    let Error::ReleaseUnconfirmed { confirmed: 1, needed: 2, free_within, .. } = error else {
        panic!("{error}")
    };
    assert!(free_within > TTL && free_within < TTL * 2, "{free_within:?}");
    assert!(!error.is_retryable() && !error.is_busy(), "the work is done");
    masters[0].thaw();
    masters[1].thaw();
    eventually(SOON, || masters.empty()).await;
    masters[0].restart();
}

#[tokio::test]
async fn a_stuck_lock_can_be_broken_by_naming_its_owner() {
    let masters = Masters::start(5);
    let (holder, operator) = (patient(&masters), patient(&masters));
    let me = holder.owner();
    let lock = holder.lock("l").owned_by(&me);
    let (first, second) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    let field = me.to_string();
    let entered = |server: &RedisServer| crate::holds(server, "quorate:{l}", &field) == Some(2);
    eventually(SOON, || if masters.iter().all(entered) { Ok(()) } else { Err("not on all yet") }).await;
    let error = operator.lock("l").force_release(&operator.owner()).await.unwrap_err();
    assert!(matches!(error, Error::NotHeld { .. }), "{error}");
    assert!(error.votes().to_string().contains(&me.to_string()), "it says who does: {error:#}");

    operator.lock("l").force_release(&me).await.unwrap();
    assert_eq!(masters.empty(), Ok(()), "however many holds there were");
    assert!(matches!(operator.lock("l").force_release(&me).await, Err(Error::NotHeld { .. })));
    let error = first.extend(ms(30_000)).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(!second.is_valid(), "the lease is one for both");
    let taken = operator.lock("l").try_acquire().await.unwrap();
    drop((first, second));
    assert!(taken.is_valid());
    assert!(matches!(holder.lock("l").try_acquire().await, Err(Error::Held { .. })));
}

#[tokio::test]
async fn breaking_a_lock_of_this_client_ends_its_guards() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let guard = redlock.lock("l").owned_by(&me).acquire().await.unwrap();
    redlock.lock("l").force_release(&me).await.unwrap();
    assert!(!guard.is_valid());
    assert!(matches!(guard.lost().await, Error::Lost { cause: Loss::NotOurs, .. }), "it was not its own");
    assert!(matches!(guard.release().await, Err(Error::Lost { cause: Loss::NotOurs, .. })));
    let error = redlock.lock("l").force_release(&me).await.unwrap_err();
    assert!(matches!(error, Error::NotHeld { .. }), "{error}");
}

#[tokio::test]
async fn breaking_without_a_quorum_does_not_claim_that_the_lock_is_free() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    masters[0].kill();
    masters[1].kill();
    let error = redlock.lock("l").force_release(&guard.owner()).await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
}

#[tokio::test]
async fn a_shutdown_flushes_releases_and_refuses_what_comes_after() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let locks: Vec<_> = (0..50).map(|i| redlock.lock(format!("l{i}"))).collect();
    let guards = futures::future::join_all(locks.iter().map(quorate::Lock::try_acquire)).await;
    assert!(guards.iter().all(Result::is_ok));
    drop(guards);
    assert!(redlock.shutdown(SOON).await.is_complete());
    assert_eq!(masters.empty(), Ok(()));
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Closed)));
    assert!(redlock.lock("l").inspect().await.unwrap().is_free());
    assert!(redlock.shutdown(SOON).await.is_complete());
}

#[tokio::test]
async fn a_guard_that_outlives_the_shutdown_is_still_released() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let (one, two) = (redlock.lock("1").acquire().await.unwrap(), redlock.lock("2").acquire().await.unwrap());
    assert!(redlock.shutdown(SOON).await.is_complete());
    assert!(one.is_valid());
    one.extend(ms(60_000)).await.unwrap();
    assert!(one.remaining() > ms(50_000));
    one.release().await.unwrap();
    drop(two);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_shutdown_that_cannot_flush_says_so_at_its_deadline() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").acquire().await.unwrap();
    crate::on_all(&masters).await;
    masters[0].freeze();
    drop(guard);
    let shutdown = redlock.shutdown(ms(2_000)).await;
    let [unconfirmed] = &*shutdown.unconfirmed else { panic!("{shutdown}") };
    assert_eq!((&*unconfirmed.master, unconfirmed.left), (&*redlock.master_status()[0].master, 1));
    assert!(!shutdown.is_complete() && shutdown.to_string().contains(&*unconfirmed.master), "{shutdown}");
    masters[0].thaw();
    eventually(SOON, || masters.empty()).await;
    let shutdown = redlock.shutdown(SOON).await;
    assert!(shutdown.is_complete() && shutdown.unconfirmed.is_empty(), "{shutdown}");
}

/// The guard whose hold was given back by its owner has nothing to give back itself: another one's
/// must stay.
#[tokio::test]
async fn a_hold_is_given_back_once_by_its_owner_or_its_guard() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    lock.release().await.unwrap();
    assert!(matches!(inner.release().await, Err(Error::NotHeld { .. })));
    assert!(outer.is_valid());
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    let again = lock.acquire().await.unwrap();
    outer.release().await.unwrap();
    assert!(again.is_valid());
    again.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_guard_of_a_lapsed_lease_has_lost_it_whatever_its_owner_did_since() {
    let masters = Masters::start(3);
    let (brief, patient) = (ms(1_000), patient(&masters)); // so brief that its masters let others have it soon
    let redlock = builder(&masters).timeout(ms(900)).build().unwrap();
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let old = lock.clone().ttl(brief).no_renewal().acquire().await.unwrap();
    eventually(SOON, || if old.is_valid() { Err("still valid") } else { Ok(()) }).await;
    lock.acquire().await.unwrap().release().await.unwrap();
    assert!(matches!(old.release().await, Err(Error::Lost { .. })));

    let old = lock.clone().ttl(brief).no_renewal().acquire().await.unwrap();
    eventually(SOON, || if old.is_valid() { Err("still valid") } else { Ok(()) }).await;
    let other = patient.lock("l").wait(SOON).acquire().await.unwrap();
    assert!(matches!(lock.try_acquire().await, Err(Error::Held { .. })));
    assert!(matches!(old.release().await, Err(Error::Lost { .. })));
    assert!(other.is_valid());
}

/// Breaking a lock of one's own without a quorum goes on in the background, as any release does.
#[tokio::test]
async fn breaking_an_own_lock_is_done_when_the_masters_are_back() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let me = redlock.owner();
    let guard =
        redlock.lock("l").owned_by(&me).ttl(ms(3_600_000)).renew_every(ms(500)).acquire().await.unwrap();
    on_all(&masters).await;
    masters[0].freeze();
    masters[1].freeze();
    let error = redlock.lock("l").force_release(&me).await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
    assert!(!guard.is_valid());
    masters[0].thaw();
    masters[1].thaw();
    assert!(matches!(guard.release().await, Err(Error::Lost { cause: Loss::NotOurs, .. })));
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_shutdown_ends_the_acquires_that_wait() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").acquire().await.unwrap();
    let waiting = tokio::spawn({
        let redlock = redlock.clone();
        async move { redlock.lock("l").wait(TTL).acquire().await }
    });
    crate::waiting::standing(masters.iter(), 1).await;
    assert!(redlock.shutdown(SOON).await.is_complete());
    assert!(matches!(waiting.await.unwrap(), Err(Error::Closed)));
    guard.release().await.unwrap();
}

/// What a dead master was not told, it does not need to hear once its key has expired.
#[tokio::test]
async fn nothing_is_left_to_tell_a_dead_master_when_its_keys_are_over() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(200)).build().unwrap();
    let mut guards = Vec::new();
    for i in 0..100 {
        guards.push(redlock.lock(format!("l{i}")).ttl(ms(2_000)).no_renewal().acquire().await.unwrap());
    }
    masters[2].kill();
    drop(guards);
    let shutdown = redlock.shutdown(ms(1_000)).await;
    let left: Vec<_> = shutdown.unconfirmed.iter().map(|unconfirmed| unconfirmed.left).collect();
    assert!(!shutdown.is_complete() && matches!(left[..], [1..=100]), "{shutdown:?}");
    assert!(redlock.shutdown(SOON).await.is_complete());
}

/// Renewal must not take back what was broken, on a master that never had it or was out of reach
/// then.
#[tokio::test]
async fn a_lock_that_was_broken_is_not_taken_back_where_its_owner_never_had_it() {
    let masters = Masters::start(3);
    let (holder, admin) = (patient(&masters), patient(&masters));
    let guard = holder.lock("l").renew_every(ms(200)).acquire().await.unwrap();
    crate::on_all(&masters).await;
    // The third master never granted it, as far as it knows.
    let _: i64 = masters[2].command(&["DEL", "quorate:{l}"]);
    masters[1].freeze();
    let _ = admin.lock("l").force_release(&guard.owner()).await; // two of three heard it
    masters[1].thaw();
    let lost = tokio::time::timeout(SOON, guard.lost()).await.expect("it is told");
    assert!(matches!(lost, Error::Lost { .. }), "{lost}");
    drop(guard);
    until("nothing to be left", async || masters.keys().is_empty()).await;
}
