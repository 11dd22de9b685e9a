//! Passwords that are read for each login, and change while clients run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate::{Error, Outcome, Redlock, Refusal};
use quorate_testkit::{Masters, Proxy, RedisServer};

use crate::{PATIENT, SOON, TTL, answering, begin, ms, patient, until};

/// The user of these tests; the servers' own commands are those of another.
fn set_user(server: &RedisServer, rule: &str) {
    let _: () = server.command(&["ACL", "SETUSER", "bob", "on", rule, "~*", "&*", "+@all"]);
}

/// Ends all of its connections.
fn disconnect(server: &RedisServer) {
    let _: i64 = server.command(&["CLIENT", "KILL", "USER", "bob"]);
}

/// A folder with the file of a password.
struct Secret {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Secret {
    fn new(password: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, password).unwrap();
        Self { _folder: folder, file }
    }
}

fn url(server: &RedisServer, file: &Path) -> String {
    format!("redis://bob@127.0.0.1:{}?password_file={}", server.port(), file.display())
}

fn reading(masters: &Masters, file: &Path) -> Redlock {
    begin().masters(masters.iter().map(|server| url(server, file))).ttl(TTL).timeout(PATIENT).build().unwrap()
}

#[tokio::test]
async fn a_password_in_a_file_is_changed_while_locks_are_held_and_waited_for() {
    let masters = Masters::start(3);
    let secret = Secret::new("an old one\n");
    masters.iter().for_each(|server| set_user(server, ">an old one"));
    let (redlock, other) = (reading(&masters, &secret.file), reading(&masters, &secret.file));
    let guard = redlock.lock("l").acquire().await.unwrap();
    let waiter = tokio::spawn(async move { other.lock("l").wait(SOON).acquire().await });
    until("a waiter", async || masters.iter().all(|server| server.keys().len() == 2)).await;

    masters.iter().for_each(|server| set_user(server, ">a new one"));
    fs::write(&secret.file, "a new one\n").unwrap();
    for server in masters.iter() {
        set_user(server, "<an old one");
        disconnect(server);
    }
    answering(&redlock, 3).await;
    guard.extend(TTL).await.unwrap();
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

/// As long as the servers know another password than the file has, nobody logs in; and when the
/// file has it, the same client does.
#[tokio::test]
async fn a_refusal_names_the_file_and_ends_with_what_is_written_into_it() {
    let server = RedisServer::start();
    set_user(&server, ">right");
    let secret = Secret::new("hunter2");
    let redlock = begin().master(url(&server, &secret.file)).timeout(PATIENT).build().unwrap();
    let error = redlock.lock("l").wait(SOON).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { reason: Refusal::Password, .. }), "{error:#}");
    let shown = format!("{error:#}");
    assert!(shown.contains(&secret.file.display().to_string()) && !shown.contains("hunter2"), "{shown}");

    fs::write(&secret.file, "right").unwrap();
    until("a login", async || redlock.lock("l").try_acquire().await.is_ok()).await;
}

#[tokio::test]
async fn a_refused_password_is_read_again_before_the_refusal_is_final() {
    let server = RedisServer::start();
    set_user(&server, ">right");
    for (texts, is_granted) in [(["wrong", "right"], true), (["wrong", "wrong"], false)] {
        let proxy = Proxy::start(server.address()).await;
        let url = proxy.url().replace("//", "//bob@");
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, name) = (asked.clone(), proxy.url());
        let password = move |master: &str| {
            assert_eq!(master, name);
            Ok(texts[count.fetch_add(1, Ordering::Relaxed).min(1)].to_owned())
        };
        let redlock = begin().master(&url).password_from(password).timeout(PATIENT).build().unwrap();
        match redlock.lock("l").try_acquire().await {
            Ok(_) => {
                assert!(is_granted);
                assert_eq!(asked.load(Ordering::Relaxed), 2);
            }
            Err(error) => {
                assert!(!is_granted, "{error:#}");
                assert!(matches!(error, Error::Refused { reason: Refusal::Password, .. }), "{error:#}");
                until("it to connect again and again", async || proxy.connections() > 3).await;
                // Before it connects, and when it is refused: it may be between the two.
                let before = proxy.connections();
                let asked = asked.load(Ordering::Relaxed);
                let twice = 2 * before - 1..=2 * proxy.connections() + 1;
                assert!(twice.contains(&asked), "twice for each connection: {asked}, and not {twice:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_user_without_a_password_is_logged_in_as_that_user() {
    let server = RedisServer::start();
    let url = format!("redis://bob@127.0.0.1:{}", server.port());
    let client = || begin().master(&*url).timeout(PATIENT).build().unwrap();
    set_user(&server, "nopass");
    let redlock = client();
    drop(redlock.lock("l").wait(SOON).acquire().await.unwrap());
    let clients: String = server.command(&["CLIENT", "LIST"]);
    let its = clients.lines().find(|line| line.contains("lib-name=quorate") || line.contains("cmd=evalsha"));
    assert!(its.is_some_and(|line| line.contains(" user=bob ")), "{clients}");
    drop(redlock);

    set_user(&server, ">secret");
    let error = client().lock("l").wait(SOON).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { reason: Refusal::Password, .. }), "{error:#}");
    assert!(format!("{error:#}").contains("a user and no password"), "{error:#}");
}

/// A URL's own password is used whatever the callback would say.
#[tokio::test]
async fn only_masters_whose_url_has_no_password_are_asked_for() {
    let masters = Masters::start(3);
    masters.iter().for_each(|server| set_user(server, &format!(">{}", server.port())));
    let secret = Secret::new(&masters[1].port().to_string());
    let asked_for = masters[2].port().to_string();
    let redlock = begin()
        .master(format!("redis://bob:{0}@127.0.0.1:{0}", masters[0].port()))
        .master(url(&masters[1], &secret.file))
        .master(format!("redis://bob@127.0.0.1:{asked_for}"))
        .password_from(move |_| Ok(asked_for.clone()))
        .timeout(PATIENT)
        .build()
        .unwrap();
    answering(&redlock, 3).await;
}

/// That may pass: somebody is just writing the file anew, or mounts it.
#[tokio::test]
async fn a_password_that_cannot_be_read_makes_the_master_unreachable_until_it_can() {
    let server = RedisServer::start();
    set_user(&server, ">right");
    let secret = Secret::new("");
    for (missing, why) in [(false, "it is empty"), (true, "No such file")] {
        if missing {
            fs::remove_file(&secret.file).unwrap();
        }
        let redlock = begin().master(url(&server, &secret.file)).timeout(PATIENT).build().unwrap();
        let error = redlock.lock("l").wait(ms(50)).acquire().await.unwrap_err();
        let Outcome::Unreachable(said) = &error.votes()[0].outcome else { panic!("{error:#}") };
        assert!(said.contains("cannot read its password from") && said.contains(why), "{error:#}");
        fs::write(&secret.file, "right").unwrap();
        redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_callback_that_panics_makes_the_master_unreachable() {
    let server = RedisServer::start();
    let redlock = begin()
        .master(server.url())
        .password_from(|_| panic!("no password"))
        .timeout(PATIENT)
        .build()
        .unwrap();
    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    assert!(
        format!("{error:#}").contains("cannot read its password from password_from: it panicked"),
        "{error:#}"
    );
}

#[tokio::test]
async fn the_doctor_logs_in_with_the_same_password() {
    let masters = Masters::start(3);
    masters.iter().for_each(|server| set_user(server, ">right"));
    patient(&masters).lock("l").acquire().await.unwrap().release().await.unwrap();
    let secret = Secret::new("right");
    let builder = begin().masters(masters.iter().map(|server| url(server, &secret.file)));
    let report = builder.timeout(PATIENT).examine().await.unwrap();
    assert!(report.has_quorum(), "{report}");
}
