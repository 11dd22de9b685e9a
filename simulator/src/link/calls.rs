//! Calls on their way to the master, and answers on their way back.

use std::sync::Arc;

use quorate::seam::{Call, Failure, Reply, Terms, Value};
use std::time::Duration;

use super::connection::Sender;
use super::words::{describe, tell};
use super::{Answer, Flying, Link, Phase};

impl Link {
    /// Takes a call, as the library's connection does.
    pub(super) fn take(self: &Arc<Self>, call: Call, reply: Reply) {
        if self.process.is_dead() {
            return std::mem::forget(reply); // nobody is there to hear of it
        }
        let until = self.world.now() + timeout(call.terms);
        let id = {
            let mut state = self.state();
            let is_vote = matches!(call.terms, Terms::Vote { .. });
            if state.phase == Phase::Down || (state.silent && is_vote) {
                drop(state);
                return reply.tell(Err(Failure::Unreachable("it does not answer".into())));
            }
            state.count += 1;
            let id = state.count;
            let until = Some(until);
            state.calls.insert(id, Flying { call, reply: Some(reply), until, sent: false });
            id
        };
        self.set_alarm(until);
        let phase = self.state().phase;
        match phase {
            Phase::Idle => self.open(),
            Phase::Up => self.send(id),
            Phase::Opening | Phase::Down => {}
        }
    }

    /// Puts a call on its way, unless nobody wants it any more.
    pub(super) fn send(self: &Arc<Self>, id: u64) {
        let unwanted = {
            let mut state = self.state();
            let Some(flying) = state.calls.get_mut(&id) else { return };
            let wanted = flying.reply.as_ref().is_some_and(Reply::is_wanted);
            flying.sent = wanted;
            if wanted { None } else { state.calls.remove(&id) }
        };
        if let Some(Flying { reply, .. }) = unwanted {
            if let Some(reply) = reply {
                reply.tell(Err(Failure::Unreachable("it was given up before it could be sent".into())));
            }
            return;
        }
        let (delay, weather) = (self.delay(), self.state().weather);
        if self.dice.happens(weather.repeated) {
            self.send_again(id);
        }
        if self.dice.happens(weather.overtaken) {
            let link = self.clone();
            return self.world.after(delay * 3, move || link.arrive(id, true));
        }
        let arrives = self.state().there.push(self.world.now() + delay, id);
        let link = self.clone();
        self.world.at(arrives, move || link.pump());
    }

    /// The same call once more, later, and nobody hears of it.
    fn send_again(self: &Arc<Self>, id: u64) {
        let (call, passport) = {
            let state = self.state();
            let Some(flying) = state.calls.get(&id) else { return };
            (flying.call.clone(), state.passport.clone())
        };
        let link = self.clone();
        self.world.after(self.delay() + self.dice.millis(1, 100), move || {
            let its = link.clone();
            let _ = link.server.take(move || {
                its.note(|| format!("executes a second time: {}", describe(&call)));
                let _ = its.server.run(&call, &passport, true);
            });
        });
    }

    /// A call arrives at the master, which may do it much later.
    pub(super) fn arrive(self: &Arc<Self>, id: u64, late: bool) {
        let (call, sender) = {
            let state = self.state();
            let Some(flying) = state.calls.get(&id) else { return };
            (flying.call.clone(), state.sender())
        };
        let link = self.clone();
        // A master that is down has broken the connection.
        let _ = self.server.take(move || {
            let is_open = link.state().calls.contains_key(&id);
            if is_open { link.execute(id, &call, late) } else { link.execute_late(&call, &sender) }
        });
    }

    fn execute(self: &Arc<Self>, id: u64, call: &Call, late: bool) {
        let passport = self.state().passport.clone();
        let answer = self.server.run(call, &passport, late);
        self.note(|| format!("executes {} -> {}", describe(call), tell(&answer.1)));
        let delay = self.delay();
        let arrives = self.state().back.push(self.world.now() + delay, (id, answer));
        let link = self.clone();
        self.world.at(arrives, move || link.pump());
    }

    pub(super) fn execute_late(&self, call: &Call, sender: &Sender) {
        if self.state().known <= sender.connection {
            self.note(|| format!("executes late: {}", describe(call)));
            let _ = self.server.run(call, &sender.passport, true);
        }
    }

    /// An answer arrives at the client.
    pub(super) fn answer(self: &Arc<Self>, id: u64, (time, answer): Answer) {
        let (flying, is_unknown) = {
            let mut state = self.state();
            if std::mem::take(&mut state.silent) {
                self.up.notify_waiters();
            }
            state.failures = 0;
            let is_guarded = self.handshake.get().is_some();
            let is_unknown = is_guarded && time.is_none() && state.phase == Phase::Up && answer.is_ok();
            (state.calls.remove(&id), is_unknown)
        };
        if let Some(Flying { call, reply: Some(reply), .. }) = flying {
            self.tell(&call, reply, answer, time);
        }
        if is_unknown {
            self.lose("it lost keys under this connection", Phase::Opening);
        }
    }

    fn tell(&self, call: &Call, reply: Reply, answer: Result<Value, Failure>, time: Option<u64>) {
        reply.tell_at(answer, time);
        if call.words.args().next() == Some("extend") {
            // The lease may be longer as soon as the engine has run.
            let (world, client) = (self.world.clone(), self.process.number);
            self.world.after(Duration::from_millis(1), move || world.recorder.note_deadlines(client));
        }
    }
}

fn timeout(terms: Terms) -> Duration {
    let (Terms::Vote { timeout } | Terms::CleanUp { timeout }) = terms;
    timeout
}
