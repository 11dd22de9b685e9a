//! Benchmarks, on real servers of their own. Contenders take turns, because machines are shared and
//! drift. Each cycle locks a new name, on a multi-thread tokio runtime, where a row does not say
//! otherwise, and the topic is not about one lock that many want.
//!
//! - `cargo bench [-- TOPIC...]` measures topics once, and prints what it found
//! - `cargo bench -- smoke [TOPIC...]` does so with small sizes, which shows that the benches work,
//!   and nothing else
//! - `cargo bench -- figures [TOPIC...]` measures three times, but once if a topic takes minutes or
//!   counts (with `--once`: each topic), writes docs/figures/, and makes the tables of the docs
//! - `cargo bench -- tables` makes those tables again, and `cargo bench -- check` fails where they
//!   differ

#![allow(clippy::unwrap_used, reason = "a bench that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

mod contender;
mod cost;
mod counted;
mod degraded;
mod figures;
mod growth;
mod handoff;
mod handoff_child;
mod handoff_crew;
mod idle;
mod measure;
mod meter;
mod passed;
mod script;
mod table_list;
mod tables;
mod whom;
mod wide;

use std::time::Instant;

use crate::figures::Row;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Full,
    Smoke,
}

impl Scale {
    fn of<T>(self, full: T, smoke: T) -> T {
        if self == Self::Full { full } else { smoke }
    }
}

struct Topic {
    name: &'static str,
    run: fn(Scale) -> Vec<Row>,
    /// Whether some may be refused: contenders want the same lock, or masters fail.
    may_refuse: bool,
    /// How often it is measured for its figures: once where it takes minutes, or counts.
    runs: usize,
}

const TOPICS: [Topic; 15] = [
    Topic { name: "uncontended", run: cost::uncontended, may_refuse: false, runs: 3 },
    Topic { name: "cost", run: cost::cost, may_refuse: false, runs: 3 },
    Topic { name: "whom", run: whom::run, may_refuse: false, runs: 3 },
    Topic { name: "sustained", run: cost::sustained, may_refuse: false, runs: 1 },
    Topic { name: "idle", run: idle::run, may_refuse: false, runs: 1 },
    Topic { name: "kinds", run: cost::kinds, may_refuse: false, runs: 3 },
    Topic { name: "instructions", run: counted::instructions, may_refuse: false, runs: 1 },
    Topic { name: "syscalls", run: counted::system_calls, may_refuse: false, runs: 1 },
    Topic { name: "wide", run: wide::run, may_refuse: false, runs: 1 },
    Topic { name: "leases", run: growth::leases, may_refuse: false, runs: 1 },
    Topic { name: "names", run: growth::names, may_refuse: false, runs: 1 },
    Topic { name: "holders", run: growth::holders, may_refuse: false, runs: 3 },
    Topic { name: "waiters", run: growth::waiters, may_refuse: true, runs: 3 },
    Topic { name: "handoff", run: handoff::run, may_refuse: true, runs: 3 },
    Topic { name: "degraded", run: degraded::run, may_refuse: true, runs: 3 },
];

fn main() {
    if let Ok(contender) = std::env::var(handoff_child::CHILD) {
        return handoff_child::run(&contender);
    }
    if let Ok(contender) = std::env::var(counted::SAMPLE) {
        return counted::run_sample(&contender);
    }
    if let Ok(acquires) = std::env::var(passed::SAMPLE) {
        return passed::run_sample(&acquires);
    }
    // Cargo passes options of its own, which begin with a dash. `cargo test --all-targets` runs
    // benches without `--bench`.
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] if !options.iter().any(|option| option == "--bench") => {}
        ["tables"] => tables::fill(),
        ["check"] => tables::check(),
        ["figures", ref names @ ..] => {
            let once = options.iter().any(|option| option == "--once");
            topics(names).for_each(|topic| figures::measure(topic.name, if once { 1 } else { topic.runs }));
            tables::fill();
        }
        ["smoke", ref names @ ..] => topics(names).for_each(|topic| measure(topic, Scale::Smoke)),
        ref names => topics(names).for_each(|topic| measure(topic, Scale::Full)),
    }
}

/// The topics of these names, or all.
fn topics(names: &[&str]) -> impl Iterator<Item = &'static Topic> {
    let known = |name: &&str| TOPICS.iter().any(|topic| topic.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        panic!("no topic {unknown:?}; there are {}", TOPICS.map(|topic| topic.name).join(", "));
    }
    TOPICS.iter().filter(move |topic| names.is_empty() || names.contains(&topic.name))
}

/// Measures a topic once.
///
/// # Panics
///
/// When a contender was refused what it had to be granted.
fn measure(topic: &Topic, scale: Scale) {
    let began = Instant::now();
    println!("{}:", topic.name);
    let rows = (topic.run)(scale);
    for row in &rows {
        println!("  {row}");
        let enough = if topic.may_refuse { row.granted > 0 } else { row.granted == row.asked };
        let Row { case, contender, granted, asked, .. } = row;
        assert!(enough && *asked > 0, "{}, {case}: {contender} was granted {granted} of {asked}", topic.name);
    }
    tables::print(topic.name, &rows);
    println!("  {} took {:.1?}", topic.name, began.elapsed());
    figures::hand_over(&rows);
}
