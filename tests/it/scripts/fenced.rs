//! A value that is guarded by a fence. What the script does for its users is in `it/fenced.rs`;
//! here is what it must not lack.

use quorate::fence;
use quorate_testkit::Resp;

use super::lab::{Lab, VALUE, text};

super::scenarios! {
    &crate::scripts::source::FENCED;
    Real:
        a_lower_fence_writes_nothing,
        a_fence_without_a_value_keeps_earlier_ones_out_and_changes_nothing_else,
        what_is_no_fence_or_no_ttl_is_an_error,
        what_is_no_value_with_a_fence_is_left_alone,
        the_last_write_says_how_long_it_is_kept;
    Exact:;
}

const FENCE: u64 = 1_767_225_600_000_000;

fn set(lab: &Lab<'_>, words: &[&str]) -> Resp {
    lab.eval(&[VALUE], &words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

/// All that is there, and for how long.
fn stored(lab: &Lab<'_>) -> Vec<Resp> {
    let kind = lab.command(&["TYPE", VALUE]);
    let look = match kind {
        Resp::Status(ref kind) if kind == "hash" => vec!["HGETALL", VALUE],
        _ => vec!["GET", VALUE],
    };
    vec![lab.command(&look), lab.command(&["PTTL", VALUE])]
}

fn assert_stored(lab: &Lab<'_>, fence: u64, value: &str) {
    let fields = ["fence", "value"].map(|name| lab.field(name));
    assert_eq!(fields, [Some(fence.to_string()), Some(value.to_owned())]);
    assert_eq!(lab.command(&["HLEN", VALUE]), Resp::Int(2));
}

/// Checks that it is an error which begins so, and writes nothing.
fn assert_error(lab: &Lab<'_>, words: &[&str], begin: &str) {
    let before = stored(lab);
    let reply = set(lab, words);
    assert!(matches!(&reply, Resp::Error(text) if text.starts_with(begin)), "{words:?}: {reply:?}");
    assert_eq!(stored(lab), before, "{words:?}");
}

fn a_lower_fence_writes_nothing(lab: &Lab<'_>) {
    for fence in [1, 9, 10, FENCE, FENCE + 1, fence::MAX - 1, fence::MAX] {
        for value in ["a", ""] {
            assert_eq!(set(lab, &[&fence.to_string(), value]), Resp::Int(fence.cast_signed()));
            assert_stored(lab, fence, value);
        }
        if fence > 1 {
            let late = set(lab, &[&(fence - 1).to_string(), "late", "1000"]);
            assert_eq!(late, Resp::Int(fence.cast_signed()));
            assert_stored(lab, fence, "");
            assert_eq!(lab.command(&["PTTL", VALUE]), Resp::Int(-1));
        }
    }
}

fn a_fence_without_a_value_keeps_earlier_ones_out_and_changes_nothing_else(lab: &Lab<'_>) {
    assert_eq!(set(lab, &["5"]), Resp::Int(5));
    assert_eq!((lab.field("fence"), lab.field("value")), (Some("5".to_owned()), None));
    assert_eq!(set(lab, &["4", "late"]), Resp::Int(5));
    set(lab, &["6", "v", "60000"]);
    for fence in [7, 7, 8] {
        assert_eq!(set(lab, &[&fence.to_string()]), Resp::Int(fence));
        assert_stored(lab, fence.unsigned_abs(), "v");
        lab.assert_lives(VALUE, 60_000);
        assert_eq!(set(lab, &["6", "late"]), Resp::Int(fence));
        assert_eq!(set(lab, &["6"]), Resp::Int(fence), "nor does a lower one by itself");
        assert_stored(lab, fence.unsigned_abs(), "v");
    }
}

fn what_is_no_fence_or_no_ttl_is_an_error(lab: &Lab<'_>) {
    let odd =
        ["0", "-1", "+1", "01", "1.5", "1e15", "0x10", " 1", "1 ", "1\n", "x", "nan", "9007199254740992"];
    for _ in 0..2 {
        for word in odd {
            assert_error(lab, &[word, "v"], "ERR the fence");
            assert_error(lab, &[&FENCE.to_string(), "v", word], "ERR the TTL");
        }
        assert_error(lab, &["", "v"], "ERR the fence");
        assert_error(lab, &[], "ERR the fence");
        set(lab, &["7", "v"]); // and again, with something there
    }
}

fn what_is_no_value_with_a_fence_is_left_alone(lab: &Lab<'_>) {
    let others: [&[&str]; 5] = [
        &["SET", VALUE, "plain"],
        &["HSET", VALUE, "name", "Ada"],
        &["HSET", VALUE, "owner:1", "1", "round", "7", "fence", "8"],
        &["HSET", VALUE, "fence", "1e15", "value", "v"],
        &["HSET", VALUE, "fence", "9007199254740992", "value", "v"],
    ];
    for other in others {
        lab.command(&["DEL", VALUE]);
        lab.command(other);
        assert_error(lab, &[&FENCE.to_string(), "v", "1000"], "WRONGTYPE");
    }
    lab.command(&["DEL", VALUE]);
    lab.command(&["HSET", VALUE, "fence", "8"]);
    assert_eq!(text(&set(lab, &["8", "v"])), "8", "a value may be deleted without its fence");
    assert_stored(lab, 8, "v");
}

fn the_last_write_says_how_long_it_is_kept(lab: &Lab<'_>) {
    for ttl in ["60000", "30000", "90000"] {
        set(lab, &["7", "v", ttl]);
        lab.assert_lives(VALUE, ttl.parse().unwrap());
    }
    for forever in [&["7", "v", ""][..], &["7", "v"]] {
        set(lab, forever);
        assert_eq!(lab.command(&["PTTL", VALUE]), Resp::Int(-1));
        set(lab, &["7", "v", "60000"]);
    }
    set(lab, &["7", "v", "1"]);
    lab.pass(2000);
    assert!(lab.command(&["EXISTS", VALUE]) == Resp::Int(0));
}
