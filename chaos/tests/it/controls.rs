//! Locks that are known to be wrong: in the scenario that each of them is known for, the checker
//! that names its defect finds it, every time, and finds nothing of Quorate's lock. A checker that
//! finds nothing of either shows nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_chaos::checkers::{self, NOT_REAL};
use quorate_chaos::history::{History, Made, Outcome};
use quorate_chaos::naive::Naive;
use quorate_chaos::nemesis::{Clients, Fault, Network, Replicas, Servers, What};
use quorate_chaos::run::{Role, Setting, Stage};
use quorate_chaos::workload::{Kind, Order, Subject};
use quorate_testkit::Way;

use crate::{stage, until};

/// Longer than a scenario takes, on a busy machine (ms).
const LONG: u64 = 25_000;

/// A lease that a scenario waits for the end of (ms).
const SHORT: u64 = 1_000;

/// How long a client that must get a lock waits for it (ms).
const PATIENT: u64 = 5_000;

/// How long a client that must not get it tries (ms).
const A_WHILE: u64 = 500;

fn quorate() -> Subject {
    Subject::Quorate(vec![Kind::Mutex])
}

/// Masters that are not new, and clients that follow orders.
fn stage(subject: &Subject, masters: usize, clients: usize, ttl: u64) -> Stage {
    let setting = stage::setting(subject.clone(), Duration::from_millis(ttl));
    stage::set(masters, clients, Setting { new_masters: false, role: Role::Obeys, ..setting })
}

fn acquire(ttl: u64, wait: u64) -> Order {
    Order::Acquire { ttl, wait, reads: false }
}

fn read(ttl: u64, wait: u64) -> Order {
    Order::Acquire { ttl, wait, reads: true }
}

fn is_granted(made: &Made) -> bool {
    matches!(made.outcome, Outcome::Granted { .. })
}

/// Which properties do not hold.
fn found(history: &History) -> BTreeSet<&'static str> {
    let history = History { bound: Duration::from_millis(PATIENT), ..history.clone() };
    checkers::check_all_but(&history, &NOT_REAL).iter().map(|violation| violation.property).collect()
}

/// The first client dies before it hears that it has the lock. The second one waits for it.
fn death_of_whoever_asks(subject: &Subject) -> BTreeSet<&'static str> {
    let mut stage = stage(subject, 3, 2, SHORT);
    assert!(is_granted(&stage.obeyed(0, acquire(SHORT, PATIENT))), "it is connected");
    stage.obeyed(0, Order::Release);
    let silence = Fault {
        what: What::Network(Network::partition(Way::Back)),
        masters: vec![0, 1, 2],
        clients: vec![0],
    };
    let wound = stage.strike(&silence);
    stage.order(0, acquire(SHORT, PATIENT));
    let has_ended = |history: History| history.calls.len() > 2 && history.calls[2].returned.is_some();
    until("a key of the lock, or that it gave up", || {
        !stage.arena.masters[0].keys().is_empty() || stage.history().is_some_and(has_ended)
    });
    let death = Fault { what: What::Clients(Clients::Kill), masters: vec![], clients: vec![0] };
    let killed = stage.strike(&death);
    stage.heal(&silence, wound);
    stage.heal(&death, killed);
    stage.calm();
    stage.obeyed(1, acquire(SHORT, PATIENT));
    found(&stage.quiet())
}

#[test]
fn setnx_and_then_expire_is_locked_for_ever_after_a_crash_between_them() {
    let found = death_of_whoever_asks(&Subject::Naive(Naive::SetnxExpire));
    assert_eq!(found, BTreeSet::from(["liveness", "ttl"]));
    assert_eq!(death_of_whoever_asks(&quorate()), BTreeSet::new());
}

/// The second client's wall clock is a minute ahead, and the first one has the lock.
fn fast_client(subject: &Subject) -> BTreeSet<&'static str> {
    let mut stage = stage(subject, 3, 2, LONG);
    stage.arena.clients[1].clock().step(60_000);
    assert!(is_granted(&stage.obeyed(0, acquire(LONG, PATIENT))));
    stage.obeyed(1, acquire(LONG, A_WHILE));
    found(&stage.history().unwrap())
}

#[test]
fn getset_by_client_time_is_held_by_two_where_a_clock_is_fast() {
    assert_eq!(fast_client(&Subject::Naive(Naive::Getset)), BTreeSet::from(["windows"]));
    assert_eq!(fast_client(&quorate()), BTreeSet::new());
}

/// The first client stands still until its lease is over and the second one has the lock, and then
/// gives it back. The third one asks.
fn late_release(subject: &Subject) -> BTreeSet<&'static str> {
    let mut stage = stage(subject, 3, 3, LONG);
    assert!(is_granted(&stage.obeyed(0, acquire(SHORT, PATIENT))));
    let freeze = Fault { what: What::Clients(Clients::Freeze), masters: vec![], clients: vec![0] };
    let wound = stage.strike(&freeze);
    assert!(is_granted(&stage.obeyed(1, acquire(LONG, 2 * PATIENT))), "a lease ends");
    stage.heal(&freeze, wound);
    stage.obeyed(0, Order::Release);
    stage.obeyed(2, acquire(LONG, A_WHILE));
    found(&stage.history().unwrap())
}

#[test]
fn del_without_a_look_at_the_owner_gives_back_what_is_another_s() {
    assert_eq!(late_release(&Subject::Naive(Naive::Del)), BTreeSet::from(["windows"]));
    assert_eq!(late_release(&quorate()), BTreeSet::new());
}

/// Two clients read. The second one does no more, by leaving or by dying, and the third one would
/// write.
fn second_reader_ends(subject: &Subject, leaves: bool) -> BTreeSet<&'static str> {
    let mut stage = stage(subject, 3, 3, LONG);
    assert!(is_granted(&stage.obeyed(0, read(LONG, PATIENT))));
    assert!(is_granted(&stage.obeyed(1, read(SHORT, PATIENT))));
    if leaves {
        stage.obeyed(1, Order::Release);
        stage.obeyed(2, acquire(LONG, A_WHILE));
    } else {
        let death = Fault { what: What::Clients(Clients::Kill), masters: vec![], clients: vec![1] };
        let _dead = stage.strike(&death);
        stage.obeyed(2, acquire(LONG, SHORT + A_WHILE));
    }
    found(&stage.history().unwrap())
}

#[test]
fn readers_with_one_field_let_a_writer_in_when_one_of_them_leaves_or_dies() {
    for leaves in [true, false] {
        let found = second_reader_ends(&Subject::Naive(Naive::ReadWrite), leaves);
        assert_eq!(found, BTreeSet::from(["windows"]), "it leaves: {leaves}");
        let found = second_reader_ends(&Subject::Quorate(vec![Kind::ReadWrite]), leaves);
        assert_eq!(found, BTreeSet::new(), "it leaves: {leaves}");
    }
}

/// The only master has a replica that does not hear of the first client's lock, and takes its
/// place. The second client asks.
fn promotion(subject: &Subject) -> BTreeSet<&'static str> {
    let mut stage = stage(subject, 1, 2, LONG);
    let promotion = Fault { what: What::Replicas(Replicas::Promotion), masters: vec![0], clients: vec![] };
    let wound = stage.strike(&promotion);
    assert!(is_granted(&stage.obeyed(0, acquire(LONG, PATIENT))));
    stage.heal(&promotion, wound);
    stage.obeyed(1, acquire(LONG, A_WHILE));
    found(&stage.history().unwrap())
}

#[test]
fn one_master_and_its_replica_are_held_by_two_after_a_promotion() {
    assert_eq!(promotion(&Subject::Naive(Naive::OneMaster)), BTreeSet::from(["windows"]));
    assert_eq!(promotion(&quorate()), BTreeSet::new());
}

/// The first client reaches three of five masters, and has the lock there. One of them forgets it,
/// which is among the three that the second client reaches.
fn forgetful_master(subject: &Subject) -> BTreeSet<&'static str> {
    let mut stage = stage(subject, 5, 2, LONG);
    let partition = |masters, client| Fault {
        what: What::Network(Network::partition(Way::Both)),
        masters,
        clients: vec![client],
    };
    let _ = (stage.strike(&partition(vec![3, 4], 0)), stage.strike(&partition(vec![0, 1], 1)));
    assert!(is_granted(&stage.obeyed(0, acquire(LONG, PATIENT))));
    let restart = Fault { what: What::Servers(Servers::KillEmpty), masters: vec![2], clients: vec![] };
    let wound = stage.strike(&restart);
    stage.heal(&restart, wound);
    stage.obeyed(1, acquire(LONG, PATIENT));
    found(&stage.history().unwrap())
}

#[test]
fn redlock_without_guards_is_held_by_two_where_a_master_forgot() {
    assert_eq!(forgetful_master(&Subject::Naive(Naive::Textbook)), BTreeSet::from(["windows"]));
    assert_eq!(forgetful_master(&Subject::Rslock), BTreeSet::from(["windows"]), "as others have written it");
    assert_eq!(forgetful_master(&quorate()), BTreeSet::new());
}
