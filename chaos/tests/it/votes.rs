//! The history tells which masters had no vote and why, when each was healed, and what it is of.

use std::time::Duration;

use quorate_chaos::history::Run;
use quorate_chaos::nemesis::{Fault, Servers, What};
use quorate_chaos::run::{Role, Setting, Trial};
use quorate_chaos::workload::{Kind, Order, Subject};
use quorate_chaos::{Host, scenario};
use quorate_testkit::eventually_blocking;

use crate::stage;

const TTL: Duration = Duration::from_secs(5);

#[test]
fn masters_that_restarted_have_no_vote_and_are_healed_one_by_one() {
    let setting = stage::setting(Subject::Quorate(vec![Kind::Mutex]), TTL);
    let trial = Trial {
        scenario: scenario::INSIDE,
        seed: 1,
        length: TTL,
        masters: 3,
        clients: 1,
        subject: setting.subject.clone(),
        ttl: TTL,
    };
    let run = trial.about(Host::Process);
    let setting = Setting { new_masters: false, role: Role::Obeys, run: Some(run.clone()), ..setting };
    let mut stage = stage::set(3, 1, setting);
    let fault = Fault { what: What::Servers(Servers::Kill), masters: vec![0, 2], clients: vec![] };
    let wound = stage.strike(&fault);
    stage.heal(&fault, wound);
    // On a busy machine a master may be too slow for one vote.
    let history = eventually_blocking(TTL, || {
        let made = stage.obeyed(0, Order::Acquire { ttl: 5_000, wait: 500, reads: false });
        let history = stage.history().unwrap();
        let its = history.abstentions.iter().filter(|one| Some(one.at) == made.returned);
        let without: Vec<_> = its.map(|one| (one.of.master, &*one.of.why)).collect();
        let is_told = without == [(0, "quarantine"), (2, "quarantine")];
        if is_told { Ok(history) } else { Err(format!("both to have no vote: {:?}", history.calls)) }
    });

    let struck = &history.faults[0];
    assert!(struck.until(0) < struck.until(2) && struck.until(2) <= struck.to, "{struck:?}");
    assert_eq!(history.run, Some(run.clone()));
    let Run { subject, kinds, compose, ttl, .. } = run;
    assert_eq!(
        (&*subject, kinds, compose, ttl),
        ("quorate", vec!["mutex".to_owned()], false, Duration::from_secs(5))
    );
}
