//! A hold that lives longer than it was asked for: others wait for it as much longer.

use super::lab::{LOCK, Lab, RECORD};
use super::operation::{A, B, C, Operation, acquire, extend, queue, transfer};
use super::said::Said;

super::scenarios! {
    Guarded:
        who_asks_for_less_of_what_it_holds_is_kept_as_long_as_before,
        who_asks_for_as_much_or_more_is_kept_for_what_it_says,
        what_is_transferred_is_kept_as_long_as_before,
        what_is_made_again_lives_as_long_as_it_was_kept,
        what_was_anothers_is_not_made_for_longer,
        a_hold_without_expiry_gets_one;
    Exact:
        a_part_of_a_millisecond_is_a_whole_one,
        a_millisecond_more_counts;
}

/// A hold of 60 seconds, which others wait for a second longer.
fn long(operation: Operation) -> Operation {
    operation.ttl(60_000).kept(61_000)
}

/// Checks for how long (ms) others have to wait by the record's words, counted from a moment since this lab began.
fn assert_kept(lab: &Lab, round: &str, millis: u64) {
    let record = lab.record().unwrap();
    let words: Vec<&str> = record.splitn(5, ':').collect();
    let [watch, until] = [words[2], words[3]].map(|word| word.parse::<u64>().unwrap());
    let since = lab.began();
    let passed = (lab.now() - since).div_ceil(1000);
    assert_eq!(words[1], round, "{record}");
    assert!((millis - passed..=millis).contains(&watch), "{record}: for {watch} ms, not for {millis}");
    assert!((since..=lab.now()).contains(&(until - watch * 1000)), "{record}");
}

fn who_asks_for_less_of_what_it_holds_is_kept_as_long_as_before(lab: &Lab) {
    lab.run(long(acquire(A)));
    assert_kept(lab, "1", 61_000);
    for operation in [extend(A).round(2), acquire(A).round(2), queue(A).round(2)] {
        assert!(lab.run(operation.ttl(5000).kept(6000)).is_grant());
        lab.assert_lives(LOCK, 60_000);
        assert_kept(lab, "2", 61_000);
    }
    lab.command(&["DEL", LOCK]);
    assert!((50_000..=61_000).contains(&lab.run(acquire(B)).held().ttl));
}

fn who_asks_for_as_much_or_more_is_kept_for_what_it_says(lab: &Lab) {
    lab.run(long(acquire(A)));
    assert!(lab.run(extend(A).round(2).ttl(60_000).kept(60_500)).is_grant());
    assert_kept(lab, "2", 60_500);
    assert!(lab.run(extend(A).round(3).ttl(70_000).kept(70_500)).is_grant());
    lab.assert_lives(LOCK, 70_000);
    assert_kept(lab, "3", 70_500);
}

fn what_is_transferred_is_kept_as_long_as_before(lab: &Lab) {
    lab.run(long(acquire(A)));
    for _ in 0..2 {
        assert!(lab.run(transfer(A, B).ttl(5000).kept(6000).round(7)).is_grant());
        lab.assert_lives(LOCK, 60_000);
        assert_kept(lab, "7", 61_000);
    }
    assert!(lab.run(transfer(B, C).ttl(90_000).kept(90_500)).is_grant());
    lab.assert_lives(LOCK, 90_000);
    assert_kept(lab, "1", 90_500);
}

fn what_is_made_again_lives_as_long_as_it_was_kept(lab: &Lab) {
    let token = lab.run(long(acquire(A))).token();
    for token in [token, token + 1] {
        lab.command(&["DEL", LOCK]);
        assert_eq!(lab.run(extend(A).token(token).round(2).ttl(5000).kept(6000)), Said::Granted);
        lab.assert_lives(LOCK, 60_000);
        assert_kept(lab, "2", 61_000);
    }
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(A).token(token + 1).round(3).ttl(70_000).kept(71_000)), Said::Granted);
    lab.assert_lives(LOCK, 70_000);
    assert_kept(lab, "3", 71_000);
}

fn what_was_anothers_is_not_made_for_longer(lab: &Lab) {
    let token = lab.run(long(acquire(A))).token();
    for record in [lab.record(), Some(token.to_string()), None] {
        lab.command(&["DEL", LOCK, RECORD]);
        if let Some(record) = record {
            lab.command(&["SET", RECORD, &record]);
        }
        assert_eq!(lab.run(extend(B).token(token + 1).kept(6000)), Said::Granted);
        lab.assert_lives(LOCK, 5000);
        assert_kept(lab, "1", 6000);
    }
}

fn a_hold_without_expiry_gets_one(lab: &Lab) {
    for (owner, operation) in [(A, extend(A)), (A, acquire(A)), (B, transfer(B, A))] {
        lab.command(&["DEL", LOCK, RECORD]);
        lab.command(&["HSET", LOCK, owner, "1", "fence", "1"]);
        assert!(lab.run(operation.kept(6000).token(lab.now())).is_grant());
        lab.assert_lives(LOCK, 5000);
        assert_kept(lab, "1", 6000);
    }
}

fn a_part_of_a_millisecond_is_a_whole_one(lab: &Lab) {
    lab.run(long(acquire(A)));
    lab.command(&["DEL", LOCK]);
    lab.pass(1);
    lab.run(extend(A).round(2).ttl(5000).kept(6000));
    assert_eq!(lab.command(&["PTTL", LOCK]), quorate_testkit::Resp::Int(60_000));
    assert!(lab.record().unwrap().contains(&format!(":2:61000:{}:", lab.now() + 61_000_000)));
}

fn a_millisecond_more_counts(lab: &Lab) {
    lab.run(acquire(A));
    assert!(lab.run(transfer(A, B).ttl(4999).kept(6000)).is_grant());
    assert_eq!(lab.command(&["PTTL", LOCK]), quorate_testkit::Resp::Int(5000));
    assert!(lab.record().unwrap().contains(&format!(":1:6001:{}:", lab.now() + 6_001_000)));
}
