//! One client, one lock after the other: how long an acquire and a release take, beside a bare first-majority fan-out of
//! the same scripts by the redis crate, rslock, and the floor. Five masters are what counts; the others show the trend. A
//! client whose engine runs on the caller's runtime tells what the engine's own thread costs.

use quorate_testkit::Masters;

use crate::contender::{self, Bare, Client, Floor, Load, Quorate, Rslock};
use crate::measure::{Block, granted, median, ratio};

const CYCLES: u64 = 400;
const NAMES: [&str; 5] = [Quorate::NAME, Bare::NAME, Rslock::NAME, Floor::NAME, Quorate::LENT];
/// How many masters, and how many blocks of each contender.
const ROWS: [(usize, usize); 5] = [(1, 7), (3, 7), (7, 7), (9, 7), (5, 15)];

pub(crate) fn run() {
    let masters = Masters::start(9);
    let urls = masters.urls();
    for (count, blocks) in ROWS {
        let mut contenders = contender::all(&NAMES, &urls[..count]);
        let measured = contender::take_turns(&mut contenders, Load::alone(CYCLES), blocks);
        report(count, &measured);
    }
}

fn report(masters: usize, measured: &[Vec<Block>]) {
    let headline = if masters == 5 { " (the headline)" } else { "" };
    println!(
        "uncontended, {masters} local masters{headline}, concurrency 1, {} blocks of {CYCLES} cycles:",
        measured[0].len()
    );
    println!("  {:<23} {:>20} {:>20}", "median, us", "acquire p50 / p99", "release p50 / p99");
    for (name, blocks) in NAMES.iter().zip(measured) {
        let p = |of: fn(&Block, f64) -> f64, quantile| median(blocks, |block| of(block, quantile));
        println!(
            "  {name:<23} {:>10.1} / {:>7.1} {:>10.1} / {:>7.1}",
            p(Block::acquire, 0.5),
            p(Block::acquire, 0.99),
            p(Block::release, 0.5),
            p(Block::release, 0.99)
        );
    }
    println!("  {:<23} {:<22} {:<22} release p50", "ratio (quartiles)", "acquire p50", "acquire p99");
    for (name, theirs) in NAMES.iter().zip(measured).skip(1) {
        let ratio = |of: fn(&Block) -> f64| ratio(&measured[0], theirs, of);
        println!(
            "  {:<23} {:<22} {:<22} {}",
            format!("quorate / {name}"),
            ratio(|block| block.acquire(0.5)),
            ratio(|block| block.acquire(0.99)),
            ratio(|block| block.release(0.5))
        );
    }
    for (name, blocks) in NAMES.iter().zip(measured).filter(|(_, blocks)| granted(blocks) < 100.0) {
        println!("  NOT all granted: {name} {:.2} %", granted(blocks));
    }
}
