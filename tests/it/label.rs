//! What others are told of a holder: its label, and since when it has the lock.

use quorate::{Error, Lock, Redlock};
use quorate_testkit::{Masters, RedisServer};

use crate::{SOON, TTL, answering, builder, ms, patient, until};

/// A lock of each kind that has a place for a label, as a client asks for it.
fn each_kind(redlock: &Redlock) -> [Lock; 8] {
    [
        redlock.lock("lock"),
        redlock.mutex("mutex"),
        redlock.fair_lock("fair"),
        redlock.read_lock("rw"),
        redlock.read_lock("rw"),
        redlock.write_lock("w"),
        redlock.semaphore("permits", 1),
        redlock.lock_all(["a", "b"]),
    ]
}

/// The label that this master has with the entry of the one holder.
fn label_on(server: &RedisServer, name: &str) -> Option<String> {
    server.command(&["HGET", &format!("quorate:{{{name}}}"), "l:x"])
}

#[tokio::test]
async fn whoever_is_refused_hears_who_has_it_and_for_how_long() {
    let masters = Masters::start(3);
    let here = builder(&masters).label("web1 4711 größer").build().unwrap();
    let there = patient(&masters);
    for (mine, other) in each_kind(&here).into_iter().zip(each_kind(&there)) {
        let begun = std::time::Instant::now();
        let guard = mine.try_acquire().await.unwrap();
        let other = if mine.name() == "rw" { there.write_lock("rw") } else { other };
        // Each client has an estimate of its own of the masters' time.
        until("some time of it", async || {
            let error = other.try_acquire().await.unwrap_err();
            error.holder().and_then(|holder| holder.held_for).is_some_and(|time| time >= ms(15))
        })
        .await;
        let error = other.try_acquire().await.unwrap_err();
        let Error::Held { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(holder.label.as_deref(), Some("web1 4711 größer"), "{error}");
        assert!(holder.held_for.unwrap() <= begun.elapsed() + SOON, "{error}");
        let (text, votes) = (error.to_string(), error.votes().to_string());
        let who = format!("held by {} (web1 4711 größer) ", guard.owner());
        assert!(text.contains(&format!("{who}for ")) || holder.permits == Some(1), "{text}");
        assert!(votes.contains(&format!("{who}with ")), "{votes}");
        let seen = mine.inspect().await.unwrap();
        let holder = seen.holder().unwrap();
        assert_eq!(holder.label.as_deref(), Some("web1 4711 größer"), "{}", mine.name());
        assert!(holder.held_for.unwrap() <= begun.elapsed() + SOON, "{}", mine.name());
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_has_a_label_of_its_own_and_none_is_left_behind() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).label("all").build().unwrap();
    let label = async || redlock.lock("l").inspect().await.unwrap().holder().unwrap().label;
    let guard = redlock.lock("l").label("this one").acquire().await.unwrap();
    assert_eq!(label().await.as_deref(), Some("this one"));
    guard.release().await.unwrap();
    let guard = redlock.lock("l").label("").acquire().await.unwrap();
    assert_eq!(label().await, None);
    drop(guard);
}

#[tokio::test]
async fn an_entry_that_is_made_again_has_its_label_again() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).label("web1").build().unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    until("the label on every master", async || {
        masters.iter().all(|server| label_on(server, "l").as_deref() == Some("web1"))
    })
    .await;
    assert!(masters[0].evict("quorate:{l}"));
    guard.extend(TTL * 2).await.unwrap();
    until("the label to be back", async || label_on(&masters[0], "l").as_deref() == Some("web1")).await;
}

#[tokio::test]
async fn whoever_takes_a_lock_up_has_its_own_label() {
    let masters = Masters::start(3);
    let here = builder(&masters).label("one").build().unwrap();
    let there = builder(&masters).label("two").build().unwrap();
    let label = async || here.lock("l").inspect().await.unwrap().holder().unwrap().label;
    let token = here.lock("l").acquire().await.unwrap().hand_over().await.unwrap();
    assert_eq!(label().await.as_deref(), Some("one"), "it comes from there");
    let guard = there.lock("l").adopt(&token).await.unwrap();
    assert_eq!(label().await.as_deref(), Some("two"));
    drop(guard);
}

#[tokio::test]
async fn a_label_that_is_too_long_or_not_printable_is_refused_before_anything_is_sent() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    answering(&redlock, 3).await;
    let long = "x".repeat(65);
    for label in ["a\nb", &long] {
        let refused = redlock.lock("l").label(label).wait(SOON).acquire().await.unwrap_err();
        let built = builder(&masters).label(label).build().unwrap_err();
        for error in [refused, built] {
            let wanted = format!("has {} bytes; at most 64 are allowed", label.len());
            assert!(matches!(&error, Error::Invalid(why) if why.to_string().contains(&wanted)), "{error}");
        }
    }
    assert_eq!(masters.keys(), []);
}
