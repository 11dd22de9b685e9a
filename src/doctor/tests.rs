//! What follows from the facts.

use std::time::Duration;

use super::*;
use crate::clock::Moment;
use crate::trust::{ColdStart, Terms};

const NOW: u64 = 1_790_000_000_000_000;

const INFO: &str = "redis_version:7.4.1\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n\
                    uptime_in_seconds:100\r\naof_enabled:1\r\n";

fn visitor() -> Visitor {
    let marker = "quorate:marker".to_owned();
    let max_ttl = Duration::from_secs(30);
    let terms = Terms { marker, masters: 3, max_ttl, strict: false, cold_start: ColdStart::Quarantine };
    let timeout = Duration::from_millis(250);
    Visitor { terms, prefix: "quorate:".into(), quorum: 2, timeout, wall_ahead: NOW as i64 }
}

/// A look that took so long (ms), at a clock that is ahead by as much as `ahead` (ms).
fn look(took: u64, ahead: i64) -> ClockLook {
    let at = |ms| Moment::from_origin(Duration::from_millis(ms));
    let time = (NOW + 1_000_000 + took * 500).saturating_add_signed(ahead * 1000);
    ClockLook { asked: at(1000), answered: at(1000 + took), time }
}

fn server(index: usize) -> Server {
    let so = |value: &str| Some(value.to_owned());
    Server {
        info: Info(format!("{INFO}run_id:run{index}\r\n")),
        kept: Kept { appendonly: so("yes"), appendfsync: so("always"), not_on_rewrite: so("no") },
        marker: Marker::Text(format!("run{index}|0|0|v2, 3 masters and a max TTL of 30000 ms")),
        round_trips: vec![Duration::from_millis(1); 5],
        looks: vec![look(2, 0)],
        ..Server::default()
    }
}

/// Three masters that are well, but for what is done to the first.
fn judged(visitor: &Visitor, change: impl FnOnce(&mut Server)) -> Report {
    let mut servers = [0, 1, 2].map(server);
    change(&mut servers[0]);
    let facts = |(index, server)| Facts { master: format!("m{index}").into(), server: Ok(Box::new(server)) };
    judge(&servers.into_iter().enumerate().map(facts).collect::<Vec<_>>(), visitor)
}

/// What was found about one thing on the first master.
fn found<'a>(report: &'a Report, about: &str) -> &'a Finding {
    let mut findings = report.masters[0].findings.iter().filter(|finding| finding.about == about);
    findings.next().unwrap_or_else(|| panic!("nothing about {about}: {report}"))
}

#[track_caller]
fn assert_found(report: &Report, about: &str, severity: Severity, parts: &[&str]) {
    let finding = found(report, about);
    assert_eq!(finding.severity, severity, "{finding}");
    let text = finding.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
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
    let last = report.together.last().unwrap();
    assert_eq!((last.about, &*last.what), ("quorum", "3 of 3 masters can vote, and a quorum is 2"));
    assert!(report.to_string().starts_with("ok    m0           reach: round trip 1.0 ms"), "{report}");
}

#[test]
fn what_a_client_would_be_refused_for_costs_the_vote() {
    type Change = fn(&mut Server);
    let cases: [(&str, Change, &[&str]); 9] = [
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
            |server| server.info.0 = server.info.0.replace("7.4.1", "5.0.14"),
            &["5.0.14", "Redis 6"],
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
            "rights",
            |server| server.denied.keys = true,
            &["the keys quorate:*", "ACL SETUSER USER ~quorate:*"],
        ),
        ("clock", |server| server.looks = vec![look(2, -3_000)], &["-3.000 s from the median", "NTP"]),
        (
            "terms",
            |server| server.marker = Marker::Text("run0|0|0|v2, 5 masters and a max TTL of 30000 ms".into()),
            &["its clients have v2, 5 masters", "this one would have v2, 3 masters", "DEL quorate:marker"],
        ),
        (
            "marker",
            |server| server.marker = Marker::Text("mine".into()),
            &["not a marker", "DEL quorate:marker"],
        ),
    ];
    for (about, change, parts) in cases {
        let report = judged(&visitor(), change);
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
fn of_one_server_under_two_names_the_first_has_the_vote() {
    let report = judged(&visitor(), |first| *first = server(1));
    assert_eq!((report.can_vote(), report.masters[1].votes_in), (2, None), "{report}");
    let twin = report.masters[1].findings.iter().find(|finding| finding.about == "processes").unwrap();
    assert!(twin.severity == Severity::Fail && twin.what.contains("the same server as m0"), "{twin}");
    let all = report.together.iter().find(|finding| finding.about == "processes").unwrap();
    assert_eq!(all.what, "3 masters are only 2 server processes");
}

#[test]
fn what_only_costs_something_is_a_warning() {
    type Change = fn(&mut Server);
    let cases: [(&str, Change, &[&str]); 5] = [
        ("rights", |server| server.denied.commands = vec!["subscribe"], &["waiters poll", "+subscribe"]),
        ("rights", |server| server.denied.channels = true, &["waiters poll", "ACL SETUSER USER &quorate:*"]),
        ("clock", |server| server.looks = vec![look(2, 200)], &["+0.200 s", "NTP"]),
        (
            "reach",
            |server| server.round_trips = vec![Duration::from_millis(130); 5],
            &["130.0 ms", "--timeout"],
        ),
        (
            "persistence",
            |server| server.kept.appendfsync = Some("everysec".into()),
            &["appendfsync everysec", "may have forgotten", "no vote for 34.3 s", "appendfsync always"],
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
    let host = report.together.iter().find(|finding| finding.about == "clocks").unwrap();
    assert!(host.severity == Severity::Warn && host.what.contains("-2.000 s"), "{host}");
    assert!(report.has_quorum(), "the masters' clocks count");
}

/// By policy: a master that is new, one that restarted, and one in quarantine; how it is kept; and
/// how long (s) it has no vote.
#[test]
fn a_master_that_may_have_forgotten_has_no_vote_for_as_long_as_a_client_would_give_it_none() {
    use ColdStart::{Fsync, None, Quarantine, Uptime};
    let new = |server: &mut Server| server.marker = Marker::Absent;
    let restarted = |server: &mut Server| {
        server.marker = Marker::Text("gone|0|0|v2, 3 masters and a max TTL of 30000 ms".into());
    };
    let copied = |server: &mut Server| server.info.0 += "master_replid2:4f\r\n";
    let kept_away = |server: &mut Server| {
        let until = server.looks[0].time + 12_000_000;
        server.marker = Marker::Text(format!("run0|0|{until}|v2, 3 masters and a max TTL of 30000 ms"));
    };
    let everysec = |server: &mut Server| server.kept.appendfsync = Some("everysec".into());
    let young = |server: &mut Server| server.info.0 = server.info.0.replace("seconds:100", "seconds:30");
    type Change<'a> = &'a dyn Fn(&mut Server);
    let cases: [(ColdStart, &[Change<'_>], f64); 18] = [
        (Quarantine, &[&new], 34.3),
        (Quarantine, &[&restarted], 34.3),
        (Quarantine, &[&kept_away], 12.0),
        (Quarantine, &[&copied], 34.3),
        (Fsync, &[&copied, &restarted], 34.3),
        (None, &[&copied], 0.0),
        (Uptime, &[&new], 0.0),
        (Uptime, &[&new, &young], 34.3),
        (Uptime, &[&restarted], 34.3),
        (Uptime, &[&kept_away], 12.0),
        (Fsync, &[&new], 0.0),
        (Fsync, &[&restarted], 0.0),
        (Fsync, &[&kept_away], 12.0),
        (Fsync, &[&new, &everysec], 34.3),
        (Fsync, &[&restarted, &everysec], 34.3),
        (None, &[&new], 0.0),
        (None, &[&restarted], 0.0),
        (None, &[&kept_away], 12.0),
    ];
    for (index, (policy, changes, wait)) in cases.into_iter().enumerate() {
        let mut visitor = visitor();
        visitor.terms.cold_start = policy;
        let report = judged(&visitor, |server| changes.iter().for_each(|change| change(server)));
        assert_eq!(report.masters[0].votes_in, Some(Duration::from_secs_f64(wait)), "case {index}: {report}");
        let severity = if wait > 0.0 { Severity::Warn } else { Severity::Ok };
        assert_eq!(found(&report, "marker").severity, severity, "case {index}");
    }
}

#[test]
fn without_a_quorum_it_says_when_there_will_be_one() {
    let mut servers = [0, 1, 2].map(server);
    servers.iter_mut().for_each(|server| server.marker = Marker::Absent);
    let facts = |(index, server)| Facts { master: format!("m{index}").into(), server: Ok(Box::new(server)) };
    let mut all: Vec<_> = servers.into_iter().enumerate().map(facts).collect();
    let report = judge(&all, &visitor());
    let verdict = report.together.last().unwrap();
    assert_eq!(verdict.severity, Severity::Fail);
    assert!(verdict.what.contains("0 of 3") && verdict.what.contains("for 34.3 s"), "{verdict}");
    all[0].server = Err(Unasked::Silent(Duration::from_secs(1)));
    all[1].server = Err(Unasked::Unreached("WRONGPASS invalid".into()));
    let report = judge(&all, &visitor());
    let verdict = report.together.last().unwrap();
    assert!(verdict.what.ends_with("no lock can be had"), "{verdict}");
    assert_found(&report, "reach", Severity::Fail, &["within 1s", "--timeout"]);
    assert!(report.masters[1].findings[0].fix.as_ref().unwrap().contains("password"));
}

#[test]
fn clients_that_disagree_among_themselves_are_named_by_master() {
    let report = judged(&visitor(), |server| {
        server.marker = Marker::Text("run0|0|0|v2, 3 masters and a max TTL of 5000 ms, strict".into());
    });
    let terms = report.together.iter().find(|finding| finding.about == "terms").unwrap();
    assert_eq!(terms.severity, Severity::Warn);
    for part in ["5000 ms, strict on m0", "30000 ms on m1, m2"] {
        assert!(terms.what.contains(part), "{terms}");
    }
}
