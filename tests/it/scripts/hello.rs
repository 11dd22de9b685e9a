//! The first script of the handshake: what a master tells of itself, and when it cannot be used.

use quorate_testkit::{Resp, Restart};

use super::lab::{Lab, RECORD, text};

super::scenarios! {
    &quorate::seam::HELLO;
    Real:
        a_master_tells_its_process_and_its_history,
        a_master_tells_its_record_as_it_is,
        a_master_tells_whose_promises_it_knows,
        a_master_that_was_a_replica_tells_another_history,
        a_master_that_evicts_is_refused,
        a_replica_is_refused,
        a_key_that_is_no_hash_is_an_error,
        a_full_master_answers,
        an_answer_proves_that_the_master_takes_writes;
    Exact:
        a_clock_may_be_a_second_off;
}

/// The second replication id of a server that never was a replica.
const NONE: &str = "0000000000000000000000000000000000000000";

/// The key of the decree.
const DECREE: &str = "decree";

/// What a master told.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    run_id: String,
    replid2: String,
    decree: String,
    fields: Vec<String>,
}

/// Asks as a client whose clock is so far (us) ahead of the master's. Whatever is answered, nothing
/// changes.
fn greet(lab: &Lab<'_>, ahead: i64) -> Result<Told, String> {
    let (before, state) = (lab.now(), state(lab));
    let time = before.checked_add_signed(ahead).unwrap().to_string();
    let reply = lab.eval(&[], &[RECORD.to_owned(), time, DECREE.to_owned()]);
    let Resp::List(items) = &reply else { panic!("{reply:?}") };
    let words: Vec<String> = items.iter().map(text).collect();
    assert_eq!(self::state(lab), state);
    let (time, told) = match &*words[0] {
        "master" => {
            let [run_id, replid2, decree] = [2, 3, 4].map(|place| words[place].clone());
            (&words[1], Ok(Told { run_id, replid2, decree, fields: words[5..].to_vec() }))
        }
        _ => {
            assert_eq!((&*words[0], words.len()), ("refused", 3));
            (&words[2], Err(words[1].clone()))
        }
    };
    assert!((before..=lab.now()).contains(&time.parse().unwrap()), "{reply:?}");
    told
}

/// All keys, and the record, with its life.
fn state(lab: &Lab<'_>) -> [Resp; 3] {
    [&["KEYS", "*"][..], &["HGETALL", RECORD], &["PTTL", RECORD]].map(|words| lab.command(words))
}

fn info(lab: &Lab<'_>, field: &str) -> String {
    let info = text(&lab.command(&["INFO"]));
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| *name == field).unwrap().1.to_owned()
}

/// Checks the first word of a refusal.
fn assert_refused(lab: &Lab<'_>, why: &str) {
    let refused = greet(lab, 0).unwrap_err();
    assert_eq!(refused.split(' ').next(), Some(why), "{refused}");
}

fn a_master_tells_its_process_and_its_history(lab: &Lab<'_>) {
    let told = greet(lab, 0).unwrap();
    let run_id = info(lab, "run_id");
    let decree = String::new();
    assert_eq!(told, Told { run_id, replid2: NONE.to_owned(), decree, fields: Vec::new() });
    if let Some(server) = lab.within() {
        server.restart("another", Restart::Whole);
        assert_eq!(greet(lab, 0).unwrap().run_id, "another");
    }
}

fn a_master_tells_its_record_as_it_is(lab: &Lab<'_>) {
    let fields = ["stamp", "one", "members", "1 redis://a\n2 redis://b", "empty", ""];
    lab.command(&[&["HSET", RECORD][..], &fields].concat());
    assert_eq!(greet(lab, 0).unwrap().fields, fields);
}

fn a_master_tells_whose_promises_it_knows(lab: &Lab<'_>) {
    lab.command(&["HSET", DECREE, "incarnation", "one", "generation", "1"]);
    assert_eq!(greet(lab, 0).unwrap().decree, "one");
}

/// It has the keys of the server whose replica it was.
fn a_master_that_was_a_replica_tells_another_history(lab: &Lab<'_>) {
    let before = greet(lab, 0).unwrap();
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]);
    lab.command(&["REPLICAOF", "NO", "ONE"]);
    let after = greet(lab, 0).unwrap();
    assert_eq!((after.run_id, &*after.replid2), (before.run_id, &*info(lab, "master_replid2")));
    assert_ne!(after.replid2, NONE);
}

fn a_master_that_evicts_is_refused(lab: &Lab<'_>) {
    lab.command(&["CONFIG", "SET", "maxmemory", "1073741824"]);
    assert!(greet(lab, 0).is_ok());
    lab.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    assert_refused(lab, "EVICTS");
    lab.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(greet(lab, 0).is_ok());
}

fn a_replica_is_refused(lab: &Lab<'_>) {
    lab.command(&["HSET", RECORD, "stamp", "one"]);
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]); // nobody is there
    assert_refused(lab, "REPLICA");
}

fn a_key_that_is_no_hash_is_an_error(lab: &Lab<'_>) {
    lab.command(&["SET", RECORD, "x"]);
    let reply = lab.eval(&[], &[RECORD.to_owned(), lab.now().to_string(), DECREE.to_owned()]);
    assert!(matches!(&reply, Resp::Error(text) if text.starts_with("WRONGTYPE")), "{reply:?}");
}

fn a_full_master_answers(lab: &Lab<'_>) {
    lab.command(&["HSET", RECORD, "stamp", "one"]);
    lab.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(greet(lab, 0).unwrap().fields, ["stamp", "one"]);
}

/// Nor can a replica answer that says it is a master.
fn an_answer_proves_that_the_master_takes_writes(lab: &Lab<'_>) {
    let others = ["-hset", "-set", "-del", "-pexpire"];
    lab.command(&[&["ACL", "SETUSER", "default"][..], &others].concat());
    assert!(greet(lab, 0).is_ok());
    lab.command(&["ACL", "SETUSER", "default", "-hdel"]);
    let reply = lab.eval(&[], &[RECORD.to_owned(), lab.now().to_string(), DECREE.to_owned()]);
    assert!(matches!(&reply, Resp::Error(_)), "{reply:?}");
}

fn a_clock_may_be_a_second_off(lab: &Lab<'_>) {
    for (ahead, way) in [(-3_600_500_000, "ahead of"), (3_600_500_000, "behind")] {
        let refused = greet(lab, ahead).unwrap_err();
        assert_eq!(refused, format!("CLOCK its clock is 3600.500 s {way} the others"));
    }
    for ahead in [-1_000_001, 1_000_001] {
        assert!(greet(lab, ahead).unwrap_err().starts_with("CLOCK "));
    }
    for ahead in [-1_000_000, 1_000_000] {
        assert!(greet(lab, ahead).is_ok());
    }
}
