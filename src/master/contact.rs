//! Whether a master can be reached, and how fast it answers: for those who look.

use std::time::Duration;

/// What a master knows of the way there, without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Whether it is connected and answers.
    pub reachable: bool,
    /// For how long that has been so.
    pub unchanged_for: Duration,
    /// How long the last call took that was answered, from when it was handed to the connection.
    pub last_round_trip: Option<Duration>,
}
