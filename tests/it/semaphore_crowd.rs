//! No schedule and no fault lets more in than there are permits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate::{Error, Guard, Lock, Redlock};
use quorate_testkit::{Masters, RedisServer};

use crate::fencing::while_harmed;
use crate::{builder, ms};

/// What many would write: each master counts its holders, and whoever has a majority of the masters
/// is in.
const NAIVE: &str = "if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 1 end \
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end \
    return redis.call('ZADD', KEYS[1], 0, ARGV[1])";

/// Which masters each of three contenders reaches: each a majority, and no master all three.
const REACH: [[usize; 3]; 3] = [[0, 1, 2], [0, 3, 4], [1, 2, 3]];

fn naive(server: &RedisServer, owner: &str) -> i64 {
    server.command(&["EVAL", NAIVE, "1", "naive", owner, "2"])
}

#[tokio::test]
async fn counting_on_each_master_lets_three_in_where_two_may_be_and_permits_of_their_own_do_not() {
    let masters = Masters::start(5);
    let admitted = REACH.iter().enumerate().filter(|(contender, reach)| {
        let owner = contender.to_string();
        reach.iter().map(|&place| naive(&masters[place], &owner)).sum::<i64>() >= 3
    });
    assert_eq!(admitted.count(), 3, "the naive form holds: this test shows nothing");

    // Nobody answers at these.
    let absent = |place: usize| format!("redis://127.0.0.1:{}", place + 1);
    let mut guards: Vec<Guard> = Vec::new();
    for reach in REACH {
        let urls =
            (0..5).map(|place| if reach.contains(&place) { masters[place].url() } else { absent(place) });
        let client = crate::begin().masters(urls.collect::<Vec<_>>()).ttl(crate::TTL);
        let redlock = client.timeout(crate::PATIENT).build().unwrap();
        // The first contender gets a permit, however long that takes.
        let wait = if guards.is_empty() { crate::SOON } else { ms(200) };
        match redlock.semaphore("l", 2).wait(wait).acquire().await {
            Ok(guard) => guards.push(guard),
            Err(error) => {
                assert!(matches!(
                    error,
                    Error::NoQuorum { .. } | Error::Held { .. } | Error::WaitTimedOut { .. }
                ));
            }
        }
    }
    assert!((1..=2).contains(&guards.len()), "{guards:?}");
    assert!(guards.iter().all(Guard::is_valid));
}

/// From when to when somebody has a lock, or a permit, for certain.
pub(crate) type Window = (Instant, Instant);

/// The most that have one at the same time.
pub(crate) fn most(windows: &[Window]) -> i64 {
    let mut edges: Vec<(Instant, i64)> =
        windows.iter().filter(|(from, to)| from < to).flat_map(|&(from, to)| [(from, 1), (to, -1)]).collect();
    edges.sort(); // whoever leaves at a moment leaves before the next one comes
    let mut inside = 0;
    edges
        .iter()
        .map(|(_, step)| {
            inside += step;
            inside
        })
        .max()
        .unwrap_or(0)
}

/// Works under a guard for a while.
async fn work(guard: &Guard) -> Window {
    let from = Instant::now();
    let at_least_to = from + guard.remaining();
    tokio::time::sleep(ms(3)).await;
    let to = Instant::now();
    (from, if guard.is_valid() { to } else { to.min(at_least_to) })
}

#[test]
fn overlapping_windows_are_counted() {
    let at = |ms: u64| Instant::now() + Duration::from_secs(60) + Duration::from_millis(ms);
    let [a, b, c, d] = [0, 10, 20, 30].map(at);
    assert_eq!(most(&[(a, b), (b, c), (c, d)]), 1);
    assert_eq!(most(&[(a, c), (b, d), (b, c)]), 3);
    assert_eq!(most(&[(c, a)]), 0);
}

const PERMITS: u32 = 3;
const CLIENTS: usize = 4;
const TASKS: usize = 32;

/// So many tasks of these clients come again and again, so many turns together: which lock, by the
/// number of the turn, and what is noted of it.
pub(crate) async fn take_turns(
    clients: &[Redlock],
    (tasks, turns): (usize, u32),
    lock: impl Fn(&Redlock, u32) -> Lock,
    note: impl Fn(u32, &Guard, Window),
) {
    let left = AtomicU32::new(turns);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    let task = async |i: usize| {
        while let Ok(turn) = take() {
            match lock(&clients[i % clients.len()], turn).acquire().await {
                Ok(guard) => {
                    let window = work(&guard).await;
                    note(turn, &guard, window);
                    let _ = guard.release().await; // a quorum may not be there at the moment
                }
                Err(_) => drop(left.fetch_add(1, Ordering::Relaxed)),
            }
        }
    };
    join_all((0..tasks).map(task)).await;
}

async fn crowd(clients: &[Redlock], turns: u32, windows: &Mutex<Vec<Window>>) {
    let semaphore = |client: &Redlock, _| client.semaphore("l", PERMITS);
    let note = |_, _: &Guard, window| windows.lock().unwrap().push(window);
    take_turns(clients, (TASKS, turns), semaphore, note).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_has_all_permits_at_times_and_never_more() {
    let masters = Masters::start(5);
    let clients: Vec<_> = (0..CLIENTS).map(|_| builder(&masters).build().unwrap()).collect();
    let (windows, begun) = (Mutex::default(), Instant::now());
    crowd(&clients, 1_000, &windows).await;
    let windows = windows.into_inner().unwrap();
    println!("{} turns in {:.1?}", windows.len(), begun.elapsed());
    assert_eq!(most(&windows), i64::from(PERMITS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_are_in_than_there_are_permits_while_masters_die_and_come_back() {
    let windows = Mutex::default();
    let harmed = while_harmed(CLIENTS, async |clients| crowd(clients, 3_000, &windows).await).await;
    let windows = windows.into_inner().unwrap();
    println!("{} turns, while masters were harmed {harmed} times", windows.len());
    assert!(harmed >= 3, "hardly anything happened");
    assert_eq!(most(&windows), i64::from(PERMITS));
}
