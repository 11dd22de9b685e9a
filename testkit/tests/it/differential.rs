//! Random calls of the lock's script, and commands between them: both servers answer the same and keep the same.
//!
//! `QUORATE_CALLS` says how many, `QUORATE_SEED` which.

use std::collections::BTreeMap;
use std::time::Instant;

use quorate::seam::{SCRIPTS, Script};
use quorate_testkit::Resp;

use crate::ears::Ears;
use crate::moments::PATIENCE;
use crate::operations::{Draw, MARK, MARKER, Request};
use crate::pair::{Pair, command, same};

/// So many go to the servers together.
const TOGETHER: u64 = 100;

/// The kinds of answers that there have to be.
const KINDS: [&str; 16] = [
    "granted",
    "token",
    "absent",
    "held",
    "unreleased",
    "watch",
    "stale",
    "WRONGTYPE",
    "FORGOT",
    "QUARANTINE",
    "CLOCK",
    "no time",
    "time",
    "error",
    "heard",
    "compared",
];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_calls_about_reentrant_locks_are_answered_alike_and_leave_the_same() {
    compare(SCRIPTS[0]);
}

#[test]
fn random_calls_about_mutexes_are_answered_alike_and_leave_the_same() {
    compare(SCRIPTS[1]);
}

#[test]
fn random_calls_about_locks_as_redisson_has_them_are_answered_alike_and_leave_the_same() {
    compare(SCRIPTS[2]);
}

#[test]
fn random_calls_about_locks_over_several_names_are_answered_alike_and_leave_the_same() {
    compare_drawn(SCRIPTS[3], Draw::of_several);
}

#[test]
fn random_calls_about_semaphores_are_answered_alike_and_leave_the_same() {
    compare_drawn(SCRIPTS[4], Draw::of_permits);
}

#[test]
fn random_calls_about_fair_locks_are_answered_alike_and_leave_the_same() {
    compare_drawn(SCRIPTS[5], Draw::of_fair);
}

#[test]
fn random_calls_about_read_write_locks_are_answered_alike_and_leave_the_same() {
    compare_drawn(SCRIPTS[6], Draw::of_readers);
}

fn compare(script: &Script) {
    compare_drawn(script, Draw::new);
}

fn compare_drawn(script: &Script, draw: fn(u64) -> Draw) {
    let (calls, seed) = (setting("QUORATE_CALLS", 20_000), setting("QUORATE_SEED", 1));
    let is_semaphore = script.name() == "semaphore";
    let (mut pair, mut draw) = (Pair::start(), draw(seed));
    // Where a value is longer, fields have no order, and it is by chance which of two owners is named.
    pair.server.command::<()>(&["CONFIG", "SET", "hash-max-ziplist-value", "1000"]);
    let mut ears =
        Ears::subscribe(&pair, &["quorate:wake:u1", "quorate:wake:u2", "redisson_lock__channel:quorate:{a}"]);
    let begun = Instant::now();
    let mut seen = BTreeMap::new();
    for batch in 0..calls.div_ceil(TOGETHER) {
        let is_first = draw.is_fair || batch % 10 == 0; // nobody's time to ask is over within a batch
        if is_first {
            pair.ask(script, &[command(&["FLUSHALL"])]);
        }
        pair.ask(script, &[command(&["SET", MARKER, MARK])]);
        draw.moments.begin(is_first);
        let drawn = Instant::now();
        let requests: Vec<Request> = (0..TOGETHER).map(|_| draw.request()).collect();
        let answers = pair.ask(script, &requests);
        if drawn.elapsed() > PATIENCE {
            // The machine stood still, and the servers may have looked at the clock at moments that are far apart.
            pair.ask(script, &[command(&["FLUSHALL"])]);
            ears.forget(&mut pair);
            continue;
        }
        for (i, (embedded, real)) in answers.into_iter().enumerate() {
            let asked = &requests[i];
            assert!(
                same(&embedded, &real),
                "seed {seed}, call {i} of batch {batch}: {asked:?}\nembedded {embedded:?}\nreal     {real:?}"
            );
            if matches!(asked, Request::Script(..)) {
                note(&real, &mut seen);
            }
        }
        pair.compare_keys(script);
        *seen.entry("heard".to_owned()).or_default() += ears.compare();
        *seen.entry("compared".to_owned()).or_default() += TOGETHER;
    }
    println!("{calls} calls, seed {seed}, {:.1?}: {seen:#?}", begun.elapsed());
    assert!(seen["compared"] * 2 >= calls, "the machine is too busy: {seen:?}");
    let of_semaphores: &[&str] = if is_semaphore { &["permits", "PERMITS"] } else { &[] };
    let of_fair: &[&str] = if draw.is_fair { &["turn"] } else { &[] };
    for kind in KINDS.iter().chain(of_semaphores).chain(of_fair) {
        assert!(seen.get(*kind).is_some_and(|&count| count * 4000 >= calls), "hardly any {kind}: {seen:?}");
    }
}

/// Counts the kinds of answers, so that it shows when all calls fail alike.
fn note(reply: &Resp, seen: &mut BTreeMap<String, u64>) {
    let mut count = |kind: &str| *seen.entry(kind.to_owned()).or_default() += 1;
    let Resp::List(items) = reply else { return count("error") };
    count(if matches!(items[0], Resp::Int(_)) { "time" } else { "no time" });
    for item in &items[1..] {
        match item {
            Resp::Int(0) => count("absent"),
            Resp::Int(1) => count("granted"),
            Resp::Int(_) => count("token"),
            Resp::List(words) => {
                if words.len() == 9 {
                    count("permits");
                }
                if is_turn(words) {
                    count("turn");
                }
                count(&kind(words));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Whether it says whose turn it is.
fn is_turn(words: &[Resp]) -> bool {
    matches!(words, [_, Resp::Bulk(_), Resp::Bulk(count), Resp::Int(..=1000), ..] if count == b"0")
}

/// What an answer in words is about.
fn kind(words: &[Resp]) -> String {
    let text = |place: usize| match words.get(place) {
        Some(Resp::Bulk(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    match &*text(0) {
        "held" if words.len() >= 7 && !text(5).is_empty() => "watch".to_owned(),
        "held" if text(2) == "0" => "unreleased".to_owned(),
        "refused" => text(1).split(' ').next().unwrap().to_owned(),
        _ => text(0),
    }
}
