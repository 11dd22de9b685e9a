//! Hand-off: clients in separate processes pass one lock on, and whoever has released it may not ask again before
//! another was granted. How much of the time is the lock held, how long does a waiter wait for a release to become its
//! grant, is it fair, and what does it cost the masters? Beside rslock, which polls.
//!
//! `QUORATE_BENCH_SECONDS` is the length of a run, `QUORATE_BENCH_ROWS` which rows to run (`8,8-one-slow`, say).

use std::time::Duration;

use quorate::seam::{BootClock, Clock};
use quorate_testkit::{Masters, Proxy, RedisServer};
use tokio::time::{Instant, timeout_at};

use crate::handoff_child::{Contender, Job, Order};
use crate::handoff_crew::{Crew, Referee, Trip};
use crate::handoff_report::{Report, Seen, check_scripts, commands};

const MASTERS: usize = 5;
const HOLD: Duration = Duration::from_millis(5);
const LONG_HOLD: Duration = Duration::from_millis(50);
/// Each way: a round trip to the slow master takes 20 ms.
const SLOW: Duration = Duration::from_millis(10);
/// How long to listen after the end for what was said before it.
const AFTERMATH: Duration = Duration::from_millis(500);

struct Row {
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

static ROWS: [Row; 6] = [
    Row { name: "2", clients: 2, hold: HOLD, fault: Fault::None, contenders: BOTH },
    Row { name: "8", clients: 8, hold: HOLD, fault: Fault::None, contenders: BOTH },
    Row { name: "32", clients: 32, hold: HOLD, fault: Fault::None, contenders: BOTH },
    Row { name: "8-long-holds", clients: 8, hold: LONG_HOLD, fault: Fault::None, contenders: QUORATE },
    Row { name: "8-one-slow", clients: 8, hold: HOLD, fault: Fault::OneSlow, contenders: BOTH },
    Row { name: "8-two-dead", clients: 8, hold: HOLD, fault: Fault::TwoDead, contenders: BOTH },
];

pub(crate) fn run() {
    check_scripts();
    let seconds = std::env::var("QUORATE_BENCH_SECONDS").map_or(10.0, |seconds| seconds.parse().unwrap());
    let window = Duration::from_secs_f64(seconds);
    println!("hand-off, {MASTERS} local masters, clients in processes of their own, {window:?} a run:");
    println!("{}", Report::header());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for row in rows() {
            let stage = Stage::set(row.fault).await;
            for &contender in row.contenders {
                println!("{}", stage.play(row, contender, window).await);
            }
        }
    });
    println!(
        "Times in us; x is a trip, the contender's median uncontended acquire just before: hot, by one client straight"
    );
    println!(
        "one after the other, and paced, by the row's clients in turn with its holds. Goals: held 0.85, with a fault 0.75; gap p50 3x, p99 15x;"
    );
    println!("most:least 2 at 32 clients; 25 commands a grant in every row.");
}

/// The rows to run.
fn rows() -> Vec<&'static Row> {
    let Ok(names) = std::env::var("QUORATE_BENCH_ROWS") else { return ROWS.iter().collect() };
    let row = |name| ROWS.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name:?}"));
    names.split(',').map(row).collect()
}

/// The masters of a row, which are the same for each contender.
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

    async fn play(&self, row: &Row, contender: Contender, window: Duration) -> Report {
        let job = Job {
            contender,
            lock: format!("handoff-{contender}"),
            hold: row.hold,
            living: MASTERS - self.dead,
            masters: self.urls.clone(),
        };
        let mut alone = Crew::start(&job, 1).await;
        let hot = alone.round_trip().await;
        alone.end().await;

        let mut crew = Crew::start(&job, row.clients).await;
        let trip = Trip { hot, paced: crew.paced_trip().await };
        let mut referee = Referee::new(row.clients);
        let before = self.commands(contender);
        let began = BootClock.now();
        for client in 0..row.clients {
            crew.order(client, Order::Go).await;
        }
        pass_on(&mut crew, &mut referee, window).await;
        let ended = BootClock.now();
        let commands = self.commands(contender) - before;
        pass_on(&mut crew, &mut referee, AFTERMATH).await;
        crew.end().await;
        let holds = referee.holds;
        Seen { row: row.name, contender, trip, began, ended, holds, commands }.report()
    }

    fn commands(&self, contender: Contender) -> u64 {
        self.masters.iter().skip(self.dead).map(|master| commands(master, contender)).sum()
    }
}

/// Lets the clients pass the lock on for so long.
async fn pass_on(crew: &mut Crew, referee: &mut Referee, time: Duration) {
    let end = Instant::now() + time;
    while let Ok((client, word)) = timeout_at(end, crew.hear()).await {
        for next in referee.hear(client, word) {
            crew.order(next, Order::Go).await;
        }
    }
}
