//! Grants that came to nothing: nobody has seen their tokens, and the record is as it was before.

use super::lab::{LOCK, Lab, MARK, MARKER, RECORD};
use super::operation::{A, B, Operation, acquire, extend, queue, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Guarded:
        there_is_no_record_where_there_was_none,
        a_record_is_as_it_was,
        a_holder_takes_back_what_others_tried_to_get,
        where_it_was_its_own_already_it_is_released_by_the_last_token,
        while_holds_remain_the_record_stays,
        an_extend_takes_nothing_from_what_was_before,
        what_was_healed_or_transferred_or_has_no_token_was_nothing_before,
        only_who_is_told_to_undoes,
        without_guards_the_next_one_waits,
        a_record_that_cannot_be_written_again_makes_the_next_one_wait;
}

/// The ways to undo a grant.
fn undo(owner: &str) -> [Operation; 2] {
    [release(owner).undoes().round(9), withdraw(owner).round(9).place(owner, 1, 0)]
}

fn there_is_no_record_where_there_was_none(lab: &Lab) {
    for (grant, undo) in [acquire(A), queue(A)].into_iter().zip(undo(A)) {
        lab.run(grant);
        assert_eq!(lab.field("before").as_deref(), Some(""));
        assert!(lab.record().is_some());
        assert_eq!(lab.run(undo), Said::Granted);
        assert_eq!((lab.count(A), lab.record()), (None, None));
    }
}

fn a_record_is_as_it_was(lab: &Lab) {
    let old = lab.now() - 3_600_000_000;
    let (released, unreleased) = (old.to_string(), format!("{old}:5:1:{old}:{B}"));
    for (record, life) in [(released, 3_600_000), (unreleased, 2_592_000_000)] {
        for undo in undo(A) {
            lab.command(&["SET", RECORD, &record]);
            assert!(lab.run(acquire(A)).is_grant());
            assert_eq!(lab.field("before").as_ref(), Some(&record));
            assert_ne!(lab.record().as_ref(), Some(&record));
            assert_eq!(lab.run(undo), Said::Granted);
            assert_eq!(lab.record().as_ref(), Some(&record));
            lab.assert_lives(RECORD, life);
            assert_eq!(lab.count(A), None);
        }
    }
}

/// What they tried was in vain: the holder still has a majority.
fn a_holder_takes_back_what_others_tried_to_get(lab: &Lab) {
    let token = lab.run(acquire(A).kept(1)).token();
    for undo in undo(B) {
        lab.command(&["DEL", LOCK]);
        lab.pass(2000);
        assert!(lab.run(acquire(B)).token() > token);
        lab.run(undo);
        assert_eq!(lab.run(extend(A).token(token).kept(1).round(2)), Said::Granted);
        assert_eq!(lab.count(A).as_deref(), Some("1"));
    }
    lab.command(&["DEL", LOCK]);
    lab.pass(2000);
    lab.run(acquire(B));
    lab.run(release(B));
    assert_eq!(lab.run(extend(A).token(token).round(2)), Said::Absent, "somebody was there");
}

/// What it had before may have been a lease.
fn where_it_was_its_own_already_it_is_released_by_the_last_token(lab: &Lab) {
    for undo in undo(A) {
        lab.command(&["SET", RECORD, "7"]);
        let first = lab.run(acquire(A)).token();
        let second = lab.run(acquire(A).count(2).round(2)).token();
        assert_eq!(lab.field("before"), Some(first.to_string()));
        assert_eq!(lab.run(undo), Said::Granted);
        assert!(second > first);
        assert_eq!(lab.record(), Some(first.to_string()));
        lab.assert_lives(RECORD, 3_600_000);
    }
}

fn while_holds_remain_the_record_stays(lab: &Lab) {
    let token = lab.run(acquire(A).count(2)).token();
    let record = lab.record();
    for undo in undo(A) {
        assert_eq!(lab.run(undo.count(1)), Said::Granted);
        assert_eq!((lab.record(), lab.count(A).as_deref()), (record.clone(), Some("1")));
    }
    assert_eq!(lab.run(release(A).round(9)), Said::Granted);
    assert_eq!(lab.record(), Some(token.to_string()));
}

fn an_extend_takes_nothing_from_what_was_before(lab: &Lab) {
    lab.command(&["SET", RECORD, "7"]);
    lab.run(acquire(A));
    assert_eq!(lab.run(extend(A).count(2).round(2)), Said::Granted);
    assert_eq!(lab.run(release(A).undoes().round(3)), Said::Granted);
    assert_eq!(lab.record().as_deref(), Some("7"));
}

fn what_was_healed_or_transferred_or_has_no_token_was_nothing_before(lab: &Lab) {
    for undo in undo(B) {
        lab.command(&["DEL", RECORD]);
        lab.run(acquire(A));
        let token = lab.run(transfer(A, B)).token();
        assert_eq!(lab.field("before"), None, "that is of A's grant");
        assert_eq!(lab.run(undo.clone()), Said::Granted);
        assert_eq!(lab.record(), Some(token.to_string()));
        assert_eq!(lab.run(extend(B).token(token + 1)), Said::Granted);
        assert_eq!(lab.run(undo.clone()), Said::Granted);
        assert_eq!(lab.record(), Some((token + 1).to_string()));
        lab.set_head(["", "", ""]);
        lab.run(acquire(B));
        assert_eq!(lab.field("before"), None);
        lab.set_head([MARKER, MARK, "0"]);
        assert_eq!(lab.run(undo), Said::Granted);
        assert_eq!(lab.record(), Some((token + 1).to_string()), "it has no part in it");
    }
    lab.set_head(["", "", ""]);
    lab.run(acquire(A));
    lab.set_head([MARKER, MARK, "0"]);
    let record = lab.record();
    lab.run(acquire(A).round(2));
    assert_eq!(lab.field("before"), record, "without a token it was no lease that counts");
}

fn only_who_is_told_to_undoes(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    assert_eq!(lab.run(release(A)), Said::Granted);
    assert_eq!(lab.record(), Some(token.to_string()));
}

fn without_guards_the_next_one_waits(lab: &Lab) {
    for undo in undo(A) {
        lab.set_head([MARKER, MARK, "0"]);
        lab.command(&["DEL", RECORD]);
        lab.run(acquire(A).kept(60_000));
        let record = lab.record();
        lab.set_head(["", "", ""]);
        assert_eq!(lab.run(undo), Said::Granted);
        assert_eq!((lab.count(A), lab.record()), (None, record));
    }
}

fn a_record_that_cannot_be_written_again_makes_the_next_one_wait(lab: &Lab) {
    lab.command(&["SET", RECORD, "7"]);
    lab.run(acquire(A).kept(60_000));
    lab.command(&["ACL", "SETUSER", "default", "-set"]);
    assert_eq!(lab.run(release(A).undoes()), Said::Granted);
    assert!(lab.locks().is_empty());
    let held = lab.run(acquire(B)).held();
    assert_eq!((&*held.owner, &*held.count), (A, "0"));
}
