//! A master that is a Redis or Valkey server, and drives the link to it, with tokio: opens its
//! connections, moves its messages and delivers its answers. `state.rs` decides, this file does.

use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::asks::Asks;
use super::contract::{Master, Subscriber};
use super::hello::shake_hands;
use super::listen;
use super::pending::Delivery;
use super::session::{self, Identity, LinkSettings, Session};
use super::state::{LinkState, OPEN_LIMIT, Reach};
use super::transport::Transport;
use crate::executor::Executor;
use crate::set::{Contact, Handshake, SessionHeader};
use crate::sync::{Mutex, MutexGuard};
use crate::wire::{Call, Failure, MasterIndex, resp::Frame};

/// A Redis server: one connection for all calls, kept open, and one for each channel it listens on.
/// Its callers and its I/O task share it.
pub(crate) struct RedisMaster {
    settings: Arc<LinkSettings>,
    state: Mutex<LinkState>,
    /// Whether the master answers, and since when; `None` before the first connection.
    up: watch::Sender<Option<(bool, Instant)>>,
    /// Wakes the I/O task, after a change of the state.
    io_task: AtomicWaker,
    /// Notified when the alarm has become earlier.
    alarm_is_sooner: Notify,
}

impl fmt::Debug for RedisMaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisMaster").field("name", self.name()).finish_non_exhaustive()
    }
}

impl Master for RedisMaster {
    fn name(&self) -> &Arc<str> {
        self.settings.address.name()
    }

    fn introduce(&self, handshake: Handshake) {
        let _ = self.settings.handshake.set(handshake); // called once
    }

    fn call(&self, call: Arc<Call>, index: MasterIndex) {
        self.change_and_deliver(|state| state.call(call, index, now()));
        self.io_task.wake();
    }

    fn connect_now(&self) {
        self.change_and_deliver(|state| state.connect_now(now()));
        self.io_task.wake();
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        self.change_and_deliver(|state| state.want_connection(now()));
        self.io_task.wake();
        let mut up = self.up.subscribe();
        async move {
            if up.wait_for(|up| matches!(up, Some((true, _)))).await.is_err() {
                pending().await // the client is gone
            }
        }
        .boxed()
    }

    fn contact(&self) -> Option<Contact> {
        let (reachable, since) = (*self.up.borrow())?;
        let last_round_trip = self.state().last_round_trip();
        Some(Contact { reachable, unchanged_for: now().duration_since(since), last_round_trip })
    }

    fn listen(&self, channel: Arc<str>, subscriber: Subscriber) -> BoxFuture<'static, ()> {
        listen::listen(self.settings.clone(), channel, subscriber).boxed()
    }
}

/// Fails all calls when the I/O task ends, also when the runtime drops that.
struct CloseOnDrop(Arc<RedisMaster>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.change_and_deliver(LinkState::close);
    }
}

impl RedisMaster {
    /// A master whose connection is opened when it is first needed. `executor` runs its I/O task
    /// until `closing` is cancelled.
    pub(crate) fn new(settings: LinkSettings, executor: &Executor, closing: CancellationToken) -> Arc<Self> {
        let state =
            LinkState::new(settings.address.name().clone(), settings.patience, settings.random.clone());
        let master = Arc::new(Self {
            settings: Arc::new(settings),
            state: Mutex::new(state),
            up: watch::Sender::new(None),
            io_task: AtomicWaker::new(),
            alarm_is_sooner: Notify::new(),
        });
        let closes = CloseOnDrop(master.clone());
        executor.spawn(async move {
            closing.run_until_cancelled(closes.0.drive()).await;
        });
        master
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock()
    }

    /// Changes the state with the lock held, and then delivers the answers without it. Also
    /// notifies those who wait for the master, and the clock if the alarm has become earlier.
    fn change_and_deliver<T>(&self, change: impl FnOnce(&mut LinkState) -> T) -> T {
        let mut deliveries = Vec::new();
        let mut state = self.state();
        let alarm_before = state.alarm();
        let answered = answers(state.reach());
        let result = change(&mut state);
        state.take_deliveries(&mut deliveries);
        if answers(state.reach()) != answered {
            self.note_up(*state.reach() == Reach::Up);
        }
        if state.alarm().is_some_and(|alarm| alarm_before.is_none_or(|before| alarm < before)) {
            self.alarm_is_sooner.notify_one();
        }
        drop(state);
        deliveries.into_iter().for_each(Delivery::deliver);
        result
    }

    fn note_up(&self, is_up: bool) {
        self.up.send_if_modified(|up| {
            let is_news = up.is_none_or(|(was_up, _)| was_up != is_up);
            if is_news {
                *up = Some((is_up, now()));
            }
            is_news
        });
    }

    /// Resolves with what `find` returns, once that is `Some`.
    async fn until<T>(&self, find: impl Fn(&LinkState) -> Option<T>) -> T {
        poll_fn(|context| {
            self.io_task.register(context.waker());
            find(&self.state()).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Keeps the link connected, for as long as this is polled.
    async fn drive(&self) {
        // In this order: a reply that is there counts, even if this process stood still past its
        // time-out.
        tokio::join!(biased; self.keep_connected(), self.watch_the_clock());
    }

    async fn watch_the_clock(&self) {
        loop {
            let alarm = self.state().alarm();
            match alarm {
                Some(alarm) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(alarm) => {
                            tokio::task::yield_now().await; // read what was received first
                            self.change_and_deliver(|state| state.tick(now()));
                            self.io_task.wake();
                        }
                        () = self.alarm_is_sooner.notified() => {}
                    }
                }
                None => self.alarm_is_sooner.notified().await,
            }
        }
    }

    async fn keep_connected(&self) {
        let settings = &*self.settings;
        let mut predecessor: Option<Identity> = None;
        let is = |what: fn(&Handshake) -> bool| settings.handshake.get().is_some_and(what);
        loop {
            let due = self.until(LinkState::opens_at).await;
            if due > now() {
                let is_sooner = self.until(|state| state.opens_at().filter(|at| *at < due));
                let _ = tokio::time::timeout_at(due, is_sooner).await;
            }
            if is(Handshake::has_left) {
                settings.roster.forget(settings.address.name());
            }
            // Asked with the lock held: who makes it a member again connects after that.
            self.change_and_deliver(|state| {
                if is(Handshake::has_left) {
                    state.put_off(now());
                } else {
                    state.opening(now());
                }
            });
            if !self.state().is_opening() {
                continue;
            }
            let waits_for = |why| self.state().waits_for(why);
            let opened = tokio::select! {
                biased;
                opened = session::open(settings, predecessor.as_ref(), &waits_for) => opened,
                () = self.until(|state| (!state.is_opening()).then_some(())) => {
                    // The link gave the attempt up, and has its own words for that.
                    Err("it took too long to connect".to_owned().into())
                }
            };
            match opened {
                Ok(Session { stream, identity, header, record_changed }) => {
                    predecessor = identity.or(predecessor);
                    self.change_and_deliver(|state| {
                        state.opened(header.is_some(), now());
                        if record_changed {
                            state.record_changed();
                        }
                    });
                    self.serve(Transport::new(stream, header.unwrap_or_default())).await;
                }
                Err(why) => {
                    if let Some(handshake) = settings.handshake.get() {
                        handshake.not_opened(&why);
                    }
                    if is(Handshake::is_no_member) {
                        settings.roster.forget(settings.address.name());
                    }
                    self.change_and_deliver(|state| {
                        state.not_opened(why, now());
                        if is(Handshake::is_no_member) {
                            state.put_off(now());
                        }
                    });
                }
            }
        }
    }

    /// Moves messages until the connection is lost, or not wanted any more.
    async fn serve(&self, mut transport: Transport) {
        let mut frames = Vec::new();
        let mut greeting = None;
        poll_fn(|context| {
            self.io_task.register(context.waker());
            let read = transport.read(context, &mut frames);
            if !frames.is_empty() {
                self.change_and_deliver(|state| frames.drain(..).for_each(|frame| hand_in(state, frame)));
            }
            let moved = read.and_then(|()| {
                loop {
                    self.greet(&mut greeting, &mut transport, context);
                    if !self.send(&mut transport, context)? {
                        return Ok(());
                    }
                    let handshake = self.settings.handshake.get();
                    greeting = handshake.map(|handshake| self.shake_hands_again(handshake).boxed());
                }
            });
            if let Err(why) = moved {
                self.change_and_deliver(|state| state.broke(&why, now()));
            }
            if self.state().is_open() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Goes on with the handshake that is made again, if one is.
    fn greet(
        &self,
        greeting: &mut Option<BoxFuture<'_, Result<SessionHeader, Failure>>>,
        transport: &mut Transport,
        context: &mut Context<'_>,
    ) {
        let Some(made) = greeting else { return };
        match made.poll_unpin(context) {
            Poll::Pending => return,
            Poll::Ready(Ok(header)) => {
                transport.set_header(header);
                self.change_and_deliver(LinkState::greeted);
            }
            Poll::Ready(Err(why)) => self.change_and_deliver(|state| state.not_greeted(why, now())),
        }
        *greeting = None;
    }

    /// Makes the handshake once more, on the open connection. That takes no longer than a new
    /// connection may.
    async fn shake_hands_again(&self, handshake: &Handshake) -> Result<SessionHeader, Failure> {
        let asks = Asks::Open(&self.state);
        let waits_for = |why| self.state().waits_for(why);
        let made = shake_hands(&asks, handshake, self.settings.patience, &waits_for);
        let too_long = |_| Err(self.state().not_opened_yet(&format!("no handshake within {OPEN_LIMIT:?}")));
        timeout(OPEN_LIMIT, made).await.unwrap_or_else(too_long)
    }

    /// Sends the next messages, as many as the socket takes, or until the handshake is to be made
    /// again: returns whether it is.
    fn send(&self, transport: &mut Transport, context: &mut Context<'_>) -> Result<bool, String> {
        let handshake = self.settings.handshake.get();
        loop {
            let is_due = self.change_and_deliver(|state| {
                if handshake.is_some_and(Handshake::is_outdated) {
                    state.renew_handshake();
                }
                let now = now();
                while transport.has_room()
                    && state.send_next(now, |message| transport.pack(message)).is_some()
                {}
                state.takes_up_handshake()
            });
            let was_full = !transport.has_room();
            transport.write(context)?;
            if is_due || !was_full || !transport.has_room() {
                return Ok(is_due);
            }
        }
    }
}

/// Whether the master answers; `None` where there was no call yet, or while a connection is being
/// opened to a master that answered on the last one.
fn answers(reach: &Reach) -> Option<bool> {
    match reach {
        Reach::Up => Some(true),
        Reach::Silent | Reach::Down(_) => Some(false),
        Reach::Idle | Reach::Connecting => None,
    }
}

fn hand_in(state: &mut LinkState, frame: Frame) {
    match frame {
        Frame::Reply(reply) => state.answered(reply, now()),
        Frame::Push(push) => state.pushed(&push),
    }
}

/// The present moment for time-outs, which are tokio's timers.
#[allow(clippy::disallowed_methods, reason = "no lease is measured with it")]
fn now() -> Instant {
    Instant::now()
}
