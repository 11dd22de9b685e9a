//! What errors say.

use std::error::Error as _;

use quorate::Error;
use quorate_testkit::Masters;

use crate::{builder, ms, on_all, patient, until};

fn is_an_ordinary_error<T: std::error::Error + Clone + Send + Sync + 'static>() {}

#[tokio::test]
async fn an_error_tells_what_happened_on_every_master() {
    is_an_ordinary_error::<Error>();
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(500)).master("redis://127.0.0.1:1").build().unwrap();
    let guard = redlock.lock("job:7").acquire().await.unwrap();
    on_all(&masters).await;

    let error = redlock.lock("job:7").try_acquire().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("\"job:7\"") && text.contains(&guard.owner().to_string()), "{text}");
    assert!(text.contains("for at most ") && text.contains("127.0.0.1:1 unreachable"), "{text}");
    assert_eq!(error.votes().len(), 4);
    assert!(error.source().is_none(), "the text has it all: a cause is not printed twice");

    masters[0].kill();
    masters[1].kill();
    let mut text = String::new();
    until("every break to be noticed", async || {
        text = redlock.lock("job:7").try_acquire().await.unwrap_err().to_string();
        text.contains("refused")
    })
    .await;
    assert!(text.contains("no quorum") && text.contains("0 of the 3 masters needed"), "{text}");
    assert!(text.contains(&masters[0].url()), "{text}");
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
