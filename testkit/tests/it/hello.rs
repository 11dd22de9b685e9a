//! The handshake on both servers: what it answers, and what marker it leaves.

use std::time::SystemTime;

use quorate::seam::HELLO;
use quorate_testkit::{Resp, Restart};

use crate::operations::Request;
use crate::pair::{Pair, command, same};

const TERMS: &str = "its terms";

/// The second replication id of a server that never was a replica.
const NONE: &str = "0000000000000000000000000000000000000000";

/// What a client tells of itself and of the master.
#[derive(Clone, Copy)]
struct Client {
    terms: &'static str,
    trusts: &'static str,
    /// The uptime that it trusts (s).
    at_most: u64,
    /// How far its clock is from the master's (us).
    ahead: i64,
    /// Whether that is the time of most masters.
    by_others: bool,
    fsync: bool,
    /// The latest end of a quarantine that it saw, or nothing.
    latest: &'static str,
}

const CLIENT: Client = Client {
    terms: TERMS,
    trusts: "quarantine",
    at_most: 0,
    ahead: 0,
    by_others: true,
    fsync: false,
    latest: "",
};

/// Greets both servers, which have the same keys then, and says what both answered.
fn greet(pair: &mut Pair, client: Client) -> String {
    let now: i64 = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros().try_into().unwrap();
    let flag = |is: bool| if is { "1" } else { "0" };
    let args = [
        "m",
        client.terms,
        "9000000000000",
        client.trusts,
        &client.at_most.to_string(),
        &(now + client.ahead).to_string(),
        flag(client.fsync),
        client.latest,
        flag(client.by_others),
    ];
    let args = args.map(str::to_owned).to_vec();
    let (embedded, real) = pair.ask(&HELLO, &[Request::Script(Vec::new(), args)]).remove(0);
    let (what, embedded_what) = (kind(&real), kind(&embedded));
    let is_same = if what.starts_with("CLOCK") { embedded_what == what } else { same(&embedded, &real) };
    assert!(is_same, "embedded {embedded:?}\nreal     {real:?}");
    pair.compare_keys(&HELLO);
    what
}

/// What an answer says. That of a wrong clock says by how much, which is not the same twice.
fn kind(answer: &Resp) -> String {
    let Resp::List(items) = answer else { return format!("{answer:?}") };
    let text = |i: usize| match &items[i] {
        Resp::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?}"),
    };
    match &*text(0) {
        "welcome" if text(2) == "0" => format!("{}, votes", text(4)),
        "welcome" => text(4),
        _ if text(1).contains(" s ahead of the others") => "CLOCK, ahead".to_owned(),
        _ => text(1).split(' ').next().unwrap().to_owned(),
    }
}

/// Both servers, as one and the same process.
fn pair() -> Pair {
    let mut pair = Pair::start();
    let info: String = pair.server.command(&["INFO", "server"]);
    let run_id = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
    pair.embedded.restart(run_id, Restart::Empty);
    pair.ask(&HELLO, &[command(&["FLUSHALL"])]);
    pair
}

/// Puts a marker on both, or takes it away.
fn mark(pair: &mut Pair, marker: Option<&str>) {
    let words = match marker {
        Some(marker) => command(&["SET", "m", marker]),
        None => command(&["DEL", "m"]),
    };
    pair.ask(&HELLO, &[words]);
}

#[test]
fn a_master_is_new_or_known_or_restarted_and_trusted_as_the_client_says() {
    let mut pair = pair();
    let trusting = |trusts| Client { trusts, ..CLIENT };
    assert_eq!(greet(&mut pair, CLIENT), "new");
    assert_eq!(greet(&mut pair, CLIENT), "known", "and it has no vote yet");
    assert_eq!(greet(&mut pair, trusting("none")), "known", "what was found once is not lifted");
    let fsync = Client { fsync: true, ..trusting("fsync") };
    let old = trusting("uptime");
    let young = Client { at_most: 1_000_000, ..old };
    let seen = |client| Client { latest: "0", ..client };
    for (client, new, restarted) in [
        (CLIENT, "new", "restarted"),
        (trusting("none"), "new, votes", "restarted, votes"),
        (fsync, "new, votes", "restarted"), // to the end of the quarantine that it had
        (seen(fsync), "new", "restarted"),
        (trusting("fsync"), "new", "restarted"),
        (old, "new, votes", "restarted"),
        (seen(old), "new", "restarted"),
        (young, "new", "restarted"),
    ] {
        mark(&mut pair, None);
        assert_eq!(greet(&mut pair, client), new);
        mark(&mut pair, Some(&format!("another|{NONE}|8888888888888888|its terms")));
        assert_eq!(greet(&mut pair, client), restarted);
    }
    mark(&mut pair, Some(&format!("another|{NONE}|0|its terms")));
    assert_eq!(greet(&mut pair, fsync), "restarted, votes");
}

#[test]
fn a_master_that_cannot_be_used_is_refused_and_keeps_what_it_has() {
    let mut pair = pair();
    assert_eq!(greet(&mut pair, Client { by_others: false, ..CLIENT }), "CLOCK");
    for (ahead, answer) in [(-600_000_000, "CLOCK, ahead"), (600_000_000, "CLOCK"), (0, "new")] {
        assert_eq!(greet(&mut pair, Client { ahead, ..CLIENT }), answer);
    }
    assert_eq!(greet(&mut pair, Client { terms: "others", ..CLIENT }), "DISAGREES");
    for marker in ["", "x", "a|0|b|its terms", "a|0|1", "||", "a|0|-1|its terms"] {
        mark(&mut pair, Some(marker));
        assert_eq!(greet(&mut pair, CLIENT), "WRONGTYPE", "{marker}");
    }
    mark(&mut pair, None);
    pair.ask(&HELLO, &[command(&["HSET", "m", "f", "v"])]);
    assert!(greet(&mut pair, CLIENT).contains("WRONGTYPE"), "the server's own words");
    mark(&mut pair, None);
    for (setting, answer) in [
        (&["CONFIG", "SET", "maxmemory", "1073741824"][..], "new"),
        (&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"], "EVICTS"),
        (&["CONFIG", "SET", "maxmemory", "0"], "known"),
        (&["REPLICAOF", "127.0.0.1", "1"], "REPLICA"),
    ] {
        pair.ask(&HELLO, &[command(setting)]);
        assert_eq!(greet(&mut pair, CLIENT), answer, "{setting:?}");
    }
}
