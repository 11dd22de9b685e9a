//! A bar on standard error, where that is a terminal.

use std::convert::Infallible;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// How far a measurement has come. It is gone from the screen when it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Begins now, and lasts this long.
    pub fn new(duration: Duration) -> Self {
        let length = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let bar = ProgressBar::new(length); // draws to standard error, and not at all unless it is a terminal
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {percent:>3} %  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// Shows what is done now.
    pub fn step(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Whether there is a terminal to draw to.
    pub fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// The time since it began.
    pub fn elapsed(&self) -> Duration {
        self.bar.elapsed()
    }

    /// Lets the bar follow the time. To be polled beside the measurement, and dropped with it.
    pub async fn follow(&self) -> Infallible {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            self.bar.set_position(u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
