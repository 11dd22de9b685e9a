//! What an operation costs, without a client: run it with `--release -- --ignored --nocapture price`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use quorate::seam::Words;
use quorate_testkit::EmbeddedServer;

use crate::source::REENTRANT;

const OWNER: &str = "0123456789abcdef0123456789abcdef:123";

fn words(verb: &str) -> Words {
    let words = Words::new(if verb == "release" { 2 } else { 1 }).with("quorate:{bench}");
    match verb {
        "release" => {
            let words = words.with("quorate:waiting:{bench}").with(verb).with(OWNER);
            words.with(0).with(8).with("quorate:wake:")
        }
        "inspect" => words.with(verb),
        _ => words.with(verb).with(OWNER).with(1).with(30_000).with(7),
    }
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
    let server = EmbeddedServer::with_clock(0, Arc::new(|| 1_000_000_000_000));
    let (acquire, release, inspect) = (words("acquire"), words("release"), words("inspect"));
    price("acquire, evict", || {
        black_box(server.run(&REENTRANT, &[&acquire]));
        server.evict("quorate:{bench}");
    });
    price("acquire, release", || {
        black_box(server.run(&REENTRANT, &[&acquire]));
        black_box(server.run(&REENTRANT, &[&release]));
    });
    price("inspect, inspect (free)", || {
        black_box(server.run(&REENTRANT, &[&inspect]));
        black_box(server.run(&REENTRANT, &[&inspect]));
    });
    price("both in one call", || {
        black_box(server.run(&REENTRANT, &[&acquire, &release]));
    });
}
