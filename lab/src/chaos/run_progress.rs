//! Progress of a run: a bar if standard error is a terminal, otherwise lines.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quorate_chaos::PlanEvent;
use quorate_chaos::run::Phase;

use quorate_cli::progress::Progress;
use quorate_cli::say::say;

/// The least time between lines: a fault that begins sooner gets none.
const LEAST: Duration = Duration::from_secs(1);

/// The most, to show that the run goes on.
const MOST: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct RunProgress {
    bar: Progress,
    lines: Mutex<Lines>,
}

/// Which lines there are. Pure.
#[derive(Debug, Default)]
struct Lines {
    last: Option<Duration>,
    what: String,
}

impl RunProgress {
    pub(super) fn new(duration: Duration) -> Self {
        Self { bar: Progress::new(duration), lines: Mutex::default() }
    }

    pub(super) fn step(&self, phase: Phase<'_>) {
        let what = said(phase);
        self.bar.step(&what);
        match phase {
            Phase::Event(PlanEvent::Recovers(..) | PlanEvent::Healed(_)) => {}
            Phase::Event(PlanEvent::Strikes(_)) => self.line(|lines, at| lines.strikes(at, what)),
            _ => self.line(|lines, at| Some(lines.say(at, what))),
        }
    }

    /// Updates it as time passes. To be polled beside the run, and dropped with it.
    pub(super) async fn follow(&self) -> Infallible {
        let lines = async {
            loop {
                tokio::time::sleep(LEAST).await;
                self.line(Lines::goes_on);
            }
        };
        tokio::select! {
            biased;
            never = self.bar.follow() => never,
            never = lines => never,
        }
    }

    fn line(&self, next: impl FnOnce(&mut Lines, Duration) -> Option<String>) {
        if self.bar.is_seen() {
            return;
        }
        let line = next(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner), self.bar.elapsed());
        line.into_iter().for_each(say);
    }
}

impl Lines {
    fn say(&mut self, at: Duration, what: String) -> String {
        (self.last, self.what) = (Some(at), what);
        format!("{} s: {}", at.as_secs(), self.what)
    }

    fn strikes(&mut self, at: Duration, what: String) -> Option<String> {
        if self.last.is_some_and(|last| at < last + LEAST) {
            return None;
        }
        Some(self.say(at, what))
    }

    fn goes_on(&mut self, at: Duration) -> Option<String> {
        let what = self.what.clone();
        self.last.is_some_and(|last| at >= last + MOST).then(|| self.say(at, what))
    }
}

/// The current phase, in words.
fn said(phase: Phase<'_>) -> String {
    match phase {
        Phase::Starts => "masters and clients start".to_owned(),
        Phase::Storm => "the clients work".to_owned(),
        Phase::Event(PlanEvent::Strikes(planned)) => planned.fault.to_string(),
        Phase::Event(PlanEvent::Recovers(planned, master)) => {
            format!("healed at m{master}: {}", planned.fault)
        }
        Phase::Event(PlanEvent::Healed(planned)) => format!("healed: {}", planned.fault),
        Phase::Change(what) => format!("the set changes: {what}"),
        Phase::NoChange => "all changes are made; the clients work without one".to_owned(),
        Phase::Calm => "all is healed; the clients take every lock once more".to_owned(),
        Phase::Checks => "the history is checked".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_second_apart_at_least_and_ten_at_most() {
        let mut lines = Lines::default();
        let at = Duration::from_millis;
        assert_eq!(lines.goes_on(at(0)), None, "nothing has begun");
        assert_eq!(lines.say(at(100), "work".to_owned()), "0 s: work");
        assert_eq!(lines.strikes(at(1_099), "kill".to_owned()), None);
        assert_eq!(lines.strikes(at(1_100), "freeze".to_owned()).unwrap(), "1 s: freeze");
        assert_eq!(lines.goes_on(at(11_099)), None);
        assert_eq!(lines.goes_on(at(11_100)).unwrap(), "11 s: freeze");
        assert_eq!(
            lines.say(at(11_101), "healed".to_owned()),
            "11 s: healed",
            "how far it is comes at any time"
        );
    }
}
