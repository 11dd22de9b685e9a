//! Masters in five regions: an acquire needs the third-fastest of them, and should take no longer than its round trip.
//! That trip is measured through the same proxies, in turns with the acquires, so that the proxies' own time is in both.

use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate_testkit::{Masters, Proxy};
use redis::aio::MultiplexedConnection;

use crate::contender::{self, Client, PATIENCE, Quorate, Rslock, Worker, connect};
use crate::measure::{middle, quartiles};

/// Round trips in ms from Washington DC, as IBM Cloud published them for 3 February to 3 March 2024:
/// `_include-segments/network-latency.md` of github.com/ibm-cloud-docs/vpc, "Inter-region latency".
const REGIONS: [(&str, u64); 5] =
    [("Toronto", 19), ("Dallas", 32), ("London", 75), ("Frankfurt", 98), ("Tokyo", 167)];
const BLOCKS: usize = 6;
const CYCLES: usize = 10;

/// What happened in one cycle, in ms.
struct Sight {
    trips: Vec<f64>,
    quorate: f64,
    rslock: f64,
}

pub(crate) fn run() {
    let masters = Masters::start(REGIONS.len());
    let network = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let proxies: Vec<Proxy> = masters
        .iter()
        .zip(REGIONS)
        .map(|(master, (_, trip))| {
            network.block_on(Proxy::start_slow(master.address(), Duration::from_millis(trip) / 2))
        })
        .collect();
    let urls: Vec<String> = proxies.iter().map(Proxy::url).collect();
    let blocks = contender::runtime().block_on(measure(&urls));
    report(&blocks);
}

async fn measure(urls: &[String]) -> Vec<Vec<Sight>> {
    let connections = join_all(urls.iter().map(|url| connect(url))).await;
    let quorate = Quorate::connect(urls, PATIENCE);
    quorate.knows(urls.len()).await;
    let (mut ours, mut theirs) = (quorate.worker(0), Rslock::connect(urls).worker(0));
    theirs.cycle().await; // it connects
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        let mut block = Vec::new();
        for _ in 0..CYCLES {
            let trips = join_all(connections.iter().cloned().map(trip)).await;
            block.push(Sight {
                trips,
                quorate: acquire(&mut ours).await,
                rslock: acquire(&mut theirs).await,
            });
        }
        blocks.push(block);
    }
    blocks
}

/// The round trip of a bare call, in ms.
async fn trip(mut connection: MultiplexedConnection) -> f64 {
    let began = Instant::now();
    let _: String = redis::cmd("PING").query_async(&mut connection).await.unwrap();
    milliseconds(began.elapsed())
}

async fn acquire(worker: &mut impl Worker) -> f64 {
    milliseconds(worker.cycle().await.expect("granted").acquire)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Sight {
    /// The round trip of the master that makes a majority, or of the last one.
    fn trip(&self, rank: usize) -> f64 {
        let mut trips = self.trips.clone();
        trips.sort_by(f64::total_cmp);
        trips[rank - 1]
    }

    fn majority(&self) -> f64 {
        self.trip(REGIONS.len() / 2 + 1)
    }

    fn slowest(&self) -> f64 {
        self.trip(REGIONS.len())
    }
}

fn report(blocks: &[Vec<Sight>]) {
    println!("wide area, five masters, {BLOCKS} blocks of {CYCLES} cycles, ms:");
    for (i, (region, published)) in REGIONS.iter().enumerate() {
        println!(
            "  {region:<12} {published:>4} published, {:>6.1} measured",
            p50(blocks, |sight| sight.trips[i])
        );
    }
    let (third, last) = (p50(blocks, Sight::majority), p50(blocks, Sight::slowest));
    println!("  round trip p50: {third:.1} to the third fastest of each cycle, {last:.1} to the slowest");
    report_acquires("quorate", blocks, |sight| sight.quorate);
    report_acquires("rslock", blocks, |sight| sight.rslock);
    println!("  Goal: quorate within 1.05.");
}

fn report_acquires(name: &str, blocks: &[Vec<Sight>], acquire: fn(&Sight) -> f64) {
    let ratio = |blocks: &[Vec<Sight>]| p50(blocks, acquire) / p50(blocks, Sight::majority);
    println!(
        "  {name:<8} acquire p50 {:>6.1}; to the third fastest {:.3}, of blocks {}",
        p50(blocks, acquire),
        ratio(blocks),
        quartiles(blocks.chunks(1).map(ratio))
    );
}

fn p50(blocks: &[Vec<Sight>], of: impl Fn(&Sight) -> f64) -> f64 {
    middle(blocks.iter().flatten().map(of))
}
