//! What a master is asked when a connection is opened, and who has no vote after that.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate::seam::{
    BootClock, Call, Clock, Failure, Master, MasterIndex, ReplySink, SCRIPTS, Value, connect,
};
use quorate::{Builder, Error, Init, Moment, Redlock, Refusal, Standing};
use quorate_testkit::{Masters, Proxy, RedisServer};

use crate::altered::Altered;
use crate::{SOON, begin_new, begun, ms, until};

const MAX_TTL: Duration = Duration::from_secs(1);

/// The quarantine that follows from it.
const QUARANTINE: Duration = Duration::from_millis(5_010);

fn client(masters: &Masters) -> Builder {
    Redlock::builder().masters(masters.urls()).ttl(MAX_TTL).max_ttl(MAX_TTL).timeout(ms(500))
}

/// Why the masters cannot be voted with, each in its own words.
async fn refused(redlock: &Redlock) -> Vec<String> {
    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    error.votes().iter().map(|vote| vote.outcome.to_string()).collect()
}

#[tokio::test]
async fn an_init_that_is_dropped_does_not_stop_another_one_of_the_same_client() {
    let masters = Masters::start(3);
    let redlock = client(&masters).wait(SOON).build().unwrap();
    masters[2].freeze();
    let first = redlock.init(Init::new());
    tokio::pin!(first);
    let second = tokio::time::timeout(ms(300), redlock.init(Init::new()));
    tokio::select! {
        outcome = &mut first => panic!("it has to wait for the third master: {outcome:?}"),
        outcome = second => assert!(outcome.is_err(), "{outcome:?}"),
    }
    masters[2].thaw();
    first.await.unwrap();
}

#[tokio::test]
async fn a_set_begins_by_init_alone_and_then_when_all_that_its_masters_may_have_granted_is_over() {
    let masters = Masters::start(3);
    let (redlock, other) = (client(&masters).build().unwrap(), client(&masters).build().unwrap());
    let said = async || {
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        matches!(&error, Error::Refused { reason: Refusal::NoSet, .. })
            && error.to_string().contains("quorate init")
    };
    until("the command to be named", said).await;
    let began = Instant::now();
    let told = Arc::new(Mutex::new(String::new()));
    let to = told.clone();
    let telling = Init::new().on_progress(move |what, left| *to.lock().unwrap() = format!("{what} {left:?}"));
    let (one, two) = tokio::join!(redlock.init(telling), other.init(Init::new()));
    one.and(two).unwrap();
    let told = told.lock().unwrap().clone();
    assert!(
        told.starts_with("3 of 3 masters (redis://") && told.contains("quarantine is over, in "),
        "{told}"
    );
    let took = began.elapsed();
    assert!(took > QUARANTINE - ms(100) && took < QUARANTINE + ms(8_000), "{took:?}");
    drop(redlock.lock("l").try_acquire().await.unwrap());
    let began = Instant::now();
    client(&masters).build().unwrap().init(Init::new()).await.unwrap();
    assert!(began.elapsed() < QUARANTINE / 2, "what is complete is left alone");
}

/// A client that saw the set whole looks again before it says that the set is.
#[tokio::test]
async fn init_begins_a_set_again_that_was_lost_since_this_client_saw_it() {
    let mut masters = Masters::start(5);
    let redlock = crate::begun(client(&masters).max_ttl(SOON).ttl(SOON), Init::new()).await;
    drop(redlock.lock("l").acquire().await.unwrap());
    (0..3).for_each(|at| masters[at].kill());
    (0..3).for_each(|at| masters[at].restart());
    redlock.init(Init::new()).await.unwrap();
    drop(redlock.lock("l").try_acquire().await.unwrap());
}

/// A program that runs `init` at each start has its lock soon, too.
#[tokio::test]
async fn init_of_a_begun_set_does_not_wait_for_a_dead_master() {
    for count in [3, 5] {
        let mut masters = Masters::start(count);
        drop(begun(client(&masters), Init::new()).await);
        masters[0].kill();
        if count == 5 {
            masters[1].restart_empty();
        }
        let redlock = client(&masters).build().unwrap();
        let began = Instant::now();
        redlock.init(Init::new()).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let its_record =
            |at: usize| masters[at].command::<Option<String>>(&["HGET", "quorate:master", "state"]);
        assert_eq!(its_record(1).as_deref(), Some("member"), "one that lost its state is waited for");
        drop(redlock.lock("l").acquire().await.unwrap());
    }
}

#[tokio::test]
async fn init_waits_for_all_masters_of_a_set_that_has_not_begun() {
    let masters = Masters::start(3);
    masters[0].kill();
    let redlock = client(&masters).wait(QUARANTINE).build().unwrap();
    let error = redlock.init(Init::new()).await.unwrap_err();
    assert!(error.to_string().contains(&masters[0].url()) && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn whoever_says_that_no_master_was_ever_used_names_their_processes() {
    let mut masters = Masters::start(3);
    let redlock = client(&masters).build().unwrap();
    let fingerprint = redlock.fingerprint().await.unwrap();
    let refused = redlock.init(Init::new().never_used("00000000")).await.unwrap_err();
    assert!(refused.to_string().contains(&*fingerprint), "{refused}");
    masters[0].restart_empty();
    let refused = redlock.init(Init::new().never_used(&fingerprint)).await.unwrap_err();
    assert!(refused.to_string().contains("fingerprint"), "{refused}");
    redlock.init(Init::new()).await.unwrap(); // the others may have begun
    let refused = redlock.init(Init::new().never_used(fingerprint)).await.unwrap_err();
    assert!(refused.to_string().contains("has a record"), "{refused}");
    let refused = redlock.fingerprint().await.unwrap_err().to_string();
    assert!(refused.contains("have no fingerprint: ") && refused.contains("has a record"), "{refused}");
    drop(redlock.lock("l").try_acquire().await.unwrap());
}

/// Also one that keeps every write: nobody asks how.
#[tokio::test]
async fn a_master_that_restarts_waits_for_a_quarantine() {
    for options in [&[][..], &["--appendonly", "yes", "--appendfsync", "always"]] {
        let mut masters = Masters::start_with(3, options);
        let client = client(&masters).max_ttl(SOON).ttl(SOON).timeout(crate::PATIENT);
        let redlock = begun(client, Init::new()).await;
        masters[0].restart();
        until("it to be in quarantine", async || {
            let _ = redlock.lock("x").inspect().await;
            matches!(redlock.master_status()[0].standing, Standing::Quarantined { left, .. } if left > SOON / 2)
        })
        .await;
    }
}

/// A master that lost its record gets it again if most others have theirs: also another one, while
/// that waits for its quarantine.
#[tokio::test]
async fn masters_that_lost_their_records_get_them_again() {
    for emptied in [1, 2] {
        let mut masters = Masters::start(3);
        let redlock = begun(client(&masters), Init::new()).await;
        let began = Instant::now();
        let is_trusted = |master: &quorate::MasterStatus| master.standing == Standing::Trusted;
        for at in 0..emptied {
            masters[at].restart_empty();
            until("it to be noticed", async || {
                let _ = redlock.lock("x").inspect().await;
                matches!(redlock.master_status()[at].standing, Standing::Quarantined { .. })
            })
            .await;
        }
        until("all to vote", async || {
            let _ = redlock.lock("x").inspect().await;
            redlock.master_status().iter().all(is_trusted)
        })
        .await;
        assert!(began.elapsed() > QUARANTINE - ms(100), "{emptied}: {:?}", began.elapsed());
        drop(redlock.lock("l").acquire().await.unwrap());
    }
}

/// Of three masters one is gone for good and another one forgot: a person says that the set goes
/// on.
#[tokio::test]
async fn a_set_of_which_most_forgot_or_are_gone_goes_on_when_a_person_says_so() {
    let mut masters = Masters::start(3);
    let redlock = begun(client(&masters), Init::new()).await;
    drop(redlock.lock("l").acquire().await.unwrap());
    drop(redlock);
    masters[0].kill();
    masters[1].restart_empty();
    let redlock = client(&masters).build().unwrap();
    let error = redlock.lock("l").wait(QUARANTINE + ms(2_000)).acquire().await.unwrap_err();
    let waits_for = format!("{} has to answer first", masters[0].url());
    assert!(format!("{error:#}").contains(&waits_for), "{error:#}");
    let began = Instant::now();
    redlock.recover().await.unwrap();
    drop(redlock.lock("l").wait(SOON).acquire().await.unwrap());
    assert!(began.elapsed() > QUARANTINE - ms(100), "{:?}", began.elapsed());
    masters[0].restart_empty(); // it comes back after all
    redlock.init(Init::new()).await.unwrap();
    until("all to vote", async || {
        let _ = redlock.lock("x").inspect().await;
        redlock.master_status().iter().all(|master| master.standing == Standing::Trusted)
    })
    .await;
}

/// The one that has its record may answer last.
#[tokio::test]
async fn that_there_is_no_set_is_said_when_all_masters_were_heard() {
    let mut masters = Masters::start(3);
    drop(begun(client(&masters), Init::new()).await);
    masters[0].restart_empty();
    masters[1].restart_empty();
    masters[2].freeze();
    let redlock = client(&masters).build().unwrap();
    let name = masters[2].url();
    until("the first two to wait for the third", async || {
        refused(&redlock).await.iter().filter(|said| said.contains(&name)).count() == 2
    })
    .await;
    masters[2].thaw();
    has_no_set(&redlock).await;
    redlock.init(Init::new()).await.unwrap();
    drop(redlock.lock("l").wait(QUARANTINE + SOON).acquire().await.unwrap());
}

/// Waits until an acquire fails because at least half of the masters have no record.
async fn has_no_set(redlock: &Redlock) {
    until("it to be said", async || {
        let said = refused(redlock).await;
        said.iter().any(|said| said.contains("have no record") && said.contains("quorate init"))
    })
    .await;
}

/// Their records are there when they restart.
async fn save(masters: &Masters) {
    for master in masters.iter() {
        until("it to be saved", async || master.try_command::<()>(&["SAVE"]).is_ok()).await;
    }
}

/// As when the engine of their containers restarts.
#[tokio::test]
async fn all_masters_restarted_with_records_go_on() {
    for count in [1, 2, 3, 5] {
        let mut masters = Masters::start(count);
        let redlock = begun(client(&masters), Init::new()).await;
        drop(redlock.lock("l").acquire().await.unwrap());
        save(&masters).await;
        (0..count).for_each(|at| masters[at].kill());
        (0..count).for_each(|at| masters[at].restart());
        drop(client(&masters).build().unwrap().lock("l").wait(SOON * 2).acquire().await.unwrap());
        drop(redlock.lock("l").wait(SOON * 2).acquire().await.unwrap());
    }
}

/// One of two, and two of four.
#[tokio::test]
async fn half_of_the_masters_without_records_wait_for_init() {
    for count in [2, 4] {
        let mut masters = Masters::start(count);
        let redlock = begun(client(&masters), Init::new()).await;
        drop(redlock.lock("l").acquire().await.unwrap());
        (0..count / 2).for_each(|at| masters[at].restart_empty());
        has_no_set(&redlock).await;
        let other = client(&masters).build().unwrap();
        has_no_set(&other).await;
        other.init(Init::new()).await.unwrap();
        for redlock in [redlock, other] {
            drop(redlock.lock("l").wait(SOON * 2).acquire().await.unwrap());
        }
    }
}

/// As after a power cut, if they write nothing to their disks.
#[tokio::test]
async fn five_empty_masters_after_init_serve_running_clients() {
    let mut masters = Masters::start(5);
    let redlock = begun(client(&masters), Init::new()).await;
    drop(redlock.lock("l").acquire().await.unwrap());
    (0..5).for_each(|at| masters[at].kill());
    (0..5).for_each(|at| masters[at].restart_empty());
    has_no_set(&redlock).await;
    client(&masters).build().unwrap().init(Init::new()).await.unwrap();
    drop(redlock.lock("l").wait(SOON * 2).acquire().await.unwrap());
}

/// The set of a master, by its record.
fn set_of(master: &RedisServer) -> String {
    master.command::<String>(&["HGET", "quorate:master", "set"])
}

#[tokio::test]
async fn three_inits_at_once_agree() {
    let masters = Masters::start(3);
    let init = async || client(&masters).wait(SOON * 2).build().unwrap().init(Init::new()).await;
    let (one, two, three) = tokio::join!(init(), init(), init());
    one.and(two).and(three).unwrap();
    assert!(masters.iter().all(|master| set_of(master) == set_of(&masters[0])));
    drop(client(&masters).build().unwrap().lock("l").wait(SOON).acquire().await.unwrap());
}

/// Each names the other list.
#[tokio::test]
async fn three_inits_with_different_lists_are_refused() {
    let masters = Masters::start(6);
    let init = async |at: [usize; 3]| {
        let urls = at.map(|at| masters.urls()[at].clone());
        let client = Redlock::builder().masters(urls).ttl(MAX_TTL).max_ttl(MAX_TTL).timeout(ms(500));
        client.wait(SOON).build().unwrap().init(Init::new()).await
    };
    let lists = [[0, 1, 3], [1, 2, 4], [2, 0, 5]];
    let (one, two, three) = tokio::join!(init(lists[0]), init(lists[1]), init(lists[2]));
    let errors: Vec<_> = [one, two, three].into_iter().filter_map(Result::err).collect();
    assert!(errors.len() >= 2, "lists that share a master");
    for error in errors {
        assert!(
            error.to_string().contains("prepared for") || error.to_string().contains("its set is"),
            "{error}"
        );
    }
}

/// Somebody took the key away by hand. Others restart beside it.
#[tokio::test]
async fn a_master_that_lost_its_promises_alone_counts_as_one_that_forgot() {
    let mut masters = Masters::start(3);
    let redlock = begun(client(&masters), Init::new()).await;
    drop(redlock.lock("l").acquire().await.unwrap());
    save(&masters).await;
    masters[2].kill();
    assert_eq!(masters[1].command::<usize>(&["DEL", "quorate:decree"]), 1);
    masters[0].restart();
    // The third has not promised anything: it has to be there.
    let waits = redlock.lock("l").wait(QUARANTINE).acquire().await.unwrap_err();
    assert!(format!("{waits:#}").contains(&format!("{} has to answer first", masters[2].url())), "{waits:#}");
    masters[2].restart();
    let has_promises = async || masters[1].command::<usize>(&["EXISTS", "quorate:decree"]) == 1;
    until("its promises", has_promises).await;
    drop(redlock.lock("l").wait(QUARANTINE + SOON).acquire().await.unwrap());
}

/// An address that led to another set's master, and leads nowhere now.
#[tokio::test]
async fn what_a_master_said_of_a_list_is_over_when_it_is_gone() {
    let (ours, other) = (Masters::start(3), Masters::start(1));
    begun(client(&other), Init::new()).await;
    let proxy = Proxy::start(ours[2].address()).await;
    let builder = || {
        Redlock::builder().ttl(MAX_TTL).max_ttl(MAX_TTL).timeout(ms(500)).masters([
            ours[0].url(),
            ours[1].url(),
            proxy.url(),
        ])
    };
    begun(builder(), Init::new()).await;
    let lead_to = |address| {
        proxy.lead_to(address);
        proxy.reset();
    };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refuses = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let locked = RedisServer::start_with(&["--requirepass", "secret"]);
    for nowhere in [silent.local_addr().unwrap(), refuses, locked.address()] {
        lead_to(other[0].address());
        let redlock = builder().build().unwrap();
        let is_refused =
            async || matches!(redlock.lock("l").try_acquire().await, Err(Error::OtherSet { .. }));
        until("a refusal", is_refused).await;
        lead_to(nowhere);
        until("the lock", async || redlock.lock("l").try_acquire().await.is_ok()).await;
    }
}

/// As when two hosts are given each other's address: all three masters are there again.
#[tokio::test]
async fn masters_that_exchange_their_addresses_are_found_again() {
    let masters = Masters::start(3);
    let proxies = [Proxy::start(masters[0].address()).await, Proxy::start(masters[1].address()).await];
    let list = [proxies[0].url(), proxies[1].url(), masters[2].url()];
    let builder = Redlock::builder().ttl(MAX_TTL).max_ttl(MAX_TTL).timeout(ms(500));
    let redlock = begun(builder.masters(list), Init::new()).await;
    crate::answering(&redlock, 3).await;
    for (proxy, other) in proxies.iter().zip([&masters[1], &masters[0]]) {
        proxy.lead_to(other.address());
    }
    proxies.iter().for_each(Proxy::reset);
    crate::answering(&redlock, 3).await;
    drop(redlock.lock("l").wait(SOON).acquire().await.unwrap());
}

#[tokio::test]
async fn clients_that_disagree_are_refused_and_told_about_what() {
    let masters = Masters::start(3);
    let first = begin_new().masters(masters.urls()).build().unwrap();
    crate::answering(&first, 3).await;
    let alike = || begin_new().timeout(ms(500));
    let other = alike().masters(masters.urls()).max_ttl(Duration::from_secs(60));
    let said = refused(&other.build().unwrap()).await;
    assert!(said.iter().any(|said| said.contains("60000 ms") && said.contains("30000 ms")), "{said:?}");
    let two = alike().masters(&masters.urls()[..2]).build().unwrap();
    let said = async || {
        let error = two.lock("l").try_acquire().await.unwrap_err();
        matches!(&error, Error::OtherSet { why, .. } if why.contains(&*masters[2].url()))
    };
    until("both lists to be named", said).await;
    drop(first.lock("l").acquire().await.unwrap());
}

#[tokio::test]
async fn a_replica_and_a_master_that_may_drop_keys_are_refused() {
    let masters = Masters::start(3);
    let primary = RedisServer::start();
    let _: () = masters[0].command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let _: () = masters[0].command(&["CONFIG", "SET", "replica-read-only", "no"]);
    let _: () = masters[1].command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let _: () = masters[1].command(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    let redlock = begin_new().masters(masters.urls()).timeout(ms(500)).build().unwrap();
    until("both to be refused", async || {
        let said = refused(&redlock).await;
        said[0].contains("it is a slave") && said[1].contains("volatile-lru")
    })
    .await;
    let _: () = masters[1].command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    drop(redlock.lock("l").wait(SOON).acquire().await.unwrap());
}

/// The machine's clock, but that somebody has set the time wrong.
#[derive(Debug)]
struct Wrong;

impl Clock for Wrong {
    fn now(&self) -> Moment {
        BootClock.now()
    }

    fn wall(&self) -> Duration {
        BootClock.wall() + Duration::from_secs(3_600)
    }
}

#[tokio::test]
async fn a_client_whose_clock_is_wrong_goes_by_the_masters() {
    let masters = Masters::start(3);
    let right = begin_new().masters(masters.urls()).build().unwrap();
    crate::answering(&right, 3).await;
    let wrong = begin_new().masters(masters.urls()).clock(Arc::new(Wrong)).build().unwrap();
    let guard = wrong.lock("l").acquire().await.unwrap();
    let before = guard.fencing_token();
    guard.release().await.unwrap();
    assert!(right.lock("l").acquire().await.unwrap().fencing_token() > before, "its tokens are as others'");
}

/// A master whose clock is wrong from the start has no vote, and the others are enough.
#[tokio::test]
async fn a_master_whose_clock_is_wrong_has_no_vote() {
    let masters = Masters::start_with_clocks(3, &[]);
    masters[0].step_clock(-3_600_000);
    let redlock = begin_new().masters(masters.urls()).timeout(ms(500)).build().unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    until(
        "it to be refused",
        async || matches!(&redlock.master_status()[0].standing, Standing::Refused(why) if why.contains("clock")),
    )
    .await;
    assert!(guard.is_valid());
    masters[0].set_clock_offset(0);
    until("it to be trusted", async || {
        let _ = redlock.lock("x").inspect().await;
        redlock.master_status()[0].standing == Standing::Trusted
    })
    .await;
}

/// Hears the answer to an extend.
struct AnHourAhead(Arc<dyn ReplySink>);

impl ReplySink for AnHourAhead {
    fn is_wanted(&self, index: MasterIndex) -> bool {
        self.0.is_wanted(index)
    }

    fn receive(&self, index: MasterIndex, answer: Result<Value, Failure>, time: Option<u64>) {
        self.0.receive(index, answer, time.map(|time| time + 3_600_000_000));
    }
}

/// A call to a master that is an hour ahead in what it answers to this verb.
fn ahead_from(verb: &str, call: Arc<Call>) -> Arc<Call> {
    if call.words.args().next() != Some(verb) {
        return call;
    }
    let sink = Arc::new(AnHourAhead(call.sink.clone()));
    Arc::new(Call { hot: call.hot.clone(), ..Call::new(call.script, call.words.clone(), call.kind, sink) })
}

fn ahead_from_extend_on(call: Arc<Call>) -> Arc<Call> {
    ahead_from("extend", call)
}

fn ahead_from_acquire_on(call: Arc<Call>) -> Arc<Call> {
    ahead_from("acquire", call)
}

/// Two of three are a quorum by number, and one of them is an hour ahead when it grants.
#[tokio::test]
async fn a_grant_by_a_clock_that_jumped_does_not_count() {
    let masters = Masters::start(3);
    let runtime = tokio::runtime::Handle::current();
    let reach = |(place, url): (usize, String)| -> Arc<dyn Master> {
        let master = connect(&url, SCRIPTS, SOON, &runtime).unwrap();
        if place == 0 { Arc::new(Altered(master, ahead_from_acquire_on)) } else { master }
    };
    let reached = masters.urls().into_iter().enumerate().map(reach);
    let redlock = begin_new().masters(reached.collect::<Vec<_>>()).timeout(ms(3000)).build().unwrap();
    crate::answering(&redlock, 3).await;
    masters[2].kill();
    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    let is_off = |vote: &quorate::Vote| {
        matches!(vote.outcome, quorate::Outcome::Refused { reason: quorate::Refusal::Clock, .. })
    };
    assert!(matches!(error, Error::NoQuorum { .. }) && error.votes().iter().any(is_off), "{error:#}");
}

/// One clock jumps between two answers of an acquire whose masters gave different tokens: the
/// others are enough.
#[tokio::test]
async fn an_acquire_does_not_fail_for_one_clock_that_jumps_while_it_runs() {
    let masters = Masters::start(5);
    let runtime = tokio::runtime::Handle::current();
    let reach = |(place, url): (usize, String)| -> Arc<dyn Master> {
        let master = connect(&url, SCRIPTS, SOON, &runtime).unwrap();
        if place == 0 { Arc::new(Altered(master, ahead_from_extend_on)) } else { master }
    };
    let reached = masters.urls().into_iter().enumerate().map(reach);
    let redlock = begin_new().masters(reached.collect::<Vec<_>>()).timeout(ms(3000)).build().unwrap();
    crate::answering(&redlock, 5).await;
    for name in 0..10 {
        // No three give the same token.
        for (place, server) in masters.iter().enumerate().take(3) {
            let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
            let fence = (seconds * 1_000_000 + micros + 60_000_000 + place as u64).to_string();
            let key = format!("quorate:{{{name}}}");
            let _: i64 = server.command(&["HSET", &key, "kind", "lock", "fence", &fence]);
        }
        let guard = redlock.lock(name.to_string()).try_acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

/// It is looked at every few seconds, behind calls, so that a client that is connected learns it.
#[tokio::test]
async fn a_master_that_may_drop_keys_from_now_on_loses_its_vote() {
    let masters = Masters::start(3);
    let redlock = begin_new().masters(masters.urls()).build().unwrap();
    crate::answering(&redlock, 3).await;
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    until("it to be refused", async || {
        drop(redlock.lock("l").acquire().await.unwrap());
        matches!(&redlock.master_status()[0].standing, Standing::Refused(why) if why.contains("allkeys-lru"))
    })
    .await;
    let _: () = masters[0].command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    until("it to be trusted", async || {
        drop(redlock.lock("l").acquire().await.unwrap());
        redlock.master_status()[0].standing == Standing::Trusted
    })
    .await;
}
