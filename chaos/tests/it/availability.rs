//! A minority of the masters fails and is healed all the time: every acquire is granted within the
//! time that it is ready to wait, and there is never long without a grant.

use std::time::Duration;

use quorate_chaos::figures::{healthy, latencies, longest_without_grant, percentile};
use quorate_chaos::history::{Call, Outcome};
use quorate_chaos::run::{Role, Setting, Stop};
use quorate_chaos::scenario;
use quorate_chaos::workload::lock_set::{Care, lost};
use quorate_chaos::workload::{Kind, Subject};

use crate::stage::{set, setting};

const MASTERS: usize = 5;
const CLIENTS: usize = 3;
const TTL: Duration = Duration::from_secs(2);
const LENGTH: Duration = Duration::from_secs(15);

/// A busy machine alone takes a fraction of it.
const LONG: Duration = Duration::from_secs(5);

/// Its clients always wait, for a lock that somebody mostly has.
#[test]
fn every_acquire_is_granted_in_time_while_a_minority_fails() {
    let plan = scenario::MINORITY.plan(1, LENGTH, MASTERS, CLIENTS);
    let setting = setting(Subject::Quorate(vec![Kind::Mutex]), TTL);
    let role = Role::AddsToSet(Care::Fence);
    let mut stage = set(MASTERS, CLIENTS, Setting { new_masters: false, role, ..setting });
    stage.until_holds(10);
    assert!(stage.run(&plan, &Stop::default(), |_| {}));
    stage.stop();
    let (history, kept) = (stage.history().unwrap(), stage.lock_set());

    let acquires: Vec<_> =
        history.calls.iter().filter(|made| matches!(made.call, Call::Acquire { .. })).collect();
    let refused = acquires.iter().filter(|made| !matches!(made.outcome, Outcome::Granted { .. }));
    assert_eq!(refused.collect::<Vec<_>>(), Vec::<&&_>::new());
    assert!(acquires.len() > 50, "{} acquires", acquires.len());
    assert_eq!(lost(&history, &kept), [""; 0]);

    let time = acquires[0].invoked..history.end;
    let healthy = healthy(&history, &time, MASTERS, CLIENTS, TTL);
    assert_eq!(healthy, [time], "a quorum was healthy all the time");
    let longest = longest_without_grant(&history, &healthy).unwrap();
    let longest = longest.end - longest.start;
    println!(
        "{} faults, {} acquires, the slowest {} ms, half of them {} ms; the longest time without a grant {} ms",
        plan.faults.len(),
        acquires.len(),
        percentile(&latencies(&history), 1_000).unwrap().as_millis(),
        percentile(&latencies(&history), 500).unwrap().as_millis(),
        longest.as_millis()
    );
    assert!(plan.faults.len() > 10, "{} faults", plan.faults.len());
    assert!(longest < LONG, "{longest:?} without a grant");
}
