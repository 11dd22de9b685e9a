//! What a client saw before does not count for what is there now.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate::{Builder, Init, Redlock};
use quorate_testkit::{Masters, Proxy, Toxic, Way};

use crate::attacks::{idle, times};
use crate::clock::Jumping;
use crate::renewal::{calls, scripts_run};
use crate::{answering, ms};

const TTL: Duration = Duration::from_secs(20);

fn builder() -> Builder {
    Redlock::builder().ttl(TTL).timeout(ms(500)).wait(TTL)
}

/// Leads connections to where nobody answers.
fn cut_off(proxy: &Proxy, nowhere: SocketAddr) {
    proxy.lead_to(nowhere);
    proxy.reset();
    proxy.clear();
}

/// Waits until these masters have records, and cuts each link before it is told so.
async fn cut_off_when_written(masters: &Masters, proxies: &[Proxy], nowhere: SocketAddr) {
    let begun = Instant::now();
    let mut left: Vec<usize> = (0..proxies.len()).collect();
    while !left.is_empty() {
        assert!(begun.elapsed() < TTL, "{left:?} are not written");
        left.retain(|&at| {
            let is_written = masters[at].command::<i64>(&["EXISTS", "quorate:master"]) == 1;
            if is_written {
                cut_off(&proxies[at], nowhere);
            }
            !is_written
        });
        tokio::time::sleep(ms(1)).await;
    }
}

/// `init --never-used` wrote two records and did not hear so; a client took the lock; the keys of
/// those two were deleted. The word of before does not count for them any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_used_is_not_said_again_of_a_process_whose_record_was_not_seen() {
    let masters = Masters::start(3);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = silent.local_addr().unwrap();
    let proxies = [Proxy::start(masters[0].address()).await, Proxy::start(masters[1].address()).await];
    let list = vec![proxies[0].url(), proxies[1].url(), masters[2].url()];
    let operator = builder().masters(list).build().unwrap();
    let fingerprint = operator.fingerprint().await.unwrap();
    for proxy in &proxies {
        proxy.add(Way::Back, Toxic::Latency { delay: ms(250), jitter: ms(0) });
    }
    let its = operator.clone();
    let init = tokio::spawn(async move { its.init(Init::new().never_used(fingerprint)).await });
    cut_off_when_written(&masters, &proxies, nowhere).await;
    tokio::time::sleep(ms(2_300)).await; // what it saw of them is of before
    let ways = [Proxy::start(masters[0].address()).await, Proxy::start(masters[1].address()).await];
    let list = vec![ways[0].url(), ways[1].url(), masters[2].url()];
    let first = builder().masters(list).build().unwrap();
    let guard = first.lock("l").ttl(TTL).no_renewal().acquire().await.unwrap();
    // It would give one its place again before the next one is emptied.
    ways.iter().for_each(|way| cut_off(way, nowhere));
    for (at, proxy) in proxies.iter().enumerate() {
        masters[at].wipe();
        proxy.lead_to(masters[at].address());
    }
    let second = builder().masters(masters.urls()).build().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < ms(6_000) {
        if let Ok(other) = second.lock("l").try_acquire().await {
            assert!(!(guard.is_valid() && other.is_valid()), "held by two");
        }
        tokio::time::sleep(ms(20)).await;
    }
    init.abort();
}

/// How often two hold the lock where a client saw one clock so far ahead (ms) before it was put
/// right, and did not see that. Then another clock is wrong. At no moment is more than one of the
/// three further than the band from the right time.
async fn held_by_two_where_a_clock_was_seen(ahead: i64) -> usize {
    let mut breaches = 0;
    for _ in 0..times() {
        let masters = Masters::start_with_clocks(3, &[]);
        answering(&crate::begin_new().masters(masters.urls()).build().unwrap(), 3).await;
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let clocks = |all: [i64; 3]| {
            all.into_iter().enumerate().for_each(|(at, ms)| masters[at].set_clock_offset(ms));
        };
        let [one, two, three] = [0, 1, 2].map(|at| masters[at].url());
        let proxy = Proxy::start(masters[0].address()).await;
        let asks = builder().masters(vec![proxy.url(), two.clone(), three]).build().unwrap();
        clocks([ahead, -240, 240]);
        answering(&asks, 3).await;
        cut_off(&proxy, silent.local_addr().unwrap());
        clocks([-240, -240, 240]);
        tokio::time::sleep(ms(2_100)).await; // estimates count together for 2 s
        let holds = builder().masters(vec![one, two, "redis://127.0.1.1:1".into()]).build().unwrap();
        answering(&holds, 2).await;
        let guard = holds.lock("l").ttl(ms(3_000)).no_renewal().try_acquire().await.unwrap();
        masters[1].set_clock_offset(480);
        while guard.is_valid() {
            if asks.lock("l").try_acquire().await.is_ok() {
                breaches += usize::from(guard.is_valid());
                break;
            }
            tokio::time::sleep(ms(5)).await;
        }
    }
    breaches
}

#[tokio::test]
async fn a_clock_that_was_wrong_when_it_was_seen_last_ends_no_lease() {
    assert_eq!(held_by_two_where_a_clock_was_seen(-240).await, 0, "it was right then");
    assert_eq!(held_by_two_where_a_clock_was_seen(480).await, 0, "it was wrong then");
}

/// A client was idle for five minutes, so it knows the time vaguely, when a master restarts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_gives_a_master_its_record_again_and_does_not_flood_it() {
    let mut masters = Masters::start_with_clocks(3, &[]);
    let clock = Arc::new(Jumping::default());
    answering(&crate::begin_new().masters(masters.urls()).build().unwrap(), 3).await;
    let redlock = builder().clock(clock.clone()).masters(masters.urls()).build().unwrap();
    answering(&redlock, 3).await;
    idle(&clock, &masters, Duration::from_secs(300));
    masters[0].restart_empty();
    tokio::time::sleep(ms(4_000)).await;
    let run = calls(&masters[0], "eval") + scripts_run(&masters[0]);
    let is_back = masters[0].command::<i64>(&["EXISTS", "quorate:master"]) == 1;
    assert!(is_back && run < 500, "it has its record: {is_back}, and {run} scripts ran there");
}

/// A client heard the masters at different times, each when its connection began anew.
#[tokio::test]
async fn who_heard_the_masters_at_different_times_asks_them_together() {
    let masters = Masters::start(3);
    let redlock = crate::begin_new().masters(masters.urls()).build().unwrap();
    drop(redlock.lock("l").acquire().await.unwrap().release().await);
    for master in masters.iter() {
        tokio::time::sleep(ms(2_100)).await;
        let _: i64 = master.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    tokio::time::sleep(ms(2_100)).await;
    drop(redlock.lock("l").try_acquire().await.unwrap());
}
