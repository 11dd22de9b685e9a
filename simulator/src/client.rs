//! What clients are called.

/// A client's number. One that was killed never comes back.
pub(crate) type ClientNumber = usize;

/// What a history calls a client's process.
pub(crate) fn process_name(client: ClientNumber) -> String {
    format!("client {client}")
}
