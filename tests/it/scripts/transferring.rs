//! Giving a lock to another owner.

use super::lab::{LOCK, Lab, RECORD};
use super::operation::{A, B, C, acquire, extend, release, transfer};
use super::said::Said;

super::scenarios! {
    Both:
        a_transfer_renames_the_owner_once_and_never_shortens,
        a_transfer_takes_the_new_owners_round_for_its_own;
    Guarded:
        a_transfer_with_a_new_token_is_a_grant,
        a_transfer_with_the_same_token_tells_none,
        a_new_token_is_above_that_of_the_lock,
        a_transfer_by_a_token_of_another_time_leaves_the_lock_where_it_is,
        a_transfer_without_guards_leaves_the_record_and_has_no_token,
        a_transferred_lock_is_kept_from_others_for_its_new_owner;
}

fn a_transfer_renames_the_owner_once_and_never_shortens(lab: &Lab) {
    assert_eq!(lab.run(transfer(A, B)), Said::Absent);
    assert!(lab.locks().is_empty(), "it makes no lock");
    lab.run(acquire(A).ttl(60_000).round(9));
    assert_eq!(lab.run(transfer(C, B)).held().owner, A);
    for _ in 0..2 {
        assert!(lab.run(transfer(A, B)).is_grant(), "also when it runs again");
        assert_eq!((lab.count(A), lab.count(B).as_deref()), (None, Some("1")));
        lab.assert_lives(LOCK, 60_000);
    }
    assert_eq!(lab.run(transfer(A, C)).held().owner, B, "who had it before cannot give it away");
    assert_eq!(lab.run(release(A).round(10)).held().owner, B);
    assert!(lab.run(transfer(A, B).ttl(90_000).round(2)).is_grant());
    lab.assert_lives(LOCK, 90_000);
    assert_eq!(lab.run(transfer(A, B).ttl(90_000)), Said::Stale("2".to_owned()));
    lab.command(&["DEL", RECORD, LOCK]);
    lab.run(acquire(A));
    assert!(lab.run(transfer(A, B).ttl(90_000)).is_grant());
    lab.assert_lives(LOCK, 90_000);
}

fn a_transfer_takes_the_new_owners_round_for_its_own(lab: &Lab) {
    lab.run(acquire(A).count(2).round(1_000_000));
    assert!(lab.run(transfer(A, B).count(3).round(4)).is_grant(), "rounds of two clients do not compare");
    assert_eq!((lab.count(A), lab.count(B).as_deref()), (None, Some("3")));
    assert_eq!(lab.run(release(B).round(3)), Said::Stale("4".to_owned()));
    assert_eq!(lab.run(release(B).round(4)), Said::Granted);
}

fn a_transfer_with_a_new_token_is_a_grant(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    let new = lab.run(transfer(A, B).token(token + 4).round(7)).token();
    assert_eq!(new, token + 4);
    assert_eq!(super::lab::text(&lab.command(&["HGET", LOCK, "fence"])), new.to_string());
    assert_eq!(lab.run(transfer(A, B).token(token + 9).round(7)).token(), new, "the same again");
    lab.run(release(B).round(8));
    assert_eq!(lab.record(), Some(new.to_string()));
}

fn a_transfer_with_the_same_token_tells_none(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    for _ in 0..2 {
        assert_eq!(lab.run(transfer(A, B).same_token().round(7)), Said::Granted);
        assert_eq!(super::lab::text(&lab.command(&["HGET", LOCK, "fence"])), token.to_string());
        let record = lab.record().unwrap();
        assert!(record.starts_with(&format!("{token}:7:")) && record.ends_with(B), "{record}");
    }
}

fn a_new_token_is_above_that_of_the_lock(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    assert_eq!(lab.run(transfer(A, B).token(token - 100)).token(), token + 1);
    lab.command(&["DEL", RECORD, LOCK]);
    lab.command(&["HSET", LOCK, A, "1", "round", "1"]);
    let token = lab.now();
    assert_eq!(lab.run(transfer(A, B).token(token)).token(), token, "it had none");
    lab.command(&["DEL", RECORD, LOCK]);
    lab.command(&["HSET", LOCK, A, "1", "round", "1"]);
    assert_eq!(lab.run(transfer(A, B).same_token()), Said::Granted, "it has none");
    assert_eq!(lab.record(), None);
}

fn a_transfer_by_a_token_of_another_time_leaves_the_lock_where_it_is(lab: &Lab) {
    lab.run(acquire(A));
    let record = lab.record();
    for wrong in [lab.now() + 3_600_000_000, lab.now() - 3_600_000_000] {
        assert_eq!(lab.run(transfer(A, B).token(wrong)).refused(), "CLOCK");
    }
    assert_eq!((lab.count(A).as_deref(), lab.count(B)), (Some("1"), None));
    assert_eq!(lab.record(), record);
}

fn a_transfer_without_guards_leaves_the_record_and_has_no_token(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    let record = lab.record();
    lab.set_head(["", "", ""]);
    for _ in 0..2 {
        assert_eq!(lab.run(transfer(A, B).token(token + 9)), Said::Granted);
        assert_eq!(lab.command(&["HGET", LOCK, "fence"]), quorate_testkit::Resp::Nil);
        assert_eq!(lab.record(), record);
    }
}

fn a_transferred_lock_is_kept_from_others_for_its_new_owner(lab: &Lab) {
    lab.run(acquire(A));
    let token = lab.run(transfer(A, B).kept(60_000)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(acquire(C)).held().owner, B);
    assert_eq!(lab.run(release(A).round(9)), Said::Absent);
    assert_eq!(lab.run(acquire(C)).held().owner, B, "it is not A's to release");
    assert_eq!(lab.run(extend(B).token(token).round(2)), Said::Granted);
}
