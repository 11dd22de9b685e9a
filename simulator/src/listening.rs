//! The connection on which a client hears that it is called.

use std::sync::Arc;
use std::time::Duration;

use quorate::seam::{Subscriber, SubscriptionEvent};

use crate::hearing::Hearing;
use crate::link::{Link, arrival};

/// How long after it was lost, or could not be opened, it is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// Listens until it is dropped.
pub(crate) struct Listening {
    link: Arc<Link>,
    number: u64,
}

impl Hearing {
    /// Begins to listen.
    pub(crate) fn begin(link: &Arc<Link>, channel: Arc<str>, ear: Subscriber) -> Listening {
        let number = {
            let mut state = link.hearing.state();
            state.count += 1;
            let number = state.count;
            state.listener = Some((number, channel, ear));
            number
        };
        Self::open(link, number);
        Listening { link: link.clone(), number }
    }

    /// Subscribes at the master.
    fn open(link: &Arc<Link>, number: u64) {
        let its = link.clone();
        link.world.at(arrival(link), move || {
            if !its.hearing.is_current(number) || its.process.is_dead() {
                return;
            }
            let there = its.clone();
            let taken = !its.is_blocked() && its.server.take(move || Self::subscribe(&there, number));
            if !taken {
                Self::open_again(&its, number);
            }
        });
    }

    fn open_again(link: &Arc<Link>, number: u64) {
        let its = link.clone();
        link.world.after(RETRY, move || {
            let process = its.process.clone();
            process.does(move || Self::open(&its, number));
        });
    }

    /// The master takes note.
    fn subscribe(link: &Arc<Link>, number: u64) {
        let (attempt, channel) = {
            let mut state = link.hearing.state();
            state.attempt += 1;
            let Some((current, channel, _)) = &state.listener else { return };
            if *current != number || link.process.is_dead() {
                return;
            }
            (state.attempt, channel.clone())
        };
        let its = Arc::downgrade(link);
        let ear: Subscriber = Arc::new(move |event| {
            if let Some(link) = its.upgrade() {
                Self::send(&link, attempt, event);
            }
        });
        let subscription = link.server.redis.subscribe(&channel, ear);
        link.hearing.state().subscription = Some(subscription);
        Self::send(link, attempt, SubscriptionEvent::Subscribed);
    }

    /// Something is on its way to the client.
    fn send(link: &Arc<Link>, attempt: u64, event: SubscriptionEvent) {
        let arrives = arrival(link);
        let arrives = link.hearing.state().messages.push(arrives, (attempt, event));
        let its = link.clone();
        link.world.at(arrives, move || its.pump());
    }

    /// Hands on what has arrived.
    pub(crate) fn pump(&self, link: &Arc<Link>) {
        loop {
            let blocked = link.is_blocked();
            let (attempt, event) = {
                let mut state = self.state();
                state.messages.blocked = blocked;
                let Some(message) = state.messages.pop(link.world.now()) else { return };
                message
            };
            if attempt == self.state().attempt {
                self.tell(link, event);
            }
        }
    }

    fn tell(&self, link: &Arc<Link>, event: SubscriptionEvent) {
        let Some(ear) = self.state().listener.as_ref().map(|(_, _, ear)| ear.clone()) else { return };
        link.note(|| format!("receives: {event:?}"));
        link.process.deliver(move || ear(event));
    }

    /// The connection breaks, if there is one.
    pub(crate) fn break_off(&self, link: &Arc<Link>) {
        let (subscription, number) = {
            let mut state = self.state();
            state.attempt += 1;
            state.messages.empty().for_each(drop);
            (state.subscription.take(), state.listener.as_ref().map(|(number, ..)| *number))
        };
        drop(subscription);
        if let Some(number) = number {
            self.tell(link, SubscriptionEvent::Disconnected);
            Self::open_again(link, number);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let subscription = {
            let mut state = self.link.hearing.state();
            if state.listener.as_ref().is_none_or(|(current, ..)| *current != self.number) {
                return;
            }
            state.listener = None;
            state.attempt += 1;
            state.subscription.take()
        };
        drop(subscription);
    }
}
