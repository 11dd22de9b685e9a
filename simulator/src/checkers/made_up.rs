//! Made-up histories, for the tests of the checkers. Times are in milliseconds.

use std::time::Duration;

use crate::history::{Attempt, AttemptOutcome, History, Hold, Key, Pause, Time, Violation};

pub(super) fn ms(time: u64) -> Time {
    Duration::from_millis(time)
}

/// A history of these guards, which is calm from 1 s to 100 s.
pub(super) fn history(holds: impl IntoIterator<Item = Hold>) -> History {
    let calm = Some(ms(1_000));
    let end = ms(100_000);
    History { holds: holds.into_iter().collect(), calm, end, longest_ttl: ms(10_000), ..History::default() }
}

/// A guard of client 0 on lock `l`, which was asked for 1 ms before.
pub(super) fn hold(owner: &str, granted: u64, deadline: u64) -> Hold {
    Hold {
        names: vec!["l".into()],
        permit: None,
        shared: false,
        owner: owner.into(),
        client: 0,
        asked: ms(granted.saturating_sub(1)),
        granted: ms(granted),
        deadline: ms(deadline),
        given_back: None,
        lost: None,
        fence: None,
    }
}

/// The same, given back then.
pub(super) fn given_back(owner: &str, granted: u64, deadline: u64, at: u64) -> Hold {
    Hold { given_back: Some(ms(at)), ..hold(owner, granted, deadline) }
}

/// The same, reported lost at `at`.
pub(super) fn lost(owner: &str, granted: u64, deadline: u64, at: u64) -> Hold {
    Hold { lost: Some(ms(at)), ..hold(owner, granted, deadline) }
}

/// The same guard, over all of these names.
pub(super) fn over(names: &[&str], hold: Hold) -> Hold {
    Hold { names: names.iter().map(|name| (*name).to_owned()).collect(), ..hold }
}

/// The same guard, to read.
pub(super) fn shared(hold: Hold) -> Hold {
    Hold { shared: true, ..hold }
}

/// The same guard, of this permit.
pub(super) fn permit(number: u32, hold: Hold) -> Hold {
    Hold { permit: Some(number), ..hold }
}

/// An acquire by client 0 of lock `l`, ready to wait for a minute.
pub(super) fn attempt(began: u64, ended: Option<u64>, outcome: AttemptOutcome) -> Attempt {
    let names = vec!["l".into()];
    let client = 0;
    let wait = ms(60_000);
    Attempt { names, shared: false, client, began: ms(began), ended: ended.map(ms), outcome, wait }
}

/// A key of lock `l` on master 0, with a TTL of 10 s, which came to be when it was last written.
pub(super) fn key(owner: &str, written: u64, found: u64) -> Key {
    Key {
        master: 0,
        name: "l".into(),
        permit: None,
        is_entry: false,
        shared: false,
        owner: owner.into(),
        client: None,
        since: ms(written),
        written: ms(written),
        ttl: Some(ms(10_000)),
        late: false,
        found: ms(found),
    }
}

/// Client 0 stood still.
pub(super) fn pause(from: u64, to: u64) -> Pause {
    Pause { client: 0, from: ms(from), to: ms(to) }
}

/// Client 0 was killed.
pub(super) fn kill(at: u64) -> Pause {
    Pause { client: 0, from: ms(at), to: Time::MAX }
}

/// What was found, in words.
pub(super) fn words(found: &[Violation]) -> Vec<&str> {
    found.iter().map(|violation| &*violation.what).collect()
}
