//! A process that a test stops, continues and kills.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How long a process may take to start, to stop, or to answer the test kit.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// A process that this one has started, by itself or by another.
#[derive(Clone, Copy, Debug)]
pub struct ProcessHandle(Pid);

impl ProcessHandle {
    pub(crate) fn new(pid: Pid) -> Self {
        Self(pid)
    }

    /// A child of this process.
    pub fn of(child: &Child) -> Self {
        Self(Pid::from_child(child))
    }

    /// Stops it in its tracks (SIGSTOP). Whether it stands still; it may have ended.
    pub fn freeze(&self) -> bool {
        self.signal(Signal::STOP);
        wait(|| (self.state() == Some('T')).then_some(())).is_some()
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills it (SIGKILL), whether it stands still or not. Whether it is gone.
    pub fn kill(&self) -> bool {
        self.signal(Signal::KILL);
        wait(|| (!self.is_alive()).then_some(())).is_some()
    }

    /// Whether it has not ended. A process has ended when its first thread has, and no other is
    /// left: until then its sockets are open.
    pub fn is_alive(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.as_raw_nonzero()));
        !matches!(self.state(), None | Some('Z')) || threads.is_ok_and(|threads| threads.count() > 1)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process(self.0, signal); // it may be gone already, which is as well
    }

    /// The letter that /proc has for the process: T for stopped, Z for ended, say.
    fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.as_raw_nonzero())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }
}

/// Looks until there is an answer, every two milliseconds, for as long as the bound.
#[allow(clippy::disallowed_methods, reason = "it is a test kit, and this thread has nothing else to do")]
pub(crate) fn wait<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = std::time::Instant::now();
    while begun.elapsed() < BOUND {
        if let Some(answer) = look() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    look()
}
