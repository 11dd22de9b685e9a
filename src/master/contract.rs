//! What the engine asks of a master, whichever kind it is.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::call::Call;
use super::contact::Contact;
use super::subscriber::Subscriber;
use crate::trust::Handshake;

/// One independent master.
///
/// The order of calls is the contract that clean-up rests on: **calls run on the master in the
/// order in which they were made, and once a call was sent on a new connection, no call from an
/// earlier connection can run any more.** A clean-up that is made after the call it undoes
/// therefore always undoes it.
///
/// What the master refused before it ran anything, and is sent again, comes behind calls that were
/// sent meanwhile. So it is sent again only while it is
/// [wanted](crate::seam::ReplySink::is_wanted), which a call that is being undone is not.
pub trait Master: fmt::Debug + Send + Sync + 'static {
    /// What to call it in votes and logs: its URL without user and password.
    fn name(&self) -> &Arc<str>;

    /// Tells how its connections make themselves known: once, before the first call. Each new
    /// connection has to ask that before it carries anything, and puts the
    /// [`SessionHeader`](crate::seam::SessionHeader) that it gets at the head of every call; where
    /// the first reply is nil it asks again.
    fn introduce(&self, handshake: Handshake);

    /// Has one operation of a prepared script run, once, and tells its sink how it went, as the
    /// master with this index, within the time-out: see [`CallKind`](crate::seam::CallKind). It
    /// never blocks, and can be called on any thread. Nothing is ever sent again but what the
    /// master refused before it ran anything: a script that it did not know, or a call of many
    /// operations, one of which this user may not do.
    fn call(&self, call: Arc<Call>, index: usize);

    /// Resolves when the master is connected and answering; at once if it is. It may never be.
    fn ready(&self) -> BoxFuture<'static, ()>;

    /// Whether it can be reached, as far as it knows without asking; `None` where that is not
    /// known. A master of another kind need not tell.
    fn contact(&self) -> Option<Contact> {
        None
    }

    /// Listens on a channel for as long as it is polled, across reconnects, and tells `ear` what it
    /// hears. What is published while it does not listen is missed.
    fn listen(&self, channel: Arc<str>, ear: Subscriber) -> BoxFuture<'static, ()>;
}
