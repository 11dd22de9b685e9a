//! One lock, from the acquire to the end.

use std::io;
use std::time::Duration;

use futures::future::try_join_all;
use quorate_testkit::Dice;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;

use super::store::Store;
use super::subject::{Held, Locks, Refused, SubjectLock, unknown};
use crate::history::{self, Call, Event, Recorder, Share};

/// How often a lease's deadline is written down within its TTL.
pub(super) const LOOKS: u32 = 8;

/// How long a waiter may have to wait once everything is healed: entries that were left end with
/// their TTL, and a master that may have forgotten has a vote again some four seconds more than the
/// max TTL later.
pub fn patience(ttl: Duration) -> Duration {
    ttl * 2 + Duration::from_secs(5)
}

#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) locks: Locks,
    pub(super) store: Store,
    pub(super) recorder: Recorder,
    pub(super) ttl: Duration,
}

/// How a hold ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    Drop,
    Lost,
}

impl Cycle {
    /// Asks for a lock, and does something with it if it is granted, though not for long if it is
    /// to stop.
    pub(super) async fn turn(&self, dice: &Dice, stop: &CancellationToken) -> io::Result<()> {
        sleep(dice.millis(0, 20)).await;
        let lock = self.locks.draw(dice);
        let wait = if dice.happens(300) { Duration::ZERO } else { dice.time(Duration::ZERO, self.ttl * 2) };
        match self.acquire(&lock, self.ttl, wait).await? {
            Some((number, held)) => self.hold(number, &lock.named, held, dice, stop).await,
            None => Ok(()),
        }
    }

    /// Takes every lock once more, so that the history tells whether each can be had.
    pub(super) async fn once_more(&self) -> io::Result<()> {
        let locks = self.locks.all();
        let turns =
            locks.iter().map(async |lock| match self.acquire(lock, self.ttl, patience(self.ttl)).await? {
                Some((hold, held)) => self.release(hold, held).await,
                None => Ok(()),
            });
        try_join_all(turns).await.map(|_| ())
    }

    /// The lock, if it is granted, and the number of the call.
    pub(super) async fn acquire(
        &self,
        lock: &SubjectLock<'_>,
        ttl: Duration,
        wait: Duration,
    ) -> io::Result<Option<(u64, Held)>> {
        let call = Call::Acquire { lock: lock.named.clone(), ttl, wait };
        let number = self.recorder.invoke(call)?;
        match lock.acquire(ttl, wait).await {
            Ok(held) => {
                self.recorder.returned_without(number, held.granted(), held.no_vote())?;
                Ok(Some((number, held)))
            }
            Err(Refused { outcome, no_vote }) => {
                self.recorder.returned_without(number, outcome, no_vote)?;
                Ok(None)
            }
        }
    }

    async fn hold(
        &self,
        hold: u64,
        lock: &history::Lock,
        held: Held,
        dice: &Dice,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let (resource, fence) = protected(lock, &held);
        self.write(&resource, fence).await?;
        match self.keep(hold, &held, dice, stop).await? {
            End::Lost => {
                self.recorder.record(Event::Lost { hold })?;
                drop(held);
            }
            End::Drop => {
                let number = self.recorder.invoke(Call::Release { hold })?;
                drop(held);
                self.recorder.returned(number, unknown("it was dropped"))?;
            }
            End::Release => self.release(hold, held).await?,
        }
        if dice.happens(200) {
            sleep(dice.time(Duration::ZERO, self.ttl / 4)).await;
            self.write(&resource, fence).await?; // as one does that has not noticed
        }
        Ok(())
    }

    pub(super) async fn release(&self, hold: u64, held: Held) -> io::Result<()> {
        let number = self.recorder.invoke(Call::Release { hold })?;
        self.recorder.returned(number, held.release().await)
    }

    /// Keeps it for a while, or until it is lost.
    async fn keep(&self, hold: u64, held: &Held, dice: &Dice, stop: &CancellationToken) -> io::Result<End> {
        let long = if dice.happens(100) { self.ttl * 2 } else { self.ttl / 10 };
        let end = if dice.happens(700) { End::Release } else { End::Drop };
        let extends = dice.happens(100);
        let mut looks = interval(self.ttl / LOOKS);
        let mut over = std::pin::pin!(sleep(dice.time(Duration::ZERO, long)));
        let mut lost = std::pin::pin!(held.lost());
        if extends {
            let number = self.recorder.invoke(Call::Extend { hold, ttl: self.ttl })?;
            self.recorder.returned(number, held.extend(self.ttl).await)?;
        }
        loop {
            tokio::select! {
                biased;
                () = &mut lost => return Ok(End::Lost),
                () = &mut over => return Ok(end),
                () = stop.cancelled() => return Ok(end),
                _ = looks.tick() => {
                    let known = held.deadline().map(|deadline| Event::Deadline { hold, deadline });
                    known.map_or(Ok(()), |known| self.recorder.record(known))?;
                }
            }
        }
    }

    pub(super) async fn write(&self, resource: &str, fence: Option<u64>) -> io::Result<()> {
        let Some(fence) = fence else { return Ok(()) }; // no token to write with
        let number = self.recorder.invoke(Call::Write { resource: resource.to_owned(), fence })?;
        let outcome = self.store.write(resource, fence, "x").await;
        self.recorder.returned(number, outcome)
    }
}

/// What a lock protects in the store, and the token to write it with, if its holder writes.
pub(super) fn protected(lock: &history::Lock, held: &Held) -> (String, Option<u64>) {
    let resource = held.permit().map_or_else(
        || format!("{} {}", lock.kind, lock.names[0]),
        |permit| format!("{} {} {permit}", lock.kind, lock.names[0]),
    );
    // Readers store nothing: their tokens come in any order.
    (resource, held.fence().filter(|_| lock.share != Share::Shared))
}
