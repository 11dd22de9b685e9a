//! A grant that was not released, though its key is gone: it keeps others away until its time is over.

use super::lab::{LOCK, Lab, RECORD};
use super::operation::{A, B, acquire, extend, queue, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Guarded:
        a_broken_lock_is_released_where_it_never_was,
        a_lock_whose_key_is_gone_is_kept_from_everybody,
        it_is_free_when_its_time_is_over,
        a_clock_that_jumped_ahead_does_not_end_the_wait,
        a_release_of_what_is_gone_frees_it,
        only_its_owner_frees_it_and_in_no_earlier_round,
        a_release_without_guards_frees_nothing,
        a_withdrawal_of_what_is_gone_frees_it,
        without_trust_in_clocks_it_takes_a_version_that_was_watched,
        without_trust_in_clocks_time_frees_nothing,
        a_holder_that_renews_is_another_version,
        what_is_held_says_what_to_watch,
        who_has_no_guards_watches_nothing,
        a_place_in_the_queue_comes_with_what_to_watch;
    Exact:
        its_time_is_over_when_its_last_microsecond_is,
        its_time_is_over_by_the_proposal_too;
}

/// A's lock loses its key, and is kept from others for so long (ms).
fn lose(lab: &Lab, kept: u64) -> u64 {
    let token = lab.run(acquire(A).kept(kept).round(5)).token();
    lab.command(&["DEL", LOCK]);
    token
}

fn a_lock_whose_key_is_gone_is_kept_from_everybody(lab: &Lab) {
    lose(lab, 60_000);
    let record = lab.record();
    for owner in [B, A] {
        let held = lab.run(acquire(owner).round(9)).held();
        assert_eq!((&*held.owner, &*held.count, held.ahead, held.watch), (A, "0", None, None));
        assert!((50_000..=60_000).contains(&held.ttl), "{}", held.ttl);
    }
    assert!(lab.locks().is_empty());
    assert_eq!(lab.record(), record);
    assert_eq!(lab.run(queue(B).place(B, lab.now(), 0)).held().ahead, Some(0));
}

fn it_is_free_when_its_time_is_over(lab: &Lab) {
    let token = lose(lab, 5);
    lab.pass(6000);
    assert!(lab.run(acquire(B)).token() > token);
    assert!(lab.record().unwrap().ends_with(B));
}

/// What most masters show is in the proposal.
fn a_clock_that_jumped_ahead_does_not_end_the_wait(lab: &Lab) {
    lose(lab, 1);
    lab.pass(1001);
    assert_eq!(lab.run(acquire(B).token(lab.now() - 1_500_000)).held().owner, A);
    assert!(lab.locks().is_empty());
    assert!(lab.run(acquire(B)).is_grant());
}

fn its_time_is_over_by_the_proposal_too(lab: &Lab) {
    let end = lab.now() + 60_000_000;
    lose(lab, 60_000);
    lab.pass(61_000_000);
    let held = lab.run(acquire(B).token(end - 999_001)).held();
    assert_eq!((&*held.owner, &*held.count, held.ttl), (A, "0", 1000));
    assert_eq!(lab.run(acquire(B).token(end)).held().ttl, 0);
    assert_eq!(lab.run(acquire(B).token(end + 1)).token(), end + 1);
    lab.command(&["DEL", RECORD, LOCK]);
    lose(lab, 60_000);
    lab.pass(59_900_000);
    assert_eq!(lab.run(acquire(B).token(lab.now() + 400_000)).held().ttl, 100, "nor does one that is ahead");
}

fn its_time_is_over_when_its_last_microsecond_is(lab: &Lab) {
    lose(lab, 60_000);
    assert_eq!(lab.run(acquire(B)).held().ttl, 60_000);
    lab.pass(1);
    assert_eq!(lab.run(acquire(B)).held().ttl, 60_000, "a part of a millisecond is a whole one");
    lab.pass(59_999_999);
    assert_eq!(lab.run(acquire(B)).held().ttl, 0);
    lab.pass(1);
    assert!(lab.run(acquire(B)).is_grant());
}

fn a_release_of_what_is_gone_frees_it(lab: &Lab) {
    let token = lose(lab, 60_000);
    assert_eq!(lab.run(release(A).round(5)), Said::Absent);
    assert_eq!(lab.record(), Some(token.to_string()));
    lab.assert_lives(RECORD, 3_600_000);
    assert!(lab.run(acquire(B)).token() > token);
}

fn only_its_owner_frees_it_and_in_no_earlier_round(lab: &Lab) {
    lose(lab, 60_000);
    let record = lab.record();
    for operation in [
        release(B).round(5),
        release(A).round(4),
        release(A).count(1).round(5),
        withdraw(B).round(5).place(B, 1, 0),
        withdraw(A).round(4).place(A, 1, 0),
        withdraw(A).count(1).round(5).place(A, 1, 0),
        transfer(A, B).round(5),
    ] {
        assert_eq!(lab.run(operation.clone()), Said::Absent, "{operation:?}");
        assert_eq!(lab.record(), record, "{operation:?}");
    }
    assert_eq!(lab.run(release(A).round(6)), Said::Absent);
    lab.run(acquire(B).kept(60_000));
    let record = lab.record();
    assert_eq!(lab.run(release(A).round(6)).held().owner, B);
    assert_eq!(lab.run(withdraw(A).round(6).place(A, 1, 0)).held().owner, B);
    assert_eq!(lab.record(), record);
}

fn a_release_without_guards_frees_nothing(lab: &Lab) {
    lab.run(acquire(A).kept(60_000).round(5));
    let record = lab.record();
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(release(A).round(5)), Said::Granted);
    assert!(lab.locks().is_empty());
    assert_eq!(lab.run(release(A).round(5)), Said::Absent);
    assert_eq!(lab.record(), record, "the next one waits");
}

fn a_withdrawal_of_what_is_gone_frees_it(lab: &Lab) {
    let token = lose(lab, 60_000);
    assert_eq!(lab.run(withdraw(A).round(5).place(A, lab.now(), 0)), Said::Absent);
    assert_eq!(lab.record(), Some(token.to_string()));
    assert!(lab.queue().is_empty());
    lab.run(acquire(A).round(6));
    assert_eq!(lab.run(withdraw(A).round(6).place(A, lab.now(), 0)), Said::Granted);
    assert!(lab.run(acquire(B)).is_grant(), "it is as good as a release");
}

fn without_trust_in_clocks_it_takes_a_version_that_was_watched(lab: &Lab) {
    let token = lose(lab, 60_000);
    let version = format!("{token}:5");
    let others = [format!("{token}:50"), format!("1{token}:5"), format!("{token}:4")];
    for watched in [&[][..], &[&*others[0], &*others[1], &*others[2]]] {
        let held = lab.run(acquire(B).watched(watched)).held();
        assert_eq!((&*held.owner, &*held.count, held.ttl, held.ahead), (A, "0", 60_000, Some(-1)));
        assert_eq!(held.watch, Some((version.clone(), 60_000)));
    }
    assert!(lab.locks().is_empty());
    let granted = lab.run(acquire(B).watched(&[&others[0], &version, "7:7"]));
    assert!(granted.token() > token);
}

fn without_trust_in_clocks_time_frees_nothing(lab: &Lab) {
    let token = lose(lab, 1);
    lab.pass(20_000);
    let held = lab.run(acquire(B).watched(&[])).held();
    assert_eq!((held.ttl, held.watch), (1, Some((format!("{token}:5"), 1))));
    assert_eq!(lab.run(release(A).round(5)), Said::Absent);
    assert!(lab.run(acquire(B).watched(&[])).is_grant(), "what was released needs no watching");
}

fn a_holder_that_renews_is_another_version(lab: &Lab) {
    let token = lab.run(acquire(A).round(5)).token();
    assert_eq!(lab.run(extend(A).round(6).kept(9000)), Said::Granted);
    lab.command(&["DEL", LOCK]);
    let held = lab.run(acquire(B).watched(&[&format!("{token}:5")])).held();
    assert_eq!(held.watch, Some((format!("{token}:6"), 9000)));
}

fn what_is_held_says_what_to_watch(lab: &Lab) {
    let token = lab.run(acquire(A).round(5)).token();
    let held = lab.run(acquire(B).watched(&[])).held();
    assert_eq!((&*held.owner, &*held.count, held.ahead), (A, "1", Some(-1)));
    assert_eq!(held.watch, Some((format!("{token}:5"), 6000)));
    let trusts = lab.run(acquire(B)).held();
    assert_eq!((trusts.ahead, trusts.watch), (None, None), "only who trusts no clocks");
    assert_eq!(lab.run(acquire(A).round(4).watched(&[])), Said::Stale("5".to_owned()));
    for record in ["no record".to_owned(), token.to_string()] {
        lab.command(&["SET", RECORD, &record]);
        let held = lab.run(acquire(B).watched(&[])).held();
        assert_eq!((held.ahead, held.watch), (None, None), "{record} is no grant");
    }
}

fn who_has_no_guards_watches_nothing(lab: &Lab) {
    lab.run(acquire(A));
    lab.set_head(["", "", ""]);
    let held = lab.run(acquire(B).watched(&[])).held();
    assert_eq!((&*held.count, held.ahead, held.watch), ("1", None, None));
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(acquire(B).watched(&[])), Said::Granted);
}

fn a_place_in_the_queue_comes_with_what_to_watch(lab: &Lab) {
    let token = lab.run(acquire(A).round(5)).token();
    let held = lab.run(queue(B).watched(&[]).place(B, lab.now(), 0)).held();
    assert_eq!((held.ahead, held.watch), (Some(0), Some((format!("{token}:5"), 6000))));
    lab.command(&["DEL", LOCK]);
    let held = lab.run(queue(B).watched(&[]).place(B, lab.now(), 0)).held();
    assert_eq!((&*held.count, held.ahead), ("0", Some(0)));
    assert!(lab.run(queue(B).watched(&[&format!("{token}:5")])).is_grant());
}

fn a_broken_lock_is_released_where_it_never_was(lab: &Lab) {
    for record in ["", "5", "5:1:9000:9000000000000000:x:1"] {
        lab.command(&["DEL", RECORD]);
        if !record.is_empty() {
            lab.command(&["SET", RECORD, record]);
        }
        assert_eq!(lab.run(release(A).round(9).breaks(700)), Said::Absent);
        assert_eq!(lab.record().as_deref(), Some("700"), "{record}");
        assert_eq!(lab.run(extend(A).token(700)), Said::Absent, "it is not taken back");
    }
    lab.command(&["SET", RECORD, "800"]);
    assert_eq!(lab.run(release(A).round(9).breaks(700)), Said::Absent);
    assert_eq!(lab.record().as_deref(), Some("800"), "a higher one was granted since");
    lab.command(&["DEL", RECORD]);
    for last in [0, 1] {
        assert_eq!(lab.run(release(A).round(9).breaks(last)), Said::Absent);
        assert_eq!(lab.record(), None, "{last} is no token");
    }
}
