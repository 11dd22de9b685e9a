//! What the guards cost: a client with fencing tokens, markers, clocks and records, beside one without any of them, on five
//! masters. One lock after the other, and 256 workers at once.

use std::time::Duration;

use quorate_testkit::{Masters, RedisServer};

use crate::contender::{self, Client, Length, Load, Quorate};
use crate::measure::{Block, granted, median, ratio};

const NAMES: [&str; 2] = [Quorate::NAME, Quorate::UNGUARDED];
const BLOCKS: usize = 15;
const CYCLES: u64 = 400;
const WORKERS: usize = 256;
const LENGTH: Duration = Duration::from_millis(400);

pub(crate) fn run() {
    let masters = Masters::start(5);
    let urls = masters.urls();
    let alone = contender::take_turns(&mut contender::all(&NAMES, &urls), Load::alone(CYCLES), BLOCKS);
    println!("guards, 5 local masters, {BLOCKS} blocks of {CYCLES} cycles, one after the other:");
    for (name, blocks) in NAMES.iter().zip(&alone) {
        let p50 = |of: fn(&Block, f64) -> f64| median(blocks, |block| of(block, 0.5));
        println!(
            "  {name:<20} acquire p50 {:>7.1} us, release p50 {:>7.1} us, granted {:.2} %",
            p50(Block::acquire),
            p50(Block::release),
            granted(blocks)
        );
    }
    println!(
        "  with guards / without: acquire p50 {}",
        ratio(&alone[0], &alone[1], |block| block.acquire(0.5))
    );
    println!(
        "  with guards / without: release p50 {}",
        ratio(&alone[0], &alone[1], |block| block.release(0.5))
    );
    for name in NAMES {
        let (calls, usec) = at_the_masters(&masters, &urls, name);
        println!("  {name:<20} {:.1} us of a master's time a call", usec / calls);
    }
    let load = Load { workers: WORKERS, length: Length::Time(LENGTH) };
    let many = contender::take_turns(&mut contender::all(&NAMES, &urls), load, BLOCKS);
    println!("{WORKERS} workers, {BLOCKS} blocks of {LENGTH:?}:");
    for (name, blocks) in NAMES.iter().zip(&many) {
        println!(
            "  {name:<20} {:>7.0} cycles/s, granted {:.2} %",
            median(blocks, Block::rate),
            granted(blocks)
        );
    }
    println!("  with guards / without: cycles/s {}", ratio(&many[0], &many[1], Block::rate));
}

/// How many calls of scripts the masters carried out for a contender, one operation each, and how long (us) they took.
fn at_the_masters(masters: &Masters, urls: &[String], name: &str) -> (f64, f64) {
    let mut contenders = contender::all(&[name], urls);
    contender::measure(&mut *contenders[0], Load::alone(CYCLES)); // connected, and warm
    masters.iter().for_each(|server| server.command::<()>(&["CONFIG", "RESETSTAT"]));
    contender::measure(&mut *contenders[0], Load::alone(BLOCKS as u64 * CYCLES));
    let stats = |server: &RedisServer| {
        let stats: String = server.command(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")).unwrap().to_owned();
        let field = |name: &str| -> f64 {
            line.split(',').find_map(|field| field.strip_prefix(name)).unwrap().parse().unwrap()
        };
        (field("calls="), field("usec="))
    };
    masters.iter().map(stats).fold((0.0, 0.0), |sum, (calls, usec)| (sum.0 + calls, sum.1 + usec))
}
