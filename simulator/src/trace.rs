//! The trace of a run: a line for everything that happens, in order, for a person to read and for
//! two runs to be compared.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use quorate_history::Time;

/// The lines written so far, unless nobody wants them.
#[derive(Debug)]
pub(crate) struct Trace(Option<Mutex<String>>);

impl Trace {
    pub(crate) fn new(wanted: bool) -> Self {
        Self(wanted.then(Mutex::default))
    }

    /// Writes a line, which is made only if it is wanted.
    pub(crate) fn note(&self, line: impl FnOnce() -> (Time, String)) {
        if let Some(lines) = &self.0 {
            let (at, line) = line();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            let seconds = at.as_secs();
            let micros = at.subsec_micros();
            let _ = writeln!(lines, "{seconds:3}.{micros:06}  {line}"); // a string takes any text
        }
    }

    /// All lines.
    pub(crate) fn take(&self) -> String {
        let lines = self.0.as_ref().map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner));
        lines.map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
    }
}
