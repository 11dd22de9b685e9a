//! Figures: what a topic measured, and where, when and how it was measured. They are files in
//! docs/figures.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::measure::middle;

/// The environment variable with the file that a run writes its rows to.
const ROWS: &str = "QUORATE_BENCH_ROWS";

/// What is measured, and what measures it; not how figures are kept and shown.
const CODE: [&str; 6] = [
    "src",
    "scripts/lua",
    "benches",
    ":!benches/figures.rs",
    ":!benches/tables.rs",
    ":!benches/table_list.rs",
];

/// Which files of the repository do not change what is measured.
const NOT_CODE: [&str; 3] = [":!docs", ":!*.md", ":!scripts/*.sh"];

/// What one contender did in one case, such as `64` workers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) contender: String,
    /// How many locks it asked for, and how many it got.
    pub(crate) asked: u64,
    pub(crate) granted: u64,
    pub(crate) values: BTreeMap<String, f64>,
}

/// All that is known of a topic: a file in docs/figures.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) stamp: Stamp,
    pub(crate) runs: Vec<Vec<Row>>,
}

/// What was measured, where, when and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) commit: String,
    /// Whether there were changes beside the commit.
    pub(crate) dirty: bool,
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) command: String,
}

impl Row {
    pub(crate) fn new(
        case: impl fmt::Display,
        contender: impl fmt::Display,
        asked: u64,
        granted: u64,
    ) -> Self {
        let (case, contender) = (case.to_string(), contender.to_string());
        Self { case, contender, asked, granted, values: BTreeMap::new() }
    }

    /// Adds a value, to four digits.
    pub(crate) fn with(mut self, name: &str, value: f64) -> Self {
        let rounded = format!("{value:.3e}").parse().unwrap();
        self.values.insert(name.to_owned(), rounded);
        self
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, contender, asked, granted, values } = self;
        write!(f, "{case}, {contender}: granted {granted} of {asked}")?;
        values.iter().try_for_each(|(name, value)| write!(f, ", {name} {value}"))
    }
}

impl Figures {
    /// The figures of a topic, if it was measured.
    pub(crate) fn read(topic: &str) -> Option<Self> {
        let path = path(topic);
        let text = std::fs::read_to_string(&path).ok()?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// A line a row, so that a change can be read.
    fn write(&self, topic: &str) {
        let json = |value: &Row| serde_json::to_string(value).unwrap();
        let runs = self.runs.iter().map(|rows| rows.iter().map(json).collect::<Vec<_>>().join(",\n"));
        let runs = runs.collect::<Vec<_>>().join("\n], [\n");
        let stamp = serde_json::to_string_pretty(&self.stamp).unwrap();
        let path = path(topic);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{{\"stamp\": {stamp},\n\"runs\": [[\n{runs}\n]]}}\n")).unwrap();
    }
}

/// What each run says about one value.
pub(crate) fn values(runs: &[Vec<Row>], case: &str, contender: &str, value: &str) -> Option<Vec<f64>> {
    let row = |rows: &Vec<Row>| {
        let row = rows.iter().find(|row| row.case == case && row.contender == contender)?;
        row.values.get(value).copied()
    };
    runs.iter().map(row).collect()
}

impl Stamp {
    fn of(topic: &str) -> Self {
        let changes = [&["status", "--porcelain", "--", "."], &NOT_CODE[..]].concat();
        Self {
            commit: output("git", &["rev-parse", "HEAD"]),
            dirty: !output("git", &changes).is_empty(),
            date: output("date", &["-u", "+%F"]),
            machine: machine(),
            command: format!("scripts/figures.sh {topic}"),
        }
    }

    /// Whether the code is another one now. Unknown when the commit is not there, as in a shallow
    /// clone.
    pub(crate) fn is_older_than_the_code(&self) -> Option<bool> {
        let same = git(&["diff", "--quiet", &self.commit, "HEAD", "--"]).args(CODE).output().ok()?;
        match same.status.code()? {
            0 => Some(self.dirty),
            1 => Some(true),
            _ => None,
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commit, dirty, date, machine, command } = self;
        let changes = if *dirty { " with changes" } else { "" };
        write!(f, "`{command}` on {date}, at {:.10}{changes}: {machine}", commit)
    }
}

/// Measures a topic so often, each time in a process of its own, and writes its figures.
pub(crate) fn measure(topic: &str, runs: usize) {
    let stamp = Stamp::of(topic);
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.json");
    let run = |_| {
        let mut run = Command::new(std::env::current_exe().unwrap());
        assert!(run.arg(topic).env(ROWS, &rows).status().unwrap().success(), "{topic} failed");
        serde_json::from_slice(&std::fs::read(&rows).unwrap()).unwrap()
    };
    let runs: Vec<Vec<Row>> = (0..runs).map(run).collect();
    if runs.iter().any(Vec::is_empty) {
        return println!("{topic}: no figures");
    }
    Figures { stamp, runs }.write(topic);
}

/// Writes the rows to where the process that started this one reads them, if there is one.
pub(crate) fn hand_over(rows: &[Row]) {
    if let Ok(path) = std::env::var(ROWS) {
        std::fs::write(path, serde_json::to_vec(rows).unwrap()).unwrap();
    }
}

/// The median of values, with the least and the most of several.
pub(crate) fn median_and_range(values: &[f64]) -> (f64, f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (middle(values.iter().copied()), least, most)
}

/// The repository: cargo runs a bench there, and so can a person run one that was built elsewhere.
pub(crate) fn root() -> &'static Path {
    Path::new(".")
}

fn path(topic: &str) -> PathBuf {
    root().join(format!("docs/figures/{topic}.json"))
}

/// `Intel Xeon, 2 cores, Linux 6.1, redis-server 7.0.15`
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let cpu = model.map_or("unknown CPU", |(_, model)| model);
    let cores = std::thread::available_parallelism().unwrap();
    let redis = output("redis-server", &["--version"]);
    let version = redis.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap();
    format!("{cpu}, {cores} cores, {}, redis-server {version}", output("uname", &["-sr"]))
}

fn git(arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root()).args(arguments);
    git
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).current_dir(root()).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
