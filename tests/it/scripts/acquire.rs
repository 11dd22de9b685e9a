//! Taking a lock, keeping it and giving it back, with guards as without.

use super::lab::{LOCK, Lab};
use super::operation::{A, B, acquire, extend, release};
use super::said::Said;

super::scenarios! {
    Both:
        an_acquire_takes_a_free_lock_and_says_who_holds_a_taken_one,
        an_acquire_that_runs_again_changes_nothing,
        what_comes_after_a_later_round_is_stale_and_writes_nothing,
        a_lock_without_a_round_is_older_than_all,
        a_ttl_is_never_shortened,
        an_extend_makes_no_lock_and_touches_no_other_owners,
        a_release_leaves_the_holds_that_remain_and_deletes_with_the_last;
}

fn an_acquire_takes_a_free_lock_and_says_who_holds_a_taken_one(lab: &Lab) {
    assert!(lab.run(acquire(A)).is_grant());
    lab.assert_lives(LOCK, 5000);
    let held = lab.run(acquire(B).ttl(9000)).held();
    assert_eq!((&*held.owner, &*held.count, held.ahead), (A, "1", None));
    assert!((4000..=5000).contains(&held.ttl));
    assert_eq!(lab.count(B), None, "a refusal writes nothing");
}

fn an_acquire_that_runs_again_changes_nothing(lab: &Lab) {
    for _ in 0..3 {
        assert!(lab.run(acquire(A).count(2).round(7)).is_grant());
        assert_eq!(lab.count(A).as_deref(), Some("2"), "counts are absolute");
    }
}

fn what_comes_after_a_later_round_is_stale_and_writes_nothing(lab: &Lab) {
    lab.run(acquire(A).count(2).round(8));
    let stale = Said::Stale("8".to_owned());
    assert_eq!(lab.run(acquire(A).ttl(60_000).round(7)), stale);
    assert_eq!(lab.run(release(A).round(7)), stale);
    assert_eq!(lab.run(extend(A).ttl(60_000).round(7)), stale);
    assert_eq!(lab.count(A).as_deref(), Some("2"));
    lab.assert_lives(LOCK, 5000);
    assert_eq!(lab.run(release(A).round(8)), Said::Granted);
}

fn a_lock_without_a_round_is_older_than_all(lab: &Lab) {
    lab.command(&["HSET", LOCK, A, "1"]);
    assert!(lab.run(acquire(A).round(0)).is_grant());
    assert_eq!(lab.run(release(A).round(0)), Said::Granted);
}

fn a_ttl_is_never_shortened(lab: &Lab) {
    lab.run(acquire(A).ttl(60_000));
    assert_eq!(lab.run(extend(A).ttl(1000).round(2)), Said::Granted);
    assert!(lab.run(acquire(A).count(2).ttl(1000).round(3)).is_grant());
    lab.assert_lives(LOCK, 60_000);
    assert_eq!(lab.run(extend(A).count(2).ttl(90_000).round(4)), Said::Granted);
    lab.assert_lives(LOCK, 90_000);
}

fn an_extend_makes_no_lock_and_touches_no_other_owners(lab: &Lab) {
    assert_eq!(lab.run(extend(A).heals_not()), Said::Absent);
    assert!(lab.locks().is_empty());
    lab.run(acquire(B));
    assert_eq!(lab.run(extend(A).ttl(90_000).round(2)).held().owner, B);
    lab.assert_lives(LOCK, 5000);
}

fn a_release_leaves_the_holds_that_remain_and_deletes_with_the_last(lab: &Lab) {
    assert_eq!(lab.run(release(A)), Said::Absent);
    lab.run(acquire(A).count(2));
    assert_eq!(lab.run(release(B).round(2)).held().owner, A);
    assert_eq!(lab.run(release(A).count(1).round(2)), Said::Granted);
    assert_eq!(lab.count(A).as_deref(), Some("1"));
    assert_eq!(lab.run(release(A).round(3)), Said::Granted);
    assert_eq!(lab.run(release(A).round(3)), Said::Absent, "a repeated release finds it gone");
    assert!(lab.locks().is_empty());
}
