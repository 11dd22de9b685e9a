//! What faulty masters cost: acquires with one of five frozen, or two killed, beside healthy ones of the same run; and
//! how long three frozen ones take to be an error.

use std::time::{Duration, Instant};

use quorate::{Outcome, Redlock};
use quorate_testkit::Masters;

use crate::measure::{Block, median, quartiles, ratios};

const BLOCKS: usize = 9;
const CYCLES: usize = 400;
const TIMEOUT: Duration = Duration::from_millis(250);

pub(crate) fn run() {
    let masters = Masters::start(5);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let redlock = Redlock::builder().masters(masters.urls()).timeout(TIMEOUT).build().unwrap();
        let (mut healthy, mut frozen, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for block in 0..=BLOCKS {
            answering(&redlock, 5).await;
            let a = cycles(&redlock).await;
            masters[0].freeze();
            answering(&redlock, 4).await; // it is known
            let b = cycles(&redlock).await;
            masters[0].thaw();
            answering(&redlock, 5).await;
            if block > 0 {
                healthy.push(a);
                frozen.push(b);
                errors.push(three_frozen(&masters, &redlock).await);
            }
        }
        masters[0].kill();
        masters[1].kill();
        answering(&redlock, 3).await;
        let mut dead = Vec::new();
        for _ in 0..BLOCKS {
            dead.push(cycles(&redlock).await);
        }
        println!("degraded, five local masters, concurrency 1, {BLOCKS} blocks of {CYCLES} cycles:");
        for (name, blocks) in [("healthy", &healthy), ("one frozen", &frozen), ("two killed", &dead)] {
            let p = |quantile| median(blocks, |block| &block.acquire, quantile) / 1e3;
            println!("{name:<12} acquire p50 / p99: {:>8.1} / {:>8.1} us", p(0.5), p(0.99));
        }
        println!("acquire p50, one frozen to healthy: {}", quartiles(&ratios(&frozen, &healthy)));
        println!("acquire p50, two killed to healthy: {}", quartiles(&ratios(&dead, &healthy)));
        errors.sort();
        let over = |error: &Duration| error.saturating_sub(TIMEOUT).as_secs_f64() * 1e3;
        println!(
            "three frozen, error after the {TIMEOUT:?} of time-out plus: median {:.1} ms, worst {:.1} ms",
            over(&errors[errors.len() / 2]),
            over(errors.last().unwrap())
        );
    });
}

async fn cycles(redlock: &Redlock) -> Block {
    let mut block = Block::new();
    for _ in 0..CYCLES {
        let began = Instant::now();
        let guard = redlock.lock("bench").acquire().await.unwrap();
        let granted = Instant::now();
        guard.release().await.unwrap();
        block.note(began, granted);
        tokio::task::yield_now().await;
    }
    block
}

/// How long the first acquire takes to fail when three of five have just frozen.
async fn three_frozen(masters: &Masters, redlock: &Redlock) -> Duration {
    (0..3).for_each(|i| masters[i].freeze());
    let began = Instant::now();
    assert!(redlock.lock("bench").try_acquire().await.is_err());
    let took = began.elapsed();
    (0..3).for_each(|i| masters[i].thaw());
    took
}

/// Waits until the client has an answer from so many masters, and knows that the others are out of reach.
async fn answering(redlock: &Redlock, count: usize) {
    loop {
        let seen = redlock.lock("bench").inspect().await.unwrap();
        let known =
            seen.votes().iter().filter(|vote| matches!(vote.outcome, Outcome::Unreachable(_))).count();
        if seen.answered() == count && known == 5 - count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
