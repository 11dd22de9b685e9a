//! Masters, and client processes that write a history.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorate_chaos::history::{Event as Told, History, Made, Recorder, read_file};
use quorate_chaos::nemesis::{Clients, Fault, What, Wound};
use quorate_chaos::workload::{Order, Subject, Workload, introduce};
use quorate_chaos::{Arena, Client, Event, Persistence, Plan};
use quorate_testkit::{RedisServer, ServerClock};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use crate::until;

/// Where a child finds what to do: a workload, and whether it does as it is told.
const CHILD: [&str; 2] = ["QUORATE_WORKLOAD", "QUORATE_OBEY"];

/// This is what the processes of the other tests run, and otherwise nothing. It works until its standard input ends, or says so;
/// or each line there is an order.
#[test]
fn a_client_works() {
    let [Ok(workload), Ok(obey)] = CHILD.map(std::env::var) else { return };
    let workload: Workload = serde_json::from_str(&workload).unwrap();
    let (stop, (order, orders)) = (CancellationToken::new(), unbounded_channel());
    let told = stop.clone();
    std::thread::spawn(move || {
        loop {
            let mut line = String::new();
            match std::io::stdin().read_line(&mut line) {
                Ok(0) | Err(_) => std::process::exit(1), // whoever started it is gone
                Ok(_) if line.trim() == "stop" => break,
                Ok(_) => order.send(serde_json::from_str::<Order>(&line).unwrap()).unwrap(),
            }
        }
        told.cancel();
    });
    let runtime = Runtime::new().unwrap();
    if obey == "true" {
        runtime.block_on(workload.obey(orders)).unwrap();
    } else {
        runtime.block_on(workload.run(stop)).unwrap();
    }
}

/// What a stage is set with.
pub(crate) struct Setting {
    pub(crate) masters: usize,
    pub(crate) clients: usize,
    pub(crate) subject: Subject,
    pub(crate) ttl: Duration,
    /// Whether nobody has used the masters before.
    pub(crate) new_masters: bool,
    /// Whether clients do as they are told.
    pub(crate) obey: bool,
    pub(crate) seed: u64,
}

pub(crate) struct Stage {
    pub(crate) arena: Arena,
    /// The clients' wall clocks.
    pub(crate) clocks: Vec<ServerClock>,
    ttl: Duration,
    _store: RedisServer,
    folder: TempDir,
    recorder: Recorder,
    /// How often each client was started.
    lives: Vec<Arc<AtomicU32>>,
}

fn name(client: usize, life: u32) -> String {
    format!("client-{client}.{life}")
}

impl Stage {
    pub(crate) fn set(setting: Setting) -> Self {
        let Setting { masters, clients, subject, ttl, new_masters, obey, seed } = setting;
        let mut arena = Arena::start(masters, clients, Persistence::Always, seed);
        if !new_masters {
            Runtime::new().unwrap().block_on(introduce(&arena.masters.urls(), ttl)).unwrap();
        }
        let (store, folder) = (RedisServer::start(), TempDir::new().unwrap());
        let path = folder.path().join("history");
        let recorder = Recorder::open(&path, "nemesis").unwrap();
        let lives: Vec<_> = (0..clients).map(|_| Arc::new(AtomicU32::new(0))).collect();
        let clocks: Vec<_> = (0..clients).map(|_| ServerClock::right()).collect();
        for (client, (life, clock)) in lives.iter().zip(&clocks).enumerate() {
            let mut workload = Workload {
                masters: arena.urls(client),
                store: store.url(),
                history: path.clone(),
                process: String::new(),
                seed,
                subject: subject.clone(),
                tasks: 5,
                ttl,
                new_masters,
            };
            let (life, clock) = (life.clone(), clock.clone());
            arena.clients.push(Client::start(move || {
                let life = life.fetch_add(1, Ordering::SeqCst) + 1;
                workload.process = name(client, life);
                workload.seed = seed + client as u64 * 100 + u64::from(life);
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--exact", "stage::a_client_works", "--nocapture"]).stdout(Stdio::null());
                command.env(CHILD[0], serde_json::to_string(&workload).unwrap());
                command.env(CHILD[1], obey.to_string());
                clock.give_to(&mut command);
                command
            }));
        }
        Self { arena, clocks, ttl, _store: store, folder, recorder, lives }
    }

    /// What there is so far, if no line is under way.
    pub(crate) fn history(&self) -> Option<History> {
        read_file(&self.folder.path().join("history")).ok()
    }

    /// Waits until more guards than this were handed out.
    pub(crate) fn until_holds(&self, count: usize) {
        until("clients to work", || self.history().is_some_and(|history| history.holds.len() > count));
    }

    /// Strikes, and writes it down.
    pub(crate) fn strike(&mut self, fault: &Fault) -> Wound {
        self.tell(&fault.to_string(), fault, true);
        fault.strike(&mut self.arena)
    }

    /// Heals it, and writes that down.
    pub(crate) fn heal(&mut self, fault: &Fault, wound: Wound) {
        wound.heal(&mut self.arena);
        self.tell(&format!("healed: {fault}"), fault, false);
    }

    /// Carries a plan out.
    pub(crate) fn run(&mut self, plan: &Plan) {
        let (recorder, lives) = (&self.recorder, &self.lives);
        plan.run(&mut self.arena, |event| match event {
            Event::Strikes(planned) => {
                tell(recorder, lives, planned.to_string(), &planned.fault, true);
            }
            Event::Healed(planned) => {
                tell(recorder, lives, format!("healed: {planned}"), &planned.fault, false);
            }
        });
    }

    fn tell(&self, what: &str, fault: &Fault, strikes: bool) {
        tell(&self.recorder, &self.lives, what.to_owned(), fault, strikes);
    }

    /// Gives a client an order.
    pub(crate) fn order(&mut self, client: usize, order: Order) {
        self.arena.clients[client].tell(&serde_json::to_string(&order).unwrap());
    }

    /// Gives a client an order, and returns the call when it has returned.
    pub(crate) fn obeyed(&mut self, client: usize, order: Order) -> Made {
        let process = name(client, self.lives[client].load(Ordering::SeqCst));
        let last = |history: History| {
            let calls = history.calls.into_iter().filter(|made| made.process == process);
            calls.filter(|made| made.returned.is_some()).max_by_key(|made| made.number)
        };
        let before = self.history().and_then(last).map(|made| made.number);
        self.order(client, order);
        let mut made = None;
        until("an order to be carried out", || {
            made = self.history().and_then(last).filter(|made| Some(made.number) > before);
            made.is_some()
        });
        made.unwrap()
    }

    /// From now on everything is healed.
    pub(crate) fn calm(&self) {
        self.recorder.record(Told::Calm).unwrap();
    }

    /// The clients stop, and what is on the masters is gone in time.
    pub(crate) fn quiet(mut self) -> History {
        for client in &mut self.arena.clients {
            client.tell("stop");
        }
        until("every client to end", || self.arena.clients.iter().all(|client| !client.process().is_alive()));
        self.recorder.record(Told::Quiet).unwrap();
        std::thread::sleep(self.ttl + self.ttl / 100 + Duration::from_millis(10));
        for (master, key) in self.arena.masters.keys() {
            let ttl: i64 = self.arena.masters[master].command(&["PTTL", &key]);
            let is_gone = ttl == -2 || ttl == 0;
            let ttl = u64::try_from(ttl).ok().map(|millis| millis * 1_000);
            if !key.contains("waiting:") && !is_gone {
                self.recorder.record(Told::Key { master, key, ttl }).unwrap();
            }
        }
        self.history().unwrap()
    }
}

fn tell(recorder: &Recorder, lives: &[Arc<AtomicU32>], what: String, fault: &Fault, strikes: bool) {
    recorder.record(Told::Fault { what }).unwrap();
    for client in &fault.clients {
        let whom = name(*client, lives[*client].load(Ordering::SeqCst));
        let told = match (fault.what, strikes) {
            (What::Clients(Clients::Kill), true) => Told::Killed { whom },
            (What::Clients(Clients::Freeze), true) => Told::Paused { whom },
            (What::Clients(Clients::Freeze), false) => Told::Resumed { whom },
            _ => continue,
        };
        recorder.record(told).unwrap();
    }
}
