//! What masters answered when they were examined, and who asked.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::trust::Terms;

/// Who asks, and what it would ask of masters as a client.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) terms: Terms,
    /// The prefix of its keys.
    pub(crate) prefix: Arc<str>,
    /// How many masters are needed.
    pub(crate) quorum: usize,
    /// How long a master may take to answer.
    pub(crate) timeout: Duration,
    /// How far (us) its wall clock is ahead of the clock that looks are measured with.
    pub(crate) wall_ahead: i64,
}

/// One master.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) master: Arc<str>,
    pub(crate) server: Result<Box<Server>, Unasked>,
}

/// Why a master could not be asked.
#[derive(Clone, Debug)]
pub(crate) enum Unasked {
    /// It could not be connected to, or did not let this user in.
    Unreached(String),
    /// It did not answer within this time.
    Silent(Duration),
    /// It is not reached by a URL.
    NoServer,
}

/// What a server answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Server {
    pub(crate) info: Info,
    pub(crate) kept: Kept,
    pub(crate) marker: Marker,
    pub(crate) denied: Denied,
    /// Why it refuses all writes, if it does.
    pub(crate) refuses_writes: Option<String>,
    pub(crate) round_trips: Vec<Duration>,
    pub(crate) looks: Vec<ClockLook>,
}

/// What INFO said; nothing where it was denied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(pub(crate) String);

impl Info {
    pub(crate) fn get(&self, field: &str) -> Option<&str> {
        let value = |line| str::strip_prefix(line, field)?.strip_prefix(':');
        self.0.lines().find_map(value).map(str::trim_end)
    }
}

/// What a server writes to its disk, by its own settings; `None` if this user may not read them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) appendonly: Option<String>,
    pub(crate) appendfsync: Option<String>,
    pub(crate) not_on_rewrite: Option<String>,
}

/// The key by which a server proves what it remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Marker {
    /// There is none.
    #[default]
    Absent,
    Text(String),
    /// It cannot be read, for this reason.
    Unread(String),
}

/// What this user may not do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denied {
    /// Commands, as `ACL SETUSER` names them.
    pub(crate) commands: Vec<&'static str>,
    /// The keys of locks.
    pub(crate) keys: bool,
    /// The channels of wake-ups.
    pub(crate) channels: bool,
}

/// It was `time` (us since 1970) on a server at some moment between these two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockLook {
    pub(crate) asked: Moment,
    pub(crate) answered: Moment,
    pub(crate) time: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_info_is_found_by_its_whole_name() {
        let info =
            Info("# Memory\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\nrole:master\r\n".to_owned());
        assert_eq!((info.get("maxmemory"), info.get("role")), (Some("0"), Some("master")));
        assert_eq!((info.get("max"), Info::default().get("role")), (None, None));
    }
}
