//! The protocol's version, and limits that the scripts have, too: a test compares them.

use std::time::Duration;

/// The version of the protocol, which is in the masters' record.
pub(crate) const PROTOCOL: &str = "v2";

/// How far the time in an operation may be behind the master's when that arrives.
pub(crate) const OLDEST: Duration = Duration::from_secs(2);

/// How far the time in an operation, and so a token, may be ahead of the master's.
pub(crate) const NEWEST: Duration = Duration::from_millis(500);

/// How far a master's clock may be off at the handshake: a quarantine is that much longer.
pub(crate) const UNMEASURED: Duration = Duration::from_secs(1);

/// How long a queue is kept after the last waiter came: no place lasts longer.
pub(crate) const QUEUE_LIFE: Duration = Duration::from_secs(120);

/// How long a waiter that is woken has to ask before others pass it.
pub(crate) const TIME_TO_ASK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MAX_NAMES;

    /// The number of this constant, in a file of scripts/lua.
    fn of_lua(text: &str, name: &str) -> u128 {
        let names = |line: &str| {
            line.strip_prefix("local ").and_then(|line| line.split_once(" = ")).map(|(names, values)| {
                let values = values.split(", ").map(|value| value.trim_matches('\'').to_owned());
                names.split(", ").map(str::to_owned).zip(values).collect::<Vec<_>>()
            })
        };
        let mut all = text.lines().filter_map(names).flatten();
        let (_, value) = all.find(|(its, _)| its == name).unwrap_or_else(|| panic!("no {name}"));
        value.parse().unwrap_or_else(|_| panic!("{name} is {value}"))
    }

    #[test]
    fn the_scripts_have_the_same_limits() {
        let call = include_str!("../../scripts/lua/call.lua");
        assert_eq!(of_lua(call, "OLDEST"), OLDEST.as_micros());
        assert_eq!(of_lua(call, "NEWEST"), NEWEST.as_micros());
        let queue = include_str!("../../scripts/lua/queue.lua");
        assert_eq!(of_lua(queue, "QUEUE_LIFE"), QUEUE_LIFE.as_millis());
        let turn = include_str!("../../scripts/lua/turn.lua");
        assert_eq!(of_lua(turn, "TIME_TO_ASK"), TIME_TO_ASK.as_micros());
        assert_eq!(of_lua(include_str!("../../scripts/lua/run.lua"), "MOST_NAMES"), MAX_NAMES as u128);
    }
}
