//! What calls begin with: a master that forgot what it granted, or is in quarantine, grants nothing and takes everything
//! back.

use super::lab::{LOCK, Lab, MARK, MARKER};
use super::operation::{A, B, Operation, acquire, extend, inspect, queue, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Guarded:
        a_call_with_guards_is_told_the_time_and_one_without_is_not,
        a_master_in_quarantine_grants_nothing_and_takes_all_back,
        a_master_that_forgot_grants_nothing_and_takes_all_back,
        a_marker_that_is_none_is_told_in_the_servers_own_words,
        a_clock_that_cannot_be_read_grants_nothing,
        a_call_takes_nothing_from_the_call_before;
    Exact:
        a_quarantine_ends_when_it_says_so;
}

/// Whatever makes a hold, or makes one last longer.
fn grants() -> [Operation; 5] {
    [
        acquire(B).on("free"),
        queue(B).on("free").place(B, 1, 0),
        acquire(A).count(2).ttl(60_000).round(2),
        extend(A).count(2).ttl(60_000).round(2),
        transfer(A, B).ttl(60_000).round(2),
    ]
}

/// Checks that nothing is granted for this reason, and that the rest works, and whether the time is told.
fn assert_only_takes_back(lab: &Lab, why: &str, tells_time: bool) {
    for operation in grants() {
        let (time, said) = lab.call(std::slice::from_ref(&operation));
        assert_eq!(time.is_some(), tells_time, "{operation:?}");
        assert_eq!(said[0].clone().refused(), why, "{operation:?}");
    }
    assert_eq!(lab.locks(), [LOCK]);
    assert_eq!(lab.count(A).as_deref(), Some("1"));
    lab.assert_lives(LOCK, 5000);
    assert_eq!(lab.run(inspect()).held().owner, A);
    assert_eq!(lab.run(release(A).count(1).round(3)), Said::Granted);
    assert_eq!(lab.run(release(B)).held().owner, A);
    assert_eq!(lab.run(withdraw(A).round(4).place(A, 1, 0)), Said::Granted);
    assert!(!lab.locks().contains(&LOCK.to_owned()));
}

/// Checks that a release is noted by a client whose calls begin like this.
fn assert_releases(lab: &Lab, head: [&str; 3]) {
    lab.set_head([MARKER, MARK, "0"]);
    let token = lab.run(acquire(A)).token();
    lab.set_head(head);
    assert_eq!(lab.run(release(A)), Said::Granted);
    assert_eq!(lab.record(), Some(token.to_string()));
}

fn a_call_with_guards_is_told_the_time_and_one_without_is_not(lab: &Lab) {
    assert!(lab.call(&[inspect()]).0.is_some());
    assert!(lab.call(&[]).0.is_some());
    lab.set_head(["", "", ""]);
    assert_eq!(lab.call(&[inspect()]), (None, vec![Said::Absent]));
    lab.set_head(["", MARK, "0"]);
    assert_eq!(lab.call(&[acquire(A)]), (None, vec![Said::Granted]), "no marker, no guards");
}

fn a_master_in_quarantine_grants_nothing_and_takes_all_back(lab: &Lab) {
    lab.run(acquire(A));
    let end = lab.now() + 60_000_000;
    lab.set_head([MARKER, MARK, &end.to_string()]);
    assert_only_takes_back(lab, "QUARANTINE", true);
    assert_eq!(lab.record(), None, "what came to nothing leaves nothing");
    assert_releases(lab, [MARKER, MARK, &end.to_string()]);
}

fn a_quarantine_ends_when_it_says_so(lab: &Lab) {
    let end = lab.now() + 2000;
    let left = |lab: &Lab| lab.run(acquire(A));
    lab.set_head([MARKER, MARK, &(lab.now() + 60_000_000).to_string()]);
    assert_eq!(left(lab), Said::Refused("QUARANTINE 60000 ms left".to_owned()));
    lab.set_head([MARKER, MARK, &end.to_string()]);
    assert_eq!(left(lab), Said::Refused("QUARANTINE 2 ms left".to_owned()));
    lab.pass(1);
    assert_eq!(left(lab), Said::Refused("QUARANTINE 2 ms left".to_owned()));
    lab.pass(1998);
    assert_eq!(left(lab), Said::Refused("QUARANTINE 1 ms left".to_owned()));
    lab.pass(1);
    assert!(left(lab).is_grant());
}

fn a_master_that_forgot_grants_nothing_and_takes_all_back(lab: &Lab) {
    for marker in [None, Some("of another process|0|its terms"), Some("")] {
        lab.command(&["DEL", LOCK, "fence:{k}", "waiting:{k}"]);
        lab.command(&["SET", MARKER, MARK]);
        lab.run(acquire(A));
        match marker {
            None => lab.command(&["DEL", MARKER]),
            Some(text) => lab.command(&["SET", MARKER, text]),
        };
        assert_only_takes_back(lab, "FORGOT", false);
        assert_eq!(lab.record(), None, "what came to nothing leaves nothing");
    }
    lab.command(&["SET", MARKER, MARK]);
    assert_releases(lab, [MARKER, "another", "0"]);
}

fn a_marker_that_is_none_is_told_in_the_servers_own_words(lab: &Lab) {
    lab.run(acquire(A));
    lab.command(&["DEL", MARKER]);
    lab.command(&["HSET", MARKER, "no", "marker"]);
    assert_only_takes_back(lab, "WRONGTYPE", false);
    assert_eq!(lab.record(), None, "what came to nothing leaves nothing");
}

fn a_clock_that_cannot_be_read_grants_nothing(lab: &Lab) {
    lab.run(acquire(A));
    lab.command(&["ACL", "SETUSER", "default", "-time"]);
    assert_only_takes_back(lab, "ERR", false);
    assert_eq!(lab.record(), None, "what came to nothing leaves nothing");
}

/// The functions of a script are defined once on an embedded server.
fn a_call_takes_nothing_from_the_call_before(lab: &Lab) {
    lab.set_head([MARKER, "another", "0"]);
    assert_eq!(lab.run(acquire(A)).refused(), "FORGOT");
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(acquire(A)), Said::Granted);
    lab.set_head([MARKER, MARK, "0"]);
    assert!(lab.run(acquire(A)).token() > 1);
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(acquire(A).round(2)), Said::Granted, "without a token");
    lab.set_head([MARKER, "another", "0"]);
    assert_eq!(lab.run(release(A).round(2)), Said::Granted);
}
