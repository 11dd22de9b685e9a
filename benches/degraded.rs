//! What faulty masters cost, when it is known that they are faulty: acquires with some of five
//! dead, frozen or slow, beside those of the same client a moment before, when all were well. And
//! how long three frozen ones take to be an error.

use std::rc::Rc;
use std::time::{Duration, Instant};

use quorate_testkit::{Masters, Proxy};
use tokio::runtime::Runtime;

use crate::Scale;
use crate::contender::{self, Client, Contender, Load, Quorate, Rslock, TIMEOUT, Tasks};
use crate::figures::Row;
use crate::measure::{Block, asked_and_granted, median, middle, with_quantiles};

const MASTERS: usize = 5;

struct Sizes {
    blocks: usize,
    cycles: u64,
    /// Cycles of rslock where it waits: for a silent master half a second, twice a cycle.
    waiting_cycles: u64,
}

const FULL: Sizes = Sizes { blocks: 5, cycles: 600, waiting_cycles: 4 };
const SMOKE: Sizes = Sizes { blocks: 1, cycles: 30, waiting_cycles: 1 };

/// Each way: a round trip to the slow master takes 50 ms.
const SLOW: Duration = Duration::from_millis(25);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Dead(usize),
    Frozen(usize),
    OneSlow,
}

const FAULTS: [(&str, Fault); 6] = [
    ("healthy", Fault::None),
    ("one dead", Fault::Dead(1)),
    ("one frozen", Fault::Frozen(1)),
    ("two dead", Fault::Dead(2)),
    ("two frozen", Fault::Frozen(2)),
    ("one 50 ms slow", Fault::OneSlow),
];

/// The masters, and clients that are connected to them; those in `far` have a slow way to the
/// first.
struct Stage {
    sizes: Sizes,
    masters: Masters,
    runtime: Rc<Runtime>,
    near: Crew,
    far: Crew,
    _slow: Proxy,
}

struct Crew {
    quorate: Tasks<Quorate>,
    rslock: Tasks<Rslock>,
}

pub(crate) fn run(scale: Scale) -> Vec<Row> {
    let network = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut stage = Stage::set(&network, scale.of(FULL, SMOKE));
    let mut rows = Vec::new();
    for (name, fault) in FAULTS {
        let (healthy, faulty) = stage.quorate(fault);
        rows.push(row(name, Quorate::NAME, &healthy, &faulty));
        let (healthy, faulty) = stage.rslock(fault);
        rows.push(row(name, Rslock::NAME, &healthy, &faulty));
    }
    let errors: Vec<Duration> = (0..stage.sizes.blocks).map(|_| stage.three_frozen()).collect();
    let late = errors.iter().map(|error| error.saturating_sub(TIMEOUT).as_secs_f64() * 1e3);
    // What is counted here is errors, each of which was to be one.
    let all = errors.len() as u64;
    let row = Row::new("three frozen", Quorate::NAME, all, all);
    rows.push(row.with("error_after_timeout_ms", middle(late)));
    rows
}

fn row(fault: &str, contender: &str, healthy: &[Block], faulty: &[Block]) -> Row {
    let (asked, granted) = asked_and_granted(faulty);
    let p = |blocks, quantile| median(blocks, |block: &Block| block.acquire(quantile));
    with_quantiles(Row::new(fault, contender, asked, granted), faulty)
        .with("granted_percent", granted as f64 / asked as f64 * 100.0)
        .with("p50_to_healthy", p(faulty, 0.5) / p(healthy, 0.5))
        .with("p99_to_healthy", p(faulty, 0.99) / p(healthy, 0.99))
}

impl Stage {
    fn set(network: &Runtime, sizes: Sizes) -> Self {
        let masters = Masters::start(MASTERS);
        let slow = network.block_on(Proxy::start_slow(masters[0].address(), SLOW));
        let runtime = contender::runtime();
        let near = Crew::connect(&masters.urls(), &runtime);
        let mut urls = masters.urls();
        urls[0] = slow.url();
        let far = Crew::connect(&urls, &runtime);
        Self { sizes, masters, runtime, near, far, _slow: slow }
    }

    /// Blocks without and with the fault, in turns.
    fn quorate(&mut self, fault: Fault) -> (Vec<Block>, Vec<Block>) {
        let load = Load::alone(self.sizes.cycles);
        let (mut healthy, mut faulty) = (Vec::new(), Vec::new());
        for _ in 0..self.sizes.blocks {
            healthy.push(self.near.quorate.work(load));
            self.inflict(fault);
            faulty.push(self.crew(fault).quorate.work(load));
            self.heal(fault);
        }
        (healthy, faulty)
    }

    fn rslock(&mut self, fault: Fault) -> (Vec<Block>, Vec<Block>) {
        self.near.rslock.work(Load::alone(1)); // it connects again
        let healthy = self.near.rslock.work(Load::alone(self.sizes.cycles));
        self.inflict(fault);
        let waits = matches!(fault, Fault::Frozen(_) | Fault::OneSlow);
        let cycles = if waits { self.sizes.waiting_cycles } else { self.sizes.cycles };
        let faulty = self.crew(fault).rslock.work(Load::alone(cycles));
        self.heal(fault);
        (vec![healthy], vec![faulty])
    }

    fn crew(&mut self, fault: Fault) -> &mut Crew {
        if fault == Fault::OneSlow { &mut self.far } else { &mut self.near }
    }

    /// Returns when the client knows it.
    fn inflict(&mut self, fault: Fault) {
        match fault {
            Fault::Dead(count) => self.masters.iter().take(count).for_each(|master| master.kill()),
            Fault::Frozen(count) => self.masters.iter().take(count).for_each(|master| master.freeze()),
            Fault::None | Fault::OneSlow => {}
        }
        self.known(fault.silent());
    }

    fn heal(&mut self, fault: Fault) {
        match fault {
            Fault::Dead(count) => (0..count).for_each(|i| self.masters[i].restart()),
            Fault::Frozen(count) => self.masters.iter().take(count).for_each(|master| master.thaw()),
            Fault::None | Fault::OneSlow => {}
        }
        self.known(0);
    }

    fn known(&self, silent: usize) {
        for crew in [&self.near, &self.far] {
            self.runtime.block_on(crew.quorate.client.knows(MASTERS - silent));
        }
    }

    /// How long the first acquire takes to fail when three of five have just frozen.
    fn three_frozen(&mut self) -> Duration {
        self.known(0);
        self.masters.iter().take(3).for_each(|master| master.freeze());
        let began = Instant::now();
        let lock = self.near.quorate.client.redlock.lock("frozen");
        assert!(self.runtime.block_on(lock.try_acquire()).is_err());
        let took = began.elapsed();
        self.heal(Fault::Frozen(3));
        took
    }
}

impl Crew {
    fn connect(masters: &[String], runtime: &Rc<Runtime>) -> Self {
        let quorate = Quorate::with_default_timeout(masters);
        runtime.block_on(quorate.knows(MASTERS));
        let mut rslock = Tasks::new(Rslock::connect(masters), runtime);
        rslock.work(Load::alone(1));
        Self { quorate: Tasks::new(quorate, runtime), rslock }
    }
}

impl Fault {
    /// How many masters do not answer.
    fn silent(self) -> usize {
        match self {
            Self::Dead(count) | Self::Frozen(count) => count,
            Self::None | Self::OneSlow => 0,
        }
    }
}
