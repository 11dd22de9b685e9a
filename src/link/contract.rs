//! What the engine needs of a master, whichever kind of server it is.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::set::{Contact, Handshake};
use crate::wire::{Call, MasterIndex};

/// One independent master.
///
/// Clean-ups rest on the order of calls: **calls run on the master in the order in which they were
/// made, and once a call was sent on a new connection, no call from an earlier connection can run
/// any more.** So a clean-up that is made after the call that it undoes always undoes it.
///
/// One exception: a call that the master refused before it ran anything is sent again, behind calls
/// that were sent meanwhile. Therefore it is sent again only while it is
/// [wanted](crate::seam::ReplySink::is_wanted), which a call that is being undone is not. Another
/// one: a user without the rights to `CLIENT ID` and `CLIENT KILL` cannot close the earlier
/// connection; a warning says so.
pub trait Master: fmt::Debug + Send + Sync + 'static {
    /// Its name in votes and logs: the URL without user and password.
    fn name(&self) -> &Arc<str>;

    /// Gives the master its handshake: once, before the first call. Each new connection shakes
    /// hands before it carries anything, and puts the [`SessionHeader`](crate::seam::SessionHeader)
    /// that it gets at the head of every call. If the first reply is nil, or it is told that the
    /// record changed, it shakes hands again before it carries anything else.
    fn introduce(&self, handshake: Handshake);

    /// Runs one operation of a script, once, if it is
    /// [wanted](crate::seam::ReplySink::is_wanted) at that moment, and gives its sink the answer,
    /// as that of the master with this index, within the time-out: see
    /// [`CallKind`](crate::seam::CallKind). It never blocks, and can be called on any thread. A
    /// call is sent again only if the master refused it before it ran anything: it did not know the
    /// script, its record is another one, or this user may not do one of the operations in the
    /// message.
    fn call(&self, call: Arc<Call>, index: MasterIndex);

    /// Connects now, if the next attempt was to be later: this master has another place in the set.
    fn connect_now(&self) {}

    /// Resolves when the master is connected and answers; at once if it does. It may never resolve.
    fn ready(&self) -> BoxFuture<'static, ()>;

    /// Whether it can be reached, as far as that is known without a call. A master of another kind
    /// may return `None`.
    fn contact(&self) -> Option<Contact> {
        None
    }

    /// Listens on a channel for as long as it is polled, across reconnects, and calls `subscriber`
    /// with each event. What is published while it is not subscribed is missed.
    fn listen(&self, channel: Arc<str>, subscriber: Subscriber) -> BoxFuture<'static, ()>;
}

/// What listening calls. It is called where the messages arrive, and must not block.
pub type Subscriber = Arc<dyn Fn(SubscriptionEvent) + Send + Sync>;

/// What happens on a channel of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionEvent {
    /// From now on no message is missed.
    Subscribed,
    /// A message on the channel.
    Message(Arc<str>),
    /// The connection is gone: from now on messages are missed.
    Disconnected,
}
