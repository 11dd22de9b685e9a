//! Benchmarks, on real servers of their own: `cargo bench [-- TOPIC]`. Each topic interleaves its contenders in one run
//! and reports ratios, because machines are shared and drift; compare rows of one run, not numbers of two.

#![allow(clippy::unwrap_used, reason = "a bench that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

mod degraded;
mod handoff;
mod handoff_child;
mod handoff_crew;
mod handoff_report;
mod leases;
mod measure;
mod uncontended;

fn main() {
    if let Ok(contender) = std::env::var(handoff_child::CHILD) {
        return handoff_child::run(&contender);
    }
    // `cargo test --benches` and `cargo bench` pass options of their own; a topic is what does not begin with a dash.
    let topic = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let topics: [(&str, fn()); 4] = [
        ("uncontended", uncontended::run),
        ("degraded", degraded::run),
        ("handoff", handoff::run),
        ("leases", leases::run),
    ];
    for (name, run) in topics {
        if topic.as_deref().is_none_or(|topic| topic == name) {
            run();
        }
    }
}
