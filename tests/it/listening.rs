//! Listening for wake-ups: when, on how many connections, and what waiters do that cannot.

use std::time::Instant;

use quorate_testkit::{Masters, Proxy, RedisServer, eventually};
use tokio_util::sync::CancellationToken;

use crate::secrets::Log;
use crate::waiting::{hold, listeners, queue, standing, waiter};
use crate::wake_ups::{LONG, clients, handed, take_turns};
use crate::{PATIENT, SOON, builder, ms, patient, until};

#[tokio::test]
async fn a_client_listens_once_on_every_master_for_as_long_as_any_of_it_waits() {
    let masters = Masters::start(3);
    let (redlock, holder) = (patient(&masters), patient(&masters));
    let mut held = Vec::new();
    for name in ["l", "m", "n"] {
        held.push(holder.lock(name).acquire().await.unwrap());
        redlock.lock(name).try_acquire().await.unwrap_err();
    }
    assert_eq!(listeners(&masters), 0, "nobody has waited");
    let mut waiters = Vec::new();
    let in_line = |name: &str| {
        let places =
            |server: &RedisServer| server.command(&["ZCARD", &format!("quorate:waiting:{{{name}}}")]);
        masters.iter().map(places).all(|places: i64| places == 1)
    };
    for name in ["l", "m", "n", "l", "m", "n"] {
        waiters.push(waiter(redlock.lock(name)).await);
        until("the first to stand in line", async || in_line(name)).await;
    }
    until("every master to be listened to", async || listeners(&masters) == 3).await;
    drop(held);
    let mut last = std::time::Instant::now();
    for waiter in waiters {
        last = std::time::Instant::now();
        handed(waiter).await.release().await.unwrap();
    }
    let listening = listeners(&masters);
    assert!(listening == 3 || last.elapsed() > ms(1_500), "it listens on for a moment");
    until("nobody to listen", async || listeners(&masters) == 0).await;
    eventually(SOON, || masters.empty()).await;
}

fn kill_listeners(server: &RedisServer) {
    let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
}

/// The release comes while nobody listens: its wake-ups go nowhere.
#[tokio::test]
async fn a_waiter_looks_when_it_listens_again() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    for _ in 0..5 {
        let held = hold(&masters, &clients[0]).await;
        let waiting = waiter(clients[1].lock("l")).await;
        standing(masters.iter(), 1).await;
        masters.iter().for_each(kill_listeners);
        held.release().await.unwrap();
        handed(waiting).await.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn a_waiter_that_can_no_longer_be_woken_polls() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    let held = hold(&masters, &clients[0]).await;
    let waiting = waiter(clients[1].lock("l")).await;
    standing(masters.iter(), 1).await;
    for server in masters.iter() {
        let _: () = server.command(&["ACL", "SETUSER", "default", "-subscribe"]);
        kill_listeners(server);
    }
    until("nobody to listen", async || listeners(&masters) == 0).await;
    held.release().await.unwrap();
    handed(waiting).await.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_the_lock_though_wake_ups_are_cut_off_all_the_time() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 8);
    let cutting = async {
        loop {
            masters.iter().for_each(kill_listeners);
            tokio::time::sleep(ms(100)).await;
        }
    };
    tokio::select! {
        () = take_turns(&clients, 5, ms(20), SOON * 2) => {}
        () = cutting => {}
    }
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn where_listening_is_not_allowed_waiters_poll_and_the_log_says_so_once() {
    let (log, _guard) = Log::of_this_thread(); // the engine runs on it, too
    let masters = Masters::start(3);
    let poor = builder(&masters).runtime(tokio::runtime::Handle::current()).build().unwrap();
    let holder = patient(&masters);
    for rule in ["-subscribe", "resetchannels"] {
        for server in masters.iter() {
            let _: () = server.command(&["ACL", "SETUSER", "default", "+subscribe", "allchannels", rule]);
        }
        for _ in 0..2 {
            let held = holder.lock("l").acquire().await.unwrap();
            let waiting = waiter(poor.lock("l").ttl(LONG)).await;
            let begun = Instant::now();
            let line = "releases cannot wake waiting acquires";
            until("the log to say so", async || log.text().matches(line).count() == 1).await;
            tokio::time::sleep(ms(200).saturating_sub(begun.elapsed())).await; // it waits for a while
            assert_eq!(standing_anywhere(&masters), 0);
            held.release().await.unwrap();
            handed(waiting).await.release().await.unwrap();
            until("nobody to listen", async || listeners(&masters) == 0).await;
            tokio::time::sleep(ms(2_100)).await; // the next to wait tries to listen again
            assert_eq!(log.text().matches(line).count(), 1, "once a client: {}", log.text());
        }
    }
}

/// Releases wake nobody then, so that a waiter would sleep until the lease ends.
#[tokio::test]
async fn where_publishing_is_refused_waiters_poll() {
    const RENAMED: &[&str] = &["--rename-command", "PUBLISH", ""];
    for options in [&[], RENAMED] {
        let masters = Masters::start_with(3, options);
        for server in masters.iter().filter(|_| options.is_empty()) {
            let _: () = server.command(&["ACL", "SETUSER", "default", "-publish"]);
        }
        let clients = clients(&masters, 2);
        let held = hold(&masters, &clients[0]).await;
        let waiting = waiter(clients[1].lock("l")).await;
        tokio::time::sleep(ms(200)).await; // it waits for a while
        assert_eq!((listeners(&masters), standing_anywhere(&masters)), (0, 0));
        held.release().await.unwrap();
        handed(waiting).await.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

/// How many places in queues there are.
fn standing_anywhere(masters: &Masters) -> usize {
    masters.iter().map(|server| queue(server).len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_the_lock_where_nobody_may_listen() {
    let masters = Masters::start(5);
    for server in masters.iter() {
        let _: () = server.command(&["ACL", "SETUSER", "default", "-subscribe"]);
    }
    take_turns(&clients(&masters, 6), 5, ms(2), SOON * 2).await;
    assert_eq!(listeners(&masters), 0);
    eventually(SOON, || masters.empty()).await;
}

/// Nobody of its client waits any more, so it stops to listen, just when this one has come: what it
/// was not told meanwhile it asks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_when_its_client_stops_to_listen_misses_nothing() {
    let masters = Masters::start(3);
    let (mut urls, mut far) = (Vec::new(), Vec::new());
    for server in masters.iter() {
        let proxy = Proxy::start_slow(server.address(), ms(150)).await;
        urls.push(proxy.url());
        far.push(proxy);
    }
    let holder = patient(&masters);
    let client = crate::begin().masters(urls).ttl(LONG).timeout(PATIENT).wait(LONG).build().unwrap();
    let held = hold(&masters, &holder).await;
    let token = CancellationToken::new();
    let gone = waiter(client.lock("l").cancelled_by(token.clone())).await;
    standing(masters.iter(), 1).await;
    token.cancel();
    gone.await.unwrap().unwrap_err();
    tokio::time::sleep(ms(1_900)).await; // two seconds after the last has left; an attempt takes 300 ms
    let waiting = waiter(client.lock("l").ttl(LONG)).await;
    // On a slow machine it has come when its client listened no more, and listens again by now:
    // then this shows less.
    let unheard = tokio::time::timeout(PATIENT, until("nobody to listen", async || listeners(&masters) == 0));
    let ((), _) = tokio::join!(standing(masters.iter(), 1), unheard);
    held.release().await.unwrap();
    tokio::time::timeout(SOON, waiting).await.unwrap().unwrap().unwrap().release().await.unwrap();
}
