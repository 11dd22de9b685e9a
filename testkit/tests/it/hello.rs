//! The scripts of the handshake on both servers: what they answer, and what record they leave.

use std::time::SystemTime;

use quorate::seam::{HELLO, RECORD};
use quorate_testkit::{Resp, Restart};

use crate::operations::Request;
use crate::pair::{Pair, command, same};

/// The key of the record.
const KEY: &str = "master";

/// What a client writes of a record.
const FIELDS: &[&str] = &["stamp", "one", "members", "1 redis://a\n2 redis://b"];

/// What a client writes.
#[derive(Clone, Copy)]
struct Write {
    seen: &'static str,
    /// The run id and the second replication id that it saw; without one, those that are there.
    run_id: Option<&'static str>,
    replid2: Option<&'static str>,
    /// How far T is ahead of the servers' clocks (us).
    ahead: i64,
    pause: &'static str,
    least: &'static str,
    fields: &'static [&'static str],
}

const FIRST: Write =
    Write { seen: "", run_id: None, replid2: None, ahead: 0, pause: "34300000", least: "0", fields: FIELDS };

/// The time by a clock that is so far ahead of the servers' (us).
fn time(ahead: i64) -> String {
    let now: i64 = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros().try_into().unwrap();
    (now + ahead).to_string()
}

/// Runs a script on both servers, which answer the same, and have the same keys then. Tells the
/// first word of the reply, of a refusal the first of its error, and an error as it is.
fn run(pair: &mut Pair, script: &quorate::seam::Script, args: &[&str]) -> String {
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    let (embedded, real) = pair.ask(script, &[Request::Script(Vec::new(), args)]).remove(0);
    let (what, embedded_what) = (kind(&real), kind(&embedded));
    let is_same = if what.starts_with("CLOCK") { embedded_what == what } else { same(&embedded, &real) };
    assert!(is_same, "embedded {embedded:?}\nreal     {real:?}");
    pair.compare_keys(script);
    what
}

/// Says hello with a clock that is so far ahead (us).
fn greet(pair: &mut Pair, ahead: i64) -> String {
    run(pair, &HELLO, &[KEY, &time(ahead), "decree"])
}

fn write(pair: &mut Pair, write: Write) -> String {
    let info: String = pair.server.command(&["INFO"]);
    let of_info = |field: &str| field_of(&info, field).to_owned();
    let run_id = write.run_id.map_or_else(|| of_info("run_id"), str::to_owned);
    let replid2 = write.replid2.map_or_else(|| of_info("master_replid2"), str::to_owned);
    let time = time(write.ahead);
    let head = [KEY, write.seen, &run_id, &replid2, &time, write.pause, write.least];
    let decree = ["decree", write.seen, "1", "7", "", ""];
    run(pair, &RECORD, &[&head[..], &decree, write.fields].concat())
}

/// A field of what INFO says.
fn field_of<'a>(info: &'a str, field: &str) -> &'a str {
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| *name == field).unwrap().1
}

/// What an answer says. That of a wrong clock says by how much, which is not the same twice.
fn kind(answer: &Resp) -> String {
    let Resp::List(items) = answer else { return format!("{answer:?}") };
    let text = |i: usize| match &items[i] {
        Resp::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?}"),
    };
    match &*text(0) {
        "refused" if text(1).contains(" s ahead of the others") => "CLOCK, ahead".to_owned(),
        "refused" => text(1).split(' ').next().unwrap().to_owned(),
        "master" => format!("master, {} words", items.len()),
        other => other.to_owned(),
    }
}

/// Both servers, as one and the same process.
fn pair() -> Pair {
    of_one_run_id(Pair::start())
}

fn of_one_run_id(mut pair: Pair) -> Pair {
    let info: String = pair.server.command(&["INFO", "server"]);
    pair.embedded.restart(field_of(&info, "run_id"), Restart::Empty);
    ask(&mut pair, &["FLUSHALL"]);
    pair
}

fn ask(pair: &mut Pair, words: &[&str]) {
    pair.ask(&HELLO, &[command(words)]);
}

#[test]
fn a_record_is_written_and_told_as_it_is() {
    let mut pair = pair();
    assert_eq!(greet(&mut pair, 0), "master, 5 words");
    let another = Some("another");
    for other in [
        Write { seen: "one", ..FIRST },
        Write { run_id: another, ..FIRST },
        Write { replid2: another, ..FIRST },
    ] {
        assert_eq!(write(&mut pair, other), "changed");
    }
    assert_eq!(write(&mut pair, FIRST), "written");
    assert_eq!(greet(&mut pair, 0), "master, 15 words");
    assert_eq!(write(&mut pair, FIRST), "changed");
    let next = Write { seen: "one", ..FIRST };
    for (pause, least) in
        [("", "0"), ("", "7"), ("0", "0"), ("0", "7"), ("0", "9000000000000000"), ("4000000", "0")]
    {
        assert_eq!(write(&mut pair, Write { pause, least, ..next }), "written");
    }
    let more = &["stamp", "two", "state", "member", "more", ""];
    assert_eq!(write(&mut pair, Write { fields: more, ..next }), "written");
    assert_eq!(greet(&mut pair, 0), "master, 19 words");
    assert_eq!(write(&mut pair, next), "changed");
    let last = Write { seen: "two", ..FIRST };
    assert_eq!(write(&mut pair, Write { run_id: another, ..last }), "changed");
    assert_eq!(write(&mut pair, Write { replid2: another, ..last }), "changed");
    for ahead in [-5_000_000, 5_000_000] {
        assert_eq!(write(&mut pair, Write { pause: "0", ahead, ..last }), "changed");
        assert_eq!(write(&mut pair, Write { ahead, ..last }), "changed");
    }
    assert_eq!(write(&mut pair, last), "written");
}

#[test]
fn what_cannot_be_written_is_not() {
    let mut pair = pair();
    let fails = |pair: &mut Pair, how: Write, why: &str| {
        let said = write(pair, how);
        assert!(said.starts_with("Error(") && said.contains(why), "{said}");
    };
    fails(&mut pair, Write { pause: "", ..FIRST }, "must be strings or integers");
    fails(&mut pair, Write { fields: &["stamp"], ..FIRST }, "wrong number of arguments");
    ask(&mut pair, &["CONFIG", "SET", "maxmemory", "1"]);
    fails(&mut pair, FIRST, "OOM");
    assert_eq!(greet(&mut pair, 0), "master, 5 words");
    ask(&mut pair, &["CONFIG", "SET", "maxmemory", "0"]);
    ask(&mut pair, &["HSET", KEY, "no", "record"]);
    assert_eq!(write(&mut pair, FIRST), "changed");
    ask(&mut pair, &["SET", KEY, "no record"]);
    fails(&mut pair, FIRST, "WRONGTYPE");
    assert!(greet(&mut pair, 0).contains("WRONGTYPE"), "the server's own words");
    ask(&mut pair, &["DEL", KEY]);
    ask(&mut pair, &["REPLICAOF", "127.0.0.1", "1"]);
    fails(&mut pair, FIRST, "READONLY");
}

#[test]
fn a_master_that_cannot_be_used_is_refused() {
    let mut pair = pair();
    assert_eq!(write(&mut pair, FIRST), "written");
    for (ahead, answer) in [(-600_000_000, "CLOCK, ahead"), (600_000_000, "CLOCK"), (0, "master, 15 words")] {
        assert_eq!(greet(&mut pair, ahead), answer);
    }
    for (setting, answer) in [
        (&["CONFIG", "SET", "maxmemory", "1073741824"][..], "master, 15 words"),
        (&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"], "EVICTS"),
        (&["CONFIG", "SET", "maxmemory", "0"], "master, 15 words"),
        (&["REPLICAOF", "127.0.0.1", "1"], "REPLICA"),
    ] {
        ask(&mut pair, setting);
        assert_eq!(greet(&mut pair, 0), answer, "{setting:?}");
    }
}

#[test]
fn a_user_without_the_rights_is_refused() {
    let Some(mut pair) = Pair::of_the_same_words().map(of_one_run_id) else { return };
    assert_eq!(write(&mut pair, FIRST), "written");
    ask(&mut pair, &["ACL", "SETUSER", "default", "-hdel"]);
    let said = greet(&mut pair, 0);
    assert!(said.starts_with("Error(") && said.contains("can't run this command"), "{said}");
}
