//! A contender in a process of its own, under a tool that counts what the process does. Two such processes, one of which
//! has twice the cycles, tell what a cycle costs: what they have in common goes away.

use std::process::Command;
use std::time::Duration;

use crate::contender::{self, Length, Load};

/// The environment variable that makes a process a sample, with the name of the contender.
pub(crate) const SAMPLE: &str = "QUORATE_BENCH_SAMPLE";

/// Under these tools a process is slow.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) options: &'static [&'static str],
    /// Finds the count in what the tool says.
    pub(crate) count: fn(&str) -> Option<u64>,
}

impl Tool {
    /// Whether it can be used: in some containers it is there, and may not look at processes.
    pub(crate) fn works(&self) -> bool {
        let trial = Command::new(self.program).args(self.options).arg("true").output();
        trial.is_ok_and(|trial| trial.status.success())
    }

    /// What one cycle of a contender costs, with so many workers that do so many cycles each.
    pub(crate) fn a_cycle(&self, contender: &str, workers: usize, cycles: u64, masters: &[String]) -> f64 {
        let once = self.count(contender, workers, cycles, masters);
        let twice = self.count(contender, workers, 2 * cycles, masters);
        (twice as f64 - once as f64) / (workers as u64 * cycles) as f64
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
pub(crate) fn run(contender: &str) {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().unwrap().parse::<u64>().unwrap();
    let (workers, cycles) = (number() as usize, number());
    let masters: Vec<String> = arguments.collect();
    let mut contender = contender::one(contender, &masters, PATIENCE, &contender::runtime());
    for cycles in [1, cycles] {
        let block = contender.work(Load { workers, length: Length::Cycles(cycles) });
        assert_eq!(block.failed, 0);
    }
}
