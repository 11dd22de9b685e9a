//! What a lock costs a client that did nothing for a while: its estimates of the masters' clocks
//! have grown so wide that it asks for the time first.

use std::time::Duration;

use quorate_testkit::Masters;

use crate::Scale;
use crate::contender::{self, Contender, Load, Quorate, Tasks};
use crate::figures::Row;
use crate::measure::{Block, asked_and_granted, with_quantiles};

const IDLE: Duration = Duration::from_secs(600);

const CLIENTS: usize = 50;

/// How many cycles there are between the first one and a later one: the connections and the code
/// are warm then.
const WARM: u64 = 4;

pub(crate) fn run(scale: Scale) -> Vec<Row> {
    let masters = Masters::start(5);
    let runtime = contender::runtime();
    let client = |_| Tasks::new(Quorate::new(contender::new(&masters.urls())), &runtime);
    let mut clients: Vec<_> = (0..scale.of(CLIENTS, 3)).map(client).collect();
    for client in &mut clients {
        client.work(Load::alone(1));
    }
    std::thread::sleep(scale.of(IDLE, Duration::ZERO));
    let mut first = Vec::new();
    let mut later = Vec::new();
    for client in &mut clients {
        first.push(client.work(Load::alone(1)));
        client.work(Load::alone(WARM));
        later.push(client.work(Load::alone(1)));
    }
    let row = |name, blocks: &[Block]| {
        let (asked, granted) = asked_and_granted(blocks);
        with_quantiles(Row::new("ten minutes", name, asked, granted), blocks)
    };
    vec![row("first", &first), row("later", &later)]
}
