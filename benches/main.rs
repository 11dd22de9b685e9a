//! Benchmarks, on real servers of their own: `cargo bench [-- TOPIC]`. Each topic interleaves its contenders in one run
//! and reports ratios, because machines are shared and drift; compare rows of one run, not numbers of two.
//!
//! - `uncontended`: how long an acquire and a release take, on one to nine masters
//! - `throughput`: 1 to 1024 workers; the client's CPU and system calls a cycle
//! - `instructions`: the client's instructions a cycle, by callgrind
//! - `degraded`: some masters dead, frozen or slow
//! - `wide`: masters in five regions
//! - `handoff`: clients that pass one lock on
//! - `guards`: what markers, tokens and clocks cost
//! - `kinds`: what a lock of each kind costs, beside the reentrant lock
//! - `leases`: many leases held by one process

#![allow(clippy::unwrap_used, reason = "a bench that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

mod contender;
mod degraded;
mod guards;
mod handoff;
mod handoff_child;
mod handoff_crew;
mod handoff_report;
mod instructions;
mod kinds;
mod leases;
mod measure;
mod sample;
mod script;
mod throughput;
mod uncontended;
mod wide;

fn main() {
    if let Ok(contender) = std::env::var(handoff_child::CHILD) {
        return handoff_child::run(&contender);
    }
    if let Ok(contender) = std::env::var(sample::SAMPLE) {
        return sample::run(&contender);
    }
    // Cargo passes options of its own; a topic is what does not begin with a dash. `cargo test` runs the benches as well,
    // but without this option.
    let topic = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if topic.is_none() && !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let topics: [(&str, fn()); 9] = [
        ("uncontended", uncontended::run),
        ("throughput", throughput::run),
        ("instructions", instructions::run),
        ("degraded", degraded::run),
        ("wide", wide::run),
        ("handoff", handoff::run),
        ("guards", guards::run),
        ("kinds", kinds::run),
        ("leases", leases::run),
    ];
    let wanted = |name: &str| topic.as_deref().is_none_or(|topic| topic == name);
    assert!(topics.iter().any(|(name, _)| wanted(name)), "no topic {topic:?}");
    topics.iter().filter(|(name, _)| wanted(name)).for_each(|(_, run)| run());
}
