//! Sets whose masters change while clients hold and wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quorate::{Builder, Error, Init, MasterStatus, Redlock, SetChange, SetError, Standing};
use quorate_testkit::{Masters, Proxy, RedisServer};

use crate::shared::CHANNEL;
use crate::{SOON, begun, ms, until};

const MAX_TTL: Duration = Duration::from_secs(1);

fn client(servers: &[&RedisServer]) -> Builder {
    let urls = servers.iter().map(|server| server.url());
    Redlock::builder().masters(urls).max_ttl(MAX_TTL).ttl(MAX_TTL).wait(SOON).timeout(ms(450))
}

fn names(redlock: &Redlock) -> Vec<String> {
    redlock.master_status().iter().map(|status| status.master.to_string()).collect()
}

fn urls(servers: &[&RedisServer]) -> Vec<String> {
    servers.iter().map(|server| server.url()).collect()
}

/// Clients that take a few locks in turn, and see that each of them has it alone.
struct Load {
    stop: Arc<AtomicBool>,
    grants: Arc<AtomicUsize>,
    workers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    /// `one_dies`, so a release may not be heard of by most.
    fn begin(clients: &[Redlock], one_dies: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let grants = Arc::new(AtomicUsize::new(0));
        let taken: Arc<[AtomicBool]> = (0..3).map(|_| AtomicBool::new(false)).collect();
        let worker = |number: usize, redlock: Redlock| {
            let (stop, grants, taken) = (stop.clone(), grants.clone(), taken.clone());
            tokio::spawn(async move {
                let mut turn = number;
                while !stop.load(Ordering::Relaxed) {
                    turn += 1;
                    let name = turn % taken.len();
                    let guard = redlock.lock(format!("l{name}")).acquire().await;
                    let guard = guard.unwrap_or_else(|error| panic!("client {number}: {error:#}"));
                    assert!(!taken[name].swap(true, Ordering::SeqCst), "two hold l{name}");
                    tokio::task::yield_now().await;
                    assert!(guard.is_valid());
                    taken[name].store(false, Ordering::SeqCst);
                    match guard.release().await {
                        Err(Error::ReleaseUnconfirmed { .. }) if one_dies => {}
                        released => {
                            released.unwrap_or_else(|error| panic!("client {number}: {error:#}"));
                        }
                    }
                    grants.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let workers = clients.iter().cloned().enumerate();
        let workers =
            workers.flat_map(|(number, redlock)| [worker(number, redlock.clone()), worker(number, redlock)]);
        let workers = workers.collect();
        Self { stop, grants, workers }
    }

    /// Waits until there were some more grants.
    async fn goes_on(&self) {
        let before = self.grants.load(Ordering::Relaxed);
        until("grants", async || self.grants.load(Ordering::Relaxed) > before + 20).await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_changes_under_load_no_acquire_fails_and_leases_go_on() {
    let servers = Masters::start(6);
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    let clients = [first, client(&[a, b, c]).build().unwrap(), client(&[c, b, a]).build().unwrap()];
    let held = clients[1].lock("held").acquire().await.unwrap();
    let load = Load::begin(&clients, false);
    load.goes_on().await;
    let operator = client(&[a, b, c]).build().unwrap();
    let change = async |change: SetChange| operator.change_members(change).await.unwrap();
    for (what, now) in [
        (SetChange::add(d.url()), vec![a, b, c, d]),
        (SetChange::add(e.url()), vec![a, b, c, d, e]),
        (SetChange::remove(b.url()), vec![a, c, d, e]),
        (SetChange::replace(a.url(), f.url()), vec![c, d, e, f]),
    ] {
        change(what).await;
        // The wrong way round: it would take one away again.
        let why = refusal(&operator, SetChange::replace(now.last().unwrap().url(), c.url())).await;
        assert!(why.contains("is one of its masters already"), "{why}");
        assert_eq!(names(&operator), urls(&now));
        load.goes_on().await;
        assert!(held.is_valid());
        for redlock in &clients {
            let mut its = names(redlock);
            its.sort();
            let mut now = urls(&now);
            now.sort();
            assert_eq!(its, now);
        }
    }
    load.end().await;
    // One that is dead is replaced by one that was there before.
    let load = Load::begin(&clients, true);
    load.goes_on().await;
    c.kill();
    load.goes_on().await;
    change(SetChange::replace(c.url(), b.url())).await;
    load.goes_on().await;
    assert!(held.is_valid());
    held.release().await.unwrap();
    load.end().await;
}

/// Of three masters of a list that had four, two are enough to go on without the third.
#[tokio::test]
async fn a_master_that_died_after_another_left_is_replaced() {
    let servers = Masters::start(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    c.kill();
    a.kill();
    let operator = client(&[a, b, d]).build().unwrap();
    operator.change_members(SetChange::replace(a.url(), e.url())).await.unwrap();
    assert_eq!(names(&operator), urls(&[b, d, e]));
    operator.lock("l").acquire().await.unwrap().release().await.unwrap();
}

/// Another name for the same server.
fn alias(server: &RedisServer) -> String {
    server.url().replace("127.0.0.1", "localhost")
}

async fn refusal(operator: &Redlock, change: SetChange) -> String {
    match operator.change_members(change).await {
        Err(SetError::NotChanged { why, .. }) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_can_never_be_is_refused_before_anything_is_changed() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    for change in [SetChange::remove(d.url()), SetChange::replace("redis://localhost:1", d.url())] {
        let why = refusal(&first, change).await;
        assert!(why.contains("is none of its masters") && why.contains(&c.url()), "{why}");
    }
    let why = refusal(&first, SetChange::replace(a.url(), a.url())).await;
    assert!(why.contains("replace itself"), "{why}");
    let why = refusal(&first, SetChange::replace(a.url(), b.url())).await;
    assert!(why.contains("is one of its masters already"), "{why}");
    // What a newer build proposed, and most may have accepted.
    let promise = |words: &[&str]| {
        for server in [a, b, c] {
            let words = [&["HSET", "quorate:decree", "generation", "1", "promised", "9"], words].concat();
            server.command::<usize>(&words);
        }
    };
    promise(&["ballot", "9", "value", "v9 is new"]);
    let why = refusal(&first, SetChange::remove(b.url())).await;
    assert!(why.contains("a newer build"), "{why}");
    promise(&["ballot", "", "value", ""]);
    // It would leave one that answers, of two.
    c.kill();
    let why = refusal(&first, SetChange::remove(b.url())).await;
    assert!(why.contains("1 of these 2 answer"), "{why}");
    // The one that would replace the dead one is not there either.
    d.kill();
    let hasty = client(&[a, b, c]).wait(ms(500)).build().unwrap();
    let why = refusal(&hasty, SetChange::replace(c.url(), d.url())).await;
    assert!(why.contains(&format!("{} cannot join", d.url())) && why.contains("refused"), "{why}");
    assert_eq!(names(&first), urls(&[a, b, c]));
    first.change_members(SetChange::remove(c.url())).await.unwrap();
    assert_eq!(names(&first), urls(&[a, b]));
    b.kill();
    for operator in [first, client(&[a, b]).wait(ms(500)).build().unwrap()] {
        let error = operator.change_members(SetChange::remove(b.url())).await.unwrap_err();
        assert!(matches!(error, SetError::Unfinished { .. }) && error.is_retryable(), "{error}");
    }
}

/// It answered a moment before. A set of two with a dead one has no quorum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_dies_before_it_joins_a_set_of_one_is_refused() {
    let servers = Masters::start(2);
    let [a, b] = [0, 1].map(|index| &servers[index]);
    let redlock = begun(client(&[a]), Init::new()).await;
    let operator = client(&[a]).wait(ms(500)).build().unwrap();
    let change = SetChange::add(b.url());
    let change = tokio::spawn(async move { operator.change_members(change).await });
    until("its quarantine to be over in less than a second", async || {
        let ends: Option<u64> = b.command(&["HGET", "quorate:master", "quarantine"]);
        let (seconds, micros): (u64, u64) = b.command(&["TIME"]);
        ends.is_some_and(|ends| ends < (seconds + 1) * 1_000_000 + micros)
    })
    .await;
    b.kill();
    let why = change.await.unwrap().unwrap_err().to_string();
    assert!(why.contains("refused"), "{why}");
    assert_eq!(names(&redlock), [a.url()]);
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
}

/// A connection to it takes most of a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_far_away_joins() {
    let servers = Masters::start(2);
    let redlock = begun(client(&[&servers[0]]), Init::new()).await;
    let far = Proxy::start_slow(servers[1].address(), ms(50)).await;
    let joins = redlock.change_members(SetChange::add(far.url()));
    tokio::time::timeout(SOON, joins).await.expect("it never ends").unwrap();
    assert_eq!(names(&redlock).len(), 2);
}

/// The operator's host died when the list was accepted, and the new master restarted. A set of two
/// needs it, by the number that was accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_accepted_is_completed_before_a_candidate_is_prepared_anew() {
    let mut servers = Masters::start(2);
    let first = begun(client(&[&servers[0]]), Init::new()).await;
    let field = |name: &str| servers[1].command::<Option<String>>(&["HGET", "quorate:master", name]);
    let operator = client(&[&servers[0]]).build().unwrap();
    tokio::select! {
        _ = operator.change_members(SetChange::add(servers[1].url())) => panic!("it has to wait"),
        () = until("a candidate", async || field("state").is_some()) => {}
    }
    let list = format!("1 {}\n{} {}", servers[0].url(), field("member").unwrap(), servers[1].url());
    let accepted = ["generation", "1", "promised", "9", "ballot", "9", "value", &list];
    servers[0].command::<usize>(&[&["HSET", "quorate:decree"], &accepted[..]].concat());
    servers[1].command::<()>(&["SAVE"]);
    servers[1].restart();
    let operator = client(&[&servers[0]]).build().unwrap();
    operator.change_members(SetChange::add(servers[1].url())).await.unwrap();
    until("both to vote", async || {
        let is_trusted = |status: &MasterStatus| status.standing == Standing::Trusted;
        let status = first.master_status();
        let _ = first.lock("l").try_acquire().await;
        status.len() == 2 && status.iter().all(is_trusted)
    })
    .await;
}

/// The one that leaves may have another name here. The new one joins before it leaves, though
/// nothing is known of any master when the change begins.
#[tokio::test]
async fn a_master_that_lives_leaves_when_the_new_one_has_joined() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    begun(client(&[a, b, c]), Init::new()).await;
    let list = [a.url(), b.url(), alias(c)];
    let operator = client(&[]).masters(list).build().unwrap();
    operator.change_members(SetChange::replace(alias(c), d.url())).await.unwrap();
    assert_eq!(names(&operator), urls(&[a, b, d]));
    let earlier: String = a.command(&["HGET", "quorate:master", "earlier"]);
    assert!(earlier.split("\n\n").any(|its| its.contains(&c.url()) && its.contains(&d.url())), "{earlier}");
}

/// One whose clock was far ahead has had masters promise, or one that is under way.
#[tokio::test]
async fn a_ballot_of_somebody_else_is_in_no_ones_way() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c, d]), Init::new()).await;
    first.change_members(SetChange::remove(d.url())).await.unwrap();
    for server in [a, b, c] {
        let far = "9999999999999999000000000";
        server.command::<usize>(&["HSET", "quorate:decree", "generation", "2", "promised", far]);
    }
    first.change_members(SetChange::remove(c.url())).await.unwrap();
    assert_eq!(names(&first), urls(&[a, b]));
}

#[tokio::test]
async fn a_dead_master_that_was_replaced_is_seldom_tried_again() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    let other = client(&[a, b, c]).build().unwrap();
    drop(other.lock("l").acquire().await.unwrap());
    c.kill();
    let in_its_place = std::net::TcpListener::bind(c.address()).unwrap();
    in_its_place.set_nonblocking(true).unwrap();
    let in_its_place = tokio::net::TcpListener::from_std(in_its_place).unwrap();
    let tries = Arc::new(AtomicUsize::new(0));
    tokio::spawn({
        let tries = tries.clone();
        async move {
            loop {
                drop(in_its_place.accept().await.unwrap());
                tries.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let in_four_seconds = async || {
        let before = tries.load(Ordering::Relaxed);
        tokio::time::sleep(ms(4_000)).await;
        tries.load(Ordering::Relaxed) - before
    };
    assert!(in_four_seconds().await > 4, "both clients miss it");
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    until("the other client to follow", async || names(&other).contains(&d.url())).await;
    tokio::time::sleep(ms(1_500)).await; // the attempt that was due already
    assert_eq!(in_four_seconds().await, 0);
}

/// A client of Redisson publishes its releases on the masters that there are.
#[tokio::test]
async fn who_waits_hears_the_masters_of_now_and_no_others() {
    let servers = Masters::start(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| &servers[index]);
    for server in servers.iter() {
        let _: i64 = server.command(&["HSET", "l", "theirs", "1"]);
        let _: i64 = server.command(&["PEXPIRE", "l", "600000"]);
    }
    let operator = begun(client(&[a, b, c]), Init::new()).await;
    let other = client(&[a, b, c]).wait(SOON * 9).build().unwrap();
    let waiter = tokio::spawn(async move { other.redisson_lock("l").acquire().await });
    // That of the lock, and the client's own.
    let channels = |server: &RedisServer| server.command::<Vec<String>>(&["PUBSUB", "CHANNELS"]).len();
    let hears = async |masters: [&RedisServer; 3]| {
        let heard = |server: &&RedisServer| masters.iter().any(|master| master.url() == server.url());
        until("the subscriptions", async || {
            [a, b, c, d, e].iter().all(|server| channels(server) == if heard(server) { 2 } else { 0 })
        })
        .await;
    };
    hears([a, b, c]).await;
    operator.change_members(SetChange::replace(a.url(), d.url())).await.unwrap();
    operator.change_members(SetChange::replace(b.url(), e.url())).await.unwrap();
    hears([c, d, e]).await;
    for server in [d, e] {
        let _: i64 = server.command(&["DEL", "l"]);
        let _: i64 = server.command(&["PUBLISH", CHANNEL, "0"]);
    }
    let guard = tokio::time::timeout(SOON, waiter).await.expect("it is woken").unwrap().unwrap();
    guard.release().await.unwrap();
}

/// A waiter had a place in its queue, and gives that up.
#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_master_that_has_left() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    let held = first.lock("l").acquire().await.unwrap();
    let other = client(&[a, b, c]).build().unwrap();
    let waiting = other.clone();
    let waiter = tokio::spawn(async move { waiting.lock("l").acquire().await });
    until("a waiter on c", async || c.command::<Vec<String>>(&["KEYS", "*waiting*"]).len() == 1).await;
    c.kill();
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    waiter.abort();
    let shutdown = other.shutdown(SOON / 2).await;
    assert!(shutdown.is_complete(), "{shutdown}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_client_with_an_old_list_finds_the_set_and_one_with_another_is_refused() {
    let servers = Masters::start(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    first.change_members(SetChange::replace(c.url(), d.url())).await.unwrap();
    let guard = first.lock("l").acquire().await.unwrap();
    for list in [[a, b, c], [c, a, b], [a, b, d]] {
        let redlock = client(&list).build().unwrap();
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        assert!(matches!(error, Error::Held { .. }), "{error:#}");
        until("the list of the set", async || {
            let mut its = names(&redlock);
            its.sort();
            let mut now = urls(&[a, b, d]);
            now.sort();
            its == now
        })
        .await;
    }
    guard.release().await.unwrap();
    let redlock = client(&[a, b, e]).wait(ms(100)).build().unwrap();
    let _ = redlock.lock("l").try_acquire().await;
    until("a refusal", async || matches!(redlock.lock("l").try_acquire().await, Err(Error::OtherSet { .. })))
        .await;
    // To begin the set again by the list of before leaves it alone.
    client(&[a, b, c]).build().unwrap().init(Init::new()).await.unwrap();
    assert_eq!(names(&first), urls(&[a, b, d]));
}

/// The new master has not granted it, and is one of two by now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_handed_over_right_after_a_master_joined() {
    let servers = Masters::start(2);
    let max_ttl = Duration::from_secs(6);
    let redlock = begun(client(&[&servers[0]]).max_ttl(max_ttl).ttl(max_ttl), Init::new()).await;
    let guard = redlock.lock("l").acquire().await.unwrap();
    redlock.change_members(SetChange::add(servers[1].url())).await.unwrap();
    let handover = guard.hand_over().await.unwrap();
    redlock.lock("l").adopt(&handover).await.unwrap().release().await.unwrap();
}

/// It has given it to somebody who asks in vain, for shorter than the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_goes_on_where_a_master_that_joins_has_another_owner_for_a_moment() {
    const SHORT: &str = "local time = redis.call('TIME')
        local ends = string.format('%.0f', time[1] * 1000000 + time[2] + 1400000) .. ' 1 1 1'
        if redis.call('HSETNX', KEYS[1], 'x', ends) == 0 then return 0 end
        redis.call('HSET', KEYS[1], 'kind', 'lock', 'o:x', 'somebody')
        return redis.call('PEXPIRE', KEYS[1], 60000)";
    let servers = Masters::start(2);
    let max_ttl = Duration::from_secs(4);
    let redlock = begun(client(&[&servers[0]]).max_ttl(max_ttl).ttl(max_ttl), Init::new()).await;
    let guard = redlock.lock("l").acquire().await.unwrap();
    let put = || servers[1].command::<i64>(&["EVAL", SHORT, "1", "quorate:{l}"]);
    let change = redlock.change_members(SetChange::add(servers[1].url()));
    let (changed, ()) = tokio::join!(change, async {
        let has_joined = async || servers[1].command::<Option<String>>(&["HGET", "quorate:master", "state"]);
        until("the new master to be a member", async || has_joined().await.as_deref() == Some("member"))
            .await;
        put();
    });
    changed.unwrap();
    tokio::time::sleep(max_ttl).await;
    assert!(guard.is_valid(), "{:?}", guard.lost().await);
    guard.release().await.unwrap();
}

/// Each of them is granted the new master, asks again as nobody has more masters, and withdraws.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_goes_on_where_a_master_joins_while_others_wait_for_the_lock() {
    let servers = Masters::start(2);
    let redlock = begun(client(&[&servers[0]]), Init::new()).await;
    let guard = redlock.lock("l").acquire().await.unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let other = client(&[&servers[0]]).wait(Duration::from_secs(60)).build().unwrap();
            tokio::spawn(async move { other.lock("l").acquire().await.unwrap().release().await })
        })
        .collect();
    let waiting = async || redlock.lock("l").inspect().await.unwrap().waiting() >= 3;
    until("three to wait", waiting).await;
    redlock.change_members(SetChange::add(servers[1].url())).await.unwrap();
    tokio::time::sleep(MAX_TTL * 2).await;
    assert!(guard.is_valid(), "{:?}", guard.lost().await);
    guard.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
}

/// Of two masters one would stay, which has just restarted and has no vote for a quarantine: nobody
/// would get a lock, and every lease would end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_does_not_leave_while_most_of_those_that_stay_have_no_vote() {
    let mut servers = Masters::start(3);
    let urls = urls(&servers.iter().collect::<Vec<_>>());
    let builder =
        || Redlock::builder().masters(&urls).max_ttl(MAX_TTL).ttl(MAX_TTL).wait(SOON).timeout(ms(450));
    let redlock = begun(builder(), Init::new()).await;
    let guard = redlock.lock("l").acquire().await.unwrap();
    servers[0].restart();
    let is_quarantined = async || matches!(redlock.master_status()[0].standing, Standing::Quarantined { .. });
    until("the first one to be in quarantine", is_quarantined).await;
    redlock.change_members(SetChange::remove(urls[1].clone())).await.unwrap();
    tokio::time::sleep(MAX_TTL * 2).await;
    assert!(guard.is_valid(), "{:?}", guard.lost().await);
    assert_eq!(names(&redlock), [&*urls[0], &*urls[2]]);
    guard.release().await.unwrap();
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
}

/// A master in quarantine accepts nothing. Two of four are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_waits_until_most_masters_can_accept_it() {
    let mut servers = Masters::start(4);
    let urls = urls(&servers.iter().collect::<Vec<_>>());
    let redlock = begun(client(&servers.iter().collect::<Vec<_>>()), Init::new()).await;
    for index in [0, 1] {
        servers[index].restart();
        let is_quarantined =
            async || matches!(redlock.master_status()[index].standing, Standing::Quarantined { .. });
        until("it to be in quarantine", is_quarantined).await;
    }
    redlock.change_members(SetChange::remove(urls[0].clone())).await.unwrap();
    assert_eq!(names(&redlock), urls[1..]);
}

/// The other two may have heard of the lock, and a fifth may join.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_not_broken_by_half_of_four_masters() {
    let servers = Masters::start(4);
    let all: Vec<&RedisServer> = servers.iter().collect();
    let redlock = begun(client(&all), Init::new()).await;
    let other = client(&all).build().unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    crate::answering(&other, 4).await;
    servers[0].freeze();
    servers[1].freeze();
    let broken = other.lock("l").force_release(&guard.owner()).await;
    assert!(matches!(broken, Err(Error::NoQuorum { .. })), "{broken:?}");
}

/// It has not heard of the lock before the holder extends its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_joins_tells_nobody_that_a_lock_is_gone() {
    let servers = Masters::start(2);
    let redlock = begun(client(&[&servers[0]]), Init::new()).await;
    let guard = redlock.lock("l").acquire().await.unwrap();
    let owner = guard.owner();
    let looks = client(&[&servers[0]]).build().unwrap();
    let looking = tokio::spawn(async move {
        let until_healed = async {
            loop {
                let has_joined = names(&looks).len() == 2;
                match looks.lock("l").is_held_by(&owner).await {
                    Ok(true) if has_joined => break,
                    Ok(false) => panic!("it is held"),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(SOON, until_healed).await.unwrap();
    });
    redlock.change_members(SetChange::add(servers[1].url())).await.unwrap();
    looking.await.unwrap();
    assert!(guard.is_valid());
}

/// Each of its calls is on some master when that is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_looks_while_the_set_changes_hears_all_masters() {
    let servers = Masters::start(4);
    let all: Vec<&RedisServer> = servers.iter().collect();
    let redlock = begun(client(&all), Init::new()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let looks = || {
        let (looks, is_over) = (redlock.clone(), stop.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let seen = looks.inspect("l").await.unwrap();
                assert_eq!(seen.answered(), seen.votes().len(), "{:?}", seen.votes());
            }
        })
    };
    let looking: Vec<_> = (0..8).map(|_| looks()).collect();
    let [c, d] = [2, 3].map(|index| &servers[index]);
    for change in [SetChange::remove(d.url()), SetChange::remove(c.url())] {
        redlock.change_members(change).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for looks in looking {
        looks.await.unwrap();
    }
}

/// The set has changed since it was granted, and it was broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_releases_what_another_has_by_now_is_told_so_after_a_change() {
    let servers = Masters::start(4);
    let all: Vec<&RedisServer> = servers.iter().collect();
    let long = Duration::from_secs(20);
    let longer = || client(&all).max_ttl(long).ttl(long);
    let redlock = begun(longer(), Init::new()).await;
    let guard = redlock.lock("l").ttl(long).no_renewal().acquire().await.unwrap();
    redlock.change_members(SetChange::remove(servers[3].url())).await.unwrap();
    let other = longer().build().unwrap();
    servers[2].freeze();
    redlock.lock("l").force_release(&guard.owner()).await.unwrap();
    let its = other.lock("l").acquire().await.unwrap();
    servers[2].thaw();
    crate::answering(&redlock, 3).await;
    let released = guard.release().await;
    assert!(matches!(released, Err(Error::Lost { .. })), "{released:?}");
    its.release().await.unwrap();
}

/// Its address, say, becomes a host name. Whoever runs knows that process under the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_left_joins_again_under_another_name() {
    let servers = Masters::start(3);
    let all: Vec<&RedisServer> = servers.iter().collect();
    let operator = begun(client(&all), Init::new()).await;
    let runs = client(&all).build().unwrap();
    crate::answering(&runs, 3).await;
    operator.change_members(SetChange::remove(servers[2].url())).await.unwrap();
    client(&all).build().unwrap().change_members(SetChange::add(alias(&servers[2]))).await.unwrap();
    until("all three to answer", async || {
        let votes = runs.lock("l").inspect().await.unwrap();
        votes.votes().iter().any(|vote| vote.master.contains("localhost")) && votes.answered() == 3
    })
    .await;
}

/// A hand-over names the set, which a client hears from its masters.
#[tokio::test]
async fn who_adopts_before_it_knows_its_set_may_try_again() {
    let servers = Masters::start(3);
    let all: Vec<&RedisServer> = servers.iter().collect();
    let longer = |builder: Builder| builder.max_ttl(SOON).ttl(SOON);
    let first = begun(longer(client(&all)), Init::new()).await;
    let handover = first.lock("l").acquire().await.unwrap().hand_over().await.unwrap();
    let redlock = longer(client(&all)).build().unwrap();
    servers.iter().for_each(RedisServer::freeze);
    for _ in 0..2 {
        let error = redlock.lock("l").adopt(&handover).await.unwrap_err();
        assert!(matches!(error, Error::NoQuorum { .. }), "{error:#}");
    }
    servers.iter().for_each(RedisServer::thaw);
    let mut adopted = redlock.lock("l").adopt(&handover).await;
    until("the lock to be adopted", async || {
        if let Err(error) = &adopted {
            assert!(error.is_retryable(), "{error:#}");
            adopted = redlock.lock("l").adopt(&handover).await;
        }
        adopted.is_ok()
    })
    .await;
    assert!(adopted.unwrap().is_valid());
}

/// Whoever changes the set is killed at any moment, and somebody else goes on; two do it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_are_cut_short_or_made_twice_come_to_one_set() {
    let servers = Masters::start(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| &servers[index]);
    let first = begun(client(&[a, b, c]), Init::new()).await;
    let held = first.lock("held").acquire().await.unwrap();
    let change = || SetChange::replace(c.url(), d.url());
    for after in [1, 3, 10, 30, 100, 1_000, 5_100, 5_200, 5_500] {
        let changer = client(&[a, b, c]).build().unwrap();
        let _ = changer.lock("x").inspect().await;
        let _ = tokio::time::timeout(ms(after), changer.change_members(change())).await;
    }
    let changers = [(); 2].map(|()| client(&[c, a, b]).build().unwrap());
    let changes = changers.iter().map(|changer| changer.change_members(change()));
    for changed in futures::future::join_all(changes).await {
        changed.unwrap();
    }
    for changer in &changers {
        let mut its = names(changer);
        its.sort();
        let mut now = urls(&[a, b, d]);
        now.sort();
        assert_eq!(its, now);
    }
    assert!(held.is_valid());
    held.release().await.unwrap();
}
