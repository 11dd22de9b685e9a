//! How a read-write lock is kept, beside what holds for every lock: that is tried with a writer.

use quorate_testkit::Resp;

use super::denied::without;
use super::ear::Ear;
use super::lab::{LOCK, Lab, MARK, MARKER, QUEUE, RECORD, text};
use super::operation::{A, B, C, acquire, extend, inspect, queue, release, transfer, whether, withdraw};
use super::said::Said;

super::scenarios! {
    Both:
        many_read_and_nobody_writes,
        one_writes_and_nobody_reads,
        a_writer_reads_and_goes_on_reading,
        a_reader_does_not_write,
        whoever_looks_is_told_the_same_one_everywhere,
        an_owner_is_looked_for_in_each_part,
        a_reader_that_leaves_takes_its_time_with_it,
        a_reader_enters_again_and_leaves_as_often,
        a_reader_is_transferred_beside_others,
        what_comes_after_a_later_round_of_the_same_reader_is_stale,
        what_is_no_read_write_lock_is_left_alone,
        what_is_refused_to_a_reader_leaves_the_others_as_they_are,
        what_cannot_be_released_is_held;
    Guarded:
        the_record_is_about_all_readers,
        the_record_is_the_writers_while_it_writes,
        an_undone_grant_leaves_the_record_to_the_others,
        what_is_undone_behind_a_higher_token_is_released,
        what_cannot_be_noted_of_those_who_stay_is_no_obstacle,
        a_release_beside_others_leaves_a_record_that_is_not_theirs,
        what_a_writer_takes_back_is_for_it_alone,
        what_comes_to_nothing_leaves_nobody_forgotten,
        the_record_of_another_kind_is_respected,
        a_reader_that_is_gone_leaves_the_record_to_others,
        a_broken_reader_is_not_let_in_again,
        without_trust_in_clocks_a_writer_waits_for_the_readers_record,
        who_has_no_guards_leaves_the_record_alone;
    Exact:
        each_lease_ends_by_itself,
        a_lease_lives_to_its_last_microsecond,
        the_longest_delay_counts_until_its_owner_leaves,
        those_who_are_over_go_with_the_next_reader,
        the_one_that_is_kept_longest_stays,
        a_writer_that_is_over_goes_with_the_next_reader,
        readers_wait_for_the_writers_own_lease,
        a_part_of_a_millisecond_is_a_whole_one_for_each,
        who_is_over_does_not_matter_to_who_is_called,
        readers_that_are_over_go_with_the_next_writer,
        no_more_than_a_thousand_read;
}

pub(super) const RA: &str = "r:00000000-0000-0000-0000-00000000000a:1";
pub(super) const RB: &str = "r:00000000-0000-0000-0000-00000000000b:1";
pub(super) const RC: &str = "r:00000000-0000-0000-0000-00000000000c:77";

/// The fields of the lock, in order.
pub(super) fn fields(lab: &Lab) -> Vec<String> {
    let Resp::List(words) = lab.command(&["HGETALL", LOCK]) else { panic!("it is no hash") };
    let mut fields: Vec<String> = words.iter().step_by(2).map(text).collect();
    fields.sort();
    fields
}

/// A token that is above those of all grants.
fn later(lab: &Lab) -> u64 {
    lab.now() + 1_000_000
}

fn writer(owner: &str) -> String {
    format!("w:{owner}")
}

/// What the record says: the token, the round, for how long and until when others wait, the owner, and who wrote last.
fn record(lab: &Lab) -> (u64, u64, u64, u64, String, u64) {
    let text = lab.record().unwrap();
    let (grant, wrote) = text.split_once('|').unwrap();
    let words: Vec<&str> = grant.splitn(5, ':').collect();
    let number = |word: &str| word.parse().unwrap();
    (
        number(words[0]),
        number(words[1]),
        number(words[2]),
        number(words[3]),
        words[4].to_owned(),
        number(wrote),
    )
}

fn many_read_and_nobody_writes(lab: &Lab) {
    assert!(lab.run(acquire(RB)).is_grant());
    assert!(lab.run(queue(RA)).is_grant());
    assert!(lab.run(acquire(RC)).is_grant());
    assert_eq!(fields(lab), [RA, RB, RC]);
    for ask in [acquire(C), queue(C), extend(C), inspect()] {
        let held = lab.run(ask).held();
        assert_eq!((&*held.owner, &*held.count), (A, "1"));
    }
    for owner in [RC, RA, RB] {
        assert_eq!(lab.run(acquire("x:1")).held().owner, if owner == RB { B } else { A });
        assert_eq!(lab.run(release(owner).round(2)), Said::Granted);
    }
    assert!(lab.locks().is_empty());
    assert!(lab.run(acquire(C)).is_grant());
}

fn one_writes_and_nobody_reads(lab: &Lab) {
    assert!(lab.run(acquire(A)).is_grant());
    for ask in [acquire(RB), queue(RB), extend(RB), acquire(B), inspect(), release(RB), transfer(RB, RC)] {
        assert_eq!(lab.run(ask).held().owner, A);
    }
    assert_eq!(fields(lab), [writer(A)]);
    assert_eq!(lab.run(release(A).round(2)), Said::Granted);
    assert!(lab.run(acquire(RB)).is_grant());
}

fn a_writer_reads_and_goes_on_reading(lab: &Lab) {
    lab.run(acquire(A));
    let token = lab.run(acquire(RA).round(2));
    assert!(token.is_grant());
    assert_eq!(fields(lab), [RA.to_owned(), writer(A)]);
    for ask in [acquire(RB), acquire(B), inspect()] {
        assert_eq!(lab.run(ask).held().owner, A);
    }
    assert_eq!(lab.run(extend(A).round(3)), Said::Granted);
    assert_eq!(lab.run(release(A).round(4)), Said::Granted);
    assert_eq!(fields(lab), [RA]);
    assert!(lab.run(acquire(RB)).is_grant());
    assert_eq!(lab.run(acquire(A).round(5)).held().owner, A, "it reads");
    lab.run(release(RA).round(6));
    lab.run(release(RB).round(6));
    assert!(lab.locks().is_empty());
    // The other way round it still writes.
    lab.run(acquire(B).round(9));
    lab.run(acquire(RB).round(9));
    assert_eq!(lab.run(release(RB).round(10)), Said::Granted);
    assert_eq!(fields(lab), [writer(B)]);
    assert_eq!(lab.run(acquire(RA).round(9)).held().owner, B);
}

fn a_reader_does_not_write(lab: &Lab) {
    lab.run(acquire(RA));
    for ask in [acquire(A), queue(A), extend(A)] {
        assert_eq!(lab.run(ask.round(2)).held().owner, A);
    }
    assert_eq!(fields(lab), [RA]);
}

fn whoever_looks_is_told_the_same_one_everywhere(lab: &Lab) {
    lab.run(acquire(RB).ttl(60_000).kept(61_000));
    lab.run(acquire(RA).ttl(5000));
    lab.run(acquire(RC).ttl(30_000).kept(31_000));
    lab.assert_lives(LOCK, 60_000);
    for ask in [inspect(), acquire(B)] {
        let held = lab.run(ask).held();
        assert_eq!(held.owner, A);
        assert!((50_000..=60_000).contains(&held.ttl), "the longest: {}", held.ttl);
    }
    for owner in [RA, RB, RC] {
        lab.run(release(owner).round(2));
    }
    lab.run(acquire(B).count(2));
    lab.run(acquire(RB).round(2));
    assert_eq!(lab.run(inspect()).held().count, "2", "the writer first");
    lab.command(&["DEL", LOCK, RECORD]);
    for fields in [[RC, &writer(C)], [&writer(C), RC]] {
        let (one, other) = (later(lab).to_string(), (later(lab) + 1).to_string());
        let hold = |field: &str| format!("{},1,{one},{other},", if field == RC { "1" } else { "2" });
        let words = fields.map(|field| [field.to_owned(), hold(field)]).concat();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        lab.command(&[&["HSET", LOCK][..], &words].concat());
        assert_eq!(lab.run(inspect()).held().count, "2", "in whichever order");
        if lab.has_guards() {
            assert_eq!(lab.run(extend(RC).round(2)), Said::Granted);
            assert_eq!(record(lab).4, writer(C), "the record is about the writer, too");
        }
        lab.command(&["DEL", LOCK, RECORD]);
    }
}

fn an_owner_is_looked_for_in_each_part(lab: &Lab) {
    assert_eq!(lab.run(whether(RA)), Said::Absent);
    let token = lab.run(acquire(RA).ttl(5000).round(7));
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    let held = lab.run(whether(RA)).held();
    assert_eq!((&*held.owner, &*held.count), (A, "1"));
    assert!((1..=5000).contains(&held.ttl), "its own: {}", held.ttl);
    for (ask, _) in [(whether(RA), ()), (inspect(), ())] {
        let version = lab.run(ask).held().watch.map(|(version, _)| version);
        assert_eq!(version, lab.has_guards().then(|| format!("{}:7", token.clone().token())), "its own");
    }
    for other in [A, C] {
        let said = lab.run(whether(other));
        assert!(!matches!(said, Said::Held(held) if held.count != "0"), "it does not write");
    }
    assert!(lab.run(whether(RB)).held().ttl > 5000);
}

fn a_reader_that_leaves_takes_its_time_with_it(lab: &Lab) {
    lab.run(acquire(RA).ttl(60_000).kept(60_000));
    lab.run(acquire(RB).ttl(5000));
    lab.assert_lives(LOCK, 60_000);
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    lab.assert_lives(LOCK, 5000);
    assert_eq!(lab.run(extend(RB).token(later(lab)).ttl(9000).round(2)), Said::Granted);
    lab.assert_lives(LOCK, 9000);
    assert!(lab.run(acquire(RC).ttl(20)).is_grant());
    lab.assert_lives(LOCK, 9000);
}

fn a_reader_enters_again_and_leaves_as_often(lab: &Lab) {
    let (one, _) = (lab.run(acquire(RA)), lab.run(acquire(RB)));
    let token = if lab.has_guards() { one.token() } else { 0 };
    assert_eq!(lab.run(extend(RA).count(2).token(token).ttl(9000).round(2)), Said::Granted);
    assert_eq!((lab.count(RA).unwrap(), lab.count(RB).unwrap()), ("2".to_owned(), "1".to_owned()));
    assert_eq!(lab.run(release(RA).count(1).round(3)), Said::Granted);
    assert_eq!(lab.count(RA).unwrap(), "1");
    lab.assert_lives(LOCK, 9000);
    assert_eq!(lab.run(release(RA).round(2)), Said::Stale("3".to_owned()));
    if lab.has_guards() {
        assert_eq!(lab.run(extend(RA).token(token - 1).round(4)), Said::Stale(token.to_string()));
    }
    assert_eq!(lab.run(release(RA).round(4)), Said::Granted);
    assert_eq!(fields(lab), [RB]);
}

fn a_reader_is_transferred_beside_others(lab: &Lab) {
    lab.run(acquire(RA).ttl(60_000).kept(60_000));
    let held = lab.run(acquire(RB).ttl(9000).kept(9000));
    let given = lab.run(transfer(RB, RC).ttl(5000).kept(5000));
    assert!(given.is_grant());
    assert_eq!(fields(lab), [RA, RC]);
    if lab.has_guards() {
        assert!(given.token() > held.token());
    }
    let left = lab.run(whether(RC)).held().ttl;
    assert!((5001..=9000).contains(&left), "it lives as long as before: {left}");
    assert!(lab.run(transfer(RB, RC).same_token()).is_grant(), "once more");
    assert_eq!(lab.run(transfer("r:x:1", "r:y:1")), Said::Absent);
    lab.run(release(RA).round(2));
    lab.run(release(RC).round(2));
    assert!(lab.locks().is_empty());
}

fn what_comes_after_a_later_round_of_the_same_reader_is_stale(lab: &Lab) {
    lab.run(acquire(RA).round(5));
    lab.run(acquire(RB).round(1));
    for ask in [acquire(RA), extend(RA), release(RA)] {
        assert_eq!(lab.run(ask.round(4)), Said::Stale("5".to_owned()));
    }
    assert!(lab.run(extend(RB).token(later(lab)).round(4)).is_grant());
    assert_eq!(lab.run(withdraw(RA).round(5).place(RA, lab.now(), 0)), Said::Granted);
}

fn what_is_no_read_write_lock_is_left_alone(lab: &Lab) {
    let hold = "1,1,9000000000000000,9000000000000000,";
    let others: [&[&str]; 6] = [
        &["HSET", LOCK, A, "1", "round", "1"],
        &["HSET", LOCK, "r:x", "1"],
        &["HSET", LOCK, "x:x", hold],
        &["HSET", LOCK, "r:x", hold, "y", hold],
        &["SET", LOCK, "x"],
        &["ZADD", LOCK, "1", "x"],
    ];
    for other in others {
        lab.command(other);
        for owner in [RA, A] {
            for ask in
                [acquire(owner), queue(owner), extend(owner), release(owner), transfer(owner, B), inspect()]
            {
                assert_eq!(lab.run(ask.clone()).refused(), "WRONGTYPE", "{other:?} {ask:?}");
            }
        }
        assert_eq!(lab.locks(), [LOCK]);
        lab.command(&["DEL", LOCK]);
    }
}

fn what_is_refused_to_a_reader_leaves_the_others_as_they_are(lab: &Lab) {
    let guards: &[&str] = if lab.has_guards() { &["set", "get"] } else { &[] };
    for denied in ["hlen", "hgetall", "time", "hset", "pexpire"].iter().chain(guards) {
        without(lab, denied, &acquire(RA));
        assert!(lab.locks().is_empty(), "without {denied}");
    }
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    let before = (lab.command(&["HGETALL", LOCK]), lab.record());
    for denied in ["hlen", "hgetall", "time", "hset", "pexpire"].iter().chain(guards) {
        without(lab, denied, &acquire(RA));
        assert_eq!((lab.command(&["HGETALL", LOCK]), lab.record()), before, "without {denied}");
        lab.assert_lives(LOCK, 60_000);
    }
    let Said::Refused(_) = lab.run(acquire(RA).ttl(9_223_372_036_854_775_000)) else {
        panic!("no key lives for so long");
    };
    assert_eq!(lab.command(&["HGETALL", LOCK]), before.0);
    for denied in ["hset", "hgetall"] {
        without(lab, denied, &transfer(RB, RC));
        assert_eq!(lab.command(&["HGETALL", LOCK]), before.0, "without {denied}");
    }
    lab.run(extend(RB).token(later(lab)).round(2));
    let before = lab.command(&["HGETALL", LOCK]);
    without(lab, "hset", &extend(RB).token(later(lab)).round(3));
    assert_eq!(lab.command(&["HGETALL", LOCK]), before);
}

fn what_cannot_be_released_is_held(lab: &Lab) {
    lab.run(acquire(RA));
    without(lab, "del", &release(RA).round(2));
    without(lab, "hset", &release(RA).count(1).round(2));
    without(lab, "hgetall", &release(RA).round(2));
    lab.run(acquire(RB));
    without(lab, "hdel", &release(RA).round(2));
    assert_eq!(fields(lab), [RA, RB]);
    if lab.has_guards() {
        assert!(lab.record().unwrap().contains("r:"), "not released");
    }
}

fn the_record_is_about_all_readers(lab: &Lab) {
    let wrote = lab.run(acquire(C)).token();
    lab.run(release(C).round(2));
    let first = lab.run(acquire(RA).ttl(60_000).kept(61_000)).token();
    let until = record(lab).3;
    assert_eq!(record(lab), (first, 1, 61_000, until, RA.to_owned(), wrote));
    let second = lab.run(acquire(RB).round(7).ttl(5000).kept(5000)).token();
    assert!(second > first && first > wrote);
    let about = record(lab);
    assert_eq!(about, (second, 2, 61_000, until, RA.to_owned(), wrote), "the one that is kept longest");
    assert_eq!(lab.run(extend(RA).token(first).ttl(9000).kept(9000).round(8)), Said::Granted);
    assert_eq!(record(lab).0, second, "the highest token");
    assert_eq!(lab.run(release(RA).round(9)), Said::Granted);
    let about = record(lab);
    assert_eq!((about.0, about.1, about.2, &*about.4, about.5), (second, 4, 61_000, RB, first));
    assert_eq!(lab.run(extend(RA).token(first).round(10)), Said::Absent, "it left");
    assert_eq!(lab.run(extend(RA).token(first + 1).round(10)), Said::Granted);
    assert_eq!(lab.run(release(RA).round(11).undoes()), Said::Granted);
    assert!(about.3 <= lab.now() + 5_000_000 && about.3 > lab.began() + 4_000_000);
    assert_eq!(lab.run(release(RB).round(9)), Said::Granted);
    assert_eq!(lab.record(), Some(second.to_string()));
    let next = lab.run(acquire(RA).round(10)).token();
    assert_eq!(record(lab).5, second, "so far it goes");
    assert!(next > second);
}

fn the_record_is_the_writers_while_it_writes(lab: &Lab) {
    let wrote = lab.run(acquire(A)).token();
    assert_eq!(record(lab).5, wrote);
    let read = lab.run(acquire(RA).round(2).ttl(60_000).kept(60_000)).token();
    let about = record(lab);
    assert_eq!((about.0, &*about.4, about.5), (read, &*writer(A), wrote));
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(acquire(RB)).held().owner, A, "it may write still");
    assert_eq!(lab.run(inspect()).held().owner, A);
    assert!(lab.run(acquire(RA).round(3)).is_grant());
    assert_eq!(fields(lab), [RA.to_owned(), writer(A)], "it writes, too");
    assert_eq!(lab.run(acquire(RB)).held().owner, A);
    assert_eq!(lab.run(extend(A).token(wrote).round(4)), Said::Granted);
    assert_eq!(lab.run(release(RA).round(5)), Said::Granted);
    assert_eq!(lab.run(acquire(RB)).held().owner, A);
    assert_eq!(lab.run(release(A).round(6)), Said::Granted);
    assert!(lab.run(acquire(RB)).is_grant());
}

fn an_undone_grant_leaves_the_record_to_the_others(lab: &Lab) {
    lab.run(acquire(RA).undoes());
    let alone = lab.run(release(RA).round(2).undoes());
    assert_eq!((alone, lab.record()), (Said::Granted, None), "as before");
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    let before = record(lab);
    let token = lab.run(acquire(RA)).token();
    assert_eq!(lab.run(withdraw(RA).round(2).place(RA, lab.now(), 0)), Said::Granted);
    let after = record(lab);
    assert_eq!((after.0, after.3, &after.4, after.5), (token, before.3, &before.4, before.5));
    lab.command(&["DEL", LOCK]);
    let back = later(lab);
    assert_eq!(lab.run(extend(RB).token(back).round(2)), Said::Granted);
    lab.command(&["HDEL", LOCK, "r:forgotten"]);
    assert_eq!(lab.run(release(RB).round(3).undoes()), Said::Granted);
    assert_eq!(lab.record(), Some(back.to_string()), "what was healed was nothing before");
    lab.command(&["DEL", LOCK, RECORD]);
    lab.run(acquire(RB));
    // What was before the first is there again when it is undone as the last.
    lab.run(release(RB).round(2));
    let released = lab.record();
    lab.run(acquire(RC));
    lab.run(extend(RC).round(2));
    assert_eq!(lab.run(release(RC).round(3).undoes()), Said::Granted);
    assert_eq!(lab.record(), released);
}

fn what_is_undone_behind_a_higher_token_is_released(lab: &Lab) {
    lab.run(acquire(RA));
    let higher = lab.run(acquire(RB)).token();
    lab.run(release(RB).round(2));
    assert_eq!(lab.run(release(RA).round(2).undoes()), Said::Granted);
    assert_eq!(lab.record(), Some(higher.to_string()));
}

fn what_cannot_be_noted_of_those_who_stay_is_no_obstacle(lab: &Lab) {
    lab.run(acquire(RA));
    lab.run(acquire(RB));
    for denied in ["get", "set"] {
        lab.run(acquire(RC).round(1));
        lab.command(&["ACL", "SETUSER", "default", &format!("-{denied}")]);
        let said = lab.run(release(RC).round(2));
        lab.command(&["ACL", "SETUSER", "default", &format!("+{denied}")]);
        assert_eq!(said, Said::Granted);
        assert_eq!(fields(lab), [RA, RB]);
    }
    lab.command(&["ACL", "SETUSER", "default", "-pexpire"]);
    assert_eq!(lab.run(release(RB).round(2)), Said::Granted, "it lives for longer");
    assert_eq!(fields(lab), [RA]);
}

fn a_release_beside_others_leaves_a_record_that_is_not_theirs(lab: &Lab) {
    lab.run(acquire(RA).ttl(8000).kept(9000).round(3));
    for other in [None, Some("7".to_owned())] {
        lab.run(acquire(RB));
        lab.command(&["DEL", RECORD]);
        if let Some(text) = &other {
            lab.command(&["SET", RECORD, text]);
        }
        assert_eq!(lab.run(release(RB).round(2)), Said::Granted);
        assert_eq!(lab.record(), other, "who reads makes it again");
    }
    assert_eq!(lab.run(extend(RA).token(later(lab)).round(4)), Said::Granted);
    assert_eq!((&*record(lab).4, record(lab).5), (RA, 7));
    lab.command(&["SET", RECORD, "x"]);
    assert_eq!(lab.run(extend(RA).token(later(lab)).round(5)).refused(), "WRONGTYPE");
}

fn what_a_writer_takes_back_is_for_it_alone(lab: &Lab) {
    lab.run(acquire(RA));
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(C).token(later(lab))), Said::Granted);
    assert_eq!(fields(lab), [writer(C)]);
}

fn what_comes_to_nothing_leaves_nobody_forgotten(lab: &Lab) {
    lab.run(acquire(RA));
    lab.command(&["DEL", LOCK]);
    without(lab, "set", &acquire(RB));
    assert!(lab.locks().is_empty());
    assert_eq!(lab.run(acquire(C)).held().owner, A, "though its key is gone");
}

fn the_record_of_another_kind_is_respected(lab: &Lab) {
    lab.command(&["SET", RECORD, "55:1:9000:9000000000000000:x:1"]);
    for owner in [A, RA] {
        let held = lab.run(acquire(owner)).held();
        assert_eq!((&*held.owner, &*held.count), ("x:1", "0"));
    }
    assert_eq!(lab.run(release(A).breaks(55)), Said::Absent);
    assert_eq!(lab.record().unwrap(), "55:1:9000:9000000000000000:x:1", "it has the same token");
}

fn a_reader_that_is_gone_leaves_the_record_to_others(lab: &Lab) {
    lab.run(acquire(RA));
    let before = lab.record();
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(release(RA).round(2)), Said::Absent);
    assert_eq!(lab.record(), before, "others may read");
    assert_eq!(lab.run(acquire(B)).held().owner, A);
    assert!(lab.run(acquire(RB)).is_grant());
    lab.command(&["DEL", LOCK, RECORD]);
    lab.run(acquire(A));
    let (token, round) = (record(lab).0, record(lab).1);
    lab.command(&["DEL", LOCK]);
    assert_eq!(lab.run(release(A).round(round - 1)), Said::Absent);
    assert_ne!(lab.record(), Some(token.to_string()), "it was another round");
    assert_eq!(lab.run(release(B).round(round)), Said::Absent);
    assert_ne!(lab.record(), Some(token.to_string()), "it was another's");
    assert_eq!(lab.run(release(A).round(round)), Said::Absent);
    assert_eq!(lab.record(), Some(token.to_string()), "a writer is alone");
}

fn a_broken_reader_is_not_let_in_again(lab: &Lab) {
    let first = lab.run(acquire(RA)).token();
    lab.pass(1000);
    let second = lab.run(acquire(RB).round(4)).token();
    let broken = first + (second - first) / 2;
    let until = record(lab).3;
    assert_eq!(lab.run(release(RC).breaks(broken)), Said::Absent);
    assert_eq!(record(lab), (second, 2, 6000, until, record(lab).4, broken));
    assert_eq!(lab.run(extend(RC).token(broken)), Said::Absent);
    assert_eq!(lab.run(release(RC).breaks(first)), Said::Absent);
    assert_eq!(record(lab).5, broken, "it never falls");
    assert_eq!(lab.run(release(RC).breaks(second + 9)), Said::Absent);
    assert_eq!((record(lab).0, record(lab).5), (second + 9, second + 9));
    assert_eq!(lab.run(extend(RC).token(second + 10)), Said::Granted);
    lab.command(&["DEL", LOCK, RECORD]);
    assert_eq!(lab.run(release(RC).breaks(first)), Said::Absent);
    assert_eq!(lab.record(), Some(first.to_string()), "there was none");
    assert_eq!(lab.run(release(RC).breaks(first - 1)), Said::Absent);
    assert_eq!(lab.record(), Some(first.to_string()));
    assert_eq!(lab.run(extend(RC).token(first)), Said::Absent);
    assert_eq!(lab.run(extend(RC).token(first + 1)), Said::Granted);
}

fn without_trust_in_clocks_a_writer_waits_for_the_readers_record(lab: &Lab) {
    lab.run(acquire(RA).kept(90_000));
    let token = lab.run(acquire(RB).round(3).kept(6000)).token();
    let held = lab.run(acquire(C).watched(&[])).held();
    assert_eq!(held.watch, Some((format!("{token}:2"), 90_000)));
    lab.command(&["DEL", LOCK]);
    assert!(lab.run(acquire(RC).round(5).watched(&[])).is_grant(), "readers do not wait for readers");
    lab.run(release(RC).round(6));
    let held = lab.run(acquire(C).watched(&[])).held();
    assert_eq!(held.count, "1", "for those who may read still: {held:?}");
    lab.command(&["DEL", LOCK]);
    let held = lab.run(acquire(C).watched(&[])).held();
    assert_eq!(held.count, "0");
    let version = held.watch.unwrap().0;
    assert!(lab.run(acquire(C).watched(&[&version])).is_grant());
}

fn who_has_no_guards_leaves_the_record_alone(lab: &Lab) {
    lab.set_head(["", "", ""]);
    lab.run(acquire(RA));
    lab.run(acquire(RB));
    assert_eq!(lab.record(), None);
    assert!(lab.field(RA).unwrap().ends_with(','), "no token");
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    assert_eq!(lab.run(release(RB).round(2)), Said::Granted);
    lab.run(acquire(RA));
    lab.set_head([MARKER, MARK, "0"]);
    assert_eq!(lab.run(release(RA).round(2)), Said::Granted);
    assert_eq!(lab.record(), None, "it had no token");
    let token = lab.run(acquire(RA)).token();
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(extend(RA).round(2)), Said::Granted);
    assert_eq!(lab.run(release(RA).round(3)), Said::Granted);
    assert_eq!(record(lab).0, token);
    assert_eq!(lab.run(release(RA).round(3)), Said::Absent);
    assert_eq!(record(lab).0, token);
    lab.command(&["SET", RECORD, "x"]);
    assert_eq!(lab.run(acquire(RA).round(4)), Said::Granted, "it is not looked at");
    lab.command(&["DEL", LOCK, RECORD]);
    // Whoever extends it without guards leaves the token with the lock.
    lab.set_head([MARKER, MARK, "0"]);
    let token = lab.run(acquire(RA).round(5)).token();
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(extend(RA).round(6)), Said::Granted);
    lab.set_head([MARKER, MARK, "0"]);
    assert_eq!(lab.run(release(RA).round(7)), Said::Granted);
    assert_eq!(lab.record(), Some(token.to_string()));
}

fn each_lease_ends_by_itself(lab: &Lab) {
    lab.run(acquire(RA).ttl(5000).kept(6000));
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    lab.pass(5_000_000);
    assert_eq!(lab.run(whether(RA)).held().count, "0", "as the record has it");
    assert_eq!(lab.run(inspect()).held().owner, B);
    let (token, round) = (record(lab).0, 2);
    assert_eq!(lab.run(release(RB).round(round)), Said::Granted);
    assert!(lab.locks().is_empty());
    let held = lab.run(acquire(C)).held();
    assert_eq!((&*held.owner, &*held.count, held.ttl), (A, "0", 1000), "it was not released");
    assert_eq!((record(lab).0, &*record(lab).4), (token, RA));
    assert!(lab.run(acquire(RC)).is_grant(), "to read");
    lab.run(release(RC).round(2));
    lab.pass(1_000_001);
    assert!(lab.run(acquire(C)).is_grant());
}

fn a_lease_lives_to_its_last_microsecond(lab: &Lab) {
    lab.run(acquire(RA).ttl(5000).kept(5000));
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    lab.pass(4_999_999);
    assert_eq!(lab.run(whether(RA)).held().ttl, 1);
    lab.pass(1);
    assert!(lab.run(whether(RA)).held().owner != A);
    assert_eq!(
        lab.run(extend(RA).token(lab.began()).ttl(5000).kept(5000).round(2)),
        Said::Granted,
        "it is its own"
    );
    assert_eq!(lab.run(whether(RA)).held().ttl, 5000);
}

fn the_longest_delay_counts_until_its_owner_leaves(lab: &Lab) {
    lab.run(acquire(RA).ttl(5000).kept(60_000));
    lab.pass(5_001_000);
    assert!(lab.run(acquire(RB).ttl(5000).kept(5000)).is_grant());
    assert_eq!(fields(lab), [RB, "r:forgotten"]);
    assert_eq!((record(lab).2, record(lab).3), (60_000, lab.began() + 60_000_000));
    lab.assert_lives(LOCK, 60_000);
    assert_eq!(lab.run(acquire(C)).held().ttl, 54_999);
    assert_eq!(lab.run(release(RB).round(2)), Said::Granted);
    let held = lab.run(acquire(C)).held();
    assert_eq!((&*held.owner, &*held.count, held.ttl), ("forgotten", "1", 54_999));
    lab.pass(55_000_001);
    assert!(lab.run(acquire(C)).is_grant());
    lab.run(release(C).round(2));
    lab.run(acquire(RA).ttl(5000).kept(5001));
    lab.pass(5_001_000);
    assert!(lab.run(acquire(RB).ttl(5000).kept(5000)).is_grant());
    assert_eq!(fields(lab), [RB], "nobody is kept for longer");
}

fn those_who_are_over_go_with_the_next_reader(lab: &Lab) {
    lab.run(acquire(RA).ttl(5000).kept(90_000));
    lab.run(acquire(RB).ttl(5000).kept(6000));
    lab.run(acquire("r:x:1").ttl(60_000).kept(60_000));
    lab.pass(5_000_000);
    lab.run(extend("r:x:1").ttl(60_000).kept(60_000).round(2));
    assert_eq!(fields(lab), [RA, RB, "r:x:1"], "an extend is about its own");
    assert!(lab.run(transfer("r:x:1", "r:y:1")).is_grant());
    assert_eq!(fields(lab), [RA, RB, "r:y:1"], "and so is a transfer");
    assert!(lab.run(acquire(RC)).is_grant());
    assert_eq!(fields(lab), [RA, RC, "r:y:1"], "but for the one that is kept longest");
    assert_eq!(record(lab).3, lab.began() + 90_000_000);
    lab.run(release(RC).round(2));
    lab.run(release("r:y:1").round(3));
    assert_eq!(lab.run(acquire(C)).held().ttl, 85_000);
}

fn the_one_that_is_kept_longest_stays(lab: &Lab) {
    let reader = |number: u64| format!("r:{number}:1");
    lab.run(acquire(RA).ttl(60_000).kept(60_000));
    for (number, kept) in [(1, 6000), (2, 7000), (3, 8000), (4, 7500)] {
        lab.run(acquire(&reader(number)).ttl(5000).kept(kept));
    }
    lab.pass(5_000_000);
    lab.run(acquire(RB).ttl(50_000).kept(50_000));
    let left = fields(lab);
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.contains(&reader(3)), "{left:?}");
}

fn a_writer_that_is_over_goes_with_the_next_reader(lab: &Lab) {
    lab.run(acquire(A).ttl(5000).kept(6000));
    lab.run(acquire(RA).round(2).ttl(60_000).kept(60_000));
    lab.pass(5_000_000);
    assert_eq!(
        lab.run(extend(A).heals_not().token(later(lab)).round(3)),
        Said::Granted,
        "nobody came after it"
    );
    lab.pass(5_000_000);
    assert_eq!(lab.run(acquire(RB)).held().count, "0", "it was not released");
    assert_eq!(lab.run(release(RA).round(4)), Said::Granted);
    assert!(lab.locks().is_empty());
    lab.pass(60_000_000);
    lab.run(acquire(A).round(5).ttl(5000).kept(5000));
    lab.run(acquire(RA).round(6).ttl(9000).kept(9000));
    lab.pass(5_000_000);
    lab.run(acquire(RA).round(7).ttl(9000).kept(9000));
    assert_eq!(fields(lab), [RA.to_owned(), writer(A)], "its own");
    lab.command(&["DEL", LOCK, RECORD]);
    lab.set_head(["", "", ""]);
    lab.run(acquire(A).round(8).ttl(5000).kept(90_000));
    lab.pass(5_000_000);
    assert!(lab.run(acquire(RB)).is_grant());
    assert_eq!(fields(lab), [RB], "however long it is kept by those who have guards");
}

/// Whoever writes and reads has two leases. That to read is not in the way of readers.
fn readers_wait_for_the_writers_own_lease(lab: &Lab) {
    let held = || lab.run(acquire(RB)).held();
    lab.run(acquire(A).ttl(5000).kept(6000));
    lab.run(acquire(RA).round(2).ttl(60_000).kept(60_000));
    assert_eq!((&*held().count, held().ttl), ("1", 5000));
    assert_eq!(lab.run(acquire(C)).held().ttl, 60_000, "a writer waits for all");
    lab.pass(5_000_000);
    assert_eq!(lab.run(extend(RA).round(3).ttl(60_000).kept(60_000).heals_not()), Said::Granted);
    assert_eq!((&*held().count, held().ttl), ("0", 1000), "it was not released");
    lab.pass(1_000_001);
    lab.run(extend(RA).round(4).ttl(60_000).kept(60_000).heals_not());
    assert_eq!(lab.run(acquire(C)).held().ttl, 60_000);
    let before = lab.record().unwrap();
    assert!(lab.run(acquire(RB)).is_grant());
    assert_eq!(fields(lab), [RA, RB]);
    lab.command(&["DEL", LOCK]);
    lab.command(&["SET", RECORD, &before]);
    assert_eq!(held().ttl, 60_000, "nothing is known but the record");
    without(lab, "hgetall", &acquire(RB));
}

fn a_part_of_a_millisecond_is_a_whole_one_for_each(lab: &Lab) {
    for owner in [RA, A] {
        lab.command(&["DEL", LOCK, RECORD]);
        lab.run(acquire(owner).ttl(60_000).kept(61_000));
        lab.pass(1);
        assert_eq!(lab.run(extend(owner).round(2)), Said::Granted);
        assert_eq!(lab.command(&["PTTL", LOCK]), Resp::Int(60_000));
        assert_eq!((record(lab).2, record(lab).3), (61_000, lab.now() - 1 + 61_000_000));
    }
}

/// Who waits is called by those who are not over.
fn who_is_over_does_not_matter_to_who_is_called(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    let stands = || lab.run(queue(C).place(C, lab.now(), 0)).held();
    lab.run(acquire(A).ttl(5000).kept(5000));
    lab.run(acquire(RA).round(2).ttl(60_000).kept(60_000));
    stands();
    lab.pass(5_000_000);
    assert_eq!(lab.run(release(RA).round(3)), Said::Granted);
    assert_eq!(ear.heard(), ["77"], "the writer is over");
    lab.command(&["DEL", LOCK, RECORD, QUEUE]);
    lab.run(acquire(A).round(4).ttl(5000).kept(5000));
    lab.run(acquire(RA).round(5).ttl(60_000).kept(60_000));
    lab.pass(5_000_000);
    assert_eq!(lab.run(queue(RC).place(RC, lab.now(), 0)).held().ahead, Some(0), "it was not released");
    lab.run(release("x:1"));
    assert_eq!(ear.heard(), ["77"], "whoever leaves calls a reader all the same");
    lab.command(&["DEL", LOCK, RECORD]);
    lab.run(acquire(RA).ttl(60_000).kept(60_000));
    lab.run(acquire(RB).ttl(60_000).kept(60_000));
    lab.run(acquire("r:x:1").ttl(5000).kept(5000));
    lab.pass(5_000_000);
    stands();
    lab.run(release(RB).round(2));
    assert!(ear.heard().is_empty(), "one still reads");
    lab.run(release(RA).round(4));
    assert_eq!(ear.heard(), ["77"]);
}

fn readers_that_are_over_go_with_the_next_writer(lab: &Lab) {
    lab.run(acquire(RA).ttl(5000).kept(5000));
    lab.run(acquire(RB).ttl(5000).kept(5000));
    lab.run(acquire(RC).ttl(6000).kept(6000));
    lab.pass(5_000_000);
    lab.run(release(RC).round(2));
    assert!(lab.locks().is_empty(), "none of them lives");
    for owner in [RA, RB] {
        lab.command(&["HSET", LOCK, owner, "1,1,1,1,"]);
    }
    lab.pass(1);
    assert!(lab.run(acquire(C)).is_grant());
    assert_eq!(fields(lab), [writer(C)]);
    lab.assert_lives(LOCK, 10_000);
}

fn no_more_than_a_thousand_read(lab: &Lab) {
    let end = lab.now() + 60_000_000;
    let put = |names: std::ops::Range<u64>, end: u64| {
        let hold = format!("1,1,{end},{end},");
        let words = names.flat_map(|number| [format!("r:{number}:1"), hold.clone()]).collect::<Vec<_>>();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        lab.command(&[&["HSET", LOCK][..], &words].concat());
    };
    put(0..999, end);
    put(999..1000, 1);
    assert!(lab.run(acquire(RA)).is_grant(), "one of them is over");
    assert_eq!(lab.run(acquire(RB)).held().owner, A, "there is no room");
    assert_eq!(lab.run(extend(RA).round(2)), Said::Granted);
    lab.run(release(RA).round(3));
    assert!(lab.run(acquire(RB)).is_grant());
    put(2000..2002, 1);
    assert_eq!(lab.run(extend(RB).round(2)), Said::Granted);
    put(2002..2003, 1);
    assert_eq!(lab.run(extend(RB).round(3)).refused(), "WRONGTYPE", "so many are none of ours");
}
