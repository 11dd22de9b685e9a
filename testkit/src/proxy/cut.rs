//! One connection that is cut at a chosen moment.

/// Where to cut the next connection on which it becomes possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere: an order that was not carried out is taken back.
    None,
    /// When the server's next reply arrives: the command has run, and the client never hears of it.
    AtReply,
    /// In the midst of the server's next reply: the client gets a part of it.
    InReply,
    /// When the client's next command arrives: the client's side is closed, and the server's side
    /// stays open. The command is on its way for as long as
    /// [`Proxy::deliver`](super::Proxy::deliver) is not called, as in a slow network.
    InFlight,
}
