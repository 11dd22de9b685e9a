//! What parts in a read-write lock: an owner that reads and writes, a key and its record, and an undo from what others did since.

use std::sync::Arc;

use quorate_testkit::Resp;

use super::denied::without;
use super::lab::{LOCK, Lab, MUTEX, RECORD};
use super::operation::{A, B, C, acquire, extend, queue, release, transfer};
use super::reading::{RA, RB, RC, fields};
use super::said::Said;
use super::source;

super::scenarios! {
    Both:
        the_reader_of_a_writer_is_given_to_nobody,
        the_writer_of_a_reader_is_given_to_nobody,
        a_free_lock_that_cannot_be_read_is_refused;
    Guarded:
        a_broken_writer_was_the_last_where_readers_were_before,
        a_reader_that_comes_back_behind_a_writer_brings_none_with_it,
        nobody_is_given_a_lock_whose_record_is_none,
        an_undo_brings_no_reader_back_that_left,
        an_undo_keeps_nobody_from_a_lock_that_all_left,
        undone_one_after_the_other_they_keep_nobody_away,
        an_undo_brings_no_writer_back_that_left,
        a_writer_that_goes_on_does_not_let_its_reader_back_in,
        a_writer_that_leaves_a_lost_key_leaves_it_to_its_reader,
        its_reader_takes_back_what_was_lost,
        a_writers_reader_that_comes_back_lets_no_others_in,
        a_writer_that_begins_to_read_where_its_key_is_lost_lets_no_others_in,
        a_writer_that_has_read_where_its_key_is_lost_writes_still,
        a_free_lock_is_refused_without_the_time,
        an_undo_beside_others_lets_the_grant_before_it_not_back_in,
        two_readers_have_two_tokens;
    Exact:
        an_undo_leaves_to_be_watched_what_was_not_released,
        an_undo_brings_no_reader_back_that_left_unseen,
        a_reader_is_given_away_when_its_writer_is_over,
        who_is_given_a_lock_without_a_record_gets_a_higher_token,
        the_first_of_all_has_its_token_in_the_record,
        a_writer_that_reads_when_its_lease_is_over_is_kept_as_its_record_says,
        without_trust_in_clocks_a_writer_that_reads_is_watched_as_before,
        each_renewal_is_another_version_whoever_renews,
        no_version_comes_back,
        a_reader_comes_back_behind_an_older_mutex,
        a_reader_is_broken_behind_a_mutex,
        what_a_mutex_left_is_no_obstacle_to_readers,
        a_reader_does_not_come_back_behind_a_later_mutex,
        the_token_of_who_is_given_a_lock_is_above_that_of_its_readers,
        a_record_that_is_made_again_knows_the_tokens_of_all;
}

/// Another server, with a mutex of the same name.
fn mutex() -> Lab {
    Lab::embedded(Arc::new(source::scripts()), MUTEX, true)
}

fn an_undo_brings_no_reader_back_that_left(lab: &Lab) {
    let first = lab.run(acquire(RA)).token();
    lab.run(acquire(RB));
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    assert_eq!(lab.run(release(RB).round(2).undoes()), Said::Granted);
    let late = lab.run(extend(RA).token(first).round(2));
    assert_eq!(late, Said::Absent, "it left");
}

fn an_undo_keeps_nobody_from_a_lock_that_all_left(lab: &Lab) {
    lab.run(acquire(RA));
    lab.run(acquire(RB));
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    assert_eq!(lab.run(release(RB).round(2).undoes()), Said::Granted);
    let said = lab.run(acquire(C));
    assert!(said.is_grant(), "everybody left: {said:?}");
}

fn undone_one_after_the_other_they_keep_nobody_away(lab: &Lab) {
    for before in [None, Some(())] {
        let had = before.map(|()| {
            lab.run(acquire(C));
            lab.run(release(C).round(2));
            lab.command(&["GET", RECORD])
        });
        for readers in [[RA, RB, RC], [RC, RA, RB]] {
            for reader in readers {
                lab.run(acquire(reader));
            }
            for reader in [RA, RB, RC] {
                assert_eq!(lab.run(release(reader).round(2).undoes()), Said::Granted);
            }
            assert_eq!(lab.command(&["GET", RECORD]), had.clone().unwrap_or(Resp::Nil));
        }
    }
    for reader in [RA, RB] {
        lab.run(acquire(reader));
    }
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    lab.command(&["DEL", RECORD]);
    assert_eq!(lab.run(release(RB).round(2).undoes()), Said::Granted);
    assert_eq!(lab.command(&["GET", RECORD]), Resp::Nil, "nobody knows of it");
    assert!(lab.run(acquire(A)).is_grant());
}

fn an_undo_brings_no_reader_back_that_left_unseen(lab: &Lab) {
    lab.run(acquire(RA).ttl(5000).kept(5000));
    lab.pass(5_001_000);
    let token = lab.run(acquire(RB)).token();
    assert_eq!(lab.run(release(RC).breaks(token + 1)), Said::Absent, "it was granted elsewhere");
    assert_eq!(lab.run(release(RB).round(2).undoes()), Said::Granted);
    assert_eq!(lab.run(extend(RC).token(token + 1)), Said::Absent);
}

fn an_undo_brings_no_writer_back_that_left(lab: &Lab) {
    let wrote = lab.run(acquire(A)).token();
    lab.run(acquire(RA).round(2));
    assert_eq!(lab.run(release(A).round(3)), Said::Granted);
    assert_eq!(lab.run(release(RA).round(4).undoes()), Said::Granted);
    let late = lab.run(extend(A).token(wrote).round(3));
    assert_eq!(late, Said::Absent, "it left");
}

fn a_writer_that_goes_on_does_not_let_its_reader_back_in(lab: &Lab) {
    let wrote = lab.run(acquire(A)).token();
    let read = lab.run(acquire(RA).round(2)).token();
    assert_eq!(lab.run(release(RA).round(3)), Said::Granted);
    assert_eq!(lab.run(extend(RA).token(read).round(3)), Said::Absent);
    assert_eq!(lab.run(extend(A).token(wrote).round(4)), Said::Granted);
    assert_eq!(lab.run(extend(RA).token(read).round(3)), Said::Absent, "it left");
}

fn a_writer_that_leaves_a_lost_key_leaves_it_to_its_reader(lab: &Lab) {
    lab.run(acquire(A));
    lab.run(acquire(RA).round(2));
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(release(A).round(3)), Said::Absent);
    let said = lab.run(acquire(C));
    assert!(!said.is_grant(), "RA reads: {said:?}");
    assert!(lab.run(acquire(RB)).is_grant(), "others may read, too");
}

fn its_reader_takes_back_what_was_lost(lab: &Lab) {
    lab.run(acquire(A));
    let read = lab.run(acquire(RA).round(2)).token();
    lab.command(&["DEL", LOCK]);
    lab.run(release(A).round(3));
    assert_eq!(lab.run(extend(RA).token(read).round(4)), Said::Granted);
}

fn a_writers_reader_that_comes_back_lets_no_others_in(lab: &Lab) {
    lab.run(acquire(A));
    let read = lab.run(acquire(RA).round(2)).token();
    lab.command(&["DEL", LOCK]);
    assert!(!lab.run(acquire(RB)).is_grant(), "the record is the writer's");
    assert_eq!(lab.run(extend(RA).token(read).round(3)), Said::Granted);
    let said = lab.run(acquire(RB).round(9));
    assert!(!said.is_grant(), "A writes still: {said:?}");
}

fn a_writer_that_begins_to_read_where_its_key_is_lost_lets_no_others_in(lab: &Lab) {
    lab.run(acquire(A));
    lab.command(&["DEL", LOCK]);
    assert!(lab.run(acquire(RA).round(2)).is_grant());
    let said = lab.run(acquire(RB));
    assert!(!said.is_grant(), "A writes still: {said:?}");
}

fn a_writer_that_has_read_where_its_key_is_lost_writes_still(lab: &Lab) {
    lab.run(acquire(A).ttl(60_000).kept(60_000));
    lab.command(&["DEL", LOCK]);
    assert!(lab.run(acquire(RA).round(2)).is_grant());
    assert_eq!(lab.run(release(RA).round(3)), Said::Granted);
    let said = lab.run(acquire(C));
    assert!(!said.is_grant(), "A writes still: {said:?}");
}

fn a_writer_that_reads_when_its_lease_is_over_is_kept_as_its_record_says(lab: &Lab) {
    lab.run(acquire(A).ttl(5000).kept(6000));
    lab.pass(5_000_100);
    assert!(!lab.run(acquire(RB)).is_grant(), "the record says until when");
    assert!(lab.run(acquire(RA).round(2)).is_grant());
    let said = lab.run(acquire(RB));
    assert!(!said.is_grant(), "the record of A is not over: {said:?}");
}

fn without_trust_in_clocks_a_writer_that_reads_is_watched_as_before(lab: &Lab) {
    lab.run(acquire(A).ttl(5000).kept(60_000));
    lab.pass(5_000_100);
    assert!(!lab.run(acquire(RB).watched(&[])).is_grant());
    assert!(lab.run(acquire(RA).round(2).watched(&[])).is_grant());
    let said = lab.run(acquire(RB).watched(&[]));
    assert!(!said.is_grant(), "nobody watched: {said:?}");
}

fn the_reader_of_a_writer_is_given_to_nobody(lab: &Lab) {
    lab.run(acquire(A));
    lab.run(acquire(RA).round(2));
    let said = lab.run(transfer(RA, RB));
    assert!(!said.is_grant(), "B reads beside A");
}

fn the_writer_of_a_reader_is_given_to_nobody(lab: &Lab) {
    lab.run(acquire(A));
    lab.run(acquire(RA).round(2));
    let said = lab.run(transfer(A, B));
    assert!(!said.is_grant(), "B writes beside A");
}

fn each_renewal_is_another_version_whoever_renews(lab: &Lab) {
    let first = lab.run(acquire(RA).round(1)).token();
    lab.run(acquire(RB).round(2));
    let before = lab.run(acquire(C).watched(&[])).held().watch.unwrap();
    lab.pass(4_000_000);
    assert_eq!(lab.run(extend(RA).token(first).round(2)), Said::Granted);
    let after = lab.run(acquire(C).watched(&[])).held().watch.unwrap();
    lab.pass(3_000_000); // watched for 7 s, and A has 2 s left
    lab.command(&["DEL", LOCK]);
    let said = lab.run(acquire(C).watched(&[&before.0]));
    assert!(!said.is_grant(), "A reads; {before:?} {after:?} {said:?}");
}

fn no_version_comes_back(lab: &Lab) {
    let first = lab.run(acquire(RA).round(1)).token();
    let second = lab.run(acquire(RB).round(2)).token();
    let watched = lab.run(acquire(C).watched(&[])).held().watch.unwrap().0;
    for _ in 0..3 {
        lab.pass(2_500_000);
        lab.run(extend(RB).token(second).round(3));
    }
    assert_eq!(lab.run(extend(RA).token(first).round(2)), Said::Granted, "a reader of another client");
    lab.command(&["DEL", LOCK]);
    let said = lab.run(acquire(C).watched(&[&watched]));
    assert!(!said.is_grant(), "A was renewed this very moment: {said:?}");
}

fn a_reader_comes_back_behind_an_older_mutex(lab: &Lab) {
    let mutex = mutex();
    let token = mutex.run(acquire("x:1")).token();
    let text = mutex.record().unwrap();
    lab.command(&["SET", RECORD, &text]);
    assert_eq!(lab.run(extend(RA).token(token + 9)), Said::Granted);
}

fn a_reader_is_broken_behind_a_mutex(lab: &Lab) {
    let mutex = mutex();
    let token = mutex.run(acquire("x:1")).token();
    lab.command(&["SET", RECORD, &mutex.record().unwrap()]);
    assert_eq!(lab.run(release(RA).breaks(token + 9)), Said::Absent);
}

fn what_a_mutex_left_is_no_obstacle_to_readers(lab: &Lab) {
    let mutex = mutex();
    mutex.run(acquire("x:1"));
    lab.command(&["SET", RECORD, &mutex.record().unwrap()]);
    lab.pass(7_000_000);
    let token = lab.run(acquire(RA)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(RA).token(token).round(2)), Said::Granted);
}

fn a_reader_does_not_come_back_behind_a_later_mutex(lab: &Lab) {
    let mutex = mutex();
    let old = mutex.run(acquire("y:1")).token();
    mutex.run(release("y:1").round(2));
    mutex.pass(1_000_000);
    let token = mutex.run(acquire("x:1")).token();
    lab.pass(1_000_000);
    lab.command(&["SET", RECORD, &mutex.record().unwrap()]);
    // granted elsewhere before the mutex was
    assert_eq!(lab.run(extend(RA).token((old + token) / 2)), Said::Absent, "the mutex's token is higher");
}

fn a_free_lock_that_cannot_be_read_is_refused(lab: &Lab) {
    without(lab, "hgetall", &queue(RA));
}

fn a_free_lock_is_refused_without_the_time(lab: &Lab) {
    lab.set_head(["", "", ""]);
    without(lab, "time", &queue(RA));
}

fn an_undo_beside_others_lets_the_grant_before_it_not_back_in(lab: &Lab) {
    let first = lab.run(acquire(RA)).token();
    lab.run(acquire(RB));
    lab.run(acquire(RA).round(2));
    assert_eq!(lab.run(release(RA).round(3).undoes()), Said::Granted);
    assert_eq!(lab.run(extend(RA).token(first).round(2)), Said::Absent);
}

fn the_token_of_who_is_given_a_lock_is_above_that_of_its_readers(lab: &Lab) {
    lab.run(acquire(A));
    let read = lab.run(acquire(RA).round(2).token(lab.now() + 400_000)).token();
    lab.run(release(RA).round(3));
    let given = lab.run(transfer(A, B)).token();
    assert!(given > read, "{given} {read}");
}

fn two_readers_have_two_tokens(lab: &Lab) {
    lab.run(acquire(RA));
    let other = lab.run(acquire(RB)).token();
    let given = lab.run(transfer(RA, RC).token(other)).token();
    assert!(given != other, "{given} {other}");
}

fn a_record_that_is_made_again_knows_the_tokens_of_all(lab: &Lab) {
    let first = lab.run(acquire(RA).ttl(60_000).kept(60_000)).token();
    let second = lab.run(acquire(RB).ttl(100).kept(100).token(lab.now() + 400_000)).token();
    lab.command(&["DEL", RECORD]);
    lab.run(extend(RA).token(first).round(2));
    lab.pass(101_000);
    lab.run(release(RA).round(3));
    let third = lab.run(acquire(C)).token();
    assert!(third > second, "{third} {second}");
}

fn a_broken_writer_was_the_last_where_readers_were_before(lab: &Lab) {
    let token = lab.run(acquire(RA)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(release(B).breaks(token + 9)), Said::Absent);
    assert_eq!(lab.record(), Some((token + 9).to_string()));
}

fn a_reader_that_comes_back_behind_a_writer_brings_none_with_it(lab: &Lab) {
    let token = lab.run(acquire(C)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(
        lab.run(extend(RA).token(token + 9)),
        Said::Granted,
        "the writer left, and this master did not hear it"
    );
    assert_eq!(fields(lab), [RA]);
}

fn nobody_is_given_a_lock_whose_record_is_none(lab: &Lab) {
    lab.run(acquire(A));
    lab.command(&["SET", RECORD, "x"]);
    assert_eq!(lab.run(transfer(A, B)).refused(), "WRONGTYPE");
    assert_eq!(fields(lab), [format!("w:{A}")]);
}

fn a_reader_is_given_away_when_its_writer_is_over(lab: &Lab) {
    lab.run(acquire(A).ttl(5000).kept(5000));
    lab.run(acquire(RA).round(2).ttl(60_000).kept(60_000));
    lab.pass(5_000_000);
    assert!(lab.run(transfer(RA, RB)).is_grant());
}

fn who_is_given_a_lock_without_a_record_gets_a_higher_token(lab: &Lab) {
    let token = lab.run(acquire(A).token(lab.now() + 400_000)).token();
    lab.command(&["DEL", RECORD]);
    assert!(lab.run(transfer(A, B)).token() > token);
}

fn the_first_of_all_has_its_token_in_the_record(lab: &Lab) {
    let token = lab.run(acquire(RA).token(lab.now() + 400_000)).token();
    lab.command(&["DEL", RECORD]);
    lab.run(acquire(RB));
    assert!(lab.record().unwrap().starts_with(&format!("{token}:")), "{:?}", lab.record());
}

fn an_undo_leaves_to_be_watched_what_was_not_released(lab: &Lab) {
    lab.run(acquire(C));
    lab.run(release(C).round(2));
    lab.run(acquire(RA).ttl(5000).kept(5000));
    let before = lab.record();
    lab.pass(5_001_000);
    assert!(lab.run(acquire(RB).watched(&[])).is_grant());
    assert_eq!(lab.run(release(RB).round(2).undoes()), Said::Granted);
    assert_eq!(lab.record(), before);
    assert_eq!(lab.run(acquire(C).watched(&[])).held().count, "0", "nobody watched it");
}
