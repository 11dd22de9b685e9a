//! What an operation costs, without a client: run it with `--release -- --ignored --nocapture price`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use quorate::seam::SCRIPTS;
use quorate_testkit::EmbeddedServer;

const OWNER: &str = "0123456789abcdef0123456789abcdef:123";
const LOCK: &str = "quorate:{bench}";
const RECORD: &str = "quorate:fence:{bench}";
const QUEUE: &str = "quorate:waiting:{bench}";
const NOW: u64 = 1_000_000_000_000;

/// An operation's keys, and its arguments.
type Words = (&'static [&'static str], &'static [&'static str]);

const ACQUIRE: Words =
    (&[LOCK, RECORD], &["acquire", OWNER, "1", "30000", "7", "1000000000000", "30000", ""]);
const RELEASE: Words = (&[LOCK, RECORD, QUEUE], &["release", OWNER, "0", "8", "quorate:wake:"]);
const INSPECT: Words = (&[LOCK], &["inspect", ""]);

/// Runs a call of these operations.
fn run(server: &EmbeddedServer, head: [&str; 3], operations: &[Words]) {
    let keys: Vec<&str> = operations.iter().flat_map(|(keys, _)| *keys).copied().collect();
    let args = operations.iter().flat_map(|(_, args)| *args).copied();
    let args: Vec<&str> = head.into_iter().chain(args).collect();
    black_box(server.eval(SCRIPTS[0], &keys, &args));
}

/// Prints what a run costs where nobody else wants the machine: the least of many short measurements.
fn price(what: &str, mut run: impl FnMut()) {
    const TIMES: u32 = 1000;
    let measure = |_| {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| run());
        begun.elapsed() / TIMES
    };
    println!("{what}: {:?}", (0..200).map(measure).min().unwrap());
}

#[test]
#[ignore = "it measures"]
fn price_of_an_operation() {
    let server = EmbeddedServer::with_clock(0, Arc::new(|| NOW));
    server.command(&["SET", "marker", "1|0|terms"]);
    for (guards, head) in [("without guards", ["", "", ""]), ("with guards", ["marker", "1|0|terms", "0"])] {
        println!("{guards}");
        price("acquire, evict", || {
            run(&server, head, &[ACQUIRE]);
            server.command(&["DEL", LOCK, RECORD]);
        });
        price("acquire, release", || {
            run(&server, head, &[ACQUIRE]);
            run(&server, head, &[RELEASE]);
        });
        price("inspect, inspect (free)", || {
            run(&server, head, &[INSPECT]);
            run(&server, head, &[INSPECT]);
        });
        price("both in one call", || run(&server, head, &[ACQUIRE, RELEASE]));
    }
}
