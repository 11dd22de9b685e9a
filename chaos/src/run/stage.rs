//! Masters, and client processes that write a history.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorate::{Init, Redlock, SetChange, SetError};
use quorate_history::checkers::ttl;
use quorate_testkit::{RedisServer, eventually_blocking};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::client::{Job, Role, STOP};
use super::stop::Stop;
use crate::arena::{Arena, Client};
use crate::client_setup::ClientSetup;
use crate::history::{self, Event as HistoryEvent, History, Made, Recorder, read_file};
use crate::master::Master;
use crate::nemesis::{Clients, Clocks, Fault, What, Wound};
use crate::plan::{Plan, PlanEvent};
use crate::workload::lock_set::SET;
use crate::workload::{Order, Subject, Workload, introduce, patience};

/// How long clients may take to follow an order, on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// How often clients are looked after where no fault strikes.
const LOOKS: Duration = Duration::from_secs(1);

/// How many tasks of each client take locks.
const TASKS: usize = 5;

/// How often the set is begun again, if it is lost.
const INIT_EVERY: Duration = Duration::from_secs(1);

/// What a stage is set with, beside its [`Arena`].
#[derive(Clone, Debug)]
pub struct Setting {
    /// What is locked by.
    pub subject: Subject,
    /// How long leases last.
    pub ttl: Duration,
    /// Whether the masters are new, and vote at once. Otherwise they are introduced, and a master
    /// that forgets has no vote for a TTL.
    pub new_masters: bool,
    /// What is special about the clients.
    pub clients: ClientSetup,
    /// What decides what clients do.
    pub seed: u64,
    /// What clients decide by themselves.
    pub role: Role,
    /// How this executable is started as a client: what then runs has to do [its
    /// job](Job::of_this_process).
    pub client: fn() -> Command,
    /// What the history says that it is of.
    pub run: Option<history::Run>,
    /// Where the history is written, a file that is not there or empty; `None` if nobody else reads
    /// it.
    pub history: Option<PathBuf>,
}

/// Masters, a store that locks protect, and clients at work. Dropping it ends them all.
#[derive(Debug)]
pub struct Stage {
    /// Where faults strike.
    pub arena: Arena,
    ttl: Duration,
    store: RedisServer,
    file: PathBuf,
    log: Log,
    /// What the stranger has in its list, if there is one.
    _elsewhere: Option<RedisServer>,
    beginner: Option<Beginner>,
}

/// Begins the set of the masters again whenever it is lost, as `quorate init --watch` does.
#[derive(Debug)]
struct Beginner {
    runtime: Runtime,
    redlock: Redlock,
}

impl Beginner {
    /// # Panics
    ///
    /// When masters that were just started do not begin a set.
    fn start(masters: &[String], ttl: Duration) -> Self {
        let runtime = runtime();
        let introduced = runtime.block_on(introduce(masters, ttl));
        let redlock = introduced.expect("masters that were just started answer");
        let begins = redlock.clone();
        runtime.spawn(async move {
            loop {
                sleep(INIT_EVERY).await;
                let _ = begins.init(Init::new()).await; // not while a master is away
            }
        });
        Self { runtime, redlock }
    }

    /// Waits until the set has begun again, if it was lost.
    fn finish(&self) {
        let _ = self.runtime.block_on(async { timeout(SOON, self.redlock.init(Init::new())).await });
    }
}

impl Stage {
    /// Starts a client at each place of the arena.
    ///
    /// # Panics
    ///
    /// When something does not start, with its log.
    pub fn set(mut arena: Arena, setting: Setting) -> Self {
        let Setting { subject, ttl, new_masters, clients, seed, role, client: start, run, history } = setting;
        let copied = (clients == ClientSetup::Copies).then_some(seed);
        let urls: Vec<_> = arena.masters.iter().map(Master::url).collect();
        let beginner = (!new_masters).then(|| Beginner::start(&urls, ttl));
        let store = RedisServer::start();
        // Its folder has everything else as well, so that its keeper removes that, however this
        // process ends.
        let folder = store.folder().to_owned();
        let file = history.unwrap_or_else(|| folder.join("history"));
        let recorder = Recorder::open(&file, "nemesis").unwrap_or_else(|error| panic!("{error}"));
        let lives = (0..arena.places()).map(|_| Arc::new(AtomicU32::new(0))).collect();
        let log = Log { recorder, lives };
        run.into_iter().for_each(|run| log.record(HistoryEvent::Run(run)));
        let workload = |masters| Workload {
            masters,
            store: store.url(),
            history: file.clone(),
            process: String::new(),
            seed,
            subject: subject.clone(),
            tasks: TASKS,
            ttl,
            new_masters,
            copied,
        };
        for (client, life) in log.lives.iter().enumerate() {
            let by_their_names = clients == ClientSetup::Patient;
            let mut workload = workload(if by_their_names { urls.clone() } else { arena.urls(client) });
            let life = life.clone();
            arena.clients.push(Client::start_in(&folder, move || {
                let life = life.fetch_add(1, Ordering::SeqCst) + 1;
                workload.process = name(client, life);
                workload.seed =
                    copied.unwrap_or_else(|| seed.wrapping_add(client as u64 * 100 + u64::from(life)));
                let mut command = start();
                Job { role, workload: workload.clone() }.give_to(&mut command);
                command
            }));
        }
        let elsewhere = (clients == ClientSetup::Stranger).then(RedisServer::start);
        if let Some(server) = &elsewhere {
            let workload =
                Workload { process: "stranger".to_owned(), ..workload(with_another(&urls, server)) };
            arena.clients.push(Client::start_in(&folder, move || {
                let mut command = start();
                Job { role: Role::Strays, workload: workload.clone() }.give_to(&mut command);
                command
            }));
        }
        Self { arena, ttl, store, file, log, _elsewhere: elsewhere, beginner }
    }

    /// What there is so far, if no line is under way.
    pub fn history(&self) -> Option<History> {
        read_file(&self.file).ok()
    }

    /// Waits until more guards than this were handed out.
    ///
    /// # Panics
    ///
    /// When they are not, or a client ends by itself.
    pub fn until_holds(&mut self, count: usize) {
        until("clients to work", || {
            self.arena.check_clients();
            self.history().is_some_and(|history| history.holds.len() > count)
        });
    }

    /// Strikes, and writes it down.
    ///
    /// # Panics
    ///
    /// When a master that has to answer does not.
    pub fn strike(&mut self, fault: &Fault) -> Wound {
        self.log.strikes(None, fault);
        fault.strike(&mut self.arena)
    }

    /// Heals it, and writes that down.
    ///
    /// # Panics
    ///
    /// When a master that has to answer does not, or does not start.
    pub fn heal(&mut self, fault: &Fault, wound: Wound) {
        wound.heal_each(&mut self.arena, |master| self.log.recovers(None, fault, master));
        self.log.healed(None, fault);
    }

    /// Carries a plan out, and tells what happens. Whether it came to its end.
    ///
    /// # Panics
    ///
    /// As [`Plan::run`].
    pub fn run(&mut self, plan: &Plan, stop: &Stop, mut tell: impl FnMut(PlanEvent<'_>)) -> bool {
        let log = &self.log;
        plan.run(&mut self.arena, stop, |event| {
            tell(event);
            match event {
                PlanEvent::Strikes(planned) => log.strikes(Some(planned.number), &planned.fault),
                PlanEvent::Recovers(planned, master) => {
                    log.recovers(Some(planned.number), &planned.fault, master);
                }
                PlanEvent::Healed(planned) => log.healed(Some(planned.number), &planned.fault),
            }
        })
    }

    /// Has an operator change the set of these masters, one change after the other, and writes it
    /// down.
    ///
    /// # Panics
    ///
    /// When a change cannot be made.
    pub fn change(&self, what: &str, masters: &[usize], changes: Vec<SetChange>) {
        self.log.record(HistoryEvent::Changes { what: what.to_owned() });
        let urls: Vec<_> = masters.iter().map(|master| self.arena.masters[*master].url()).collect();
        let made = runtime().block_on(make(&urls, self.ttl, changes));
        made.unwrap_or_else(|error| panic!("{what}: {error:#}"));
        self.log.record(HistoryEvent::Changed);
    }

    /// Lets the clients work for so long. Whether it was not stopped meanwhile.
    ///
    /// # Panics
    ///
    /// When a client ends by itself.
    pub fn work(&mut self, time: Duration, stop: &Stop) -> bool {
        let mut left = time;
        while !left.is_zero() {
            let part = left.min(LOOKS);
            if !stop.wait(part) {
                return false;
            }
            self.arena.check_clients();
            left -= part;
        }
        true
    }

    /// Gives a client an order.
    ///
    /// # Panics
    ///
    /// When the client is gone.
    pub fn order(&mut self, client: usize, order: Order) {
        let sent = self.arena.clients[client]
            .tell(&serde_json::to_string(&order).expect("an order is plain values"));
        sent.unwrap_or_else(|error| panic!("{} takes no order: {error}", self.log.name(client)));
    }

    /// Gives a client an order, and returns the call when it has returned.
    ///
    /// # Panics
    ///
    /// When it does not return, or the client is gone.
    pub fn obeyed(&mut self, client: usize, order: Order) -> Made {
        let process = self.log.name(client);
        let last = |history: History| {
            let calls = history.calls.into_iter().filter(|made| made.process == process);
            calls.filter(|made| made.returned.is_some()).max_by_key(|made| made.number)
        };
        let before = self.history().and_then(last).map(|made| made.number);
        self.order(client, order);
        eventually_blocking(SOON, || {
            let made = self.history().and_then(last).filter(|made| Some(made.number) > before);
            made.ok_or("an order to be carried out")
        })
    }

    /// From now on everything is healed.
    pub fn calm(&self) {
        self.beginner.iter().for_each(Beginner::finish);
        self.log.record(HistoryEvent::Calm);
    }

    /// The clients stop.
    ///
    /// # Panics
    ///
    /// When one does not end, or does not end well.
    pub fn stop(&mut self) {
        for client in &mut self.arena.clients {
            let _ = client.tell(STOP); // how one ended that is gone is seen below
        }
        let ended = || self.arena.clients.iter().all(|client| !client.process().is_alive());
        until_within(patience(self.ttl) + SOON, "every client to end", ended);
        for (number, client) in self.arena.clients.iter_mut().enumerate() {
            if let Some(status) = client.ended().filter(|status| !status.success()) {
                panic!("{} did not end well: {status}", self.log.name(number));
            }
        }
    }

    /// The set that clients have [added to](Role::AddsToSet).
    pub fn lock_set(&self) -> String {
        self.store.command(&["HGET", SET, "value"])
    }

    /// The clients stop, and what is on the masters is gone in time.
    ///
    /// # Panics
    ///
    /// When a client does not end, or a master does not answer.
    #[allow(clippy::disallowed_methods, reason = "leases end by the machine's time")]
    pub fn quiet(mut self) -> History {
        self.stop();
        self.log.record(HistoryEvent::Quiet);
        std::thread::sleep(ttl::longest(self.ttl) + Duration::from_millis(10));
        let is_of_set = |key: &String| key.ends_with("master") || key.ends_with("decree");
        let is_of_lock = |key: &String| !is_of_set(key) && !key.contains("waiting:");
        for (master, server) in self.arena.masters.iter().enumerate() {
            for key in server.all_keys().into_iter().filter(is_of_lock) {
                let ttl = server.locks_for(&key);
                if ttl != Some(0) {
                    self.log.record(HistoryEvent::Key { master, key, ttl });
                }
            }
        }
        self.history().expect("nobody writes any more")
    }
}

/// Makes these changes, as an operator who knows these masters.
async fn make(masters: &[String], ttl: Duration, changes: Vec<SetChange>) -> Result<(), SetError> {
    let operator = Redlock::builder().masters(masters).max_ttl(ttl).ttl(ttl).wait(SOON).build();
    let operator = operator.expect("a client of this process's masters");
    let _ = operator.inspect("operator").await; // to know which masters answer
    for change in changes {
        operator.change_members(change).await?;
    }
    operator.shutdown(SOON).await;
    Ok(())
}

/// What becomes of a process's clients is written down by this one.
#[derive(Debug)]
struct Log {
    recorder: Recorder,
    /// How often each client was started.
    lives: Vec<Arc<AtomicU32>>,
}

impl Log {
    fn record(&self, event: HistoryEvent) {
        self.recorder.record(event).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The name of the process that a client is now.
    fn name(&self, client: usize) -> String {
        let life = self.lives.get(client);
        life.map_or_else(|| "stranger".to_owned(), |life| name(client, life.load(Ordering::SeqCst)))
    }

    fn strikes(&self, number: Option<usize>, fault: &Fault) {
        self.record(HistoryEvent::Strikes { fault: in_words(number, fault) });
        for process in fault.clients.iter().map(|client| self.name(*client)) {
            match fault.what {
                What::Clients(Clients::Kill) | What::Clocks(Clocks::Host { .. }) => {
                    self.record(HistoryEvent::Killed { process });
                }
                What::Clients(Clients::Freeze) => self.record(HistoryEvent::Paused { process }),
                _ => {}
            }
        }
    }

    fn recovers(&self, number: Option<usize>, fault: &Fault, master: usize) {
        self.record(HistoryEvent::Recovers { fault: in_words(number, fault), master });
    }

    fn healed(&self, number: Option<usize>, fault: &Fault) {
        self.record(HistoryEvent::Healed { fault: in_words(number, fault) });
        if fault.what == What::Clients(Clients::Freeze) {
            fault
                .clients
                .iter()
                .for_each(|client| self.record(HistoryEvent::Resumed { process: self.name(*client) }));
        }
    }
}

fn in_words(number: Option<usize>, fault: &Fault) -> history::FaultRecord {
    let Fault { what, masters, clients } = fault.clone();
    history::FaultRecord {
        number,
        family: what.family().to_owned(),
        what: what.to_string(),
        masters,
        clients,
    }
}

/// The list with another server in the last one's place, of the masters' own names: with others it
/// could be that of a client whose names for all of them differ.
fn with_another(urls: &[String], server: &RedisServer) -> Vec<String> {
    let (_, others) = urls.split_last().expect("there are masters");
    others.iter().cloned().chain([server.url()]).collect()
}

/// What a history calls a client that has been started so often.
fn name(client: usize, life: u32) -> String {
    format!("client-{client}.{life}")
}

/// Which client a process of a history is, if it is one.
pub fn client_of(process: &str) -> Option<usize> {
    process.strip_prefix("client-")?.split('.').next()?.parse().ok()
}

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(SOON, what, condition);
}

fn until_within(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    eventually_blocking(bound, || if condition() { Ok(()) } else { Err(what.to_owned()) });
}
