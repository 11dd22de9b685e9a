//! Wake-ups: while anybody waits, a client subscribes to one channel on every master, and wakes the
//! waiter that a message names.
//!
//! A message is a hint. A woken waiter asks the masters, and a waiter that is not woken asks after
//! a bounded time. When messages may have been missed, waiters ask again as soon as a quorum can be
//! heard, and poll until then.

mod foreign_wakes;
mod hub;
mod local_queue;

pub(crate) use foreign_wakes::ForeignWakes;
pub(crate) use hub::{Subscription, WakeHandle, WakeHub};
pub(crate) use local_queue::{LastHolder, LocalQueues, LocalSlot};
