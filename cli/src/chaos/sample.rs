//! Made-up histories, for the tests. Times are in microseconds.

use std::time::Duration;

use quorate_chaos::history::{
    Abstention, Call, FaultRecord, History, Hold, Lock, Made, Micros, NoVote, Outcome, Share, Struck,
};
use quorate_chaos::naive::Naive;
use quorate_chaos::run::{self, Trial, Verdict};
use quorate_chaos::scenario;
use quorate_chaos::workload::Subject;

pub(crate) fn lock(name: &str) -> Lock {
    Lock { kind: "mutex".to_owned(), names: vec![name.to_owned()], share: Share::Exclusive }
}

/// A guard of `l`, which was never given back.
pub(crate) fn hold(owner: &str, granted: Micros, deadline: Micros) -> Hold {
    Hold {
        lock: lock("l"),
        owner: owner.to_owned(),
        process: "client-0.1".to_owned(),
        asked: granted - 1,
        granted,
        deadline,
        given_back: None,
        free: None,
        lost: None,
        fence: None,
        permit: None,
    }
}

pub(crate) fn acquire(process: &str, invoked: Micros, returned: Micros, outcome: Outcome) -> Made {
    let call = Call::Acquire { lock: lock("l"), ttl: 2_000_000, wait: 0 };
    Made { process: process.to_owned(), number: 0, call, invoked, returned: Some(returned), outcome }
}

pub(crate) fn struck(family: &str, masters: &[usize], clients: &[usize], from: Micros, to: Micros) -> Struck {
    let masters = masters.to_vec();
    let clients = clients.to_vec();
    let family = family.to_owned();
    let what = "kill <it>".to_owned();
    let fault = FaultRecord { number: Some(0), family, what, masters, clients };
    Struck { fault, from, to: Some(to), before: Vec::new() }
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
    let granted = || Outcome::Granted { owner: String::new(), deadline: 0, fence: None, permit: None };
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
                lost: Some(1_900_000),
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
            at: 2_500_000,
            of: NoVote { master: 2, why: "quarantine".to_owned() },
        }],
        calm: Some(9_000_000),
        end: 11_000_000,
        ..History::default()
    };
    let verdict = Verdict::of(&history, Duration::from_secs(9));
    run::TrialOutcome { history, verdict }
}
