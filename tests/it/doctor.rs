//! What an examination finds on real servers.

use std::time::Duration;

use quorate::doctor::{Examined, Finding, Report, Severity};
use quorate::{Builder, ColdStart, Redlock, Standing};
use quorate_testkit::{EmbeddedMasters, Masters, RedisServer};

use crate::{PATIENT, SOON, ms, until};

/// Servers that keep every write.
const KEEPING: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

/// The examination that operators begin with, for masters that are used for the first time.
fn begin(urls: impl IntoIterator<Item = String>) -> Builder {
    Redlock::builder().masters(urls).timeout(PATIENT).cold_start(ColdStart::None)
}

async fn examine(masters: &Masters) -> Report {
    begin(masters.urls()).examine().await.unwrap()
}

/// What was found about one thing on one master.
#[track_caller]
fn found<'a>(examined: &'a Examined, about: &str) -> &'a Finding {
    let found = examined.findings.iter().find(|finding| finding.about == about);
    found.unwrap_or_else(|| panic!("nothing about {about}: {examined:?}"))
}

#[track_caller]
fn assert_found(examined: &Examined, about: &str, severity: Severity, parts: &[&str]) {
    let finding = found(examined, about);
    assert_eq!(finding.severity, severity, "{finding}");
    let text = finding.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
}

#[tokio::test]
async fn where_all_is_well_nothing_else_is_said_and_nothing_is_written() {
    let masters = Masters::start_with(3, KEEPING);
    let report = examine(&masters).await;
    assert_eq!((report.severity(), report.can_vote()), (Severity::Ok, 3), "{report}");
    assert!(report.masters[0].round_trip.unwrap() < SOON);
    for server in masters.iter() {
        assert_eq!(server.command::<i64>(&["DBSIZE"]), 0);
        let persistence: String = server.command(&["INFO", "persistence"]);
        assert!(persistence.contains("rdb_changes_since_last_save:0"), "{persistence}");
        assert!(!server.command::<String>(&["INFO", "errorstats"]).contains("NOPERM"));
    }
    // And where clients have left their marker.
    let redlock = begin(masters.urls()).build().unwrap();
    drop(redlock.lock("l").acquire().await.unwrap());
    until("the release", async || masters.empty().is_ok()).await;
    let keys = |server: &RedisServer| server.command::<i64>(&["DBSIZE"]);
    let before: Vec<_> = masters.iter().map(keys).collect();
    let report = begin(masters.urls()).cold_start(ColdStart::Quarantine).examine().await.unwrap();
    assert_eq!((report.severity(), report.can_vote()), (Severity::Ok, 3), "{report}");
    assert_eq!(masters.iter().map(keys).collect::<Vec<_>>(), before);
}

#[tokio::test]
async fn a_replica_is_named_with_its_master() {
    let masters = Masters::start_with(3, KEEPING);
    let port = masters[1].port().to_string();
    let _: () = masters[0].command(&["REPLICAOF", "127.0.0.1", &port]);
    until("the copy", async || {
        masters[0].command::<String>(&["INFO", "replication"]).contains("link_status:up")
    })
    .await;
    let report = examine(&masters).await;
    assert_found(
        &report.masters[0],
        "role",
        Severity::Fail,
        &["slave of 127.0.0.1", &port, "REPLICAOF NO ONE"],
    );
    assert_eq!((report.can_vote(), report.masters[0].votes_in), (2, None), "{report}");
}

#[tokio::test]
async fn a_server_that_is_listed_twice_has_one_vote() {
    let masters = Masters::start_with(2, KEEPING);
    let again = format!("redis://localhost:{}", masters[0].port());
    let report = begin(masters.urls().into_iter().chain([again])).examine().await.unwrap();
    assert_found(&report.masters[2], "processes", Severity::Fail, &["same server as", &masters[0].url()]);
    assert_eq!((report.can_vote(), report.quorum), (2, 2), "{report}");
}

#[tokio::test]
async fn a_server_that_evicts_has_no_vote_if_there_is_a_limit() {
    let masters = Masters::start_with(1, KEEPING);
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert_eq!(examine(&masters).await.severity(), Severity::Ok);
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let report = examine(&masters).await;
    assert_found(&report.masters[0], "memory", Severity::Fail, &["100.0 MiB", "allkeys-lru", "noeviction"]);
    assert!(!report.has_quorum(), "{report}");
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_eq!(examine(&masters).await.severity(), Severity::Ok);
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    assert_found(&examine(&masters).await.masters[0], "writes", Severity::Fail, &["OOM", "maxmemory"]);
}

#[tokio::test]
async fn dead_and_frozen_masters_keep_nobody_waiting_for_long() {
    let masters = Masters::start_with(5, KEEPING);
    masters[0].kill();
    masters[1].freeze();
    let begun = std::time::Instant::now();
    let report = begin(masters.urls()).timeout(ms(500)).examine().await.unwrap();
    assert!(begun.elapsed() >= ms(2_000) && begun.elapsed() < ms(8_000), "{:?}", begun.elapsed());
    assert_found(&report.masters[0], "reach", Severity::Fail, &["refused", "start it"]);
    assert_found(&report.masters[1], "reach", Severity::Fail, &["within 2s"]);
    assert_eq!(
        (report.can_vote(), report.has_quorum(), report.severity()),
        (3, true, Severity::Fail),
        "{report}"
    );
    let last = report.together.last().unwrap();
    assert!(last.severity == Severity::Warn && last.what.contains("no other may fail"), "{last}");
}

#[tokio::test]
async fn a_clock_that_is_off_is_measured() {
    let masters = Masters::start_with_clocks(3, KEEPING);
    masters[2].step_clock(-5_000);
    let report = examine(&masters).await;
    assert_found(&report.masters[2], "clock", Severity::Fail, &["from the median", "NTP"]);
    let ahead = report.masters[2].clock_ahead.unwrap();
    assert!((-5_100..=-4_900).contains(&ahead), "{ahead}");
    assert_eq!(report.can_vote(), 2, "{report}");
    masters[2].step_clock(5_000);
    assert_eq!(examine(&masters).await.severity(), Severity::Ok);
    // All of them are off together: that is this host's fault, for them.
    masters.iter().for_each(|server| server.step_clock(5_000));
    let report = examine(&masters).await;
    assert_eq!((report.can_vote(), report.severity()), (3, Severity::Warn), "{report}");
}

#[tokio::test]
async fn a_right_that_a_user_lacks_is_named_with_its_rule() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let rule = readme.lines().find(|line| line.starts_with("ACL SETUSER quorate")).unwrap();
    let server = RedisServer::start_with(KEEPING);
    let _: () = server.command(&rule.split_whitespace().collect::<Vec<_>>());
    let url = format!("redis://quorate:secret@127.0.0.1:{}", server.port());
    let examine = async || begin([url.clone()]).examine().await.unwrap();

    let rules = |report: &Report| found(&report.masters[0], "rights").fix.clone().unwrap();
    let take = |rule: &str| server.command::<()>(&["ACL", "SETUSER", "quorate", rule]);
    let report = examine().await;
    assert_eq!(found(&report.masters[0], "rights").severity, Severity::Ok, "{report}");

    for right in ["hset", "get", "evalsha", "zpopmin", "time", "script|load", "info"] {
        take(&format!("-{right}"));
        let report = examine().await;
        assert_found(&report.masters[0], "rights", Severity::Fail, &["may not use", right]);
        assert_eq!(rules(&report), format!("ACL SETUSER USER +{right}"));
        assert!(!report.has_quorum(), "{report}");
        take(&rules(&report).replace("ACL SETUSER USER ", ""));
    }
    for right in ["subscribe", "publish", "ping"] {
        take(&format!("-{right}"));
        let report = examine().await;
        assert_found(&report.masters[0], "rights", Severity::Warn, &["may not use", right]);
        assert_eq!(rules(&report), format!("ACL SETUSER USER +{right}"));
        assert!(report.has_quorum(), "{report}");
        take(&rules(&report).replace("ACL SETUSER USER ", ""));
    }
    for (other, rule, severity) in
        [("resetkeys", "~quorate:*", Severity::Fail), ("resetchannels", "&quorate:*", Severity::Warn)]
    {
        take(other);
        let report = examine().await;
        assert_eq!(
            (found(&report.masters[0], "rights").severity, rules(&report)),
            (severity, format!("ACL SETUSER USER {rule}"))
        );
        take(rule);
    }
    let report = examine().await;
    assert_eq!(found(&report.masters[0], "rights").severity, Severity::Ok, "{report}");
    assert_eq!(server.command::<i64>(&["DBSIZE"]), 0);
    assert!(!format!("{report}{report:?}").contains("secret"));
}

#[tokio::test]
async fn a_quarantine_that_runs_is_told_with_its_end() {
    let masters = Masters::start_with(3, KEEPING);
    let careful = || begin(masters.urls()).cold_start(ColdStart::Quarantine);
    let report = careful().examine().await.unwrap();
    assert_found(&report.masters[0], "marker", Severity::Warn, &["it is new", "34.3 s from the moment"]);
    assert!(!report.has_quorum() && report.to_string().contains("no lock can be had for 34.3 s"), "{report}");

    let redlock = careful().build().unwrap();
    let _ = redlock.lock("l").inspect().await.unwrap();
    let report = careful().examine().await.unwrap();
    for examined in &report.masters {
        assert_found(examined, "marker", Severity::Warn, &["more", "it ends by itself"]);
        let left = examined.votes_in.unwrap();
        assert!(left > Duration::from_secs(10) && left < ms(34_300), "{left:?}");
    }
    assert!(!report.has_quorum());
}

#[tokio::test]
async fn clients_that_do_not_agree_are_told_apart() {
    let masters = Masters::start_with(3, KEEPING);
    let redlock = begin(masters.urls()).build().unwrap();
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
    crate::answering(&redlock, 3).await;
    let others = [
        begin(masters.urls()).max_ttl(Duration::from_secs(60)),
        begin(masters.urls()).strict(),
        begin(masters.urls().into_iter().take(2)),
    ];
    for (other, says) in others.into_iter().zip(["max TTL of 60000 ms", "30000 ms, strict", "2 masters and"])
    {
        let report = other.examine().await.unwrap();
        let parts =
            ["its clients have v2, 3 masters and a max TTL of 30000 ms, and this one would have", says];
        assert_found(&report.masters[0], "terms", Severity::Fail, &parts);
        assert_eq!(report.can_vote(), 0, "{report}");
    }
    // One of them is another's.
    let _: () =
        masters[2].command(&["SET", "quorate:marker", "x|0|0|v2, 1 masters and a max TTL of 5000 ms"]);
    let report = examine(&masters).await;
    assert_eq!(report.can_vote(), 2, "{report}");
    assert!(
        report.to_string().contains("clients disagree: v2, 3 masters and a max TTL of 30000 ms on "),
        "{report}"
    );
}

/// Whatever is trusted, and whatever became of a master: what is foretold is what its next client
/// gets.
#[tokio::test]
async fn an_examination_foretells_what_a_client_will_be_told() {
    use ColdStart::{Fsync, Quarantine, Uptime};
    const NOTHING: &[&str] = &[];
    const REWRITE: &[&str] =
        &["--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes"];
    for policy in [Quarantine, Uptime, Fsync, ColdStart::None] {
        for options in [KEEPING, REWRITE, NOTHING] {
            let mut server = RedisServer::start_with(options);
            for state in ["new", "known", "restarted", "found by another"] {
                if state == "restarted" {
                    server.restart();
                }
                let any = || begin([server.url()]).max_ttl(Duration::from_secs(20));
                if state == "found by another" {
                    let _: () = server.command(&["FLUSHALL"]);
                    assert!(!told(any().cold_start(Quarantine)).await.is_zero());
                }
                let visit = || any().cold_start(policy);
                let foretold = visit().examine().await.unwrap();
                let (report, foretold) = (foretold.to_string(), foretold.masters[0].votes_in.unwrap());
                let told = told(visit()).await;
                assert_eq!(foretold.is_zero(), told.is_zero(), "{state}, {policy}: {told:?}, {report}");
                let close = foretold.abs_diff(told) < ms(5_000);
                assert!(close, "{state}, {policy}: {told:?}, {foretold:?}, {report}");
            }
        }
    }
}

/// For how long a client of one master is told that it has no vote.
async fn told(builder: Builder) -> Duration {
    let redlock = builder.build().unwrap();
    until("a standing", async || {
        let _ = redlock.lock("l").inspect().await.unwrap();
        redlock.master_status()[0].standing != Standing::Unknown
    })
    .await;
    match &redlock.master_status()[0].standing {
        Standing::Trusted => Duration::ZERO,
        Standing::Quarantined { left, .. } => *left,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn masters_of_another_kind_are_named_and_settings_are_checked() {
    let embedded = EmbeddedMasters::new(1);
    let report = Redlock::builder().masters(&embedded).examine().await.unwrap();
    assert_found(&report.masters[0], "reach", Severity::Fail, &["another kind"]);
    assert!(Redlock::builder().examine().await.is_err(), "no masters");
    assert!(begin(["redis://h".to_owned()]).timeout(Duration::ZERO).examine().await.is_err());
}
