//! What a test can do to embedded servers, and clients that have them as masters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate::seam::{Script, SessionHeader, SubscriptionEvent, Value, Words};
use quorate::{Error, Redlock, Standing};
use quorate_testkit::{EmbeddedMasters, EmbeddedServer, Resp, Restart, eventually};

const SOON: Duration = Duration::from_secs(10);

fn client(embedded: &EmbeddedMasters) -> Redlock {
    let masters = embedded.masters().into_iter();
    Redlock::builder().masters(masters).build().unwrap()
}

fn inspect(name: &str) -> Words {
    Words::new(2).with(name).with("queue").with("inspect").with(1).with(1).with("lock")
}

fn acquire(name: &str, owner: &str) -> Words {
    let words = Words::new(2).with(name).with("queue").with("acquire").with(1).with(6);
    words.with("lock").with(owner).with(1).with(1_000_000).with(1000).with("")
}

/// What a client is answered that was not made known: it may look, and nothing else.
fn run(server: &EmbeddedServer, calls: &[&Words]) -> Result<Value, String> {
    server.call(crate::exclusive(), &SessionHeader::default(), calls)
}

#[test]
fn one_call_carries_out_several_operations_and_an_error_is_that_of_all() {
    let server = EmbeddedServer::new(0);
    let Ok(Value::List(answers)) = run(&server, &[&inspect("a"), &acquire("a", "u:1"), &inspect("a")]) else {
        panic!("one reply for each operation")
    };
    let [Value::Nil, Value::List(seen), Value::List(refused), Value::List(_)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(seen[0].text().map(|text| &**text), Some("seen"));
    assert!(refused[1].text().is_some_and(|text| text.starts_with("FORGOT")), "{answers:?}");
    let wrong = Words::new(2).with("a").with("queue").with("steal").with(1).with(0);
    assert_eq!(run(&server, &[&inspect("a"), &wrong]), Err("ERR no such verb: steal".to_owned()));
}

#[test]
fn threads_take_turns() {
    let add = Script::new("add", "return redis.call('HINCRBY', 'h', 'n', 1)");
    let server = EmbeddedServer::new(0);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| (0..500).for_each(|_| drop(server.eval(&add, &[], &[]))));
        }
    });
    assert_eq!(server.command(&["HGET", "h", "n"]), Resp::Bulk(b"2000".to_vec()));
}

#[test]
fn a_server_lives_by_the_clock_that_it_was_given() {
    let now = Arc::new(AtomicU64::new(1_000_000));
    let its = now.clone();
    let server = EmbeddedServer::with_clock(3, Arc::new(move || its.load(Ordering::Relaxed)));
    server.command(&["SET", "a", "v", "PX", "1000"]);
    now.store(2_000_999, Ordering::Relaxed);
    assert_eq!(server.keys(), ["a"]);
    now.store(2_001_000, Ordering::Relaxed);
    assert!(server.keys().is_empty());
    assert_eq!(server.number(), 3);
}

#[test]
fn keys_are_lost_brought_back_and_survive_a_restart_or_not() {
    let server = EmbeddedServer::new(0);
    let set = |key| server.command(&["SET", key, "v"]);
    set("a");
    let before = server.snapshot();
    set("b");
    assert!(server.evict("a") && !server.evict("a"));
    assert_eq!(server.keys(), ["b"]);
    server.restore(&before);
    assert_eq!(server.keys(), ["a"]);
    let run_id = server.run_id();
    server.restart("second", Restart::Whole);
    assert_eq!((server.keys(), server.run_id()), (vec!["a".to_owned()], "second".to_owned()));
    assert_ne!(run_id, server.run_id());
    server.restart("third", Restart::Empty);
    assert!(server.keys().is_empty());
    server.restart("fourth", Restart::From(before));
    assert_eq!(server.keys(), ["a"]);
    server.wipe();
    assert!(server.keys().is_empty());
}

/// An ear may ask the server: it is called when the server is done.
#[test]
fn listeners_hear_until_they_leave_or_the_server_restarts() {
    let server = EmbeddedServer::new(0);
    let received: Arc<Mutex<Vec<(SubscriptionEvent, Resp)>>> = Arc::default();
    let (its, all) = (server.clone(), received.clone());
    let ear = Arc::new(move |what| all.lock().unwrap().push((what, its.command(&["DBSIZE"]))));
    let first = server.subscribe("news", ear.clone());
    let _second = server.subscribe("news", ear);
    let publish =
        Script::new("publish", "redis.call('SET', 'k', 'v') return redis.call('PUBLISH', 'news', 'x')");
    assert_eq!(server.eval(&publish, &[], &[]), Resp::Int(2));
    drop(first);
    assert_eq!(server.eval(&publish, &[], &[]), Resp::Int(1));
    server.restart("next", Restart::Empty);
    assert_eq!(server.eval(&publish, &[], &[]), Resp::Int(0));
    let message = || (SubscriptionEvent::Message("x".into()), Resp::Int(1));
    assert_eq!(
        *received.lock().unwrap(),
        [message(), message(), message(), (SubscriptionEvent::Disconnected, Resp::Int(0))]
    );
}

#[tokio::test]
async fn a_client_locks_and_waits_on_embedded_masters_as_on_others() {
    let embedded = EmbeddedMasters::new(3);
    let (one, other) = (client(&embedded), client(&embedded));
    embedded[2].set_reachable(false);
    let guard = one.lock("l").ttl(Duration::from_secs(30)).acquire().await.unwrap();
    assert_eq!(embedded.keys().len(), 2);
    let waiting = other.lock("l");
    let waiting = tokio::spawn(async move { waiting.wait(Duration::from_secs(30)).acquire().await });
    let queues = || embedded.keys().iter().filter(|(_, key)| key.contains("waiting")).count();
    eventually(SOON, || if queues() == 2 { Ok(()) } else { Err(queues()) }).await;
    guard.release().await.unwrap();
    let guard = tokio::time::timeout(SOON, waiting).await.expect("it is woken").unwrap().unwrap();
    embedded[1].set_reachable(false);
    let error = guard.extend(Duration::from_secs(30)).await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
    embedded.iter().for_each(|master| master.set_reachable(true));
    drop(guard);
    eventually(SOON, || embedded.empty()).await;
}

#[tokio::test]
async fn a_master_that_forgot_what_it_granted_has_no_vote_and_others_have() {
    let embedded = EmbeddedMasters::new(3);
    let client = client(&embedded);
    client.lock("l").try_acquire().await.unwrap().release().await.unwrap();
    embedded[0].server().restart("next", Restart::Empty);
    embedded[1].server().restart("next", Restart::Whole);
    embedded[1].set_reachable(false);
    let error = client.lock("l").try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
    let Standing::Refused(why) = client.master_status()[0].standing.clone() else { panic!() };
    assert!(why.contains("what it knew of its set"), "{why}");
    // The others are asked first what they know.
    embedded[1].set_reachable(true);
    let begun = std::time::Instant::now();
    let are_back = |masters: &[quorate::MasterStatus]| {
        masters[..2].iter().all(|master| matches!(master.standing, Standing::Quarantined { .. }))
    };
    while !are_back(&client.master_status()) {
        assert!(begun.elapsed() < SOON, "{:?}", client.master_status());
        let _ = client.lock("l").try_acquire().await;
    }
    assert_eq!(client.master_status()[2].standing, Standing::Trusted);
}

#[test]
fn a_master_that_is_given_twice_is_refused() {
    let embedded = EmbeddedMasters::new(2);
    let masters = embedded.masters();
    let again = Redlock::builder().masters(masters.clone()).masters(masters).build();
    assert!(again.unwrap_err().to_string().contains("embedded://0"));
}
