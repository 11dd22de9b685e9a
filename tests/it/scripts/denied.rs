//! Commands that the server refuses to the scripts, half-way through an operation. Lua does not roll back.

use quorate_testkit::Resp;

use super::lab::{LOCK, Lab, RECORD};
use super::operation::{A, B, Operation, acquire, extend, inspect, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Both:
        what_is_refused_for_a_free_lock_leaves_none,
        what_is_refused_to_its_owner_leaves_it_as_it_is,
        what_is_refused_to_others_is_told,
        a_transfer_that_is_refused_gives_it_to_nobody_else,
        a_replica_gives_no_vote_even_to_the_holder;
    Guarded:
        a_lock_that_is_not_made_again_stays_away,
        a_record_that_cannot_be_written_leaves_no_lock,
        a_release_that_cannot_be_noted_is_one_all_the_same;
}

/// Runs an operation that may not call this command, and says what was refused.
pub(super) fn without(lab: &Lab, denied: &str, operation: &Operation) -> String {
    lab.command(&["ACL", "SETUSER", "default", &format!("-{denied}")]);
    let said = lab.run(operation.clone());
    lab.command(&["ACL", "SETUSER", "default", &format!("+{denied}")]);
    match said {
        Said::Refused(why) => why,
        other => panic!("without {denied}, {operation:?} is answered {other:?}"),
    }
}

/// Checks that an operation is refused where it may not call one of these commands, or of those that guards take.
fn assert_refused(lab: &Lab, operation: &Operation, commands: &[&str], of_guards: &[&str]) {
    let guards = if lab.has_guards() { of_guards } else { &[] };
    for denied in commands.iter().chain(guards) {
        let before = contents(lab);
        let why = without(lab, denied, operation);
        assert!(why.contains("can't run this command"), "without {denied}: {why}");
        let writes = ["hset", "pexpire", "pttl", "set", "del"].contains(denied);
        if !writes {
            assert_eq!(contents(lab), before, "without {denied}, {operation:?}");
        }
    }
}

fn contents(lab: &Lab) -> [Resp; 2] {
    [lab.command(&["HGETALL", LOCK]), lab.command(&["GET", RECORD])]
}

fn what_is_refused_for_a_free_lock_leaves_none(lab: &Lab) {
    assert_refused(lab, &acquire(A), &["hlen", "hset", "pexpire"], &["get", "time", "set"]);
    assert_refused(lab, &extend(A).heals_not(), &["hmget", "hlen"], &["get", "time"]);
    assert_refused(lab, &release(A), &["hmget", "hlen", "zrem"], &[]);
    assert_refused(lab, &withdraw(A).place(A, 1, 0), &["hmget", "hlen"], &[]);
    assert_refused(lab, &transfer(A, B), &["hmget", "hlen"], &["get", "time"]);
    assert_refused(lab, &inspect(), &["hlen"], &[]);
    assert!(lab.locks().is_empty());
    assert_eq!(lab.record(), None);
}

fn what_is_refused_to_its_owner_leaves_it_as_it_is(lab: &Lab) {
    lab.run(acquire(A).count(2));
    let longer = |operation: Operation, ttl| operation.count(2).ttl(ttl);
    let all = ["hmget", "hset", "pttl", "pexpire"];
    assert_refused(lab, &longer(extend(A), 50_000), &all, &["time", "set"]);
    assert_refused(lab, &longer(acquire(A), 70_000), &["hlen"], &[]);
    assert_refused(lab, &longer(acquire(A), 70_000), &all, &["get", "time", "set"]);
    assert_refused(lab, &release(A), &["hmget", "del"], &[]);
    assert_refused(lab, &release(A).count(1), &["hset"], &[]);
    assert_refused(lab, &withdraw(A).place(A, 1, 0), &["hmget", "del"], &[]);
    assert_eq!(lab.count(A).as_deref(), Some("2"));
    assert_eq!(lab.locks(), [LOCK], "nobody waits");
}

fn what_is_refused_to_others_is_told(lab: &Lab) {
    lab.run(acquire(A));
    let looks = ["hgetall", "pttl"];
    assert_refused(lab, &acquire(B), &looks, &[]);
    assert_refused(lab, &acquire(B), &["hlen", "hmget"], &["get", "time"]);
    assert_refused(lab, &extend(B), &looks, &[]);
    assert_refused(lab, &release(B), &["hmget", "hlen", "zrem"], &[]);
    assert_refused(lab, &release(B), &looks, &[]);
    assert_refused(lab, &inspect(), &looks, &[]);
    assert_eq!(lab.count(A).as_deref(), Some("1"));
    lab.assert_lives(LOCK, 5000);
}

fn a_transfer_that_is_refused_gives_it_to_nobody_else(lab: &Lab) {
    for denied in ["hmget", "pttl", "del", "hset", "pexpire", "set", "get"] {
        if !lab.has_guards() && ["set", "get"].contains(&denied) {
            continue;
        }
        lab.command(&["DEL", LOCK, RECORD]);
        lab.run(acquire(A));
        without(lab, denied, &transfer(A, B));
        assert_eq!(lab.count(B), None, "without {denied}");
        let written = ["hset", "pexpire", "set"].contains(&denied);
        assert_eq!(lab.locks().is_empty(), written, "without {denied}");
        if lab.has_guards() {
            assert!(lab.record().unwrap().ends_with(A), "it is kept from others, without {denied}");
        }
    }
}

/// A path that only reads would succeed on a replica, which votes for nobody.
fn a_replica_gives_no_vote_even_to_the_holder(lab: &Lab) {
    lab.run(acquire(A).ttl(60_000));
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]); // nobody is there
    for operation in [
        acquire(A).ttl(60_000).round(2),
        extend(A).ttl(1000).round(2),
        release(A).count(1).round(2),
        release(A).round(2),
        withdraw(A).round(2).place(A, 1, 0),
        transfer(A, B).round(2),
        acquire(A).on("another"),
    ] {
        assert_eq!(lab.run(operation.clone()).refused(), "READONLY", "{operation:?}");
    }
}

fn a_lock_that_is_not_made_again_stays_away(lab: &Lab) {
    lab.run(acquire(A));
    lab.command(&["DEL", LOCK]);
    for denied in ["hmget", "hlen", "get", "hset", "pexpire", "set"] {
        without(lab, denied, &extend(A));
        assert!(lab.locks().is_empty(), "without {denied}");
    }
}

fn a_record_that_cannot_be_written_leaves_no_lock(lab: &Lab) {
    without(lab, "set", &acquire(A));
    assert!(lab.locks().is_empty());
    lab.command(&["HSET", RECORD, "no", "record"]);
    assert_eq!(lab.run(acquire(A)).refused(), "WRONGTYPE");
    assert!(lab.locks().is_empty());
}

fn a_release_that_cannot_be_noted_is_one_all_the_same(lab: &Lab) {
    lab.run(acquire(A).kept(60_000));
    lab.command(&["ACL", "SETUSER", "default", "-set"]);
    assert_eq!(lab.run(release(A)), Said::Granted);
    assert!(lab.locks().is_empty());
    let held = lab.run(acquire(B)).held();
    assert_eq!((&*held.owner, &*held.count), (A, "0"), "the next one waits");
}

/// Rights on keys, which embedded servers do not know: the server looks at all keys of a call before it runs any of it.
#[test]
fn a_user_without_rights_on_the_record_is_granted_nothing() {
    let lab = Lab::real(std::sync::Arc::new(super::source::scripts()), super::lab::REENTRANT, true);
    for rights in [&["~marker", "~lock:*"][..], &["~marker", "~lock:*", "%R~fence:*"]] {
        lab.command(&[&["ACL", "SETUSER", "default", "resetkeys"][..], rights].concat());
        let (keys, args) = lab.words(&[acquire(A)]);
        let reply = lab.eval(&keys, &args);
        assert!(matches!(&reply, Resp::Error(text) if text.starts_with("NOPERM")), "{reply:?}");
        assert!(lab.locks().is_empty());
    }
}
