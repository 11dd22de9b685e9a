//! Redisson's lock on a quorum: a Java service that has it on each of three masters, by Redisson's
//! scripts, and one in Rust.

use futures::StreamExt;
use quorate::{Error, Redlock};
use quorate_testkit::{Masters, RedisServer};

use crate::shared::{CHANNEL, Java, hash, listening};
use crate::waiting::waiter;
use crate::wake_ups::{LONG, handed};
use crate::{SOON, patient, until};

/// The masters, who asks them from here, and Java's connection to each.
async fn three() -> (Masters, Redlock, Vec<Java>) {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let mut java = Vec::new();
    for server in masters.iter() {
        java.push(Java::connect(server).await);
    }
    (masters, redlock, java)
}

/// Waits until Redisson's hash is on all masters, or on none.
async fn is_held(masters: &Masters, held: bool) {
    let is_there = |server: &RedisServer| !hash(server).is_empty();
    until("the hash", async || masters.iter().all(|server| is_there(server) == held)).await;
}

async fn java_takes_it(java: &mut [Java]) {
    for connection in java {
        assert_eq!(connection.acquire().await, None);
    }
}

async fn java_releases_it(java: &mut [Java], request: &str) {
    for connection in java {
        assert_eq!(connection.release(request).await, Some(1));
    }
}

#[tokio::test]
async fn on_a_quorum_java_and_a_lock_here_exclude_each_other_and_neither_releases_the_others() {
    let (masters, redlock, mut java) = three().await;
    let lock = redlock.redisson_lock("l");
    let held = lock.acquire().await.unwrap();
    let owner = held.owner();
    is_held(&masters, true).await;
    for connection in &mut java {
        assert!(connection.acquire().await.is_some_and(|wait| (1..=30_000).contains(&wait)));
        assert_eq!(connection.release("a").await, None);
        assert_eq!(connection.renew().await, 0);
    }
    held.release().await.unwrap();
    is_held(&masters, false).await;

    java_takes_it(&mut java).await;
    let error = lock.try_acquire().await.unwrap_err();
    assert!(matches!(&error, Error::Held { holder, .. } if *holder.owner == *java[0].me), "{error}");
    lock.force_release(&owner).await.unwrap_err();
    assert_eq!(lock.inspect().await.unwrap().answered(), 3); // behind all that came before
    for (connection, server) in java.iter_mut().zip(masters.iter()) {
        assert_eq!(hash(server), [connection.me.clone(), "1".to_owned()]);
        assert_eq!(connection.renew().await, 1);
    }
    java_releases_it(&mut java, "b").await;
    lock.try_acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn what_java_has_on_most_masters_keeps_a_lock_out_and_on_one_it_does_not() {
    let (masters, redlock, mut java) = three().await;
    let lock = redlock.redisson_lock("l").wait(SOON);
    java_takes_it(&mut java[..1]).await;
    let held = lock.acquire().await.unwrap();
    is_held(&masters, true).await;
    for connection in &mut java[1..] {
        assert!(connection.acquire().await.is_some());
    }
    held.release().await.unwrap();
    assert_eq!(hash(&masters[0]), [java[0].me.clone(), "1".to_owned()]);
    until("the release", async || (1..3).all(|i| hash(&masters[i]).is_empty())).await;

    java_takes_it(&mut java[1..2]).await;
    assert!(matches!(lock.try_acquire().await, Err(Error::Held { .. })));
    until("nothing on the third", async || hash(&masters[2]).is_empty()).await;
    java_releases_it(&mut java[..2], "a").await;
    lock.acquire().await.unwrap().release().await.unwrap();
}

/// Its lease is far longer than this takes.
#[tokio::test]
async fn on_a_quorum_whoever_waits_here_is_woken_by_a_release_in_java() {
    let (masters, redlock, mut java) = three().await;
    for request in ["a", "b", "c"] {
        java_takes_it(&mut java).await;
        let waiting = waiter(redlock.redisson_lock("l").ttl(LONG)).await;
        until("somebody to listen", async || masters.iter().all(|server| listening(server) == 1)).await;
        java_releases_it(&mut java[..1], request).await;
        assert!(!waiting.is_finished(), "Java has it on the others");
        java_releases_it(&mut java[1..], request).await;
        let held = handed(waiting).await; // as soon as two are free
        let mut free = 0;
        for connection in &mut java {
            if connection.acquire().await.is_none() {
                free += 1;
                assert_eq!(connection.release(&format!("{request}, free")).await, Some(1));
            }
        }
        assert!(free <= 1 && held.is_valid(), "{free} of three are free");
        held.release().await.unwrap();
        is_held(&masters, false).await;
        until("nobody to listen", async || masters.iter().all(|server| listening(server) == 0)).await;
    }
}

#[tokio::test]
async fn on_a_quorum_whoever_waits_in_java_is_told_of_a_release_here() {
    let (masters, redlock, mut java) = three().await;
    let mut told = Vec::new();
    for server in masters.iter() {
        let client = redis::Client::open(server.url()).unwrap();
        let mut ear = client.get_async_pubsub().await.unwrap();
        ear.subscribe(CHANNEL).await.unwrap();
        told.push(ear.into_on_message());
    }
    let held = redlock.redisson_lock("l").acquire().await.unwrap();
    is_held(&masters, true).await;
    for connection in &mut java {
        assert!(connection.acquire().await.is_some());
    }
    held.release().await.unwrap();
    for messages in &mut told {
        let message = tokio::time::timeout(SOON, messages.next()).await.unwrap().unwrap();
        assert_eq!(message.get_payload::<String>().unwrap(), "0");
    }
    java_takes_it(&mut java).await;
    java_releases_it(&mut java, "a").await;
}
