//! How many instructions a client runs for a cycle, outside the kernel, as callgrind counts them: a number that a busy
//! machine hardly changes. Time is another matter: threads take turns under valgrind, and everything is slow.

use quorate_testkit::Masters;

use crate::measure::quartiles;
use crate::sample::Tool;

const MASTERS: usize = 5;
const TIMES: usize = 3;
/// How many workers, and how many cycles of each.
const LOADS: [(usize, u64); 2] = [(1, 200), (64, 8)];

const CALLGRIND: Tool = Tool {
    program: "valgrind",
    options: &["--tool=callgrind", "--callgrind-out-file=/dev/null"],
    count: collected,
};

pub(crate) fn run() {
    if !CALLGRIND.works() {
        return println!("instructions: not measured, as valgrind does not work here");
    }
    let masters = Masters::start(MASTERS);
    let urls = masters.urls();
    println!("instructions a cycle, {MASTERS} local masters, {TIMES} times each, thousands (quartiles):");
    for (workers, cycles) in LOADS {
        for contender in ["quorate", "bare", "floor"] {
            let counts = (0..TIMES).map(|_| CALLGRIND.a_cycle(contender, workers, cycles, &urls) / 1e3);
            println!("  {workers:>3} workers, {contender:<8} {}", quartiles(counts));
        }
    }
}

/// From the line `==1== Collected : 123`.
fn collected(said: &str) -> Option<u64> {
    let (_, count) = said.lines().find(|line| line.contains("Collected"))?.split_once(" : ")?;
    count.trim().parse().ok()
}
