//! Plans: a seed decides them, and they are carried out.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use quorate_chaos::nemesis::{Clocks, Disks, Keys, Replicas, Servers, What};
use quorate_chaos::run::Stop;
use quorate_chaos::scenario::{self, Scenario};
use quorate_chaos::{Arena, Client, Host, Persistence, Plan, PlanEvent, Planned};

use crate::{reaches, until};

const HOUR: Duration = Duration::from_secs(3_600);

fn plan(seed: u64, scenario: Scenario) -> Plan {
    scenario.plan(seed, HOUR, 5, 5)
}

/// What a fault is, without its numbers.
fn name(planned: &Planned) -> String {
    let shown = planned.fault.what.to_string();
    let family = format!("{:?}", planned.fault.what);
    format!(
        "{}: {}",
        family.split('(').next().unwrap(),
        shown.replace(|char: char| char.is_ascii_digit(), "")
    )
}

#[test]
fn a_seed_decides_everything() {
    for scenario in [scenario::INSIDE, scenario::OUTSIDE] {
        assert_eq!(plan(1, scenario), plan(1, scenario));
        assert_ne!(plan(1, scenario).faults, plan(2, scenario).faults);
    }
}

#[test]
fn what_is_excluded_is_in_no_plan_that_is_inside() {
    let excluded = |planned: &&Planned| {
        matches!(planned.fault.what, What::Clocks(_) | What::Keys(_) | What::Replicas(_))
            || name(planned).contains("empty")
    };
    assert_eq!(plan(1, scenario::INSIDE).faults.iter().find(excluded), None);
    assert!(plan(1, scenario::OUTSIDE).faults.iter().filter(excluded).count() > 100);
}

#[test]
fn every_fault_is_drawn_some_time() {
    let all: BTreeSet<_> = plan(1, scenario::OUTSIDE).faults.iter().map(name).collect();
    for family in
        ["Servers", "Network", "Clocks", "Keys", "Commands", "Limits", "Replicas", "Disks", "Clients"]
    {
        assert!(all.iter().any(|name| name.starts_with(family)), "{family}: {all:?}");
    }
    for part in
        ["partition, there", "partition, back", "FLUSHALL", "busy", "PAUSE", "half-open", "to and fro"]
    {
        assert!(all.iter().any(|name| name.contains(part)), "{part}: {all:?}");
    }
}

/// For every scenario: on processes all that it has, and on containers what they can have of it.
#[test]
fn masters_have_the_faults_that_suit_their_host() {
    for scenario in scenario::ALL {
        for host in [Host::Process, Host::Container] {
            let Some(there) = scenario.on(host) else {
                assert!(matches!(scenario.name, "replicas" | "members") && host == Host::Container);
                continue;
            };
            let faults = plan(1, there).faults;
            assert!(faults.iter().all(|planned| planned.fault.what.suits(host)), "{}", scenario.name);
            assert_eq!(faults.is_empty(), matches!(scenario.name, "calm" | "members"));
        }
        assert_eq!(scenario.on(Host::Process).map(|there| plan(1, there)), Some(plan(1, scenario)));
    }
    for what in [
        What::Servers(Servers::KillEmpty),
        What::Keys(Keys::WipeByReplication),
        What::Clocks(Clocks::Step { millis: 1 }),
        What::Disks(Disks::Slow { delay: HOUR }),
        What::Replicas(Replicas::Promotion),
    ] {
        assert!(what.suits(Host::Process) && !what.suits(Host::Container), "{what}");
    }
    let containers = plan(1, scenario::FAILOVER.on(Host::Container).unwrap()).faults;
    for what in [Servers::Kill, Servers::Freeze, Servers::Disconnect] {
        assert!(containers.iter().any(|planned| planned.fault.what == What::Servers(what)), "{what}");
    }
}

#[test]
fn nobody_has_two_faults_at_a_time_but_of_the_network() {
    let faults = plan(3, scenario::OUTSIDE).faults;
    let others: Vec<_> =
        faults.iter().filter(|planned| !matches!(planned.fault.what, What::Network(_))).collect();
    for (place, one) in others.iter().enumerate() {
        let meanwhile = others[place + 1..].iter().filter(|other| other.at < one.until);
        for other in meanwhile {
            let both = |a: &[usize], b: &[usize]| a.iter().any(|number| b.contains(number));
            assert!(
                !both(&one.fault.masters, &other.fault.masters)
                    && !both(&one.fault.clients, &other.fault.clients),
                "{one}, {other}"
            );
        }
    }
    assert!(faults.iter().all(|planned| planned.at <= planned.until && planned.at < HOUR));
}

#[test]
fn parts_of_a_plan_can_be_left_out() {
    let whole = plan(1, scenario::INSIDE);
    let part = whole.clone().with_faults(&[2, 5]);
    assert_eq!(part.faults, [whole.faults[2].clone(), whole.faults[5].clone()]);
    assert_eq!(part.healed(), part.faults[0].until.max(part.faults[1].until));
}

/// Everything that may happen, in little time, and then every master answers every client.
#[test]
fn a_plan_is_carried_out_and_healed() {
    let mut arena = Arena::start(3, 2, Persistence::Always, 7);
    arena.clients.extend((0..2).map(|_| Client::start(|| Command::new("cat"))));
    let plan = scenario::OUTSIDE.plan(7, Duration::from_secs(6), 3, 2);
    assert!(plan.faults.len() > 5, "{plan:?}");
    let mut events = Vec::new();
    plan.run(&mut arena, &Stop::default(), |event| {
        events.push(match event {
            PlanEvent::Strikes(planned) => (true, planned.number),
            PlanEvent::Healed(planned) => (false, planned.number),
            PlanEvent::Recovers(..) => return,
        });
    });
    for planned in &plan.faults {
        let strikes = events.iter().position(|event| *event == (true, planned.number));
        let healed = events.iter().position(|event| *event == (false, planned.number));
        assert!(strikes.is_some() && strikes < healed, "{planned}");
    }
    assert_eq!(events.len(), plan.faults.len() * 2);
    for (client, master) in (0..2).flat_map(|client| (0..3).map(move |master| (client, master))) {
        until("every master to answer", || reaches(&arena, client, master));
    }
    arena.masters.iter().for_each(|server| crate::set(server, "k"));
}
