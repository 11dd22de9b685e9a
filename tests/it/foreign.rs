//! Waiting while a client of another library has the lock, which tells nobody of its release: the
//! lock is granted soon after it, and until then the masters are asked more and more rarely. All
//! TTLs here are far longer than a test takes.

use std::process::Stdio;
use std::time::{Duration, Instant};

use quorate::{Error, Redlock, compat};
use quorate_testkit::{Masters, RedisServer, eventually};
use rslock::LockManager;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::{JoinHandle, JoinSet};

use crate::faults::calls;
use crate::shared::COMPARE_AND_DELETE;
use crate::waiting::waiter;
use crate::wake_ups::{LONG, clients, handed};
use crate::{SOON, ms, until};

/// How long the quickest of several tries may take from the release to the grant: two of the
/// longest pauses.
const QUICK: Duration = Duration::from_secs(1);

/// How often each client adds one to the counter.
const TURNS: u32 = 8;

const COUNTER: &str = "counter";

/// The lock `l` as a string that somebody else has set by hand.
fn set(masters: &Masters, value: &str) {
    for server in masters.iter() {
        let _: String = server.command(&["SET", "l", value, "PX", "60000"]);
    }
}

fn delete(masters: &Masters, value: &str) {
    for server in masters.iter() {
        assert_eq!(server.command::<i64>(&["EVAL", COMPARE_AND_DELETE, "1", "l", value]), 1);
    }
}

/// How often a waiter has asked this master, and whatever else it was sent.
fn looks(server: &RedisServer) -> u32 {
    calls(server, "evalsha")
}

/// Begins to wait, and has been refused with a place in the queue: from here on it polls.
async fn waits(masters: &Masters, redlock: &Redlock) -> JoinHandle<Result<compat::UnfencedGuard, Error>> {
    let waiting = waiter(redlock.plain_mutex("l")).await;
    until("a place in every queue", async || {
        let waits =
            |server: &RedisServer| server.command::<i64>(&["ZCARD", "quorate:waiting:shared:{l}"]) == 1;
        masters.iter().all(waits)
    })
    .await;
    waiting
}

/// What was released at `begun` is this waiter's. Tells how long that took.
async fn taken_since(
    begun: Instant,
    waiting: JoinHandle<Result<compat::UnfencedGuard, Error>>,
    masters: &Masters,
) -> Duration {
    let held = handed(waiting).await;
    let took = begun.elapsed();
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
    took
}

#[tokio::test]
async fn a_lock_that_was_set_by_hand_is_granted_soon_after_it_is_deleted() {
    let masters = Masters::start(3);
    let redlock = &clients(&masters, 1)[0];
    let mut quickest = Duration::MAX;
    for value in ["one", "two", "three"] {
        set(&masters, value);
        let waiting = waits(&masters, redlock).await;
        let begun = Instant::now();
        delete(&masters, value);
        quickest = quickest.min(taken_since(begun, waiting, &masters).await);
    }
    assert!(quickest < QUICK, "the quickest grant took {quickest:?}");
}

#[tokio::test]
async fn a_lock_of_rslock_is_granted_soon_after_its_release() {
    let masters = Masters::start(3);
    let (redlock, theirs) = (&clients(&masters, 1)[0], LockManager::new(masters.urls()));
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let lock = theirs.acquire_no_guard("l", LONG).await.unwrap();
        let waiting = waits(&masters, redlock).await;
        let begun = Instant::now();
        theirs.unlock(&lock).await;
        quickest = quickest.min(taken_since(begun, waiting, &masters).await);
    }
    assert!(quickest < QUICK, "the quickest grant took {quickest:?}");
}

/// The pauses are 20, 40, 80, 160, 320 and then 500 ms at most, and half of that at least.
#[tokio::test]
async fn while_one_foreign_holder_stays_the_masters_are_asked_more_and_more_rarely() {
    let masters = Masters::start(3);
    set(&masters, "theirs");
    let waiting = waits(&masters, &clients(&masters, 1)[0]).await;
    let (begun, first) = (Instant::now(), looks(&masters[0]));
    while begun.elapsed() < Duration::from_secs(1) {
        tokio::time::sleep(ms(10)).await;
    }
    let told = looks(&masters[0]) - first;
    assert!(told <= 20, "{told} calls in {:?}", begun.elapsed());
    until("a few looks", async || looks(&masters[0]) > first + 3).await;
    delete(&masters, "theirs");
    handed(waiting).await.release().await.unwrap();
}

/// After the first look that finds another value the next three take 140 ms at most. With the
/// longest pause between them they would take 750 ms at least.
#[tokio::test]
async fn where_another_foreign_holder_has_it_the_masters_are_asked_often_again() {
    let masters = Masters::start(3);
    set(&masters, "0");
    let waiting = waits(&masters, &clients(&masters, 1)[0]).await;
    let so_many_more = async |count| {
        let before = looks(&masters[0]);
        until("looks", async || looks(&masters[0]) >= before + count).await;
    };
    let mut quickest = Duration::MAX;
    for value in ["1", "2", "3"] {
        so_many_more(6).await; // the pauses have grown
        set(&masters, value);
        so_many_more(1).await;
        let begun = Instant::now();
        so_many_more(3).await;
        quickest = quickest.min(begun.elapsed());
    }
    assert!(quickest < ms(600), "the quickest three looks took {quickest:?}");
    delete(&masters, "3");
    handed(waiting).await.release().await.unwrap();
}

/// Reads the counter and writes it after a while, which loses what others add meanwhile.
async fn add_one(server: &RedisServer) {
    let read: u32 = server.command(&["GET", COUNTER]);
    tokio::time::sleep(ms(5)).await;
    let _: () = server.command(&["SET", COUNTER, &(read + 1).to_string()]);
}

/// Adds to the counter with each of these clients. Tells how long the longest wait was.
async fn count_with_ours(masters: &Masters, ours: &[Redlock]) -> Duration {
    let each = ours.iter().map(|redlock| async {
        let mut longest = Duration::ZERO;
        for _ in 0..TURNS {
            let begun = Instant::now();
            let held = redlock.plain_mutex("l").acquire().await.unwrap();
            longest = longest.max(begun.elapsed());
            add_one(&masters[0]).await;
            held.release().await.unwrap();
        }
        longest
    });
    futures::future::join_all(each).await.into_iter().max().unwrap()
}

fn nothing_is_lost(masters: &Masters, clients: u32, longest: Duration) {
    assert_eq!(masters[0].command::<u32>(&["GET", COUNTER]), clients * TURNS);
    assert!(longest < SOON, "one of ours waited {longest:?}, which is near to a TTL of {LONG:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_ours_and_two_of_rslock_share_a_counter_and_nobody_waits_for_a_ttl() {
    let masters = Masters::start(3);
    let _: () = masters[0].command(&["SET", COUNTER, "0"]);
    let ours = clients(&masters, 2);
    let theirs = (0..2).map(|_| async {
        let mut manager = LockManager::new(masters.urls());
        manager.set_retry(1_000, ms(20));
        for _ in 0..TURNS {
            let lock = manager.acquire_no_guard("l", LONG).await.unwrap();
            add_one(&masters[0]).await;
            manager.unlock(&lock).await;
        }
    });
    let all = futures::future::join(count_with_ours(&masters, &ours), futures::future::join_all(theirs));
    let (longest, _) = tokio::time::timeout(LONG, all).await.expect("all turns");
    nothing_is_lost(&masters, 4, longest);
}

/// Whether there is a redis-py to test with.
async fn redis_py() -> bool {
    let output = Command::new("python3").args(["-c", "import redis"]).output().await;
    let is_there = output.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: python3 has no module redis");
    }
    is_there
}

/// Runs this with `redis`, the lock as `lock`, and `turns`.
fn python(server: &RedisServer, script: &str) -> Child {
    let head = "import redis, sys, time\n\
        redis = redis.Redis.from_url(sys.argv[1])\n\
        lock = redis.lock('l', timeout=60, sleep=0.02)\n\
        turns = int(sys.argv[2])\n";
    let mut command = Command::new("python3");
    command.args(["-c", &format!("{head}{script}"), &server.url(), &TURNS.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

#[tokio::test]
async fn a_lock_of_redis_py_is_granted_soon_after_its_release() {
    if !redis_py().await {
        return;
    }
    let masters = Masters::start(1);
    let redlock = &clients(&masters, 1)[0];
    let mut theirs = python(
        &masters[0],
        "for _ in range(3):\n    \
            lock.acquire()\n    \
            print('held', flush=True)\n    \
            sys.stdin.readline()\n    \
            lock.release()\n    \
            print('released', flush=True)\n    \
            sys.stdin.readline()\n",
    );
    let mut input = theirs.stdin.take().unwrap();
    let mut output = BufReader::new(theirs.stdout.take().unwrap()).lines();
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        assert_eq!(output.next_line().await.unwrap().as_deref(), Some("held"));
        let waiting = waits(&masters, redlock).await;
        let begun = Instant::now();
        input.write_all(b"\n").await.unwrap();
        quickest = quickest.min(taken_since(begun, waiting, &masters).await);
        assert_eq!(output.next_line().await.unwrap().as_deref(), Some("released"));
        input.write_all(b"\n").await.unwrap();
    }
    assert!(quickest < QUICK, "the quickest grant took {quickest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_ours_and_two_of_redis_py_share_a_counter_and_nobody_waits_for_a_ttl() {
    if !redis_py().await {
        return;
    }
    let masters = Masters::start(1);
    let _: () = masters[0].command(&["SET", COUNTER, "0"]);
    let ours = clients(&masters, 2);
    let mut theirs = JoinSet::new();
    for _ in 0..2 {
        let mut child = python(
            &masters[0],
            "for _ in range(turns):\n    \
                lock.acquire()\n    \
                read = int(redis.get('counter'))\n    \
                time.sleep(0.05)\n    \
                redis.set('counter', read + 1)\n    \
                lock.release()\n",
        );
        theirs.spawn(async move { assert!(child.wait().await.unwrap().success()) });
    }
    // From here on they have it most of the time, so that ours find it taken.
    until("theirs to begin", async || masters[0].command::<u32>(&["GET", COUNTER]) > 0).await;
    let all = futures::future::join(count_with_ours(&masters, &ours), theirs.join_all());
    let (longest, _) = tokio::time::timeout(LONG, all).await.expect("all turns");
    nothing_is_lost(&masters, 4, longest);
}
