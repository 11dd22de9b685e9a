//! A client's way to one master: the master as the client's engine sees it, with a network between that delays, holds up,
//! loses, repeats and breaks.
//!
//! It keeps what `Master` promises as the library's own connection does: one connection, calls in order, and nothing of an
//! earlier connection after a later one is open. [`Weather`] can be worse than that.

mod alarm;
mod calls;
mod connection;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use quorate::seam::{Call, Ear, Failure, Handshake, Master, Passport, Reply, Value};
use quorate_testkit::Dice;
use tokio::sync::Notify;

use crate::hearing::Hearing;
use crate::history::Time;
use crate::pipe::Pipe;
use crate::process::Process;
use crate::server::Server;
use crate::world::World;

/// How the network behaves on one link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// How long a message takes, at least and at most.
    pub(crate) delay: (Duration, Duration),
    /// How many of a thousand calls are executed twice, the second time later, as behind a proxy that repeats.
    pub(crate) repeated: u64,
    /// How many of a thousand calls are overtaken by later ones.
    pub(crate) overtaken: u64,
}

/// A client's way to one master.
pub(crate) struct Link {
    name: Arc<str>,
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
    pub(crate) server: Arc<Server>,
    dice: Dice,
    state: Mutex<State>,
    handshake: OnceLock<Handshake>,
    /// Told when it is up.
    up: Notify,
    pub(crate) hearing: Hearing,
}

struct State {
    phase: Phase,
    /// The number of the connection that is open, or being opened.
    connection: u64,
    /// The last connection that the server knows: nothing of an earlier one is executed any more.
    known: u64,
    /// A call was not answered in time.
    silent: bool,
    failures: u32,
    weather: Weather,
    /// What the master knows the connection by that is open.
    passport: Passport,
    calls: BTreeMap<u64, Flying>,
    /// When it looks at the time next.
    alarm: Option<Time>,
    count: u64,
    /// What is on its way to the master, and back.
    there: Pipe<u64>,
    back: Pipe<(u64, Answer)>,
}

/// A master's time, where it knows the connection, and its answer.
type Answer = (Option<u64>, Result<Value, Failure>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Opening,
    Up,
    Down,
}

/// A call that was not answered yet.
struct Flying {
    call: Call,
    /// `None` when its time was up.
    reply: Option<Reply>,
    /// When its time is up; `None` when that was told.
    until: Option<Time>,
    sent: bool,
}

impl Link {
    pub(crate) fn new(
        world: &Arc<World>,
        process: &Arc<Process>,
        server: &Arc<Server>,
        weather: Weather,
    ) -> Arc<Self> {
        let number = (process.number * 100 + server.number) as u64;
        let state = State {
            phase: Phase::Idle,
            connection: 0,
            known: 0,
            silent: false,
            failures: 0,
            weather,
            passport: Passport::default(),
            calls: BTreeMap::new(),
            alarm: None,
            count: 0,
            there: Pipe::new(),
            back: Pipe::new(),
        };
        Arc::new(Self {
            name: format!("sim://m{}", server.number).into(),
            world: world.clone(),
            process: process.clone(),
            server: server.clone(),
            dice: world.dice("link", number),
            state: Mutex::new(state),
            handshake: OnceLock::new(),
            up: Notify::new(),
            hearing: Hearing::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next message takes.
    pub(crate) fn delay(&self) -> Duration {
        let (from, to) = self.state().weather.delay;
        self.dice.time(from, to)
    }

    pub(crate) fn change_weather(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.state().weather);
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        self.world.note(|| format!("c{} m{}  {}", self.process.number, self.server.number, what()));
    }

    /// Hands on what has arrived, in both directions.
    pub(crate) fn pump(self: &Arc<Self>) {
        let now = self.world.now();
        while let Some(id) = {
            let mut state = self.state();
            state.there.pop(now)
        } {
            self.arrive(id, false);
        }
        while let Some((id, answer)) = {
            let mut state = self.state();
            state.back.pop(now)
        } {
            let link = self.clone();
            self.process.deliver(move || link.answer(id, answer));
        }
        self.hearing.pump(self);
    }

    /// Nothing gets through in these directions, or everything does again.
    pub(crate) fn block(self: &Arc<Self>, there: bool, back: bool) {
        {
            let mut state = self.state();
            (state.there.blocked, state.back.blocked) = (there, back);
        }
        self.pump();
    }

    pub(crate) fn is_blocked(&self) -> bool {
        let state = self.state();
        state.there.blocked || state.back.blocked
    }
}

/// A link as the engine sees it.
#[derive(Debug)]
pub(crate) struct Way(pub(crate) Arc<Link>);

impl Master for Way {
    fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    fn introduce(&self, handshake: Handshake) {
        let _ = self.0.handshake.set(handshake); // it is told once
    }

    fn call(&self, call: Call, reply: Reply) {
        self.0.take(call, reply);
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move {
            loop {
                let told = link.up.notified();
                let (is_idle, is_up) = {
                    let state = link.state();
                    (state.phase == Phase::Idle, state.phase == Phase::Up && !state.silent)
                };
                if is_up {
                    return;
                }
                if is_idle {
                    link.open();
                }
                told.await;
            }
        }
        .boxed()
    }

    fn listen(&self, channel: Arc<str>, ear: Ear) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move {
            let _listening = Hearing::begin(&link, channel, ear);
            std::future::pending().await
        }
        .boxed()
    }
}

/// When a message that is sent now arrives.
pub(crate) fn arrival(link: &Link) -> Time {
    link.world.now() + link.delay()
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name).finish()
    }
}
