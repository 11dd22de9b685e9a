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
//! What is posted waits in Idle and Connecting only, each call within its own time-out. In Silent and Down callers hear at
//! once.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::sync::{Notify, watch};

use super::call::{Call, Overdue, Reply, Terms};
use super::carry::Carrier;
use super::muffle::Muffle;
use super::post::{Expired, Letter, Post, now};
use super::session::{self, Driver, Identity, Roster, Session};
use super::{Address, Dialler, Failure, Script};
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::random::Random;
use crate::trust::Handshake;
use crate::vote::Silence;

/// How long one attempt to connect and log in may take: three times the second after which a lost SYN is sent again.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// How long a silent connection is kept. While it stands, what was sent on it is cleaned up in order behind it.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// A connection that lived this long was sound, as was one that answered a call: the next one is opened at once, and
/// callers wait for it.
const SOUND: Duration = Duration::from_secs(1);

/// Delays between attempts to connect: quick enough to be back within a lease, a second at most however long it takes.
pub(super) const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

const BROKE: &str = "the connection broke";

const DOES_NOT_ANSWER: &str = "it does not answer";

/// What is known of the connection.
#[derive(Debug)]
enum State {
    /// Nobody has called yet.
    Idle,
    /// It is being opened, and nothing is known against it.
    Connecting,
    /// It is open, and answers.
    Up,
    /// It is open, and a call on it was not answered in time.
    Silent,
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
    desk: Mutex<Desk>,
    /// Whether it is up.
    up: watch::Sender<bool>,
    /// Wakes whoever carries what is posted.
    carrier: AtomicWaker,
    /// Told when the connection is first wanted.
    wanted: Notify,
    /// Told when a call was not answered in time.
    overdue: Notify,
    /// Told when the alarm is to ring sooner.
    sooner: Notify,
    /// How long a master may be silent before it counts as out of reach, for every caller. A caller with less time only
    /// speaks for itself.
    patience: Duration,
}

#[derive(Debug)]
struct Desk {
    state: State,
    post: Post,
}

/// What the supervisor needs to open a session.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) address: Address,
    pub(crate) dialler: Dialler,
    pub(crate) scripts: &'static [&'static Script],
    /// How its connections make themselves known, once that was told.
    pub(crate) handshake: OnceLock<Handshake>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// How long a master may be silent before it counts as out of reach.
    pub(crate) patience: Duration,
}

impl Link {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            desk: Mutex::new(Desk { state: State::Idle, post: Post::default() }),
            up: watch::Sender::new(false),
            carrier: AtomicWaker::new(),
            wanted: Notify::new(),
            overdue: Notify::new(),
            sooner: Notify::new(),
            patience,
        }
    }

    /// Takes a call, to be sent in the order of these calls; or answers at once where the master is out of reach. A silent
    /// one still takes clean-ups, for what they undo was sent to it.
    pub(crate) fn call(&self, call: Call, reply: Reply) {
        let mut desk = self.desk();
        let out_of_reach = match (&desk.state, call.terms) {
            (State::Down(why), _) => Some(why.clone()),
            (State::Silent, Terms::Vote { .. }) => Some(DOES_NOT_ANSWER.into()),
            _ => None,
        };
        if let Some(why) = out_of_reach {
            drop(desk);
            return reply.tell(Err(Failure::Unreachable(why)));
        }
        if desk.post.push(Letter::new(call, reply)) {
            self.sooner.notify_one();
        }
        match desk.state {
            State::Idle => self.want(&mut desk),
            _ => self.carrier.wake(),
        }
    }

    /// Resolves when the master is connected and answers.
    pub(crate) async fn ready(&self) {
        {
            let mut desk = self.desk();
            if matches!(desk.state, State::Idle) {
                self.want(&mut desk);
            }
        }
        // The sender lives in `self`, so this cannot fail while `self` is borrowed.
        let _ = self.up.subscribe().wait_for(|up| *up).await;
    }

    fn want(&self, desk: &mut Desk) {
        desk.state = State::Connecting;
        self.wanted.notify_one();
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is posted, for its carrier.
    pub(super) fn with_post<T>(&self, look: impl FnOnce(&mut Post) -> T) -> T {
        look(&mut self.desk().post)
    }

    /// Goes over to another state, if `from` allows. What can be sent no more is answered.
    fn go(&self, to: State, from: impl FnOnce(&State) -> bool) {
        let unsent = {
            let mut desk = self.desk();
            if !from(&desk.state) {
                return;
            }
            self.up.send_replace(matches!(to, State::Up));
            let unsent = match &to {
                State::Down(why) => Some((desk.post.take_waiting(|_| true), why.clone())),
                State::Silent => Some((desk.post.take_waiting(Letter::is_vote), DOES_NOT_ANSWER.into())),
                _ => None,
            };
            desk.state = to;
            unsent
        };
        if let Some((letters, why)) = unsent {
            letters.into_iter().for_each(|letter| letter.tell(Err(Failure::Unreachable(why.clone()))));
        }
    }

    fn fall_silent(&self) {
        self.go(State::Silent, |state| matches!(state, State::Up));
    }

    /// It took so long to open the connection: those that come next do not wait for it.
    fn not_opened_in(&self, time: Duration) {
        let why = format!("no connection within {time:?}").into();
        self.go(State::Down(why), |state| matches!(state, State::Connecting));
    }

    /// The connection is gone, and with it the answers to what was sent.
    fn lose_sent(&self, why: &str) {
        let lost = Failure::Unknown(Silence::ConnectionLost(why.into()));
        let sent = self.with_post(Post::take_sent);
        sent.into_iter().for_each(|letter| letter.tell(Err(lost.clone())));
    }

    /// Tells those whose time is up, for ever.
    async fn watch_the_clock(&self) {
        loop {
            match self.with_post(|post| post.alarm()) {
                Some(alarm) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(alarm) => {
                            tokio::task::yield_now().await; // whatever is there is read before
                            self.ring();
                        }
                        () = self.sooner.notified() => {}
                    }
                }
                None => self.sooner.notified().await,
            }
        }
    }

    /// Where a call had as much time as the master is given by everybody, the next callers do not wait until it has caught
    /// up; otherwise the supervisor finds out.
    fn ring(&self) {
        let Expired { unsent, unanswered, overdue } = self.with_post(|post| post.expire(now()));
        let longest = unsent.iter().map(Letter::timeout).max();
        for letter in unsent {
            let why = format!("it could be sent nothing within {:?}", letter.timeout()).into();
            letter.tell(Err(Failure::Unreachable(why)));
        }
        if let Some(time) = longest.filter(|time| *time >= self.patience) {
            self.not_opened_in(time);
        }
        if !unanswered.is_empty() || !overdue.is_empty() {
            self.overdue.notify_one();
        }
        if unanswered.iter().any(|(_, time)| *time >= self.patience) {
            self.fall_silent();
        }
        overdue.into_iter().for_each(Overdue::tell);
        unanswered.into_iter().for_each(|(reply, _)| reply.tell(Err(Failure::Unknown(Silence::TimedOut))));
    }

    /// Keeps the connection, until `self` is dropped.
    pub(crate) async fn supervise(&self, parts: &Parts) {
        // In this order: an answer that is there counts, even if this process stood still until its time was up.
        tokio::join!(biased; self.keep(parts), self.watch_the_clock());
    }

    /// Nobody supervises it any more.
    pub(crate) fn close(&self) {
        let why = "the client was shut down";
        self.go(State::Down(why.into()), |_| true);
        self.lose_sent(why);
    }

    async fn keep(&self, parts: &Parts) {
        self.wanted.notified().await;
        let master = &**parts.address.name();
        let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
        let mut predecessor: Option<Identity> = None;
        loop {
            let (next, why) = match self.open(parts, predecessor.as_ref()).await {
                Ok((session, driver)) => {
                    tracing::debug!(master, "connected");
                    predecessor = session.identity().cloned().or(predecessor);
                    self.go(State::Up, |_| true);
                    let began = parts.clock.now();
                    let (next, why) = self.serve(&session, driver).await;
                    self.lose_sent(&why);
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
                Next::MayBeWell => self.go(State::Connecting, |_| true),
                Next::KnownDead => {
                    self.go(State::Down(why.into()), |_| true);
                    tokio::time::sleep(backoff.delay(parts.random.next_u64())).await;
                }
            }
        }
    }

    /// Opens a connection. While that takes long, callers do not wait for it.
    async fn open(&self, parts: &Parts, predecessor: Option<&Identity>) -> Result<(Session, Driver), String> {
        let session = session::open(parts, predecessor);
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

    /// Carries calls on an open connection until it is lost, and says how. Dropping its driver fails every call in flight.
    async fn serve(&self, session: &Session, driver: Driver) -> (Next, String) {
        let broke = |why: &str| (Next::MayBeWell, why.to_owned());
        let mut carried = pin!(self.carry(session, driver));
        loop {
            tokio::select! {
                why = &mut carried => return broke(why),
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
                why = &mut carried => return broke(why),
                answered = probe => if !answered { return broke(BROKE) },
                () = tokio::time::sleep(SILENCE_LIMIT) => {
                    return (Next::KnownDead, format!("it has not answered for {SILENCE_LIMIT:?}"));
                }
            }
            self.go(State::Up, |_| true);
        }
    }

    /// Moves bytes, calls and answers until the connection is lost, or of no use any more, and says why.
    async fn carry(&self, session: &Session, mut driver: Driver) -> &'static str {
        let mut carrier = Carrier::new(self, session);
        let muffle = Arc::new(Muffle::default());
        let waker = Waker::from(muffle.clone());
        poll_fn(|context| {
            self.carrier.register(context.waker());
            muffle.register(context.waker());
            loop {
                if driver.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    return Poll::Ready(BROKE);
                }
                // What was sent wakes the driver, which writes it.
                let goes_on = muffle.while_muffled(|| carrier.step());
                if carrier.is_unknown() {
                    return Poll::Ready("it lost keys, or restarted, under this connection");
                }
                if !goes_on {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}
