//! Hand-off: clients in separate processes pass one lock on, and whoever has released it may not
//! ask again before another was granted. How much of the time is the lock held, how long does a
//! waiter wait for a release to become its grant, is it fair, and what does it cost the masters?
//! Beside rslock, which polls.

use std::time::Duration;

use quorate::Moment;
use quorate::seam::{BootClock, Clock};
use quorate_testkit::{Masters, Proxy, RedisServer};
use tokio::time::{Instant, timeout_at};

use crate::Scale;
use crate::figures::Row;
use crate::handoff_child::{Contender, Job};
use crate::handoff_crew::{Crew, Hold, Referee};
use crate::meter::{self, Used};

const MASTERS: usize = 5;
/// How long a run is.
const RUN: Duration = Duration::from_secs(3);
const SHORT_RUN: Duration = Duration::from_millis(300);
const HOLD: Duration = Duration::from_millis(5);
const LONG_HOLD: Duration = Duration::from_millis(50);
/// Each way: a round trip to the slow master takes 20 ms.
const SLOW: Duration = Duration::from_millis(10);
/// How long to listen after the end for what was said before it.
const AFTERMATH: Duration = Duration::from_millis(500);

struct Case {
    name: &'static str,
    clients: usize,
    hold: Duration,
    fault: Fault,
    contenders: &'static [Contender],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    OneSlow,
    TwoDead,
}

const BOTH: &[Contender] = &[Contender::Quorate, Contender::Rslock];
const QUORATE: &[Contender] = &[Contender::Quorate];

const CASES: [Case; 6] = [
    Case { name: "2", clients: 2, hold: HOLD, fault: Fault::None, contenders: BOTH },
    Case { name: "8", clients: 8, hold: HOLD, fault: Fault::None, contenders: BOTH },
    Case { name: "32", clients: 32, hold: HOLD, fault: Fault::None, contenders: BOTH },
    Case { name: "8, 50 ms", clients: 8, hold: LONG_HOLD, fault: Fault::None, contenders: QUORATE },
    Case { name: "8, a master 20 ms away", clients: 8, hold: HOLD, fault: Fault::OneSlow, contenders: BOTH },
    Case { name: "8, two masters dead", clients: 8, hold: HOLD, fault: Fault::TwoDead, contenders: BOTH },
];

pub(crate) fn run(scale: Scale) -> Vec<Row> {
    let window = scale.of(RUN, SHORT_RUN);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut rows = Vec::new();
        for case in CASES {
            let stage = Stage::set(case.fault).await;
            for &contender in case.contenders {
                rows.push(stage.play(&case, contender, window).await);
            }
        }
        rows
    })
}

/// The masters of a case, which are the same for each contender.
struct Stage {
    masters: Masters,
    urls: Vec<String>,
    dead: usize,
    _slow: Option<Proxy>,
}

impl Stage {
    async fn set(fault: Fault) -> Self {
        let masters = Masters::start(MASTERS);
        let mut urls = masters.urls();
        let mut slow = None;
        let dead = if fault == Fault::TwoDead { 2 } else { 0 };
        masters.iter().take(dead).for_each(RedisServer::kill);
        if fault == Fault::OneSlow {
            let proxy = Proxy::start_slow(masters[0].address(), SLOW).await;
            urls[0] = proxy.url();
            slow = Some(proxy);
        }
        Self { masters, urls, dead, _slow: slow }
    }

    async fn play(&self, case: &Case, contender: Contender, window: Duration) -> Row {
        let job = Job {
            contender,
            lock: format!("handoff-{contender}"),
            hold: case.hold,
            living: MASTERS - self.dead,
            masters: self.urls.clone(),
        };
        let mut crew = Crew::start(&job, case.clients).await;
        let mut referee = Referee::new(case.clients);
        let before = self.used(contender);
        let began = BootClock.now();
        for client in 0..case.clients {
            crew.go(client).await;
        }
        pass_on(&mut crew, &mut referee, window).await;
        let ended = BootClock.now();
        let used = self.used(contender) - before;
        pass_on(&mut crew, &mut referee, AFTERMATH).await;
        crew.end().await;
        row(case, contender, (began, ended), referee.holds, used)
    }

    fn used(&self, contender: Contender) -> Used {
        meter::used(self.masters.iter().skip(self.dead), meter::sent_by(&contender.to_string()))
    }
}

/// Lets the clients pass the lock on for so long.
async fn pass_on(crew: &mut Crew, referee: &mut Referee, time: Duration) {
    let end = Instant::now() + time;
    while let Ok((client, word)) = timeout_at(end, crew.hear()).await {
        for next in referee.hear(client, word) {
            crew.go(next).await;
        }
    }
}

/// What one run comes to; `holds` has what each client held, some of it after the end.
///
/// # Panics
///
/// When two clients held the lock at once.
fn row(
    case: &Case,
    contender: Contender,
    (began, ended): (Moment, Moment),
    mut holds: Vec<Vec<Hold>>,
    used: Used,
) -> Row {
    holds.iter_mut().for_each(|holds| holds.retain(|hold| hold.granted <= ended));
    let grants_of = holds.iter().map(Vec::len);
    let most_to_least = grants_of.clone().max().unwrap() as f64 / grants_of.min().unwrap().max(1) as f64;
    let mut all: Vec<Hold> = holds.into_iter().flatten().collect();
    all.sort_by_key(|hold| hold.granted);
    let mut gaps: Vec<Duration> = all.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
    gaps.sort_unstable();
    let gap =
        |share: f64| gaps.get((gaps.len() as f64 * share) as usize).map_or(f64::NAN, Duration::as_secs_f64);
    let end = |hold: &Hold| hold.released.unwrap_or(ended).min(ended);
    let held: Duration = all.iter().map(|hold| end(hold).since(hold.granted)).sum();
    let grants = all.len() as u64;
    Row::new(case.name, contender, grants.max(1), grants)
        .with("held", held.div_duration_f64(ended.since(began)))
        .with("gap_p50_ms", gap(0.5) * 1e3)
        .with("gap_p99_ms", gap(0.99) * 1e3)
        .with("most_to_least", most_to_least)
        .with("calls_a_grant", used.calls / grants as f64)
        .with("masters_cpu_us", used.cpu * 1e6 / grants as f64)
}

fn gap(earlier: Hold, later: Hold) -> Duration {
    match earlier.released {
        Some(released) if released <= later.granted => later.granted.since(released),
        _ => panic!("two held the lock at once: {earlier:?}, {later:?}"),
    }
}
