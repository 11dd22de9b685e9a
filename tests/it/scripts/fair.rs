//! Whose turn it is with a fair lock, and how it is kept, beside what holds for every lock.

use super::denied::without;
use super::ear::Ear;
use super::lab::{LOCK, Lab, QUEUE};
use super::operation::{A, B, C, Operation, acquire, extend, inspect, queue, release, transfer, withdraw};
use super::said::{Held, Said};

super::scenarios! {
    Both:
        a_hold_is_none_of_a_reentrant_lock_and_the_reverse,
        a_free_lock_is_refused_to_all_who_came_later,
        a_lock_that_is_held_or_its_own_is_nobodys_turn,
        whoever_is_called_keeps_its_place_until_it_asks,
        whoever_does_not_hear_is_passed_over,
        what_nobody_can_be_called_by_is_passed_over,
        an_acquire_that_names_no_queue_takes_what_is_free,
        whoever_leaves_takes_its_call_along,
        whoever_got_it_by_an_extend_leaves_no_place,
        a_caller_that_may_call_nobody_waits_all_the_same,
        what_cannot_be_found_out_is_refused,
        a_call_that_cannot_be_noted_is_a_call;
    Exact:
        whoever_is_called_has_a_second_to_ask,
        of_two_of_the_same_moment_neither_is_first,
        who_was_here_first_is_by_what_is_believed;
}

const CHANNEL_OF_B: &str = "wake:00000000-0000-0000-0000-00000000000b";
const CHANNEL_OF_C: &str = "wake:00000000-0000-0000-0000-00000000000c";
const DEAD: &str = "00000000-0000-0000-0000-00000000000d:5";
const SECOND: u64 = 1_000_000;

/// An acquire that takes a place, having waited for so many microseconds.
fn waits(lab: &Lab, owner: &str, waited: u64) -> Operation {
    queue(owner).place(owner, lab.now() - waited, waited)
}

/// B has waited for longest, then C; and the lock is free, and nobody was called.
fn two_wait_for_what_is_free(lab: &Lab) {
    lab.run(acquire(A));
    lab.run(waits(lab, B, 30 * SECOND));
    lab.run(waits(lab, C, 20 * SECOND));
    lab.command(&["DEL", LOCK, super::lab::RECORD]);
}

/// Who is next, as whoever is refused for it hears, and for how long (ms) that one may take.
fn next(lab: &Lab, asks: Operation) -> (String, i64) {
    let Held { owner, count, ttl, watch, .. } = lab.run(asks).held();
    assert_eq!((&*count, watch), ("0", None));
    (owner, ttl)
}

fn a_hold_is_none_of_a_reentrant_lock_and_the_reverse(lab: &Lab) {
    lab.run(acquire(A).count(2));
    assert_eq!(lab.field(A).as_deref(), Some("2 fair"));
    let held = lab.run(acquire(B)).held();
    assert_eq!((&*held.owner, &*held.count), (A, "2"));
    assert_eq!(lab.run(release(A).count(1).round(2)), Said::Granted);
    assert_eq!(lab.field(A).as_deref(), Some("1 fair"));
    lab.command(&["DEL", LOCK]);
    for value in ["1", "fair", "1 fairly", "x1 fair", " fair"] {
        lab.command(&["HSET", LOCK, A, value, "round", "1"]);
        for owner in [A, B] {
            for ask in
                [acquire(owner), queue(owner), extend(owner), release(owner), transfer(owner, C), inspect()]
            {
                assert_eq!(lab.run(ask).refused(), "WRONGTYPE", "{value}");
            }
        }
        assert_eq!(lab.field(A).as_deref(), Some(value), "it is left alone");
    }
}

fn a_free_lock_is_refused_to_all_who_came_later(lab: &Lab) {
    let mut ear = Ear::new(lab, CHANNEL_OF_B);
    two_wait_for_what_is_free(lab);
    let newcomer = queue(A);
    let (owner, ttl) = next(lab, newcomer.clone());
    assert!(owner == B && (1..=1000).contains(&ttl), "{owner} {ttl}");
    assert_eq!(ear.heard(), ["1"]);
    let Held { owner, ahead, .. } = lab.run(waits(lab, A, 10 * SECOND)).held();
    assert_eq!((&*owner, ahead), (B, Some(2)), "it takes a place");
    assert_eq!(next(lab, waits(lab, C, 20 * SECOND).before(C)).0, B, "C came later than B");
    assert_eq!(ear.heard(), [""; 0], "it was called already");
    assert_eq!(lab.locks(), [QUEUE], "nobody has it");
    assert!(lab.run(waits(lab, B, 30 * SECOND).before(B)).is_grant());
    assert_eq!(lab.queue(), [C, A]);
}

fn a_lock_that_is_held_or_its_own_is_nobodys_turn(lab: &Lab) {
    let mut ear = Ear::new(lab, CHANNEL_OF_B);
    lab.run(acquire(A));
    lab.run(waits(lab, B, 30 * SECOND));
    assert_eq!(lab.run(queue(C)).held().owner, A);
    assert!(lab.run(queue(A).count(2).round(2)).is_grant(), "it is its own");
    assert_eq!(lab.run(extend(A).round(3)), Said::Granted);
    assert!(lab.run(transfer(A, C)).is_grant());
    assert_eq!(ear.heard(), [""; 0]);
    assert_eq!(lab.queue(), [B]);
}

fn whoever_is_called_keeps_its_place_until_it_asks(lab: &Lab) {
    let mut ears = [Ear::new(lab, CHANNEL_OF_B), Ear::new(lab, CHANNEL_OF_C)];
    lab.run(acquire(A));
    lab.run(waits(lab, B, 30 * SECOND));
    lab.run(waits(lab, C, 20 * SECOND));
    assert_eq!(lab.run(release(A).count(1).round(2)), Said::Granted);
    assert_eq!(lab.queue(), [B, C], "it is still held");
    assert_eq!(lab.run(release(A).round(3)), Said::Granted);
    assert_eq!(lab.queue(), [B, C, &format!("!{B}")]);
    assert_eq!(lab.run(release(A).round(4)), Said::Absent);
    assert_eq!(ears.each_mut().map(Ear::heard), [vec!["1"], vec![]], "once");
    // A younger one has it meanwhile, by what another master knows.
    lab.run(acquire(A));
    assert_eq!(lab.run(waits(lab, B, 30 * SECOND).before(B)).held().owner, A);
    assert_eq!(lab.queue(), [B, C], "it has asked");
    lab.run(release(A));
    assert_eq!(ears.each_mut().map(Ear::heard), [vec!["1"], vec![]]);
    assert!(lab.run(waits(lab, B, 30 * SECOND).before(B)).is_grant());
    assert_eq!(lab.run(withdraw(B).place(B, lab.now() - 30 * SECOND, 30 * SECOND)), Said::Granted);
    assert_eq!(lab.queue(), [B, C], "it stands where it was");
    assert_eq!(ears.each_mut().map(Ear::heard), [vec![""; 0], vec![]]);
}

fn whoever_does_not_hear_is_passed_over(lab: &Lab) {
    let mut ear = Ear::new(lab, CHANNEL_OF_C);
    lab.run(acquire(A));
    lab.run(waits(lab, DEAD, 40 * SECOND));
    lab.run(waits(lab, B, 30 * SECOND));
    lab.run(waits(lab, C, 20 * SECOND));
    lab.run(release(A));
    assert_eq!(ear.heard(), ["77"]);
    assert_eq!(lab.queue(), [C, &format!("!{C}")]);
    lab.run(acquire(A));
    lab.command(&["DEL", LOCK, super::lab::RECORD, QUEUE]);
    lab.command(&["ZADD", QUEUE, "1", DEAD]);
    assert!(lab.run(queue(A)).is_grant(), "nobody is left");
    assert_eq!(lab.locks(), [LOCK]);
}

fn what_nobody_can_be_called_by_is_passed_over(lab: &Lab) {
    let mut ear = Ear::new(lab, CHANNEL_OF_C);
    lab.run(acquire(A));
    lab.command(&["ZADD", QUEUE, "1", "no ticket", "2", ":", "3", "x:y", "4", "!left:1"]);
    lab.run(waits(lab, C, 0));
    lab.run(release(A));
    assert_eq!(ear.heard(), ["77"]);
    assert_eq!(lab.queue(), [C, &format!("!{C}")]);
}

fn an_acquire_that_names_no_queue_takes_what_is_free(lab: &Lab) {
    two_wait_for_what_is_free(lab);
    assert!(lab.run(acquire(A)).is_grant());
    assert_eq!(lab.queue(), [B, C]);
}

fn whoever_leaves_takes_its_call_along(lab: &Lab) {
    let _ear = Ear::new(lab, CHANNEL_OF_B);
    let mut ear = Ear::new(lab, CHANNEL_OF_C);
    two_wait_for_what_is_free(lab);
    next(lab, queue(A));
    assert_eq!(lab.run(release(B)), Said::Absent);
    assert_eq!(lab.queue(), [C, &format!("!{C}")], "and calls the next one");
    assert_eq!(ear.heard(), ["77"]);
}

fn whoever_got_it_by_an_extend_leaves_no_place(lab: &Lab) {
    let mut own = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000a");
    let mut ear = Ear::new(lab, CHANNEL_OF_B);
    lab.run(acquire(C));
    lab.run(waits(lab, A, 30 * SECOND));
    lab.run(waits(lab, B, 20 * SECOND));
    lab.command(&["DEL", LOCK, super::lab::RECORD]);
    lab.run(acquire(A));
    assert_eq!(lab.run(release(A).round(2)), Said::Granted);
    assert_eq!(lab.queue(), [B, &format!("!{B}")]);
    assert_eq!(ear.heard(), ["1"]);
    assert_eq!(own.heard(), [""; 0]);
}

/// The first asks by itself in the end.
fn a_caller_that_may_call_nobody_waits_all_the_same(lab: &Lab) {
    two_wait_for_what_is_free(lab);
    lab.command(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(next(lab, queue(A)).0, B);
    assert_eq!(lab.queue(), [B, C, &format!("!{B}")]);
    assert_eq!(next(lab, queue(A)).0, B);
    assert!(lab.run(waits(lab, B, 30 * SECOND).before(B)).is_grant());
}

fn what_cannot_be_found_out_is_refused(lab: &Lab) {
    let before = |lab: &Lab| two_wait_for_what_is_free(lab);
    for denied in ["zrange", "time", "zscore", "zrem"] {
        before(lab);
        let why = without(lab, denied, &queue(A));
        assert!(why.contains("can't run this command"), "without {denied}: {why}");
        lab.command(&["DEL", QUEUE]);
    }
    before(lab);
    lab.command(&["ACL", "SETUSER", "default", "-zrange"]);
    lab.run(acquire(A));
    assert_eq!(lab.run(release(A)), Said::Granted, "though nobody is called");
    lab.command(&["ACL", "SETUSER", "default", "+zrange"]);
    lab.command(&["DEL", QUEUE]);
    lab.command(&["SET", QUEUE, "no queue"]);
    assert_eq!(lab.run(queue(A)).refused(), "WRONGTYPE");
    lab.command(&["DEL", QUEUE]);
}

fn a_call_that_cannot_be_noted_is_a_call(lab: &Lab) {
    let mut ear = Ear::new(lab, CHANNEL_OF_B);
    two_wait_for_what_is_free(lab);
    lab.command(&["ACL", "SETUSER", "default", "-zadd"]);
    assert_eq!(next(lab, queue(A)).0, B);
    assert_eq!(next(lab, queue(A)).0, B);
    assert_eq!(ear.heard(), ["1", "1"]);
    assert_eq!(lab.queue(), [B, C]);
}

fn whoever_is_called_has_a_second_to_ask(lab: &Lab) {
    let mut ears = [Ear::new(lab, CHANNEL_OF_B), Ear::new(lab, CHANNEL_OF_C)];
    two_wait_for_what_is_free(lab);
    assert_eq!(next(lab, queue(A)), (B.to_owned(), 1000));
    lab.pass(1);
    assert_eq!(next(lab, queue(A)), (B.to_owned(), 1000));
    lab.pass(SECOND - 2);
    assert_eq!(next(lab, queue(A)), (B.to_owned(), 1));
    lab.pass(1);
    assert_eq!(
        next(lab, queue(A)),
        (C.to_owned(), 1000),
        "its time is over, and that of the next one begins"
    );
    assert_eq!(lab.queue(), [C, &format!("!{C}")]);
    assert_eq!(ears.each_mut().map(Ear::heard), [["1"], ["77"]]);
    lab.pass(SECOND + 1);
    assert!(lab.run(queue(A)).is_grant());
    assert_eq!(lab.locks(), [LOCK]);
}

fn of_two_of_the_same_moment_neither_is_first(lab: &Lab) {
    let _ear = Ear::new(lab, CHANNEL_OF_B);
    two_wait_for_what_is_free(lab);
    assert_eq!(next(lab, waits(lab, A, 30 * SECOND - 1)).0, B);
    assert_eq!(next(lab, waits(lab, A, 30 * SECOND - 1).before(A)).0, B);
    assert!(lab.run(waits(lab, A, 30 * SECOND).before(A)).is_grant());
}

/// Whoever says that it came long ago, and has not waited, came now.
fn who_was_here_first_is_by_what_is_believed(lab: &Lab) {
    let _ear = Ear::new(lab, CHANNEL_OF_B);
    lab.run(acquire(C));
    lab.run(waits(lab, B, 300_000));
    lab.run(release(C));
    assert_eq!(next(lab, queue(A).place(A, lab.now() - 60 * SECOND, 0)).0, B);
    assert!(lab.run(queue(A).before(A).place(A, lab.now() - 400_000, 0)).is_grant(), "within the band");
}
