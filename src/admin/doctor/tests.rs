//! What follows from the facts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts::{ClockLook, FoundRecord, Server};
use super::*;
use crate::set::{MasterRecord, Terms};
use crate::time::Moment;
use crate::vote::Refusal;
use crate::wire::{Failure, Info, PROTOCOL, Value};

const NOW: u64 = 1_790_000_000_000_000;

const INFO: &str = "redis_version:7.4.1\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid2:0000\r\n\
                    maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n";

fn visitor() -> Visitor {
    let max_ttl = Duration::from_secs(30);
    let terms =
        Terms { record: "quorate:master".into(), decree: "quorate:decree".into(), max_ttl, all_new: false };
    let timeout = Duration::from_millis(250);
    Visitor { terms, prefix: "quorate:".into(), quorum: 2, left: vec![], timeout, wall_ahead: NOW as i64 }
}

/// A look that took so long (ms), at a clock that is ahead by as much as `ahead` (ms).
fn look(took: u64, ahead: i64) -> ClockLook {
    let at = |ms| Moment::from_origin(Duration::from_millis(ms));
    let time = (NOW + 1_000_000 + took * 500).saturating_add_signed(ahead * 1000);
    ClockLook { asked: at(1000), answered: at(1000 + took), time }
}

/// A good record of one of three masters, except for these fields.
fn record(index: usize, changes: &[(&'static str, &str)]) -> FoundRecord {
    let mut fields = BTreeMap::from([
        ("set", "5e7".to_owned()),
        ("member", (index + 1).to_string()),
        ("members", "1 m0\n2 m1\n3 m2".to_owned()),
        ("incarnation", format!("incarnation{index}")),
        ("run_id", format!("run{index}")),
        ("replid2", "0000".to_owned()),
        ("stamp", format!("stamp{index}")),
        ("quarantine", "0".to_owned()),
        ("generation", "0".to_owned()),
        ("protocol", PROTOCOL.to_owned()),
        ("max_ttl", "30000".to_owned()),
        ("earlier", String::new()),
        ("state", "member".to_owned()),
    ]);
    fields.extend(changes.iter().map(|&(field, value)| (field, value.to_owned())));
    let words = fields.into_iter().flat_map(|(field, value)| [field.to_owned(), value]);
    let words: Vec<Value> = words.map(|word| Value::Text(word.into())).collect();
    FoundRecord::Read(Box::new(MasterRecord::read(&words).unwrap()))
}

/// The end of a quarantine that lasts for so long (ms) yet.
fn ends_in(ms: u64) -> String {
    (look(2, 0).time + ms * 1000).to_string()
}

fn server(index: usize) -> Server {
    Server {
        info: Info(format!("{INFO}run_id:run{index}\r\n")),
        record: record(index, &[]),
        round_trips: vec![Duration::from_millis(1); 5],
        looks: vec![look(2, 0)],
        ..Server::default()
    }
}

/// These masters, each in its place.
fn judged_all(visitor: &Visitor, servers: impl IntoIterator<Item = Result<Server, Unasked>>) -> Report {
    let facts = |(index, server): (usize, Result<Server, Unasked>)| Facts {
        master: format!("m{index}").into(),
        server: server.map(Box::new),
    };
    judge(&servers.into_iter().enumerate().map(facts).collect::<Vec<_>>(), visitor)
}

/// Three masters without a fault, and then a change of the first.
fn judged(visitor: &Visitor, change: impl FnOnce(&mut Server)) -> Report {
    let mut servers = [0, 1, 2].map(server);
    change(&mut servers[0]);
    judged_all(visitor, servers.map(Ok))
}

/// Three masters with these records.
fn judged_by_records(records: [FoundRecord; 3]) -> Report {
    let servers = records.into_iter().enumerate();
    judged_all(&visitor(), servers.map(|(index, record)| Ok(Server { record, ..server(index) })))
}

/// What was found about one thing on one master.
#[track_caller]
fn found_on<'a>(report: &'a Report, index: usize, about: &str) -> &'a Finding {
    let mut findings = report.masters[index].findings.iter().filter(|finding| finding.about == about);
    findings.next().unwrap_or_else(|| panic!("nothing about {about}: {report}"))
}

/// What was found about one thing on all of them.
#[track_caller]
fn found_together<'a>(report: &'a Report, about: &str) -> &'a Finding {
    let mut findings = report.together.iter().filter(|finding| finding.about == about);
    findings.next().unwrap_or_else(|| panic!("nothing about {about}: {report}"))
}

#[track_caller]
fn assert_says(finding: &Finding, severity: Severity, parts: &[&str]) {
    assert_eq!(finding.severity, severity, "{finding}");
    let text = finding.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
    assert_eq!(finding.fix.is_some(), severity > Severity::Ok, "{finding}");
}

#[track_caller]
fn assert_found(report: &Report, about: &str, severity: Severity, parts: &[&str]) {
    assert_says(found_on(report, 0, about), severity, parts);
}

fn secs(seconds: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(seconds))
}

#[test]
fn where_all_is_well_all_can_vote() {
    let report = judged(&visitor(), |_| {});
    assert_eq!(
        (report.severity(), report.can_vote(), report.has_quorum()),
        (Severity::Ok, 3, true),
        "{report}"
    );
    assert_eq!(report.masters[0].round_trip, Some(Duration::from_millis(1)));
    assert_eq!(report.masters[0].clock_ahead, Some(0));
    assert_found(&report, "record", Severity::Ok, &["member 1 of 3: it remembers what it granted"]);
    assert_found(
        &report,
        "persistence",
        Severity::Ok,
        &["an append-only file: if it restarts, it has no vote for 34.3 s"],
    );
    let set = "5e7: 3 masters, protocol v2 and a max TTL of 30000 ms";
    assert_eq!(found_together(&report, "set").what, set.replace("v2", PROTOCOL));
    let last = report.together.last().unwrap();
    assert_eq!((last.about, &*last.what), ("quorum", "3 of 3 masters can vote, and a quorum is 2"));
    assert!(report.to_string().starts_with("ok    m0           reach: round trip 1.0 ms"), "{report}");
}

type Change = fn(&mut Server);

/// Each change of the first master costs its vote, and is found with these words.
fn assert_costs_the_vote(cases: &[(&str, Change, &[&str])]) {
    for (about, change, parts) in cases {
        let report = judged(&visitor(), *change);
        assert_found(&report, about, Severity::Fail, parts);
        assert_eq!(report.masters[0].votes_in, None, "{about}");
        assert_eq!((report.can_vote(), report.has_quorum()), (2, true), "{about}");
        let verdict = report.together.last().unwrap();
        assert!(
            verdict.severity == Severity::Warn && verdict.what.contains("no other may fail"),
            "{verdict}"
        );
    }
}

#[test]
fn what_a_client_would_be_refused_for_costs_the_vote() {
    assert_costs_the_vote(&[
        (
            "role",
            |server| {
                server.info.0 =
                    server.info.0.replace("role:master", "role:slave\r\nmaster_host:h\r\nmaster_port:1")
            },
            &["slave of h:1", "REPLICAOF NO ONE"],
        ),
        (
            "version",
            |server| server.info.0 = server.info.0.replace("7.4.1", "6.2.14"),
            &["6.2.14", "Redis 7.0"],
        ),
        (
            "memory",
            |server| server.info.0 = server.info.0.replace("maxmemory:0", "maxmemory:2097152"),
            &["2.0 MiB", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction"],
        ),
        (
            "writes",
            |server| server.refuses_writes = Some("OOM command not allowed".into()),
            &["OOM", "maxmemory"],
        ),
        (
            "rights",
            |server| server.denied.commands = vec!["hset", "subscribe"],
            &["may not use hset", "ACL SETUSER USER +hset +subscribe"],
        ),
        (
            "commands",
            |server| server.denied.unknown = vec!["info", "subscribe"],
            &["it does not know info ->", "rename-command"],
        ),
        (
            "calls",
            |server| server.refuses_calls = Some("ERR unknown command 'EVAL'".into()),
            &["refused: ERR unknown command 'EVAL'", "use Redis 7.0"],
        ),
        (
            "rights",
            |server| server.denied.keys = true,
            &["the keys quorate:*", "ACL SETUSER USER ~quorate:*"],
        ),
        ("clock", |server| server.looks = vec![look(2, -3_000)], &["-3.000 s from the median", "NTP"]),
    ]);
}

#[test]
fn a_record_that_differs_costs_the_vote() {
    assert_costs_the_vote(&[
        (
            "record",
            |server| server.record = record(0, &[("max_ttl", "5000")]),
            &["a max TTL of 5000 ms, and this one has", "30000 ms", "-> use --max-ttl 5000ms, as they do"],
        ),
        (
            "record",
            |server| server.record = record(0, &[("max_ttl", "5000"), ("protocol", "v9")]),
            &["protocol v9", "-> use the version of the other clients and --max-ttl 5000ms"],
        ),
        (
            "record",
            |server| server.record = FoundRecord::Strange,
            &["the key quorate:master is no record that this version can read", "DEL quorate:master"],
        ),
        (
            "record",
            |server| server.record = FoundRecord::Unread("WRONGTYPE Operation against".into()),
            &["the key quorate:master is no record, but something else", "DEL quorate:master"],
        ),
    ]);
}

#[test]
fn of_one_server_under_two_names_the_first_has_the_vote() {
    let report = judged(&visitor(), |first| *first = server(1));
    assert_eq!((report.can_vote(), report.masters[1].votes_in), (2, None), "{report}");
    assert_says(found_on(&report, 1, "processes"), Severity::Fail, &["the same server as m0"]);
    assert!(report.masters[1].findings.iter().all(|finding| finding.about != "record"), "{report}");
    assert_eq!(found_together(&report, "processes").what, "3 masters are only 2 server processes");
}

#[test]
fn what_only_costs_something_is_a_warning() {
    let cases: [(&str, Change, &[&str]); 8] = [
        ("rights", |server| server.denied.commands = vec!["subscribe"], &["waiters poll", "+subscribe"]),
        ("rights", |server| server.denied.channels = true, &["waiters poll", "ACL SETUSER USER &quorate:*"]),
        ("rights", |server| server.denied.commands = vec!["get"], &["plain_mutex", "+get"]),
        (
            "rights",
            |server| server.denied.commands = vec!["client|tracking"],
            &["older copy", "+client|tracking"],
        ),
        (
            "role",
            |server| server.info.0 = server.info.0.replace("connected_slaves:0", "connected_slaves:2"),
            &[
                "2 replicas: if one is promoted",
                "two have its vote",
                "automatically",
                "min-replicas-to-write 1",
            ],
        ),
        ("clock", |server| server.looks = vec![look(2, 200)], &["+0.200 s", "NTP"]),
        (
            "reach",
            |server| server.round_trips = vec![Duration::from_millis(130); 5],
            &["130.0 ms", "--timeout"],
        ),
        (
            "persistence",
            |server| server.info.0 = server.info.0.replace("aof_enabled:1", "aof_enabled:0"),
            &["no append-only file", "no vote for 34.3 s", "lost its record", "appendonly yes"],
        ),
    ];
    for (about, change, parts) in cases {
        let report = judged(&visitor(), change);
        assert_found(&report, about, Severity::Warn, parts);
        assert_eq!((report.can_vote(), report.severity()), (3, Severity::Warn), "{about}");
    }
}

#[test]
fn a_slow_answer_does_not_make_a_clock_wrong() {
    let report = judged(&visitor(), |server| server.looks = vec![look(800, 300), look(900, 300)]);
    assert_found(&report, "clock", Severity::Ok, &["+0.300 s"]);
    let report = judged(&visitor(), |server| server.looks = vec![look(800, 300), look(4, 300)]);
    assert_found(&report, "clock", Severity::Fail, &["+0.300 s"]);
}

#[test]
fn a_host_whose_clock_is_off_is_told_so() {
    let visitor = Visitor { wall_ahead: NOW as i64 - 2_000_000, ..visitor() };
    let report = judged(&visitor, |_| {});
    assert_says(found_together(&report, "clocks"), Severity::Warn, &["-2.000 s", "NTP"]);
    assert!(report.has_quorum(), "the masters' clocks count");
}

/// A master that lost its record, one that restarted, one that was a replica, and one in
/// quarantine; and how long (s) it has no vote.
#[test]
fn a_master_that_may_have_forgotten_has_no_vote_for_as_long_as_a_client_would_give_it_none() {
    const LOST: &str = "it lost its record, and gets it back: it has no vote for 34.3 s from when";
    const RESTARTED: &str = "it restarted: it has no vote for";
    const COPIED: &str = "it took over the keys of another server, as its replica: it has no vote for 34.3 s";
    const FORGOT: &str =
        "it lost what it promised about the next change of its set: it has no vote for 34.3 s";
    const RUNS: &str = "member 1 of 3: it may have forgotten what it granted, and has no vote for 12.0 s";
    let lost = |server: &mut Server| server.record = FoundRecord::Absent;
    let restarted = |server: &mut Server| server.info.0 = server.info.0.replace("run0", "another");
    let copied = |server: &mut Server| server.info.0 = server.info.0.replace("replid2:0000", "replid2:4f");
    let promised_nothing = |server: &mut Server| server.decree = Some("".into());
    let replica = |server: &mut Server| {
        server.info.0 = server.info.0.replace("connected_slaves:0", "connected_slaves:1");
    };
    type Change<'a> = &'a dyn Fn(&mut Server);
    let cases: [(&[Change<'_>], f64, &str); 6] = [
        (&[&lost], 34.3, LOST),
        (&[&restarted], 34.3, RESTARTED),
        (&[&copied], 34.3, COPIED),
        (&[&promised_nothing], 34.3, FORGOT),
        (&[&replica], 0.0, "member 1 of 3: it remembers what it granted"),
        (&[], 12.0, RUNS),
    ];
    for (changes, wait, says) in cases {
        let mut servers = [0, 1, 2].map(server);
        let until = if says == RUNS { ends_in(12_000) } else { "0".to_owned() };
        for (index, server) in servers.iter_mut().enumerate() {
            let until = if index == 0 { &until } else { "0" };
            server.record = record(index, &[("quarantine", until)]);
        }
        changes.iter().for_each(|change| change(&mut servers[0]));
        let report = judged_all(&visitor(), servers.map(Ok));
        assert_eq!(report.masters[0].votes_in, secs(wait), "{says}: {report}");
        let severity = if wait > 0.0 { Severity::Warn } else { Severity::Ok };
        assert_found(&report, "record", severity, &[says]);
        assert_eq!(report.can_vote(), if wait > 0.0 { 2 } else { 3 }, "{says}");
    }
}

#[test]
fn without_a_set_there_is_no_vote_until_it_is_begun() {
    let absent = || FoundRecord::Absent;
    let report = judged_by_records([absent(), absent(), absent()]);
    for index in 0..3 {
        let says = ["it has no record of a set of masters -> `quorate init` begins one"];
        assert_says(found_on(&report, index, "record"), Severity::Fail, &says);
        assert_eq!(report.masters[index].votes_in, None);
    }
    let says = ["no master that answered has a record", "quorate init"];
    assert_says(found_together(&report, "set"), Severity::Fail, &says);
    assert_says(report.together.last().unwrap(), Severity::Fail, &["0 of 3", "no lock can be had ->"]);
    let away = || Err(Unasked::Silent(Duration::from_secs(1)));
    let report = judged_all(&visitor(), [Ok(Server { record: absent(), ..server(0) }), away(), away()]);
    let says = ["m1, which may have one, was not heard yet", "all masters answer"];
    assert_found(&report, "record", Severity::Warn, &says);
    assert_says(
        found_together(&report, "set"),
        Severity::Fail,
        &["no master that answered", "one may know the set"],
    );
    // A client whose masters are all new begins it by itself.
    let mut visitor = visitor();
    visitor.terms.all_new = true;
    let servers = [0, 1, 2].map(|index| Ok(Server { record: absent(), ..server(index) }));
    let report = judged_all(&visitor, servers);
    assert_eq!((report.can_vote(), report.severity()), (3, Severity::Ok), "{report}");
}

#[test]
fn a_beginning_that_is_under_way_says_for_how_long_yet() {
    let candidate = |index, ms| record(index, &[("state", "candidate"), ("quarantine", &ends_in(ms))]);
    let report = judged_by_records([candidate(0, 9_000), candidate(1, 12_000), candidate(2, 11_000)]);
    for index in 0..3 {
        let says = ["candidate: its set begins in 12.0 s", "quorate init"];
        assert_says(found_on(&report, index, "record"), Severity::Warn, &says);
        assert_eq!(report.masters[index].votes_in, secs(12.0));
    }
    assert_says(report.together.last().unwrap(), Severity::Fail, &["no lock can be had for 12.0 s"]);

    // It is over, and nobody has made members of them yet.
    let report = judged_by_records([0, 1, 2].map(|index| record(index, &[("state", "candidate")])));
    assert_found(&report, "record", Severity::Warn, &["candidate: the next clients make it a member"]);
    assert_eq!((report.can_vote(), report.has_quorum()), (3, true), "{report}");

    // One was not written yet, one was emptied or restarted meanwhile, or is away.
    let report = judged_by_records([FoundRecord::Absent, candidate(1, 12_000), candidate(2, 11_000)]);
    assert_found(&report, "record", Severity::Warn, &["its set was begun without it", "quorate init"]);
    assert_says(found_on(&report, 1, "record"), Severity::Warn, &["when its quarantine is over"]);
    assert_eq!(report.masters.iter().map(|master| master.votes_in).collect::<Vec<_>>(), [None; 3]);
    let mut servers = [0, 1, 2].map(|index| Server { record: candidate(index, 12_000), ..server(index) });
    servers[0].info.0 = servers[0].info.0.replace("run0", "another");
    let report = judged_all(&visitor(), servers.clone().map(Ok));
    assert_found(&report, "record", Severity::Warn, &["candidate: it lost its state", "quorate init"]);
    let [first, ..] = servers;
    let away = || Err(Unasked::Silent(Duration::from_secs(1)));
    let report =
        judged_all(&visitor(), [Ok(first), Ok(Server { record: candidate(1, 0), ..server(1) }), away()]);
    assert_says(found_on(&report, 1, "record"), Severity::Warn, &["when m0 is ready, too", "quorate init"]);
    assert_found(&report, "record", Severity::Warn, &["candidate: it lost its state"]);
    assert_eq!((report.masters[0].votes_in, report.masters[1].votes_in), (None, None));
}

#[test]
fn a_candidate_waits_for_no_other_where_most_are_members() {
    let candidate = record(0, &[("state", "candidate"), ("quarantine", &ends_in(12_000))]);
    let servers = [Ok(Server { record: candidate, ..server(0) }), Ok(server(1)), Ok(server(2))];
    let report = judged_all(&visitor(), servers);
    assert_found(&report, "record", Severity::Warn, &["candidate: its set begins in 12.0 s"]);
    assert_eq!((report.masters[0].votes_in, report.can_vote()), (secs(12.0), 2), "{report}");
}

#[test]
fn at_least_half_without_records_is_said_with_what_to_do() {
    let mut servers = [0, 1, 2].map(server);
    servers[0].record = FoundRecord::Absent;
    servers[1].record = FoundRecord::Absent;
    let report = judged_all(&visitor(), servers.clone().map(Ok));
    let says = ["2 of 3 masters have no record", "quorate init"];
    assert_found(&report, "record", Severity::Fail, &says);
    let votes_in: Vec<_> = report.masters.iter().map(|master| master.votes_in).collect();
    assert_eq!(votes_in, [None, None, secs(0.0)], "{report}");
    let [lost, _, knows] = servers;
    let report = judged_all(&visitor(), [Ok(lost), Err(Unasked::Silent(Duration::from_secs(1))), Ok(knows)]);
    let says = ["m1 has to answer first", "all masters answer"];
    assert_found(&report, "record", Severity::Fail, &says);
    assert_eq!((report.masters[0].votes_in, report.masters[2].votes_in), (None, secs(0.0)));
}

#[test]
fn the_set_is_shown_as_its_newest_record_says() {
    let members = "1 m0\n2 m1\n3 m2\n4 m3";
    let told = [("generation", "1"), ("members", members), ("earlier", "1 m0\n2 m1\n3 m2")];
    for newest in 0..3 {
        let records = [0, 1, 2].map(|index| record(index, if index == newest { &told } else { &[] }));
        let report = judged_by_records(records);
        assert!(found_together(&report, "set").what.contains("4 masters"), "{newest}: {report}");
    }
}

#[test]
fn lists_that_differ_are_refused_and_both_are_named() {
    let report = judged_all(&visitor(), [0, 1].map(|index| Ok(server(index))));
    let says = ["its set is m0, m1, m2, and this client's m0, m1 -> give all clients the same"];
    assert_found(&report, "record", Severity::Fail, &says);
    assert_eq!(report.can_vote(), 0, "{report}");
    // The third is another one than that of the set: not reached, of no set, or of another set.
    let records = || [0, 1].map(|index| record(index, &[("members", "1 m0\n2 m1\n3 m7")]));
    let [zero, one] = [0, 1].map(|index| Ok(Server { record: records()[index].clone(), ..server(index) }));
    let report = judged_all(&visitor(), [zero, one, Err(Unasked::NoServer)]);
    assert_eq!((report.can_vote(), report.has_quorum()), (2, true), "nothing is known of it: {report}");
    let [zero, one] = records();
    let report = judged_by_records([zero, one, FoundRecord::Absent]);
    let says = ["its set is m0, m1, m7, and this client's m0, m1, m2 -> give all clients the same"];
    assert_says(found_on(&report, 2, "record"), Severity::Fail, &says);
    let other = record(2, &[("set", "0dd"), ("members", "1 m2\n2 m3\n3 m4"), ("member", "1")]);
    let report = judged_by_records([record(0, &[]), record(1, &[]), other]);
    assert_eq!(report.can_vote(), 2, "{report}");
    let says = ["its set is m2, m3, m4, and that of m0 is m0, m1, m2 -> name the masters of one set"];
    assert_says(found_on(&report, 2, "record"), Severity::Fail, &says);
    let says = ["several sets: 0dd of m2, m3, m4; 5e7 of m0, m1, m2 -> name the masters of one set"];
    assert_says(found_together(&report, "set"), Severity::Fail, &says);
}

#[test]
fn a_master_that_another_set_wants_is_taken_back() {
    let theirs = [
        ("set", "0dd"),
        ("members", "1 m0\n2 m3\n3 m4"),
        ("state", "candidate"),
        ("quarantine", &*ends_in(12_000)),
    ];
    for wanted in 0..3 {
        let records = [0, 1, 2].map(|index| record(index, if index == wanted { &theirs } else { &[] }));
        let report = judged_by_records(records);
        let says = ["somebody began another set with it", "no vote for 34.3 s from when a client connects"];
        assert_says(found_on(&report, wanted, "record"), Severity::Warn, &says);
        assert_eq!((report.masters[wanted].votes_in, report.can_vote()), (secs(34.3), 2), "{report}");
        let says = ["several sets: 0dd of m0, m3, m4; 5e7 of"];
        assert_says(found_together(&report, "set"), Severity::Fail, &says);
    }
}

#[test]
fn two_servers_with_one_record_are_both_named() {
    let report = judged_by_records([record(0, &[]), record(1, &[]), record(1, &[])]);
    assert_eq!((report.can_vote(), report.masters[0].votes_in), (1, secs(0.0)), "{report}");
    for (index, other) in [(1, "m2"), (2, "m1")] {
        let says = [&*format!("it is the same member of its set as {other}"), "a copy of the other's keys"];
        assert_says(found_on(&report, index, "record"), Severity::Fail, &says);
    }
}

#[test]
fn a_replica_of_a_listed_master_does_not_take_its_vote_away() {
    let report = judged(&visitor(), |first| {
        first.info.0 = first.info.0.replace("role:master", "role:slave");
        first.record = record(1, &[]);
    });
    assert_found(&report, "role", Severity::Fail, &["slave: its keys are not its own"]);
    assert_eq!((report.can_vote(), report.masters[0].votes_in), (2, None), "{report}");
}

#[test]
fn masters_that_cannot_be_asked_are_told_with_what_to_do() {
    let cases = [
        (Unasked::Silent(Duration::from_secs(1)), "reach", ["did not answer within 1s", "--timeout"]),
        (
            Unasked::Failed(Failure::refused(Refusal::Password, "WRONGPASS invalid")),
            "login",
            ["WRONGPASS invalid", "a password that it knows"],
        ),
        (
            Unasked::Failed(Failure::refused(Refusal::Other, "ERR max number")),
            "login",
            ["it answers", "ERR max number"],
        ),
        (
            Unasked::Failed("connection refused".to_owned().into()),
            "reach",
            ["connection refused", "start it"],
        ),
    ];
    for (why, about, says) in cases {
        let report = judged_all(&visitor(), [Err(why), Ok(server(1)), Ok(server(2))]);
        assert_found(&report, about, Severity::Fail, &says);
        assert_eq!((report.masters[0].votes_in, report.has_quorum()), (None, true));
        assert_says(
            report.together.last().unwrap(),
            Severity::Warn,
            &["no other may fail", "see to the others"],
        );
    }
    let report = judged_all(&visitor(), [0, 1, 2].map(|_| Err(Unasked::NoServer)));
    assert!(found_on(&report, 0, "reach").what.contains("another kind"), "{report}");
    assert!(report.together.iter().all(|finding| finding.about != "set"), "{report}");
    assert_says(report.together.last().unwrap(), Severity::Fail, &["0 of 3", "no lock can be had ->"]);
}
