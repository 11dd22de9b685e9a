//! Instructions and system calls of a client, as valgrind and strace count them: numbers that a
//! busy machine hardly changes. A contender runs in a process of its own under the tool. Two such
//! processes, one of which does twice the cycles, tell what a cycle costs: what they have in common
//! goes away.

use std::process::Command;

use quorate_testkit::Masters;

use crate::Scale;
use crate::contender::{self, Client, Floor, Length, Load, Quorate, Rslock};
use crate::figures::Row;
use crate::passed;

/// The environment variable that makes a process a sample, with the name of the contender.
pub(crate) const SAMPLE: &str = "QUORATE_BENCH_SAMPLE";

const CONTENDERS: [&str; 3] = [Quorate::NAME, Rslock::NAME, Floor::SAME_SCRIPT];

struct Tool {
    program: &'static str,
    options: &'static [&'static str],
    value: &'static str,
    /// Finds the count in what the tool says.
    count: fn(&str) -> Option<u64>,
}

const CALLGRIND: Tool = Tool {
    program: "valgrind",
    options: &["--tool=callgrind", "--callgrind-out-file=/dev/null"],
    value: "instructions",
    count: |said| {
        // `==1== Collected : 123`
        let (_, count) = said.lines().find(|line| line.contains("Collected"))?.split_once(" : ")?;
        count.trim().parse().ok()
    },
};

const STRACE: Tool = Tool {
    program: "strace",
    options: &["-f", "-c"],
    value: "system_calls",
    count: |said| {
        // The last line of the table: `100.00 0.123 4 567 8 total`
        let line = said.lines().rfind(|line| line.ends_with(" total"))?;
        line.split_whitespace().nth(3)?.parse().ok()
    },
};

pub(crate) fn instructions(scale: Scale) -> Vec<Row> {
    // Looks at the masters' memory go by time: among so many cycles they weigh alike in all runs.
    let mut rows = CALLGRIND.rows(scale.of(&[(1, 1_000), (64, 30)], &[(1, 5)]), scale);
    if scale == Scale::Full && !rows.is_empty() {
        rows.push(passed::row());
    }
    rows
}

pub(crate) fn system_calls(scale: Scale) -> Vec<Row> {
    STRACE.rows(&[(1, scale.of(200, 50))], scale)
}

impl Tool {
    /// What a cycle costs, with so many workers that do so many cycles each.
    fn rows(&self, loads: &[(usize, u64)], scale: Scale) -> Vec<Row> {
        if !self.works() {
            println!("  not measured, for {} is not here, or may not look at processes", self.program);
            return Vec::new();
        }
        let masters = Masters::start(5);
        let urls = masters.urls();
        let mut rows = Vec::new();
        for &(workers, cycles) in loads {
            for contender in &CONTENDERS[..scale.of(CONTENDERS.len(), 1)] {
                let count = |cycles| self.count(contender, workers, cycles, &urls) as f64;
                let all = workers as u64 * cycles;
                let a_cycle = (count(2 * cycles) - count(cycles)) / all as f64;
                rows.push(Row::new(workers, contender, all, all).with(self.value, a_cycle));
            }
        }
        rows
    }

    fn works(&self) -> bool {
        let trial = Command::new(self.program).args(self.options).arg("true").output();
        trial.is_ok_and(|trial| trial.status.success())
    }

    fn count(&self, contender: &str, workers: usize, cycles: u64, masters: &[String]) -> u64 {
        let sample = Command::new(self.program)
            .args(self.options)
            .arg(std::env::current_exe().unwrap())
            .args([workers.to_string(), cycles.to_string()])
            .args(masters)
            .env(SAMPLE, contender)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&sample.stderr);
        assert!(sample.status.success(), "{contender} under {}: {said}", self.program);
        (self.count)(&said).unwrap_or_else(|| panic!("{} counted nothing: {said}", self.program))
    }
}

/// Is a sample: connects, goes through one cycle of each worker, and then through those that count.
pub(crate) fn run_sample(contender: &str) {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().unwrap().parse::<u64>().unwrap();
    let (workers, cycles) = (number() as usize, number());
    let masters: Vec<String> = arguments.collect();
    let mut contender = contender::one(contender, &masters);
    for cycles in [1, cycles] {
        let block = contender.work(Load { workers, length: Length::Cycles(cycles) });
        assert_eq!(block.failed, 0, "a contender was refused");
    }
}
