//! The usual cases of permits, which `free.lua` has to carry out by itself: here nothing stands
//! behind it. `free_rw` has those of readers and writers.

use std::sync::LazyLock;

use quorate::seam::Script;
use quorate_testkit::Resp;

use super::lab::{Lab, RECORD, text};
use super::source;

super::scenarios! {
    &crate::scripts::free::SCRIPT;
    Real:
        a_permit_is_taken_and_given_back,
        permits_are_taken_and_given_back_beside_each_other,
        a_permit_has_a_label;
    Exact:
        a_permit_may_end_with_the_first,
        whoever_releases_late_raises_nothing_twice;
}

/// How long (ms) a name is kept that is held, and one that is free.
pub(super) const HELD_FOR: u64 = 2_592_000_000;
pub(super) const FREE_FOR: u64 = 94_300;

/// How long (ms) a name lives that is planted.
pub(super) const BEFORE: u64 = 500_000;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| script("semaphore"));

/// The script of this name, with an error where it leaves a call to the verbs.
pub(super) fn script(name: &str) -> Script {
    Script::new("free", alone(source::script(name), |(_, text)| text).leak()) // scripts are made for ever
}

/// A script with these texts, and nothing behind what `free.lua` does.
pub(super) fn alone<'a>(script: &Script, text: impl Fn((&'static str, &'static str)) -> &'a str) -> String {
    script.source_of(|part| match part.0 {
        "call" | "free" => text(part),
        slots if slots.starts_with("slots/") => text(part),
        "vote" => "do return redis.error_reply('ERR it is left to the verbs') end",
        _ => "",
    })
}

/// The replies to these operations, each with its words behind its number of names, on `l0`. `T` is
/// the time, and `-` an empty word.
pub(super) fn call(lab: &Lab<'_>, operations: &[&str]) -> Vec<Resp> {
    lab.command(&["HSET", RECORD, "stamp", "m"]);
    let now = lab.now().to_string();
    let mut args: Vec<String> = [RECORD, "m", "0", "94300"].map(str::to_owned).into();
    for operation in operations {
        let (verb, words) = operation.split_once(' ').unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        args.extend([verb.to_owned(), "1".to_owned(), words.len().to_string()]);
        args.extend(words.iter().map(|word| match *word {
            "-" => String::new(),
            "T" => now.clone(),
            word => word.to_owned(),
        }));
    }
    match lab.eval(&["l0", "q0"].repeat(operations.len()), &args) {
        Resp::List(replies) => replies,
        other => panic!("{operations:?}: {other:?}"),
    }
}

/// Acquires a slot with these words behind it, and returns the token.
pub(super) fn acquire(lab: &Lab<'_>, slot: &str, words: &str) -> i64 {
    let before = i64::try_from(lab.now()).unwrap();
    match call(lab, &[&format!("acquire {slot} a:1 7 T 10000 {words}")])[..] {
        [Resp::Int(time), Resp::Int(token)] if time >= before && token >= before => token,
        ref other => panic!("{other:?}"),
    }
}

/// Releases it. Nothing has to look at the time, but for a reader.
pub(super) fn release(lab: &Lab<'_>, slot: &str, owner: &str, round: u32, token: i64) {
    let replies = call(lab, &[&format!("release {slot} {owner} 0 {round} {token} - w: - -")]);
    assert!(matches!(replies[..], [Resp::Int(time), Resp::Int(1)] if (time > 0) == (slot == "read")));
}

pub(super) fn fields<const N: usize>(lab: &Lab<'_>, names: [&str; N]) -> [Option<String>; N] {
    names.map(|name| match lab.command(&["HGET", "l0", name]) {
        Resp::Nil => None,
        reply => Some(text(&reply)),
    })
}

pub(super) fn some(text: impl ToString) -> Option<String> {
    Some(text.to_string())
}

/// What was held before, as this kind, with these fields.
pub(super) fn plant(lab: &Lab<'_>, kind: &str, more: &[&str]) {
    lab.command(&["DEL", "l0"]);
    lab.command(&[&["HSET", "l0", "kind", kind, "fence", "100"], more].concat());
    lab.command(&["PEXPIRE", "l0", &BEFORE.to_string()]);
}

/// Checks what an entry says behind its end, and that this is so far (us) from now, or up to 2 s
/// less.
pub(super) fn assert_entry(lab: &Lab<'_>, name: &str, rest: &str, ahead: u64) {
    let [Some(entry)] = fields(lab, [name]) else { panic!("there is no {name}") };
    let (until, its) = entry.split_once(' ').unwrap();
    assert_eq!(its, rest);
    let end = lab.now() + ahead;
    assert!((end - 2_000_000..=end + 1000).contains(&until.parse().unwrap()), "{entry}");
}

fn a_permit_is_taken_and_given_back(lab: &Lab<'_>) {
    plant(lab, "semaphore/16", &[]);
    let token = acquire(lab, "3/16", "-");
    assert_entry(lab, "p:3", &format!("{token} 7 1"), 10_000_000);
    assert_eq!(
        fields(lab, ["fence", "o:p:3", "entries", "l:p:3"]),
        [some(token), some("a:1"), some(1), None]
    );
    lab.assert_lives("l0", HELD_FOR);
    release(lab, "3/16", "a:1", 9, token);
    assert_eq!(
        fields(lab, ["p:3", "o:p:3", "entries", "last:3", "last"]),
        [None, None, some(0), some(token), None]
    );
    lab.assert_lives("l0", FREE_FOR);
}

fn permits_are_taken_and_given_back_beside_each_other(lab: &Lab<'_>) {
    let held = ["p:0", "9000000000000000 99 1 1", "o:p:0", "b:1", "entries", "1", "last:0", "100"];
    plant(lab, "semaphore/16", &held);
    let token = acquire(lab, "15/16", "- - a:1 T 0 w:"); // a waiter, which needs no place
    assert_eq!(fields(lab, ["entries"]), [some(2)]);
    release(lab, "0/16", "b:1", 9, 99);
    assert_eq!(fields(lab, ["entries", "last:0", "fence", "p:0"]), [some(1), some(100), some(token), None]);
    lab.assert_lives("l0", HELD_FOR);
    release(lab, "15/16", "a:1", 9, token);
    assert_eq!(fields(lab, ["entries", "last:15"]), [some(0), some(token)]);
    lab.assert_lives("l0", FREE_FOR);
    let replies = call(lab, &["acquire 3/16 a:1 7 T 10000 -", "acquire 4/16 b:1 7 T 10000 -"]);
    let [_, Resp::Int(one), Resp::Int(other)] = replies[..] else { panic!("{replies:?}") };
    assert_eq!(other, one + 1);
}

fn a_permit_has_a_label(lab: &Lab<'_>) {
    plant(lab, "semaphore/16", &[]);
    let token = acquire(lab, "3/16", "work");
    assert_eq!(fields(lab, ["l:p:3"]), [some("work")]);
    release(lab, "3/16", "a:1", 7, token);
    assert_eq!(fields(lab, ["l:p:3"]), [None]);
}

fn a_permit_may_end_with_the_first(lab: &Lab<'_>) {
    let over = (lab.now() + 10_000_000).to_string();
    plant(lab, "semaphore/16", &["over", &over]);
    acquire(lab, "3/16", "-");
    assert_eq!(fields(lab, ["entries", "over"]), [some(1), some(over)]);
}

fn whoever_releases_late_raises_nothing_twice(lab: &Lab<'_>) {
    plant(lab, "semaphore/16", &["p:3", "1 98 1 1", "o:p:3", "b:1", "entries", "1", "last:3", "98"]);
    release(lab, "3/16", "b:1", 1, 98);
    assert_eq!(fields(lab, ["last:3", "fence"]), [some(98), some(100)]);
}
