//! Who listens to a master, and to what.

use std::sync::Arc;

/// Who listens. It is called where the messages arrive and must not block.
pub type Subscriber = Arc<dyn Fn(SubscriptionEvent) + Send + Sync>;

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionEvent {
    /// From here on nothing is missed.
    Subscribed,
    /// A message on the channel.
    Message(Arc<str>),
    /// The connection is gone: what is published from here on is missed.
    Disconnected,
}
