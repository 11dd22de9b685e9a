//! A small report to test with: one master's name and trouble have all that HTML must escape.

use std::time::Duration;

use super::measure::{Measured, Seen, SharedTally, Tally};
use super::plan::Plan;
use super::report::{Report, Setting};
use super::statistics::NEVER;

pub(crate) fn report() -> Report {
    let plan = Plan::new(Duration::from_secs(10), vec![1, 16], Duration::from_secs(10)).unwrap();
    let options = vec!["--prefix".to_owned(), "<script>\"'&".to_owned()];
    let setting = Setting { began: Duration::from_secs(1_800_000_000), stopped: None, options };
    Report::new(&plan, setting, &measured())
}

/// One of three masters that did not always answer, and one acquire that failed.
fn measured() -> Measured {
    let mut measured = Measured::new();
    let names = ["redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379/<1>"];
    measured.masters = names
        .iter()
        .map(|name| Seen { master: (*name).to_owned(), answered: 4, unanswered: 0, detail: None })
        .collect();
    let last = &mut measured.masters[2];
    (last.answered, last.unanswered) = (3, 1);
    last.detail = Some("unreachable (\"gone\" & lost)".to_owned());
    for round in [[1.0, 2.0, 30.0], [1.1, 2.1, NEVER], [1.2, 2.2, 28.0], [0.9, 2.3, 35.0]] {
        measured.rounds.push(round);
    }
    cycles(&mut measured.single);
    for locks in [1, 16] {
        let mut level = Tally::new(quorate::Moment::default());
        cycles(&mut level);
        measured.levels.push((locks, SharedTally::new(level)));
    }
    measured.levels[1].1.lock().failed_acquires.insert("no quorum", 1);
    measured
}

fn cycles(tally: &mut Tally) {
    for us in [2_000, 2_500, 3_000] {
        tally.acquire.record(us * 1_000).unwrap();
        tally.release.record(us * 900).unwrap();
    }
}
