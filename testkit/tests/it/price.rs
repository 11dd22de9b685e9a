//! What an operation costs, without a client: run it with
//! `--release -- --ignored --nocapture price`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use quorate_testkit::EmbeddedServer;

const NAME: &str = "quorate:{bench}";
const KEYS: [&str; 2] = [NAME, "quorate:waiting:{bench}"];
const HEAD: [&str; 4] = ["master", "0123456789abcdef", "0", "94300"];
const OWNER: &str = "0123456789abcdef0123456789abcdef:123";
const NOW: u64 = 1_000_000_000_000;

/// An operation's arguments.
type Args = &'static [&'static str];

const ACQUIRE: Args = &["acquire", "1", "6", "lock", OWNER, "7", "1000000000000", "30000", ""];
const RELEASE: Args =
    &["release", "1", "9", "lock", OWNER, "0", "8", "1000000000000", "", "quorate:wake:", "", ""];
const INSPECT: Args = &["inspect", "1", "1", "lock"];

/// Runs a call of these operations.
fn run(server: &EmbeddedServer, operations: &[Args]) {
    let keys: Vec<&str> = operations.iter().flat_map(|_| KEYS).collect();
    let args: Vec<&str> = HEAD.into_iter().chain(operations.iter().copied().flatten().copied()).collect();
    black_box(server.eval(crate::exclusive(), &keys, &args));
}

/// Prints what a run costs where nobody else wants the machine: the least of many short
/// measurements.
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
    server.command(&["HSET", HEAD[0], "stamp", HEAD[1]]);
    price("acquire, evict", || {
        run(&server, &[ACQUIRE]);
        server.command(&["DEL", NAME]);
    });
    price("acquire, release, evict", || {
        run(&server, &[ACQUIRE]);
        run(&server, &[RELEASE]);
        server.command(&["DEL", NAME]);
    });
    price("inspect, inspect (free)", || {
        run(&server, &[INSPECT]);
        run(&server, &[INSPECT]);
    });
    price("acquire and release in one call, evict", || {
        run(&server, &[ACQUIRE, RELEASE]);
        server.command(&["DEL", NAME]);
    });
}
