//! Client processes with locks of all kinds, under faults: nothing is found in their history, and
//! enough is in it; and something is found where it has to be.

use std::time::Duration;

use quorate_chaos::Plan;
use quorate_chaos::checkers::{self, SAFETY, linearizable, liveness, ttl};
use quorate_chaos::history::{History, Hold, Outcome, Share};
use quorate_chaos::naive::Naive;
use quorate_chaos::nemesis::{Clients, Clocks, Fault, Keys, Network, Replicas, Servers, What};
use quorate_chaos::run::{Setting, Stop};
use quorate_chaos::scenario::{self, Scenario};
use quorate_chaos::workload::{Kind, Subject};
use quorate_testkit::Toxic;

use crate::stage;
use crate::until;

const MASTERS: usize = 5;
const CLIENTS: usize = 3;
const TTL: Duration = Duration::from_secs(2);

/// New masters, and locks of all kinds.
fn setting(seed: u64) -> Setting {
    Setting { seed, ..stage::setting(Subject::Quorate(Kind::ALL.to_vec()), TTL) }
}

fn count(history: &History, of: impl Fn(&Outcome) -> bool) -> usize {
    history.calls.iter().filter(|made| of(&made.outcome)).count()
}

/// How many readers came in while others read.
fn read_together(history: &History) -> usize {
    let readers: Vec<_> = history.holds.iter().filter(|hold| hold.lock.share == Share::Shared).collect();
    let others = |one: &Hold| {
        let beside = |other: &&&Hold| other.lock == one.lock && other.owner != one.owner;
        readers.iter().filter(beside).any(|other| {
            other.granted < one.granted && one.granted < other.window_end() && one.granted < one.window_end()
        })
    };
    readers.iter().filter(|reader| others(reader)).count()
}

fn nothing_is_found(history: &History) {
    assert_eq!(checkers::check_only(history, &SAFETY), []);
    let verdicts = linearizable::check(history, linearizable::BOUND);
    let linearizable =
        |verdict: &linearizable::Linearizability| *verdict == linearizable::Linearizability::Linearizable;
    assert!(verdicts.values().all(linearizable), "{verdicts:?}");
    assert_eq!(verdicts.len(), 2 * 6 + 2 * 2, "two locks of six kinds, and two semaphores of two permits");
    assert!(read_together(history) > 0, "readers take turns");
}

/// What a plan has to have.
type Needs<'a> = &'a [&'a dyn Fn(What) -> bool];

/// The first plan that has at least these.
fn plan(scenario: Scenario, seconds: u64, needs: Needs<'_>) -> Plan {
    let has =
        |plan: &Plan, need: &dyn Fn(What) -> bool| plan.faults.iter().any(|planned| need(planned.fault.what));
    let mut plans = (1..).map(|seed| scenario.plan(seed, Duration::from_secs(seconds), MASTERS, CLIENTS));
    plans.find(|plan| needs.iter().all(|need| has(plan, need))).unwrap()
}

#[test]
fn under_faults_that_redlock_is_made_for_nothing_is_found() {
    let plan = plan(
        scenario::INSIDE,
        10,
        &[
            &|what| what == What::Clients(Clients::Kill),
            &|what| what == What::Clients(Clients::Freeze),
            &|what| what == What::Servers(Servers::Kill),
            &|what| matches!(what, What::Network(Network::Toxic(_, Toxic::Blackhole))),
        ],
    );
    let mut stage = stage::set(MASTERS, CLIENTS, setting(plan.seed));
    stage.until_holds(50);
    assert!(stage.run(&plan, &Stop::default(), |_| {}));
    stage.calm();
    std::thread::sleep(Duration::from_secs(6));
    let history = stage.quiet();
    println!("{} calls, {} guards, {} faults", history.calls.len(), history.holds.len(), plan.faults.len());
    nothing_is_found(&history);
    let history = History { bound: Duration::from_secs(10), ..history };
    assert_eq!(ttl::check(&history), []);
    assert_eq!(liveness::check(&history), []);
    assert!(history.holds.len() > 100, "{} guards", history.holds.len());
    let accepted = count(&history, |outcome| matches!(outcome, Outcome::Accepted));
    assert!(accepted > 50, "{accepted} writes; locks of other libraries have no token to write with");
    assert!(count(&history, |outcome| matches!(outcome, Outcome::Released)) > 50);
    assert!(history.calls.iter().any(|made| made.process.ends_with(".2")), "one was killed, and came back");
    assert_eq!(history.faults.len(), plan.faults.len());
    assert!(history.faults.iter().all(|struck| struck.to.is_some()));
}

/// A check that cannot fail shows nothing: clients that let masters vote which have forgotten
/// everything, and masters that do.
#[test]
fn what_cannot_be_survived_is_found() {
    let mut stage = stage::set(MASTERS, CLIENTS, setting(1));
    stage.until_holds(50);
    let wipe = Fault { what: What::Keys(Keys::FlushAll), masters: (0..5).collect(), clients: Vec::new() };
    let mut found = Vec::new();
    until("two that have one lock", || {
        std::thread::sleep(TTL / 4);
        wipe.strike(&mut stage.arena).heal(&mut stage.arena);
        found = stage.history().map(|history| checkers::check_only(&history, &SAFETY)).unwrap_or_default();
        found.iter().any(|violation| violation.property == "windows")
    });
    let history = stage.quiet();
    let verdicts = linearizable::check(&history, linearizable::BOUND);
    assert!(verdicts.values().any(|verdict| matches!(verdict, linearizable::Linearizability::Violated(_))));
}

/// Masters that are not new any more, and a plan of faults that Redlock excludes.
fn is_clean_outside(needs: Needs<'_>) {
    let plan = plan(scenario::OUTSIDE, 6, needs);
    let mut stage = stage::set(MASTERS, CLIENTS, Setting { new_masters: false, ..setting(plan.seed) });
    stage.until_holds(50);
    assert!(stage.run(&plan, &Stop::default(), |_| {}));
    let history = stage.quiet();
    println!("{} calls, {} guards", history.calls.len(), history.holds.len());
    plan.faults.iter().for_each(|fault| println!("{fault}"));
    assert_eq!(checkers::check_only(&history, &SAFETY), []);
    let verdicts = linearizable::check(&history, linearizable::BOUND);
    let is_violated = |verdict: &linearizable::Linearizability| {
        matches!(verdict, linearizable::Linearizability::Violated(_))
    };
    assert!(!verdicts.values().any(is_violated), "{verdicts:?}");
    assert!(history.holds.len() > 60, "{} guards", history.holds.len());
}

#[test]
fn nothing_is_found_where_masters_forget() {
    is_clean_outside(&[&|what| what == What::Servers(Servers::KillEmpty), &|what| {
        matches!(what, What::Keys(Keys::FlushAll | Keys::WipeByReplication))
    }]);
}

#[test]
fn nothing_is_found_where_replicas_take_over() {
    is_clean_outside(&[&|what| what == What::Replicas(Replicas::Promotion)]);
}

#[test]
fn nothing_is_found_where_clocks_jump() {
    is_clean_outside(&[&|what| matches!(what, What::Clocks(Clocks::Step { .. })), &|what| {
        matches!(what, What::Clocks(Clocks::Strobe { .. } | Clocks::Renewals { .. }))
    }]);
}

/// Nor of others, where nothing strikes: what finds them wrong does not find everybody wrong.
#[test]
fn nothing_is_found_of_others_in_the_calm() {
    for subject in [Subject::Rslock, Subject::Naive(Naive::OneMaster), Subject::Naive(Naive::Textbook)] {
        let mut stage = stage::set(MASTERS, CLIENTS, stage::setting(subject, TTL / 4)); // they leave locks to their TTLs
        stage.until_holds(30);
        let history = stage.quiet();
        assert_eq!(checkers::check_only(&history, &SAFETY), []);
        assert_eq!(ttl::check(&history), []);
    }
}
