//! Writes the history: the results that clients got, and when, in true time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate::fence::FencingToken;
use quorate::{Moment, compat};
use quorate_history::{Call, History, Hold, Lock, Made, Outcome, Pause, Stuck, Time};

use crate::client::{ClientNumber, process_name};
use crate::clocks::ClientClock;

/// What has happened so far.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<RecorderState>);

#[derive(Debug, Default)]
struct RecorderState {
    history: History,
    /// What was written to the resource.
    writes: Vec<Made>,
    /// The guards that are held now, with the numbers of their holds.
    held: Vec<(usize, Arc<Held>)>,
    /// Since when clients stand still.
    still: Vec<(ClientNumber, Time)>,
}

/// A guard that its holder shares with the recorder. The holder takes it out to release it.
#[derive(Debug)]
pub(crate) struct Held {
    client: ClientNumber,
    clock: Arc<ClientClock>,
    guard: Mutex<Option<Arc<compat::UnfencedGuard>>>,
}

impl Held {
    pub(crate) fn new(
        client: ClientNumber,
        clock: Arc<ClientClock>,
        guard: compat::UnfencedGuard,
    ) -> Arc<Self> {
        Arc::new(Self { client, clock, guard: Mutex::new(Some(Arc::new(guard))) })
    }

    /// The guard, while nobody took it out.
    pub(crate) fn guard(&self) -> Option<Arc<compat::UnfencedGuard>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn take(&self) -> Option<compat::UnfencedGuard> {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner).take();
        guard.and_then(Arc::into_inner)
    }

    /// When its lease ends, in true time; `None` when it is over for another reason.
    fn deadline(&self) -> Option<Time> {
        let deadline = self.guard()?.deadline();
        (deadline != Moment::default()).then(|| self.clock.time_of(deadline))
    }

    /// Tells until when its lease stands. Once that is over, the guard does not tell any more.
    fn note_deadline(&self, hold: &mut Hold) {
        hold.deadline = self.deadline().unwrap_or(hold.deadline);
    }
}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An acquire begins.
    pub(crate) fn ask(&self, client: ClientNumber, invoked: Time, acquire: Call) -> usize {
        let mut state = self.state();
        let number = state.history.calls.len();
        let outcome = Outcome::Unknown { why: "it has not returned".to_owned() };
        let process = process_name(client);
        let made = Made { process, number: number as u64, call: acquire, invoked, returned: None, outcome };
        state.history.calls.push(made);
        number
    }

    /// It ends.
    pub(crate) fn answer(&self, acquire: usize, now: Time, outcome: Outcome) {
        let made = &mut self.state().history.calls[acquire];
        (made.returned, made.outcome) = (Some(now), outcome);
    }

    /// A guard was handed out.
    pub(crate) fn grant(&self, acquire: usize, lock: Lock, held: &Arc<Held>, now: Time) -> usize {
        let guard = held.guard();
        let fence = guard.as_ref().and_then(|guard| guard.fencing_token_if_any()).map(FencingToken::get);
        let permit = guard.as_ref().and_then(|guard| guard.permit());
        let owner = guard.map(|guard| guard.owner().to_string()).unwrap_or_default();
        let owner = short_name(&owner, held.client);
        let deadline = held.deadline().unwrap_or_default();
        self.answer(acquire, now, Outcome::Granted { owner: owner.clone(), deadline, fence, permit });
        let mut state = self.state();
        let hold = Hold {
            lock,
            permit,
            owner,
            process: process_name(held.client),
            asked: state.history.calls[acquire].invoked,
            granted: now,
            deadline: Time::ZERO, // noted below
            given_back: None,
            free: None,
            lost: None,
            fence,
        };
        state.history.holds.push(hold);
        let number = state.history.holds.len() - 1;
        state.held.push((number, held.clone()));
        drop(state);
        self.note_deadlines(held.client); // of all, for the lease may be one that the owner had already
        number
    }

    /// Its holder is about to give it back, whether or not that works.
    pub(crate) fn give_back(&self, hold: usize, now: Time) {
        let mut state = self.state();
        let Some(place) = state.held.iter().position(|(number, _)| *number == hold) else { return };
        let (_, held) = state.held.swap_remove(place);
        let hold = &mut state.history.holds[hold];
        held.note_deadline(hold);
        hold.given_back = Some(now);
    }

    /// Its holder learned that it is lost, or over. Returns whether it had not been given back.
    pub(crate) fn lose(&self, hold: usize, now: Time) -> bool {
        let mut state = self.state();
        let held = state.held.iter().find(|(number, _)| *number == hold).map(|(_, held)| held.clone());
        let Some(held) = held else { return false };
        let hold = &mut state.history.holds[hold];
        held.note_deadline(hold);
        hold.lost = Some(now);
        true
    }

    pub(crate) fn pause(&self, client: ClientNumber, now: Time) {
        self.state().still.push((client, now));
    }

    pub(crate) fn resume(&self, client: ClientNumber, now: Time) {
        let mut state = self.state();
        let state = &mut *state;
        state.still.retain(|(still, from)| {
            if *still == client {
                state.history.pauses.push(Pause {
                    process: process_name(client),
                    from: *from,
                    to: Some(now),
                });
            }
            *still != client
        });
    }

    /// A client is killed: whatever it holds ends now.
    pub(crate) fn kill(&self, client: ClientNumber, now: Time) {
        let mut state = self.state();
        let state = &mut *state;
        state.history.pauses.push(Pause { process: process_name(client), from: now, to: None });
        state.held.retain(|(number, held)| {
            if held.client != client {
                return true;
            }
            let hold = &mut state.history.holds[*number];
            held.note_deadline(hold);
            hold.given_back = hold.given_back.or(Some(now));
            false
        });
    }

    /// A client's write, with its token, reached the resource.
    pub(crate) fn write(&self, client: ClientNumber, now: Time, write: Call, accepted: bool) {
        let mut state = self.state();
        let process = process_name(client);
        let number = state.writes.len() as u64;
        let outcome = if accepted { Outcome::Accepted } else { Outcome::Rejected };
        let returned = Some(now);
        state.writes.push(Made { process, number, call: write, invoked: now, returned, outcome });
    }

    /// A client is not done, long after it should have been.
    pub(crate) fn stuck(&self, client: ClientNumber, at: Time) {
        self.state().history.stuck.push(Stuck { process: process_name(client), at });
    }

    /// Adds to the history.
    pub(crate) fn with<T>(&self, add: impl FnOnce(&mut History) -> T) -> T {
        add(&mut self.state().history)
    }

    /// A client tells until when it holds what it holds.
    pub(crate) fn note_deadlines(&self, client: ClientNumber) {
        let mut state = self.state();
        let state = &mut *state;
        for (number, held) in state.held.iter().filter(|(_, held)| held.client == client) {
            held.note_deadline(&mut state.history.holds[*number]);
        }
    }

    /// The history of the run.
    pub(crate) fn finish(&self, end: Time) -> History {
        let RecorderState { mut history, writes, .. } = std::mem::take(&mut *self.state());
        history.calls.extend(writes);
        history.end = end;
        history
    }
}

/// An owner by its client's number, which is easier to read than what the client drew for itself.
pub(crate) fn short_name(owner: &str, client: ClientNumber) -> String {
    let number = owner.rsplit_once(':').map_or(owner, |(_, number)| number);
    format!("c{client}:{number}")
}
