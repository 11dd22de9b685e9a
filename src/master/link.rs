//! The supervisor of one master's connection: opens it when it is first wanted, notices when it breaks or falls
//! silent, and opens it again behind the callers' backs.
//!
//! ```text
//! Idle        --first call-->                 Connecting
//! Connecting  --opened-->                     Up
//! Connecting  --failed, or took too long-->   Down
//! Up          --a call was not answered-->    Silent
//! Up          --broke-->                      Connecting, or Down if it had been of no use
//! Silent      --answered-->                   Up
//! Silent      --for too long-->               Down
//! Down        --opened, in the background-->  Up
//! ```
//! Callers wait in Idle and Connecting only, each within its own time-out. In Silent and Down they hear at once.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::session::{self, Driver, Identity, Roster, Session};
use super::{Address, Dialler, Failure, Script};
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::random::Random;

/// How long one attempt to connect and log in may take: three times the second after which a lost SYN is sent again.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// How long a silent connection is kept. While it stands, what was sent on it is cleaned up in order behind it.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// A connection that lived this long was sound, as was one that answered a call: the next one is opened at once, and
/// callers wait for it.
const SOUND: Duration = Duration::from_secs(1);

/// Delays between attempts to connect: quick enough to be back within a lease, a second at most however long it takes.
pub(super) const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// What is known of the connection.
#[derive(Clone)]
enum State {
    /// Nobody has called yet.
    Idle,
    /// It is being opened, and nothing is known against it.
    Connecting,
    /// It is open, and answers.
    Up(Session),
    /// It is open, and a call on it was not answered in time.
    Silent(Session),
    /// It cannot be opened, and why.
    Down(Arc<str>),
}

/// What to think of a master without a connection.
enum Next {
    /// It closed a connection, as it may: the next one will tell.
    MayBeWell,
    /// It could not be reached, or did not answer: nobody waits for the next attempt.
    KnownDead,
}

/// The connection to one master, shared by its callers and its supervisor.
pub(crate) struct Link {
    state: watch::Sender<State>,
    wanted: Notify,
    overdue: Notify,
    /// Held by the first of those that wait for the connection; the others queue for it, first in, first out.
    order: tokio::sync::Mutex<()>,
    /// How long a master may be silent before it counts as out of reach, for every caller. A caller with less time only
    /// speaks for itself.
    patience: Duration,
}

/// What the supervisor needs to open a session.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) address: Address,
    pub(crate) dialler: Dialler,
    pub(crate) scripts: &'static [&'static Script],
    pub(crate) roster: Arc<Roster>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// How long a master may be silent before it counts as out of reach.
    pub(crate) patience: Duration,
}

impl Link {
    pub(crate) fn new(patience: Duration) -> Self {
        let state = watch::Sender::new(State::Idle);
        Self { state, wanted: Notify::new(), overdue: Notify::new(), order: Default::default(), patience }
    }

    /// The session to send a vote on. Waits while the connection is being opened; a master that is known to be out of
    /// reach answers at once.
    pub(crate) async fn for_vote(&self) -> Result<Session, Failure> {
        self.settled(|state| match state {
            State::Silent(_) => Some(Err(Failure::Unreachable("it does not answer".into()))),
            state => decided(state),
        })
        .await
    }

    /// The session to send a clean-up on: the same, but a silent one will do, for what it undoes was sent on it.
    pub(crate) async fn for_clean_up(&self) -> Result<Session, Failure> {
        self.settled(decided).await
    }

    /// Resolves when the master is connected and answers.
    pub(crate) async fn ready(&self) {
        self.want();
        // The sender lives in `self`, so this cannot fail while `self` is borrowed.
        let _ = self.state.subscribe().wait_for(|state| matches!(state, State::Up(_))).await;
    }

    /// A caller's time was up before the connection was there. If it was long enough, the next callers do not wait.
    pub(crate) fn not_opened_in(&self, timeout: Duration) -> Failure {
        let why: Arc<str> = format!("no connection within {timeout:?}").into();
        if timeout >= self.patience {
            self.state.send_if_modified(|state| {
                let waited = matches!(state, State::Connecting);
                if waited {
                    *state = State::Down(why.clone());
                }
                waited
            });
        }
        Failure::Unreachable(why)
    }

    /// A call was not answered in time. If that was long enough, the next callers do not wait until the master has
    /// caught up; otherwise the supervisor finds out.
    pub(crate) fn unanswered_in(&self, timeout: Duration) {
        if timeout >= self.patience {
            self.fall_silent();
        }
        self.overdue.notify_one();
    }

    fn fall_silent(&self) {
        self.state.send_if_modified(|state| {
            let State::Up(session) = state else { return false };
            *state = State::Silent(session.clone());
            true
        });
    }

    /// Callers that wait go on in the order in which they came, and nobody overtakes them: what they send is in the order
    /// in which it was first polled.
    async fn settled<T>(&self, decide: impl Fn(&State) -> Option<T>) -> T {
        let _turn = match self.order.try_lock() {
            Ok(turn) => turn,
            Err(_) => self.order.lock().await,
        };
        if let Some(decision) = decide(&self.state.borrow()) {
            return decision;
        }
        self.want();
        let mut states = self.state.subscribe();
        loop {
            if let Some(decision) = decide(&states.borrow_and_update()) {
                return decision;
            }
            let _ = states.changed().await; // as in `ready`
        }
    }

    fn want(&self) {
        let woken = self.state.send_if_modified(|state| {
            let idle = matches!(state, State::Idle);
            if idle {
                *state = State::Connecting;
            }
            idle
        });
        if woken {
            self.wanted.notify_one();
        }
    }

    /// Keeps the connection, for ever.
    pub(crate) async fn supervise(&self, parts: &Parts) {
        self.wanted.notified().await;
        let master = &**parts.address.name();
        let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
        let mut predecessor: Option<Identity> = None;
        loop {
            let (next, why) = match self.open(parts, predecessor.as_ref()).await {
                Ok((session, driver)) => {
                    tracing::debug!(master, "connected");
                    predecessor = session.identity().cloned().or(predecessor);
                    self.state.send_replace(State::Up(session.clone()));
                    let began = parts.clock.now();
                    let (next, why) = self.serve(session.clone(), driver).await;
                    let sound = session.has_served() || parts.clock.now().since(began) > SOUND;
                    if sound {
                        backoff.reset();
                    }
                    (if sound { next } else { Next::KnownDead }, why)
                }
                Err(why) => (Next::KnownDead, why),
            };
            tracing::debug!(master, why, "unreachable");
            match next {
                Next::MayBeWell => {
                    self.state.send_replace(State::Connecting);
                }
                Next::KnownDead => {
                    self.state.send_replace(State::Down(why.into()));
                    tokio::time::sleep(backoff.delay(parts.random.next_u64())).await;
                }
            }
        }
    }

    /// Opens a connection. While that takes long, callers do not wait for it.
    async fn open(&self, parts: &Parts, predecessor: Option<&Identity>) -> Result<(Session, Driver), String> {
        let Parts { address, dialler, scripts, roster, .. } = parts;
        let session = session::open(address, dialler, scripts, roster, predecessor);
        let mut opening = pin!(tokio::time::timeout(OPEN_LIMIT, session));
        let opened = match tokio::time::timeout(self.patience, &mut opening).await {
            Ok(opened) => opened,
            Err(_) => {
                self.not_opened_in(self.patience);
                opening.await
            }
        };
        opened.unwrap_or_else(|_| Err(format!("no connection within {OPEN_LIMIT:?}")))
    }

    /// Drives an open connection until it is lost, and says how. Dropping its driver fails every call in flight.
    async fn serve(&self, session: Session, mut driver: Driver) -> (Next, String) {
        let broke = || (Next::MayBeWell, "the connection broke".to_owned());
        loop {
            tokio::select! {
                () = &mut driver => return broke(),
                () = self.overdue.notified() => {}
            }
            let probe = async {
                let mut ping = pin!(session.ping());
                if let Ok(answered) = tokio::time::timeout(self.patience, &mut ping).await {
                    return answered;
                }
                self.fall_silent();
                ping.await
            };
            tokio::select! {
                () = &mut driver => return broke(),
                answered = probe => if !answered { return broke() },
                () = tokio::time::sleep(SILENCE_LIMIT) => {
                    return (Next::KnownDead, format!("it has not answered for {SILENCE_LIMIT:?}"));
                }
            }
            self.state.send_replace(State::Up(session.clone()));
        }
    }
}

/// The session of a connection that stands, answering or not.
fn decided(state: &State) -> Option<Result<Session, Failure>> {
    match state {
        State::Idle | State::Connecting => None,
        State::Up(session) | State::Silent(session) => Some(Ok(session.clone())),
        State::Down(why) => Some(Err(Failure::Unreachable(why.clone()))),
    }
}
