//! Whom a round asks: all masters, a quorum first, and a quorum first where more than the default
//! number of rounds are under way. The clients take turns on the same masters.

use std::time::Duration;

use quorate::seam::QuorumFirstCounts;
use quorate_testkit::Masters;

use crate::Scale;
use crate::contender::{self, Client, Contender, Length, Load, Quorate, Tasks};
use crate::cost::{self, MASTERS, measure};
use crate::figures::Row;
use crate::measure::Block;

const BLOCKS: usize = 7;
const BLOCK: Duration = Duration::from_millis(300);
const SHORT_BLOCK: Duration = Duration::from_millis(40);

/// The default, and what it is compared with.
const WHOM: [(&str, Option<usize>); 3] =
    [(Quorate::NAME, None), ("quorate, asks all", Some(usize::MAX)), ("quorate, a quorum first", Some(0))];

/// One of these clients, and what was measured.
struct Measured {
    name: &'static str,
    client: Tasks<Quorate>,
    blocks: Vec<Block>,
}

pub(crate) fn run(scale: Scale) -> Vec<Row> {
    let workers = [1, 16, 32, 64, 256, scale.of(1024, 1000)];
    workers.into_iter().flat_map(|workers| case(workers, scale)).collect()
}

fn case(workers: usize, scale: Scale) -> Vec<Row> {
    let (blocks, time) = scale.of((BLOCKS, BLOCK), (1, SHORT_BLOCK));
    let load = Load { workers, length: Length::Time(time) };
    let masters = Masters::start(MASTERS);
    let runtime = contender::runtime();
    let urls = masters.urls();
    let mut all = WHOM.map(|(name, above)| {
        let mut builder = contender::new(&urls);
        if let Some(above) = above {
            builder = builder.quorum_first_above(above);
        }
        Measured { name, client: Tasks::new(Quorate::new(builder), &runtime), blocks: Vec::new() }
    });
    for it in &mut all {
        it.client.work(load); // nothing of the first turn counts
    }
    for _ in 0..blocks {
        for it in &mut all {
            it.blocks.push(measure(&mut it.client, Quorate::NAME, &masters, load));
        }
    }
    let rows = all.iter().map(|Measured { name, client, blocks }| {
        let QuorumFirstCounts { rounds, hedged, .. } = client.client.redlock.quorum_first_counts();
        cost::row(workers, name, blocks).with("hedged", hedged as f64 / rounds.max(1) as f64)
    });
    rows.collect()
}
