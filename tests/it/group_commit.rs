//! Operations that wait for one master leave together, in one call, and know nothing of each other.

use std::sync::Arc;

use futures::future::{join_all, try_join_all};
use quorate::{Error, Guard, Lock, Outcome, Redlock, Refusal};
use quorate_testkit::{Masters, RedisServer, eventually};
use tokio_util::sync::CancellationToken;

use crate::cancel::same_runtime;
use crate::renewal::{calls, renewed, scripts_run};
use crate::{PATIENT, SOON, TTL, answering, builder, ms, on_all, patient, until};

/// How many operations one call carries, at most.
const TOGETHER: usize = 64;

pub(crate) fn locks(redlock: &Redlock, count: usize) -> Vec<Lock> {
    (0..count).map(|i| redlock.lock(format!("l{i}"))).collect()
}

/// Acquires all of them, which begin in one moment.
pub(crate) async fn acquire_all(locks: &[Lock]) -> Vec<Guard> {
    try_join_all(locks.iter().map(Lock::try_acquire)).await.unwrap()
}

/// Releases all of them at once.
pub(crate) async fn release_all(guards: Vec<Guard>) {
    try_join_all(guards.into_iter().map(Guard::release)).await.unwrap();
}

/// Acquires all of them at once: the error of the one at `place`, when all others were granted, on
/// every master, and are released again.
async fn only_one_is_refused(masters: &Masters, locks: &[Lock], place: usize) -> Error {
    let before = masters.keys().len();
    let mut answers = join_all(locks.iter().map(Lock::try_acquire)).await;
    let refused = answers.remove(place).unwrap_err();
    let guards: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let granted = masters.iter().len() * guards.len();
    until("every key", async || masters.keys().len() == before + granted).await;
    release_all(guards).await;
    until("every release", async || masters.keys().len() == before).await;
    refused
}

/// Every vote that counted is a refusal for this reason.
fn is_refused(error: &Error, wanted: Refusal) -> bool {
    let refusal = |outcome: &Outcome| matches!(outcome, Outcome::Refused { reason, .. } if *reason == wanted);
    let counted = || error.votes().iter().filter(|vote| vote.outcome != Outcome::Pending);
    counted().count() >= 2 && counted().all(|vote| refusal(&vote.outcome))
}

/// Servers in cluster mode, each of which has all slots: two names are seldom in one slot, so no
/// call may have both.
async fn clusters(count: usize) -> Masters {
    let masters = Masters::start_with(count, &["--cluster-enabled", "yes"]);
    for server in masters.iter() {
        let _: () = server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    }
    for server in masters.iter() {
        let is_up = async || server.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        until("the cluster to be up", is_up).await;
    }
    masters
}

#[tokio::test]
async fn operations_that_begin_together_share_calls_and_a_lone_one_leaves_alone() {
    const LOCKS: usize = 200;
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let lone = redlock.lock("lone");
    let calls = || -> Vec<u64> { masters.iter().map(scripts_run).collect() };
    let plus = |before: Vec<u64>, more| -> Vec<u64> { before.iter().map(|calls| calls + more).collect() };
    answering(&redlock, 3).await;
    for _ in 0..5 {
        let before = calls();
        let guard = lone.try_acquire().await.unwrap();
        on_all(&masters).await;
        assert_eq!(calls(), plus(before.clone(), 1));
        guard.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
        assert_eq!(calls(), plus(before, 2));
    }
    let before = calls();
    let guards = acquire_all(&locks(&redlock, LOCKS)).await;
    until("every key", async || masters.keys().len() == 3 * LOCKS).await;
    assert_eq!(calls(), plus(before, LOCKS.div_ceil(TOGETHER) as u64));
    let before = calls();
    release_all(guards).await;
    eventually(SOON, || masters.empty()).await;
    assert_eq!(calls(), plus(before, LOCKS.div_ceil(TOGETHER) as u64));
}

/// The master refuses the call that carries it, and says nothing of the others.
#[tokio::test]
async fn a_lock_that_the_user_may_not_have_is_refused_and_those_beside_it_are_not() {
    let masters = Masters::start(3);
    let keys = ["~quorate:{ok*", "~quorate:waiting:{ok*", "~quorate:master", "~quorate:decree"];
    let rights = [&keys[..], &["&*", "+@all"]].concat();
    for server in masters.iter() {
        let _: () = server.command(&[&["ACL", "SETUSER", "bob", "on", ">secret"][..], &rights].concat());
    }
    let urls = masters.iter().map(|server| format!("redis://bob:secret@127.0.0.1:{}", server.port()));
    let runtime = tokio::runtime::Handle::current();
    let redlock = crate::begin().masters(urls).ttl(TTL).timeout(PATIENT).runtime(runtime).build().unwrap();
    let mut locks: Vec<_> = (0..50).map(|i| redlock.lock(format!("ok{i}"))).collect();
    locks.insert(20, redlock.lock("forbidden"));
    let refused = only_one_is_refused(&masters, &locks, 20).await;
    assert!(is_refused(&refused, Refusal::NoPermission), "{refused}");
}

#[tokio::test]
async fn a_key_of_another_type_is_refused_and_those_beside_it_are_not() {
    let masters = Masters::start(3);
    for server in masters.iter() {
        let _: () = server.command(&["SET", "quorate:{l20}", "x"]);
    }
    let redlock = same_runtime(&masters);
    let refused = only_one_is_refused(&masters, &locks(&redlock, 50), 20).await;
    assert!(is_refused(&refused, Refusal::WrongType), "{refused}");
    assert_eq!(masters.keys(), [0, 1, 2].map(|place| (place, "quorate:{l20}".to_owned())));
}

#[tokio::test]
async fn masters_in_cluster_mode_take_locks_of_all_slots_at_once() {
    let masters = clusters(3).await;
    let redlock = same_runtime(&masters);
    for _ in 0..3 {
        release_all(acquire_all(&locks(&redlock, 200)).await).await;
        eventually(SOON, || masters.empty()).await;
    }
}

/// How many calls it has refused because their keys are in several slots.
fn refusals(server: &RedisServer) -> u64 {
    let stats: String = server.command(&["INFO", "errorstats"]);
    let count = stats.lines().find_map(|line| line.strip_prefix("errorstat_CROSSSLOT:count="));
    count.map_or(0, |count| count.trim().parse().unwrap())
}

/// Where a call of many was refused its operations are sent one by one, more of them than the
/// connection takes in one turn. A release that comes meanwhile has to stay behind its acquire.
#[tokio::test]
async fn what_is_sent_again_one_by_one_is_not_overtaken() {
    let masters = clusters(1).await;
    let redlock = same_runtime(&masters);
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    let mut refused = 0;
    for calls in [2, 4, 8, 24] {
        let locks = locks(&redlock, calls * TOGETHER);
        masters[0].freeze();
        let mut acquires: Vec<_> = locks.iter().map(|lock| Box::pin(lock.try_acquire())).collect();
        for acquire in &mut acquires {
            assert!(futures::poll!(acquire).is_pending());
        }
        for _ in 0..100 {
            tokio::task::yield_now().await; // they are on their way
        }
        masters[0].thaw();
        refused += calls as u64;
        let begun = std::time::Instant::now();
        while refusals(&masters[0]) < refused {
            assert!(begun.elapsed() < SOON); // it has refused them all before this process hears of it
        }
        let first = acquires.remove(0).await.unwrap();
        drop(acquires.pop()); // one that is sent again, or is to be
        release_all(try_join_all(acquires).await.unwrap()).await;
        first.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn scripts_that_masters_forget_again_and_again_disturb_no_operation() {
    const LOCKS: usize = 100;
    let masters = Arc::new(Masters::start(3));
    let redlock = patient(&masters);
    let owner = redlock.owner();
    let locks: Vec<_> = locks(&redlock, LOCKS).into_iter().map(|lock| lock.owned_by(&owner)).collect();
    let (done, forgetful) = (CancellationToken::new(), masters.clone());
    let _done = done.clone().drop_guard();
    std::thread::spawn(move || {
        while !done.is_cancelled() {
            forgetful.iter().for_each(|server| server.command(&["SCRIPT", "FLUSH"]));
        }
    });
    let counts = || -> Vec<Option<u32>> {
        let field = owner.to_string();
        let count = |(place, key): &(usize, String)| crate::holds(&masters[*place], key, &field);
        masters.keys().iter().map(count).collect()
    };
    for _ in 0..5 {
        let outer = acquire_all(&locks).await;
        let inner = acquire_all(&locks).await;
        until("two holds of each", async || counts() == [Some(2); 3 * LOCKS]).await;
        release_all(inner).await;
        until("one hold of each", async || counts() == [Some(1); 3 * LOCKS]).await;
        release_all(outer).await;
        eventually(SOON, || masters.empty()).await;
    }
    assert!(masters.iter().all(|server| calls(server, "eval") > 0), "no script was sent again");
}

#[tokio::test]
async fn renewals_share_calls() {
    const LEASES: usize = 300;
    let masters = Masters::start(3);
    let redlock = builder(&masters).ttl(ms(3_000)).timeout(ms(800)).build().unwrap();
    answering(&redlock, 3).await;
    let guards = acquire_all(&locks(&redlock, LEASES)).await;
    until("every key", async || masters.keys().len() == 3 * LEASES).await;
    let count = || (scripts_run(&masters[0]), calls(&masters[0], "pexpire"));
    let before = count();
    for _ in 0..4 {
        renewed(&guards[LEASES - 1]).await;
    }
    let after = count();
    let (sent, renewals) = (after.0 - before.0, after.1 - before.1);
    assert!(renewals >= 3 * LEASES as u64, "{renewals} renewals");
    assert!(sent * 4 < renewals, "{sent} calls for {renewals} renewals");
    assert!(guards.iter().all(Guard::is_valid), "one was lost");
    release_all(guards).await;
    eventually(SOON, || masters.empty()).await;
}
