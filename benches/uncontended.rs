//! One client, one lock after the other, five local masters: how long an acquire takes beside a bare first-majority
//! fan-out of the same script over MultiplexedConnections, and beside rslock.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hdrhistogram::Histogram;
use quorate::Redlock;
use quorate_testkit::Masters;
use redis::aio::MultiplexedConnection;

use crate::measure::{Block, median, quartiles, ratios};

const MASTERS: usize = 5;
const BLOCKS: usize = 21;
const CYCLES: usize = 400;
const TTL: Duration = Duration::from_secs(30);

pub(crate) fn run() {
    let masters = Masters::start(MASTERS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let quorate = Redlock::builder().masters(masters.urls()).ttl(TTL).build().unwrap();
        let bare = Bare::connect(&masters).await;
        let rslock = rslock::LockManager::new(masters.urls());
        let (mut ours, mut bares, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for block in 0..=BLOCKS {
            let (a, b, c) = (with_quorate(&quorate).await, bare.block().await, with_rslock(&rslock).await);
            if block > 0 {
                ours.push(a); // the first one warms up
                bares.push(b);
                theirs.push(c);
            }
        }
        println!("uncontended, {MASTERS} local masters, concurrency 1, {BLOCKS} blocks of {CYCLES} cycles:");
        println!("{:<28} {:>22} {:>22}", "median of blocks, us", "acquire p50 / p99", "release p50 / p99");
        for (name, blocks) in
            [("quorate", &ours), ("bare first-majority fan-out", &bares), ("rslock 0.10", &theirs)]
        {
            let p = |of: fn(&Block) -> &Histogram<u64>, q| median(blocks, of, q) / 1e3;
            println!(
                "{name:<28} {:>10.1} / {:>9.1} {:>10.1} / {:>9.1}",
                p(acquired, 0.5),
                p(acquired, 0.99),
                p(released, 0.5),
                p(released, 0.99)
            );
        }
        println!("acquire p50, quorate to the fan-out: {}", quartiles(&ratios(&ours, &bares)));
        println!("acquire p50, quorate to rslock: {}", quartiles(&ratios(&ours, &theirs)));
    });
}

fn acquired(block: &Block) -> &Histogram<u64> {
    &block.acquire
}

fn released(block: &Block) -> &Histogram<u64> {
    &block.release
}

async fn with_quorate(redlock: &Redlock) -> Block {
    let mut block = Block::new();
    for _ in 0..CYCLES {
        let began = Instant::now();
        let guard = redlock.lock("bench").try_acquire().await.unwrap();
        let granted = Instant::now();
        guard.release().await.unwrap();
        block.note(began, granted);
        settle().await;
    }
    block
}

async fn with_rslock(manager: &rslock::LockManager) -> Block {
    let mut block = Block::new();
    for _ in 0..CYCLES {
        let began = Instant::now();
        let lock = manager.lock(b"bench-rslock", TTL).await.unwrap();
        let granted = Instant::now();
        manager.unlock(&lock).await;
        block.note(began, granted);
        settle().await;
    }
    block
}

/// Lets what a contender left to the background finish, so that it does not run on the next one's time.
async fn settle() {
    tokio::task::yield_now().await;
}

/// What the redis crate can do with the same scripts and nothing around them.
struct Bare {
    connections: Vec<MultiplexedConnection>,
    acquire: (String, String),
    release: (String, String),
}

impl Bare {
    async fn connect(masters: &Masters) -> Self {
        let mut connections = Vec::new();
        for url in masters.urls() {
            let client = redis::Client::open(url).unwrap();
            connections.push(client.get_multiplexed_async_connection().await.unwrap());
        }
        let prelude = include_str!("../scripts/lua/reentrant/lock.lua");
        let script = |text: &str| {
            let source = format!("{prelude}{text}");
            (source.clone(), sha1_smol::Sha1::from(source).digest().to_string())
        };
        let acquire = script(include_str!("../scripts/lua/reentrant/acquire.lua"));
        let release = script(include_str!("../scripts/lua/reentrant/release.lua"));
        for connection in &mut connections {
            for (source, _) in [&acquire, &release] {
                let _: String =
                    redis::cmd("SCRIPT").arg("LOAD").arg(source).query_async(connection).await.unwrap();
            }
        }
        Self { connections, acquire, release }
    }

    async fn block(&self) -> Block {
        let mut block = Block::new();
        for i in 0..CYCLES {
            let owner = format!("9c7e6ad4-8f0c-4b7f-9d3a-0123456789ab:{i}");
            let began = Instant::now();
            let acquire =
                self.command(&self.acquire.1, &[&owner, "1", "30000", &(2 * i).to_string(), "", "", "", ""]);
            let mut voting = self.send(&acquire);
            for _ in 0..MASTERS / 2 + 1 {
                voting.next().await.unwrap().unwrap();
            }
            let granted = Instant::now();
            let release = self
                .command(&self.release.1, &[&owner, "0", &(2 * i + 1).to_string(), "wake:", &owner, "", ""]);
            let mut releasing = self.send(&release);
            for _ in 0..MASTERS / 2 + 1 {
                releasing.next().await.unwrap().unwrap();
            }
            block.note(began, granted);
            while releasing.next().await.is_some() {}
            while voting.next().await.is_some() {}
        }
        block
    }

    fn command(&self, sha: &str, args: &[&str]) -> redis::Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(sha).arg(2).arg("bare:{bench}").arg("bare:waiting:{bench}").arg(args);
        command
    }

    fn send<'a>(
        &self,
        command: &'a redis::Cmd,
    ) -> FuturesUnordered<impl Future<Output = redis::RedisResult<redis::Value>> + use<'a>> {
        let send = |mut connection: MultiplexedConnection| async move {
            connection.send_packed_command(command).await
        };
        self.connections.iter().cloned().map(send).collect()
    }
}
