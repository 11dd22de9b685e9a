//! Drives the link to one Redis server: opens its connections, moves its messages and tells
//! callers, with tokio.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::call::Call;
use super::contact::Contact;
use super::link::{LinkState, Reach};
use super::pending::Delivery;
use super::resp::Frame;
use super::session::{self, Identity, LinkSettings, Session};
use super::transport::Transport;
use crate::sync::{Mutex, MutexGuard};

/// The link to one master, shared by its callers and its driver.
pub(crate) struct Link {
    state: Mutex<LinkState>,
    /// Whether the master answers, and since when; `None` before the first connection.
    up: watch::Sender<Option<(bool, Instant)>>,
    /// Wakes the driver, which looks what there is to do.
    driver: AtomicWaker,
    /// Told when the alarm is to ring sooner.
    sooner: Notify,
}

impl Link {
    pub(crate) fn new(parts: &LinkSettings) -> Self {
        let state = LinkState::new(parts.address.name().clone(), parts.patience, parts.random.clone());
        Self {
            state: Mutex::new(state),
            up: watch::Sender::new(None),
            driver: AtomicWaker::new(),
            sooner: Notify::new(),
        }
    }

    /// Takes a call: see [`LinkState::call`].
    pub(crate) fn call(&self, call: Arc<Call>, index: usize) {
        self.with(|state| state.call(call, index, now()));
        self.driver.wake();
    }

    /// Resolves when the master is connected and answers.
    pub(crate) async fn ready(&self) {
        self.with(|state| state.want(now()));
        self.driver.wake();
        // The sender lives in `self`, so this cannot fail while `self` is borrowed.
        let _ = self.up.subscribe().wait_for(|up| matches!(up, Some((true, _)))).await;
    }

    /// Whether the master answers, since when, and how fast.
    pub(crate) fn contact(&self) -> Option<Contact> {
        let (reachable, since) = (*self.up.borrow())?;
        let last_round_trip = self.state().last_round_trip();
        Some(Contact { reachable, unchanged_for: now().duration_since(since), last_round_trip })
    }

    /// Nobody drives it any more.
    pub(crate) fn close(&self) {
        self.with(LinkState::close);
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock()
    }

    /// Changes the state, answers callers, and wakes the driver and those who wait for the master.
    fn with<T>(&self, change: impl FnOnce(&mut LinkState) -> T) -> T {
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
            self.sooner.notify_one();
        }
        drop(state);
        deliveries.into_iter().for_each(Delivery::tell);
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

    /// Resolves with what `find` finds in the state, once there is something.
    async fn until<T>(&self, find: impl Fn(&LinkState) -> Option<T>) -> T {
        poll_fn(|context| {
            self.driver.register(context.waker());
            find(&self.state()).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Drives it for as long as this is polled.
    pub(crate) async fn drive(&self, parts: &LinkSettings) {
        // In this order: an answer that is there counts, even if this process stood still until its
        // time was up.
        tokio::join!(biased; self.keep_connected(parts), self.watch_the_clock());
    }

    async fn watch_the_clock(&self) {
        loop {
            let alarm = self.state().alarm();
            match alarm {
                Some(alarm) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(alarm) => {
                            tokio::task::yield_now().await; // what was received is read before
                            self.with(|state| state.tick(now()));
                            self.driver.wake();
                        }
                        () = self.sooner.notified() => {}
                    }
                }
                None => self.sooner.notified().await,
            }
        }
    }

    async fn keep_connected(&self, parts: &LinkSettings) {
        let mut predecessor: Option<Identity> = None;
        loop {
            let due = self.until(LinkState::opens_at).await;
            if due > now() {
                tokio::time::sleep_until(due).await;
            }
            self.with(|state| state.opening(now()));
            let opened = tokio::select! {
                biased;
                opened = session::open(parts, predecessor.as_ref()) => opened,
                () = self.until(|state| (!state.is_opening()).then_some(())) => continue,
            };
            match opened {
                Ok(Session { stream, identity, header }) => {
                    predecessor = identity.or(predecessor);
                    self.with(|state| state.opened(header.is_some(), now()));
                    self.serve(Transport::new(stream, header.unwrap_or_default())).await;
                }
                Err(why) => self.with(|state| state.not_opened(why, now())),
            }
        }
    }

    /// Moves messages until the connection is lost, or not wanted any more.
    async fn serve(&self, mut transport: Transport) {
        let mut frames = Vec::new();
        poll_fn(|context| {
            self.driver.register(context.waker());
            let read = transport.read(context, &mut frames);
            if !frames.is_empty() {
                self.with(|state| frames.drain(..).for_each(|frame| hand_in(state, frame)));
            }
            if let Err(why) = read.and_then(|()| self.send(&mut transport, context)) {
                self.with(|state| state.broke(&why, now()));
            }
            if self.state().is_open() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Sends what is to be sent, as far as the socket takes it.
    fn send(&self, transport: &mut Transport, context: &mut Context<'_>) -> Result<(), String> {
        loop {
            self.with(|state| {
                let now = now();
                while transport.has_room()
                    && state.send_next(now, |message| transport.pack(message)).is_some()
                {}
            });
            let was_full = !transport.has_room();
            transport.write(context)?;
            if !was_full || !transport.has_room() {
                return Ok(());
            }
        }
    }
}

/// Whether the master answers; `None` while a connection is made to one that was not called before,
/// or answered until now.
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
