//! Made-up histories, for the tests. Times are in microseconds.

use std::time::Duration;

use quorate_chaos::history::{
    Abstention, Call, FaultRecord, History, Hold, Lock, Made, NoVote, Outcome, Share, Struck, Time,
};
use quorate_chaos::naive::Naive;
use quorate_chaos::run::{self, Trial, Verdict};
use quorate_chaos::scenario;
use quorate_chaos::workload::Subject;

pub(crate) fn micros(time: u64) -> Time {
    Time::from_micros(time)
}

pub(crate) fn lock(name: &str) -> Lock {
    Lock { kind: "mutex".to_owned(), names: vec![name.to_owned()], share: Share::Exclusive }
}

/// A guard of `l`, which was never given back.
pub(crate) fn hold(owner: &str, granted: u64, deadline: u64) -> Hold {
    Hold {
        lock: lock("l"),
        owner: owner.to_owned(),
        process: "client-0.1".to_owned(),
        asked: micros(granted - 1),
        granted: micros(granted),
        deadline: micros(deadline),
        given_back: None,
        free: None,
        lost: None,
        fence: None,
        permit: None,
    }
}

pub(crate) fn acquire(process: &str, invoked: u64, returned: u64, outcome: Outcome) -> Made {
    let call = Call::Acquire { lock: lock("l"), ttl: micros(2_000_000), wait: Time::ZERO };
    let invoked = micros(invoked);
    let returned = Some(micros(returned));
    Made { process: process.to_owned(), number: 0, call, invoked, returned, outcome }
}

pub(crate) fn struck(family: &str, masters: &[usize], clients: &[usize], from: u64, to: u64) -> Struck {
    let masters = masters.to_vec();
    let clients = clients.to_vec();
    let family = family.to_owned();
    let what = "kill <it>".to_owned();
    let fault = FaultRecord { number: Some(0), family, what, masters, clients };
    Struck { fault, from: micros(from), to: Some(micros(to)), before: Vec::new() }
}

pub(crate) fn trial() -> Trial {
    Trial {
        scenario: scenario::INSIDE,
        seed: 7,
        length: Duration::from_secs(10),
        masters: 3,
        clients: 2,
        subject: Subject::Naive(Naive::Textbook),
        ttl: Duration::from_secs(2),
    }
}

/// Two that have one lock, a fault of each kind, and every answer.
pub(crate) fn outcome() -> run::TrialOutcome {
    let granted =
        || Outcome::Granted { owner: String::new(), deadline: Time::ZERO, fence: None, permit: None };
    let why = || "why & <how>".to_owned();
    let history = History {
        calls: vec![
            acquire("client-0.1", 1_000_000, 1_001_000, granted()),
            acquire("client-1.1", 1_500_000, 1_510_000, granted()),
            acquire("client-1.1", 3_500_000, 3_510_000, Outcome::Failed { why: why() }),
            acquire("client-0.2", 4_500_000, 4_510_000, Outcome::Unknown { why: why() }),
        ],
        holds: vec![
            hold("a", 1_001_000, 3_000_000),
            Hold {
                process: "client-1.1".to_owned(),
                lost: Some(micros(1_900_000)),
                ..hold("b", 1_510_000, 3_500_000)
            },
        ],
        faults: vec![
            struck("servers", &[0], &[], 1_200_000, 2_000_000),
            struck("network", &[1, 2], &[0, 1], 1_300_000, 2_000_000),
            struck("keys", &[2], &[], 1_400_000, 1_400_000),
            struck("clients", &[], &[0], 3_600_000, 4_000_000),
        ],
        abstentions: vec![Abstention {
            at: micros(2_500_000),
            of: NoVote { master: 2, why: "quarantine".to_owned() },
        }],
        calm: Some(micros(9_000_000)),
        end: micros(11_000_000),
        bound: Time::from_secs(9),
        ..History::default()
    };
    let verdict = Verdict::of(&history);
    run::TrialOutcome { history, verdict }
}
