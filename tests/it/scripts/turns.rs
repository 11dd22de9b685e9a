//! Who waits for a read-write lock, who is called, who goes first, and who is let in again.

use quorate_testkit::Resp;

use super::denied::without;
use super::ear::Ear;
use super::lab::{LOCK, Lab, QUEUE, RECORD, text};
use super::operation::{A, B, C, acquire, extend, queue, release, withdraw};
use super::reading::{RA, RB, RC, fields};
use super::said::Said;

super::scenarios! {
    Both:
        a_writer_that_leaves_calls_the_readers_up_to_the_next_writer,
        the_last_reader_that_leaves_calls_the_writer,
        a_writer_that_waits_no_more_lets_the_readers_in,
        a_reader_that_writes_calls_nobody,
        who_does_not_hear_is_passed_over,
        who_may_call_nobody_takes_nobody_off,
        a_lock_that_cannot_be_read_calls_nobody,
        a_new_reader_waits_behind_a_writer,
        a_reader_that_came_before_the_writer_goes_first,
        who_reads_or_writes_waits_for_nobody,
        a_writer_that_is_gone_is_in_nobodys_way,
        a_free_lock_is_for_the_writer_that_waits_and_not_for_new_readers,
        a_writer_that_is_called_and_gone_is_in_nobodys_way,
        a_writer_that_nobody_may_call_keeps_readers_out_until_it_asks,
        whether_a_writer_was_called_is_found_out_or_refused,
        a_queue_that_cannot_be_read_is_in_nobodys_way;
    Guarded:
        readers_are_let_in_again_whoever_read_meanwhile,
        readers_that_are_not_known_keep_the_writer_away,
        nobody_is_let_in_again_behind_a_writer,
        a_master_without_a_vote_lets_nobody_wait;
    Exact:
        a_writer_that_is_called_has_a_second_to_ask;
}

/// How C stands in the queue, too, when it was called.
const CALLED: &str = "!00000000-0000-0000-0000-00000000000c:77";

/// Hears what the client of A, B or C is called by.
fn ear(lab: &Lab, client: char) -> Ear<'_> {
    Ear::new(
        lab,
        match client {
            'b' => "wake:00000000-0000-0000-0000-00000000000b",
            _ => "wake:00000000-0000-0000-0000-00000000000c",
        },
    )
}

/// Asks for a place as well.
fn stands(lab: &Lab, owner: &str, since: u64) -> i64 {
    let said = lab.run(queue(owner).place(owner, since, lab.now().saturating_sub(since)));
    said.held().ahead.expect("it asked for a place")
}

fn a_writer_that_leaves_calls_the_readers_up_to_the_next_writer(lab: &Lab) {
    let (mut b, mut c) = (ear(lab, 'b'), ear(lab, 'c'));
    let others = ["r:00000000-0000-0000-0000-00000000000b:2", "00000000-0000-0000-0000-00000000000b:3"];
    lab.run(acquire(A));
    let now = lab.now();
    assert_eq!(stands(lab, RB, now), 0);
    assert_eq!(stands(lab, RC, now + 1), 1);
    assert_eq!(stands(lab, others[1], now + 2), 2);
    assert_eq!(stands(lab, others[0], now + 3), 3);
    lab.run(release(A).round(2));
    assert_eq!((b.heard(), c.heard()), (vec!["1".to_owned()], vec!["77".to_owned()]));
    assert_eq!(lab.queue(), [others[1], others[0]]);
    assert_eq!(lab.run(release("x:1")), Said::Absent);
    assert_eq!(b.heard(), ["3"], "it is free");
    assert_eq!(lab.queue(), [others[1], others[0], &format!("!{}", others[1])]);
}

fn the_last_reader_that_leaves_calls_the_writer(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(RA));
    lab.run(acquire(RB));
    stands(lab, C, lab.now());
    lab.run(release(RA).round(2));
    assert!(c.heard().is_empty(), "one still reads");
    assert_eq!(lab.queue(), [C]);
    lab.run(release(RB).count(1).round(2));
    assert!(c.heard().is_empty());
    lab.run(release(RB).round(3));
    assert_eq!(c.heard(), ["77"]);
    assert_eq!(lab.queue(), [C, CALLED], "it keeps its place until it asks");
    assert_eq!(lab.run(release("x:1")), Said::Absent);
    assert!(c.heard().is_empty(), "it was called");
    assert!(lab.run(queue(C).before(C)).is_grant());
    assert!(lab.queue().is_empty());
}

fn a_writer_that_waits_no_more_lets_the_readers_in(lab: &Lab) {
    let (mut b, mut c) = (ear(lab, 'b'), ear(lab, 'c'));
    lab.run(acquire(RA));
    let now = lab.now();
    stands(lab, B, now);
    assert_eq!(stands(lab, RC, now + 1), 1);
    assert_eq!(lab.run(release(B)).held().owner, A);
    assert_eq!((b.heard(), c.heard()), (vec!["0".to_owned()], vec!["77".to_owned()]));
    assert!(lab.queue().is_empty());
    assert_eq!(lab.run(withdraw(RA).round(2).place(RA, lab.now(), 0)), Said::Granted);
    assert_eq!(lab.queue(), [RA]);
}

fn a_reader_that_writes_calls_nobody(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(A));
    lab.run(acquire(RA).round(2));
    stands(lab, RC, lab.now());
    lab.run(release(RA).round(3));
    assert!(c.heard().is_empty(), "it still writes");
    lab.run(acquire(RA).round(4));
    lab.run(release(A).round(5));
    assert_eq!(c.heard(), ["77"]);
}

fn who_does_not_hear_is_passed_over(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(A));
    let now = lab.now();
    lab.command(&["ZADD", QUEUE, "1", "no ticket", "2", "x:y:1", "3", "r:x"]);
    stands(lab, B, now);
    stands(lab, RB, now + 1);
    stands(lab, C, now + 2);
    lab.run(release(A).round(2));
    assert_eq!(c.heard(), ["77"]);
    assert_eq!(lab.queue(), [C, CALLED]);
    lab.command(&["DEL", QUEUE]);
    lab.run(acquire(A).round(3));
    for (ticket, later) in [(RC, 0), (RB, 1), (C, 2)] {
        stands(lab, ticket, now + later);
    }
    lab.run(release(A).round(4));
    assert_eq!(c.heard(), ["77"], "the reader, and not the writer");
    assert_eq!(lab.queue(), [C]);
}

fn who_may_call_nobody_takes_nobody_off(lab: &Lab) {
    lab.run(acquire(A));
    let now = lab.now();
    stands(lab, RB, now);
    stands(lab, C, now + 1);
    for denied in ["publish", "zrange", "zpopmin"] {
        lab.command(&["ACL", "SETUSER", "default", &format!("-{denied}")]);
        assert!(!matches!(lab.run(release(A).round(2)), Said::Refused(_)), "without {denied}");
        lab.command(&["ACL", "SETUSER", "default", &format!("+{denied}")]);
        assert_eq!(lab.queue(), [RB, C], "without {denied}");
    }
    let Resp::List(all) = lab.command(&["ZRANGE", QUEUE, "0", "0", "WITHSCORES"]) else { panic!("no queue") };
    assert_eq!(text(&all[1]).parse::<f64>().unwrap() as u64, now, "it waits as long as before");
}

fn a_lock_that_cannot_be_read_calls_nobody(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(A));
    stands(lab, C, lab.now());
    lab.command(&["SET", LOCK, "x"]);
    assert_eq!(lab.run(release("x:1")).refused(), "WRONGTYPE");
    assert!(c.heard().is_empty());
}

fn a_new_reader_waits_behind_a_writer(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(RA));
    let now = lab.now();
    stands(lab, C, now);
    let held = lab.run(queue(RB).place(RB, now + 1, 0)).held();
    assert_eq!((&*held.owner, held.ahead), (A, Some(1)));
    assert_eq!(c.heard(), ["0"], "it was asked whether it is there");
    let held = lab.run(queue(RB)).held();
    assert_eq!((&*held.owner, held.ahead), (A, None), "who has no place is behind all");
    let other = "r:00000000-0000-0000-0000-00000000000b:2";
    assert_eq!(lab.run(queue(RB).before(RB).place(other, now + 1, 0)).held().ahead, Some(1));
    assert_eq!(lab.queue(), [C, other], "it has one place");
    assert_eq!(fields(lab), [RA]);
    lab.run(release(RA).round(2));
    assert_eq!(c.heard(), ["0", "0", "77"]);
    assert!(lab.run(queue(C).before(C)).is_grant());
}

fn a_reader_that_came_before_the_writer_goes_first(lab: &Lab) {
    let _ears = (ear(lab, 'b'), ear(lab, 'c'));
    lab.run(acquire(RA));
    let now = lab.now();
    stands(lab, C, now);
    assert!(lab.run(queue(RB).place(RB, now - 1, 0)).is_grant());
    lab.run(release(RB).round(2));
    assert!(lab.run(queue(RB).round(3).place(RB, now, 0)).is_grant(), "of equals, too");
    lab.run(release(RB).round(4));
    lab.pass(1);
    let said = lab.run(queue(RB).round(5).place(RB, now - 10_000_000, 0));
    assert_eq!(said.held().owner, A, "it is not believed");
    lab.run(release(RB).round(6));
    let reader = "r:00000000-0000-0000-0000-00000000000b:9";
    lab.command(&["ZADD", QUEUE, "1", reader]);
    assert_eq!(
        lab.run(queue(RB).round(5).place(RB, now + 1, 0)).held().ahead,
        Some(2),
        "not the first is a writer"
    );
}

fn who_reads_or_writes_waits_for_nobody(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(RA));
    stands(lab, C, lab.now() - 1000);
    assert!(lab.run(queue(RA).round(2)).is_grant(), "it reads");
    assert_eq!(lab.run(queue(B)).held().owner, A, "a writer waits as ever");
    assert!(c.heard().is_empty(), "nobody is asked whether it is there");
    lab.command(&["DEL", LOCK, RECORD]);
    lab.run(acquire(A).round(3));
    assert!(lab.run(queue(RA).round(4)).is_grant(), "it writes");
    lab.run(release(RA).round(5));
    assert!(lab.run(queue(RA).round(6)).is_grant());
    lab.run(release(A).round(7));
    assert_eq!(lab.run(queue(RB)).held().owner, A, "a writer waits still");
}

fn a_writer_that_is_gone_is_in_nobodys_way(lab: &Lab) {
    lab.run(acquire(RA));
    let now = lab.now();
    stands(lab, B, now);
    stands(lab, C, now + 1);
    {
        let mut c = ear(lab, 'c');
        assert_eq!(lab.run(queue(RB)).held().owner, A);
        assert_eq!((lab.queue(), c.heard()), (vec![C.to_owned()], vec!["0".to_owned()]));
        lab.command(&["ACL", "SETUSER", "default", "-publish"]);
        assert_eq!(lab.run(queue(RB)).held().owner, A, "who cannot ask believes it");
        lab.command(&["ACL", "SETUSER", "default", "+publish"]);
    }
    lab.command(&["DEL", QUEUE]);
    stands(lab, B, now);
    assert!(lab.run(queue(RB)).is_grant());
    assert!(lab.queue().is_empty());
}

fn a_free_lock_is_for_the_writer_that_waits_and_not_for_new_readers(lab: &Lab) {
    let (mut b, mut c) = (ear(lab, 'b'), ear(lab, 'c'));
    lab.run(acquire(RA));
    let now = lab.now();
    stands(lab, C, now + 1);
    lab.command(&["ZADD", QUEUE, &now.to_string(), RB]);
    lab.command(&["DEL", LOCK, RECORD]);
    for _ in 0..2 {
        let held = lab.run(queue(RA).round(2)).held();
        assert_eq!((&*held.owner, &*held.count, held.ahead, &held.watch), (C, "0", None, &None));
        assert!((1..=1000).contains(&held.ttl), "{held:?}");
    }
    assert_eq!((b.heard(), c.heard()), (vec![], vec!["77".to_owned()]), "it was called, once");
    assert_eq!(lab.queue(), [RB, C, CALLED]);
    let held = lab.run(queue(RA).round(3).place(RA, now + 2, 0)).held();
    assert_eq!((&*held.owner, held.ahead), (C, Some(2)), "it takes a place");
    assert!(lab.run(queue(RB).before(RB).place(RB, now, 0)).is_grant(), "it came before the writer");
    assert_eq!(lab.run(queue(C).before(C).place(C, now + 1, 0)).held().owner, B);
    assert_eq!(lab.queue(), [C, RA], "it has asked");
    lab.run(release(RB).round(2));
    assert_eq!(lab.queue(), [C, RA, CALLED]);
    assert!(lab.run(queue(B)).is_grant(), "writers do not wait for each other");
    assert_eq!(lab.run(queue(RA).round(4)).held().owner, B);
}

fn a_writer_that_is_called_and_gone_is_in_nobodys_way(lab: &Lab) {
    lab.run(acquire(RA));
    stands(lab, C, lab.now());
    lab.command(&["DEL", LOCK, RECORD]);
    lab.command(&["ZADD", QUEUE, "1", "w:x", "2", "no ticket", "3", "!w:left:1"]);
    assert!(lab.run(queue(RB)).is_grant(), "nobody hears");
    assert_eq!(lab.queue(), ["x", "no ticket", "!left:1"]);
    lab.run(release(RB).round(2));
    assert!(lab.queue().is_empty());
    let _ear = ear(lab, 'c');
    lab.run(acquire(RA).round(3));
    stands(lab, B, lab.now());
    stands(lab, C, lab.now());
    lab.command(&["DEL", LOCK, RECORD]);
    assert_eq!(lab.run(queue(RB).round(3)).held().owner, C, "the next one is there");
}

fn a_writer_that_nobody_may_call_keeps_readers_out_until_it_asks(lab: &Lab) {
    lab.run(acquire(RA));
    stands(lab, C, lab.now());
    lab.command(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    assert_eq!(lab.queue(), [C, CALLED]);
    assert_eq!(lab.run(queue(RB)).held().owner, C);
    assert!(lab.run(queue(C).before(C)).is_grant());
}

fn whether_a_writer_was_called_is_found_out_or_refused(lab: &Lab) {
    for denied in ["zscore", "zrem", "hgetall"] {
        lab.run(acquire(RA));
        stands(lab, C, lab.now());
        lab.command(&["DEL", LOCK, RECORD]);
        let why = without(lab, denied, &queue(RB));
        assert!(why.contains("can't run this command"), "without {denied}: {why}");
        lab.command(&["DEL", QUEUE]);
    }
}

fn a_writer_that_is_called_has_a_second_to_ask(lab: &Lab) {
    let mut c = ear(lab, 'c');
    lab.run(acquire(RA));
    stands(lab, C, lab.now());
    lab.run(release(RA).round(2));
    lab.pass(1_000_000 - 1);
    assert_eq!(lab.run(queue(RB)).held().ttl, 1);
    lab.pass(1);
    assert!(lab.run(queue(RB)).is_grant());
    assert!(lab.queue().is_empty());
    // One that stands behind it is called when its time is over.
    stands(lab, C, lab.now());
    lab.run(release(RB).round(2));
    lab.run(acquire(A));
    let mut b = ear(lab, 'b');
    stands(lab, RB, lab.now() + 1);
    lab.pass(1_000_000);
    assert_eq!((b.heard(), c.heard()), (vec![], vec!["77".to_owned(), "77".to_owned()]));
    lab.run(release(A).round(2));
    assert_eq!(b.heard(), ["1"]);
    assert!(lab.queue().is_empty());
}

fn a_queue_that_cannot_be_read_is_in_nobodys_way(lab: &Lab) {
    let _ear = ear(lab, 'c');
    lab.run(acquire(RA));
    stands(lab, C, lab.now());
    lab.command(&["ACL", "SETUSER", "default", "-zrange"]);
    assert!(lab.run(queue(RB)).is_grant());
    lab.command(&["ACL", "SETUSER", "default", "+zrange", "-hgetall"]);
    assert_eq!(lab.run(queue("r:x:1")).refused(), "ERR");
}

fn readers_are_let_in_again_whoever_read_meanwhile(lab: &Lab) {
    let first = lab.run(acquire(RA)).token();
    let second = lab.run(acquire(RB)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(RA).token(first).round(2)), Said::Granted);
    assert_eq!(lab.run(extend(RB).token(second).round(2)), Said::Granted);
    assert_eq!(fields(lab), [RA, RB, "r:forgotten"]);
    assert!(lab.run(acquire(RC)).is_grant());
    lab.run(release(RC).round(2));
    lab.command(&["DEL", LOCK, RECORD]);
    assert_eq!(lab.run(extend(RA).token(first).round(3)), Said::Granted, "of a master that forgot all");
    assert_eq!(fields(lab), [RA]);
    assert_eq!(lab.run(extend(RB).token(second).round(3)), Said::Granted, "beside it");
    assert_eq!(lab.run(extend(RC).heals_not().token(second)), Said::Absent);
    assert_eq!(fields(lab), [RA, RB]);
}

fn readers_that_are_not_known_keep_the_writer_away(lab: &Lab) {
    let first = lab.run(acquire(RA).ttl(5000).kept(5000)).token();
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(RA).token(first).ttl(5000).kept(5000).round(2)), Said::Granted);
    assert_eq!(lab.run(release(RA).round(3)), Said::Granted);
    assert_eq!(fields(lab), ["r:forgotten"]);
    let held = lab.run(acquire(C)).held();
    assert!((50_000..=60_000).contains(&held.ttl), "{held:?}");
    lab.command(&["DEL", LOCK]);
    let held = lab.run(acquire(C)).held();
    assert!((50_000..=60_000).contains(&held.ttl), "{held:?}");
    // One that comes anew is no other reason to forget them.
    assert!(lab.run(acquire(RC)).is_grant());
    assert_eq!(fields(lab), [RC, "r:forgotten"]);
}

fn nobody_is_let_in_again_behind_a_writer(lab: &Lab) {
    let before = lab.run(acquire(RA)).token();
    lab.command(&["DEL", LOCK, RECORD]);
    let wrote = lab.run(acquire(C)).token();
    assert_eq!(lab.run(extend(RA).token(before).round(2)).held().owner, C);
    lab.run(release(C).round(2));
    assert_eq!(lab.run(extend(RA).token(before).round(2)), Said::Absent);
    assert_eq!(lab.run(extend(RA).token(wrote).round(2)), Said::Absent);
    lab.run(acquire(RB));
    assert_eq!(lab.run(extend(RA).token(before).round(2)), Said::Absent, "whoever reads");
    assert_eq!(lab.run(extend(RA).token(wrote).round(2)), Said::Absent);
    assert_eq!(lab.run(extend(RC).token(wrote + 1).round(2)), Said::Granted);
    lab.command(&["DEL", LOCK, RECORD]);
    // A writer takes back what nobody was granted since.
    let wrote = lab.run(acquire(A).round(5)).token();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(B).token(wrote)), Said::Absent, "it was another's");
    assert_eq!(lab.run(extend(A).token(wrote - 1).round(6)), Said::Absent);
    assert_eq!(lab.run(extend(A).token(wrote).round(6)), Said::Granted);
}

fn a_master_without_a_vote_lets_nobody_wait(lab: &Lab) {
    lab.run(acquire(RA));
    stands(lab, C, lab.now() - 1);
    lab.set_head([super::lab::MARKER, "another", "0"]);
    assert_eq!(lab.run(queue(RB).place(RB, lab.now(), 0)).refused(), "FORGOT");
    assert_eq!(lab.queue(), [C]);
}
