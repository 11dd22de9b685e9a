//! What was used, by this process and by the masters.

use std::ops::{AddAssign, Sub};
use std::time::Duration;

use quorate_testkit::RedisServer;
use rustix::time::{ClockId, clock_gettime};

/// What masters have done, all together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Seconds of CPU.
    pub(crate) cpu: f64,
    /// Bytes of memory.
    pub(crate) memory: f64,
    /// Calls that clients sent, and how long (us) masters took for them.
    pub(crate) calls: f64,
    pub(crate) call_us: f64,
}

/// What a contender sends for locks. INFO counts what a script calls as well, so these are not to
/// be called by its scripts.
pub(crate) fn sent_by(contender: &str) -> &'static [&'static str] {
    match contender {
        "rslock" | "rslock, names reused" | "rslock, one thread" | "floor" => &["set", "eval", "evalsha"],
        _ => &["eval", "evalsha"],
    }
}

/// What masters have done since they were started, of commands only those in `sent`.
pub(crate) fn used<'a>(masters: impl IntoIterator<Item = &'a RedisServer>, sent: &[&str]) -> Used {
    let mut sum = Used::default();
    for master in masters {
        let info: String = master.command(&["INFO", "all"]);
        let field = |name: &str| -> f64 {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap().parse().unwrap()
        };
        let mut used = Used {
            cpu: field("used_cpu_sys") + field("used_cpu_user"),
            memory: field("used_memory"),
            ..Used::default()
        };
        for command in sent {
            let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
            let value = |name| line?.split(',').find_map(|field| field.strip_prefix(name))?.parse().ok();
            used.calls += value("calls=").unwrap_or(0.0);
            used.call_us += value("usec=").unwrap_or(0.0);
        }
        sum += used;
    }
    sum
}

impl AddAssign for Used {
    fn add_assign(&mut self, more: Self) {
        self.cpu += more.cpu;
        self.memory += more.memory;
        self.calls += more.calls;
        self.call_us += more.call_us;
    }
}

impl Sub for Used {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            cpu: self.cpu - before.cpu,
            memory: self.memory - before.memory,
            calls: self.calls - before.calls,
            call_us: self.call_us - before.call_us,
        }
    }
}

/// The CPU time that this process has used.
pub(crate) fn own_cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

/// What this process has written to and keeps in memory, in bytes.
pub(crate) fn own_memory() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = pages.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<f64>().unwrap() * 1024.0
}
