//! How a master stands with this client: whether it may vote, and whether it can be reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::time::Moment;

/// A master, whether it may vote, and whether it can be reached. See
/// [`Redlock::master_status`](crate::Redlock::master_status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MasterStatus {
    /// The master, as in its URL, without user and password.
    pub master: Arc<str>,
    /// What the last handshake with it came to.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub standing: Standing,
    /// Whether it is connected and answers: a master that refuses the handshake gets no connection
    /// that stays. `None` before it was called for the first time, while the first connection is
    /// made, and for a master of another kind that does not tell.
    pub reachable: Option<bool>,
    /// For how long it has been [`reachable`](MasterStatus::reachable), or has not, without a
    /// break.
    #[cfg_attr(feature = "serde", serde(rename = "unchanged_ms", serialize_with = "crate::json::ms"))]
    pub unchanged_for: Option<Duration>,
    /// How long the last call took that it answered: from when the call was handed to the
    /// connection, to the answer. `None` before the first answer.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "last_round_trip_ms", serialize_with = "crate::json::precise_ms")
    )]
    pub last_round_trip: Option<Duration>,
}

/// Whether a master can be reached, as far as that is known without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Whether it is connected and answers.
    pub reachable: bool,
    /// For how long that has been so.
    pub unchanged_for: Duration,
    /// How long the last call took that was answered, from when it was handed to the connection.
    pub last_round_trip: Option<Duration>,
}

/// What the last handshake with a master came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "standing", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Standing {
    /// There was none yet.
    Unknown,
    /// It has a vote.
    Trusted,
    /// It restarted, or lost its keys, or is new, and may have forgotten what it granted: it has no
    /// vote for now.
    Quarantined {
        /// Until then.
        #[cfg_attr(feature = "serde", serde(skip))]
        until: Moment,
        /// How long that is from now on.
        #[cfg_attr(feature = "serde", serde(rename = "quarantine_ms", serialize_with = "crate::json::ms"))]
        left: Duration,
    },
    /// It has no vote until that is changed.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::detail"))]
    Refused(Arc<str>),
}

impl Standing {
    /// The standing at this moment: a quarantine may be over by now.
    pub(super) fn at(&self, now: Moment) -> Self {
        match *self {
            Self::Quarantined { until, .. } if until <= now => Self::Trusted,
            Self::Quarantined { until, .. } => Self::Quarantined { until, left: until.since(now) },
            ref other => other.clone(),
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("not known yet"),
            Self::Trusted => f.write_str("trusted"),
            Self::Quarantined { left, .. } => {
                let left = left.as_secs_f64();
                write!(f, "in quarantine for {left:.1} s more: it may have forgotten what it granted")
            }
            Self::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}
