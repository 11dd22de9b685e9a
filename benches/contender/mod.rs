//! The contenders. Each is given a load: so many workers that acquire and release locks of their
//! own, each cycle with a fresh owner, one straight after the other: nobody waits for the masters
//! that the last decision did not need, except rslock, which always does.

mod bare;
mod floor;
mod link;
mod quorate;
mod reply;
mod rslock;

pub(crate) use self::bare::Bare;
pub(crate) use self::floor::Floor;
pub(crate) use self::quorate::{KINDS, Quorate, TIMEOUT, new};
pub(crate) use self::rslock::Rslock;

use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::measure::{Block, Cycle};
use crate::script;

const TTL: Duration = Duration::from_secs(30);

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
    /// Carries out a load to its end.
    fn work(&mut self, load: Load) -> Block;
}

/// A client library, whose workers are tasks of the caller's runtime.
pub(crate) trait Client {
    const NAME: &'static str;
    type Worker: Worker;

    /// The worker at this place.
    fn worker(&self, place: usize) -> Self::Worker;
}

pub(crate) trait Worker: Send + 'static {
    /// One acquire and release, or none when it was not granted.
    fn cycle(&mut self) -> impl Future<Output = Option<Cycle>> + Send;
}

/// A client library as a contender.
pub(crate) struct Tasks<C> {
    pub(crate) client: C,
    runtime: Rc<Runtime>,
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
        Self { client, runtime: runtime.clone() }
    }
}

impl<C: Client> Contender for Tasks<C> {
    fn work(&mut self, load: Load) -> Block {
        let block = Arc::new(Mutex::new(Block::new()));
        self.runtime.block_on(async {
            let mut workers = JoinSet::new();
            let shift = load.shift();
            for place in 0..load.workers {
                workers.spawn(work(self.client.worker(place), shift, block.clone()));
            }
            workers.join_all().await;
        });
        Arc::into_inner(block).unwrap().into_inner().unwrap()
    }
}

/// The lock of the worker at this place, which no other process has.
fn lock(place: usize) -> String {
    format!("worker-{place}-{}", std::process::id())
}

async fn work(mut worker: impl Worker, mut shift: Shift, block: Arc<Mutex<Block>>) {
    while shift.goes_on() {
        let cycle = worker.cycle().await;
        block.lock().unwrap().note(cycle);
        // What was left to the background does not run on the next one's time.
        tokio::task::yield_now().await;
    }
}

pub(crate) fn runtime() -> Rc<Runtime> {
    Rc::new(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
}

/// A contender by its name, connected to the masters.
pub(crate) fn one(name: &str, masters: &[String], runtime: &Rc<Runtime>) -> Box<dyn Contender> {
    let quorate = |builder| Box::new(Tasks::new(Quorate::new(builder), runtime));
    match name {
        Quorate::NAME => quorate(new(masters)),
        Quorate::LENT => quorate(new(masters).runtime(runtime.handle().clone())),
        Bare::NAME => Box::new(Tasks::new(runtime.block_on(Bare::connect(masters)), runtime)),
        Rslock::NAME => Box::new(Tasks::new(Rslock::connect(masters), runtime)),
        Floor::NAME => Box::new(Floor::connect(masters, script::FLOOR)),
        Floor::SAME_SCRIPT => Box::new(Floor::connect(masters, script::SAME_SCRIPT)),
        name => {
            let kind = KINDS.iter().find(|(kind, _)| *kind == name);
            let (_, kind) = kind.unwrap_or_else(|| panic!("no contender {name:?}"));
            Box::new(Tasks::new(Quorate::of(*kind, masters), runtime))
        }
    }
}

/// Several of them.
pub(crate) fn all(names: &[&str], masters: &[String]) -> Vec<Box<dyn Contender>> {
    let runtime = runtime();
    names.iter().map(|name| one(name, masters, &runtime)).collect()
}
