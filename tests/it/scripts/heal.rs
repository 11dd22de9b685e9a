//! Extends with guards: which grant they are of, and when they take a lock back whose key is gone.

use super::lab::{LOCK, Lab, MARK, MARKER, RECORD};
use super::operation::{A, B, acquire, extend, release, transfer};
use super::said::Said;

super::scenarios! {
    Guarded:
        a_key_that_is_gone_is_made_again,
        nothing_is_made_again_that_was_released,
        nothing_is_made_again_after_a_newer_token,
        nothing_is_made_again_that_was_given_to_another_owner,
        nothing_is_made_again_where_that_is_not_wanted,
        what_a_master_never_knew_or_forgot_is_made,
        an_older_grant_is_no_longer_in_the_way,
        a_hold_with_a_higher_token_is_of_a_later_grant,
        a_hold_with_a_lower_token_gets_this_one,
        a_lock_without_a_token_gets_this_one,
        an_extend_without_guards_leaves_the_token_and_the_record;
}

fn field(lab: &Lab, name: &str) -> String {
    lab.field(name).unwrap()
}

fn a_key_that_is_gone_is_made_again(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(A).count(2).ttl(9000).round(3).kept(8000)), Said::Granted);
    assert_eq!(
        [field(lab, A), field(lab, "round"), field(lab, "fence")],
        ["2".to_owned(), "3".to_owned(), token.to_string()]
    );
    lab.assert_lives(LOCK, 9000);
    let record = lab.record().unwrap();
    assert!(record.starts_with(&format!("{token}:3:8000:")) && record.ends_with(A), "{record}");
    lab.assert_lives(RECORD, 2_592_000_000);
}

fn nothing_is_made_again_that_was_released(lab: &Lab) {
    lab.run(acquire(A));
    lab.run(release(A).round(2));
    let record = lab.record();
    assert_eq!(lab.run(extend(A).round(3)), Said::Absent);
    assert!(lab.locks().is_empty());
    assert_eq!(lab.record(), record);
}

fn nothing_is_made_again_after_a_newer_token(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    for record in [format!("{}", token + 1), format!("{}:1:1:1:{B}", token + 1)] {
        lab.command(&["DEL", LOCK]);
        lab.command(&["SET", RECORD, &record]);
        assert_eq!(lab.run(extend(A).round(3)), Said::Absent, "{record}");
        assert!(lab.locks().is_empty());
        assert_eq!(lab.record(), Some(record));
    }
}

/// A transfer may leave the token as it is.
fn nothing_is_made_again_that_was_given_to_another_owner(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    assert_eq!(lab.run(transfer(A, B).same_token()), Said::Granted);
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(A).token(token).round(9)), Said::Absent);
    assert!(lab.locks().is_empty());
    assert_eq!(lab.run(extend(B).token(token).round(2)), Said::Granted);
}

fn nothing_is_made_again_where_that_is_not_wanted(lab: &Lab) {
    lab.run(acquire(A));
    lab.command(&["DEL", LOCK]);
    let record = lab.record();
    assert_eq!(lab.run(extend(A).heals_not().round(3)), Said::Absent);
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(extend(A).round(3)), Said::Absent, "nor without guards");
    assert!(lab.locks().is_empty());
    assert_eq!(lab.record(), record);
}

fn what_a_master_never_knew_or_forgot_is_made(lab: &Lab) {
    let token = lab.now();
    assert_eq!(lab.run(extend(A).token(token)), Said::Granted);
    assert_eq!(field(lab, "fence"), token.to_string());
    assert!(lab.record().unwrap().starts_with(&format!("{token}:")));
    lab.assert_lives(LOCK, 5000);
}

/// Whoever has a higher token was granted the lock by a majority since.
fn an_older_grant_is_no_longer_in_the_way(lab: &Lab) {
    let old = lab.now();
    for record in [old.to_string(), format!("{old}:1:60000:{}:{B}", old + 60_000_000)] {
        lab.command(&["DEL", LOCK]);
        lab.command(&["SET", RECORD, &record]);
        assert_eq!(lab.run(extend(A).token(old + 1)), Said::Granted, "{record}");
        assert!(lab.record().unwrap().starts_with(&format!("{}:", old + 1)));
    }
}

fn a_hold_with_a_higher_token_is_of_a_later_grant(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    let record = lab.record();
    let stale = lab.run(extend(A).count(2).ttl(9000).round(3).token(token - 1));
    assert_eq!(stale, Said::Stale(token.to_string()));
    assert_eq!(lab.count(A).as_deref(), Some("1"));
    assert_eq!(lab.record(), record);
    lab.assert_lives(LOCK, 5000);
}

fn a_hold_with_a_lower_token_gets_this_one(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    assert_eq!(lab.run(extend(A).round(2).token(token + 5)), Said::Granted);
    assert_eq!(field(lab, "fence"), (token + 5).to_string());
    assert!(lab.record().unwrap().starts_with(&format!("{}:2:", token + 5)));
    lab.run(release(A).round(3));
    assert_eq!(lab.record(), Some((token + 5).to_string()));
}

fn a_lock_without_a_token_gets_this_one(lab: &Lab) {
    lab.set_head(["", "", ""]);
    lab.run(acquire(A));
    lab.set_head([MARKER, MARK, "0"]);
    let token = lab.now();
    assert_eq!(lab.run(extend(A).token(token)), Said::Granted);
    assert_eq!(field(lab, "fence"), token.to_string());
}

fn an_extend_without_guards_leaves_the_token_and_the_record(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    let record = lab.record();
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(extend(A).round(3).token(token + 9)), Said::Granted);
    assert_eq!((field(lab, "fence"), field(lab, "round")), (token.to_string(), "3".to_owned()));
    assert_eq!(lab.record(), record);
}
