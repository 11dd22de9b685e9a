//! Many leases in one process, which the watchdog renews: what they take to hold, in memory, in time and on the masters,
//! and how near any of them comes to its end.
//!
//! `QUORATE_BENCH_LEASES` is how many, `QUORATE_BENCH_SECONDS` for how long they are held.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use quorate::{Guard, Redlock};
use quorate_testkit::{Masters, RedisServer};

const MASTERS: usize = 5;
const TTL: Duration = Duration::from_secs(30);
/// How many acquires, or releases, are under way at a time.
const TOGETHER: usize = 256;
const WARMING: usize = 2_000;

pub(crate) fn run() {
    let number = |name, usual: f64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let count = number("QUORATE_BENCH_LEASES", 100_000.0) as usize;
    let time = Duration::from_secs_f64(number("QUORATE_BENCH_SECONDS", 60.0));
    let masters = Masters::start(MASTERS);
    println!("leases, {count} in one process, {MASTERS} local masters, TTL {TTL:?}:");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let redlock = crate::contender::new(&masters.urls()).ttl(TTL).build().unwrap();
        warm(&redlock).await;
        let before = memory();
        let guards = acquire(&redlock, count).await;
        let memory =
            |when| println!("memory {when}: {:.0} bytes a lease", (memory() - before) / guards.len() as f64);
        memory("when all are acquired");
        hold(&masters, &guards, time).await;
        memory("after they were held");
        println!("lost: {}", lost(&guards));
        memory("when each was asked for its token");
        release(&masters, guards).await;
    });
}

/// Has as much under way at a time as there ever will be, so that its memory is there already.
async fn warm(redlock: &Redlock) {
    let warming = (0..WARMING).map(|i| {
        let lock = redlock.lock(format!("warm-{i}"));
        async move { lock.acquire().await.unwrap().release().await.unwrap() }
    });
    stream::iter(warming).buffer_unordered(TOGETHER).collect::<()>().await;
}

async fn acquire(redlock: &Redlock, count: usize) -> Vec<Guard> {
    let began = Instant::now();
    let acquiring = (0..count).map(|i| {
        let lock = redlock.lock(format!("bench-{i}"));
        async move { lock.acquire().await }
    });
    let mut acquiring = stream::iter(acquiring).buffer_unordered(TOGETHER);
    let (mut guards, mut failed, mut example) = (Vec::with_capacity(count), 0, None);
    while let Some(end) = acquiring.next().await {
        match end {
            Ok(guard) => guards.push(guard),
            Err(error) => {
                failed += 1;
                example = Some(error);
            }
        }
    }
    let took = began.elapsed();
    println!("acquired {} in {took:.1?}, {:.0} a second", guards.len(), rate(guards.len(), took));
    if let Some(error) = example {
        println!("NOT acquired: {failed}, as in: {error}");
    }
    guards
}

/// What was used when, by this process and by the masters.
struct Meter {
    at: Instant,
    own: f64,
    masters: f64,
    calls: u64,
    renewals: u64,
}

impl Meter {
    fn read(masters: &Masters) -> Self {
        Self {
            at: Instant::now(),
            own: cpu(),
            masters: masters.iter().map(cpu_of).sum(),
            calls: masters.iter().map(|server| calls(server, "evalsha")).sum(),
            // A renewal that succeeds sets a TTL.
            renewals: masters.iter().map(|server| calls(server, "pexpire")).sum(),
        }
    }
}

async fn hold(masters: &Masters, guards: &[Guard], time: Duration) {
    let before = Meter::read(masters);
    let (mut least, mut troubled) = (TTL, 0);
    while before.at.elapsed() < time {
        tokio::time::sleep(Duration::from_secs(1)).await;
        least = guards.iter().map(Guard::remaining).min().unwrap_or(TTL).min(least);
        troubled = guards.iter().filter(|guard| guard.renewal_error().is_some()).count().max(troubled);
    }
    let after = Meter::read(masters);
    let held = after.at - before.at;
    let share = |used: f64| used / held.as_secs_f64() * 100.0;
    let renewals = (after.renewals - before.renewals) as f64;
    println!("held for {held:.1?}:");
    println!("  renewals a second: {:.0}", renewals / MASTERS as f64 / held.as_secs_f64());
    println!("  calls to a master for each renewal: {:.4}", (after.calls - before.calls) as f64 / renewals);
    println!("  CPU of this process: {:.0} % of a core", share(after.own - before.own));
    println!("  CPU of all masters: {:.0} % of a core", share(after.masters - before.masters));
    println!("  least time left at any moment: {least:.1?}");
    println!("  most leases at a time whose last renewal had failed: {troubled}");
}

/// How many are lost. A guard's token is made for whoever asks first, so this takes memory.
fn lost(guards: &[Guard]) -> usize {
    guards.iter().filter(|guard| guard.lost_token().is_cancelled()).count()
}

async fn release(masters: &Masters, guards: Vec<Guard>) {
    let (count, began) = (guards.len(), Instant::now());
    let mut releasing = stream::iter(guards.into_iter().map(Guard::release)).buffer_unordered(TOGETHER);
    let mut failed = 0;
    while let Some(end) = releasing.next().await {
        failed += usize::from(end.is_err());
    }
    let took = began.elapsed();
    println!("released {count} in {took:.1?}, {:.0} a second; not confirmed: {failed}", rate(count, took));
    let emptying = async {
        while masters.iter().any(|server| server.command::<u64>(&["DBSIZE"]) > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let emptied = tokio::time::timeout(TTL * 2, emptying).await.is_ok();
    println!("every master was empty {:.1?} after the first release: {emptied}", began.elapsed());
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// What this process has written to and keeps in memory, in bytes.
fn memory() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = pages.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<f64>().unwrap() * 1024.0
}

/// The seconds of CPU that this process has used, which /proc counts in hundredths.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// The seconds of CPU that a master has used.
fn cpu_of(server: &RedisServer) -> f64 {
    let info: String = server.command(&["INFO", "cpu"]);
    let used = |field: &str| -> f64 {
        info.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().parse().unwrap()
    };
    used("used_cpu_sys:") + used("used_cpu_user:")
}

fn calls(server: &RedisServer, command: &str) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}
