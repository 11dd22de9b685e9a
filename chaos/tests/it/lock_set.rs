//! Jepsen's lock-set, with client processes that stand still for longer than their leases last:
//! what is lost without fences, and with them.
//!
//! `QUORATE_LOCK_SET=300 cargo test -p quorate-chaos --test it lock_set --
//! --nocapture` goes on for that many seconds.

use std::path::Path;
use std::thread::{scope, sleep};
use std::time::Duration;

use quorate_chaos::checkers::store;
use quorate_chaos::history::{Event, Line, Outcome, Time};
use quorate_chaos::nemesis::{Clients, Fault, What};
use quorate_chaos::run::{Role, Setting};
use quorate_chaos::workload::lock_set::{Care, acknowledged, lost};
use quorate_chaos::workload::{Kind, Subject};
use tempfile::TempDir;

use crate::stage::{set, setting};
use crate::until;

const TTL: Duration = Duration::from_secs(2);

/// How long a client stands still, and how often one does.
const PAUSE: Duration = Duration::from_millis(3_500);
const EVERY: Duration = Duration::from_secs(5);

/// How many do. Four, if nothing else is said.
fn pauses() -> u64 {
    let seconds = std::env::var("QUORATE_LOCK_SET").ok().map_or(20, |seconds| seconds.parse().unwrap());
    seconds / EVERY.as_secs()
}

/// What came of it.
#[derive(Debug, Default)]
struct Figures {
    acknowledged: usize,
    lost: usize,
    refused: usize,
    /// Writes that were accepted after those of a later holder.
    late: usize,
}

/// The client that was granted the lock last, and when. It reads no more lines than it has to: a
/// holder is soon another one.
fn last_granted(history: &Path) -> Option<(Time, usize)> {
    let text = std::fs::read_to_string(history).unwrap();
    let mut lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let is_grant =
        |line: &Line| matches!(&line.event, Event::Return { outcome: Outcome::Granted { .. }, .. });
    let grant = lines.find(is_grant)?;
    let client = grant.process.strip_prefix("client-")?.split('.').next()?;
    Some((grant.at, client.parse().unwrap()))
}

/// Each time the holder stands still.
fn figures(care: Care) -> Figures {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history");
    let subject = Subject::Quorate(vec![Kind::Mutex]);
    let setting =
        Setting { role: Role::AddsToSet(care), history: Some(path.clone()), ..setting(subject, TTL) };
    let mut stage = set(3, 5, setting);
    for _ in 0..pauses() {
        let before = last_granted(&path);
        until("somebody else to have the lock", || last_granted(&path) > before);
        let (_, holder) = last_granted(&path).unwrap();
        let pause = Fault { what: What::Clients(Clients::Freeze), masters: vec![], clients: vec![holder] };
        let wound = stage.strike(&pause);
        sleep(PAUSE);
        stage.heal(&pause, wound);
        sleep(EVERY - PAUSE);
    }
    stage.stop();
    let (history, set) = (stage.history().unwrap(), stage.lock_set());
    Figures {
        acknowledged: acknowledged(&history).count(),
        lost: lost(&history, &set).len(),
        refused: history.calls.iter().filter(|made| made.outcome == Outcome::Rejected).count(),
        late: store::check(&history).len(),
    }
}

/// The most runs in which nobody may stand still at the moment at which it matters.
const RUNS: usize = 4;

/// What came of as many runs as it takes for a late write, all together: a holder that is about to
/// leave when it stands still does no harm.
fn figures_with_a_late_write(care: Care) -> Figures {
    let mut all = Figures::default();
    for _ in 0..RUNS {
        let Figures { acknowledged, lost, refused, late } = figures(care);
        all.acknowledged += acknowledged;
        all.lost += lost;
        all.refused += refused;
        all.late += late;
        let is_shown = match care {
            Care::Nothing => all.lost > 0 && all.late > 0,
            Care::Guard => true,
            Care::Fence => all.refused > 0,
        };
        if is_shown {
            break;
        }
    }
    all
}

#[test]
fn updates_are_lost_to_clients_that_stood_still_and_none_with_fences() {
    let [nothing, guard, fence] = scope(|scope| {
        let running = [Care::Nothing, Care::Guard, Care::Fence];
        let running = running.map(|care| scope.spawn(move || figures_with_a_late_write(care)));
        running.map(|figures| figures.join().unwrap())
    });
    for (care, figures) in [("no care", &nothing), ("a look at the guard", &guard), ("fences", &fence)] {
        println!("with {care}, {} pauses: {figures:?}", pauses());
        assert!(figures.acknowledged > 20, "with {care}: {figures:?}");
    }
    assert!(nothing.lost > 0 && nothing.late > 0, "{nothing:?}");
    assert_eq!((fence.lost, fence.late), (0, 0), "{fence:?}");
    assert!(fence.refused > 0, "{fence:?}: no write was late");
}
