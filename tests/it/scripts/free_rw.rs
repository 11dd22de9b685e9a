//! The usual cases of readers and writers: see `free`.

use std::sync::LazyLock;

use quorate::seam::Script;

use super::free::{BEFORE, FREE_FOR, HELD_FOR, acquire, assert_entry, fields, plant, release, script, some};
use super::lab::Lab;

super::scenarios! {
    &crate::scripts::free_rw::SCRIPT;
    Real:
        a_reader_comes_and_leaves,
        readers_come_and_leave_beside_each_other,
        a_reader_has_a_label,
        a_writer_comes_and_leaves,
        a_writer_comes_where_all_readers_have_left,
        whoever_writes_and_reads_leaves_one_after_the_other;
    Exact:
        the_latest_end_of_readers_is_noted;
}

static SCRIPT: LazyLock<Script> = LazyLock::new(|| script("rw"));

/// The word of a reader that has left.
const WORD: &str = "9000000000000000 5 3 0";

/// An end that is later than any other.
const LATE: u64 = 9_000_000_000_000_000;

fn a_reader_comes_and_leaves(lab: &Lab<'_>) {
    plant(lab, "rw", &["last_read", "5"]);
    let token = acquire(lab, "read", "-");
    assert_entry(lab, "r:a:1", &format!("{token} 7 1"), 10_000_000);
    assert_eq!(fields(lab, ["fence", "readers", "o:r", "o:r:a:1"]), [some(token), some(1), None, None]);
    let [Some(entry), longest] = fields(lab, ["r:a:1", "longest"]) else { panic!("it has no entry") };
    assert_eq!(longest, some(format!("{} r:a:1", entry.split(' ').next().unwrap())));
    lab.assert_lives("l0", HELD_FOR);
    release(lab, "read", "a:1", 9, token);
    assert_entry(lab, "r:a:1", &format!("{token} 9 0"), 3_000_000);
    assert_eq!(
        fields(lab, ["kind", "fence", "last", "last_read", "readers"]),
        [some("rw"), some(token), None, some(token), some(0)]
    );
    lab.assert_lives("l0", FREE_FOR);
}

fn readers_come_and_leave_beside_each_other(lab: &Lab<'_>) {
    let (entry, longest) = (format!("{LATE} 97 1 1"), format!("{LATE} r:b:1"));
    plant(lab, "rw", &["readers", "1", "longest", &longest, "r:b:1", &entry]);
    let token = acquire(lab, "read", "- - a:1 T 0 w:"); // a waiter, which needs no place
    assert_eq!(fields(lab, ["readers", "longest"]), [some(2), some(longest)]);
    lab.assert_lives("l0", HELD_FOR);
    release(lab, "read", "a:1", 9, token);
    assert_eq!(fields(lab, ["readers", "last_read"]), [some(1), some(token)]);
    lab.assert_lives("l0", HELD_FOR);
    release(lab, "read", "b:1", 2, 97);
    assert_eq!(fields(lab, ["readers", "last_read", "fence"]), [some(0), some(token), some(token)]);
    lab.assert_lives("l0", FREE_FOR);
}

fn a_reader_has_a_label(lab: &Lab<'_>) {
    plant(lab, "rw", &[]);
    let token = acquire(lab, "read", "work");
    assert_eq!(fields(lab, ["l:r:a:1"]), [some("work")]);
    release(lab, "read", "a:1", 9, token);
    assert_eq!(fields(lab, ["l:r:a:1"]), [None]);
}

fn the_latest_end_of_readers_is_noted(lab: &Lab<'_>) {
    let (until, late) = (lab.now() + 10_000_000, format!("{LATE} r:b:1"));
    for (readers, before, after) in [
        ("0", late, format!("{until} r:a:1")), // of a reader that has left
        ("1", format!("{until} r:b:1"), format!("{until} r:b:1")),
        ("1", format!("{} r:b:1", until - 1), format!("{until} r:a:1")),
    ] {
        plant(lab, "rw", &["readers", readers, "longest", &before]);
        acquire(lab, "read", "-");
        assert_eq!(fields(lab, ["longest"]), [some(after)]);
    }
}

fn a_writer_comes_and_leaves(lab: &Lab<'_>) {
    plant(lab, "rw", &["last_read", "5", "r:b:1", WORD]);
    let token = acquire(lab, "write", "-");
    assert_entry(lab, "x", &format!("{token} 7 1"), 10_000_000);
    assert_eq!(fields(lab, ["fence", "o:x", "readers", "longest"]), [some(token), some("a:1"), None, None]);
    lab.assert_lives("l0", HELD_FOR);
    release(lab, "write", "a:1", 9, token);
    assert_eq!(
        fields(lab, ["x", "o:x", "last", "last_read", "r:b:1"]),
        [None, None, some(token), some(5), some(WORD)]
    );
    lab.assert_lives("l0", FREE_FOR);
}

fn a_writer_comes_where_all_readers_have_left(lab: &Lab<'_>) {
    plant(lab, "rw", &["x", "1 99 1 1", "o:x", "b:1"]);
    release(lab, "write", "b:1", 1, 99);
    lab.assert_lives("l0", FREE_FOR);
    plant(lab, "rw", &["readers", "0", "longest", "9000000000000000 r:b:1", "last", "7"]);
    let token = acquire(lab, "write", "-");
    release(lab, "write", "a:1", 9, token);
    assert_eq!(fields(lab, ["readers", "last", "x"]), [some(0), some(token), None]);
    lab.assert_lives("l0", FREE_FOR);
}

fn whoever_writes_and_reads_leaves_one_after_the_other(lab: &Lab<'_>) {
    let (writes, reads) =
        (["x", "9000000000000000 98 1 1", "o:x", "a:1"], ["r:a:1", "9000000000000000 97 1 1"]);
    plant(lab, "rw", &[&writes[..], &reads, &["readers", "1"]].concat());
    release(lab, "write", "a:1", 3, 98);
    assert_eq!(fields(lab, ["x", "last", "readers"]), [None, some(98), some(1)]);
    lab.assert_lives("l0", BEFORE);
    plant(lab, "rw", &[&writes[..], &reads, &["readers", "1"]].concat());
    release(lab, "read", "a:1", 2, 97);
    assert_eq!(fields(lab, ["readers", "last_read", "last"]), [some(0), some(97), None]);
    lab.assert_lives("l0", BEFORE);
}
