//! What a script sees of time and of its state, and what it costs. Replies are compared with a real
//! server's, in `tests/it`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorate::seam::Script;

use crate::{EmbeddedServer, Resp};

fn eval(server: &EmbeddedServer, script: &'static str, keys: &[&str], args: &[&str]) -> Resp {
    server.eval(&Script::new("test", script), keys, args)
}

fn bulk(text: &str) -> Resp {
    Resp::Bulk(text.as_bytes().to_vec())
}

/// Each look at this clock is a second later. The server takes the first, when it starts.
fn ticking(number: usize) -> EmbeddedServer {
    let ticks = AtomicU64::new(0);
    EmbeddedServer::with_clock(number, Arc::new(move || ticks.fetch_add(1_000_000, Ordering::Relaxed)))
}

#[test]
fn time_goes_on_in_a_script_and_keys_stay() {
    let script = "redis.call('SET', 'k', 'v', 'PX', 1) redis.call('TIME') \
                  return {redis.call('GET', 'k'), redis.call('TIME')[1]}";
    let server = ticking(0);
    assert_eq!(eval(&server, script, &[], &[]), Resp::List(vec![bulk("v"), bulk("5")]));
    assert!(server.keys().is_empty());
}

/// One Lua state runs the scripts of all servers of a thread.
#[test]
fn servers_share_nothing_through_their_scripts() {
    let one = EmbeddedServer::new(1);
    let other = EmbeddedServer::new(2);
    let script =
        "local n = redis.call('HINCRBY', 'h', 'n', 1) return {KEYS[1] or 'none', ARGV[1] or 'none', n}";
    let reply = |key, arg, n| Resp::List(vec![bulk(key), bulk(arg), Resp::Int(n)]);
    assert_eq!(eval(&one, script, &["k"], &["a"]), reply("k", "a", 1));
    assert_eq!(eval(&one, script, &[], &[]), reply("none", "none", 2));
    assert_eq!(eval(&other, script, &[], &["b"]), reply("none", "b", 1));
    assert!(matches!(eval(&one, "error('x')", &[], &[]), Resp::Error(_)));
    assert_eq!(eval(&one, script, &[], &[]), reply("none", "none", 3));
}

/// A script that forgot a `local` would hand a value over to the next one.
#[test]
fn a_script_makes_no_global() {
    let server = EmbeddedServer::new(0);
    for script in ["x = 1", "function f() end", "rawset(_G, 'x', 1)", "local a = x"] {
        let reply = eval(&server, script, &[], &[]);
        assert!(matches!(&reply, Resp::Error(text) if text.contains("global") || text.contains("readonly")));
    }
}
