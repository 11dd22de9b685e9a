//! The contenders. A load is a number of workers that acquire and release locks one straight after
//! the other. No contender waits for masters that its last decision did not need, except rslock.
//! Unless a contender says otherwise, each cycle locks a new name, and the workers are tasks of a
//! multi-thread tokio runtime.

mod floor;
mod link;
mod quorate;
mod reply;
mod rslock;

pub(crate) use self::floor::Floor;
pub(crate) use self::quorate::{KINDS, Quorate, TIMEOUT, new};
pub(crate) use self::rslock::Rslock;

use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::measure::{Block, Cycle};
use crate::script;

const TTL: Duration = Duration::from_secs(30);

/// Enough for what a client did not do while nothing drove its runtime.
const SETTLE: Duration = Duration::from_millis(10);

/// What the names of contenders end with whose workers lock the same name in each cycle.
pub(crate) const REUSED: &str = ", names reused";

#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) workers: usize,
    pub(crate) length: Length,
}

#[derive(Clone, Copy)]
pub(crate) enum Length {
    /// So many cycles of each worker.
    Cycles(u64),
    Time(Duration),
}

/// How long one worker goes on.
#[derive(Clone, Copy)]
struct Shift {
    cycles: u64,
    end: Option<Instant>,
}

pub(crate) trait Contender {
    /// Does what became due while others had their turns.
    fn settle(&mut self) {}

    /// Carries out a load to its end.
    fn work(&mut self, load: Load) -> Block;
}

/// A client library, whose workers are tasks of the caller's runtime.
pub(crate) trait Client: Clone + Send + 'static {
    const NAME: &'static str;
    /// The row whose workers lock the same name in each cycle.
    const REUSED: &'static str;
    /// The row with the workers, and all I/O, on one thread.
    const ONE_THREAD: &'static str;

    /// One acquire and release of this name, or none when it was not granted.
    fn cycle(&self, name: String) -> impl Future<Output = Option<Cycle>> + Send;
}

/// A client library as a contender.
pub(crate) struct Tasks<C> {
    pub(crate) client: C,
    runtime: Rc<Runtime>,
    reuses_names: bool,
}

/// The names that one worker locks, which no other worker or process does.
pub(crate) enum Names {
    Reused(String),
    New,
}

impl Load {
    /// One worker's.
    pub(crate) fn alone(cycles: u64) -> Self {
        Self { workers: 1, length: Length::Cycles(cycles) }
    }

    fn shift(self) -> Shift {
        match self.length {
            Length::Cycles(cycles) => Shift { cycles, end: None },
            Length::Time(time) => Shift { cycles: u64::MAX, end: Some(Instant::now() + time) },
        }
    }
}

impl Shift {
    /// Whether there is another cycle, which then is begun.
    fn goes_on(&mut self) -> bool {
        let goes_on = self.cycles > 0 && self.end.is_none_or(|end| Instant::now() < end);
        self.cycles -= u64::from(goes_on);
        goes_on
    }
}

impl<C: Client> Tasks<C> {
    pub(crate) fn new(client: C, runtime: &Rc<Runtime>) -> Self {
        Self { client, runtime: runtime.clone(), reuses_names: false }
    }
}

impl<C: Client> Contender for Tasks<C> {
    fn settle(&mut self) {
        self.runtime.block_on(async { tokio::time::sleep(SETTLE).await });
    }

    fn work(&mut self, load: Load) -> Block {
        let mut block = Block::new();
        self.runtime.block_on(async {
            let mut workers = JoinSet::new();
            let shift = load.shift();
            for place in 0..load.workers {
                let names = if self.reuses_names { Names::reused(place) } else { Names::New };
                workers.spawn(work(self.client.clone(), names, shift));
            }
            while let Some(cycles) = workers.join_next().await {
                cycles.unwrap().into_iter().for_each(|cycle| block.note(cycle));
            }
        });
        block
    }
}

async fn work(client: impl Client, names: Names, mut shift: Shift) -> Vec<Option<Cycle>> {
    let mut cycles = Vec::new();
    while shift.goes_on() {
        cycles.push(client.cycle(names.next()).await);
        // What was left to the background does not run on the next one's time.
        tokio::task::yield_now().await;
    }
    cycles
}

impl Names {
    /// The one name of the worker at this place.
    fn reused(place: usize) -> Self {
        Self::Reused(format!("worker-{place}-{}", std::process::id()))
    }

    pub(crate) fn next(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        match self {
            Self::Reused(name) => name.clone(),
            Self::New => format!("cycle-{}-{}", NEXT.fetch_add(1, Ordering::Relaxed), std::process::id()),
        }
    }
}

pub(crate) fn runtime() -> Rc<Runtime> {
    Rc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap())
}

fn one_thread() -> Rc<Runtime> {
    Rc::new(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
}

/// A contender by its name, connected to the masters.
pub(crate) fn one(name: &str, masters: &[String]) -> Box<dyn Contender> {
    let of_new_names = name.strip_suffix(REUSED).unwrap_or(name);
    let reuses_names = of_new_names != name;
    match of_new_names {
        Quorate::NAME => tasks(Quorate::new(new(masters)), reuses_names),
        Quorate::ONE_THREAD => {
            let runtime = one_thread();
            let client = Quorate::new(new(masters).runtime(runtime.handle().clone()));
            Box::new(Tasks::new(client, &runtime))
        }
        Rslock::NAME => tasks(Rslock::connect(masters), reuses_names),
        Rslock::ONE_THREAD => Box::new(Tasks::new(Rslock::connect(masters), &one_thread())),
        Floor::NAME => Box::new(Floor::connect(masters, script::FLOOR)),
        Floor::SAME_SCRIPT => Box::new(Floor::connect(masters, script::SAME_SCRIPT)),
        kind => {
            let kind = KINDS.iter().find(|(name, _)| *name == kind);
            let (_, kind) = kind.unwrap_or_else(|| panic!("no contender {name:?}"));
            tasks(Quorate::of(*kind, masters), reuses_names)
        }
    }
}

fn tasks(client: impl Client, reuses_names: bool) -> Box<dyn Contender> {
    Box::new(Tasks { reuses_names, ..Tasks::new(client, &runtime()) })
}

/// Several of them.
pub(crate) fn all(names: &[&str], masters: &[String]) -> Vec<Box<dyn Contender>> {
    names.iter().map(|name| one(name, masters)).collect()
}
