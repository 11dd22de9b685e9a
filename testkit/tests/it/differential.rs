//! Random calls of the lock's script, and commands between them: both servers answer the same and keep the same.
//!
//! `QUORATE_CALLS` says how many, `QUORATE_SEED` which.

use std::collections::BTreeMap;
use std::time::Instant;

use quorate_testkit::Resp;

use crate::dice::Dice;
use crate::ears::Ears;
use crate::operations::{Request, request};
use crate::pair::{Pair, command, same};
use crate::source::REENTRANT;

/// So many go to the servers together.
const TOGETHER: u64 = 100;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_calls_are_answered_alike_and_leave_the_same() {
    let (calls, seed) = (setting("QUORATE_CALLS", 20_000), setting("QUORATE_SEED", 1));
    let (mut pair, mut dice) = (Pair::start(), Dice(seed));
    let mut ears = Ears::subscribe(&pair, &["quorate:wake:u1", "quorate:wake:u2"]);
    let begun = Instant::now();
    let mut seen = BTreeMap::new();
    for batch in 0..calls.div_ceil(TOGETHER) {
        if batch % 10 == 9 {
            pair.ask(&REENTRANT, &[command(&["FLUSHALL"])]);
        }
        let requests: Vec<Request> = (0..TOGETHER).map(|_| request(&mut dice)).collect();
        for (i, (embedded, real)) in pair.ask(&REENTRANT, &requests).into_iter().enumerate() {
            let asked = &requests[i];
            assert!(
                same(&embedded, &real),
                "seed {seed}, call {i} of batch {batch}: {asked:?}\nembedded {embedded:?}\nreal     {real:?}"
            );
            if matches!(asked, Request::Script(..)) {
                note(&real, &mut seen);
            }
        }
        pair.compare_keys(&REENTRANT);
        *seen.entry("heard".to_owned()).or_default() += ears.compare();
    }
    println!("{calls} calls, seed {seed}, {:.1?}: {seen:#?}", begun.elapsed());
    for kind in ["1", "0", "held", "stale", "refused", "error", "heard"] {
        assert!(seen.get(kind).is_some_and(|&count| count * 2000 >= calls), "hardly any {kind}: {seen:?}");
    }
}

/// Counts the kinds of answers, so that it shows when all calls fail alike.
fn note(reply: &Resp, seen: &mut BTreeMap<String, u64>) {
    let kind = match reply {
        Resp::List(items) => match items.first() {
            Some(Resp::Bulk(word)) => String::from_utf8_lossy(word).into_owned(),
            _ => return items.iter().for_each(|item| note(item, seen)),
        },
        Resp::Int(number @ 0..2) => number.to_string(),
        Resp::Error(_) => "error".to_owned(),
        _ => return,
    };
    *seen.entry(kind).or_default() += 1;
}
