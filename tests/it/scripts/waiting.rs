//! The queue beside a lock: who gets a place in it, and who is woken.

use super::ear::Ear;
use super::lab::{LOCK, Lab, QUEUE, READ_WRITE, RECORD};
use super::operation::{A, B, C, acquire, queue, release, withdraw};
use super::said::{Held, Said};

super::scenarios! {
    Both:
        only_a_full_release_wakes_and_only_the_first_whose_client_listens,
        a_place_is_taken_over_and_given_up,
        a_withdrawal_takes_a_place_and_wakes_nobody,
        a_withdrawal_of_what_is_not_its_own_takes_no_place,
        a_release_of_what_is_gone_wakes_and_of_what_is_anothers_does_not,
        a_release_that_is_refused_wakes_nobody,
        the_order_is_by_the_waiters_own_time_within_a_band,
        a_full_queue_gives_no_place,
        who_gets_the_lock_takes_no_place,
        who_leaves_does_not_call_itself,
        what_nobody_can_be_woken_by_is_dropped,
        a_call_that_is_denied_is_for_the_next_one,
        a_queue_that_fails_gives_no_place;
    Exact:
        a_moment_beyond_the_band_is_not_believed;
}

/// Takes a place, having waited for so many microseconds.
fn stand(lab: &Lab, owner: &str, before: &str, waited: u64) -> Said {
    lab.run(queue(owner).before(before).place(owner, lab.now() - waited, waited))
}

fn ahead(said: Said) -> i64 {
    said.held().ahead.expect("it was to have a place")
}

fn only_a_full_release_wakes_and_only_the_first_whose_client_listens(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    let dead = "00000000-0000-0000-0000-00000000000d:5";
    lab.run(acquire(A).count(2));
    stand(lab, C, "", 200_000);
    assert_eq!(ahead(stand(lab, dead, "", 300_000)), 0, "it has waited for longer");
    assert_eq!(ahead(stand(lab, B, "", 100_000)), 2);
    assert_eq!(lab.queue(), [dead, C, B]);
    lab.run(release(A).count(1).round(2));
    assert_eq!(lab.queue().len(), 3);
    lab.run(release(A).round(3));
    assert_eq!(lab.queue(), [B], "the dead one was skipped, and the next one woken");
    assert_eq!(ear.heard(), ["77"]);
}

fn a_place_is_taken_over_and_given_up(lab: &Lab) {
    lab.run(acquire(A));
    stand(lab, B, "", 200_000);
    stand(lab, C, B, 200_000);
    assert_eq!(lab.queue(), [C], "the next attempt of one waiter takes over its place");
    lab.assert_lives(QUEUE, 120_000);
    lab.run(release(A).round(2)); // C's client is not there
    stand(lab, C, "", 200_000);
    assert_eq!(lab.locks(), [LOCK], "a grant leaves no place");
    stand(lab, B, "", 200_000);
    lab.run(release(B).count(1).round(2));
    assert_eq!(lab.queue(), [B], "who does not leave stays");
    assert_eq!(lab.run(release(B).round(2)).held().owner, C);
    assert!(lab.queue().is_empty(), "whoever leaves");
    stand(lab, B, "", 200_000);
    lab.run(queue(A).round(3).before(B));
    assert!(lab.queue().is_empty(), "the last attempt takes no place");
}

fn a_withdrawal_takes_a_place_and_wakes_nobody(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000b");
    lab.run(acquire(A).count(2));
    stand(lab, B, "", 200_000);
    let (since, waited) = (lab.now() - 1000, 1000);
    assert_eq!(lab.run(withdraw(A).count(1).round(2).place(A, since, waited)), Said::Granted);
    assert_eq!(lab.queue(), [B], "what is still held needs no place");
    assert_eq!(lab.run(withdraw(A).round(2).place(A, since, waited)), Said::Granted);
    assert_eq!(lab.queue(), [B, A]);
    assert!(ear.heard().is_empty());
}

fn a_withdrawal_of_what_is_not_its_own_takes_no_place(lab: &Lab) {
    let place = |lab: &Lab| withdraw(A).place(A, lab.now(), 0);
    assert_eq!(lab.run(place(lab)), Said::Absent);
    lab.run(acquire(B));
    assert_eq!(lab.run(place(lab)).held().owner, B);
    assert!(lab.queue().is_empty());
    assert_eq!(lab.locks(), [LOCK]);
}

fn a_release_of_what_is_gone_wakes_and_of_what_is_anothers_does_not(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(A));
    stand(lab, C, "", 200_000);
    lab.run(release(B));
    lab.run(release(A).round(0));
    assert!(ear.heard().is_empty(), "the lock is not free");
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(release(B).count(1)), Said::Absent);
    assert!(ear.heard().is_empty(), "it does not leave");
    assert_eq!(lab.run(release(B)), Said::Absent);
    assert_eq!(ear.heard(), ["77"]);
    assert!(lab.queue().is_empty());
}

fn a_release_that_is_refused_wakes_nobody(lab: &Lab) {
    lab.run(acquire(A));
    stand(lab, B, "", 0);
    lab.command(&["ACL", "SETUSER", "default", "-del"]);
    assert_eq!(lab.run(release(A)).refused(), "ERR");
    assert_eq!(lab.queue(), [B]);
}

/// Each master has the same order, whatever its own clock says; and a clock that is wrong buys no place ahead.
fn the_order_is_by_the_waiters_own_time_within_a_band(lab: &Lab) {
    lab.run(acquire(A));
    let now = lab.now();
    lab.run(queue(B).place(B, now - 3_600_000_000, 0));
    lab.run(queue(C).place(C, now - 300_000, 0));
    assert_eq!(lab.queue(), [C, B]);
    assert_eq!(score(lab, C), now - 300_000, "as it said");
    assert!((now..=lab.now()).contains(&score(lab, B)), "as it is here");
}

fn a_moment_beyond_the_band_is_not_believed(lab: &Lab) {
    lab.run(acquire(A));
    let now = lab.now();
    for (since, taken) in [
        (now - 500_000, now - 500_000),
        (now - 500_001, now),
        (now + 500_000, now + 500_000),
        (now + 500_001, now),
    ] {
        lab.run(queue(B).place(B, since, 0));
        assert_eq!(score(lab, B), taken);
    }
    lab.run(queue(B).place(B, 0, 7));
    assert_eq!(score(lab, B), now - 7);
}

fn score(lab: &Lab, ticket: &str) -> u64 {
    let all = lab.command(&["ZRANGE", QUEUE, "0", "-1", "WITHSCORES"]);
    let quorate_testkit::Resp::List(all) = all else { panic!("{all:?}") };
    let words: Vec<String> = all.iter().map(super::lab::text).collect();
    let place =
        words.iter().position(|word| word.trim_start_matches("w:") == ticket).expect("it has a place");
    words[place + 1].parse::<f64>().unwrap() as u64
}

fn a_full_queue_gives_no_place(lab: &Lab) {
    lab.run(acquire(A));
    let members: Vec<String> = (0..1023).flat_map(|i| [i.to_string(), format!("{i}:1")]).collect();
    lab.command(&["ZADD", QUEUE].into_iter().chain(members.iter().map(|word| &**word)).collect::<Vec<_>>());
    assert_eq!(ahead(stand(lab, B, "", 0)), 1023, "the last place");
    assert_eq!(ahead(stand(lab, C, "", 0)), -1);
    assert_eq!(lab.queue().len(), 1024);
}

fn who_gets_the_lock_takes_no_place(lab: &Lab) {
    assert!(stand(lab, A, "", 0).is_grant());
    assert!(matches!(stand(lab, A, "", 0), Said::Granted | Said::Token(_)));
    assert_eq!(lab.run(queue(A).round(0).place(A, lab.now(), 0)), Said::Stale("1".to_owned()));
    assert_eq!(lab.run(queue(B)).held().ahead, None, "it asks for none");
    assert_eq!(lab.locks(), [LOCK]);
}

/// It was refused here, though others granted, and got the lock by an extend.
fn who_leaves_does_not_call_itself(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(C));
    let now = lab.now();
    let own = if lab.kind() == READ_WRITE { format!("w:{C}") } else { C.to_owned() };
    lab.command(&["ZADD", QUEUE, "1", &own]);
    let next = "00000000-0000-0000-0000-00000000000c:78";
    lab.run(queue(B).place(next, now, 0));
    lab.run(release(C).round(2));
    assert_eq!(ear.heard(), ["78"]);
    assert!(!lab.queue().contains(&C.to_owned()), "{:?}", lab.queue());
}

fn what_nobody_can_be_woken_by_is_dropped(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(A));
    lab.command(&["ZADD", QUEUE, "1", "no ticket", "2", ":", "3", "x:y"]);
    stand(lab, C, "", 0);
    lab.run(release(A));
    assert_eq!(ear.heard(), ["77"]);
    assert!(lab.locks().is_empty());
}

/// Whoever may call nobody takes nobody off the queue.
fn a_call_that_is_denied_is_for_the_next_one(lab: &Lab) {
    lab.run(acquire(A));
    let since = lab.now();
    lab.run(queue(B).place(B, since, 0));
    stand(lab, C, "", 0);
    lab.command(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(lab.run(release(A)), Said::Granted);
    assert_eq!(lab.queue(), [B, C]);
    assert_eq!(score(lab, B), since);
    lab.command(&["ACL", "SETUSER", "default", "+publish", "-zpopmin"]);
    assert_eq!(lab.run(release(A)), Said::Absent);
    assert_eq!(lab.queue(), [B, C]);
}

fn a_queue_that_fails_gives_no_place(lab: &Lab) {
    lab.run(acquire(A));
    for denied in ["time", "zcard", "zadd"] {
        if denied == "time" && lab.has_guards() {
            continue; // nothing is granted then
        }
        lab.command(&["ACL", "SETUSER", "default", &format!("-{denied}")]);
        let waits = lab.run(queue(B).place(B, 1, 0));
        lab.command(&["ACL", "SETUSER", "default", &format!("+{denied}")]);
        assert!(matches!(waits, Said::Held(Held { ahead: Some(-1), .. })), "{denied}: {waits:?}");
        assert!(lab.queue().is_empty());
    }
    lab.command(&["ACL", "SETUSER", "default", "-zrank"]);
    assert_eq!(ahead(stand(lab, B, "", 0)), -1, "nobody knows");
    lab.command(&["ACL", "SETUSER", "default", "+zrank"]);
    lab.command(&["DEL", QUEUE]);
    lab.command(&["SET", QUEUE, "no queue"]);
    assert_eq!(ahead(stand(lab, B, "", 0)), -1);
    assert_eq!(lab.run(release(B)).refused(), "WRONGTYPE");
    assert_eq!(lab.run(release(A)), Said::Granted, "though there is nobody to wake");
    lab.command(&["DEL", RECORD, QUEUE]);
}
