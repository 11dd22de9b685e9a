//! Masters that are dead, frozen or refusing: a minority does not matter, a majority is a clear
//! error.

use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate::{Error, Guard, Lock, Outcome, Redlock, Refusal, Silence, Vote};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::{PATIENT, SOON, TTL, all_new, answering, builder, ms, patient, until};

/// The lock can be had, and had again, while the first masters have a fault.
async fn still_granted(redlock: &Redlock) {
    for _ in 0..20 {
        redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
    }
}

fn refusal(vote: &Vote) -> Option<Refusal> {
    match vote.outcome {
        Outcome::Refused { reason, .. } => Some(reason),
        _ => None,
    }
}

#[tokio::test]
async fn two_of_five_killed_is_granted_and_three_is_a_clear_error() {
    let mut masters = Masters::start(5);
    let redlock = all_new(&masters).build().unwrap();
    still_granted(&redlock).await;
    masters[0].kill();
    masters[1].kill();
    still_granted(&redlock).await;
    masters[2].kill();
    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    let Error::NoQuorum { granted, needed: 3, late: false, votes, .. } = &error else { panic!("{error}") };
    assert!(*granted <= 2);
    assert_eq!(
        votes
            .iter()
            .filter(|vote| matches!(vote.outcome, Outcome::Unreachable(_) | Outcome::Unknown(_)))
            .count(),
        3,
        "{error}"
    );

    for i in 0..3 {
        masters[i].restart();
    }
    let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap(); // reconnects by itself
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn masters_that_were_never_there_are_unreachable() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).master("redis://127.0.0.1:1").master("unix:///nowhere").build().unwrap();
    still_granted(&redlock).await;
    let votes = redlock.lock("l").inspect().await.unwrap().votes().to_vec();
    for vote in &votes[3..] {
        assert!(matches!(vote.outcome, Outcome::Unreachable(_)), "{vote}");
    }
}

#[tokio::test]
async fn two_of_five_frozen_is_granted_without_waiting_for_them() {
    let masters = Masters::start(5);
    let redlock = builder(&masters).timeout(SOON).build().unwrap();
    still_granted(&redlock).await;
    masters[0].freeze();
    masters[1].freeze();
    let begun = Instant::now();
    still_granted(&redlock).await;
    assert!(begun.elapsed() < SOON, "it waited for a frozen master");
}

#[tokio::test]
async fn three_of_five_frozen_is_an_error_when_the_time_out_is_over_and_at_once_from_then_on() {
    let timeout = ms(1_500); // the other two have time to vote
    let masters = Masters::start(5);
    let redlock = builder(&masters).timeout(timeout).build().unwrap();
    answering(&redlock, 5).await;
    for i in 0..3 {
        masters[i].freeze();
    }
    let (mut fastest, mut at_once) = (Duration::MAX, Duration::MAX);
    for _ in 0..4 {
        let begun = Instant::now();
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        fastest = fastest.min(begun.elapsed());
        assert!(begun.elapsed() >= timeout, "it cannot know sooner");
        let Error::NoQuorum { votes, .. } = &error else { panic!("{error}") };
        let silent = |vote: &&Vote| vote.outcome == Outcome::Unknown(Silence::TimedOut);
        assert_eq!(votes.iter().filter(silent).count(), 3, "{error}");

        let begun = Instant::now();
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        at_once = at_once.min(begun.elapsed());
        let out_of_reach = |vote: &&Vote| matches!(vote.outcome, Outcome::Unreachable(_));
        assert_eq!(error.votes().iter().filter(out_of_reach).count(), 3, "{error}");

        masters.iter().for_each(RedisServer::thaw);
        redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
        answering(&redlock, 5).await;
        for i in 0..3 {
            masters[i].freeze();
        }
    }
    assert!(fastest < timeout * 3 / 2, "the fastest of four took {fastest:?}");
    assert!(at_once < timeout / 2, "it knows by then, and the fastest of four took {at_once:?}");
    masters.iter().for_each(RedisServer::thaw);
    eventually(SOON, || masters.empty()).await;
}

/// Every call to a silent master would wait in its socket, to run all at once when it goes on.
#[tokio::test]
async fn nothing_piles_up_behind_a_silent_master() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(100)).build().unwrap();
    nothing_piles_up(&masters, &redlock, TTL).await;
}

/// Callers that have less time than the client do not notice it themselves.
#[tokio::test]
async fn nothing_piles_up_behind_a_silent_master_when_all_time_outs_are_short() {
    let masters = Masters::start(3);
    let redlock = crate::begin().masters(masters.urls()).build().unwrap();
    nothing_piles_up(&masters, &redlock, ms(600)).await;
}

async fn nothing_piles_up(masters: &Masters, redlock: &Redlock, ttl: Duration) {
    let lock = redlock.lock("l").ttl(ttl).wait(SOON);
    for _ in 0..20 {
        let _ = lock.acquire().await.unwrap().release().await; // a stall of this machine may end a short lease
    }
    masters[0].freeze();
    let begun = Instant::now();
    while begun.elapsed() < ms(700) {
        let _ = lock.acquire().await.unwrap().release().await;
        tokio::time::sleep(ms(2)).await;
    }
    for _ in 0..500 {
        let _ = lock.acquire().await.unwrap().release().await;
    }
    masters[0].thaw();
    let count = calls(&masters[0], "evalsha");
    assert!(count < 450, "{count} calls behind a silent master");
    eventually(SOON, || masters.empty()).await;
}

/// Each refusal is told from the others, counts as no vote, and disturbs nobody.
#[tokio::test]
async fn masters_that_refuse_are_told_apart_and_do_not_matter() {
    let masters = Masters::start(5);
    let elsewhere = RedisServer::start();
    let redlock = all_new(&masters).build().unwrap();
    still_granted(&redlock).await;
    let set = |i: usize, words: &[&str]| -> () { masters[i].command(words) };
    let clear = |i: usize| {
        set(i, &["REPLICAOF", "NO", "ONE"]);
        set(i, &["CONFIG", "SET", "maxmemory", "0"]);
        set(i, &["ACL", "SETUSER", "default", "+hset"]);
        let _: i64 = masters[i].command(&["DEL", "quorate:{l}"]);
    };
    let port = elsewhere.port().to_string();
    let faults: [(Refusal, &[&str]); 4] = [
        (Refusal::ReadOnly, &["REPLICAOF", "127.0.0.1", &port]),
        (Refusal::OutOfMemory, &["CONFIG", "SET", "maxmemory", "1"]),
        (Refusal::NoPermission, &["ACL", "SETUSER", "default", "-hset"]),
        (Refusal::WrongType, &["SET", "quorate:{l}", "x"]),
    ];
    for (reason, fault) in faults {
        set(0, fault);
        set(1, fault);
        still_granted(&redlock).await;
        set(2, fault);
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        let as_it_should = match error {
            Error::AnotherKind { .. } => reason == Refusal::WrongType,
            Error::Refused { reason: Refusal::NoPermission, .. } => reason == Refusal::NoPermission,
            Error::NoQuorum { .. } => !matches!(reason, Refusal::WrongType | Refusal::NoPermission),
            _ => false,
        };
        assert!(as_it_should, "{error}");
        let given: Vec<_> = error.votes().iter().filter_map(refusal).collect();
        assert_eq!(given, [reason; 3], "{error}");
        (0..3).for_each(clear);
        answering(&redlock, 5).await;
        still_granted(&redlock).await;
    }
}

#[tokio::test]
async fn a_master_that_cannot_persist_refuses() {
    let server = RedisServer::start_with(&["--dbfilename", "x.rdb"]);
    let _: () = server.command(&["CONFIG", "SET", "save", "900 1"]);
    let redlock = crate::begin().master(server.url()).timeout(PATIENT).ttl(TTL).build().unwrap();
    still_granted(&redlock).await;
    std::fs::create_dir(server.folder().join("x.rdb")).unwrap(); // it cannot replace a folder by a file
    let _: String = server.command(&["BGSAVE"]);
    let mut tries = 0;
    until("MISCONF", async || {
        tries += 1; // a lock of its own for each: the one before may be granted, and its release refused
        let error = redlock.lock(format!("l{tries}")).try_acquire().await.err();
        error.is_some_and(|error| refusal(&error.votes()[0]) == Some(Refusal::Misconfigured))
    })
    .await;
}

#[tokio::test]
async fn a_master_that_is_busy_with_a_script_refuses() {
    let server = RedisServer::start_with(&["--busy-reply-threshold", "1"]);
    let redlock = crate::begin().master(server.url()).timeout(PATIENT).ttl(TTL).build().unwrap();
    still_granted(&redlock).await;
    let url = server.url();
    let endless = std::thread::spawn(move || {
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut connection)
    });
    until("BUSY", async || {
        let error = redlock.lock("l").try_acquire().await.err();
        error.is_some_and(|error| refusal(&error.votes()[0]) == Some(Refusal::Busy))
    })
    .await;
    let _: () = server.command(&["SCRIPT", "KILL"]);
    assert!(endless.join().unwrap().is_err());
    // A release that was refused meanwhile is repeated soon.
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_master_that_is_loading_refuses() {
    // While it loads it hears clients after each few keys, and not every two megabytes: a handshake
    // has several steps. Few keys that take long: a busy machine makes each sleep longer.
    let slowly = "--enable-debug-command yes --key-load-delay 10000 --rdbcompression no \
                  --loading-process-events-interval-bytes 2048";
    let slowly: Vec<&str> = slowly.split_whitespace().collect();
    let mut server = RedisServer::start_with(&slowly);
    let url = server.url();
    let redlock = crate::begin().master(url).timeout(PATIENT).ttl(TTL).build().unwrap();
    still_granted(&redlock).await;
    let _: () = server.command(&["DEBUG", "POPULATE", "400", "key", "1000"]);
    let _: () = server.command(&["SAVE"]);
    let restarting = std::thread::spawn(move || {
        server.restart(); // four seconds, while it listens and refuses
        server
    });
    until("LOADING", async || {
        let error = redlock.lock("l").try_acquire().await.err();
        error.is_some_and(|error| match &error.votes()[0].outcome {
            Outcome::Refused { reason, .. } => *reason == Refusal::Loading, // it does not shake hands yet
            _ => false,
        })
    })
    .await;
    let _server = restarting.join().unwrap();
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
}

/// The others are dead, and the client connects for the first time: whatever the master says then
/// is what the caller is told.
#[tokio::test]
async fn a_master_that_answers_is_never_unreachable() {
    let behind = RedisServer::start_with_clock(&[]);
    behind.step_clock(-60_000);
    answers_with(&behind, Refusal::Clock, &["its clock is ", "s behind this host's", "too few masters"])
        .await;

    let lost = RedisServer::start();
    answers_with(&lost, Refusal::Other, &["it has no record", "was not heard yet"]).await;

    let busy = RedisServer::start_with(&["--busy-reply-threshold", "1"]);
    let _endless = std::thread::spawn({
        let url = busy.url();
        move || {
            let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
            let _ = redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut connection);
        }
    });
    until("BUSY", async || busy.try_command::<()>(&["GET", "x"]).is_err()).await;
    answers_with(&busy, Refusal::Busy, &["BUSY"]).await;
    let _: () = busy.command(&["SCRIPT", "KILL"]);

    let cannot_persist = RedisServer::start_with(&["--dbfilename", "x.rdb"]);
    let _: () = cannot_persist.command(&["CONFIG", "SET", "save", "900 1"]);
    std::fs::create_dir(cannot_persist.folder().join("x.rdb")).unwrap();
    let _: String = cannot_persist.command(&["BGSAVE"]);
    until("MISCONF", async || cannot_persist.try_command::<()>(&["SET", "x", "x"]).is_err()).await;
    answers_with(&cannot_persist, Refusal::Misconfigured, &["MISCONF"]).await;

    let without_master = ["--replicaof", "127.0.0.1", "1", "--replica-serve-stale-data", "no"];
    answers_with(&RedisServer::start_with(&without_master), Refusal::Other, &["MASTERDOWN"]).await;

    let node = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    answers_with(&node, Refusal::Other, &["the handshake failed: ERR"]).await;
}

#[tokio::test]
async fn a_master_that_answers_a_listing_alone_granted_nothing() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    (1..3).for_each(|i| masters[i].freeze());
    let error = redlock.list().next().await.unwrap_err();
    let shown = format!("{} answered (some of its names); ", masters[0].url());
    assert!(format!("{error:#}").contains(&shown), "{error:#}");
}

/// It is the client that cannot tell the time: no master is to blame.
#[tokio::test]
async fn masters_refuse_nothing_while_the_client_cannot_tell_the_time() {
    let masters = Masters::start_with_clocks(3, &[]);
    let redlock = patient(&masters);
    answering(&redlock, 3).await;
    masters[1].step_clock(-60_000);
    masters[2].step_clock(60_000);
    let mut error = Error::Closed;
    until("answers without a vote", async || {
        // Valkey 9 goes by the clock before the step for one command more.
        let Err(seen) = redlock.lock("l").try_acquire().await else { return false };
        error = seen;
        error.votes().iter().any(|vote| matches!(vote.outcome, Outcome::Answered(_)))
    })
    .await;
    assert!(error.to_string().contains(" answered"), "{error}");
    let text = format!("{error:#}");
    assert!(text.contains("answered (too few masters answer to tell the time, or "), "{text}");
    assert!(!text.contains("refused"), "{text}");
}

/// A client of this master and two dead ones is told these words of it.
async fn answers_with(server: &RedisServer, wanted: Refusal, says: &[&str]) {
    let dead = Masters::start(2);
    let urls = [server.url()].into_iter().chain(dead.urls());
    let redlock = Redlock::builder().masters(urls).timeout(PATIENT).build().unwrap();
    dead.iter().for_each(RedisServer::kill);
    for _ in 0..3 {
        let seen = redlock.lock("l").inspect().await.unwrap(); // it waits for all of them
        let votes = seen.votes();
        let Outcome::Refused { reason, detail } = &votes[0].outcome else { panic!("{votes:?}") };
        assert!(*reason == wanted && says.iter().all(|words| detail.contains(words)), "{votes:?}");
        assert!(matches!(votes[1].outcome, Outcome::Unreachable(_)), "{votes:?}");
        let error = redlock.lock("l").wait(ms(100)).acquire().await.unwrap_err();
        assert!(matches!(error, Error::NoQuorum { .. }), "{error:#}");
    }
}

#[tokio::test]
async fn scripts_that_a_master_forgot_are_sent_again() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    still_granted(&redlock).await;
    for server in masters.iter() {
        let _: () = server.command(&["SCRIPT", "FLUSH"]);
    }
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    guard.extend(TTL).await.unwrap();
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// How often a server was told this command, by scripts too.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u32 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
    let count = |field: &str, line: &str| -> u32 {
        line.split([',', '=']).skip_while(|word| *word != field).nth(1).unwrap().parse().unwrap()
    };
    line.map_or(0, |line| count("calls", line) + count("rejected_calls", line))
}

/// A master that refuses every script has nothing of ours, so nothing has to be told to it again
/// and again.
#[tokio::test]
async fn nothing_piles_up_for_a_master_that_refuses() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).ttl(ms(2_500)).timeout(ms(1_000)).build().unwrap();
    still_granted(&redlock).await;
    let guard = redlock.lock("before").acquire().await.unwrap();
    crate::on_all(&masters).await;
    let _: () = masters[0].command(&["ACL", "SETUSER", "default", "-evalsha"]);
    guard.release().await.unwrap(); // this one is repeated to it, for as long as the key lives
    let mut unheard = 0; // the refusal came after the grant: the release is repeated until the key is over
    for i in 0..300 {
        let guard = redlock.lock(format!("l{i}")).try_acquire().await.unwrap();
        unheard += u32::from(guard.votes()[0].outcome == Outcome::Pending);
        guard.release().await.unwrap();
    }
    tokio::time::sleep(ms(1_000)).await; // time for repetitions, if there were any
    let count = calls(&masters[0], "evalsha");
    assert!(count < 300 * 3 + unheard * 15, "{count} calls for 300 locks, {unheard} of them unheard");
    assert!(redlock.shutdown(SOON).await.is_complete()); // at the latest when the keys are over
}

/// A caller with little time speaks for itself only: the masters are not dead for everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_time_out_of_one_lock_does_not_disturb_another() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    still_granted(&redlock).await;
    let pause = || masters.iter().for_each(|server| server.command(&["CLIENT", "PAUSE", "120", "ALL"]));
    for connected in [false, true] {
        let mut others = Vec::new();
        let is_granted = async {
            // The calm one has a quarter of a second, of which a busy machine may take all now and
            // then.
            for _ in 0..10 {
                let short = crate::begin().masters(masters.urls()).build().unwrap();
                let (hurried, calm) = (short.lock("hurried").ttl(ms(40)), short.lock("calm"));
                if connected {
                    let _ = short.lock("x").wait(SOON).acquire().await.unwrap().release().await;
                }
                pause();
                let (given_up, guard) = (hurried.try_acquire().await.is_err(), calm.try_acquire().await);
                if given_up && guard.is_ok() {
                    return true;
                }
                others.push((given_up, guard.map(drop)));
            }
            false
        };
        assert!(is_granted.await, "connected: {connected}, {others:?}");
    }
}

/// It accepts, greets, and hangs up: not every twenty milliseconds for ever.
#[tokio::test]
async fn a_master_that_keeps_hanging_up_is_left_in_peace() {
    let server = RedisServer::start();
    let redlock = crate::begin().master(server.url()).timeout(PATIENT).ttl(TTL).build().unwrap();
    still_granted(&redlock).await;
    let connections = || -> u32 {
        let info: String = server.command(&["INFO", "stats"]);
        info.lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let (begun, before) = (Instant::now(), connections());
    let mut ours = 0;
    while begun.elapsed() < ms(2_000) {
        let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        ours += 2; // this one, and the one that asks
        tokio::time::sleep(ms(5)).await;
    }
    let theirs = connections() - before - ours / 2;
    assert!(theirs < 20, "{theirs} connections in two seconds");
}

/// A re-entry that failed may have left a longer TTL on a master: the release that follows must
/// reach it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_re_entry_left_is_released_with_the_rest() {
    let mut masters = Masters::start(3);
    let redlock = all_new(&masters).timeout(ms(1_500)).build().unwrap();
    answering(&redlock, 3).await;
    masters[2].kill();
    let silent = |i: usize| {
        let redlock = redlock.clone();
        until("a master to be known to be out of reach", async move || {
            let seen = redlock.lock("x").inspect().await.unwrap();
            matches!(seen.votes()[i].outcome, Outcome::Unreachable(_))
        })
    };
    silent(2).await;
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let outer = lock.clone().ttl(ms(20_000)).acquire().await.unwrap();
    until("both keys", async || masters[0].keys().len() + masters[1].keys().len() == 2).await;
    masters[2].restart();
    answering(&redlock, 3).await;
    masters[0].freeze();
    masters[1].freeze();
    lock.clone().ttl(ms(3_600_000)).try_acquire().await.unwrap_err(); // granted by the third
    masters[0].thaw();
    masters[1].thaw();
    answering(&redlock, 3).await;
    assert_eq!(masters[2].keys().len(), 1);
    masters[2].freeze();
    silent(2).await;
    outer.release().await.unwrap();
    masters[2].thaw();
    eventually(SOON, || masters.empty()).await;
}

/// Redis lets in what follows another write of the same script: the place that a waiter gives up,
/// the entry that an acquire replaces, the operations before it in its call.
#[tokio::test]
async fn a_full_master_grants_nobody_a_lock_and_all_else_works() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).wait(ms(500)).build().unwrap();
    let guard = redlock.lock("held").acquire().await.unwrap();
    let me = redlock.owner();
    let mine = redlock.lock("mine").owned_by(&me).acquire().await.unwrap();
    let mut guards = Vec::new();
    for i in 0..100 {
        guards.push(redlock.lock(format!("l{i}")).acquire().await.unwrap());
    }
    redlock.lock("old").acquire().await.unwrap().release().await.unwrap();
    masters.iter().for_each(|server| crate::give(server, "over", "somebody", Duration::ZERO));
    let limit = |bytes: &str| {
        for server in masters.iter() {
            let _: () = server.command(&["CONFIG", "SET", "maxmemory", bytes]);
        }
    };
    limit("1");
    let refused = |error: Error| {
        let full = |vote: &&Vote| refusal(vote) == Some(Refusal::OutOfMemory);
        assert!(error.votes().iter().filter(full).count() >= 2, "{error:#}");
    };
    for lock in ["new", "old", "over"].map(|name| redlock.lock(name)) {
        refused(lock.try_acquire().await.unwrap_err());
        refused(lock.acquire().await.unwrap_err());
    }
    for lock in [redlock.fair_lock("f"), redlock.write_lock("rw"), redlock.semaphore("s", 2)] {
        refused(lock.acquire().await.unwrap_err());
    }
    let error = redlock.lock("held").try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error:#}");
    refused(redlock.read_lock("r").acquire().await.unwrap_err());
    refused(redlock.plain_mutex("p").acquire().await.unwrap_err());
    refused(redlock.redisson_lock("q").acquire().await.unwrap_err());

    guard.extend(TTL * 2).await.unwrap();
    let again = redlock.lock("mine").owned_by(&me).acquire().await.unwrap();
    // In one call with the releases.
    let next: Vec<_> = (0..100).map(|i| redlock.lock(format!("n{i}"))).collect();
    let releases = join_all(guards.into_iter().map(Guard::release));
    let (released, acquired) = tokio::join!(releases, join_all(next.iter().map(Lock::try_acquire)));
    assert!(released.iter().all(Result::is_ok), "{released:?}");
    acquired.into_iter().for_each(|acquired| refused(acquired.unwrap_err()));
    for guard in [guard, mine, again] {
        guard.release().await.unwrap();
    }
    limit("0");
    redlock.lock("new").acquire().await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// A waiter is told at once, on each server, and does not wait until its time is over.
#[tokio::test]
async fn what_is_denied_or_unknown_in_a_script_is_refused_for_good() {
    const RENAMED: &[&str] = &["--rename-command", "HMGET", ""];
    let denied: [(&'static [&str], &[&str], Refusal); 3] = [
        (&[], &["-hset"], Refusal::NoPermission),
        (&[], &["resetkeys", "~quorate:master"], Refusal::NoPermission),
        (RENAMED, &[], Refusal::Unsupported),
    ];
    for (options, rules, wanted) in denied {
        let masters = Masters::start_with(3, options);
        let redlock = all_new(&masters).build().unwrap();
        if !rules.is_empty() {
            answering(&redlock, 3).await;
        }
        for server in masters.iter().filter(|_| !rules.is_empty()) {
            let _: () = server.command(&[&["ACL", "SETUSER", "default"], rules].concat());
        }
        let lock = redlock.lock("l").wait(TTL * 2);
        let refused = tokio::time::timeout(SOON, lock.acquire()).await.expect("it does not wait");
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::Refused { reason, .. } if reason == wanted), "{refused:#}");
    }
}
