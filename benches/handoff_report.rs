//! What one run of the hand-off bench comes to: from the moments of its holds, and from the masters' statistics.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use quorate::Moment;
use quorate_testkit::RedisServer;

use crate::handoff_child::Contender;
use crate::handoff_crew::{Hold, Trip};

/// What only the scripts of each contender call. INFO counts these calls as well, but they are part of the EVALSHA that
/// made them: they are not sent, read and answered. Every other command is counted. A command that a client begins to
/// send by itself as well must leave the list.
const INSIDE_QUORATE: [&str; 19] = [
    "del", "exists", "hget", "hgetall", "hlen", "hmget", "hset", "incr", "pexpire", "pttl", "publish",
    "time", "zadd", "zcard", "zpopmin", "zrange", "zrank", "zrem", "zscore",
];
const INSIDE_RSLOCK: [&str; 2] = ["del", "get"];

pub(crate) struct Report {
    pub(crate) row: &'static str,
    pub(crate) contender: Contender,
    trip: Trip,
    /// The median hold, as it was.
    hold: Duration,
    /// Which share of the time somebody held the lock.
    held: f64,
    /// From each release to the next grant, sorted.
    gaps: Vec<Duration>,
    /// Of the clients with the most grants and with the least.
    most: usize,
    least: usize,
    grants: usize,
    commands: f64,
}

/// What was seen of one run.
pub(crate) struct Seen {
    pub(crate) row: &'static str,
    pub(crate) contender: Contender,
    pub(crate) trip: Trip,
    pub(crate) began: Moment,
    pub(crate) ended: Moment,
    /// What each client held, some of it after the end.
    pub(crate) holds: Vec<Vec<Hold>>,
    /// What the clients sent to all masters.
    pub(crate) commands: u64,
}

impl Seen {
    /// # Panics
    ///
    /// When two clients held the lock at once.
    pub(crate) fn report(mut self) -> Report {
        for holds in &mut self.holds {
            holds.retain(|hold| hold.granted <= self.ended);
        }
        let mut holds: Vec<Hold> = self.holds.iter().flatten().copied().collect();
        holds.sort_by_key(|hold| hold.granted);
        let mut gaps: Vec<Duration> = holds.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
        gaps.sort_unstable();
        let end = |hold: &Hold| hold.released.unwrap_or(self.ended).min(self.ended);
        let mut lengths: Vec<Duration> = holds.iter().map(|hold| end(hold).since(hold.granted)).collect();
        let held = lengths.iter().sum::<Duration>().as_secs_f64();
        lengths.sort_unstable();
        let grants = self.holds.iter().map(Vec::len);
        Report {
            row: self.row,
            contender: self.contender,
            trip: self.trip,
            hold: quantile(&lengths, 0.5),
            held: held / self.ended.since(self.began).as_secs_f64(),
            gaps,
            most: grants.clone().max().unwrap(),
            least: grants.min().unwrap(),
            grants: holds.len(),
            commands: self.commands as f64 / holds.len() as f64,
        }
    }
}

fn gap(earlier: Hold, later: Hold) -> Duration {
    match earlier.released {
        Some(released) if released <= later.granted => later.granted.since(released),
        _ => panic!("two held the lock at once: {earlier:?}, {later:?}"),
    }
}

fn quantile(sorted: &[Duration], share: f64) -> Duration {
    sorted.get((sorted.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or_default()
}

impl Report {
    pub(crate) fn header() -> String {
        format!(
            "{:<13} {:<8} {:>11} {:>5} {:>5} {:>18} {:>18} {:>18} {:>10} {:>10} {:>6}",
            "clients",
            "",
            "trip h/p",
            "hold",
            "held",
            "gap p50",
            "gap p99",
            "gap max",
            "most:least",
            "cmds/grant",
            "grants"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let gap = |share| {
            let gap = quantile(&self.gaps, share);
            let (hot, paced) = (gap.div_duration_f64(self.trip.hot), gap.div_duration_f64(self.trip.paced));
            format!("{:.0} {hot:.1}x/{paced:.1}x", micros(gap))
        };
        write!(
            f,
            "{:<13} {:<8} {:>11} {:>5.0} {:>5.2} {:>18} {:>18} {:>18} {:>10} {:>10.1} {:>6}",
            self.row,
            self.contender,
            format!("{:.0}/{:.0}", micros(self.trip.hot), micros(self.trip.paced)),
            micros(self.hold),
            self.held,
            gap(0.5),
            gap(0.99),
            gap(1.0),
            format!("{}:{}", self.most, self.least),
            self.commands,
            self.grants
        )
    }
}

/// How many commands a server has had from the clients of a contender, and a handful from this process.
pub(crate) fn commands(server: &RedisServer, contender: Contender) -> u64 {
    let inside: &[&str] = match contender {
        Contender::Quorate => &INSIDE_QUORATE,
        Contender::Rslock => &INSIDE_RSLOCK,
    };
    let statistics: String = server.command(&["INFO", "commandstats"]);
    let lines = statistics.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    let sent = lines.filter(|(command, _)| !inside.contains(command));
    sent.map(|(_, rest)| rest.split(',').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Makes sure that the list above has everything that the library's scripts call.
///
/// # Panics
///
/// When it lacks a command, which would be counted as sent.
pub(crate) fn check_scripts() {
    for script in scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/lua")) {
        for call in script.split("call('").skip(1) {
            let command = call.split('\'').next().unwrap().to_lowercase();
            assert!(INSIDE_QUORATE.contains(&&*command), "a script calls {command}: put it on the list");
        }
    }
}

/// The text of every file in a folder and the folders in it.
fn scripts(folder: &Path) -> Vec<String> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = paths.map(|path| match path.is_dir() {
        true => scripts(&path),
        false => vec![std::fs::read_to_string(path).unwrap()],
    });
    texts.flatten().collect()
}
