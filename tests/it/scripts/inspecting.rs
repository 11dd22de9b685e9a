//! Looking at a lock: who holds it, or was granted it and did not release it.

use super::lab::{LOCK, Lab, MARK, MARKER, RECORD};
use super::operation::{A, acquire, inspect, release};
use super::said::Said;

super::scenarios! {
    Both:
        whoever_looks_sees_who_holds_the_lock;
    Guarded:
        a_grant_that_was_not_released_is_seen_until_it_is_over,
        what_is_held_is_told_whatever_the_record_says,
        a_record_that_is_none_is_told,
        without_guards_or_a_clock_no_record_is_looked_at,
        a_master_that_has_no_vote_says_what_it_knows;
    Exact:
        a_grant_is_seen_to_its_last_microsecond;
}

fn whoever_looks_sees_who_holds_the_lock(lab: &Lab) {
    assert_eq!(lab.run(inspect()), Said::Absent);
    lab.run(acquire(A).count(3));
    let held = lab.run(inspect()).held();
    assert_eq!((&*held.owner, &*held.count), (A, "3"));
    let version = held.watch.map(|(version, _)| version);
    assert_eq!(version.is_some(), lab.has_guards(), "it tells by which token");
    if let (Some(version), Some(record)) = (version, lab.record()) {
        assert!(record.starts_with(&format!("{version}:")), "{version} {record}");
    }
    assert!((4000..=5000).contains(&held.ttl));
    lab.run(release(A));
    assert_eq!(lab.run(inspect()), Said::Absent);
}

/// Checks that a grant to A is seen, which is kept from others for another minute.
fn assert_kept(lab: &Lab) {
    let held = lab.run(inspect()).held();
    assert_eq!((&*held.owner, &*held.count, held.ahead, held.watch), (A, "0", None, None));
    assert!((50_000..=60_000).contains(&held.ttl), "{}", held.ttl);
}

fn a_grant_that_was_not_released_is_seen_until_it_is_over(lab: &Lab) {
    lab.run(acquire(A).kept(60_000));
    let record = lab.record();
    lab.command(&["DEL", LOCK]);
    assert_kept(lab);
    assert_eq!(lab.record(), record);
    lab.run(release(A));
    assert_eq!(lab.run(inspect()), Said::Absent);
    lab.run(acquire(A).kept(1));
    lab.command(&["DEL", LOCK]);
    lab.pass(2000);
    assert_eq!(lab.run(inspect()), Said::Absent);
}

fn a_grant_is_seen_to_its_last_microsecond(lab: &Lab) {
    lab.run(acquire(A).kept(60_000));
    lab.command(&["DEL", LOCK]);
    lab.pass(60_000_000);
    assert_eq!(lab.run(inspect()).held().ttl, 0);
    lab.pass(1);
    assert_eq!(lab.run(inspect()), Said::Absent);
}

fn what_is_held_is_told_whatever_the_record_says(lab: &Lab) {
    lab.run(acquire(A));
    for record in ["x", "7", "1:2:3:4:u:1"] {
        lab.command(&["SET", RECORD, record]);
        let held = lab.run(inspect()).held();
        assert_eq!((&*held.owner, &*held.count), (A, "1"), "{record}");
    }
}

fn a_record_that_is_none_is_told(lab: &Lab) {
    lab.command(&["SET", RECORD, "x"]);
    assert_eq!(lab.run(inspect()).refused(), "WRONGTYPE");
    lab.command(&["DEL", RECORD]);
    lab.command(&["HSET", RECORD, "no", "record"]);
    assert_eq!(lab.run(inspect()).refused(), "WRONGTYPE");
}

fn without_guards_or_a_clock_no_record_is_looked_at(lab: &Lab) {
    lab.run(acquire(A).kept(60_000));
    lab.command(&["DEL", LOCK]);
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(inspect()), Said::Absent);
    lab.set_head([MARKER, MARK, "0"]);
    lab.command(&["ACL", "SETUSER", "default", "-time"]);
    assert_eq!(lab.run(inspect()), Said::Absent);
}

fn a_master_that_has_no_vote_says_what_it_knows(lab: &Lab) {
    lab.run(acquire(A).kept(60_000));
    lab.command(&["DEL", LOCK]);
    lab.set_head([MARKER, MARK, &(lab.now() + 60_000_000).to_string()]);
    assert_kept(lab);
    lab.set_head([MARKER, "another", "0"]);
    assert_kept(lab);
}
