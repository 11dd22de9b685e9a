//! A client reports a master as unreachable only when the master has owed an answer for the default
//! [time-out](History::timeout). A vote with a shorter time-out counts for that vote only, and so
//! does an undo: a ping finds out about the rest.

use crate::history::{History, OutOfReach, Violation};

/// The property's name.
pub const NAME: &str = "reach";

/// Finds what violates it.
pub fn check(history: &History) -> Vec<Violation> {
    let too_soon =
        |report: &&OutOfReach| report.asked.is_none_or(|asked| report.at < asked + history.timeout);
    history.out_of_reach.iter().filter(too_soon).map(violation).collect()
}

fn violation(report: &OutOfReach) -> Violation {
    let OutOfReach { process, master, asked, at } = report;
    let since = match asked {
        Some(asked) => format!("for {:?}", *at - *asked),
        None => "nothing".to_owned(),
    };
    let what =
        format!("{process} reports that master {master} does not answer, which owes an answer {since}");
    Violation { property: NAME, what, at: *at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Time;
    use crate::made_up::{client, ms};

    fn found(asked: Option<Time>) -> usize {
        let report = OutOfReach { process: client(0), master: 1, asked, at: ms(9_000) };
        check(&History { out_of_reach: vec![report], timeout: ms(250), ..History::default() }).len()
    }

    #[test]
    fn a_master_has_its_time() {
        assert_eq!([found(Some(ms(8_750))), found(Some(ms(8_751))), found(None)], [0, 1, 1]);
    }
}
