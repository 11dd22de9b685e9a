//! Scenarios: pure functions of the seed, each with its own faults, and none with more than is
//! promised.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_chaos::nemesis::{Replicas, What};
use quorate_chaos::scenario::{self, Scenario};
use quorate_chaos::{Persistence, Plan, Planned};

const HOUR: Duration = Duration::from_secs(3_600);

fn plan(scenario: Scenario, seed: u64) -> Plan {
    scenario.plan(seed, HOUR, 5, 3)
}

fn families(plan: &Plan) -> BTreeSet<&'static str> {
    plan.faults.iter().map(|planned| planned.fault.what.family()).collect()
}

#[test]
fn a_name_and_a_seed_are_a_plan() {
    for scenario in scenario::ALL {
        let named = Scenario::named(scenario.name).unwrap();
        assert_eq!(plan(scenario, 7), plan(named, 7), "{}", scenario.name);
        assert_eq!(scenario.persistence(7), named.persistence(7), "{}", scenario.name);
        let calm = ["calm", "members"].contains(&scenario.name);
        assert_eq!(plan(scenario, 7).faults == plan(scenario, 8).faults, calm, "{}", scenario.name);
        assert_eq!(plan(scenario, 7).faults.is_empty(), calm, "{}", scenario.name);
    }
    assert!(Scenario::named("storm").is_none());
}

#[test]
fn each_has_its_own_faults() {
    let of = |name: &str| families(&plan(Scenario::named(name).unwrap(), 1));
    for (name, own) in [
        ("servers", &["servers"] as &[_]),
        ("network", &["network"]),
        ("clients", &["clients"]),
        ("clocks", &["clients", "clocks"]),
        ("amnesia", &["keys", "servers"]),
        ("replicas", &["replicas"]),
        ("disks", &["disks", "servers"]),
        ("commands", &["commands", "limits"]),
        ("copies", &["clients", "network"]),
        ("stranger", &["keys", "network", "servers"]),
        ("minority", &["network", "servers"]),
    ] {
        assert_eq!(of(name), own.iter().copied().collect(), "{name}");
    }
    assert_eq!(of("outside").len(), 9);
    let kept: BTreeSet<_> =
        (0..50).map(|seed| format!("{:?}", Scenario::named("servers").unwrap().persistence(seed))).collect();
    assert_eq!(kept.len(), Persistence::ALL.len());
}

/// An address that leads away does so for longer than the other server has no vote.
#[test]
fn a_detour_is_long_and_is_drawn_where_clients_live() {
    let is_detour =
        |planned: &&Planned| matches!(planned.fault.what, What::Replicas(Replicas::Detour { .. }));
    let faults = plan(Scenario::named("replicas").unwrap(), 1).faults;
    let detours: Vec<_> = faults.iter().filter(is_detour).collect();
    assert!(!detours.is_empty());
    assert!(detours.iter().all(|planned| planned.until - planned.at > Duration::from_secs(8)));
    assert!(!plan(scenario::OUTSIDE, 1).faults.iter().any(|planned| is_detour(&planned)));
}

/// Where the clocks of a majority jump together, nothing is promised.
#[test]
fn the_clocks_of_a_majority_are_never_wrong_together() {
    let mut most = 0;
    for (scenario, seed) in
        ["clocks", "outside"].into_iter().flat_map(|name| (0..20).map(move |seed| (name, seed)))
    {
        let faults = plan(Scenario::named(scenario).unwrap(), seed).faults;
        let clocks: Vec<_> =
            faults.iter().filter(|planned| matches!(planned.fault.what, What::Clocks(_))).collect();
        for one in &clocks {
            let now = clocks.iter().filter(|other| other.at <= one.at && one.at < other.until);
            let wrong: BTreeSet<_> = now.flat_map(|other| &other.fault.masters).collect();
            assert!(wrong.len() <= 2, "{scenario} {seed}: {one}");
            most = most.max(wrong.len());
        }
    }
    assert_eq!(most, 2, "some are");
}

#[test]
fn the_minority_is_always_the_same() {
    for (masters, most) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3)] {
        let faults = scenario::MINORITY.plan(3, HOUR, masters, 2).faults;
        let struck: BTreeSet<_> = faults.iter().flat_map(|planned| &planned.fault.masters).collect();
        assert_eq!(struck.len(), most, "of {masters}");
    }
}

#[test]
fn the_page_about_them_has_them_all() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CHAOS.md")).unwrap();
    for scenario in scenario::ALL {
        assert!(page.contains(&format!("| `{}` |", scenario.name)), "{}", scenario.name);
    }
}
