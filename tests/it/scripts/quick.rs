//! The usual cases of a lock with one holder, which `quick.lua` has to carry out by itself: here
//! nothing stands behind it. `quick_rw` and `quick_semaphore` have those of the other kinds.

use std::sync::LazyLock;

use quorate::seam::{SCRIPTS, Script};
use quorate_testkit::Resp;

use super::lab::{Lab, RECORD};

super::scenarios! {
    &crate::scripts::quick::SCRIPT;
    Real:
        a_free_lock_is_taken_extended_and_released,
        a_label_is_written,
        a_waiter_that_takes_no_place_gets_a_free_lock,
        a_call_of_several_operations_is_quick_in_all;
    Exact:
        a_holder_extends_to_the_end;
}

/// How long (ms) a name is kept that is held, and one that is free.
pub(super) const HELD_FOR: u64 = 2_592_000_000;
pub(super) const FREE_FOR: u64 = 94_300;

/// The layer of quick.lua, and an error where it leaves a call to the verbs.
static SCRIPT: LazyLock<Script> = LazyLock::new(|| script("exclusive"));

/// The script of this name, with an error where it leaves a call to the verbs.
pub(super) fn script(name: &str) -> Script {
    let of_kind = SCRIPTS.iter().find(|script| script.name() == name).unwrap();
    Script::new("quick", alone(of_kind, |(_, text)| text).leak()) // scripts are made for ever
}

/// A script with these texts, and nothing behind its quick cases.
pub(super) fn alone<'a>(script: &Script, text: impl Fn((&'static str, &'static str)) -> &'a str) -> String {
    let ends =
        |name| if name == "vote" { "do return redis.error_reply('ERR it is not quick') end" } else { "" };
    let is_kept = |name: &str| ["call", "quick"].contains(&name) || name.starts_with("slots/");
    script.source_of(|part| if is_kept(part.0) { text(part) } else { ends(part.0) })
}

/// Calls the script for these operations, each on a name of its own, with its words behind its
/// number of names.
pub(super) fn call(lab: &Lab<'_>, operations: &[&str]) -> Vec<Resp> {
    lab.command(&["HSET", RECORD, "stamp", "m"]);
    let now = lab.now().to_string();
    let mut args: Vec<String> = [RECORD, "m", "0", "94300"].map(str::to_owned).into();
    let mut keys = Vec::new();
    for (place, operation) in operations.iter().enumerate() {
        let words: Vec<&str> = operation.split(' ').collect();
        let own = words[1..].iter().map(|word| match *word {
            "-" => String::new(),
            "T" => now.clone(),
            word => word.to_owned(),
        });
        args.extend([words[0].to_owned(), "1".to_owned(), (words.len() - 1).to_string()]);
        args.extend(own);
        keys.extend([format!("l{place}"), format!("q{place}")]);
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    match lab.eval(&keys, &args) {
        Resp::List(replies) => replies,
        other => panic!("{other:?}"),
    }
}

pub(super) fn number(reply: &Resp) -> i64 {
    match reply {
        Resp::Int(number) => *number,
        other => panic!("{other:?}"),
    }
}

pub(super) fn field(lab: &Lab<'_>, key: &str, field: &str) -> Option<String> {
    match lab.command(&["HGET", key, field]) {
        Resp::Nil => None,
        reply => Some(super::lab::text(&reply)),
    }
}

pub(super) fn fields<const N: usize>(lab: &Lab<'_>, names: [&str; N]) -> [Option<String>; N] {
    names.map(|name| field(lab, "l0", name))
}

pub(super) fn some(text: impl ToString) -> Option<String> {
    Some(text.to_string())
}

/// Calls for one operation that is done.
pub(super) fn done(lab: &Lab<'_>, operation: &str) {
    assert_eq!(call(lab, &[operation])[1..], [Resp::Int(1)], "{operation}");
}

/// What was held before, as this kind, with these fields.
pub(super) fn plant_as(lab: &Lab<'_>, kind: &str, fence: &str, more: &[&str]) {
    lab.command(&[&["HSET", "l0", "kind", kind, "fence", fence], more].concat());
    lab.command(&["PEXPIRE", "l0", &HELD_FOR.to_string()]);
}

/// A name that was held before.
fn plant(lab: &Lab<'_>, key: &str) {
    lab.command(&["HSET", key, "kind", "lock", "fence", "99"]);
}

/// Checks what an entry says after its end, and that this is so far ahead (us), or up to 2 s less.
pub(super) fn assert_entry(lab: &Lab<'_>, name: &str, rest: &str, ahead: u64) {
    let entry = field(lab, "l0", name).unwrap();
    let (until, its) = entry.split_once(' ').unwrap();
    assert_eq!(its, rest);
    let until: u64 = until.parse().unwrap();
    let end = lab.now() + ahead;
    assert!((end - 2_000_000..=end + 1000).contains(&until), "{entry}");
}

fn a_free_lock_is_taken_extended_and_released(lab: &Lab<'_>) {
    plant(lab, "l0");
    let before = i64::try_from(lab.now()).unwrap();
    let replies = call(lab, &["acquire lock a:1 7 T 10000 -"]);
    let token = number(&replies[1]);
    assert!(number(&replies[0]) >= before && token >= before && replies.len() == 2, "{replies:?}");
    assert_entry(lab, "x", &format!("{token} 7 1"), 10_000_000);
    lab.assert_lives("l0", HELD_FOR);
    let replies = call(lab, &[&format!("extend lock a:1 2 8 T 20000 - {token} 1")]);
    assert_eq!(replies[1..], [Resp::Int(1)]);
    assert_entry(lab, "x", &format!("{token} 8 2"), 20_000_000);
    let replies = call(lab, &[&format!("release lock a:1 0 9 {token} - w: - -")]);
    assert_eq!(replies, [Resp::Int(0), Resp::Int(1)], "nobody asked for the time");
    let fields = ["kind", "fence", "last", "x", "o:x"].map(|name| field(lab, "l0", name));
    let token = Some(token.to_string());
    assert_eq!(fields, [Some("lock".to_owned()), token.clone(), token, None, None]);
    lab.assert_lives("l0", FREE_FOR);
}

fn a_label_is_written(lab: &Lab<'_>) {
    plant(lab, "l0");
    call(lab, &["acquire lock a:1 7 T 10000 work"]);
    assert_eq!(field(lab, "l0", "l:x").as_deref(), Some("work"));
    let token = field(lab, "l0", "fence").unwrap();
    call(lab, &[&format!("release lock a:1 0 9 {token} - w: - -")]);
    assert_eq!(field(lab, "l0", "l:x"), None);
}

fn a_waiter_that_takes_no_place_gets_a_free_lock(lab: &Lab<'_>) {
    plant(lab, "l0");
    let replies = call(lab, &["acquire lock a:1 7 T 10000 - - a:1 T 0 w:"]);
    assert_eq!(field(lab, "l0", "fence"), Some(number(&replies[1]).to_string()));
}

fn a_call_of_several_operations_is_quick_in_all(lab: &Lab<'_>) {
    for key in ["l0", "l1", "l2"] {
        plant(lab, key);
    }
    lab.command(&["HSET", "l1", "x", "9000000000000000 99 1 1", "o:x", "b:1"]);
    let replies = call(
        lab,
        &["acquire lock a:1 7 T 10000 -", "release lock b:1 0 9 99 - w: - -", "acquire lock c:1 7 T 10000 -"],
    );
    assert_eq!((replies.len(), &replies[2]), (4, &Resp::Int(1)), "{replies:?}");
    let owners = ["l0", "l1", "l2"].map(|key| field(lab, key, "o:x"));
    assert_eq!(owners, [Some("a:1".to_owned()), None, Some("c:1".to_owned())]);
}

fn a_holder_extends_to_the_end(lab: &Lab<'_>) {
    plant(lab, "l0");
    let now = lab.now();
    lab.command(&["HSET", "l0", "x", &format!("{now} 99 1 1"), "o:x", "a:1"]);
    let replies = call(lab, &["extend lock a:1 1 1 T 10000 - 99 -"]);
    assert_eq!(replies[1..], [Resp::Int(1)]);
    assert_eq!(field(lab, "l0", "x"), Some(format!("{} 99 1 1", now + 10_000_000)));
}
