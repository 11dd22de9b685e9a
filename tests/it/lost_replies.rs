//! A connection that breaks between a command and its reply: never a vote, never a leak.

use quorate::{Error, Outcome, Redlock, Silence};
use quorate_testkit::{Cut, Masters, Proxy, RedisServer, eventually};

use crate::waiting::{hold, queue, standing, waiter};
use crate::{PATIENT, SOON, TTL, answering, patient, until};

/// A client that reaches every master through a proxy of its own.
pub(crate) async fn through_proxies(masters: &Masters) -> (Vec<Proxy>, Redlock) {
    let mut proxies = Vec::new();
    for server in masters.iter() {
        proxies.push(Proxy::start(server.address()).await);
    }
    let urls = proxies.iter().map(Proxy::url);
    let redlock = crate::begin().masters(urls).ttl(TTL).timeout(PATIENT).build().unwrap();
    redlock.lock("warm").acquire().await.unwrap().release().await.unwrap();
    answering(&redlock, proxies.len()).await;
    (proxies, redlock)
}

fn lost(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(Silence::ConnectionLost(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_lost_is_no_vote_and_leaves_nothing() {
    let masters = Masters::start(3);
    let (proxies, redlock) = through_proxies(&masters).await;
    let mut refused = 0;
    for i in 0..20 {
        proxies[0].cut_next(Cut::AtReply);
        proxies[1].cut_next(Cut::AtReply);
        let name = format!("l{i}");
        // Where the machine stood still, it may be the reply to another question that is lost.
        if let Err(error) = redlock.lock(name.as_str()).try_acquire().await {
            assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
            assert_eq!(error.votes().iter().filter(|vote| lost(&vote.outcome)).count(), 2, "{error}");
            refused += 1;
        }
        eventually(SOON, || masters.empty()).await;
        answering(&redlock, 3).await;
    }
    assert!(refused >= 15, "{refused}");
    assert!(proxies[0].cuts() >= 20 && proxies[1].cuts() >= 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minority_of_lost_replies_does_not_matter_and_is_released_like_the_rest() {
    let masters = Masters::start(3);
    let (proxies, redlock) = through_proxies(&masters).await;
    for _ in 0..20 {
        proxies[0].cut_next(Cut::AtReply);
        let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
        guard.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
    assert!(proxies[0].cuts() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_whose_reply_is_lost_is_repeated() {
    let masters = Masters::start(3);
    let (proxies, redlock) = through_proxies(&masters).await;
    for _ in 0..10 {
        let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
        proxies.iter().for_each(|proxy| proxy.cut_next(Cut::AtReply));
        let _ = guard.release().await; // it may not hear of a quorum
        eventually(SOON, || masters.empty()).await;
        proxies.iter().for_each(|proxy| proxy.cut_next(Cut::None));
    }
}

/// The acquire is on its way when its connection breaks, and arrives after the release, which went
/// out on a new connection. The new connection had the old one closed first, so it arrives nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_on_a_lost_connection_does_not_come_back_after_its_release() {
    let masters = Masters::start(3);
    let (proxies, redlock) = through_proxies(&masters).await;
    for round in 1..=5 {
        proxies[0].cut_next(Cut::InFlight);
        let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
        until("the cut", async || proxies[0].cuts() == round).await;
        guard.release().await.unwrap();
        answering(&redlock, 3).await;
        tokio::time::sleep(crate::ms(150)).await; // the release is repeated on the new connection
        proxies[0].deliver();
        for _ in 0..10 {
            tokio::time::sleep(crate::ms(2)).await;
            assert_eq!(masters.empty(), Ok(()), "it came back in round {round}");
        }
    }
}

/// A vote that still waits for its connection must not go out behind the release that came after
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_waits_for_its_connection_is_not_sent_after_its_release() {
    let masters = Masters::start(3);
    for _ in 0..20 {
        let redlock = crate::patient(&masters);
        masters[0].freeze(); // it accepts, and does not greet
        let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
        guard.release().await.unwrap();
        masters[0].thaw();
        answering(&redlock, 3).await;
        assert!(redlock.shutdown(SOON).await.is_complete());
        assert_eq!(masters.empty(), Ok(()));
    }
}

/// A master that forgot the script answers that it does not know it, to the acquire and to its
/// release. The acquire must not be sent in full after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_whose_script_was_forgotten_is_not_sent_again_once_it_was_given_up() {
    let masters = Masters::start(1);
    let redlock = crate::patient(&masters);
    for _ in 0..10 {
        redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
        let _: () = masters[0].command(&["SCRIPT", "FLUSH"]);
        masters[0].freeze();
        {
            let lock = redlock.lock("l");
            let mut acquire = Box::pin(lock.try_acquire());
            assert!(futures::poll!(&mut acquire).is_pending());
            tokio::time::sleep(crate::ms(10)).await; // it is on its way when it is dropped
        }
        tokio::time::sleep(crate::ms(10)).await; // and its release is behind it
        masters[0].thaw();
        redlock.lock("l").inspect().await.unwrap();
        redlock.lock("l").inspect().await.unwrap();
        assert_eq!(masters.empty(), Ok(()));
    }
}

/// Calls a waiter on some masters, by its ticket, as a release would.
fn call(servers: &[&RedisServer], ticket: &str) {
    let (client, number) = crate::client_and_number(ticket);
    for server in servers {
        let _: i64 = server.command(&["PUBLISH", &format!("quorate:wake:{client}"), number]);
    }
}

/// The waiter asks again while one master's connection is being opened, and is called once more
/// before that could be sent: its place on that master is still the one it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_on_a_master_that_could_not_be_asked_is_given_up() {
    let masters = Masters::start(3);
    let holder = patient(&masters);
    let (proxies, redlock) = through_proxies(&masters).await;
    until("the lock to be free", async || masters.empty().is_ok()).await;
    let held = hold(&masters, &holder).await;
    let waiting = waiter(redlock.lock("l")).await;
    standing(masters.iter(), 1).await;
    let first = queue(&masters[2]);
    masters[2].freeze();
    proxies[2].cut_next(Cut::InFlight);
    let _ = redlock.lock("x").inspect().await;
    until("the cut", async || proxies[2].cuts() == 1).await;
    for _ in 0..2 {
        let before = queue(&masters[0]);
        call(&[&masters[0], &masters[1]], &before[0]);
        let moved = async || (0..2).all(|i| queue(&masters[i]).len() == 1 && queue(&masters[i]) != before);
        until("its next place", moved).await;
    }
    masters[2].thaw();
    until("the first place to be given up", async || queue(&masters[2]) != first).await;
    until("one place at most", async || !queue(&masters[2]).contains(&first[0])).await;
    waiting.abort();
    standing(masters.iter(), 0).await;
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}
