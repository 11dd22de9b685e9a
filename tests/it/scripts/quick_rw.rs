//! The usual cases of readers and writers: see `quick`.

use std::sync::LazyLock;

use quorate::seam::Script;
use quorate_testkit::Resp;

use super::lab::Lab;
use super::quick::{
    FREE_FOR, HELD_FOR, assert_entry, call, done, field, fields, number, plant_as, script, some,
};

super::scenarios! {
    &crate::scripts::quick_rw::SCRIPT;
    Real:
        a_reader_comes_extends_and_leaves,
        readers_come_and_leave_beside_each_other,
        a_reader_has_a_label,
        a_reader_may_wait_without_a_place,
        a_writer_comes_extends_and_leaves,
        a_writer_comes_where_all_readers_have_left,
        whoever_writes_and_reads_leaves_one_after_the_other;
    Exact:
        the_latest_end_of_readers_is_noted;
}

static SCRIPT: LazyLock<Script> = LazyLock::new(|| script("rw"));

/// What was held before. Every seventh token, counted from 1, is that of a sweep.
fn plant(lab: &Lab<'_>, more: &[&str]) {
    plant_as(lab, "rw", "98", more);
}

fn a_reader_comes_extends_and_leaves(lab: &Lab<'_>) {
    plant(lab, &["last_read", "5"]);
    let token = number(&call(lab, &["acquire read a:1 7 T 10000 -"])[1]);
    assert_entry(lab, "r:a:1", &format!("{token} 7 1"), 10_000_000);
    assert_eq!(fields(lab, ["fence", "readers", "o:r", "o:r:a:1"]), [some(token), some(1), None, None]);
    done(lab, &format!("extend read a:1 2 8 T 20000 - {token} 1"));
    assert_entry(lab, "r:a:1", &format!("{token} 8 2"), 20_000_000);
    let ends = field(lab, "l0", "r:a:1").unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(fields(lab, ["longest", "readers"]), [some(format!("{ends} r:a:1")), some(1)]);
    lab.assert_lives("l0", HELD_FOR);
    let replies = call(lab, &[&format!("release read a:1 0 9 {token} - w: - -")]);
    assert!(number(&replies[0]) > 1 && replies[1..] == [Resp::Int(1)], "{replies:?}");
    assert_entry(lab, "r:a:1", &format!("{token} 9 0"), 3_000_000);
    assert_eq!(
        fields(lab, ["kind", "fence", "last", "last_read", "readers"]),
        [some("rw"), some(token), None, some(token), some(0)]
    );
    lab.assert_lives("l0", FREE_FOR);
}

fn readers_come_and_leave_beside_each_other(lab: &Lab<'_>) {
    plant(lab, &["readers", "1", "longest", "9000000000000000 r:b:1", "r:b:1", "9000000000000000 97 1 1"]);
    let token = number(&call(lab, &["acquire read a:1 7 T 10000 -"])[1]);
    assert_eq!(fields(lab, ["readers", "longest"]), [some(2), some("9000000000000000 r:b:1")]);
    done(lab, &format!("extend read a:1 1 8 T 20000 - {token} -"));
    assert_eq!(fields(lab, ["readers", "longest"]), [some(2), some("9000000000000000 r:b:1")]);
    done(lab, &format!("release read a:1 0 9 {token} - w: - -"));
    assert_eq!(fields(lab, ["readers", "last_read"]), [some(1), some(token)]);
    lab.assert_lives("l0", HELD_FOR);
    done(lab, "release read b:1 0 2 97 - w: - -");
    assert_eq!(fields(lab, ["readers", "last_read", "fence"]), [some(0), some(token), some(token)]);
    lab.assert_lives("l0", FREE_FOR);
}

fn a_reader_has_a_label(lab: &Lab<'_>) {
    plant(lab, &[]);
    let token = number(&call(lab, &["acquire read a:1 7 T 10000 work"])[1]);
    assert_eq!(field(lab, "l0", "l:r:a:1").as_deref(), Some("work"));
    done(lab, &format!("release read a:1 0 9 {token} - w: - -"));
    assert_eq!(field(lab, "l0", "l:r:a:1"), None);
}

fn a_reader_may_wait_without_a_place(lab: &Lab<'_>) {
    plant(lab, &[]);
    let replies = call(lab, &["acquire read a:1 7 T 10000 - - a:1 T 0 w:"]);
    assert_eq!(field(lab, "l0", "fence"), some(number(&replies[1])));
}

fn a_writer_comes_extends_and_leaves(lab: &Lab<'_>) {
    plant(lab, &["last_read", "5", "r:b:1", "9000000000000000 5 3 0"]);
    let token = number(&call(lab, &["acquire write a:1 7 T 10000 -"])[1]);
    assert_entry(lab, "x", &format!("{token} 7 1"), 10_000_000);
    assert_eq!(fields(lab, ["fence", "o:x", "readers", "longest"]), [some(token), some("a:1"), None, None]);
    done(lab, &format!("extend write a:1 2 8 T 20000 - {token} 1"));
    assert_entry(lab, "x", &format!("{token} 8 2"), 20_000_000);
    lab.assert_lives("l0", HELD_FOR);
    let replies = call(lab, &[&format!("release write a:1 0 9 {token} - w: - -")]);
    assert_eq!(replies, [Resp::Int(0), Resp::Int(1)], "nobody asked for the time");
    assert_eq!(
        fields(lab, ["x", "o:x", "last", "last_read", "r:b:1"]),
        [None, None, some(token), some(5), some("9000000000000000 5 3 0")]
    );
    lab.assert_lives("l0", FREE_FOR);
}

fn a_writer_comes_where_all_readers_have_left(lab: &Lab<'_>) {
    plant(lab, &["readers", "0", "longest", "9000000000000000 r:b:1", "last", "7"]);
    let token = number(&call(lab, &["acquire write a:1 7 T 10000 -"])[1]);
    done(lab, &format!("release write a:1 0 9 {token} - w: - -"));
    assert_eq!(fields(lab, ["readers", "last", "x"]), [some(0), some(token), None]);
    lab.assert_lives("l0", FREE_FOR);
}

fn whoever_writes_and_reads_leaves_one_after_the_other(lab: &Lab<'_>) {
    let entries = ["x", "9000000000000000 98 1 1", "o:x", "a:1", "r:a:1", "9000000000000000 97 1 1"];
    plant(lab, &[&entries[..], &["readers", "1"]].concat());
    done(lab, "release read a:1 0 2 97 - w: - -");
    assert_eq!(fields(lab, ["readers", "last_read", "last"]), [some(0), some(97), None]);
    lab.assert_lives("l0", HELD_FOR);
    lab.command(&["HSET", "l0", "readers", "1", "r:a:1", "9000000000000000 97 1 1"]);
    done(lab, "release write a:1 0 3 98 - w: - -");
    assert_eq!(fields(lab, ["x", "last", "readers"]), [None, some(98), some(1)]);
    lab.assert_lives("l0", HELD_FOR);
}

fn the_latest_end_of_readers_is_noted(lab: &Lab<'_>) {
    let longest = |after: u64| some(format!("{} r:a:1", lab.now() + after));
    plant(lab, &["readers", "0", "longest", "9000000000000000 r:b:1"]);
    let token = number(&call(lab, &["acquire read a:1 7 T 10000 -"])[1]);
    assert_eq!(field(lab, "l0", "longest"), longest(10_000_000), "that of a reader that left does not count");
    lab.command(&["HSET", "l0", "readers", "2", "longest", &format!("{} r:b:1", lab.now() + 10_000_001)]);
    done(lab, &format!("extend read a:1 1 8 T 10000 - {token} -"));
    assert_eq!(field(lab, "l0", "longest"), some(format!("{} r:b:1", lab.now() + 10_000_001)));
    done(lab, &format!("extend read a:1 1 8 T 10001 - {token} -"));
    assert_eq!(field(lab, "l0", "longest"), longest(10_001_000));
}
