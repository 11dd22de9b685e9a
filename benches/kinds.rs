//! What a lock of each kind costs, beside the reentrant lock, on five masters, one after the other.

use quorate_testkit::Masters;

use crate::contender::{self, Client, KINDS, Load, Quorate};
use crate::measure::{Block, granted, median, middle, ratio, ratios};

const BLOCKS: usize = 15;
const CYCLES: u64 = 400;

/// What an acquire of another kind may take of the reentrant lock's, at the median.
const GOAL: f64 = 1.3;

pub(crate) fn run() {
    let masters = Masters::start(5);
    let names: Vec<&str> = [Quorate::NAME].into_iter().chain(KINDS.map(|(name, _)| name)).collect();
    let mut contenders = contender::all(&names, &masters.urls());
    let measured = contender::take_turns(&mut contenders, Load::alone(CYCLES), BLOCKS);
    println!(
        "kinds, 5 local masters, {BLOCKS} blocks of {CYCLES} cycles, one after the other; the goal for an acquire is {GOAL}:"
    );
    for (name, blocks) in names.iter().zip(&measured) {
        let ratio = |of: fn(&Block) -> f64| ratio(blocks, &measured[0], of);
        let acquire = middle(ratios(blocks, &measured[0], |block| block.acquire(0.5)));
        println!(
            "  {name:<21} acquire p50 {:>7.1} us, of the reentrant lock's {}{}; release p50 {}; granted {:.2} %",
            median(blocks, |block| block.acquire(0.5)),
            ratio(|block| block.acquire(0.5)),
            if acquire > GOAL { ", ABOVE THE GOAL" } else { "" },
            ratio(|block| block.release(0.5)),
            granted(blocks)
        );
    }
}
