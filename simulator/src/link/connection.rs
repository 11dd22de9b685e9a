//! The connection: how it is opened, and how it is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate::Silence;
use quorate::seam::{Call, Failure, Passport, Question, Reply, Sight, Value, Welcome};

use super::words::tell;
use super::{Flying, Link, Phase, State};

/// Who made a call: a connection, and what its master knew it by.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) connection: u64,
    pub(super) passport: Passport,
}

impl State {
    pub(super) fn sender(&self) -> Sender {
        Sender { connection: self.connection, passport: self.passport.clone() }
    }
}

/// How long a client waits for a connection, or an answer, before the master counts as out of reach.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long after a failure it is tried to connect again, at least and at most.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

impl Link {
    /// The connection breaks. What is on its way is lost, or arrives late, while the client does not know of it.
    pub(crate) fn break_off(self: &Arc<Self>) {
        if matches!(self.state().phase, Phase::Up | Phase::Opening) {
            let next = if self.server.is_up() { Phase::Opening } else { Phase::Down };
            self.lose("the connection broke", next);
        }
        self.hearing.break_off(self);
    }

    /// The connection is gone. Those that wait to be sent wait on, if another one is opened at once.
    pub(super) fn lose(self: &Arc<Self>, why: &'static str, next: Phase) {
        self.note(|| why.to_owned());
        let (late, sender, sent, posted) = {
            let mut state = self.state();
            let sender = state.sender();
            (state.phase, state.silent) = (next, false);
            state.back.empty().for_each(drop);
            let on_the_way: Vec<u64> = state.there.empty().collect();
            let late =
                on_the_way.iter().filter_map(|id| state.calls.get(id)).map(|flying| flying.call.clone());
            let late: Vec<Call> = late.collect();
            let (sent, posted): (BTreeMap<_, _>, BTreeMap<_, _>) =
                std::mem::take(&mut state.calls).into_iter().partition(|(_, flying)| flying.sent);
            match next {
                Phase::Opening => {
                    state.calls = posted;
                    (late, sender, sent, BTreeMap::new())
                }
                _ => (late, sender, sent, posted),
            }
        };
        self.leave_late(late, sender);
        self.tell_lost(sent, Failure::Unknown(Silence::ConnectionLost(why.into())));
        self.tell_lost(posted, Failure::Unreachable(why.into()));
        match next {
            Phase::Opening => self.open(),
            _ => self.open_later(),
        }
    }

    /// Half of what was on its way is executed all the same, in order, unless the next connection is there first.
    fn leave_late(self: &Arc<Self>, late: Vec<Call>, sender: Sender) {
        let mut delay = self.delay();
        for call in late {
            if self.dice.happens(500) {
                continue;
            }
            delay += self.dice.millis(0, 20);
            let (link, sender) = (self.clone(), sender.clone());
            self.world.after(delay, move || {
                let its = link.clone();
                let _ = link.server.take(move || its.execute_late(&call, &sender));
            });
        }
    }

    fn tell_lost(self: &Arc<Self>, lost: BTreeMap<u64, Flying>, failure: Failure) {
        let replies: Vec<Reply> = lost.into_values().filter_map(|flying| flying.reply).collect();
        self.process.deliver(move || replies.into_iter().for_each(|reply| reply.tell(Err(failure.clone()))));
    }

    /// Opens a connection: its first message makes the server forget the one before, and is the question of a handshake.
    pub(super) fn open(self: &Arc<Self>) {
        self.state().phase = Phase::Opening;
        let link = self.clone();
        self.process.does(move || {
            let (its, connection) = (link.clone(), link.send_first_message());
            link.world.after(PATIENCE, move || {
                let process = its.process.clone();
                process.does(move || its.give_up(connection));
            });
        });
    }

    fn send_first_message(self: &Arc<Self>) -> u64 {
        let connection = {
            let mut state = self.state();
            state.connection += 1;
            state.connection
        };
        self.ask_to_be_known(connection);
        connection
    }

    fn ask_to_be_known(self: &Arc<Self>, connection: u64) {
        let is_new = self.server.redis.is_whole();
        let sight = if is_new { Sight::New } else { Sight::Nothing };
        let question = self.handshake.get().map(|handshake| handshake.question(sight));
        let (link, delay) = (self.clone(), self.delay());
        self.world.after(delay, move || {
            // What is known of a process is not said to the next one.
            if is_new == link.server.redis.is_whole() {
                link.knock(connection, question);
            } else {
                link.give_up(connection);
            }
        });
    }

    /// The first message of a connection arrives.
    fn knock(self: &Arc<Self>, connection: u64, question: Option<Question>) {
        if self.is_blocked() {
            return; // nothing gets through until it is given up
        }
        let link = self.clone();
        let taken = self.server.take(move || {
            let mut state = link.state();
            state.known = state.known.max(connection);
            drop(state);
            let greeted = question.map(|question| {
                let script = link.handshake.get().expect("it asked").script();
                let answer = link.server.redis.greet(script, &question);
                link.note(|| format!("greets -> {}", tell(&answer)));
                (question, answer)
            });
            let (its, delay) = (link.clone(), link.delay());
            link.world.after(delay, move || its.greeted(connection, greeted));
        });
        if !taken {
            self.give_up(connection);
        }
    }

    /// The answer to the first message arrives.
    fn greeted(self: &Arc<Self>, connection: u64, greeted: Option<(Question, Result<Value, Failure>)>) {
        let link = self.clone();
        self.process.deliver(move || {
            let welcome = match (link.handshake.get(), greeted) {
                (Some(handshake), Some((question, answer))) => handshake.answer(&question, answer),
                _ => Welcome::Known(Passport::default()),
            };
            if link.state().connection != connection {
                return;
            }
            match welcome {
                Welcome::Known(passport) => link.opened(connection, passport),
                Welcome::Again => link.ask_to_be_known(connection),
                Welcome::Refused(why) => {
                    link.note(|| format!("is refused: {why}"));
                    link.give_up(connection);
                }
            }
        });
    }

    fn opened(self: &Arc<Self>, connection: u64, passport: Passport) {
        let link = self.clone();
        self.process.deliver(move || {
            let posted: Vec<u64> = {
                let mut state = link.state();
                if state.connection != connection || state.phase == Phase::Up {
                    return;
                }
                (state.phase, state.silent, state.passport) = (Phase::Up, false, passport);
                state.calls.keys().copied().collect()
            };
            link.note(|| "is connected".to_owned());
            posted.into_iter().for_each(|id| link.send(id));
            link.up.notify_waiters();
        });
    }

    /// It took too long to open the connection.
    fn give_up(self: &Arc<Self>, connection: u64) {
        let posted = {
            let mut state = self.state();
            if state.connection != connection || state.phase != Phase::Opening {
                return;
            }
            state.phase = Phase::Down;
            std::mem::take(&mut state.calls)
        };
        self.tell_lost(posted, Failure::Unreachable("no connection in time".into()));
        self.open_later();
    }

    fn open_later(self: &Arc<Self>) {
        let (failures, connection) = {
            let mut state = self.state();
            state.failures += 1;
            state.phase = Phase::Down;
            (state.failures, state.connection)
        };
        let longest = RECONNECT.1.min(RECONNECT.0 * 2_u32.saturating_pow(failures.min(10)));
        let (link, delay) = (self.clone(), self.dice.time(RECONNECT.0, longest));
        self.world.after(delay, move || {
            if link.is_down_since(connection) {
                link.open_in_the_background();
            }
        });
    }

    /// Nobody waits for this attempt.
    fn open_in_the_background(self: &Arc<Self>) {
        let link = self.clone();
        self.process.does(move || link.try_in_the_background());
    }

    fn try_in_the_background(self: &Arc<Self>) {
        let (link, connection) = (self.clone(), self.send_first_message());
        self.world.after(PATIENCE, move || {
            if link.is_down_since(connection) {
                link.open_later();
            }
        });
    }

    /// Whether no attempt after this one has been made, and none succeeded.
    fn is_down_since(&self, connection: u64) -> bool {
        let state = self.state();
        state.phase == Phase::Down && state.connection == connection
    }
}
