//! Bad input gets an error that names the value and the limit, before anything is sent.

use std::sync::Arc;
use std::time::Duration;

use quorate::{Error, Redlock};
use quorate_testkit::Masters;

use crate::{all_new, ms, patient, until};

fn refused(result: Result<impl std::fmt::Debug, Error>) -> String {
    match result.unwrap_err() {
        Error::Invalid(invalid) => invalid.to_string(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn nothing_is_sent_for_a_bad_acquire() {
    let masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let lock = || redlock.lock("l");

    let empty = "the lock's name is empty; it must have 1 to 512 bytes";
    assert_eq!(refused(redlock.lock("").try_acquire().await), empty);
    let text = refused(redlock.lock("n".repeat(513)).try_acquire().await);
    assert!(text.contains("513 bytes") && text.contains("512"), "{text}");
    for ttl in [Duration::ZERO, ms(9), day + ms(1)] {
        let text = refused(lock().ttl(ttl).try_acquire().await);
        let wanted = format!("a TTL of {ttl:?} is not within 10ms and 86400s");
        assert!(text.starts_with(&wanted), "{text}");
    }
    // The time-out of this client is three seconds.
    let text = refused(lock().ttl(ms(3000)).try_acquire().await);
    assert_eq!(text, "a per-master time-out of 3s must be above zero and below the TTL of 3s");
    let text = refused(lock().wait(day + ms(1)).acquire().await);
    assert_eq!(text, "a wait of 86400.001s is above the limit of 86400s");
    let foreign = "00000000-0000-0000-0000-000000000007:1".parse().unwrap();
    let text = refused(lock().owned_by(&foreign).acquire().await);
    assert!(text.starts_with(&format!("owner {foreign} belongs to another client")), "{text}");
    let text = refused(lock().release().await);
    assert!(text.starts_with("no owner was named"), "{text}");
    for result in [redlock.lock("").inspect().await.map(drop), redlock.lock("").force_release(&foreign).await]
    {
        assert_eq!(refused(result), empty);
    }

    for server in masters.iter() {
        assert!(!server.command::<String>(&["INFO", "commandstats"]).contains("eval"), "something was sent");
    }
    let guard = redlock.lock("l".repeat(512)).ttl(day).try_acquire().await.unwrap();
    assert!(refused(guard.extend(ms(9)).await).starts_with("a TTL of 9ms"));
    assert!(guard.is_valid());
}

#[test]
fn a_bad_client_is_not_built() {
    assert_eq!(refused(crate::begin().build()), "no masters: give 1 to 15 of them");

    let urls: Vec<String> = (1..=16).map(|i| format!("redis://10.0.0.{i}")).collect();
    let text = refused(crate::begin().masters(urls.clone()).build());
    assert_eq!(text, "16 masters: at most 15 are allowed");
    assert!(crate::begin().masters(&urls[..15]).build().is_ok());

    let twice = ["redis://a:secret@10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.1:6379/3"];
    let text = refused(crate::begin().masters(twice).build());
    assert!(text.starts_with("master \"redis://10.0.0.1:6379\" is listed twice"), "{text}");

    for (url, named) in [
        ("", "\"\""),
        ("10.0.0.1:6379", "10.0.0.1:6379"),
        ("http://h", "http://h"),
        ("redis://h:x", "redis://h:***"), // it could be a password
        ("redis://h/x", "redis://h/x"),
        ("redis://0.0.0.0", "0.0.0.0"),
    ] {
        let text = refused(crate::begin().master(url).build());
        assert!(text.starts_with("master URL ") && text.contains(named), "{text}");
    }

    let good = || crate::begin().master("redis://h");
    for (bad, wanted) in [
        (good().ttl(ms(1)), "a TTL of 1ms "),
        (good().timeout(ms(0)), "a per-master time-out of 0ns "),
        (good().timeout(ms(10_000)), "a per-master time-out of 10s "),
        (good().prefix("{x}"), "key prefix \"{x}\" "),
        (good().wait(Duration::MAX), "a wait of "),
    ] {
        let text = refused(bad.build());
        assert!(text.starts_with(wanted), "{text}");
    }
}

#[test]
fn a_runtime_with_several_threads_is_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let lent = Redlock::builder().master("redis://127.0.0.1:1").runtime(runtime.handle().clone());
    assert!(refused(lent.build()).contains("must be a current-thread one"));
}

/// Whatever is a string is a name.
#[tokio::test]
async fn a_name_is_any_string() {
    let redlock = patient(&Masters::start(1));
    let (text, shared): (String, Arc<str>) = ("order 7".into(), "order 7".into());
    let locks =
        [redlock.lock("order 7"), redlock.lock(&text), redlock.lock(&shared), redlock.lock(text.clone())];
    assert!(locks.iter().all(|lock| lock.name() == "order 7"));
    assert_eq!(redlock.election(&text).name(), "order 7");
}

#[tokio::test]
async fn a_key_of_another_type_makes_its_master_refuse_and_stays_as_it_is() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    for i in 0..2 {
        let _: () = masters[i].command(&["SET", "quorate:{l}", "precious"]);
    }
    redlock.lock("l").try_acquire().await.unwrap().release().await.unwrap();
    let _: i64 = masters[2].command(&["DEL", "quorate:{l}"]);
    let _: i64 = masters[2].command(&["RPUSH", "quorate:{l}", "precious"]);
    let error = redlock.lock("l").try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::AnotherKind { .. }), "{error}");
    assert!(error.votes().to_string().contains("WRONGTYPE"), "{error:#}");
    assert_eq!(masters[0].command::<String>(&["GET", "quorate:{l}"]), "precious");
    assert_eq!(masters[2].command::<String>(&["LINDEX", "quorate:{l}", "0"]), "precious");
}

#[tokio::test]
async fn one_server_under_two_names_has_one_vote() {
    let masters = Masters::start(1);
    let port = masters[0].port();
    let urls = [format!("redis://127.0.0.1:{port}"), format!("redis://localhost:{port}")];
    let redlock = crate::begin().masters(urls).build().unwrap();
    until("it to be named", async || {
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
        error.votes().to_string().contains("the same server as")
    })
    .await;
}

#[tokio::test]
async fn settings_at_their_limits_work() {
    let masters = Masters::start(1);
    let redlock = all_new(&masters).timeout(ms(9)).build().unwrap();
    let _ = redlock.lock("l").ttl(ms(10)).try_acquire().await; // it may be too slow for that, but it is valid
    let redlock = all_new(&masters).prefix("").build().unwrap();
    let _guard = redlock.lock("{").try_acquire().await.unwrap();
    assert!(masters[0].keys().contains(&"{{}".to_owned()), "{:?}", masters[0].keys());
}
