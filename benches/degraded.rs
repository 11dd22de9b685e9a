//! What faulty masters cost, when it is known that they are faulty: acquires with some of five dead, frozen or slow, beside
//! those of the same client a moment before, when all were well. And how long three frozen ones take to be an error.

use std::rc::Rc;
use std::time::{Duration, Instant};

use quorate_testkit::{Masters, Proxy};
use tokio::runtime::Runtime;

use crate::contender::{self, Contender, Load, PATIENCE, Quorate, Rslock, Tasks};
use crate::measure::{Block, granted, median, ratio};

const MASTERS: usize = 5;
const BLOCKS: usize = 7;
const CYCLES: u64 = 300;
/// Those of rslock where it waits: for a silent master half a second, twice a cycle.
const FEW_CYCLES: u64 = 4;
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

/// The masters, and clients that are connected to them; those in `far` have a slow way to the first.
struct Stage {
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

pub(crate) fn run() {
    let network = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut stage = Stage::set(&network);
    println!("degraded, {MASTERS} local masters, concurrency 1, {BLOCKS} blocks of {CYCLES} cycles:");
    println!(
        "  {:<15} {:<8} {:>8} {:>23}  {:<22} p99",
        "", "", "granted", "acquire p50 / p99, us", "to healthy: p50"
    );
    for (name, fault) in FAULTS {
        let (healthy, faulty) = stage.quorate(fault);
        report(name, "quorate", &healthy, &faulty);
        let (healthy, faulty) = stage.rslock(fault);
        report(name, "rslock", &healthy, &faulty);
    }
    report_errors((0..BLOCKS).map(|_| stage.three_frozen()).collect());
}

impl Stage {
    fn set(network: &Runtime) -> Self {
        let masters = Masters::start(MASTERS);
        let slow = network.block_on(Proxy::start_slow(masters[0].address(), SLOW));
        let runtime = contender::runtime();
        let near = Crew::connect(&masters.urls(), &runtime);
        let mut urls = masters.urls();
        urls[0] = slow.url();
        let far = Crew::connect(&urls, &runtime);
        Self { masters, runtime, near, far, _slow: slow }
    }

    /// Blocks without and with the fault, in turns.
    fn quorate(&mut self, fault: Fault) -> (Vec<Block>, Vec<Block>) {
        let (mut healthy, mut faulty) = (Vec::new(), Vec::new());
        for _ in 0..BLOCKS {
            healthy.push(contender::measure(&mut self.near.quorate, Load::alone(CYCLES)));
            self.inflict(fault);
            faulty.push(contender::measure(&mut self.crew(fault).quorate, Load::alone(CYCLES)));
            self.heal(fault);
        }
        (healthy, faulty)
    }

    fn rslock(&mut self, fault: Fault) -> (Vec<Block>, Vec<Block>) {
        contender::measure(&mut self.near.rslock, Load::alone(1)); // it connects again
        let healthy = contender::measure(&mut self.near.rslock, Load::alone(CYCLES));
        self.inflict(fault);
        let waits = matches!(fault, Fault::Frozen(_) | Fault::OneSlow);
        let load = Load::alone(if waits { FEW_CYCLES } else { CYCLES });
        let faulty = contender::measure(&mut self.crew(fault).rslock, load);
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
        let quorate = Quorate::connect(masters, PATIENCE);
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

fn report(fault: &str, name: &str, healthy: &[Block], faulty: &[Block]) {
    println!(
        "  {fault:<15} {name:<8} {:>6.1} % {:>12.1} / {:>8.1}  {:<22} {}",
        granted(faulty),
        median(faulty, |block| block.acquire(0.5)),
        median(faulty, |block| block.acquire(0.99)),
        ratio(faulty, healthy, |block| block.acquire(0.5)),
        ratio(faulty, healthy, |block| block.acquire(0.99))
    );
}

fn report_errors(mut errors: Vec<Duration>) {
    errors.sort();
    let over = |error: &Duration| error.saturating_sub(PATIENCE).as_secs_f64() * 1e3;
    println!(
        "  three frozen, error after the {PATIENCE:?} of time-out plus: median {:.1} ms, worst {:.1} ms",
        over(&errors[errors.len() / 2]),
        over(errors.last().unwrap())
    );
}
