//! What is not answered in time, and what follows from that.

use std::sync::Arc;
use std::time::Duration;

use quorate::Silence;
use quorate::seam::{Failure, Reply, Terms};

use super::{Link, Phase};
use crate::history::Time;

/// How long a silent connection is kept.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

impl Link {
    /// Looks at the time when that of a call is up; one look is for all.
    pub(super) fn set_alarm(self: &Arc<Self>, rings: Time) {
        {
            let mut state = self.state();
            if state.alarm.is_some_and(|alarm| alarm <= rings) {
                return;
            }
            state.alarm = Some(rings);
        }
        let link = self.clone();
        self.world.at(rings, move || {
            let its = link.clone();
            link.process.alarm(move || its.look_at_the_time(rings));
        });
    }

    fn look_at_the_time(self: &Arc<Self>, rings: Time) {
        let due: Vec<u64> = {
            let mut state = self.state();
            if state.alarm != Some(rings) {
                return; // it was set to an earlier time
            }
            state.alarm = None;
            let now = self.world.now();
            let due =
                state.calls.iter_mut().filter(|(_, flying)| flying.until.is_some_and(|until| until <= now));
            due.map(|(id, flying)| {
                flying.until = None;
                *id
            })
            .collect()
        };
        due.into_iter().for_each(|id| self.time_is_up(id));
        let next = self.state().calls.values().filter_map(|flying| flying.until).min();
        next.into_iter().for_each(|next| self.set_alarm(next));
    }

    /// A call was not answered in time.
    fn time_is_up(self: &Arc<Self>, id: u64) {
        let mut state = self.state();
        let Some(flying) = state.calls.get_mut(&id) else { return };
        if let Terms::CleanUp { .. } = flying.call.terms {
            let overdue = flying.reply.as_ref().map(Reply::overdue);
            let sent = flying.sent;
            drop(state);
            if sent {
                self.fall_silent();
            }
            return overdue.into_iter().for_each(quorate::seam::Overdue::tell);
        }
        let (reply, sent) = (flying.reply.take(), flying.sent);
        if !sent {
            state.calls.remove(&id);
        }
        drop(state);
        let failure = if sent {
            self.fall_silent();
            Failure::Unknown(Silence::TimedOut)
        } else {
            Failure::Unreachable("it could be sent nothing in time".into())
        };
        reply.into_iter().for_each(|reply| reply.tell(Err(failure.clone())));
    }

    /// What was sent is not answered: those that come next do not wait for it.
    fn fall_silent(self: &Arc<Self>) {
        let connection = {
            let mut state = self.state();
            if state.phase != Phase::Up || std::mem::replace(&mut state.silent, true) {
                return;
            }
            state.connection
        };
        self.note(|| "is silent".to_owned());
        let link = self.clone();
        self.world.after(SILENCE_LIMIT, move || {
            let is_silent = {
                let state = link.state();
                state.silent && state.connection == connection
            };
            if is_silent {
                link.lose("it has not answered for too long", Phase::Down);
            }
        });
    }
}
