//! Carries faults out.

use std::sync::Arc;
use std::time::Duration;

use quorate_testkit::{Restart, Snapshot};

use crate::faults::{Fault, Kind, What};
use crate::size::{CLIENTS, MASTERS};
use crate::stage::Stage;

/// How long a master that was killed is down, at least, before it is back with older data.
const DOWN: Duration = Duration::from_millis(20);

impl Fault {
    /// Puts it on the agenda.
    pub(crate) fn arrange(&self, stage: &Arc<Stage>) {
        let fault = self.clone();
        let its = stage.clone();
        stage.world.at(self.at, move || {
            its.world.note(|| fault.to_string());
            fault.begin(&its);
        });
        let fault = self.clone();
        let its = stage.clone();
        stage.world.at(self.until, move || fault.end(&its));
    }

    fn begin(&self, stage: &Arc<Stage>) {
        match self.what {
            What::Slow { client, master, delay } => {
                stage.link(client, master).change_weather(|weather| weather.delay.1 += delay);
            }
            What::Cut { client, master, .. } => cut(stage, client, master),
            What::Break { client, master } => stage.link(client, master).break_off(),
            What::Freeze { master } => stage.servers[master].pause(),
            What::Restart { master } => stage.stop(master),
            What::Pause { client } => stage.pause(client),
            What::Kill { client } => stage.kill(client),
            What::Change { .. } | What::Disaster { .. } => {} // tasks: see `run.rs`
            What::Step { client, by } => stage.clients[client].clock.wall_clock().step(by),
            What::Excluded { kind, ref masters, by } => {
                masters.iter().for_each(|master| excluded_begins(kind, stage, *master, by));
                if kind == Kind::SharedClock {
                    self.arrange_restarts(stage, masters, by);
                }
            }
        }
    }

    /// It is over, unless another one does the same to the same: then that goes on.
    fn end(&self, stage: &Arc<Stage>) {
        if stage.faults_now().any(|other| other.what.stops_the_same_as(&self.what)) {
            return;
        }
        match self.what {
            What::Slow { client, master, delay } => {
                stage.link(client, master).change_weather(|weather| weather.delay.1 -= delay);
            }
            What::Cut { client, master, .. } => cut(stage, client, master),
            What::Freeze { master } => stage.servers[master].resume(),
            What::Restart { master } => stage.start(master, Restart::Whole),
            What::Pause { client } => stage.resume(client),
            What::Step { .. } | What::Break { .. } | What::Kill { .. } => {}
            What::Change { .. } | What::Disaster { .. } => {}
            What::Excluded { kind, ref masters, by } => {
                masters.iter().for_each(|master| excluded_ends(kind, stage, *master, by));
                if kind == Kind::SharedClock {
                    cut_all(stage);
                }
            }
        }
    }

    /// Masters remember what they have, and restart with that and a clock that is wrong. Before,
    /// the clients on their hosts are not there yet.
    fn arrange_restarts(&self, stage: &Arc<Stage>, masters: &[usize], by: i64) {
        cut_all(stage);
        let its = stage.clone();
        let hosts = masters.to_vec();
        stage.world.at(self.struck_at() / 2, move || {
            hosts.iter().for_each(|host| its.servers[*host].remember());
        });
        let its = stage.clone();
        let hosts = masters.to_vec();
        stage.world.at(self.struck_at(), move || {
            for host in hosts {
                set_host_clock(&its, host, by);
                fall_back(&its, host, Restart::From);
            }
            cut_all(&its);
        });
    }
}

impl What {
    /// Whether both keep the same from running. (Cuts are added up: see [`cut`].)
    fn stops_the_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Freeze { master: one }, Self::Freeze { master: other }) => one == other,
            (Self::Pause { client: one }, Self::Pause { client: other }) => one == other,
            (Self::Restart { master: one }, Self::Restart { master: other }) => one == other,
            _ => false,
        }
    }
}

/// What all cuts of a link that there are now make of it.
fn cut(stage: &Arc<Stage>, client: usize, master: usize) {
    let now = stage.world.now();
    let ways = stage.faults_now().map(|fault| fault.cuts(client, master, now));
    let (there, back) = ways.fold((false, false), |sum, way| (sum.0 || way.0, sum.1 || way.1));
    stage.link(client, master).block(there, back);
}

/// The same for all links.
fn cut_all(stage: &Arc<Stage>) {
    for client in 0..CLIENTS {
        (0..MASTERS).for_each(|master| cut(stage, client, master));
    }
}

fn excluded_begins(kind: Kind, stage: &Arc<Stage>, master: usize, by: i64) {
    let server = &stage.servers[master];
    match kind {
        Kind::RestartEmpty => stage.stop(master),
        Kind::ClockStep | Kind::ClockStrobe | Kind::LateHandshake => server.clock.step(by),
        Kind::FlushAll => server.redis.wipe(),
        Kind::Promotion | Kind::Rollback | Kind::Relapse => server.remember(),
        Kind::RenewalStrobe => server.strobe_renewals(by),
        Kind::Detour => stage.lead_away(master, true),
        Kind::Clone | Kind::SharedClock | Kind::Members | Kind::MixedLists => {}
        Kind::LostSets | Kind::CutShort => {}
        Kind::Eviction => server.evict(&stage.world.dice("eviction", master as u64)),
    }
}

fn excluded_ends(kind: Kind, stage: &Arc<Stage>, master: usize, by: i64) {
    match kind {
        Kind::RestartEmpty => stage.start(master, Restart::Empty),
        Kind::ClockStep | Kind::FlushAll | Kind::Clone => {}
        Kind::Eviction | Kind::Members | Kind::MixedLists | Kind::LostSets | Kind::CutShort => {}
        Kind::ClockStrobe | Kind::LateHandshake => stage.servers[master].clock.step(-by),
        Kind::RenewalStrobe => stage.servers[master].strobe_renewals(0),
        Kind::Detour => stage.lead_away(master, false),
        Kind::SharedClock => set_host_clock(stage, master, -by),
        Kind::Promotion => fall_back(stage, master, Restart::From),
        Kind::Relapse => stage.relapse(master),
        Kind::Rollback => {
            stage.stop(master);
            let stage = stage.clone();
            stage.world.clone().after(DOWN, move || fall_back(&stage, master, Restart::From));
        }
    }
}

/// The clock of a master's host, which is that of a client, too.
fn set_host_clock(stage: &Arc<Stage>, host: usize, by: i64) {
    stage.servers[host].clock.step(by);
    stage.clients[host].clock.wall_clock().step(by);
}

/// It is back with what it remembered.
fn fall_back(stage: &Arc<Stage>, master: usize, with: fn(Snapshot) -> Restart) {
    stage.stop(master);
    let remembered = stage.servers[master].remembered();
    stage.start(master, remembered.map_or(Restart::Whole, with));
}
