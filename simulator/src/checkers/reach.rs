//! A client reports a master as unreachable only when the master has owed an answer for the default
//! time-out. A vote with a shorter time-out counts for that vote only, and so does an undo: a ping
//! finds out about the rest.

use quorate::config::DEFAULT_TIMEOUT;

use crate::history::{History, OutOfReach, Violation};

/// The property's name.
pub const NAME: &str = "reach";

/// Finds what violates it.
pub fn check(history: &History) -> Vec<Violation> {
    let too_soon =
        |report: &&OutOfReach| report.asked.is_none_or(|asked| report.at < asked + DEFAULT_TIMEOUT);
    history.out_of_reach.iter().filter(too_soon).map(violation).collect()
}

fn violation(report: &OutOfReach) -> Violation {
    let OutOfReach { client, master, asked, at } = *report;
    let since = match asked {
        Some(asked) => format!("for {:?}", at - asked),
        None => "nothing".to_owned(),
    };
    let what =
        format!("client {client} reports that master {master} does not answer, which owes an answer {since}");
    Violation { property: NAME, what, at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Time;

    fn found(asked: Option<Time>) -> usize {
        let report = OutOfReach { client: 0, master: 1, asked, at: Time::from_secs(9) };
        check(&History { out_of_reach: vec![report], ..History::default() }).len()
    }

    #[test]
    fn a_master_has_its_time() {
        let early = Time::from_secs(9) - DEFAULT_TIMEOUT;
        assert_eq!([found(Some(early)), found(Some(early + Time::from_nanos(1))), found(None)], [0, 1, 1]);
    }
}
