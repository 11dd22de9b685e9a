//! What errors say.

use std::error::Error as _;

use std::time::{Duration, Instant};

use quorate::{Builder, Error, ErrorKind, Redlock, Refusal};
use quorate_testkit::{Masters, RedisServer, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{PATIENT, TTL, all_new, ms, on_all, patient, until};

/// A wait that would be noticed.
const LONG: Duration = Duration::from_secs(20);

fn is_an_ordinary_error<T: std::error::Error + Clone + Send + Sync + 'static>() {}

#[tokio::test]
async fn an_error_tells_what_happened_on_every_master() {
    is_an_ordinary_error::<Error>();
    let masters = Masters::start(3);
    let redlock = all_new(&masters).timeout(ms(500)).master("redis://127.0.0.1:1").build().unwrap();
    let guard = redlock.lock("job:7").acquire().await.unwrap();
    on_all(&masters).await;

    let error = redlock.lock("job:7").try_acquire().await.unwrap_err();
    let text = error.to_string();
    let wanted = format!("lock \"job:7\" is held by this client itself, {} for ", guard.owner());
    assert!(text.starts_with(&wanted) && text.contains(", expires in at most "), "{text}");
    assert!(!text.contains("127.0.0.1"), "{text}");
    let whole = format!("{error:#}");
    assert!(whole.contains(&format!(" {} ", std::process::id())), "the default label: {whole}");
    assert!(whole.contains("masters say so") && whole.contains("127.0.0.1:1 unreachable"), "{whole}");
    assert!(masters.iter().all(|server| whole.contains(&server.url())), "{whole}");
    assert!(whole.ends_with(&format!("[{}]", error.votes())), "{whole}");
    assert_eq!((error.kind(), error.votes().len()), (ErrorKind::Held, 4));
    assert!(error.is_busy() && error.is_retryable());
    assert_eq!(error.retry_after(), error.holder().unwrap().remaining);
    assert!(error.source().is_none(), "the text has it all: a cause is not printed twice");

    masters[0].kill();
    masters[1].kill();
    let mut text = String::new();
    until("every break to be noticed", async || {
        let error = redlock.lock("job:7").try_acquire().await.unwrap_err();
        assert!(!error.is_busy() && error.is_retryable() && error.retry_after().is_none(), "{error}");
        text = error.to_string();
        format!("{error:#}").contains("refused") // the connection
    })
    .await;
    let wanted = "no quorum for lock \"job:7\": 0 of the 3 masters needed agreed (";
    assert!(text.starts_with(wanted) && text.contains(" unreachable"), "{text}");
}

#[tokio::test]
async fn a_full_semaphore_says_that_it_is_full() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let semaphore = || redlock.semaphore("pool", 2);
    let mut guards = Vec::new();
    for _ in 0..2 {
        guards.push(semaphore().wait(LONG).acquire().await.unwrap());
    }
    on_all(&masters).await;
    let full = "semaphore \"pool\" are taken; the first is free in at most ";
    let error = semaphore().wait(Duration::ZERO).acquire().await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("all 2 permits of {full}")), "{error}");
    assert!(error.is_busy() && error.retry_after().unwrap() <= TTL * 2, "{error}");
    let error = semaphore().wait(ms(500)).acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.holder().unwrap().permits), (ErrorKind::WaitTimedOut, Some(2)));
    let wanted = "s for semaphore \"pool\": all 2 permits are taken; the first is free in at most ";
    assert!(error.to_string().starts_with("waited ") && error.to_string().contains(wanted), "{error}");
}

#[tokio::test]
async fn a_wait_that_ends_says_who_had_it_and_how_often_it_tried() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    let error = redlock.lock("l").wait(ms(500)).acquire().await.unwrap_err();
    let Error::WaitTimedOut { waited, attempts, holder, .. } = &error else { panic!("{error}") };
    assert!(*waited >= ms(500) && *attempts > 1, "{error}");
    assert_eq!(*holder.owner, guard.owner().to_string());
    assert!(error.holder().is_some() && error.votes().len() == 3);
}

#[tokio::test]
async fn a_wait_without_a_quorum_ends_as_no_quorum() {
    let redlock = crate::begin().masters(["redis://127.0.0.1:1", "redis://127.0.0.1:2"]).build().unwrap();
    let error = redlock.lock("l").wait(ms(50)).acquire().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { granted: 0, needed: 2, .. }), "{error}");
}

/// Five masters, where a user has this password and these rights on the first of them, and others
/// on the rest.
fn with_users(refusing: usize, there: &[&str], elsewhere: &[&str]) -> (Masters, Builder) {
    let masters = Masters::start(5);
    for (place, server) in masters.iter().enumerate() {
        let rules = if place < refusing { there } else { elsewhere };
        let all = ["ACL", "SETUSER", "bob", "on", "~quorate:*", "&quorate:*", "+@all"];
        let _: () = server.command(&[&all[..], rules].concat());
    }
    let url = |server: &RedisServer| format!("redis://bob:secret@127.0.0.1:{}", server.port());
    let client = crate::begin().masters(masters.iter().map(url)).ttl(TTL).timeout(ms(500));
    (masters, client)
}

/// The acquire ends at once, and says so.
async fn is_refused(redlock: &Redlock, reason: Refusal, text: &str) -> Error {
    let begun = Instant::now();
    let error = redlock.lock("l").wait(LONG).acquire().await.unwrap_err();
    let took = begun.elapsed();
    assert!(took < LONG / 4, "{took:?}: {error}");
    let Error::Refused { name, masters: 3, reason: said, .. } = &error else { panic!("{error:#}") };
    assert_eq!((&**name, *said), ("l", reason), "{error:#}");
    assert_eq!(error.to_string(), format!("lock \"l\": 3 of 5 masters refused permanently, {text}"));
    assert!(!error.is_busy() && !error.is_retryable() && reason.is_permanent());
    error
}

async fn is_granted(redlock: &Redlock) {
    redlock.lock("l").wait(LONG).acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_wrong_password_ends_the_wait_where_the_rest_are_no_quorum() {
    let text = "wrong password: log in with a user and password that they know";
    let (masters, client) = with_users(3, &[">other"], &[">secret"]);
    let redlock = client.build().unwrap();
    let error = is_refused(&redlock, Refusal::Password, text).await;
    assert_eq!(
        error.votes().to_string().matches("refused, wrong password (WRONGPASS").count(),
        3,
        "{error:#}"
    );
    let _: () = masters[0].command(&["ACL", "SETUSER", "bob", "resetpass", ">secret"]);
    until("it to be tried again", async || redlock.lock("l").try_acquire().await.is_ok()).await;
    let (_masters, client) = with_users(2, &[">other"], &[">secret"]);
    is_granted(&client.build().unwrap()).await;
}

#[tokio::test]
async fn a_user_without_rights_ends_the_wait_where_the_rest_are_no_quorum() {
    let text = "no permission: give the user the rights that quorate doctor names";
    for rules in [&[">secret", "-eval"][..], &[">secret", "-hset"]] {
        let (_masters, client) = with_users(3, rules, &[">secret"]);
        is_refused(&client.build().unwrap(), Refusal::NoPermission, text).await;
        let (_masters, client) = with_users(2, rules, &[">secret"]);
        is_granted(&client.build().unwrap()).await;
    }
}

#[tokio::test]
async fn other_terms_end_the_wait_where_the_rest_are_no_quorum() {
    let text = "other terms: all clients need the same max TTL, and versions that fit";
    for refusing in [3, 2] {
        let masters = Masters::start(5);
        let nowhere = (refusing..5).map(|port| format!("redis://127.0.0.1:{}", port + 1));
        let some = masters.urls().into_iter().take(refusing).chain(nowhere);
        let other = crate::begin_new().masters(some).max_ttl(TTL * 2).timeout(ms(500)).build().unwrap();
        crate::answering(&other, refusing).await;
        let redlock = crate::begin_new().masters(masters.urls()).timeout(ms(500)).build().unwrap();
        if refusing == 3 {
            let error = is_refused(&redlock, Refusal::OtherTerms, text).await;
            assert!(error.votes().to_string().contains("60000 ms, and this one has"), "{error:#}");
        } else {
            is_granted(&redlock).await;
        }
    }
}

#[tokio::test]
async fn servers_that_cannot_keep_locks_end_the_wait_where_the_rest_are_no_quorum() {
    let text = "unsupported server: use Redis 7.0 or later, or Valkey 7.2 or later";
    for refusing in [3, 2] {
        let (others, masters) =
            (Masters::start_with(refusing, &["--rename-command", "EVAL", ""]), Masters::start(5 - refusing));
        let urls = others.urls().into_iter().chain(masters.urls());
        let redlock = crate::begin().masters(urls).ttl(TTL).timeout(ms(500)).build().unwrap();
        if refusing == 3 {
            is_refused(&redlock, Refusal::Unsupported, text).await;
        } else {
            is_granted(&redlock).await;
        }
    }
}

/// A way to a server that says another version: of its replies, the first digit in this field.
async fn aged(server: &RedisServer) -> String {
    const FIELD: &[u8] = b"\nredis_version:";
    let (listener, to) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), server.address());
    let url = format!("redis://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (mut reads, mut writes) = client.into_split();
            let (mut answers, mut asks) = TcpStream::connect(to).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut reads, &mut asks).await });
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = answers.read(&mut buffer).await {
                    let reply = &mut buffer[..length];
                    if let Some(at) = reply.windows(FIELD.len()).position(|part| part == FIELD) {
                        reply[at + FIELD.len()] = b'6';
                    }
                    let _ = writes.write_all(reply).await; // the client may have ended
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_by_its_version() {
    let server = RedisServer::start();
    let redlock = crate::begin().master(aged(&server).await).ttl(TTL).timeout(PATIENT).build().unwrap();
    let error = redlock.lock("l").wait(LONG).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { reason: Refusal::Unsupported, .. }), "{error:#}");
    let said = format!("{error:#}");
    assert!(said.contains("it is Redis 6.") && said.contains("use Redis 7.0 or later"), "{said}");
}

/// Whatever needs the votes of a majority says so, and not that there is no quorum.
#[tokio::test]
async fn what_else_needs_votes_is_refused_for_good_as_well() {
    let (masters, client) = with_users(0, &[], &[">secret"]);
    let redlock = client.build().unwrap();
    crate::answering(&redlock, 5).await;
    let lock = redlock.lock("l");
    let held = lock.acquire().await.unwrap();
    let to_release = redlock.lock("m").acquire().await.unwrap();
    let handed_over = redlock.lock("n").acquire().await.unwrap();
    let handover = handed_over.hand_over().await.unwrap();
    let owner = held.owner();
    for server in masters.iter().take(3) {
        let _: () = server.command(&["ACL", "SETUSER", "bob", "-evalsha", "-eval"]);
    }
    let all = [
        ("extend", held.extend(TTL).await.unwrap_err()),
        ("adopt", redlock.lock("n").adopt(&handover).await.unwrap_err()),
        ("is held", lock.is_held_by(&owner).await.unwrap_err()),
        ("force", lock.force_release(&owner).await.unwrap_err()),
        ("list", redlock.list().next().await.unwrap_err()),
    ];
    for (what, error) in all {
        assert!(matches!(error, Error::Refused { reason: Refusal::NoPermission, .. }), "{what}: {error:#}");
    }
    assert!(held.is_valid(), "the lease stands as it did");
    let error = to_release.release().await.unwrap_err();
    assert!(matches!(error, Error::ReleaseUnconfirmed { confirmed: 2, needed: 3, .. }), "{error:#}");
}

/// It stands in the queue, and looks again when the lease of the holder should be over.
#[tokio::test]
async fn a_waiter_ends_when_its_user_loses_the_rights() {
    let (masters, client) = with_users(0, &[], &[">secret"]);
    let redlock = client.build().unwrap();
    let held = redlock.lock("l").ttl(ms(8_000)).no_renewal().acquire().await.unwrap();
    let lock = redlock.lock("l").wait(LONG);
    let waiter = tokio::spawn(async move { lock.acquire().await });
    eventually(LONG, || match masters.keys().len() {
        10 => Ok(()), // with the queue
        count => Err(format!("{count} keys")),
    })
    .await;
    for server in masters.iter().take(3) {
        let _: () = server.command(&["ACL", "SETUSER", "bob", "-hset"]);
    }
    let begun = Instant::now();
    let error = waiter.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused { reason: Refusal::NoPermission, .. }), "{error:#}");
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    drop(held);
}
