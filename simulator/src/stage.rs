//! Everybody who takes part in a run: masters, clients, and the links between them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate::seam::Master;
use quorate::{Owner, Redlock};
use quorate_testkit::Restart;

use crate::changes;
use crate::clocks::{Chance, ClientClock, Rate, WallClock};
use crate::entries::owner_of;
use crate::faults::Fault;
use crate::link::way::Way;
use crate::link::{Link, Weather};
use crate::lists::Lists;
use crate::locks::{Locks, Wish};
use crate::plan::Plan;
use crate::process::{Process, Tasks};
use crate::resource::Resource;
use crate::server::Server;
use crate::size::{CLIENTS, LONGER};
use crate::world::World;

/// The masters and clients of one run.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) ttl: Duration,
    /// Who was given which masters.
    lists: Lists,
    /// The kind of the locks.
    locks: Locks,
    /// How many permits each of them has, where they are semaphores.
    pub(crate) permits: Option<u32>,
    /// What the locks protect.
    pub(crate) resource: Resource,
    /// Everything that goes wrong.
    faults: Vec<Fault>,
    /// The sets that there were, one after the other: the last one goes on.
    sets: Mutex<Vec<String>>,
    /// Who began sets again.
    operators: Mutex<Vec<Arc<Client>>>,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) process: Arc<Process>,
    pub(crate) clock: Arc<ClientClock>,
    pub(crate) links: Vec<Arc<Link>>,
    pub(crate) redlock: Redlock,
    /// The owner that re-enters.
    pub(crate) named: Owner,
    /// What the names of its owners begin with.
    uuid: String,
}

impl Stage {
    pub(crate) fn new(world: &Arc<World>, plan: &Plan) -> Arc<Self> {
        let server = |(number, (rate, off)): (usize, &(i64, i64))| {
            let clock = WallClock::new(world.time.clone(), Rate(*rate), *off);
            let new = if number < plan.new_masters() { Server::new } else { Server::joiner };
            new(world.clone(), number, clock, plan)
        };
        let servers: Vec<_> = plan.masters.iter().enumerate().map(server).collect();
        let client = |(number, (rate, off)): (usize, &(i64, i64))| {
            let clock = ClientClock::new(world.time.clone(), Rate(*rate), *off);
            Client::new(world, plan, (number, &plan.lists.of(number)), clock, &servers)
        };
        let clients = plan.clients.iter().enumerate().map(client).collect();
        let resource = Resource::new(world);
        let faults = plan.faults.clone();
        Arc::new(Self {
            world: world.clone(),
            servers,
            clients,
            ttl: plan.ttl,
            lists: plan.lists.clone(),
            locks: plan.locks,
            permits: plan.locks.permits(plan.seed),
            resource,
            faults,
            sets: Mutex::default(),
            operators: Mutex::default(),
        })
    }

    pub(crate) fn link(&self, client: usize, master: usize) -> &Arc<Link> {
        &self.clients[client].links[master]
    }

    /// What somebody asks for, for this purpose, who was drawn the lock of this number.
    pub(crate) fn wish(&self, lock: usize, purpose: &str, number: usize) -> Wish {
        self.locks.wish(self.world.seed, lock, &self.world.dice(purpose, number as u64))
    }

    /// The parts of a lock that somebody may have by themselves, permits or names or the right to
    /// read, and the lock that they are parts of; no parts where there are none.
    pub(crate) fn parts(&self) -> (Vec<Wish>, Wish) {
        self.locks.parts(self.permits, &self.world.dice("parts", 0))
    }

    /// Calls clients by their numbers, which are easier to read than what they draw for themselves.
    pub(crate) fn with_short_names(&self, trace: String) -> String {
        let clients = self.clients.iter().enumerate();
        clients.fold(trace, |trace, (number, client)| trace.replace(&client.uuid, &format!("c{number}")))
    }

    /// Whose owner this is, or ticket.
    pub(crate) fn client_of(&self, owner: &str) -> Option<usize> {
        let owner = owner_of(owner);
        let (uuid, _) = owner.rsplit_once(':')?;
        self.clients.iter().position(|client| client.uuid == uuid)
    }

    /// What goes wrong at this moment.
    pub(crate) fn faults_now(&self) -> impl Iterator<Item = &Fault> {
        let now = self.world.now();
        self.faults.iter().filter(move |fault| fault.at <= now && now < fault.until)
    }

    /// The clients that were not killed.
    pub(crate) fn living(&self) -> impl Iterator<Item = usize> {
        (0..self.clients.len()).filter(|client| !self.clients[*client].process.is_dead())
    }

    /// Those of them that take locks all the time, and have the list of the set.
    pub(crate) fn lockers(&self) -> impl Iterator<Item = usize> {
        self.living().filter(|client| *client < CLIENTS && self.lists.is_of_set(*client))
    }

    /// Whether a master is one of the set as which it began.
    pub(crate) fn has_stayed(&self, server: &Server) -> bool {
        let [member, state] = ["member", "state"].map(|field| server.record(field));
        let is_first = member.is_some_and(|member| member == (server.number + 1).to_string());
        let is_newest = self.generation_of(server) == Some(self.changes());
        is_first && state.as_deref() == Some("member") && is_newest && self.times_begun() <= 1
    }

    /// How often the set of masters was changed, since it began last.
    pub(crate) fn changes(&self) -> u64 {
        self.servers.iter().filter_map(|server| self.generation_of(server)).max().unwrap_or_default()
    }

    /// How often the set had changed when a master was told of it last.
    pub(crate) fn generation_of(&self, server: &Server) -> Option<u64> {
        let is_of_it = self.sets().last().is_none_or(|set| server.record("set").as_ref() == Some(set));
        server.generation().filter(|_| is_of_it)
    }

    /// The masters of the newest generation that one shows; none if none does.
    pub(crate) fn newest_list(&self) -> Vec<usize> {
        let newest = self.servers.iter().max_by_key(|server| self.generation_of(server));
        let newest = newest.filter(|server| self.generation_of(server).is_some());
        let members = newest.and_then(|server| server.record("members")).unwrap_or_default();
        let is_member = |number: &usize| {
            let name = self.servers[*number].name();
            members.lines().any(|line| line.split_once(' ').is_some_and(|(_, its)| *its == *name))
        };
        (0..self.servers.len()).filter(is_member).collect()
    }

    /// The set of which more than half of these masters are members.
    pub(crate) fn set_of(&self, list: &[usize]) -> Option<String> {
        let sets: Vec<_> = list.iter().filter_map(|master| self.servers[*master].set()).collect();
        let is_of_most = |set: &&String| sets.iter().filter(|its| its == set).count() * 2 > list.len();
        sets.iter().find(is_of_most).cloned()
    }

    /// This set goes on.
    pub(crate) fn goes_on(&self, set: String) {
        let mut sets = self.sets();
        if sets.last() != Some(&set) {
            sets.push(set);
        }
    }

    /// How often the set began.
    pub(crate) fn times_begun(&self) -> usize {
        self.sets().len()
    }

    fn sets(&self) -> MutexGuard<'_, Vec<String>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process that an operator starts with this list.
    pub(crate) fn operator(&self, plan: &Plan, list: &[usize]) -> Arc<Client> {
        let mut operators = self.operators.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.clients.len() + operators.len();
        let clock = ClientClock::new(self.world.time.clone(), Rate(0), 0);
        let operator = Arc::new(Client::new(&self.world, plan, (number, list), clock, &self.servers));
        operators.push(operator.clone());
        operator
    }

    /// Everybody's links to a master.
    fn links_to(&self, master: usize) -> impl Iterator<Item = Arc<Link>> {
        let operators = self.operators.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = self.clients.iter().chain(operators.iter().map(|operator| &**operator));
        clients.map(|client| client.links[master].clone()).collect::<Vec<_>>().into_iter()
    }

    /// The network repeats nothing and lets nothing be overtaken any more.
    pub(crate) fn clear_up(&self) {
        let links = self.clients.iter().flat_map(|client| &client.links);
        links.for_each(|link| link.change_weather(|weather| (weather.repeated, weather.overtaken) = (0, 0)));
    }

    /// A master is killed: its connections break.
    pub(crate) fn stop(&self, master: usize) {
        self.servers[master].stop();
        self.links_to(master).for_each(|link| link.break_off());
    }

    /// A master that was killed is started again.
    pub(crate) fn start(&self, master: usize, with: Restart) {
        self.servers[master].start(with);
    }

    /// A master's address leads to another server from now on, or to the first one again:
    /// connections break.
    pub(crate) fn lead_away(&self, master: usize, away: bool) {
        if self.servers[master].lead_away(away) {
            self.links_to(master).for_each(|link| link.break_off());
        }
    }

    /// A master goes back to what it remembered, within its process, and tells its connections.
    pub(crate) fn relapse(&self, master: usize) {
        if self.servers[master].relapse() {
            self.links_to(master).for_each(|link| link.tell_of_change());
        }
    }

    pub(crate) fn pause(&self, client: usize) {
        self.world.recorder.pause(client, self.world.now());
        self.clients[client].process.pause();
    }

    pub(crate) fn resume(&self, client: usize) {
        self.world.recorder.resume(client, self.world.now());
        self.clients[client].process.resume();
    }

    /// A client is killed: its connections break, and what it holds is nobody's any more.
    pub(crate) fn kill(&self, client: usize) {
        let it = &self.clients[client];
        self.world.recorder.kill(client, self.world.now());
        it.ends();
    }
}

impl Client {
    /// Its process ends, and its connections break.
    pub(crate) fn ends(&self) {
        self.process.kill();
        self.links.iter().for_each(|link| link.break_off());
    }

    fn new(
        world: &Arc<World>,
        plan: &Plan,
        (number, list): (usize, &[usize]),
        clock: Arc<ClientClock>,
        servers: &[Arc<Server>],
    ) -> Self {
        let process = Process::new(number, world);
        let delay = (Duration::from_micros(300), plan.slowest);
        let weather = Weather { delay, repeated: plan.repeated, overtaken: plan.overtaken };
        let links: Vec<_> =
            servers.iter().map(|server| Link::new(world, &process, server, weather)).collect();
        let chance = Chance::new(world.dice("client", plan.original_of(number) as u64));
        let whom = world.dice("whom to ask", plan.original_of(number) as u64);
        let mut builder = Redlock::builder()
            .quorum_first_above(*whom.one_of(&[0, 2, usize::MAX]))
            .ttl(plan.ttl)
            .max_ttl(plan.ttl * LONGER)
            .label(format!("c{number}"))
            .clock(clock.clone())
            .random(Arc::new(chance.of_client(number)))
            .executor(Arc::new(Tasks(process.clone())));
        let ways: Vec<Arc<dyn Master>> =
            links.iter().map(|link| -> Arc<dyn Master> { Arc::new(Way(link.clone())) }).collect();
        for master in list {
            builder = builder.master(ways[*master].clone());
        }
        if number >= CLIENTS {
            builder = builder.wait(changes::WAIT);
        }
        builder = builder.joining(move |name| {
            let way = ways.iter().find(|way| **way.name() == *name);
            Ok(way.expect("every name is that of a server").clone())
        });
        let redlock = builder.build().expect("every setting is within its limits");
        let named = redlock.owner();
        let uuid = named.to_string().rsplit_once(':').map(|(uuid, _)| uuid.to_owned()).unwrap_or_default();
        Self { process, clock, links, redlock, named, uuid }
    }
}
