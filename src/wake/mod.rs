//! Wake-ups: a client listens on one channel of every master while anybody waits, and rings whoever
//! it hears called.
//!
//! What is heard is a hint. A waiter asks the masters whatever it has heard, and comes back after a
//! while if it hears nothing; what was missed is made good by asking again once a quorum can be
//! heard again, and by polling until then.

mod foreign_wakes;
mod hub;
mod local_queue;

pub(crate) use foreign_wakes::ForeignWakes;
pub(crate) use hub::{Subscription, WakeHandle, WakeHub};
pub(crate) use local_queue::{Denial, LocalQueues, LocalSlot};
