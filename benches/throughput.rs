//! Many workers at once, each with a lock of its own: cycles a second, how long an acquire takes then, and what a cycle
//! costs the client.
//!
//! `QUORATE_BENCH_SECONDS` is the length of a block of 64 workers.

use std::time::Duration;

use quorate_testkit::Masters;

use crate::contender::{self, Length, Load};
use crate::measure::{Block, granted, median, number, quartiles, ratio};
use crate::sample::Tool;

const MASTERS: usize = 5;
const BLOCKS: usize = 7;
const SECONDS: f64 = 0.25;
/// How many workers, and how many times as long a block is: many workers have fewer cycles each.
const ROWS: [(usize, f64); 5] = [(1, 0.7), (16, 0.7), (64, 1.0), (256, 1.0), (1024, 1.6)];

/// How many workers have their system calls counted, and how many cycles each.
const TRACED: (usize, u64) = (64, 60);
const STRACE: Tool = Tool { program: "strace", options: &["-f", "-c"], count: total };

pub(crate) fn run() {
    let seconds = number("QUORATE_BENCH_SECONDS", SECONDS);
    let masters = Masters::start(MASTERS);
    let urls = masters.urls();
    println!("throughput, {MASTERS} local masters, medians of {BLOCKS} blocks:");
    println!(
        "  {:>7} {:<8} {:>9} {:>23} {:>13} {:>9}",
        "workers", "", "cycles/s", "acquire p50 / p99, us", "CPU us/cycle", "granted"
    );
    for (workers, times) in ROWS {
        let load = Load { workers, length: Length::Time(Duration::from_secs_f64(seconds * times)) };
        report(workers, &contender::take_turns(&mut contender::all(&contender::ALL, &urls), load, BLOCKS));
    }
    trace(&urls);
}

fn report(workers: usize, measured: &[Vec<Block>]) {
    for (name, blocks) in contender::ALL.iter().zip(measured) {
        println!(
            "  {workers:>7} {name:<8} {:>9.0} {:>12.1} / {:>8.1} {:>13.1} {:>7.2} %",
            median(blocks, Block::rate),
            median(blocks, |block| block.acquire(0.5)),
            median(blocks, |block| block.acquire(0.99)),
            median(blocks, Block::cpu),
            granted(blocks)
        );
    }
    for (name, theirs) in contender::ALL.iter().zip(measured).skip(1) {
        let ratio = |of: fn(&Block) -> f64| ratio(&measured[0], theirs, of);
        println!(
            "  {workers:>7} quorate / {name}: cycles/s {}, CPU {}",
            ratio(Block::rate),
            ratio(Block::cpu)
        );
    }
    let spread = measured[0].iter().map(|block| block.acquire(0.99) / block.acquire(0.5));
    println!("  {workers:>7} quorate, acquire p99 / p50: {}", quartiles(spread));
}

fn trace(masters: &[String]) {
    if !STRACE.works() {
        return println!("  system calls: not measured, as strace does not work here");
    }
    let (workers, cycles) = TRACED;
    println!("  system calls a cycle, {workers} workers, under strace, which slows the client:");
    for name in contender::ALL {
        println!("  {workers:>7} {name:<8} {:.2}", STRACE.a_cycle(name, workers, cycles, masters));
    }
}

/// From the last line of the table, `100.00 0.123 4 567 8 total`.
fn total(said: &str) -> Option<u64> {
    let line = said.lines().rfind(|line| line.ends_with(" total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}
