//! Random calls of the scripts of locks, and commands between them: both servers answer the same
//! and keep the same.
//!
//! `QUORATE_CALLS` says how many, `QUORATE_SEED` which.

use std::collections::BTreeMap;
use std::time::Instant;

use quorate::seam::SCRIPTS;
use quorate_testkit::Resp;

use crate::ears::Ears;
use crate::moments::PATIENCE;
use crate::operations::{Draw, RECORD, Request, STAMP};
use crate::pair::{Pair, command, same};

/// How many go to the servers together.
const TOGETHER: u64 = 100;

/// The kinds of answers that there have to be.
const KINDS: [&str; 13] = [
    "granted",
    "absent",
    "held",
    "place",
    "seen",
    "WRONGTYPE",
    "FORGOT",
    "QUARANTINE",
    "CLOCK",
    "time",
    "nobody asked",
    "received",
    "compared",
];

/// Those that there have to be where the layout is ours.
const OURS: [&str; 3] = ["token", "stale", "KIND"];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_calls_about_locks_and_mutexes_are_answered_alike_and_leave_the_same() {
    compare("exclusive");
}

#[test]
fn random_calls_about_fair_locks_are_answered_alike_and_leave_the_same() {
    compare("fair");
}

#[test]
fn random_calls_about_semaphores_are_answered_alike_and_leave_the_same() {
    compare("semaphore");
}

#[test]
fn random_calls_about_read_write_locks_are_answered_alike_and_leave_the_same() {
    compare("rw");
}

#[test]
fn random_calls_about_mutexes_as_others_have_them_are_answered_alike_and_leave_the_same() {
    compare("plain");
}

#[test]
fn random_calls_about_locks_as_redisson_has_them_are_answered_alike_and_leave_the_same() {
    compare("redisson");
}

fn compare(kind: &'static str) {
    let (calls, seed) = (setting("QUORATE_CALLS", 20_000), setting("QUORATE_SEED", 1));
    let script = SCRIPTS.iter().find(|script| script.name() == kind).unwrap();
    let (mut pair, mut draw) = (Pair::start(), Draw::new(kind, seed));
    // Where a value is longer, fields have no order, and it is by chance which of two owners is
    // named.
    pair.server.command::<()>(&["CONFIG", "SET", "hash-max-ziplist-value", "1000"]);
    let mut ears =
        Ears::subscribe(&pair, &["quorate:wake:u1", "quorate:wake:u2", "redisson_lock__channel:quorate:{a}"]);
    let begun = Instant::now();
    let mut seen = BTreeMap::new();
    // Nobody's time to ask is over within a batch, nor is what a reader left behind.
    let has_short_moments = ["fair", "rw"].contains(&kind);
    for batch in 0..calls.div_ceil(TOGETHER) {
        let is_first = has_short_moments || batch % 10 == 0;
        if is_first {
            pair.ask(script, &[command(&["FLUSHALL"])]);
        }
        pair.ask(script, &[command(&["DEL", RECORD]), command(&["HSET", RECORD, "stamp", STAMP])]);
        draw.moments.begin(is_first);
        let drawn = Instant::now();
        let requests: Vec<Request> = (0..TOGETHER).map(|_| draw.request()).collect();
        let answers = pair.ask(script, &requests);
        if drawn.elapsed() > PATIENCE {
            // The machine stood still, and the servers may have looked at the clock at moments that
            // are far apart.
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
        *seen.entry("received".to_owned()).or_default() += ears.compare();
        *seen.entry("compared".to_owned()).or_default() += TOGETHER;
    }
    println!("{calls} calls, seed {seed}, {:.1?}: {seen:#?}", begun.elapsed());
    assert!(seen["compared"] * 2 >= calls, "the machine is too busy: {seen:?}");
    let of_ours: &[&str] = if ["plain", "redisson"].contains(&kind) { &[] } else { &OURS };
    let of_semaphores: &[&str] = if kind == "semaphore" { &["permits"] } else { &[] };
    let of_turns: &[&str] = if has_short_moments { &["turn"] } else { &[] };
    for kind in KINDS.iter().chain(of_ours).chain(of_semaphores).chain(of_turns) {
        assert!(seen.get(*kind).is_some_and(|&count| count * 4000 >= calls), "hardly any {kind}: {seen:?}");
    }
}

/// Counts the kinds of answers, so that it shows when all calls fail alike.
fn note(reply: &Resp, seen: &mut BTreeMap<String, u64>) {
    let mut count = |kind: &str| *seen.entry(kind.to_owned()).or_default() += 1;
    let Resp::List(items) = reply else { return count("error") };
    count(match items[0] {
        Resp::Int(0) => "nobody asked",
        Resp::Int(_) => "time",
        _ => "no time",
    });
    for item in &items[1..] {
        match item {
            Resp::Int(0) => count("absent"),
            Resp::Int(1) => count("granted"),
            Resp::Int(_) => count("token"),
            Resp::List(words) => {
                if words.len() == 9 {
                    count("permits");
                }
                if matches!(words[..], [_, _, Resp::Int(0), Resp::Int(1..=1000), ..]) {
                    count("turn");
                }
                if matches!(words.get(6), Some(Resp::Int(0..))) {
                    count("place");
                }
                count(&kind(words));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What an answer in words is about.
fn kind(words: &[Resp]) -> String {
    let text = |place: usize| match words.get(place) {
        Some(Resp::Bulk(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    match &*text(0) {
        "refused" => text(1).split(' ').next().unwrap().to_owned(),
        _ => text(0),
    }
}
