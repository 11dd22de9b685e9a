//! What is special about the clients of a run.

/// What is special about all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSetup {
    /// Nothing.
    Usual,
    /// They are copies of one process: each draws the same random numbers and does the same, also
    /// when it is started again.
    Copies,
    /// They hold some leases all the time, and wait for as long as it takes for each other lock:
    /// the set of masters changes meanwhile. They know the masters by the masters' own names.
    Patient,
    /// There is one more, the stranger, whose list of masters has another server in the last one's
    /// place. It asks for locks, and must get none once all were heard.
    Stranger,
}
