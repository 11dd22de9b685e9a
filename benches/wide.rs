//! Masters in five regions: an acquire needs the third-fastest of them, and should take no longer
//! than its round trip. That trip is measured through the same proxies, in turns with the acquires,
//! so that the proxies' own time is in both.

use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate_testkit::{Masters, Proxy, RedisServer};
use redis::aio::MultiplexedConnection;

use crate::Scale;
use crate::contender::{self, Client, Names, Quorate, Rslock};
use crate::figures::Row;
use crate::measure::middle;

/// Round trips in ms from Washington DC, as IBM Cloud published them for 3 February to 3 March
/// 2024: network-latency in `_include-segments` of github.com/ibm-cloud-docs/vpc, "Inter-region
/// latency". To Toronto, Dallas, London, Frankfurt and Tokyo.
const ROUND_TRIPS: [u64; 5] = [19, 32, 75, 98, 167];
const CYCLES: usize = 30;
const FEW_CYCLES: usize = 2;

/// What happened in one cycle, in ms.
struct Times {
    /// The round trip to the third fastest master.
    third: f64,
    quorate: f64,
    rslock: f64,
}

pub(crate) fn run(scale: Scale) -> Vec<Row> {
    let masters = Masters::start(ROUND_TRIPS.len());
    let network = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let far = |(master, trip): (&RedisServer, u64)| {
        network.block_on(Proxy::start_slow(master.address(), Duration::from_millis(trip) / 2))
    };
    let proxies: Vec<Proxy> = masters.iter().zip(ROUND_TRIPS).map(far).collect();
    let urls: Vec<String> = proxies.iter().map(Proxy::url).collect();
    let cycles = scale.of(CYCLES, FEW_CYCLES);
    let measured = contender::runtime().block_on(measure(&urls, cycles));
    let p50 = |of: fn(&Times) -> f64| middle(measured.iter().map(of));
    let row = |contender, acquire: f64| {
        Row::new("19 to 167 ms", contender, cycles as u64, cycles as u64)
            .with("acquire_p50_ms", acquire)
            .with("third_fastest_p50_ms", p50(|times| times.third))
            .with("to_third_fastest", acquire / p50(|times| times.third))
    };
    vec![row(Quorate::NAME, p50(|times| times.quorate)), row(Rslock::NAME, p50(|times| times.rslock))]
}

async fn measure(urls: &[String], cycles: usize) -> Vec<Times> {
    let connections = join_all(urls.iter().map(async |url| {
        redis::Client::open(&**url).unwrap().get_multiplexed_async_connection().await.unwrap()
    }));
    let connections = connections.await;
    let quorate = Quorate::with_default_timeout(urls);
    quorate.knows(urls.len()).await;
    let rslock = Rslock::connect(urls);
    acquire(&rslock).await; // it connects
    let mut measured = Vec::new();
    for _ in 0..cycles {
        let mut trips = join_all(connections.iter().cloned().map(trip)).await;
        trips.sort_by(f64::total_cmp);
        let (quorate, rslock) = (acquire(&quorate).await, acquire(&rslock).await);
        measured.push(Times { third: trips[2], quorate, rslock });
    }
    measured
}

/// The round trip of a bare call, in ms.
async fn trip(mut connection: MultiplexedConnection) -> f64 {
    let began = Instant::now();
    let _: String = redis::cmd("PING").query_async(&mut connection).await.unwrap();
    began.elapsed().as_secs_f64() * 1e3
}

/// # Panics
///
/// When it is not granted.
async fn acquire(client: &impl Client) -> f64 {
    client.cycle(Names::New.next()).await.expect("an acquire was refused").acquire.as_secs_f64() * 1e3
}
