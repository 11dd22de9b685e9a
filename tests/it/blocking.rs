//! The blocking API: on plain threads, where a call may wait, and where it may not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use quorate::seam::Clock;
use quorate::{Error, Guard, Handover, Loss, Moment, Observed, Redlock, compat};
use quorate_testkit::{Masters, RedisServer};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{block_in_place, spawn_blocking};
use tokio_util::sync::CancellationToken;

use crate::clock::Jumping;
use crate::waiting::queue;
use crate::{SOON, TTL, all_new, builder, ms};

fn client(masters: &Masters) -> Redlock {
    crate::patient(masters)
}

/// Waits for a condition that has to be asked for.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < SOON, "waited {SOON:?} for {what}");
        thread::sleep(ms(2));
    }
}

fn until_released(masters: &Masters) {
    until("the release on every master", || masters.empty().is_ok());
}

fn until_on_all(masters: &Masters) {
    until("the key on every master", || masters.keys().len() == masters.iter().len());
}

/// Waits until somebody stands in the queue of the lock `l` on every master.
fn until_queued(masters: &Masters) {
    until("a place in the queues", || masters.iter().all(|server| !queue(server).is_empty()));
}

/// Makes a call on a thread of its own, and hears its answer.
fn on_a_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
    let (reply, answer) = mpsc::channel();
    thread::spawn(move || reply.send(call()));
    answer
}

fn is_lost(result: Result<(), Error>) -> bool {
    matches!(result, Err(Error::Lost { cause: Loss::Expired, .. }))
}

#[test]
fn a_lock_is_taken_refused_and_given_back_without_a_runtime() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let guard = redlock.lock("l").acquire_blocking().unwrap();
    assert_eq!((guard.name(), guard.is_valid()), ("l", true));
    assert!(
        guard.fencing_token().get() > 0 && guard.remaining() > TTL / 2 && guard.deadline() > redlock.now()
    );
    assert_eq!((guard.votes().len(), redlock.master_status().len()), (3, 3));
    let error = redlock.lock("l").try_acquire_blocking().unwrap_err();
    assert_eq!(*error.holder().unwrap().owner, guard.owner().to_string());
    guard.release_blocking().unwrap();
    let next = redlock.lock("l").try_acquire_blocking().unwrap();
    until_on_all(&masters);
    drop(next);
    until_released(&masters);
}

/// The methods whose names say which lock they make.
const KINDS: [fn(&Redlock) -> compat::UnfencedLock; 9] = [
    |redlock| redlock.lock("l").into(),
    |redlock| redlock.fair_lock("l").into(),
    |redlock| redlock.mutex("l").into(),
    |redlock| redlock.plain_mutex("l"),
    |redlock| redlock.lock_all(["l", "m"]).into(),
    |redlock| redlock.read_lock("l").into(),
    |redlock| redlock.write_lock("l").into(),
    |redlock| redlock.semaphore("l", 1).into(),
    |redlock| redlock.redisson_lock("l"),
];

/// What a lock looks like on a master: its keys, and what is in them, but for its owner and
/// numbers.
fn looks(server: &RedisServer, guard: &compat::UnfencedGuard) -> Vec<String> {
    let owner = guard.owner().to_string();
    let mut keys = server.keys();
    keys.sort();
    let look = |key: String| {
        let kept: String = server.command(&["TYPE", &key]);
        let words: Vec<String> = match &*kept {
            "string" => vec![server.command(&["GET", &key])],
            "hash" => server.command(&["HGETALL", &key]),
            _ => server.command(&["ZRANGE", &key, "0", "-1"]),
        };
        let words = words.join(" ").replace(&owner, "OWNER");
        format!("{kept} {key} {}", words.replace(|c: char| c.is_ascii_digit(), ""))
    };
    keys.into_iter().map(look).collect()
}

/// Waits until nothing is held, and has the master forget the names.
fn forgotten(masters: &Masters) {
    until_released(masters);
    let _: i64 = masters[0].command(&["DEL", "quorate:{l}", "quorate:{m}"]);
}

#[test]
fn locks_of_all_kinds_are_taken_on_a_thread() {
    let masters = Masters::start(1);
    let redlock = client(&masters);
    let mut seen = Vec::new();
    for kind in KINDS {
        let guard = kind(&redlock).acquire_blocking().unwrap();
        let look = looks(&masters[0], &guard);
        guard.release_blocking().unwrap();
        forgotten(&masters);
        assert!(!seen.contains(&look), "another kind looks the same: {look:?}");
        seen.push(look);
    }
    println!("{seen:#?}");
}

#[test]
fn an_owner_re_enters() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let (outer, inner) = (lock.acquire_blocking().unwrap(), lock.acquire_blocking().unwrap());
    assert_eq!(outer.owner(), inner.owner());
    lock.release_blocking().unwrap();
    assert!(matches!(redlock.lock("l").try_acquire_blocking(), Err(Error::Held { .. })));
    lock.release_blocking().unwrap();
    assert!(matches!(lock.release_blocking(), Err(Error::NotHeld { .. })));
    assert!(!outer.is_valid() && !inner.is_valid());
    redlock.lock("l").try_acquire_blocking().unwrap().release_blocking().unwrap();
}

#[test]
fn a_scope_is_one_threads() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let me = redlock.owner();
    me.scope_blocking(|| {
        let outer = redlock.lock("l").acquire_blocking().unwrap();
        let inner = redlock.lock("l").try_acquire_blocking().unwrap();
        assert_eq!((outer.owner(), inner.owner()), (me, me));
        let other =
            thread::scope(|scope| scope.spawn(|| redlock.lock("l").try_acquire_blocking()).join().unwrap());
        assert!(matches!(other, Err(Error::Held { .. })));
    });
    let after = redlock.lock("m").acquire_blocking().unwrap();
    assert_ne!(after.owner(), me);
}

#[test]
fn a_wait_ends_with_its_time() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let _held = redlock.lock("l").acquire_blocking().unwrap();
    let error = redlock.lock("l").wait(ms(150)).acquire_blocking().unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { waited, .. } if waited >= ms(150)), "{error}");
    let error = redlock.lock("l").wait(TTL).poll_every(ms(2), 3).acquire_blocking().unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { attempts: 3, .. }), "{error}");
}

/// Whoever is not woken looks again when the holder's TTL is over, which is later than `SOON`.
#[test]
fn a_waiter_is_woken_by_the_release_of_another_client() {
    let masters = Masters::start(3);
    let (here, there) = (client(&masters), client(&masters));
    let held = here.lock("l").ttl(2 * TTL).acquire_blocking().unwrap();
    let woken = on_a_thread(move || there.lock("l").wait(2 * TTL).acquire_blocking());
    until_queued(&masters);
    held.release_blocking().unwrap();
    woken.recv_timeout(SOON).unwrap().unwrap().release_blocking().unwrap();
    until_released(&masters);
}

#[test]
fn another_thread_cancels_a_wait() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let _held = redlock.lock("l").acquire_blocking().unwrap();
    let token = CancellationToken::new();
    let waiting = redlock.lock("l").wait(TTL).cancelled_by(token.clone());
    let cancelled = on_a_thread(move || waiting.acquire_blocking());
    until_queued(&masters);
    token.cancel();
    let outcome = cancelled.recv_timeout(SOON).unwrap();
    assert!(matches!(outcome, Err(Error::Cancelled { .. })), "{outcome:?}");
    until("no place in any queue", || masters.iter().all(|server| queue(server).is_empty()));
}

#[test]
fn a_shutdown_ends_waits_and_flushes_releases() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let held = redlock.lock("l").acquire_blocking().unwrap();
    let waiting = redlock.lock("l").wait(TTL);
    let waiting = on_a_thread(move || waiting.acquire_blocking());
    until_queued(&masters);
    drop(redlock.lock("m").acquire_blocking().unwrap());
    redlock.shutdown_blocking(SOON).unwrap();
    assert!(matches!(waiting.recv_timeout(SOON).unwrap(), Err(Error::Closed)));
    assert!(matches!(redlock.lock("n").acquire_blocking(), Err(Error::Closed)));
    held.release_blocking().unwrap();
    until_released(&masters);
}

#[test]
fn a_lease_is_extended_seen_and_broken() {
    let masters = Masters::start(3);
    let (redlock, operator) = (client(&masters), client(&masters));
    assert!(operator.lock("l").inspect_blocking().unwrap().is_free());
    let guard = redlock.lock("l").acquire_blocking().unwrap();
    guard.extend_blocking(2 * TTL).unwrap();
    assert!(guard.remaining() > TTL);
    let holder = operator.lock("l").inspect_blocking().unwrap().holder().unwrap();
    assert_eq!(*holder.owner, guard.owner().to_string());
    operator.lock("l").force_release_blocking(&guard.owner()).unwrap();
    assert!(matches!(guard.extend_blocking(TTL), Err(Error::Lost { cause: Loss::NotOurs, .. })));
    operator.lock("l").try_acquire_blocking().unwrap().release_blocking().unwrap();
}

#[test]
fn a_lock_changes_hands() {
    let masters = Masters::start(3);
    let (here, there) = (client(&masters), client(&masters));
    let guard = here.lock("l").acquire_blocking().unwrap();
    let token: Handover = guard.hand_over_blocking().unwrap().to_string().parse().unwrap();
    assert!(matches!(guard.sleep_blocking(SOON), Err(Error::Lost { cause: Loss::HandedOver, .. })));
    let adopted = there.lock("l").adopt_blocking(&token).unwrap();
    assert!(matches!(there.lock("l").adopt_blocking(&token), Err(Error::Held { .. })));
    adopted.release_blocking().unwrap();
    drop(guard);
    until_released(&masters);
}

#[test]
fn a_sleep_under_the_lock_ends_when_the_lease_is_lost() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let guard = redlock.lock("l").acquire_blocking().unwrap();
    let begun = redlock.now();
    guard.sleep_blocking(ms(50)).unwrap();
    assert!(redlock.now() >= begun + ms(50));
    guard.sleep_blocking(Duration::ZERO).unwrap();

    // The loss comes while it sleeps, from another thread.
    let guard = Arc::new(guard);
    let sleeper = guard.clone();
    let lost = on_a_thread(move || sleeper.sleep_blocking(Duration::MAX));
    let token = guard.lost_token();
    assert!(!token.is_cancelled());
    redlock.lock("l").force_release_blocking(&guard.owner()).unwrap();
    let _ = guard.extend_blocking(TTL); // it is told by the masters' answer
    assert!(matches!(lost.recv_timeout(SOON).unwrap(), Err(Error::Lost { cause: Loss::NotOurs, .. })));
    assert!(token.is_cancelled());
    assert!(matches!(guard.sleep_blocking(Duration::ZERO), Err(Error::Lost { .. })));

    // And when a lease runs out that nobody renews.
    let fixed = redlock.lock("m").ttl(2 * crate::PATIENT).no_renewal().acquire_blocking().unwrap();
    assert!(is_lost(fixed.sleep_blocking(Duration::MAX)));
}

/// The clock where a thread stands still before each look at it.
#[derive(Debug, Default)]
struct Stalling {
    clock: Jumping,
    thread: OnceLock<ThreadId>,
}

impl Clock for Stalling {
    fn now(&self) -> Moment {
        if self.thread.get() == Some(&thread::current().id()) {
            self.clock.jump(TTL * 3 / 10);
        }
        self.clock.now()
    }

    fn wall(&self) -> Duration {
        self.clock.wall()
    }
}

/// It stands when the sleep begins, is over at the fourth look, and nobody has told the thread.
#[test]
fn a_sleep_that_outlasted_the_lease_unseen_says_so() {
    let masters = Masters::start(3);
    let clock = Arc::new(Stalling::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let guard = redlock.lock("l").ttl(TTL).no_renewal().acquire_blocking().unwrap();
    clock.thread.set(thread::current().id()).unwrap();
    assert!(is_lost(guard.sleep_blocking(ms(1))));
}

#[test]
fn threads_exclude_each_other() {
    const ROUNDS: u64 = 25;
    let masters = Masters::start(3);
    let clients = [client(&masters), client(&masters)];
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        for redlock in clients.iter().chain(&clients) {
            let counter = &counter;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let guard = redlock.lock("l").acquire_blocking().unwrap();
                    let seen = counter.load(Ordering::Relaxed);
                    thread::sleep(ms(1)); // for others to come between
                    counter.store(seen + 1, Ordering::Relaxed);
                    guard.release_blocking().unwrap();
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), 4 * ROUNDS);
    until_released(&masters);
}

#[test]
fn each_of_many_threads_gets_the_lock_once() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let (inside, served) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let guard = redlock.lock("l").wait(4 * SOON).acquire_blocking().unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                served.fetch_add(1, Ordering::SeqCst);
                drop(guard);
            });
        }
    });
    assert_eq!(served.into_inner(), 64);
    until_released(&masters);
}

#[test]
fn work_that_gives_no_sign_of_life_loses_the_lock() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let lock = redlock.lock("l").ttl(2 * crate::PATIENT).heartbeat(ms(500));
    let guard = lock.acquire_blocking().unwrap();
    guard.touch();
    assert!(guard.renewal_error().is_none());
    let loss = guard.sleep_blocking(Duration::MAX).unwrap_err();
    assert!(matches!(loss, Error::Lost { cause: Loss::Silent, .. }), "{loss}");
}

/// One that keeps threads for its tasks, and one that has only the thread that calls.
fn runtimes() -> [Runtime; 2] {
    let many = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    [Builder::new_current_thread().enable_all().build().unwrap(), many]
}

#[track_caller]
fn assert_refused<T>(result: Result<T, Error>) {
    match result {
        Err(Error::Invalid(why)) if why.to_string().contains("runs async tasks") => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was done"),
    }
}

fn assert_all_refused(redlock: &Redlock) {
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    assert_refused(lock.acquire_blocking());
    assert_refused(lock.try_acquire_blocking());
    assert_refused(lock.release_blocking());
    assert_refused(lock.inspect_blocking());
    assert_refused(lock.force_release_blocking(&redlock.owner()));
    assert_refused(redlock.election("l").campaign_blocking());
    assert_refused(redlock.list().next_blocking());
    assert_refused(redlock.shutdown_blocking(SOON));
}

fn nothing_was_sent(masters: &Masters) {
    for server in masters.iter() {
        let commands: String = server.command(&["INFO", "commandstats"]);
        assert!(!commands.contains("eval") && !commands.contains("hello"), "{commands}");
    }
}

#[test]
fn a_call_inside_a_runtime_is_refused_before_anything_is_sent() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    for runtime in runtimes() {
        runtime.block_on(async { assert_all_refused(&redlock) });
        let in_a_task = redlock.clone();
        runtime.block_on(runtime.spawn(async move { assert_all_refused(&in_a_task) })).unwrap();
        let examination = async { assert_refused(all_new(&masters).examine_blocking()) };
        runtime.block_on(examination);
    }
    nothing_was_sent(&masters);
    // It was not shut down.
    redlock.lock("l").acquire_blocking().unwrap().release_blocking().unwrap();
}

#[tokio::test]
async fn a_call_inside_a_test_of_tokio_is_refused_and_says_what_to_do() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    assert_all_refused(&redlock);
    let text = redlock.lock("l").acquire_blocking().unwrap_err().to_string();
    assert!(text.contains("await the async API") && text.contains("spawn_blocking"), "{text}");
    nothing_was_sent(&masters);
}

#[tokio::test]
async fn a_guard_inside_a_runtime_stays_as_it_is_until_it_is_dropped() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let guard = redlock.lock("l").acquire().await.unwrap();
    crate::on_all(&masters).await;
    assert_refused(guard.extend_blocking(TTL));
    assert_refused(guard.hand_over_blocking());
    assert_refused(guard.sleep_blocking(Duration::MAX));
    assert!(guard.is_valid() && !guard.lost_token().is_cancelled());
    let token = redlock.lock("m").acquire().await.unwrap().hand_over().await.unwrap();
    assert_refused(redlock.lock("m").adopt_blocking(&token));
    redlock.lock("m").adopt(&token).await.unwrap().release().await.unwrap();
    // Given back all the same.
    assert_refused(guard.release_blocking());
    crate::until("the release", async || masters.empty().is_ok()).await;
}

#[test]
fn threads_of_a_runtime_that_may_wait_do() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let cycle =
        |redlock: Redlock| move || redlock.lock("l").acquire_blocking().and_then(Guard::release_blocking);
    let [single, many] = runtimes();
    for runtime in [&single, &many] {
        let _context = runtime.enter();
        cycle(redlock.clone())().unwrap();
        runtime.block_on(spawn_blocking(cycle(redlock.clone()))).unwrap().unwrap();
    }
    let in_place = cycle(redlock.clone());
    many.block_on(many.spawn(async { block_in_place(in_place) })).unwrap().unwrap();
    many.block_on(async { block_in_place(cycle(redlock)) }).unwrap();
}

#[test]
fn async_and_blocking_code_share_a_client_and_exclude_each_other() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let [_, runtime] = runtimes();
    let held = redlock.lock("l").acquire_blocking().unwrap();
    let lock = redlock.lock("l").wait(TTL);
    let waiting = runtime.spawn(async move { lock.acquire().await });
    until_queued(&masters);
    held.release_blocking().unwrap();
    let guard =
        runtime.block_on(async { tokio::time::timeout(SOON, waiting).await }).unwrap().unwrap().unwrap();
    assert!(matches!(redlock.lock("l").try_acquire_blocking(), Err(Error::Held { .. })));
    guard.release_blocking().unwrap();

    let taken = redlock.lock("l").acquire_blocking().unwrap();
    let error = runtime.block_on(redlock.lock("l").try_acquire()).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
    runtime.block_on(taken.release()).unwrap();
    until_released(&masters);
}

#[test]
fn a_leader_is_elected_seen_and_resigns_without_a_runtime() {
    let masters = Masters::start(3);
    let (here, there) = (client(&masters), client(&masters));
    let election = here.election("l").look_every(ms(20));
    let mut observer = there.election("l").look_every(ms(20)).observe().unwrap();
    assert_eq!(observer.changed_blocking().unwrap(), Observed::Nobody);
    let leadership = election.campaign_blocking().unwrap();
    leadership.sleep_blocking(ms(1)).unwrap();
    for seen in [observer.changed_blocking().unwrap(), election.leader_blocking().unwrap()] {
        let Observed::Leader(leader) = seen else { panic!("{seen}") };
        assert_eq!(leader.term, Some(leadership.term()));
    }
    let next = there.election("l").wait(2 * SOON);
    let next = on_a_thread(move || next.campaign_blocking());
    until_queued(&masters);
    leadership.resign_blocking().unwrap();
    let next = next.recv_timeout(SOON).unwrap().unwrap();
    here.lock("l").force_release_blocking(&next.owner()).unwrap();
    let _ = next.sleep_blocking(Duration::MAX).unwrap_err();
}

#[test]
fn names_are_listed_and_inspected_without_a_runtime() {
    let masters = Masters::start(3);
    let redlock = client(&masters);
    let guard = redlock.lock("l").acquire_blocking().unwrap();
    until_on_all(&masters);
    let (mut listing, mut names) = (redlock.list(), Vec::new());
    while let Some(page) = listing.next_blocking().unwrap() {
        names.extend(page.iter().map(|seen| seen.name().to_owned()));
    }
    assert_eq!(names, ["l"]);
    assert_eq!(*redlock.inspect_blocking("l").unwrap().holder().unwrap().owner, guard.owner().to_string());
    assert!(redlock.lock("l").is_held_by_blocking(&guard.owner()).unwrap());
}

/// Nobody drives the runtime, and a call would never end.
#[test]
fn a_client_on_a_lent_runtime_is_refused() {
    let masters = Masters::start(3);
    let [runtime, _] = runtimes();
    let lent = || all_new(&masters).runtime(runtime.handle().clone());
    let is_refused =
        |error: Error| matches!(error, Error::Invalid(why) if why.to_string().contains("was lent"));
    assert!(is_refused(lent().examine_blocking().unwrap_err()));
    let redlock = lent().build().unwrap();
    assert!(is_refused(redlock.lock("l").acquire_blocking().unwrap_err()));
    assert!(is_refused(redlock.lock("l").inspect_blocking().unwrap_err()));
    assert!(is_refused(redlock.election("l").campaign_blocking().unwrap_err()));
    nothing_was_sent(&masters);

    // What its error says works.
    let guard = runtime.block_on(redlock.lock("l").acquire()).unwrap();
    assert!(is_refused(guard.sleep_blocking(Duration::MAX).unwrap_err()));
    runtime.block_on(guard.release()).unwrap();
}

#[test]
fn masters_are_examined_without_a_runtime() {
    let masters = Masters::start(3);
    let report = builder(&masters).examine_blocking().unwrap();
    assert_eq!(report.can_vote(), 3, "{report}");
    assert!(masters.iter().all(|server: &RedisServer| server.keys().is_empty()));
}

#[test]
fn its_example_runs() {
    let output = crate::example("blocking").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("40 are left"), "{output:?}");
}
