//! What a lock costs a client that did nothing for a while: its estimates of the masters' clocks
//! have grown so wide that it asks for the time first.

use std::time::{Duration, Instant};

use quorate::Redlock;
use quorate_testkit::Masters;

use crate::Scale;
use crate::contender;
use crate::figures::Row;
use crate::measure::{Block, Cycle, with_quantiles};

const IDLE: Duration = Duration::from_secs(600);

const CLIENTS: usize = 50;

/// The acquire that is compared to the first one: the connections and the code are warm.
const LATER: usize = 5;

pub(crate) fn run(scale: Scale) -> Vec<Row> {
    let masters = Masters::start(5);
    let (mut first, mut later) = (Block::new(), Block::new());
    contender::runtime().block_on(async {
        let clients: Vec<Redlock> =
            (0..scale.of(CLIENTS, 3)).map(|_| contender::new(&masters.urls()).build().unwrap()).collect();
        for (number, client) in clients.iter().enumerate() {
            cycle(client, format!("before-{number}")).await;
        }
        tokio::time::sleep(scale.of(IDLE, Duration::ZERO)).await;
        for (number, client) in clients.iter().enumerate() {
            first.note(cycle(client, format!("first-{number}")).await);
            for again in 1..LATER {
                cycle(client, format!("warm-{number}-{again}")).await;
            }
            later.note(cycle(client, format!("later-{number}")).await);
        }
    });
    let row = |name, block: Block| {
        let granted = block.acquire.len();
        with_quantiles(Row::new("ten minutes", name, granted + block.failed, granted), &[block])
    };
    vec![row("first", first), row("later", later)]
}

async fn cycle(client: &Redlock, name: String) -> Option<Cycle> {
    let began = Instant::now();
    let guard = client.lock(name).acquire().await.ok()?;
    let acquire = began.elapsed();
    let began = Instant::now();
    guard.release().await.ok()?;
    Some(Cycle { acquire, release: began.elapsed() })
}
