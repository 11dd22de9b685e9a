//! Made-up histories, for the tests of the checkers. Times are in milliseconds.

use quorate_simulator::history::Violation;

use crate::history::{History, Hold, Lock, Run, Share};

pub(crate) fn lock(kind: &str, name: &str, share: Share) -> Lock {
    Lock { kind: kind.to_owned(), names: vec![name.to_owned()], share }
}

pub(crate) fn exclusive(name: &str) -> Lock {
    lock("mutex", name, Share::Exclusive)
}

pub(crate) fn shared(name: &str) -> Lock {
    lock("mutex", name, Share::Shared)
}

pub(crate) fn permits(name: &str, permits: u32) -> Lock {
    lock("semaphore", name, Share::Permits(permits))
}

/// A guard of an owner of this name, which was asked for 1 ms before.
pub(crate) fn acquire(owner: &str, lock: &Lock, granted: u64, deadline: u64) -> Hold {
    Hold {
        lock: lock.clone(),
        owner: owner.to_owned(),
        process: format!("process of {owner}"),
        asked: (granted - 1) * 1_000,
        granted: granted * 1_000,
        deadline: deadline * 1_000,
        given_back: None,
        free: None,
        lost: None,
        fence: None,
        permit: None,
    }
}

/// The same, given back then, which took 1 ms.
pub(crate) fn given_back(hold: Hold, at: u64) -> Hold {
    Hold { given_back: Some(at * 1_000), free: Some((at + 1) * 1_000), ..hold }
}

/// The same of another owner.
pub(crate) fn owned(hold: Hold, owner: &str) -> Hold {
    Hold { owner: owner.to_owned(), ..hold }
}

/// The same with a token.
pub(crate) fn fenced(hold: Hold, fence: u64) -> Hold {
    Hold { fence: Some(fence), ..hold }
}

pub(crate) fn history(holds: impl IntoIterator<Item = Hold>) -> History {
    History { holds: holds.into_iter().collect(), ..end(100_000) }
}

/// A run of 20 ms before the set changes.
pub(crate) fn run() -> Run {
    Run {
        version: String::new(),
        scenario: String::new(),
        seed: 7,
        duration: 20_000,
        subject: String::new(),
        kinds: Vec::new(),
        masters: 3,
        compose: false,
        clients: 2,
        ttl: 2_000,
        leases: 0,
    }
}

/// One that ends then.
pub(crate) fn end(at: u64) -> History {
    History { end: at * 1_000, ..History::default() }
}

/// What was found, in words.
pub(crate) fn words(found: &[Violation]) -> Vec<&str> {
    found.iter().map(|violation| &*violation.what).collect()
}
