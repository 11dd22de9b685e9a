//! A password never appears in what can be printed or logged.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use quorate_testkit::RedisServer;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::ms;

const PASSWORD: &str = "hunter2hunter2";

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// A log of what this thread says from now on, for as long as the second of the two lives.
    pub(crate) fn of_this_thread() -> (Self, DefaultGuard) {
        // Where there is one subscriber only, tracing asks it on the thread that logs first whether
        // a line is wanted at all, and a thread of another test says no for all of them. With two
        // it asks both.
        static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));
        LazyLock::force(&ANOTHER);
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
        (log, subscriber.set_default())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn a_password_is_in_no_log_error_or_debug_output() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone());
    // The engine logs on its own thread, so this is for the whole process.
    subscriber.finish().init();

    let server = RedisServer::start();
    let _: () =
        server.command(&["ACL", "SETUSER", "bob", "on", &format!(">{PASSWORD}"), "~*", "&*", "+@all"]);
    let right = format!("redis://bob:{PASSWORD}@127.0.0.1:{}", server.port());
    let wrong = format!("redis://bob:{PASSWORD}x@127.0.0.1:{}", server.port());
    let nowhere = format!("redis://bob:{PASSWORD}@127.0.0.1:1");

    let mut shown = String::new();
    for url in [&right, &wrong, &nowhere] {
        let builder = crate::begin().master(url.as_str()).timeout(ms(2_000));
        shown += &format!("{builder:?}");
        let redlock = builder.build().unwrap();
        shown += &format!("{redlock:?} {:?}", redlock.lock("l"));
        match redlock.lock("l").wait(ms(60)).acquire().await {
            Ok(guard) => shown += &format!("{guard:?} {:?}", guard.votes()),
            Err(error) => shown += &format!("{error} {error:?}"),
        }
        shown += &format!("{:?}", redlock.lock("l").inspect().await);
    }
    for url in
        [format!("redis://bob:{PASSWORD}@h:port"), format!("bob:{PASSWORD}@h"), format!("x://{PASSWORD}@h")]
    {
        let error = crate::begin().master(url).build().unwrap_err();
        shown += &format!("{error} {error:?}");
    }
    let logged = log.text();
    assert!(
        logged.contains("connected") && logged.contains("unreachable"),
        "the log was not caught: {logged}"
    );
    for text in [shown, logged] {
        assert!(!text.contains(PASSWORD) && !text.contains("bob"), "{text}");
    }
}

/// Without HELLO, the server quotes it in its error, arguments and all.
#[tokio::test]
async fn a_server_that_quotes_the_login_does_not_give_it_away() {
    let server = RedisServer::start_with(&["--rename-command", "HELLO", "", "--requirepass", PASSWORD]);
    let url = format!("redis://bob:{PASSWORD}@127.0.0.1:{}", server.port());
    let redlock = crate::begin().master(url).timeout(ms(2_000)).build().unwrap();
    let error = format!("{:#}", redlock.lock("l").try_acquire().await.unwrap_err());
    // Valkey does not quote it: who is not logged in is not told which commands there are.
    assert!(error.contains("HELLO") || error.contains("NOAUTH"), "{error}");
    assert!(!error.contains(PASSWORD) && !error.contains("bob"), "{error}");
}
