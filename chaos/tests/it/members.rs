//! The set of masters changes while client processes hold and wait: no acquire fails, no lease is
//! lost, and nobody has a lock beside another. How slow acquires get is for the command to check:
//! on a machine that is busy with other tests it says nothing.

use std::time::Duration;

use quorate_chaos::checkers::pace;
use quorate_chaos::figures::{changes, held_throughout, percentile};
use quorate_chaos::run::{Stop, Trial};
use quorate_chaos::scenario;
use quorate_chaos::workload::{Kind, Subject};

use crate::stage::client;

const CLIENTS: usize = 2;

#[test]
fn nobody_notices_that_the_set_changes() {
    let length = Duration::from_secs(5);
    let trial = Trial {
        scenario: scenario::MEMBERS,
        seed: 1,
        length,
        masters: 3,
        clients: CLIENTS,
        subject: Subject::Quorate(Kind::ALL.to_vec()),
        ttl: Duration::from_secs(4), // clients wait a quarter of it for an answer
    };
    let outcome = trial.run(trial.arena(), client, None, &Stop::default(), |_| {}).unwrap();
    let mut violations = outcome.verdict.violations;
    violations.retain(|found| found.property != pace::NAME);
    assert_eq!(violations, []);
    assert_eq!(outcome.verdict.inconclusive, []);
    let stretches = changes(&outcome.history, length);
    for stretch in &stretches {
        let long = |per_mille| percentile(&stretch.latencies, per_mille).unwrap_or_default().as_millis();
        println!(
            "{}: {} acquires, p99 {} ms, the longest {} ms",
            stretch.what.as_deref().unwrap_or("no change"),
            stretch.latencies.len(),
            long(990),
            long(1_000)
        );
        assert!(stretch.latencies.len() > 50, "{:?}", stretch.what);
    }
    assert_eq!(stretches.len(), 7, "the time before, each change, and the time after");
    assert!(held_throughout(&outcome.history) >= 100);
}
