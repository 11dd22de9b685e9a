//! Read-write locks: an owner that has one half of a lock, and asks for the other, its counterpart.

use std::sync::Arc;

use super::engine::Engine;
use super::hold::Hold;
use super::request::Request;
use crate::error::Error;
use crate::owner::Owner;
use crate::wire::{Crossing, Kind, LockId};

impl Engine {
    /// Whether the owner is let in at once, and does not line up behind those that wait for it: it
    /// has the lock, or is a writer that asks to read.
    pub(super) fn is_re_entry(&self, request: &Request) -> bool {
        let has_it = request.owner.is_some_and(|owner| self.has(request.kind, &request.name, owner));
        has_it || self.crossing(request) == Some(Crossing::Downgrade)
    }

    /// Whether the owner of `hold` has the counterpart, too.
    pub(super) fn has_counterpart(&self, hold: &Hold) -> bool {
        let LockId { name, kind, owner, .. } = &hold.lock;
        kind.counterpart().is_some_and(|(counterpart, _)| self.has(counterpart, name, *owner))
    }

    /// An error where the owner would wait for itself.
    pub(super) fn refuse_to_wait_for_itself(&self, request: &Request) -> Result<(), Error> {
        match (self.crossing(request), request.owner) {
            (Some(Crossing::SelfDeadlock), Some(owner)) => {
                Err(Error::Upgrade { name: request.name.clone(), owner })
            }
            _ => Ok(()),
        }
    }

    /// Waits until the owner gets the counterpart of what it asks for.
    pub(super) async fn until_counterpart_stands(&self, request: &Request) {
        match (request.kind.counterpart(), request.owner) {
            (Some((counterpart, _)), Some(owner)) if self.crossing(request).is_none() => {
                let hold = self.leases.holds.find_or_make(counterpart, &request.name, owner, || owner);
                hold.until_it_stands(&**self.clock()).await;
            }
            _ => std::future::pending().await,
        }
    }

    /// What it means that the owner has the counterpart of what it asks for, if it has.
    fn crossing(&self, request: &Request) -> Option<Crossing> {
        let (counterpart, crossing) = request.kind.counterpart()?;
        self.has(counterpart, &request.name, request.owner?).then_some(crossing)
    }

    /// Whether an owner has the lock of this kind.
    fn has(&self, kind: Kind, name: &Arc<str>, owner: Owner) -> bool {
        self.leases.holds.find(kind, name, owner).is_some_and(|hold| hold.stands(self.clock().now()))
    }
}
