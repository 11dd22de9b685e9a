//! Writes the history, from each process by itself.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quorate_history::{Call, NoVote, Outcome, Time};
use rustix::time::{ClockId, clock_gettime};

use super::line::{Event, Line};

/// The time since the host was started, suspend included: all its processes have the same,
/// in whole microseconds as lines have it.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::Boottime);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    Time::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// Adds lines to a file that others add lines to. A line is there as soon as it is recorded,
/// whatever becomes of the process.
#[derive(Debug)]
pub struct Recorder {
    process: String,
    path: PathBuf,
    file: File,
    numbers: AtomicU64,
}

impl Recorder {
    /// Records to this file, which may not be there yet, as the process of this name.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened.
    pub fn open(path: &Path, process: impl Into<String>) -> io::Result<Self> {
        let process = process.into();
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| unwritten(&process, path, &error))?;
        Ok(Self { process, path: path.to_owned(), file, numbers: AtomicU64::new(0) })
    }

    /// A call is about to be made: its number.
    ///
    /// # Errors
    ///
    /// When the line cannot be written; the call should not be made then.
    pub fn invoke(&self, call: Call) -> io::Result<u64> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.record(Event::Invoke { number, call })?;
        Ok(number)
    }

    /// A call has returned.
    ///
    /// # Errors
    ///
    /// When the line cannot be written.
    pub fn returned(&self, number: u64, outcome: Outcome) -> io::Result<()> {
        self.returned_without(number, outcome, Vec::new())
    }

    /// An acquire has returned, in which these masters had no vote.
    ///
    /// # Errors
    ///
    /// When the line cannot be written.
    pub fn returned_without(&self, number: u64, outcome: Outcome, no_vote: Vec<NoVote>) -> io::Result<()> {
        self.record(Event::Return { number, outcome, no_vote })
    }

    /// Something else happened now.
    ///
    /// # Errors
    ///
    /// When the line cannot be written.
    pub fn record(&self, event: Event) -> io::Result<()> {
        let line = Line { at: now(), process: self.process.clone(), event };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        // One write: the system puts it behind what others have written, and never between.
        let written = (&self.file).write_all(text.as_bytes());
        written.map_err(|error| unwritten(&self.process, &self.path, &error))
    }
}

fn unwritten(process: &str, path: &Path, error: &io::Error) -> io::Error {
    let what = format!("{process} cannot write the history {}: {error}", path.display());
    io::Error::new(error.kind(), what)
}
