//! How cost grows: with the leases that a process holds, with the names that a master knows, with
//! those that have one lock together, and with those that wait for one.

use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{StreamExt, stream};
use quorate::{Guard, Lock, Redlock};
use quorate_testkit::{Masters, RedisServer};
use tokio::task::JoinSet;

use crate::Scale;
use crate::contender::{self, Client, Contender, Load, Quorate, Tasks};
use crate::figures::Row;
use crate::measure::with_quantiles;
use crate::meter;

const MASTERS: usize = 5;

/// How many acquires, or releases, are under way at a time.
const AT_ONCE: usize = 256;

/// How many keys of somebody else one call sets.
const FOREIGN_AT_ONCE: usize = 10_000;

/// How many acquires of new names are timed, one after the other.
const TIMED: u64 = 3_000;

struct Leases {
    counts: &'static [usize],
    ttl: Duration,
    /// How long all are held, at least as long as it takes to renew each once.
    held: Duration,
}

const LEASES: Leases =
    Leases { counts: &[1_000, 100_000], ttl: Duration::from_secs(30), held: Duration::from_secs(10) };
const FEW_LEASES: Leases =
    Leases { counts: &[100, 1_000], ttl: Duration::from_secs(3), held: Duration::from_secs(1) };

/// Leases of one process, which renews them.
pub(crate) fn leases(scale: Scale) -> Vec<Row> {
    let Leases { counts, ttl, held } = scale.of(LEASES, FEW_LEASES);
    let masters = Masters::start(MASTERS);
    contender::runtime().block_on(async {
        let redlock = contender::new(&masters.urls()).ttl(ttl).timeout(ttl / 3).build().unwrap();
        // As much is under way at a time as ever will be, so that its memory is there already.
        cycle_names(&redlock, "warm", 0..2_000.min(counts[counts.len() - 1])).await;
        let (own_memory, memory) = (meter::own_memory(), meter::used(masters.iter(), &[]).memory);
        let mut guards: Vec<Guard> = Vec::new();
        let mut rows = Vec::new();
        for &count in counts {
            acquire(&redlock, &mut guards, count).await;
            let own_memory = (meter::own_memory() - own_memory) / count as f64;
            let before = (meter::used(masters.iter(), meter::sent_by(Quorate::NAME)), meter::own_cpu());
            let began = Instant::now();
            tokio::time::sleep(held).await;
            let used = meter::used(masters.iter(), meter::sent_by(Quorate::NAME));
            let cpu = meter::own_cpu() - before.1;
            let seconds = began.elapsed().as_secs_f64();
            let memory = (used.memory - memory) / (count * MASTERS) as f64;
            let left = guards.iter().map(Guard::remaining);
            let valid = left.clone().filter(|left| *left > Duration::ZERO).count();
            rows.push(
                Row::new(count, Quorate::NAME, count as u64, valid as u64)
                    .with("client_memory_bytes", own_memory)
                    .with("master_memory_bytes", memory)
                    .with("client_cpu_ms_per_s", cpu.as_secs_f64() * 1e3 / seconds)
                    .with("masters_cpu_ms_per_s", (used.cpu - before.0.cpu) * 1e3 / seconds)
                    .with("calls_per_s", (used.calls - before.0.calls) / seconds)
                    .with("least_left_s", left.min().unwrap_or_default().as_secs_f64()),
            );
        }
        stream::iter(guards.into_iter().map(Guard::release)).buffer_unordered(AT_ONCE).count().await;
        rows
    })
}

/// Acquires more, until so many are held, or were asked for.
async fn acquire(redlock: &Redlock, guards: &mut Vec<Guard>, count: usize) {
    let acquiring = (guards.len()..count).map(|i| {
        let lock = redlock.lock(format!("lease-{i}"));
        async move { lock.acquire().await }
    });
    let mut acquiring = stream::iter(acquiring).buffer_unordered(AT_ONCE);
    while let Some(end) = acquiring.next().await {
        match end {
            Ok(guard) => guards.push(guard),
            Err(error) => println!("  not acquired: {error}"),
        }
    }
}

/// Sets as many keys of somebody else, or deletes them.
fn change_foreign(master: &RedisServer, verb: &str, count: usize) {
    let script = "for i = ARGV[2], ARGV[3] do if ARGV[1] == 'SET' then redis.call('SET', 'foreign:' .. i, i) \
                  else redis.call('DEL', 'foreign:' .. i) end end return 1";
    for first in (0..count).step_by(FOREIGN_AT_ONCE) {
        let last = (first + FOREIGN_AT_ONCE).min(count) - 1;
        let [first, last] = [first, last].map(|number| number.to_string());
        master.command::<i64>(&["EVAL", script, "0", verb, &first, &last]);
    }
}

/// How long it takes to list all names, of which one is held.
async fn time_list(redlock: &Redlock) -> Duration {
    let (began, mut listing, mut found) = (Instant::now(), redlock.list(), 0);
    while let Some(page) = listing.next().await.unwrap() {
        found += page.len();
    }
    assert_eq!(found, 1);
    began.elapsed()
}

/// Names that one master knows, each of which was locked and released once, and as many keys of
/// somebody else.
pub(crate) fn names(scale: Scale) -> Vec<Row> {
    let counts = scale.of([1_000, 1_000_000], [100, 1_000]);
    let masters = Masters::start(1);
    let runtime = contender::runtime();
    let mut tasks = Tasks::new(Quorate::new(contender::new(&masters.urls())), &runtime);
    let redlock = tasks.client.redlock.clone();
    runtime.block_on(cycle_names(&redlock, "warm", 0..counts[0]));
    let (memory, keys) = (meter::used(masters.iter(), &[]).memory, masters[0].command::<f64>(&["DBSIZE"]));
    let mut known = 0;
    let mut rows = Vec::new();
    for count in counts {
        let granted = runtime.block_on(cycle_names(&redlock, "name", known..count));
        let memory = meter::used(masters.iter(), &[]).memory - memory;
        let keys = masters[0].command::<f64>(&["DBSIZE"]) - keys;
        let timed = tasks.work(Load::alone(scale.of(TIMED, 30)));
        change_foreign(&masters[0], "SET", count);
        let held = runtime.block_on(redlock.lock("held").acquire()).unwrap();
        let before = meter::used(masters.iter(), meter::sent_by(Quorate::NAME));
        let list = runtime.block_on(time_list(&redlock));
        let used = meter::used(masters.iter(), meter::sent_by(Quorate::NAME)) - before;
        runtime.block_on(held.release()).unwrap();
        change_foreign(&masters[0], "DEL", count);
        rows.push(
            with_quantiles(Row::new(count, Quorate::NAME, (count - known) as u64, granted), &[timed])
                .with("master_memory_bytes", memory / count as f64)
                .with("keys_a_name", keys / count as f64)
                .with("list_s", list.as_secs_f64())
                .with("list_calls", used.calls)
                .with("list_us_a_call", used.call_us / used.calls),
        );
        known = count;
    }
    rows
}

/// Acquires and releases each of these names once: how many were granted.
async fn cycle_names(redlock: &Redlock, prefix: &str, names: std::ops::Range<usize>) -> u64 {
    let cycling = names.map(|i| {
        let lock = redlock.lock(format!("{prefix}-{i}"));
        async move {
            let Ok(guard) = lock.acquire().await else { return 0 };
            u64::from(guard.release().await.is_ok())
        }
    });
    stream::iter(cycling).buffer_unordered(AT_ONCE).fold(0, async |sum, one| sum + one).await
}

/// How often each call of these is made.
const EACH: usize = 300;

/// How long a master's script takes while so many read, or have a permit.
pub(crate) fn holders(scale: Scale) -> Vec<Row> {
    let counts = scale.of([1, 1_000], [1, 20]);
    let masters = Masters::start(1);
    contender::runtime().block_on(async {
        let redlock = contender::new(&masters.urls()).build().unwrap();
        let mut rows = Vec::new();
        for count in counts {
            let name = format!("map-{count}");
            let (read, write) = (redlock.read_lock(&*name), redlock.write_lock(&*name));
            rows.push(hold(&masters[0], format!("{count} reading"), count, &read, &write).await);
            let permit = redlock.semaphore(format!("permits-{count}"), count.try_into().unwrap());
            rows.push(hold(&masters[0], format!("{count} with a permit"), count, &permit, &permit).await);
        }
        rows
    })
}

/// The script's time of what is `refused` while so many have `lock`, and of cycles of one of these.
async fn hold(master: &RedisServer, case: String, count: usize, lock: &Lock, refused: &Lock) -> Row {
    let ttl = Duration::from_secs(30);
    let lock = lock.clone().ttl(ttl).no_renewal();
    let used = || meter::used([master], meter::sent_by(Quorate::NAME));
    let us_a_call = |sum: meter::Used| sum.call_us / sum.calls;
    let mut holding = Vec::new();
    for _ in 0..count {
        holding.push(lock.acquire().await.unwrap());
    }
    let before = used();
    for _ in 0..EACH {
        assert!(refused.try_acquire().await.is_err());
    }
    let refusal = used() - before;
    holding.pop().unwrap().release().await.unwrap();
    let [mut acquire, mut extend, mut release] = [meter::Used::default(); 3];
    for _ in 0..EACH {
        let before = used();
        let guard = lock.acquire().await.unwrap();
        let acquired = used();
        guard.extend(ttl).await.unwrap();
        let extended = used();
        guard.release().await.unwrap();
        acquire += acquired - before;
        extend += extended - acquired;
        release += used() - extended;
    }
    let granted = (count + EACH) as u64;
    Row::new(case, Quorate::NAME, granted, granted)
        .with("refusal_us", us_a_call(refusal))
        .with("acquire_us", us_a_call(acquire))
        .with("extend_us", us_a_call(extend))
        .with("release_us", us_a_call(release))
}

/// How many clients those that wait are spread over.
const CLIENTS: usize = 10;

struct Waiters {
    counts: &'static [usize],
    time: Duration,
}

const WAITERS: Waiters = Waiters { counts: &[10, 100, 1_000], time: Duration::from_secs(2) };
const FEW_WAITERS: Waiters = Waiters { counts: &[10, 100], time: Duration::from_millis(300) };

/// Tasks of several clients that all want one lock, and release it at once.
pub(crate) fn waiters(scale: Scale) -> Vec<Row> {
    let Waiters { counts, time } = scale.of(WAITERS, FEW_WAITERS);
    let runtime = contender::runtime();
    counts.iter().map(|&count| runtime.block_on(wait(count, time))).collect()
}

async fn wait(count: usize, time: Duration) -> Row {
    let masters = Masters::start(MASTERS);
    let clients: Vec<Quorate> = (0..CLIENTS).map(|_| Quorate::new(contender::new(&masters.urls()))).collect();
    join_all(clients.iter().map(|client| client.knows(MASTERS))).await;
    let first = clients[0].redlock.lock("wanted").acquire().await.unwrap();
    let own_memory = meter::own_memory();
    let (end, mut tasks) = (Instant::now() + time * 2, JoinSet::new());
    for i in 0..count {
        tasks.spawn(take_turns(clients[i % CLIENTS].redlock.clone(), end));
    }
    tokio::time::sleep(time).await; // by now all wait
    let own_memory = meter::own_memory() - own_memory;
    let before = (meter::used(masters.iter(), meter::sent_by(Quorate::NAME)), meter::own_cpu());
    let began = Instant::now();
    first.release().await.unwrap();
    let ends = tasks.join_all().await;
    let took = began.elapsed();
    let cpu = meter::own_cpu() - before.1;
    let used = meter::used(masters.iter(), meter::sent_by(Quorate::NAME)) - before.0;
    let (granted, refused) = ends.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Row::new(count, Quorate::NAME, granted + refused, granted)
        .with("grants_per_s", granted as f64 / took.as_secs_f64())
        .with("calls_a_grant", used.calls / granted as f64)
        .with("client_cpu_us", cpu.as_secs_f64() * 1e6 / granted as f64)
        .with("masters_cpu_us", used.cpu * 1e6 / granted as f64)
        .with("client_memory_bytes", own_memory / count as f64)
}

/// Locks and releases until then: how often it was granted, and how often not.
async fn take_turns(redlock: Redlock, end: Instant) -> (u64, u64) {
    let lock = redlock.lock("wanted").wait(Duration::from_secs(60));
    let mut counts = (0, 0);
    while Instant::now() < end {
        match lock.acquire().await {
            Ok(guard) => {
                counts.0 += 1;
                drop(guard.release().await);
            }
            Err(_) => counts.1 += 1,
        }
    }
    counts
}
