//! Who holds a lock.

use quorate::{LockState, Outcome};
use quorate_testkit::Masters;

use crate::{ms, on_all, patient};

#[tokio::test]
async fn an_inspection_says_who_holds_it_where_and_for_how_long() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let seen = redlock.lock("l").inspect().await.unwrap();
    assert!(seen.holder().is_none() && seen.is_free());
    assert_eq!((seen.answered(), seen.quorum(), seen.votes().len()), (5, 3, 5));
    assert!(seen.votes().iter().all(|vote| vote.outcome == Outcome::Absent));

    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let _guards = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    on_all(&masters).await;
    masters[4].kill();
    let seen = redlock.lock("l").inspect().await.unwrap();
    let holder = seen.holder().unwrap();
    assert_eq!((&*holder.owner, holder.masters), (&*me.to_string(), 4));
    assert!(holder.remaining.unwrap() > ms(20_000));
    let counts = seen.votes().iter().filter(|vote| matches!(vote.outcome, Outcome::Held { count: 2, .. }));
    assert_eq!(counts.count(), 4);
    assert_eq!(seen.answered(), 4);
}

#[tokio::test]
async fn an_inspection_tells_the_holders_fencing_token() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    assert_eq!(redlock.lock("l").inspect().await.unwrap().fencing_token(), None);
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    assert_eq!(redlock.lock("l").inspect().await.unwrap().fencing_token(), Some(guard.fencing_token()));
    guard.release().await.unwrap();
    assert_eq!(redlock.lock("l").inspect().await.unwrap().fencing_token(), None);
}

#[tokio::test]
async fn a_minority_is_no_holder() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    crate::give(&masters[0], "l", "somebody", crate::TTL);
    let seen = redlock.lock("l").inspect().await.unwrap();
    assert!(seen.holder().is_none() && seen.is_free());
    crate::give(&masters[1], "l", "somebody", crate::TTL);
    let holder = redlock.lock("l").inspect().await.unwrap().holder().unwrap();
    assert_eq!((&*holder.owner, holder.masters), ("somebody", 2));
}

#[tokio::test]
async fn a_state_is_what_a_majority_knows() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let state = async || redlock.lock("l").inspect().await.unwrap().state();
    assert_eq!(state().await, LockState::Free);
    crate::give(&masters[0], "l", "one", crate::TTL);
    assert_eq!(state().await, LockState::Free, "a minority is nothing");
    crate::give(&masters[1], "l", "another", crate::TTL);
    assert_eq!(state().await, LockState::Split);
    crate::give(&masters[1], "l", "one", crate::TTL);
    assert_eq!(state().await, LockState::Held);
    for server in masters.iter().take(2) {
        let _: String = server.command(&["SET", "quorate:{l}", "x"]);
    }
    assert_eq!(state().await, LockState::NoLock);
    masters[0].kill();
    masters[1].kill();
    assert_eq!(state().await, LockState::Unknown);
}
