//! Runs of plans.

use std::collections::BTreeSet;

use quorate_history::{Call, History, Hold, Made, Outcome, Share, Time, checkers};
use quorate_simulator::{Kind, Locks, MASTERS, Plan, Profile, run, shrink};

/// The first seed that violates a property, and which.
fn first(profile: Profile, seeds: std::ops::RangeInclusive<u64>) -> Option<(Plan, &'static str)> {
    seeds.into_iter().find_map(|seed| {
        let plan = Plan::new(seed, profile);
        let property = run(&plan, false).violations.first()?.property;
        Some((plan, property))
    })
}

#[test]
fn a_seed_decides_everything() {
    let kinds = [Kind::RestartEmpty, Kind::Members, Kind::MixedLists, Kind::LostSets, Kind::CutShort];
    for profile in kinds.map(Profile::Outside).into_iter().chain([Profile::Inside]) {
        for seed in 1..=4 {
            let traced = move || run(&Plan::new(seed, profile), true).trace;
            let here = traced();
            // Another thread has a Lua state, and hash keys, of its own.
            let there = std::thread::spawn(traced).join().unwrap();
            assert!(here == there, "seed {seed} of {profile:?} was not the same twice");
            assert!(here.lines().count() > 500, "{here}");
        }
    }
}

#[test]
fn another_seed_is_another_run() {
    let trace = |seed| run(&Plan::new(seed, Profile::Inside), true).trace;
    assert_ne!(trace(1), trace(2));
}

/// `scripts/test.sh` runs more of them.
#[test]
fn inside_the_assumptions_nothing_is_violated() {
    if let Some((plan, property)) = first(Profile::Inside, 1..=30) {
        panic!("seed {} violates {property}", plan.seed);
    }
}

/// The set of masters changes while clients hold and wait. `scripts/test.sh` runs more of them.
#[test]
fn the_set_changes_and_nothing_is_violated() {
    let profile = Profile::Outside(Kind::Members);
    let runs: Vec<_> = (1..=4).map(|seed| (seed, run(&Plan::new(seed, profile), false))).collect();
    for (seed, run) in &runs {
        assert!(run.violations.is_empty(), "seed {seed}: {:?}", run.violations);
        assert!(run.changes >= 1 && run.history.holds.len() > 20, "seed {seed}: {:?}", run.changes);
    }
    let changes: u64 = runs.iter().map(|(_, run)| run.changes).sum();
    assert!(changes >= 15, "{changes}");
}

/// Whether any of the first seeds violates exclusion, by its name.
fn breaks_exclusion(plan: impl Fn(u64) -> Plan) -> bool {
    let found = |seed| run(&plan(seed), false).violations;
    (1..=1_000).any(|seed| found(seed).iter().any(|violation| violation.property == "windows"))
}

/// Sets are lost and begin again, while some who know them are away. `scripts/test.sh` runs more of
/// them.
#[test]
fn lost_sets_begin_again_and_nothing_is_violated() {
    let run = |seed| run(&Plan::new(seed, Profile::Outside(Kind::LostSets)), true);
    let runs: Vec<_> = (1..=6).map(|seed| (seed, run(seed))).collect();
    for (seed, run) in &runs {
        assert!(run.violations.is_empty(), "seed {seed}: {:?}", run.violations);
        assert!(run.history.holds.len() > 20, "seed {seed}: {}", run.history.holds.len());
    }
    let ends = |what| runs.iter().filter(|(_, run)| run.trace.contains(what)).count();
    assert!(ends("began again") >= 3, "{} sets", ends("began again"));
    assert!(ends("  calm\n") >= 1, "all clients are clients of some of them");
}

/// A change is cut short, and operators recover the set. `scripts/test.sh` runs more of them.
#[test]
fn a_change_is_cut_short_and_nothing_is_violated() {
    let run = |seed| run(&Plan::new(seed, Profile::Outside(Kind::CutShort)), true);
    let runs: Vec<_> = (1..=10).map(|seed| (seed, run(seed))).collect();
    for (seed, run) in &runs {
        assert!(run.violations.is_empty(), "seed {seed}: {:?}", run.violations);
        assert!(run.changes >= 1 && run.history.holds.len() > 20, "seed {seed}: {:?}", run.changes);
    }
    let ends = |what| runs.iter().filter(|(_, run)| run.trace.contains(what)).count();
    assert!(ends("is recovered") >= 2, "{} are recovered", ends("is recovered"));
    let restarted =
        runs.iter().filter(|(_, run)| run.trace.matches("is down for").count() == MASTERS).count();
    assert!(restarted >= 1, "all masters restart in turn in some of them");
}

/// The kinds that locks are guarded against: those of `any`, and four by themselves.
fn guarded() -> impl Iterator<Item = Kind> {
    let others = [Kind::MixedLists, Kind::LateHandshake, Kind::LostSets, Kind::CutShort];
    Kind::guarded(Locks::default()).into_iter().chain(others)
}

/// What Redlock's argument excludes breaks plain Redlock, and the simulator says so. Where masters
/// are trusted copies have owners of their own all the same, and a renewal ends nothing: known bugs
/// show those. They show what is left out besides: a client with another list is refused by itself,
/// whatever masters say, and what a client makes of its set and of the time is its own.
#[test]
fn each_fault_outside_of_the_assumptions_breaks_exclusion_where_masters_are_trusted() {
    let is_stood = |kind: &Kind| {
        matches!(
            kind,
            Kind::Clone
                | Kind::RenewalStrobe
                | Kind::MixedLists
                | Kind::LateHandshake
                | Kind::LostSets
                | Kind::CutShort
        )
    };
    for kind in guarded().filter(|kind| !is_stood(kind)) {
        assert!(breaks_exclusion(|seed| Plan::new(seed, Profile::Outside(kind)).trusting()), "{kind}");
    }
}

/// Nothing guards against who deletes a name's key on a master and leaves the record.
#[test]
fn keys_that_are_deleted_break_exclusion() {
    assert!(breaks_exclusion(|seed| Plan::new(seed, Profile::Outside(Kind::Eviction))));
}

/// Redis itself ends the keys of other libraries, by the clock of its host.
#[test]
fn clocks_free_the_locks_of_other_libraries() {
    assert!(breaks_exclusion(|seed| {
        Plan::new(seed, Profile::Outside(Kind::ClockStrobe)).of(Locks::Redisson)
    }));
}

/// The same faults where masters are not trusted: nobody has a lock that somebody else has, and no
/// late write is accepted. `scripts/test.sh` runs more of them.
#[test]
fn no_fault_outside_of_the_assumptions_breaks_exclusion_with_guards() {
    for kind in guarded() {
        if let Some((plan, property)) = first(Profile::Outside(kind), 1..=8) {
            panic!("seed {} violates {property} by {kind}", plan.seed);
        }
    }
}

/// Clients with another list ask, and most get nothing, while the others work.
#[test]
fn clients_with_another_list_ask_while_others_work() {
    let run = |seed| run(&Plan::new(seed, Profile::Outside(Kind::MixedLists)), true);
    let runs: Vec<_> = (1..=20).map(run).collect();
    let begun = runs.iter().map(|run| run.trace.matches("its set has begun").count());
    assert_eq!(
        begun.clone().collect::<BTreeSet<_>>(),
        BTreeSet::from([1, 2]),
        "{:?}",
        begun.collect::<Vec<_>>()
    );
    let refused = |history: &History| {
        let is_refused = |acquire: &&Made| history.refused.contains(&acquire.process);
        acquires(history).filter(is_refused).count()
    };
    let sum: usize = runs.iter().map(|run| refused(&run.history)).sum();
    assert!(sum > 200, "{sum} acquires with another list");
    // Of some sets half of the masters lose their records, and these begin again.
    assert!(runs.iter().any(|run| run.trace.contains("began again")));
    let holds: Vec<_> = runs.iter().map(|run| run.history.holds.len()).collect();
    assert!(holds.iter().filter(|&&holds| holds > 10).count() > 10, "{holds:?}");
    let why = "give all clients the same";
    assert!(runs.iter().filter(|run| run.trace.contains(why)).count() > 10, "they are told why");
}

/// What holds for the reentrant lock holds for every kind. `scripts/test.sh` runs more of them.
#[test]
fn no_kind_of_lock_violates_anything() {
    for locks in Locks::ALL {
        for profile in
            [Profile::Inside, Profile::Outside(Kind::RestartEmpty), Profile::Outside(Kind::Rollback)]
        {
            for seed in 1..=6 {
                let found = run(&Plan::new(seed, profile).of(locks), false);
                assert!(
                    found.violations.is_empty(),
                    "seed {seed}, {profile:?}, {locks}: {:?}",
                    found.violations
                );
                assert!(!found.history.holds.is_empty());
            }
        }
    }
}

/// Redlock's argument needs no guards for what it does not exclude.
#[test]
fn inside_the_assumptions_plain_redlock_violates_nothing_either() {
    for locks in Locks::ALL {
        for seed in 1..=12 {
            let found = run(&Plan::new(seed, Profile::Inside).of(locks).trusting(), false).violations;
            assert!(found.is_empty(), "seed {seed}, {locks}: {found:?}");
        }
    }
}

/// Writes under a lease that was over arrive, and are refused: the check above can fail.
#[test]
fn late_writes_are_refused() {
    let histories =
        (1..=10).map(|seed| run(&Plan::new(seed, Profile::Outside(Kind::ClockStep)), false).history);
    let calls = histories.flat_map(|history| history.calls);
    let writes: Vec<_> = calls.filter(|made| matches!(made.call, Call::Write { .. })).collect();
    let refused = writes.iter().filter(|write| write.outcome == Outcome::Rejected).count();
    assert!(refused > 50 && writes.len() > refused * 2, "{refused} of {}", writes.len());
}

#[test]
fn a_plan_that_violates_a_property_shrinks_to_a_few_steps_that_do() {
    let trusting = |seed| Plan::new(seed, Profile::Outside(Kind::FlushAll)).trusting();
    let found = (1..=60).map(trusting).find_map(|plan| {
        let property = run(&plan, false).violations.first()?.property;
        Some((plan, property))
    });
    let (plan, property) = found.unwrap();
    let smaller = shrink(&plan, property);
    assert!(smaller.tasks.len() <= 12 && smaller.faults.len() <= 6, "{smaller:?}");
    assert!(plan.task_numbers().len() > 50);
    let plan = plan.with_tasks(&smaller.tasks).with_faults(&smaller.faults);
    let run = run(&plan, true);
    assert!(run.violations.iter().any(|violation| violation.property == property));
    for word in ["!!!!!!!!!!  windows", "fault", "GRANTED", "executes acquire l", "calm"] {
        assert!(run.trace.contains(word), "no {word} in\n{}", run.trace);
    }
    let longest = run.trace.lines().map(str::len).max();
    // An error tells what each of five masters said.
    assert!(longest < Some(700), "a person can read it: {longest:?}");
}

fn acquires(history: &History) -> impl Iterator<Item = &Made> {
    history.calls.iter().filter(|made| matches!(made.call, Call::Acquire { .. }))
}

fn is_granted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Granted { .. })
}

/// A run in which nothing happened violates nothing.
#[test]
fn storms_reach_what_they_are_about() {
    let histories: Vec<History> =
        (1..=20).map(|seed| run(&Plan::new(seed, Profile::Inside), false).history).collect();
    let count = |what: &str, counted: &dyn Fn(&History) -> usize| {
        let sum: usize = histories.iter().map(counted).sum();
        assert!(sum >= 10, "{sum} {what}");
    };
    let outcomes = |history: &History, wanted: fn(&Outcome) -> bool| {
        acquires(history).filter(|acquire| wanted(&acquire.outcome)).count()
    };
    count("grants", &|history| outcomes(history, is_granted));
    count("denials", &|history| outcomes(history, |outcome| matches!(outcome, Outcome::Failed { .. })));
    count("cancellations", &|history| outcomes(history, |outcome| *outcome == Outcome::Cancelled));
    count("losses", &|history| history.holds.iter().filter(|hold| hold.lost.is_some()).count());
    count("pauses", &|history| history.pauses.len());
    count("grants after a wait", &|history| {
        let waited = |acquire: &&Made| {
            let took = acquire.returned.map(|returned| returned - acquire.invoked);
            is_granted(&acquire.outcome) && took > Some(Time::from_millis(50))
        };
        acquires(history).filter(waited).count()
    });
    assert!(histories.iter().all(|history| history.calm.is_some()));
}

/// Semaphores of all sizes are full at times, and those over several names meet others, of one name
/// as well.
#[test]
fn permits_and_several_names_are_what_runs_are_about() {
    let runs =
        |locks| (1..=20).map(move |seed| run(&Plan::new(seed, Profile::Inside).of(locks), false).history);
    let semaphores: Vec<History> = runs(Locks::Semaphore).collect();
    let size = |history: &History| match history.holds[0].lock.share {
        Share::Permits(permits) => permits,
        share => panic!("{share:?}"),
    };
    let sizes: BTreeSet<_> = semaphores.iter().map(size).collect();
    assert_eq!(sizes, (1..=4).collect());
    for history in &semaphores {
        let numbers: BTreeSet<_> = history.holds.iter().filter_map(|hold| hold.permit).collect();
        assert_eq!(numbers, (0..size(history)).collect(), "each permit was had");
        assert!(history.entries.iter().any(|entry| entry.permit.is_some()), "they were looked at");
    }
    // With one permit less, as many would be too many.
    let less = semaphores.into_iter().map(|mut history| {
        let share = Share::Permits(size(&history) - 1);
        history.holds.iter_mut().for_each(|hold| hold.lock.share = share);
        history
    });
    assert!(less.filter(|history| !checkers::permits::check(history).is_empty()).count() >= 15);

    let names: Vec<usize> =
        runs(Locks::LockAll).flat_map(|history| history.holds).map(|hold| hold.lock.names.len()).collect();
    for count in 1..=3 {
        let holds = names.iter().filter(|names| **names == count).count();
        assert!(holds > 50, "{holds} holds of {count} names");
    }
    let plain = run(&Plan::new(1, Profile::Inside), false).history;
    let is_plain = |hold: &Hold| hold.lock.share == Share::Exclusive && hold.lock.names.len() == 1;
    assert!(plain.holds.iter().all(is_plain));
}

/// Newcomers come while others wait for a fair lock: were those granted that are refused, some
/// would be out of turn. Few are, for most come while it is not certain who stands in line.
#[test]
fn newcomers_come_while_others_wait() {
    let run = |seed| run(&Plan::new(seed, Profile::Inside).of(Locks::Fair), false).history;
    let barged = (1..=20).map(run).map(|mut history| {
        let granted = history.calls.iter().map(|made| &made.outcome).find(|outcome| is_granted(outcome));
        let granted = granted.unwrap().clone();
        let refused = history.calls.iter_mut().filter(|made| matches!(made.outcome, Outcome::Failed { .. }));
        refused.for_each(|made| made.outcome = granted.clone());
        history
    });
    let found = barged.filter(|history| !checkers::order::check(history).is_empty()).count();
    assert!(found >= 2, "{found} of 20");
}

/// Many read at a time, whoever writes reads on, and whoever reads does not get to write; were they
/// all writers, it would be too many.
#[test]
fn readers_and_writers_are_what_runs_are_about() {
    let run = |seed| run(&Plan::new(seed, Profile::Inside).of(Locks::ReadWrite), true);
    let runs: Vec<_> = (1..=30).map(run).collect();
    let upgrades = runs.iter().filter(|run| run.trace.contains("cannot become a write lock")).count();
    let histories: Vec<History> = runs.into_iter().map(|run| run.history).collect();
    let count = |what: &str, least: usize, counted: &dyn Fn(&History) -> usize| {
        let sum: usize = histories.iter().map(counted).sum();
        assert!(sum >= least, "{sum} {what}");
    };
    let holds =
        |history: &History, shared| history.holds.iter().filter(|hold| hold.reads() == shared).count();
    count("readers", 300, &|history| holds(history, true));
    count("writers", 200, &|history| holds(history, false));
    count("writers that read on", 5, &|history| {
        let downgrades = |reader: &&Hold| {
            let of = |writer: &Hold| !writer.reads() && writer.owner == reader.owner;
            let goes_on = |writer: &Hold| {
                writer.granted < reader.granted
                    && (reader.granted..reader.window_end()).contains(&writer.window_end())
            };
            reader.reads() && history.holds.iter().any(|writer| of(writer) && goes_on(writer))
        };
        history.holds.iter().filter(downgrades).count()
    });
    count("entries that were looked at", 20, &|history| {
        history.entries.iter().filter(|entry| entry.shared).count()
    });
    assert!(upgrades >= 5, "{upgrades} runs with one that reads and would write");
    let alone = histories.into_iter().map(|mut history| {
        history.holds.iter_mut().for_each(|hold| hold.lock.share = Share::Exclusive);
        history
    });
    assert!(alone.filter(|history| !checkers::windows::check(history).is_empty()).count() >= 15);
}
