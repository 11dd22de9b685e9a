//! The handshake: whether a master may have forgotten what it granted, and for how long it has no
//! vote then.

use quorate_testkit::{Resp, Restart};

use super::lab::{Lab, MARKER, text};

super::scenarios! {
    &quorate::seam::HELLO;
    Real:
        a_new_master_has_no_vote_for_now,
        what_was_found_once_stays_until_it_is_over,
        a_master_that_restarted_has_no_vote_for_now,
        a_new_or_restarted_master_is_trusted_as_the_client_says,
        a_quarantine_is_measured_by_the_time_of_most_masters_alone,
        a_master_that_evicts_is_refused,
        a_replica_is_refused,
        a_marker_of_others_is_left_alone,
        a_key_that_is_no_marker_is_left_alone,
        a_master_that_was_a_replica_has_no_vote_for_now,
        a_master_whose_marker_a_client_saw_before_another_one_has_no_vote_for_now,
        a_master_with_an_earlier_end_than_a_client_saw_has_no_vote_for_now,
        a_welcome_always_writes;
    Exact:
        a_clock_may_be_a_second_off,
        uptime_counts_in_whole_seconds;
}

const TERMS: &str = "its terms";
const QUARANTINE: u64 = 60_000_000;

/// What a client tells of itself and of the master.
#[derive(Clone, Copy)]
struct Client {
    terms: &'static str,
    trusts: &'static str,
    /// The uptime that it trusts (s).
    at_most: u64,
    /// How far its clock is before the master's (us).
    ahead: i64,
    /// Whether that is the time of most masters.
    by_others: bool,
    fsync: bool,
    /// The latest end of a quarantine that it saw here, if it ever saw a marker.
    latest: Option<u64>,
    /// The markers that it saw before the last one.
    before: &'static [&'static str],
}

const CLIENT: Client = Client {
    terms: TERMS,
    trusts: "quarantine",
    at_most: 0,
    ahead: 0,
    by_others: true,
    fsync: false,
    latest: None,
    before: &[],
};

/// The second replication id of a server that never was a replica.
const NONE: &str = "0000000000000000000000000000000000000000";

/// The marker of another process, with this end.
fn of_another(until: u64) -> String {
    format!("another|{NONE}|{until}|{TERMS}")
}

/// A welcome: why, and until when there is no vote.
type Welcome = Result<(String, u64), String>;

fn greet(lab: &Lab<'_>, client: Client) -> Welcome {
    let before = lab.now();
    let time = before.checked_add_signed(client.ahead).unwrap();
    let flag = |is: bool| u8::from(is).to_string();
    let words = [
        MARKER.to_owned(),
        client.terms.to_owned(),
        QUARANTINE.to_string(),
        client.trusts.to_owned(),
        client.at_most.to_string(),
        time.to_string(),
        flag(client.fsync),
        client.latest.map_or(String::new(), |latest| latest.to_string()),
        flag(client.by_others),
    ];
    let words: Vec<String> =
        words.into_iter().chain(client.before.iter().map(|&marker| marker.to_owned())).collect();
    let reply = lab.eval(&[], &words);
    let Resp::List(items) = &reply else { panic!("{reply:?}") };
    let words: Vec<String> = items.iter().map(text).collect();
    let time = match &*words[0] {
        "welcome" => &words[3],
        _ => &words[2],
    };
    assert!((before..=lab.now()).contains(&time.parse().unwrap()), "{reply:?}");
    match &*words[0] {
        "welcome" => {
            assert_eq!(words.len(), 5);
            assert_eq!(marker(lab).as_ref(), Some(&words[1]));
            let parts: Vec<&str> = words[1].splitn(4, '|').collect();
            let (run_id, replid2) = (info(lab, "run_id"), info(lab, "master_replid2"));
            assert_eq!(parts, [&run_id, &replid2, &*words[2], client.terms]);
            Ok((words[4].clone(), words[2].parse().unwrap()))
        }
        _ => {
            assert_eq!((&*words[0], words.len()), ("refused", 3));
            Err(words[1].clone())
        }
    }
}

fn marker(lab: &Lab<'_>) -> Option<String> {
    match lab.command(&["GET", MARKER]) {
        Resp::Nil => None,
        reply => Some(text(&reply)),
    }
}

fn info(lab: &Lab<'_>, field: &str) -> String {
    let info = text(&lab.command(&["INFO"]));
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| *name == field).unwrap().1.to_owned()
}

fn mark(lab: &Lab<'_>, marker: &str) {
    lab.command(&["DEL", MARKER]);
    if !marker.is_empty() {
        lab.command(&["SET", MARKER, marker]);
    }
}

/// Checks that it is welcome for this reason, and has no vote for a quarantine from now on.
fn assert_quarantined(lab: &Lab<'_>, client: Client, why: &str) {
    let before = lab.now() + QUARANTINE;
    let (said, until) = greet(lab, client).unwrap();
    assert_eq!(said, why);
    assert!((before..=lab.now() + QUARANTINE).contains(&until), "{until}");
}

/// Checks the first word of a refusal, and that the marker stays as it is.
fn assert_refused(lab: &Lab<'_>, client: Client, why: &str) {
    let before = marker(lab);
    let refused = greet(lab, client).unwrap_err();
    assert_eq!(refused.split(' ').next(), Some(why), "{refused}");
    assert_eq!(marker(lab), before);
}

fn votes(why: &str) -> Welcome {
    Ok((why.to_owned(), 0))
}

fn a_new_master_has_no_vote_for_now(lab: &Lab<'_>) {
    mark(lab, "");
    assert_quarantined(lab, CLIENT, "new");
    assert_eq!(lab.command(&["PTTL", MARKER]), Resp::Int(-1), "it never expires");
}

fn what_was_found_once_stays_until_it_is_over(lab: &Lab<'_>) {
    mark(lab, "");
    let (_, until) = greet(lab, CLIENT).unwrap();
    for trusts in ["quarantine", "uptime", "fsync", "none"] {
        let client = Client { trusts, fsync: true, latest: Some(0), ..CLIENT };
        assert_eq!(greet(lab, client), Ok(("known".to_owned(), until)), "{trusts}");
    }
}

fn a_master_that_restarted_has_no_vote_for_now(lab: &Lab<'_>) {
    for marker in [of_another(0), of_another(9_999_999_999_999_999), format!("|{NONE}|0|its terms")] {
        mark(lab, &marker);
        assert_quarantined(lab, CLIENT, "restarted");
    }
    if let Some(server) = lab.within() {
        server.restart("next", Restart::Whole);
        assert_quarantined(lab, CLIENT, "restarted");
        server.restart("last", Restart::Empty);
        assert_quarantined(lab, CLIENT, "new");
    }
}

fn a_new_or_restarted_master_is_trusted_as_the_client_says(lab: &Lab<'_>) {
    let seen = |client| Client { latest: Some(0), ..client };
    let none = Client { trusts: "none", ..CLIENT };
    let fsync = Client { trusts: "fsync", fsync: true, ..CLIENT };
    let uptime = Client { trusts: "uptime", ..CLIENT };
    for client in [none, seen(none), fsync, uptime] {
        mark(lab, "");
        assert_eq!(greet(lab, client), votes("new"), "{}", client.trusts);
    }
    let young = Client { at_most: 1_000_000, ..uptime };
    let not_fsync = Client { fsync: false, ..fsync };
    let by_the_way = Client { fsync: true, ..CLIENT };
    for client in [seen(fsync), seen(uptime), young, not_fsync, by_the_way] {
        mark(lab, "");
        assert_quarantined(lab, client, "new");
    }
    for client in [none, fsync, seen(fsync)] {
        mark(lab, &of_another(0));
        assert_eq!(greet(lab, client), votes("restarted"), "{}", client.trusts);
    }
    for client in [uptime, not_fsync, by_the_way] {
        mark(lab, &of_another(0));
        assert_quarantined(lab, client, "restarted");
    }
    mark(lab, &of_another(9_999_999_999_999_999));
    let welcome = greet(lab, fsync);
    assert_eq!(welcome, Ok(("restarted".to_owned(), 9_999_999_999_999_999)), "what it knew it still knows");
}

fn a_quarantine_is_measured_by_the_time_of_most_masters_alone(lab: &Lab<'_>) {
    let alone = Client { by_others: false, ..CLIENT };
    for marker in [String::new(), of_another(0)] {
        mark(lab, &marker);
        assert_refused(lab, alone, "CLOCK");
        assert_refused(lab, Client { trusts: "fsync", ..alone }, "CLOCK");
        assert!(greet(lab, Client { trusts: "none", ..alone }).is_ok(), "there is nothing to measure");
        assert_eq!(greet(lab, alone), votes("known"), "nor here");
    }
}

fn a_master_that_evicts_is_refused(lab: &Lab<'_>) {
    mark(lab, "");
    lab.command(&["CONFIG", "SET", "maxmemory", "1073741824"]);
    assert_quarantined(lab, CLIENT, "new");
    lab.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    assert_refused(lab, CLIENT, "EVICTS");
    lab.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(greet(lab, CLIENT).is_ok());
}

fn a_replica_is_refused(lab: &Lab<'_>) {
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]); // nobody is there
    assert_refused(lab, CLIENT, "REPLICA");
}

fn a_marker_of_others_is_left_alone(lab: &Lab<'_>) {
    let run_id = info(lab, "run_id");
    for marker in [format!("{run_id}|{NONE}|0|other terms"), format!("another|{NONE}|0|other terms")] {
        mark(lab, &marker);
        assert_refused(lab, CLIENT, "DISAGREES");
    }
}

fn a_key_that_is_no_marker_is_left_alone(lab: &Lab<'_>) {
    for wrong in ["x", "a|0|its terms", "a|0|b|its terms", "a|0|1", "||", "a|0|-1|its terms"] {
        mark(lab, wrong);
        assert_refused(lab, CLIENT, "WRONGTYPE");
    }
    lab.command(&["SET", MARKER, ""]);
    assert_refused(lab, CLIENT, "WRONGTYPE");
    lab.command(&["DEL", MARKER]);
    lab.command(&["HSET", MARKER, "no", "marker"]);
    let words = [MARKER, TERMS, "1", "none", "1", &lab.now().to_string(), "0", "", "1"];
    let reply = lab.eval(&[], &words.map(str::to_owned));
    assert!(matches!(&reply, Resp::Error(text) if text.starts_with("WRONGTYPE")), "{reply:?}");
}

/// A process that became a replica and a master again has the keys of that one. The second
/// replication id tells; when that is forgotten in time, nothing else is.
fn a_master_that_was_a_replica_has_no_vote_for_now(lab: &Lab<'_>) {
    mark(lab, "");
    let none = Client { trusts: "none", ..CLIENT };
    assert_eq!(greet(lab, none), votes("new"));
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]);
    lab.command(&["REPLICAOF", "NO", "ONE"]);
    let fsync = Client { trusts: "fsync", fsync: true, ..CLIENT };
    assert_quarantined(lab, fsync, "restarted");
    let (run_id, replid2) = (info(lab, "run_id"), info(lab, "master_replid2"));
    assert_ne!(replid2, NONE);
    for (theirs, is_known) in [(&*replid2, true), (NONE, false), ("4f", false)] {
        mark(lab, &format!("{run_id}|{theirs}|0|{TERMS}"));
        assert_eq!(greet(lab, none), votes(if is_known { "known" } else { "restarted" }));
    }
    mark(lab, &format!("another|4f|0|{TERMS}"));
    assert_quarantined(lab, fsync, "restarted");
    if let Some(server) = lab.within() {
        server.restart("another", Restart::Whole);
        mark(lab, &format!("another|4f|0|{TERMS}"));
        assert_eq!(greet(lab, CLIENT), votes("known"), "it was forgotten in time");
    }
}

/// Its address led to another server for a while, or it has older keys.
fn a_master_whose_marker_a_client_saw_before_another_one_has_no_vote_for_now(lab: &Lab<'_>) {
    let none = Client { trusts: "none", ..CLIENT };
    mark(lab, "");
    greet(lab, none).unwrap();
    let its: &'static str = marker(lab).unwrap().leak();
    let before: &'static [&'static str] = vec![its, "x"].leak();
    let fsync = Client { trusts: "fsync", fsync: true, latest: Some(0), ..CLIENT };
    assert_eq!(greet(lab, Client { before: &["x"], ..fsync }), votes("known"));
    assert_quarantined(lab, Client { before, ..fsync }, "restarted");
    assert_ne!(marker(lab).as_deref(), Some(its));
}

fn a_master_with_an_earlier_end_than_a_client_saw_has_no_vote_for_now(lab: &Lab<'_>) {
    mark(lab, "");
    let (_, until) = greet(lab, CLIENT).unwrap();
    let latest = |latest| Client { trusts: "fsync", fsync: true, latest: Some(latest), ..CLIENT };
    assert_eq!(greet(lab, latest(until)), Ok(("known".to_owned(), until)));
    assert_quarantined(lab, latest(until + 1), "restarted");
    mark(lab, &of_another(until));
    assert_quarantined(lab, latest(until + 1), "restarted");
}

/// A replica that says it is a master cannot answer.
fn a_welcome_always_writes(lab: &Lab<'_>) {
    mark(lab, "");
    greet(lab, CLIENT).unwrap();
    lab.command(&["ACL", "SETUSER", "default", "-set"]);
    let words = [MARKER, TERMS, "1", "none", "1", &lab.now().to_string(), "0", "", "1"];
    let reply = lab.eval(&[], &words.map(str::to_owned));
    assert!(matches!(&reply, Resp::Error(_)), "{reply:?}");
}

fn a_clock_may_be_a_second_off(lab: &Lab<'_>) {
    mark(lab, "");
    for ahead in [-1_000_001, 1_000_001] {
        assert_refused(lab, Client { ahead, ..CLIENT }, "CLOCK");
    }
    for (ahead, why) in [(-3_600_500_000, "ahead of"), (3_600_500_000, "behind")] {
        let refused = greet(lab, Client { ahead, ..CLIENT }).unwrap_err();
        assert_eq!(refused, format!("CLOCK its clock is 3600.500 s {why} the others"));
    }
    for ahead in [-1_000_000, 1_000_000] {
        assert!(greet(lab, Client { ahead, ..CLIENT }).is_ok());
    }
}

fn uptime_counts_in_whole_seconds(lab: &Lab<'_>) {
    let client = Client { trusts: "uptime", at_most: 10, ..CLIENT };
    lab.pass(9_999_999);
    mark(lab, "");
    assert_quarantined(lab, client, "new");
    lab.pass(1);
    mark(lab, "");
    assert_eq!(greet(lab, client), votes("new"));
}
