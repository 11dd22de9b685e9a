//! Made-up histories, for the tests of checkers and figures. Times are in milliseconds.

use crate::acquires::Ending;
use crate::history::{
    Call, FoundEntry, History, Hold, Lock, Made, Outcome, Pause, Run, Share, Time, Violation,
};

pub(crate) fn ms(time: u64) -> Time {
    Time::from_millis(time)
}

/// What clients are called.
pub(crate) fn client(number: usize) -> String {
    format!("client {number}")
}

/// A lock that one has at a time.
pub(crate) fn exclusive(name: &str) -> Lock {
    Lock { kind: "lock".to_owned(), names: vec![name.to_owned()], share: Share::Exclusive }
}

/// One permit of the semaphore `l`, which has so many.
pub(crate) fn permits(permits: u32) -> Lock {
    Lock { share: Share::Permits(permits), ..exclusive("l") }
}

/// A history of these guards, which is calm from 1 s to 100 s.
pub(crate) fn history(holds: impl IntoIterator<Item = Hold>) -> History {
    let calm = Some(ms(1_000));
    let end = ms(100_000);
    History { holds: holds.into_iter().collect(), calm, end, longest_ttl: ms(10_000), ..History::default() }
}

/// A guard of client 0 on lock `l`, which was asked for 1 ms before.
pub(crate) fn hold(owner: &str, granted: u64, deadline: u64) -> Hold {
    Hold {
        lock: exclusive("l"),
        permit: None,
        owner: owner.into(),
        process: client(0),
        asked: ms(granted.saturating_sub(1)),
        granted: ms(granted),
        deadline: ms(deadline),
        given_back: None,
        free: None,
        lost: None,
        fence: None,
    }
}

/// The same, given back then, which took 1 ms.
pub(crate) fn given_back(owner: &str, granted: u64, deadline: u64, at: u64) -> Hold {
    Hold { given_back: Some(ms(at)), free: Some(ms(at + 1)), ..hold(owner, granted, deadline) }
}

/// The same, reported lost at `at`.
pub(crate) fn lost(owner: &str, granted: u64, deadline: u64, at: u64) -> Hold {
    Hold { lost: Some(ms(at)), ..hold(owner, granted, deadline) }
}

/// The same guard, of this lock.
pub(crate) fn on(lock: &Lock, hold: Hold) -> Hold {
    Hold { lock: lock.clone(), ..hold }
}

/// The same guard, over all of these names.
pub(crate) fn over(names: &[&str], hold: Hold) -> Hold {
    on(&several(names), hold)
}

/// A lock over all of these names.
pub(crate) fn several(names: &[&str]) -> Lock {
    Lock { names: names.iter().map(|name| (*name).to_owned()).collect(), ..exclusive("l") }
}

/// The same guard, to read.
pub(crate) fn shared(hold: Hold) -> Hold {
    Hold { lock: Lock { share: Share::Shared, ..hold.lock }, ..hold }
}

/// The same guard, of this permit of many.
pub(crate) fn permit(number: u32, hold: Hold) -> Hold {
    Hold { permit: Some(number), ..on(&permits(9), hold) }
}

/// The same guard, with a token.
pub(crate) fn fenced(fence: u64, hold: Hold) -> Hold {
    Hold { fence: Some(fence), ..hold }
}

/// A call of client 0.
pub(crate) fn made(call: Call, invoked: u64, returned: Option<u64>, outcome: Outcome) -> Made {
    let process = client(0);
    Made { process, number: 0, call, invoked: ms(invoked), returned: returned.map(ms), outcome }
}

/// An acquire by client 0 of lock `l`, for 10 s, ready to wait for a minute.
pub(crate) fn attempt(began: u64, ended: Option<u64>, ending: Ending) -> Made {
    let call = Call::Acquire { lock: exclusive("l"), ttl: ms(10_000), wait: ms(60_000) };
    made(call, began, ended, outcome(ending))
}

/// What an acquire says that ends so.
pub(crate) fn outcome(ending: Ending) -> Outcome {
    let why = String::new();
    match ending {
        Ending::Granted => {
            Outcome::Granted { owner: "a".to_owned(), deadline: Time::ZERO, fence: None, permit: None }
        }
        Ending::Failed => Outcome::Failed { why },
        Ending::Cancelled => Outcome::Cancelled,
        Ending::Pending => Outcome::Unknown { why },
    }
}

/// The same acquire, of this lock.
pub(crate) fn asking(lock: &Lock, made: Made) -> Made {
    let Call::Acquire { ttl, wait, .. } = made.call else { return made };
    Made { call: Call::Acquire { lock: lock.clone(), ttl, wait }, ..made }
}

/// The same acquire, ready to wait for so long.
pub(crate) fn patient_for(wait: u64, made: Made) -> Made {
    let Call::Acquire { lock, ttl, .. } = made.call else { return made };
    Made { call: Call::Acquire { lock, ttl, wait: ms(wait) }, ..made }
}

/// The same call, of this client.
pub(crate) fn by(number: usize, made: Made) -> Made {
    Made { process: client(number), ..made }
}

/// A key of lock `l` on master 0, with a TTL of 10 s, which came to be when it was last written.
pub(crate) fn entry(owner: &str, written: u64, found: u64) -> FoundEntry {
    FoundEntry {
        master: 0,
        name: "l".into(),
        permit: None,
        is_entry: false,
        shared: false,
        owner: owner.into(),
        process: None,
        since: ms(written),
        written: ms(written),
        ttl: Some(ms(10_000)),
        late: false,
        found: ms(found),
    }
}

/// Client 0 stood still.
pub(crate) fn pause(from: u64, to: u64) -> Pause {
    Pause { process: client(0), from: ms(from), to: Some(ms(to)) }
}

/// Client 0 was killed.
pub(crate) fn kill(at: u64) -> Pause {
    Pause { process: client(0), from: ms(at), to: None }
}

/// A run of 20 ms before the set changes.
pub(crate) fn run() -> Run {
    Run {
        version: String::new(),
        scenario: String::new(),
        seed: 7,
        duration: ms(20),
        subject: String::new(),
        kinds: Vec::new(),
        masters: 3,
        compose: false,
        clients: 2,
        ttl: ms(2),
        leases: 0,
    }
}

/// What was found, in words.
pub(crate) fn words(found: &[Violation]) -> Vec<&str> {
    found.iter().map(|violation| &*violation.what).collect()
}
