//! Messages on standard error, which may be closed or full: the supervision of a job must neither
//! wait for it nor fail because of it. A thread writes them, and drops those that it cannot keep up
//! with.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use serde::Serialize;

use crate::exit::{self, Failure};

/// How many messages may wait to be written.
const WAITING: usize = 64;

/// How long the end of the process waits until the last ones are written.
const LAST_WORD: Duration = Duration::from_millis(250);

enum Message {
    Line(String),
    /// Answered when everything before it was written.
    Flush(SyncSender<()>),
}

static UNWRITTEN: AtomicBool = AtomicBool::new(false);
static UNREAD: AtomicBool = AtomicBool::new(false);
static MESSAGES: OnceLock<SyncSender<Message>> = OnceLock::new();

/// Writes a message to standard error, some time.
pub fn say(message: impl std::fmt::Display) {
    let _ = sender().try_send(Message::Line(format!("quorate: {message}\n")));
}

/// Writes a line to standard output, as `println` does, but does not mind if nobody reads it.
#[macro_export]
macro_rules! out {
    ($($part:tt)*) => {
        $crate::say::line(format_args!($($part)*))
    };
}

/// See [`out`].
pub fn line(text: std::fmt::Arguments<'_>) {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => UNREAD.store(true, Ordering::Relaxed),
        Err(error) => {
            UNWRITTEN.store(true, Ordering::Relaxed);
            say(format_args!("standard output: {error}"));
        }
        Ok(()) => {}
    }
}

/// Writes a value to standard output, as JSON on a line.
pub fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    written(serde_json::to_string(value))
}

/// Writes a value to standard output, as JSON for people to read as well.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    written(serde_json::to_string_pretty(value))
}

fn written(json: serde_json::Result<String>) -> Result<(), Failure> {
    out!("{}", json.map_err(|error| Failure::new(exit::FAILED, error.to_string()))?);
    Ok(())
}

/// Whether nobody reads standard output any more.
pub fn is_output_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Whether output was lost that somebody may have waited for.
pub fn is_output_lost() -> bool {
    UNWRITTEN.load(Ordering::Relaxed)
}

/// Waits a moment for the messages to be written.
pub fn flush() {
    let (written, done) = sync_channel(1);
    if sender().try_send(Message::Flush(written)).is_ok() {
        let _ = done.recv_timeout(LAST_WORD);
    }
}

fn sender() -> &'static SyncSender<Message> {
    MESSAGES.get_or_init(|| {
        let (sender, messages) = sync_channel(WAITING);
        std::thread::spawn(move || write(&messages));
        sender
    })
}

fn write(messages: &Receiver<Message>) {
    while let Ok(message) = messages.recv() {
        let _ = match message {
            Message::Line(line) => std::io::stderr().write_all(line.as_bytes()).is_ok(),
            Message::Flush(done) => done.try_send(()).is_ok(),
        };
    }
}
