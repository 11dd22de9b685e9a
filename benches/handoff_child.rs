//! One client of the hand-off bench, in a process of its own. It does what its parent orders on its
//! standard input and says on its standard output what it did, a line each; when its input ends, so
//! does it.

use std::fmt;
use std::time::Duration;

use quorate::seam::{BootClock, Clock};
use quorate::{Guard, Moment, Redlock};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::contender::{self, Quorate};

/// The environment variable that makes a process a child, with the name of the contender.
pub(crate) const CHILD: &str = "QUORATE_BENCH_CHILD";

const TTL: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(60);
/// The longest pause of rslock between two tries; it waits for half of this in the mean.
const RSLOCK_DELAY: Duration = Duration::from_millis(10);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    Quorate,
    Rslock,
}

/// What a child needs to know, as its parent passes it on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) contender: Contender,
    pub(crate) lock: String,
    pub(crate) hold: Duration,
    /// How many of the masters answer.
    pub(crate) living: usize,
    pub(crate) masters: Vec<String>,
}

/// What a child says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// It is connected to every master that lives.
    Ready,
    Granted(Moment),
    /// It began to release at this moment.
    Released(Moment),
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Quorate => "quorate",
            Self::Rslock => "rslock",
        })
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = |moment: &Moment| moment.since(Moment::default()).as_nanos();
        match self {
            Self::Ready => write!(f, "ready 0"),
            Self::Granted(moment) => write!(f, "granted {}", nanos(moment)),
            Self::Released(moment) => write!(f, "released {}", nanos(moment)),
        }
    }
}

impl Word {
    pub(crate) fn read(line: &str) -> Self {
        let (word, nanos) = line.split_once(' ').unwrap();
        let time = Duration::from_nanos(nanos.parse().unwrap());
        match word {
            "ready" => Self::Ready,
            "granted" => Self::Granted(Moment::from_origin(time)),
            "released" => Self::Released(Moment::from_origin(time)),
            _ => panic!("a child said {line:?}"),
        }
    }
}

impl Job {
    /// The command line.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let first = [self.lock.clone(), self.hold.as_millis().to_string(), self.living.to_string()];
        first.into_iter().chain(self.masters.iter().cloned()).collect()
    }

    fn read(contender: &str) -> Self {
        let mut arguments = std::env::args().skip(1);
        let mut next = || arguments.next().unwrap();
        Self {
            contender: if contender == "rslock" { Contender::Rslock } else { Contender::Quorate },
            lock: next(),
            hold: Duration::from_millis(next().parse().unwrap()),
            living: next().parse().unwrap(),
            masters: arguments.collect(),
        }
    }
}

pub(crate) fn run(contender: &str) {
    let job = Job::read(contender);
    let mut orders = orders();
    contender::runtime().block_on(async {
        let client = Client::connect(&job).await;
        println!("{}", Word::Ready);
        while orders.recv().await.is_some() {
            client.take_a_turn(&job).await;
        }
    });
}

/// The orders to take a turn, a line each, read by a thread of its own. At their end the process
/// ends, whatever it is doing.
fn orders() -> UnboundedReceiver<()> {
    let (sender, orders) = unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().for_each(|_| sender.send(()).unwrap());
        std::process::exit(0);
    });
    orders
}

enum Client {
    Quorate(Redlock),
    Rslock(rslock::LockManager),
}

enum Held {
    Quorate(Guard),
    Rslock(rslock::Lock),
}

impl Client {
    /// A client that has a connection to every master that lives.
    async fn connect(job: &Job) -> Self {
        let client = match job.contender {
            Contender::Quorate => Self::Quorate(Quorate::with_default_timeout(&job.masters).redlock),
            Contender::Rslock => {
                let mut manager = rslock::LockManager::new(job.masters.clone());
                manager.set_retry(u32::MAX, RSLOCK_DELAY); // no pause lies between the tries of one call and the next
                Self::Rslock(manager)
            }
        };
        let lock = private_lock();
        client.acquire(&lock).await.release().await; // with rslock this waits for every master
        if let Self::Quorate(redlock) = &client {
            while redlock.lock(&*lock).inspect().await.unwrap().answered() < job.living {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        client
    }

    async fn acquire(&self, lock: &str) -> Held {
        match self {
            Self::Quorate(redlock) => {
                Held::Quorate(redlock.lock(lock).ttl(TTL).wait(WAIT).acquire().await.unwrap())
            }
            Self::Rslock(manager) => Held::Rslock(manager.lock(lock, TTL).await.unwrap()),
        }
    }

    async fn take_a_turn(&self, job: &Job) {
        let held = self.acquire(&job.lock).await;
        println!("{}", Word::Granted(BootClock.now()));
        work(job.hold).await;
        let released = BootClock.now();
        held.release().await;
        println!("{}", Word::Released(released));
    }
}

impl Held {
    async fn release(self) {
        match self {
            Self::Quorate(guard) => guard.release().await.unwrap(),
            Self::Rslock(lock) => lock.release().await,
        }
    }
}

/// What the lock is held for. Tokio's timers would make it a millisecond longer.
async fn work(time: Duration) {
    tokio::task::spawn_blocking(move || std::thread::sleep(time)).await.unwrap();
}

fn private_lock() -> String {
    format!("alone-{}", std::process::id())
}
