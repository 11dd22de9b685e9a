//! Where faults strike: masters, each client's way to each of them, and the clients.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use quorate_testkit::{ComposeError, Masters, ProcessHandle, Project, Proxy, RedisServer, ServerClock};
use tokio::runtime::{Builder, Runtime};

use crate::master::{Host, Master};
use crate::persistence::Persistence;

/// Masters, and client processes. Each client has a proxy for each master, so that the network can
/// be different for each. Dropping it ends everything.
#[derive(Debug)]
pub struct Arena {
    /// The client processes, as far as they have been started. They end first.
    pub clients: Vec<Client>,
    /// The masters.
    pub masters: Vec<Master>,
    /// Those of each client.
    proxies: Vec<Vec<Proxy>>,
    /// What runs the proxies. It ends in the background, as an arena may be dropped where nothing
    /// may wait.
    runtime: Option<Runtime>,
    keeping: Keeping,
}

/// What keeps the masters.
#[derive(Debug)]
enum Keeping {
    /// They are processes, each kept by itself.
    Processes(Persistence),
    /// They are the containers of a project.
    Containers(#[expect(dead_code, reason = "it is there to be dropped")] Project),
}

impl Arena {
    /// Starts `masters` masters with wall clocks and disks of their own, and proxies for `clients`
    /// clients. The seed decides what faults of the network draw.
    ///
    /// # Panics
    ///
    /// When a server does not start, with its log, or there is no C compiler.
    pub fn start(masters: usize, clients: usize, persistence: Persistence, seed: u64) -> Self {
        let masters = Masters::start_with_clocks(masters, persistence.options());
        let masters = masters.into_iter().map(Master::Process).collect();
        Self::of(masters, Keeping::Processes(persistence), clients, seed)
    }

    /// The same with the services of a compose file for masters: new containers, in a [`Project`]
    /// of its own.
    ///
    /// # Errors
    ///
    /// As [`Project::up`].
    pub fn of_containers(file: &Path, clients: usize, seed: u64) -> Result<Self, ComposeError> {
        let project = Project::up(file)?;
        let masters = project.containers().iter().cloned().map(Master::Container).collect();
        Ok(Self::of(masters, Keeping::Containers(project), clients, seed))
    }

    fn of(masters: Vec<Master>, keeping: Keeping, clients: usize, seed: u64) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let servers: Vec<_> = masters.iter().map(Master::address).collect();
        let ways = |client: usize| {
            let numbered = servers.iter().zip(client * servers.len()..);
            numbered.map(|(server, number)| proxy(&runtime, *server, seed, number)).collect()
        };
        let proxies = (0..clients).map(ways).collect();
        Self { clients: Vec::new(), masters, proxies, runtime: Some(runtime), keeping }
    }

    /// Where the masters run.
    pub fn host(&self) -> Host {
        match self.keeping {
            Keeping::Processes(_) => Host::Process,
            Keeping::Containers(_) => Host::Container,
        }
    }

    /// For how many clients there are proxies.
    pub fn places(&self) -> usize {
        self.proxies.len()
    }

    /// The URLs of the masters, as one client reaches them.
    pub fn urls(&self, client: usize) -> Vec<String> {
        self.proxies[client].iter().map(Proxy::url).collect()
    }

    /// One client's way to one master.
    pub fn proxy(&self, client: usize, master: usize) -> &Proxy {
        &self.proxies[client][master]
    }

    /// Looks whether every client lives that nobody has killed.
    ///
    /// # Panics
    ///
    /// When one does not: whatever it did not do since says nothing of locks.
    pub fn check_clients(&mut self) {
        for (number, client) in self.clients.iter_mut().enumerate() {
            if let Some(status) = client.ended() {
                panic!("client {number} has ended by itself: {status}");
            }
        }
    }

    /// Starts another server like the masters.
    ///
    /// # Panics
    ///
    /// When it does not start, with its log, or the masters are containers.
    pub fn another_server(&self) -> RedisServer {
        match &self.keeping {
            Keeping::Processes(persistence) => RedisServer::start_with_clock(persistence.options()),
            Keeping::Containers(_) => panic!("a compose file has no other servers"),
        }
    }

    /// Starts another server like the masters, to join them: its place. Clients that are to reach
    /// it have to know its own URL, for there is no proxy before it.
    ///
    /// # Panics
    ///
    /// As [`another_server`](Self::another_server).
    pub fn add_master(&mut self) -> usize {
        self.masters.push(Master::Process(self.another_server()));
        self.masters.len() - 1
    }

    /// Another server takes a master's place, and its address: clients' connections break, and new
    /// ones lead there. The old one is killed.
    pub fn replace(&mut self, master: usize, server: RedisServer) {
        self.masters[master].kill();
        self.lead(master, server.address());
        self.masters[master] = Master::Process(server);
    }

    /// A master's address leads to this server, for all clients: their connections break, and new
    /// ones lead there.
    pub fn lead(&self, master: usize, server: SocketAddr) {
        for proxy in self.proxies.iter().map(|ways| &ways[master]) {
            proxy.lead_to(server);
            proxy.reset();
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Another thread starts it, as this one may be one that runs tasks.
fn proxy(runtime: &Runtime, server: SocketAddr, seed: u64, number: usize) -> Proxy {
    let (started, starting) = mpsc::channel();
    let seed = seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)); // another one for each
    runtime.spawn(async move { started.send(Proxy::start_seeded(server, seed).await) });
    starting.recv().expect("a proxy")
}

/// A client process with a wall clock of its own, which can be started again. It is to end by
/// itself when its standard input does, so that it does not outlive this process, however that
/// ends. Dropping it kills it.
pub struct Client {
    command: Box<dyn FnMut() -> Command + Send>,
    clock: ServerClock,
    child: Child,
    is_killed: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.child).finish()
    }
}

impl Client {
    /// Starts a client; `command` says how, each time that it is started.
    ///
    /// # Panics
    ///
    /// When it does not start, or there is no C compiler.
    pub fn start(command: impl FnMut() -> Command + Send + 'static) -> Self {
        Self::start_in(&std::env::temp_dir(), command)
    }

    /// The same, with what its clock takes in a folder within this one.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn start_in(folder: &Path, mut command: impl FnMut() -> Command + Send + 'static) -> Self {
        let clock = ServerClock::right_in(folder);
        let child = spawn(&mut command(), &clock);
        Self { command: Box::new(command), clock, child, is_killed: false }
    }

    /// Its wall clock: it outlives restarts.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// The process.
    pub fn process(&self) -> ProcessHandle {
        ProcessHandle::of(&self.child)
    }

    /// Writes a line to its standard input.
    ///
    /// # Errors
    ///
    /// When it does not take it: mostly it has [ended](Self::ended).
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.as_mut().expect("it was piped");
        writeln!(input, "{line}")
    }

    /// How it has ended, if it has, and was not [killed](Self::kill) here.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.is_killed { None } else { self.child.try_wait().ok()? }
    }

    /// Starts it again; it is killed first if it lives.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&mut (self.command)(), &self.clock);
        self.is_killed = false;
    }

    /// Kills it, whether it stands still or not. Returns when it is gone.
    pub fn kill(&mut self) {
        self.is_killed = true;
        let _ = self.child.kill(); // it may be gone already, which is as well
        let _ = self.child.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In a process group of its own: what a terminal tells this process does not reach it.
fn spawn(command: &mut Command, clock: &ServerClock) -> Child {
    clock.give_to(command);
    let child = command.stdin(Stdio::piped()).process_group(0).spawn();
    child.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
