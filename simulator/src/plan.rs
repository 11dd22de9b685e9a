//! What a seed decides before a run begins: the masters and clients, what is done, and what goes
//! wrong. A plan is a list, so that parts of it can be left out.

use std::time::Duration;

use quorate_history::Time;
use quorate_testkit::Dice;

use crate::changes;
use crate::cut_short;
use crate::faults::{Fault, Kind, Profile};
use crate::late::Late;
use crate::lists::Lists;
use crate::locks::Locks;
use crate::lost_sets;
use crate::size::{ACTORS, CLIENTS, JOINERS, LOCKS, LONGER, LONGER_RUN, MASTERS, OPERATIONS};

/// How many of a thousand acquires have a caller whose runtime is busy.
const BUSY: u64 = 100;

/// How many of a thousand steps of a clock one is wrong by, at most: less than the hundredth that
/// leases leave for both.
const RATE: i64 = 4_000;

/// How long an actor does nothing before a task, at most.
const THINK: Duration = Duration::from_millis(60);

/// The same where the set of masters changes, which takes its time.
const LONG_THINK: Duration = Duration::from_secs(5);

/// The same where a process begins the set: clients ask again when a master that restarted empty
/// votes again.
const FOUNDED_THINK: Duration = Duration::from_secs(1);

/// How long before a client that idles asks again the others come.
const LATER: Duration = Duration::from_secs(1);

/// When faults begin there: sets begin before.
const SETS_BEGUN: Duration = Duration::from_secs(1);

/// The usual TTL where the set changes, at most: the shorter, the more changes there are.
const SHORT_TTL: Duration = Duration::from_secs(1);

/// How many more operations than in other runs there are.
const MORE_OPERATIONS: usize = 2;

/// How far wall clocks are apart, in microseconds, where nobody sets them.
const OFF: i64 = 100_000;

/// The client that is a copy of another one, where one is, and that one.
const COPY: usize = 1;
const ORIGINAL: usize = 0;

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What decided everything.
    pub seed: u64,
    pub(crate) profile: Profile,
    /// Whether masters vote whatever they forgot, and whatever their clocks show.
    pub(crate) trusting: bool,
    /// The kind of its locks.
    pub(crate) locks: Locks,
    pub(crate) ttl: Duration,
    /// How long a message takes, at most.
    pub(crate) slowest: Duration,
    /// How many of a thousand calls are repeated, and overtaken, by a network that is worse than
    /// TCP.
    pub(crate) repeated: u64,
    pub(crate) overtaken: u64,
    /// How wrong each master's clock and each client's is: the rate, and how far it is off.
    pub(crate) masters: Vec<(i64, i64)>,
    pub(crate) clients: Vec<(i64, i64)>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) faults: Vec<Fault>,
    /// Who was given which masters.
    pub(crate) lists: Lists,
    /// The client that begins when all is calm, where there is one: it knows nothing of what became
    /// of its masters.
    pub(crate) latecomer: Option<usize>,
    /// When the last fault is over.
    pub(crate) healed: Time,
}

/// One thing that an actor does, from the acquire to the release.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its number in the plan, by which it is left out.
    pub(crate) number: usize,
    pub(crate) client: usize,
    pub(crate) actor: usize,
    pub(crate) lock: usize,
    /// How long to do nothing before.
    pub(crate) think: Duration,
    pub(crate) ask: Ask,
    /// For how long its caller's runtime has other things to do whenever the acquire wakes it,
    /// while the client's own thread goes on.
    pub(crate) busy: Duration,
    /// What is done with the guard, each after a while.
    pub(crate) steps: Vec<(Duration, Step)>,
    pub(crate) end: End,
}

/// How the lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Once.
    Try,
    /// As long as this.
    Wait(Duration),
    /// As long as this, and then the future is dropped.
    Cancel(Duration),
    /// By the client's named owner, for as long; of a semaphore, as `Wait`.
    Named(Duration),
}

/// Something that is done with a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Extend(Duration),
    /// Enters once more, or takes another permit, and leaves after a while.
    Reenter(Duration),
}

/// How a guard ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Release,
    Drop,
    /// It is kept until it is lost: its lease is not renewed.
    RunOut,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64, profile: Profile) -> Self {
        let dice = Dice::new(seed, "plan", 0);
        let ttl = Duration::from_millis(*dice.one_of(&[400, 1_000, 2_000]));
        let worse = dice.happens(300);
        let clock = |_| (dice.between(-RATE, RATE), dice.between(-OFF, OFF));
        let masters = (0..MASTERS).map(clock).collect();
        let clients = (0..CLIENTS).map(clock).collect();
        let mut plan = Self {
            seed,
            profile,
            trusting: false,
            locks: Locks::default(),
            ttl,
            slowest: dice.millis(1, 8),
            repeated: if worse { 20 } else { 0 },
            overtaken: if worse { 20 } else { 0 },
            masters,
            clients,
            tasks: Vec::new(),
            faults: Vec::new(),
            lists: Lists::default(),
            latecomer: None,
            healed: Time::ZERO,
        };
        if plan.sets_change() {
            return plan.of_changes();
        }
        let lists = Dice::new(seed, "lists", 0);
        plan.lists = match profile {
            Profile::Outside(Kind::MixedLists) => Lists::mixed(&lists),
            _ => Lists::default(),
        };
        let is_founded = plan.new_masters() == 0;
        let is_late = profile == Profile::Outside(Kind::LateHandshake);
        let think = if is_founded || is_late { FOUNDED_THINK } else { THINK };
        let more = if profile == Profile::Outside(Kind::MixedLists) { MORE_OPERATIONS } else { 1 };
        plan.tasks = tasks(&Dice::new(seed, "tasks", 0), plan.ttl, OPERATIONS * more, think);
        plan.clients = (0..CLIENTS).map(|client| plan.clients[plan.original_of(client)]).collect();
        plan.faults = crate::faults::plan(&Dice::new(seed, "faults", 0), profile, plan.ttl);
        if is_founded {
            plan.begin_sets(&lists);
        }
        if is_late {
            plan.be_late(Late::draw(&Dice::new(seed, "late", 0), plan.ttl));
        }
        plan.healed = healed(&plan.faults);
        plan
    }

    /// One client asks late, for a lock with each of its actors, and keeps what it gets. If it
    /// idles until then, it has asked once before, and the others come a while before it.
    fn be_late(&mut self, late: Late) {
        let Late { client, from, idles, rate, faults } = late;
        for actor in 0..ACTORS {
            let is_its = |task: &&mut Task| (task.client, task.actor) == (client, actor);
            let asks = self.tasks.iter_mut().filter(is_its).take(1 + usize::from(idles));
            for (at, task) in asks.enumerate() {
                let is_last = at == usize::from(idles);
                task.ask = Ask::Try;
                task.end = if is_last { End::RunOut } else { End::Release };
                task.think = if is_last { from } else { Duration::ZERO };
                task.busy = Duration::ZERO;
                task.lock = actor % LOCKS;
                task.steps.clear();
            }
            for other in (0..CLIENTS).filter(|other| idles && *other != client) {
                let is_its = |task: &&mut Task| (task.client, task.actor) == (other, actor);
                self.tasks.iter_mut().filter(is_its).take(1).for_each(|task| task.think += from - LATER);
            }
        }
        if idles {
            self.clients[client].0 = rate;
            self.masters.iter_mut().for_each(|(rate, _)| *rate /= LONGER_RUN);
        }
        for fault in faults {
            self.faults.push(Fault { number: self.faults.len(), ..fault });
        }
    }

    /// One in which the set of masters changes.
    fn of_changes(mut self) -> Self {
        let dice = |purpose| Dice::new(self.seed, purpose, 0);
        self.ttl = self.ttl.min(SHORT_TTL);
        self.tasks = tasks(&dice("tasks"), self.ttl, OPERATIONS * MORE_OPERATIONS, LONG_THINK);
        let are_lost = self.profile == Profile::Outside(Kind::LostSets);
        let changers = match self.profile {
            Profile::Outside(Kind::LostSets) => lost_sets::changers(&dice("changers")),
            Profile::Outside(Kind::CutShort) => cut_short::CHANGERS,
            _ => changes::changers(&dice("changers")),
        };
        let dice = dice("changes");
        let clock = |_| (dice.between(-RATE, RATE), dice.between(-OFF, OFF));
        self.masters.extend((0..JOINERS).map(clock));
        self.masters.iter_mut().for_each(|(rate, _)| *rate /= LONGER_RUN);
        self.clients.extend((0..=changers).map(clock));
        self.latecomer = Some(CLIENTS + changers);
        self.linger(&dice);
        if are_lost {
            self.lists = Lists::begun_by(self.clients.len());
            self.lists.are_used = dice.happens(500);
            self.clients.push(clock(0));
            self.faults = lost_sets::faults(&dice, self.ttl, changers, self.lists.are_used);
        } else if self.is_cut_short() {
            self.faults = cut_short::faults(&dice, self.ttl);
        } else {
            self.faults = changes::faults(&dice, self.ttl, changers);
        }
        self.healed = healed(&self.faults);
        self
    }

    /// Whether sets of masters change.
    pub(crate) fn sets_change(&self) -> bool {
        self.is_cut_short() || matches!(self.profile, Profile::Outside(Kind::Members | Kind::LostSets))
    }

    /// Whether one change of the set is cut short.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.profile == Profile::Outside(Kind::CutShort)
    }

    /// The sets begin before anything else happens. Where they are two there are more masters.
    fn begin_sets(&mut self, dice: &Dice) {
        let clock = |_| (dice.between(-RATE, RATE), dice.between(-OFF, OFF));
        if self.profile == Profile::Outside(Kind::MixedLists) {
            self.masters.extend((0..JOINERS).map(clock));
        }
        self.clients.extend((0..self.lists.founders.len()).map(clock));
        for fault in &mut self.faults {
            fault.at += SETS_BEGUN;
            fault.until += SETS_BEGUN;
        }
    }

    /// How many masters are known to be new, so that their set begins by itself.
    pub(crate) fn new_masters(&self) -> usize {
        if self.lists.founders.is_empty() { MASTERS } else { 0 }
    }

    /// Some guards are kept for long, so that their leases go on from one set to the next; and some
    /// clients begin late, with a list that is old.
    fn linger(&mut self, dice: &Dice) {
        for task in self.tasks.iter_mut().filter(|_| dice.happens(100)) {
            task.steps.push((dice.time(Duration::ZERO, changes::LONG / 2), Step::Extend(self.ttl)));
        }
        for client in (0..CLIENTS).filter(|_| dice.happens(250)) {
            let late = dice.time(Duration::ZERO, changes::STORM);
            let mut actors = Vec::new();
            for task in self.tasks.iter_mut().filter(|task| task.client == client) {
                if !actors.contains(&task.actor) {
                    actors.push(task.actor);
                    task.think += late;
                }
            }
        }
    }

    /// The same with masters that vote whatever they forgot, and whatever their clocks show: plain
    /// Redlock.
    #[must_use]
    pub fn trusting(self) -> Self {
        Self { trusting: true, ..self }
    }

    /// The same with locks of this kind. Those that are another library's, too, keep no rounds: if
    /// a network repeats calls, or lets them overtake each other, an owner's earlier release cannot
    /// be distinguished from a later one.
    #[must_use]
    pub fn of(self, locks: Locks) -> Self {
        let (repeated, overtaken) = if locks.are_shared() { (0, 0) } else { (self.repeated, self.overtaken) };
        Self { locks, repeated, overtaken, ..self }
    }

    /// The client that a client is a copy of; most are originals.
    pub(crate) fn original_of(&self, client: usize) -> usize {
        let is_copy = self.profile == Profile::Outside(Kind::Clone) && client == COPY;
        if is_copy { ORIGINAL } else { client }
    }

    /// The same with none but these tasks.
    #[must_use]
    pub fn with_tasks(mut self, tasks: &[usize]) -> Self {
        self.tasks.retain(|task| tasks.contains(&task.number));
        self
    }

    /// The same with none but these faults.
    #[must_use]
    pub fn with_faults(mut self, faults: &[usize]) -> Self {
        self.faults.retain(|fault| faults.contains(&fault.number));
        self
    }

    /// The numbers of its tasks.
    pub fn task_numbers(&self) -> Vec<usize> {
        self.tasks.iter().map(|task| task.number).collect()
    }

    /// The numbers of its faults.
    pub fn fault_numbers(&self) -> Vec<usize> {
        self.faults.iter().map(|fault| fault.number).collect()
    }
}

/// When the last of these is over.
fn healed(faults: &[Fault]) -> Time {
    faults.iter().map(|fault| fault.until).max().unwrap_or_default()
}

/// So many operations, with pauses of up to `think` before.
fn tasks(dice: &Dice, ttl: Duration, operations: usize, think: Duration) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut count = 0;
    while count < operations {
        let task = task(dice, ttl, tasks.len(), think);
        count += task.operations();
        tasks.push(task);
    }
    tasks
}

fn task(dice: &Dice, ttl: Duration, number: usize, think: Duration) -> Task {
    let long = ttl * 3;
    let ask = match dice.below(10) {
        0..=2 => Ask::Try,
        3..=5 => Ask::Wait(dice.time(ttl / 10, long)),
        6..=7 => Ask::Cancel(dice.time(Duration::ZERO, Duration::from_millis(30))),
        _ => Ask::Named(dice.time(ttl / 10, long)),
    };
    let busy = if dice.happens(BUSY) { dice.time(Duration::ZERO, ttl * 3 / 2) } else { Duration::ZERO };
    let steps = (0..*dice.one_of(&[0, 0, 1, 2])).map(|_| {
        let pause = dice.time(Duration::ZERO, ttl / 4);
        let step = match (ask, dice.happens(500)) {
            (Ask::Named(_), true) => Step::Reenter(dice.time(Duration::ZERO, ttl / 8)),
            _ => Step::Extend(dice.time(ttl / 4, ttl * LONGER)),
        };
        (pause, step)
    });
    // What a named owner has is renewed as long as one of its guards wants that.
    let end = match (dice.below(10), ask) {
        (0..=5, _) => End::Release,
        (9, Ask::Try | Ask::Wait(_) | Ask::Cancel(_)) => End::RunOut,
        _ => End::Drop,
    };
    let client = dice.below(CLIENTS);
    let actor = dice.below(ACTORS);
    let think = dice.time(Duration::ZERO, think);
    Task { number, client, actor, lock: dice.below(LOCKS), think, ask, busy, steps: steps.collect(), end }
}

impl Task {
    /// How many operations it has: the acquire, the steps (a re-entry has two), and the end.
    fn operations(&self) -> usize {
        let steps = self.steps.iter().map(|(_, step)| if matches!(step, Step::Reenter(_)) { 2 } else { 1 });
        2 + steps.sum::<usize>()
    }
}
