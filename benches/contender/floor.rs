//! What a client can do at best with one command a master for each acquire and each release: one
//! thread, one connection a master, no time-outs, no reconnects, and nothing that a library needs.
//! Two contenders: one sends a SET and a compare-and-delete, the other the library's own script.
//!
//! Workers are state machines. What they send to a master that owes nothing leaves at once;
//! everything else leaves in one write a master, at the end of a turn of the loop.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::link::{Link, Vote};
use super::{Contender, Load, Names, Shift};
use crate::measure::{Block, Cycle};
use crate::script::{Commands, Name, Turn};

pub(crate) struct Floor {
    commands: Commands,
    epoll: OwnedFd,
    links: Vec<Link>,
    events: Vec<Event>,
    /// How many operations there have been; the number of one is its round.
    operations: u64,
}

/// One load under way.
struct Run<'a> {
    floor: &'a mut Floor,
    workers: Vec<Worker>,
    /// How many of the workers are not done.
    busy: usize,
    block: Block,
    command: Vec<u8>,
}

struct Worker {
    name: Name,
    shift: Shift,
    phase: Phase,
    /// What was asked for last, and by whom.
    turn: Option<Turn>,
    /// The operation under way, and how many have granted and refused it.
    operation: u64,
    grants: usize,
    refusals: usize,
    began: Instant,
    granted: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Acquiring,
    Releasing,
    /// Between two cycles.
    Idle,
    Done,
}

impl Floor {
    /// The one that sends a SET.
    pub(crate) const NAME: &'static str = "floor";

    /// The one that sends the library's script.
    pub(crate) const SAME_SCRIPT: &'static str = "same script";

    pub(crate) fn connect(masters: &[String], commands: Commands) -> Self {
        commands.load(masters);
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let links: Vec<Link> = masters.iter().map(|master| Link::connect(master)).collect();
        for (i, link) in links.iter().enumerate() {
            let interest = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            epoll::add(&epoll, link.descriptor(), EventData::new_u64(i as u64), interest).unwrap();
        }
        Self { commands, epoll, events: Vec::with_capacity(links.len()), links, operations: 0 }
    }

    fn is_idle(&self) -> bool {
        self.links.iter().all(Link::is_idle)
    }

    /// Waits for the masters, and collects their votes.
    fn receive(&mut self, votes: &mut Vec<Vote>) {
        self.events.clear();
        epoll::wait(&self.epoll, spare_capacity(&mut self.events), None).unwrap();
        for event in &self.events {
            if { event.flags }.contains(EventFlags::IN) {
                self.links[{ event.data }.u64() as usize].receive(votes);
            }
        }
    }
}

impl Contender for Floor {
    fn work(&mut self, load: Load) -> Block {
        let mut run = Run::new(self, load);
        for place in 0..load.workers {
            run.begin(place);
        }
        let mut votes = Vec::new();
        while run.busy > 0 || !run.floor.is_idle() {
            run.floor.links.iter_mut().for_each(Link::flush);
            run.floor.receive(&mut votes);
            for vote in votes.drain(..) {
                run.count(vote);
            }
        }
        run.block
    }
}

impl<'a> Run<'a> {
    fn new(floor: &'a mut Floor, load: Load) -> Self {
        let now = Instant::now();
        let shift = load.shift();
        let worker = |_| Worker {
            name: Name::default(),
            shift,
            phase: Phase::Idle,
            turn: None,
            operation: 0,
            grants: 0,
            refusals: 0,
            began: now,
            granted: now,
        };
        Self {
            floor,
            workers: (0..load.workers).map(worker).collect(),
            busy: load.workers,
            block: Block::new(),
            command: Vec::new(),
        }
    }

    /// Begins a worker's next cycle, if there is one.
    fn begin(&mut self, place: usize) {
        let worker = &mut self.workers[place];
        if !worker.shift.goes_on() {
            worker.phase = Phase::Done;
            self.busy -= 1;
            return;
        }
        worker.name = Name::new(self.floor.commands.prefix, &Names::New.next());
        worker.began = Instant::now();
        worker.turn = None;
        self.send(place, Phase::Acquiring);
    }

    fn send(&mut self, place: usize, phase: Phase) {
        self.floor.operations += 1;
        let worker = &mut self.workers[place];
        (worker.phase, worker.operation) = (phase, self.floor.operations);
        (worker.grants, worker.refusals) = (0, 0);
        let commands = &self.floor.commands;
        let command = if phase == Phase::Acquiring { commands.acquire } else { commands.release };
        let round = worker.operation;
        let turn = match worker.turn.take() {
            Some(turn) => turn.then(round),
            None => Turn::new(round, round),
        };
        encode(&mut self.command, &command(&worker.name, &turn));
        worker.turn = Some(turn);
        let vote = Vote { place, operation: worker.operation, granted: false };
        for link in &mut self.floor.links {
            link.send(&self.command, vote);
        }
    }

    /// Counts a vote. The grant that makes the majority decides; those after it change nothing. The
    /// library's script refuses what comes more than 2 s late, as from a master that lags behind.
    ///
    /// # Panics
    ///
    /// When a majority refuses.
    fn count(&mut self, vote: Vote) {
        let worker = &mut self.workers[vote.place];
        if worker.operation != vote.operation {
            return;
        }
        worker.grants += usize::from(vote.granted);
        worker.refusals += usize::from(!vote.granted);
        assert!(worker.refusals <= self.floor.links.len() / 2, "a majority refused");
        if !vote.granted || worker.grants != self.floor.links.len() / 2 + 1 {
            return;
        }
        match worker.phase {
            Phase::Acquiring => {
                worker.granted = Instant::now();
                self.send(vote.place, Phase::Releasing);
            }
            Phase::Releasing => {
                let cycle =
                    Cycle { acquire: worker.granted - worker.began, release: worker.granted.elapsed() };
                worker.phase = Phase::Idle;
                self.block.note(Some(cycle));
                self.begin(vote.place);
            }
            Phase::Idle | Phase::Done => {}
        }
    }
}

/// A command in RESP.
fn encode(command: &mut Vec<u8>, words: &[&str]) {
    command.clear();
    put_count(command, b'*', words.len());
    for word in words {
        put_count(command, b'$', word.len());
        command.extend_from_slice(word.as_bytes());
        command.extend_from_slice(b"\r\n");
    }
}

fn put_count(command: &mut Vec<u8>, kind: u8, count: usize) {
    command.push(kind);
    put_digits(command, count);
    command.extend_from_slice(b"\r\n");
}

fn put_digits(command: &mut Vec<u8>, number: usize) {
    if number >= 10 {
        put_digits(command, number / 10);
    }
    command.push(b'0' + (number % 10) as u8);
}
