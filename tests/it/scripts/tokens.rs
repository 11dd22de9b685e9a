//! Fencing tokens: they rise, whatever becomes of the lock, and stay near the time.

use super::lab::{LOCK, Lab, MARK, MARKER, RECORD};
use super::operation::{A, B, C, acquire, extend, queue, release};
use super::said::Said;

super::scenarios! {
    Guarded:
        tokens_rise_over_grants_and_survive_releases,
        a_token_is_kept_with_the_lock_and_in_the_record,
        a_proposal_ahead_is_refused_and_writes_nothing,
        a_proposal_behind_is_refused_and_writes_nothing,
        tokens_rise_above_what_was_granted_in_the_future,
        a_record_that_is_none_is_refused_and_left_alone,
        a_lock_without_guards_gets_a_token_when_it_is_acquired_with_them,
        a_token_is_above_that_of_the_hold_and_that_of_the_record;
    Exact:
        a_proposal_may_be_half_a_second_ahead_and_two_behind;
}

fn tokens_rise_over_grants_and_survive_releases(lab: &Lab) {
    let now = lab.now();
    let first = lab.run(acquire(A).token(now)).token();
    assert_eq!(first, now, "as it was proposed");
    assert_eq!(lab.run(acquire(A).token(now).round(2)).token(), now + 1, "a grant has its own");
    lab.run(release(A).round(3));
    assert_eq!(lab.run(acquire(B).token(now - 7)).token(), now + 2);
    lab.run(release(B).round(2));
    assert_eq!(lab.run(queue(C).token(now)).token(), now + 3);
    lab.run(release(C).round(2));
    assert_eq!(lab.run(acquire(A).token(now + 9)).token(), now + 9);
}

fn a_token_is_kept_with_the_lock_and_in_the_record(lab: &Lab) {
    let before = lab.now();
    let token = lab.run(acquire(A).round(3).kept(7000)).token();
    let fields = lab.command(&["HMGET", LOCK, A, "round", "fence"]);
    let quorate_testkit::Resp::List(fields) = fields else { panic!("{fields:?}") };
    let fields: Vec<String> = fields.iter().map(super::lab::text).collect();
    assert_eq!(fields, ["1".to_owned(), "3".to_owned(), token.to_string()]);
    let record = lab.record().unwrap();
    let words: Vec<&str> = record.splitn(5, ':').collect();
    assert_eq!(words[..3], [&token.to_string(), "3", "7000"]);
    assert!((before + 7_000_000..=lab.now() + 7_000_000).contains(&words[3].parse().unwrap()), "{record}");
    assert_eq!(words[4], A);
    lab.assert_lives(RECORD, 2_592_000_000);
    lab.run(release(A).count(1).round(4));
    assert_eq!(lab.record().unwrap(), record, "it is still held");
    lab.run(release(A).round(5));
    assert_eq!(lab.record().unwrap(), token.to_string());
    lab.assert_lives(RECORD, 3_600_000);
}

fn a_proposal_ahead_is_refused_and_writes_nothing(lab: &Lab) {
    let ahead = lab.now() + 3_600_000_000;
    assert_eq!(lab.run(acquire(A).token(ahead)).refused(), "CLOCK");
    assert!(lab.locks().is_empty());
    assert_eq!(lab.record(), None);
    let token = lab.run(acquire(A)).token();
    let record = lab.record();
    assert_eq!(lab.run(acquire(A).count(2).token(ahead).round(2)).refused(), "CLOCK");
    assert_eq!(lab.count(A).as_deref(), Some("1"));
    assert_eq!((lab.record(), lab.run(acquire(A).token(token)).token()), (record, token + 1));
}

/// It may have been sent before this master lost its records.
fn a_proposal_behind_is_refused_and_writes_nothing(lab: &Lab) {
    for proposal in [0, 7, lab.now() - 3_600_000_000, lab.now() - 2_500_000] {
        assert_eq!(lab.run(acquire(A).token(proposal)).refused(), "CLOCK", "{proposal}");
        assert_eq!(lab.run(queue(A).token(proposal).place(A, 1, 0)).refused(), "CLOCK", "{proposal}");
        assert!(lab.locks().is_empty());
        assert_eq!(lab.record(), None);
    }
    let old = lab.now() - 1_500_000;
    assert_eq!(lab.run(acquire(A).token(old)).token(), old, "this one is not old yet");
}

/// A clock that was ahead for a while must not hold grants up once it is right.
fn tokens_rise_above_what_was_granted_in_the_future(lab: &Lab) {
    let future = lab.now() + 3_600_000_000;
    lab.command(&["SET", RECORD, &future.to_string()]);
    assert_eq!(lab.run(acquire(A)).token(), future + 1);
    lab.run(release(A));
    assert_eq!(lab.run(acquire(B)).token(), future + 2);
    assert_eq!(lab.run(extend(B)), Said::Granted, "though it is ahead of the time");
}

fn a_record_that_is_none_is_refused_and_left_alone(lab: &Lab) {
    for wrong in ["x", "", "1:2:3:4", ":::::", "1:2:x:4:u:1", "x:2:3:4:u:1"] {
        lab.command(&["SET", RECORD, wrong]);
        assert_eq!(lab.run(acquire(A)).refused(), "WRONGTYPE", "{wrong}");
        assert_eq!(lab.run(extend(A)).refused(), "WRONGTYPE", "{wrong}");
        assert_eq!(lab.run(release(A)), Said::Absent, "{wrong}");
        assert_eq!(lab.record().as_deref(), Some(wrong));
    }
    lab.command(&["DEL", RECORD]);
    lab.command(&["HSET", RECORD, "no", "record"]);
    assert_eq!(lab.run(acquire(A)).refused(), "WRONGTYPE");
    assert_eq!(lab.run(extend(A)).refused(), "WRONGTYPE");
    assert_eq!(lab.run(release(A)), Said::Absent);
    assert!(lab.locks().is_empty());
}

fn a_lock_without_guards_gets_a_token_when_it_is_acquired_with_them(lab: &Lab) {
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(acquire(A)), Said::Granted);
    assert_eq!(lab.record(), None);
    lab.set_head([MARKER, MARK, "0"]);
    assert!(lab.run(acquire(B)).held().watch.is_none());
    assert!(lab.run(acquire(B).watched(&[])).held().watch.is_none(), "there is no record to watch");
    assert_eq!(lab.run(release(A).round(2)), Said::Granted);
    assert_eq!(lab.record(), None);
    assert!(lab.run(acquire(A)).token() > 1);
}

/// A record may be lost while the hold is not, and a hold may be written where the record could not be.
fn a_token_is_above_that_of_the_hold_and_that_of_the_record(lab: &Lab) {
    let token = lab.run(acquire(A)).token();
    lab.command(&["DEL", RECORD]);
    assert_eq!(lab.run(acquire(A).token(token - 7)).token(), token + 1);
    assert_eq!(lab.field("before"), Some(token.to_string()));
    lab.command(&["SET", RECORD, &format!("{}", token - 9)]);
    assert_eq!(lab.run(acquire(A).token(token)).token(), token + 2);
    assert_eq!(lab.field("before"), Some((token + 1).to_string()));
    lab.command(&["SET", RECORD, &format!("{}:1:1:1:{B}", token + 50)]);
    assert_eq!(lab.run(acquire(A).token(token)).token(), token + 51);
    assert_eq!(lab.field("before"), Some((token + 50).to_string()));
}

fn a_proposal_may_be_half_a_second_ahead_and_two_behind(lab: &Lab) {
    let now = lab.now();
    for (proposal, is_taken) in
        [(now + 500_000, true), (now + 500_001, false), (now - 2_000_000, true), (now - 2_000_001, false)]
    {
        lab.command(&["DEL", RECORD, LOCK]);
        let said = lab.run(acquire(A).token(proposal));
        match is_taken {
            true => assert_eq!(said.token(), proposal),
            false => assert_eq!(said.refused(), "CLOCK"),
        }
    }
    for (proposal, off) in [(now + 3_600_500_000, "3600.500"), (now - 3_600_500_000, "-3600.500")] {
        let why = format!("CLOCK the token proposed is {off} s from the time here");
        assert_eq!(lab.run(acquire(A).token(proposal)), Said::Refused(why));
    }
}
