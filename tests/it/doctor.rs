//! What an examination finds on real servers.

use std::time::Duration;

use quorate::doctor::{Examined, Finding, Report, Severity};
use quorate::{Builder, Init, Redlock, Standing};
use quorate_testkit::{EmbeddedMasters, Masters, RedisServer};

use crate::{PATIENT, SOON, answering, begun, ms, until};

/// Servers that keep what they write.
const KEEPING: &[&str] = &["--appendonly", "yes"];

/// An operator's settings.
fn operator(urls: impl IntoIterator<Item = String>) -> Builder {
    Redlock::builder().masters(urls).timeout(PATIENT)
}

/// The same for masters that are new, and a set by themselves.
fn begin(urls: impl IntoIterator<Item = String>) -> Builder {
    operator(urls).all_new()
}

/// Masters that are a set, and keep what they write.
async fn set(count: usize) -> Masters {
    let masters = Masters::start_with(count, KEEPING);
    let redlock = begin(masters.urls()).build().unwrap();
    answering(&redlock, count).await;
    masters
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
    let masters = set(3).await;
    let redlock = begin(masters.urls()).build().unwrap();
    drop(redlock.lock("l").acquire().await.unwrap());
    until("the release", async || masters.empty().is_ok()).await;
    let keys = |server: &RedisServer| server.command::<i64>(&["DBSIZE"]);
    let before: Vec<_> = masters.iter().map(keys).collect();
    for settings in [operator, begin] {
        let report = settings(masters.urls()).examine().await.unwrap();
        assert_eq!((report.severity(), report.can_vote()), (Severity::Ok, 3), "{report}");
        assert_found(&report.masters[0], "record", Severity::Ok, &["member", "of 3: it remembers"]);
        assert!(report.masters[0].round_trip.unwrap() < SOON);
    }
    assert_eq!(masters.iter().map(keys).collect::<Vec<_>>(), before);
}

#[tokio::test]
async fn masters_that_are_no_set_yet_are_told_so_and_nothing_is_written() {
    let masters = Masters::start_with(3, KEEPING);
    let report = operator(masters.urls()).examine().await.unwrap();
    for examined in &report.masters {
        assert_found(examined, "record", Severity::Fail, &["no record of a set", "quorate init"]);
        assert_eq!(examined.votes_in, None);
    }
    assert!(report.to_string().contains("no lock can be had"), "{report}");
    for server in masters.iter() {
        assert_eq!(server.command::<i64>(&["DBSIZE"]), 0);
        let persistence: String = server.command(&["INFO", "persistence"]);
        assert!(persistence.contains("rdb_changes_since_last_save:0"), "{persistence}");
        assert!(!server.command::<String>(&["INFO", "errorstats"]).contains("NOPERM"));
    }
}

/// What is foretold of a beginning is what comes of it.
#[tokio::test]
async fn a_set_that_begins_says_for_how_long_there_is_no_vote_yet() {
    let masters = Masters::start_with(3, KEEPING);
    let short = || operator(masters.urls()).max_ttl(ms(2_000)).ttl(ms(2_000)).timeout(ms(1_000));
    let redlock = short().build().unwrap();
    let init = tokio::spawn(async move { redlock.init(Init::new()).await });
    let examine = async || short().examine().await.unwrap();
    until("the candidates", async || examine().await.masters.iter().all(|master| master.votes_in.is_some()))
        .await;
    let report = examine().await;
    for examined in &report.masters {
        assert_found(examined, "record", Severity::Warn, &["candidate: its set begins", "quorate init"]);
        assert!(examined.votes_in.unwrap() <= ms(6_020), "{report}");
    }
    init.await.unwrap().unwrap();
    let report = examine().await;
    assert_eq!((report.severity(), report.can_vote()), (Severity::Ok, 3), "{report}");
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
    let says = ["1 replica: if one is promoted", "automatically", "min-replicas-to-write 1"];
    assert_found(&report.masters[1], "role", Severity::Warn, &says);
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

/// A server's URL for a user with the rights of docs/OPERATIONS.md.
pub(crate) fn with_rights(server: &RedisServer) -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/OPERATIONS.md")).unwrap();
    let rule = page.lines().find(|line| line.starts_with("ACL SETUSER quorate")).expect("the ACL rule");
    let _: () = server.command(&rule.split_whitespace().collect::<Vec<_>>());
    format!("redis://quorate:secret@127.0.0.1:{}", server.port())
}

#[tokio::test]
async fn the_documented_rights_are_enough_for_every_kind() {
    let masters = Masters::start_with(3, KEEPING);
    let redlock = begin(masters.iter().map(with_rights)).build().unwrap();
    let [lock, mutex, fair] = [redlock.lock("l"), redlock.mutex("m"), redlock.fair_lock("f")];
    let [read, write, permit] = [redlock.read_lock("w"), redlock.write_lock("w"), redlock.semaphore("s", 2)];
    for lock in [lock, mutex, fair, read, write, permit] {
        let guard = lock.try_acquire().await.unwrap();
        guard.extend(ms(20_000)).await.unwrap();
        lock.inspect().await.unwrap();
        let (released, next) = tokio::join!(guard.release(), lock.acquire());
        released.unwrap();
        next.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_right_that_a_user_lacks_is_named_with_its_rule() {
    let server = RedisServer::start_with(KEEPING);
    let url = with_rights(&server);
    let examine = async || begin([url.clone()]).examine().await.unwrap();

    let rules = |report: &Report| found(&report.masters[0], "rights").fix.clone().unwrap();
    let take = |rule: &str| server.command::<()>(&["ACL", "SETUSER", "quorate", rule]);
    let report = examine().await;
    assert_eq!(found(&report.masters[0], "rights").severity, Severity::Ok, "{report}");

    for right in ["hset", "hgetall", "evalsha", "zpopmin", "time", "script|load", "info"] {
        take(&format!("-{right}"));
        let report = examine().await;
        assert_found(&report.masters[0], "rights", Severity::Fail, &["may not use", right]);
        assert_eq!(rules(&report), format!("ACL SETUSER USER +{right}"));
        assert!(!report.has_quorum(), "{report}");
        take(&rules(&report).replace("ACL SETUSER USER ", ""));
    }
    for right in ["subscribe", "publish", "ping", "get", "set", "client|tracking"] {
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

/// Two restart, and one loses its record.
#[tokio::test]
async fn a_master_that_forgot_is_told_with_the_end_of_its_quarantine() {
    let mut masters = set(5).await;
    let urls = masters.urls();
    let examine = async || operator(urls.clone()).examine().await.unwrap();
    (0..2).for_each(|i| masters[i].restart());
    masters[2].command::<()>(&["FLUSHALL"]);
    let report = examine().await;
    let says = ["it restarted: it has no vote for 34.3 s from when a client connects"];
    assert_found(&report.masters[0], "record", Severity::Warn, &says);
    assert_found(&report.masters[2], "record", Severity::Warn, &["it lost its record", "34.3 s"]);
    assert!(!report.has_quorum() && report.to_string().contains("no lock can be had for 34.3 s"), "{report}");

    let redlock = operator(urls.clone()).build().unwrap();
    let standing = |index: usize| redlock.master_status()[index].standing.clone();
    until("all quarantines", async || {
        let _ = redlock.lock("l").inspect().await.unwrap();
        (0..3).all(|index| matches!(standing(index), Standing::Quarantined { .. }))
    })
    .await;
    let report = examine().await;
    for examined in &report.masters[..3] {
        let says = ["it may have forgotten", "that ends by itself"];
        assert_found(examined, "record", Severity::Warn, &says);
        let left = examined.votes_in.unwrap();
        assert!(left > Duration::from_secs(10) && left < ms(35_000), "{left:?}"); // T is a low end
    }
    assert_eq!(report.masters[4].votes_in, Some(Duration::ZERO));
    assert!(!report.has_quorum());
}

/// Three masters that keep nothing: one is away, and one was emptied. One record is left, and
/// nobody gets a lock before all are there, and `init` begins the set again.
#[tokio::test]
async fn a_set_that_most_of_its_masters_forgot_waits_for_the_one_that_is_away() {
    let mut masters = Masters::start(3);
    let urls = masters.urls();
    let settings = || operator(urls.clone()).max_ttl(ms(2_000)).ttl(ms(2_000)).timeout(ms(1_000));
    drop(begun(settings(), Init::new()).await);
    let redlock = settings().build().unwrap();
    let examine = async || settings().examine().await.unwrap();
    masters[0].kill();
    masters[1].wipe();
    let report = examine().await;
    let says = ["has to answer first", "see to it that all masters answer"];
    assert_found(&report.masters[1], "record", Severity::Fail, &says);
    assert_eq!((report.can_vote(), report.masters[1].votes_in), (1, None), "{report}");
    redlock.lock("l").wait(ms(8_000)).acquire().await.unwrap_err();
    assert_eq!(examine().await.can_vote(), 1, "a quarantine later it is the same");

    masters[0].restart_empty();
    let report = examine().await;
    let says = ["2 of 3 masters have no record", "quorate init"];
    assert_found(&report.masters[1], "record", Severity::Fail, &says);
    settings().build().unwrap().init(Init::new()).await.unwrap();
    drop(redlock.lock("l").wait(SOON).acquire().await.unwrap());

    // All lose their records, as by a power cut.
    drop(redlock);
    let is_alone =
        |master: &RedisServer| master.command::<String>(&["CLIENT", "LIST"]).trim().lines().count() == 1;
    until("its connections to be closed", async || masters.iter().all(is_alone)).await;
    masters.iter().for_each(RedisServer::wipe);
    let report = examine().await;
    assert_found(&report.masters[2], "record", Severity::Fail, &["no record of a set", "quorate init"]);
    let begins = std::time::Instant::now();
    settings().build().unwrap().init(Init::new()).await.unwrap();
    assert!(begins.elapsed() > ms(6_000), "a quarantine: {:?}", begins.elapsed());
    assert_eq!(examine().await.can_vote(), 3);
}

/// What the doctor warns of. The second client reaches the replica in place of its master, as it
/// would by an address that leads there now. A master that needs a replica to write stops in time.
#[tokio::test]
async fn a_replica_that_is_promoted_beside_its_master_is_a_second_vote_of_it() {
    for (needed, is_held_by_two) in [("0", true), ("1", false)] {
        let masters = Masters::start_with(2, &["--min-replicas-max-lag", "1"]);
        let settings = |index: usize| operator([masters[index].url()]).max_ttl(ms(2_000)).ttl(ms(2_000));
        let first = begun(settings(0).timeout(ms(1_000)), Init::new()).await;
        let port = masters[0].port().to_string();
        let _: () = masters[1].command(&["REPLICAOF", "127.0.0.1", &port]);
        until("the copy", async || {
            masters[1].command::<String>(&["INFO", "replication"]).contains("link_status:up")
        })
        .await;
        let _: () = masters[0].command(&["CONFIG", "SET", "min-replicas-to-write", needed]);
        let report = settings(0).timeout(ms(1_000)).examine().await.unwrap();
        assert_found(&report.masters[0], "role", Severity::Warn, &["1 replica", "two have its vote"]);

        let guard = first.lock("l").wait(SOON).acquire().await.unwrap();
        let _: () = masters[1].command(&["REPLICAOF", "NO", "ONE"]);
        let second = settings(1).timeout(ms(1_000)).build().unwrap();
        let other = second.lock("l").wait(SOON).acquire().await.unwrap();
        assert_eq!(guard.is_valid(), is_held_by_two, "{needed} replicas needed");
        assert!(other.is_valid());
    }
}

#[tokio::test]
async fn clients_that_do_not_agree_with_the_set_are_told_both_terms_or_both_lists() {
    let masters = set(3).await;
    let others = [
        (
            operator(masters.urls()).max_ttl(Duration::from_secs(60)),
            "60000 ms -> use --max-ttl 30000ms, as they do",
        ),
        (operator(masters.urls().into_iter().take(2)), "and this client's"),
    ];
    for (other, says) in others {
        let report = other.examine().await.unwrap();
        assert_found(&report.masters[0], "record", Severity::Fail, &[says]);
        assert_eq!(report.can_vote(), 0, "{report}");
    }
    let examine = async || operator(masters.urls()).examine().await.unwrap();
    let record = |words: &[&str]| masters[2].command::<()>(&[&["HSET", "quorate:master"], words].concat());
    record(&["set", "another"]);
    let report = examine().await;
    assert_found(
        &report.masters[2],
        "record",
        Severity::Fail,
        &["its set is", "name the masters of one set"],
    );
    assert!(report.to_string().contains("they are of several sets: another of "), "{report}");
    // What is there is none, or that of a later version.
    record(&["state", "unheard of"]);
    let report = examine().await;
    let says = ["the key quorate:master is no record that this version can read", "DEL quorate:master"];
    assert_found(&report.masters[2], "record", Severity::Fail, &says);
    assert_eq!(report.can_vote(), 2, "{report}");
    let _: () = masters[2].command(&["SET", "quorate:master", "mine"]);
    let report = examine().await;
    let says = ["the key quorate:master is no record, but something else", "DEL quorate:master"];
    assert_found(&report.masters[2], "record", Severity::Fail, &says);
    assert_eq!(report.can_vote(), 2, "{report}");
}

/// Whatever became of a master, what is foretold is what its next client gets.
#[tokio::test]
async fn an_examination_foretells_what_a_client_will_be_told() {
    for options in [KEEPING, &[]] {
        let mut server = RedisServer::start_with(options);
        let settings = || operator([server.url()]).max_ttl(Duration::from_secs(20));
        drop(begun(settings(), Init::new()).await);
        for state in ["known", "restarted", "restarted again", "emptied"] {
            match state {
                "known" => {}
                "emptied" => server.command(&["FLUSHALL"]),
                _ => server.restart(),
            }
            let settings = || operator([server.url()]).max_ttl(Duration::from_secs(20));
            let foretold = settings().examine().await.unwrap();
            let (report, foretold) = (foretold.to_string(), foretold.masters[0].votes_in);
            let told = told(settings()).await;
            let (Some(foretold), Some(told)) = (foretold, told) else {
                assert_eq!(foretold, told, "{state}: {report}");
                continue;
            };
            assert_eq!(foretold.is_zero(), told.is_zero(), "{state}: {told:?}, {report}");
            assert!(foretold.abs_diff(told) < ms(4_000), "{state}: {told:?}, {foretold:?}, {report}");
        }
    }
}

/// For how long a client of one master is told that it has no vote; `None` where it is refused.
async fn told(builder: Builder) -> Option<Duration> {
    let redlock = builder.build().unwrap();
    until("a standing", async || {
        let _ = redlock.lock("l").inspect().await.unwrap();
        redlock.master_status()[0].standing != Standing::Unknown
    })
    .await;
    match &redlock.master_status()[0].standing {
        Standing::Trusted => Some(Duration::ZERO),
        Standing::Quarantined { left, .. } => Some(*left),
        Standing::Refused(_) => None,
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
