//! Drives the library's link: does what it asks for, and hands in what arrives and what time it is.

use std::sync::Arc;
use std::time::Duration;

use quorate::seam::{
    Delivery, Failure, Handshake, Hello, HelloOutcome, LinkState, Message, Reach, SessionHeader, Value,
};
use quorate_history::{OutOfReach, Time};
use tokio::time::Instant;

use super::Link;
use super::network::{Greeting, Request, RequestKind};
use crate::client::process_name;

impl Link {
    /// Changes the link, tells callers, and does what the link wants then. To be called when the
    /// process runs.
    pub(super) fn with(self: &Arc<Self>, change: impl FnOnce(&mut LinkState, Instant)) {
        let mut deliveries = Vec::new();
        let takes_up_handshake = {
            let mut state = self.state();
            let before = state.link.reach().clone();
            change(&mut state.link, self.world.time.instant());
            if self.handshake.get().is_some_and(Handshake::is_outdated) {
                state.link.renew_handshake();
            }
            state.link.take_deliveries(&mut deliveries);
            self.note_reach(&before, &state);
            state.link.takes_up_handshake()
        };
        deliveries.into_iter().for_each(Delivery::deliver);
        if takes_up_handshake {
            self.ask_to_be_known();
        }
        self.send_soon();
        self.leave();
        self.set_timers();
    }

    /// Sends what there is to send after the current task's turn, so that its calls leave together.
    fn send_soon(self: &Arc<Self>) {
        {
            let mut state = self.state();
            if !state.link.is_open() || std::mem::replace(&mut state.sends_soon, true) {
                return;
            }
        }
        let link = self.clone();
        self.world.at(self.world.now(), move || {
            let its = link.clone();
            link.process.does(move || its.send());
        });
    }

    /// Records changes of state, and when callers learn that the master does not answer.
    fn note_reach(&self, before: &Reach, state: &super::LinkContext) {
        let reach = state.link.reach();
        if reach == before {
            return;
        }
        self.note(|| format!("is {reach:?}"));
        match reach {
            Reach::Up => self.up.notify_waiters(),
            Reach::Silent => {
                let asked = state.network.oldest_question();
                let process = process_name(self.process.number);
                let master = self.server.number;
                let at = self.world.now();
                let found = OutOfReach { process, master, asked, at };
                self.world.recorder.with(|history| history.out_of_reach.push(found));
            }
            _ => {}
        }
    }

    /// Puts everything on its way that is to be sent.
    fn send(self: &Arc<Self>) {
        self.state().sends_soon = false;
        let mut unwanted = Vec::new();
        loop {
            let request = {
                let mut state = self.state();
                let now = self.world.now();
                let header = state.header.clone();
                let next = |message: Message<'_>| self.request(message, now, header);
                let request = state.link.send_next(self.world.time.instant(), next);
                state.link.take_deliveries(&mut unwanted);
                request
            };
            let Some(request) = request else { break };
            self.transmit(request);
        }
        unwanted.into_iter().for_each(Delivery::deliver);
    }

    fn request(&self, message: Message<'_>, now: Time, header: SessionHeader) -> Request {
        match message {
            Message::Ask(_) => unreachable!("handshakes have requests of their own"),
            Message::Look => Request { asked: None, header, task: RequestKind::Look },
            Message::Ping => Request { asked: Some(now), header, task: RequestKind::Ping },
            Message::Evaluate { script, calls, .. } => {
                let asked = calls.iter().filter(|pending| pending.is_vote());
                let asked =
                    asked.filter_map(|pending| pending.asked().map(|at| self.world.time.time_of(at))).min();
                let calls = calls.iter().map(|pending| pending.call().clone()).collect();
                Request { asked, header, task: RequestKind::Calls(script, calls) }
            }
        }
    }

    /// Leaves a connection that the link does not want any more.
    fn leave(self: &Arc<Self>) {
        let is_left = {
            let state = self.state();
            !state.link.is_open() && !state.link.is_opening() && state.network.is_connected
        };
        if is_left {
            self.disconnect();
        }
    }

    /// Looks at the link when it wants to be looked at. After the process stood still it reads what
    /// there is to read before.
    fn set_timers(self: &Arc<Self>) {
        let (opens, rings) = {
            let mut state = self.state();
            let time_of = |at: Option<Instant>| at.map(|at| self.world.time.time_of(at));
            let opens = time_of(state.link.opens_at());
            let rings = time_of(state.link.alarm());
            let is_new =
                (opens != state.opens, rings.is_some_and(|at| state.rings.is_none_or(|set| at < set)));
            state.opens = opens;
            if is_new.1 {
                state.rings = rings;
            }
            (opens.filter(|_| is_new.0), rings.filter(|_| is_new.1))
        };
        if let Some(at) = opens {
            let link = self.clone();
            self.world.at(at, move || {
                let its = link.clone();
                link.process.does(move || its.open(at));
            });
        }
        if let Some(at) = rings {
            let link = self.clone();
            self.world.at(at, move || {
                let its = link.clone();
                link.process.alarm(move || its.ring(at));
            });
        }
    }

    fn ring(self: &Arc<Self>, set: Time) {
        {
            let mut state = self.state();
            if state.rings != Some(set) {
                return; // it was set to an earlier time
            }
            state.rings = None;
        }
        let was_opening = self.state().link.is_opening();
        self.with(LinkState::tick);
        if was_opening && !self.state().link.is_opening() {
            self.note_not_opened(&Failure::Unreachable("it took too long to connect".into()));
        }
    }

    /// Opens a connection: its first message makes the master forget the one before, and is the
    /// question of a handshake.
    fn open(self: &Arc<Self>, set: Time) {
        {
            let mut state = self.state();
            if state.opens != Some(set) {
                return;
            }
            state.opens = None;
            let now = self.world.time.instant();
            if self.handshake.get().is_some_and(Handshake::has_left) {
                state.link.put_off(now);
            } else {
                state.link.opening(now);
            }
            if state.link.is_opening() {
                state.network.connect();
            }
        }
        if self.state().link.is_opening() {
            self.ask_to_be_known();
        }
        self.set_timers();
    }

    fn ask_to_be_known(self: &Arc<Self>) {
        let is_new = self.server.redis.is_whole();
        self.greet_with(self.handshake.get().map(|handshake| handshake.hello(is_new)), is_new);
    }

    fn greet_with(self: &Arc<Self>, hello: Option<Hello>, is_new: bool) {
        self.transmit(Request {
            asked: None,
            header: SessionHeader::default(),
            task: RequestKind::Hello(hello, is_new),
        });
    }

    /// The answer to a message of the handshake; `was_new` tells what the master was taken for.
    pub(super) fn greeted(self: &Arc<Self>, greeted: Option<(&Hello, Greeting)>, was_new: bool) {
        let outcome = match (self.handshake.get(), greeted) {
            (Some(handshake), Some((hello, answer))) => handshake.outcome(hello, answer),
            _ => HelloOutcome::Known(SessionHeader::default()),
        };
        match outcome {
            HelloOutcome::Known(header) => {
                let is_known = self.handshake.get().is_some();
                self.state().header = header;
                self.server.is_known_to(self.process.number);
                self.with(
                    |link, now| {
                        if link.is_open() { link.greeted() } else { link.opened(is_known, now) }
                    },
                );
            }
            HelloOutcome::Ask(next) => self.greet_with(Some(next), was_new),
            HelloOutcome::Again(_) => self.ask_again(None),
            HelloOutcome::Hear(news, _) => self.ask_again(Some(news)),
            HelloOutcome::Refused(why) => {
                if self.state().link.is_open() {
                    self.with(|link, now| link.not_greeted(why, now));
                } else {
                    self.not_opened(why);
                }
            }
        }
    }

    /// The connection could not be opened.
    pub(super) fn not_opened(self: &Arc<Self>, why: Failure) {
        self.note_not_opened(&why);
        let is_no_member = self.handshake.get().is_some_and(Handshake::is_no_member);
        self.with(|link, now| {
            let was_opening = link.is_opening();
            link.not_opened(why, now);
            if was_opening && is_no_member {
                link.put_off(now);
            }
        });
    }

    fn note_not_opened(&self, why: &Failure) {
        if let Some(handshake) = self.handshake.get() {
            handshake.not_opened(why);
        }
    }

    /// Asks once more when it is known what time it is, or more than these news of the masters. The
    /// link gives an attempt up that takes long.
    fn ask_again(self: &Arc<Self>, news: Option<u64>) {
        let Some(handshake) = self.handshake.get().cloned() else { return };
        let connection = self.state().network.connection();
        let link = self.clone();
        self.process.run(async move {
            match news {
                None => handshake.until_time_is_known().await,
                Some(news) => handshake.until_more_is_heard(news).await,
            }
            if link.state().network.connection() == connection {
                link.ask_to_be_known();
            }
        });
    }

    /// The reply to the oldest message.
    pub(super) fn answered(self: &Arc<Self>, task: &RequestKind, reply: Result<Value, String>) {
        self.with(|link, now| link.answered(reply, now));
        if task.is_extension() {
            // The lease may be longer as soon as the engine has run.
            let world = self.world.clone();
            let client = self.process.number;
            self.world.after(Duration::from_millis(1), move || world.recorder.note_deadlines(client));
        }
    }
}
