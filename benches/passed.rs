//! What of `src` an acquire passes through, as callgrind counts it: files, and hops from one
//! function to another. A process that acquires and releases 99 times is compared with one that
//! acquires once more.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quorate_testkit::Masters;

use crate::contender::{self, Client, Quorate};
use crate::figures::Row;

/// The environment variable that makes a process a sample, with the number of acquires.
pub(crate) const SAMPLE: &str = "QUORATE_BENCH_ACQUIRES";

/// So that what the last cycle left to do is done, and the next begins from rest.
const REST: Duration = Duration::from_millis(300);

/// Instructions by file of `src`, and calls by caller and callee, a function of `src`.
#[derive(Default)]
struct Passed {
    files: BTreeMap<String, u64>,
    calls: BTreeMap<(String, String), u64>,
}

/// Prints the files, with the instructions in each, and counts them and the hops.
pub(crate) fn row() -> Row {
    let masters = Masters::start(5);
    let without = count(99, &masters.urls());
    let with = count(100, &masters.urls());
    let files = more(&with.files, &without.files);
    let hops = more(&with.calls, &without.calls).count();
    println!("  instructions of the hundredth acquire, by file of src:");
    let files = files.inspect(|(file, count)| println!("    {count:>7}  {file}")).count();
    Row::new("path", Quorate::NAME, 1, 1).with("files", files as f64).with("hops", hops as f64)
}

/// What was counted more often with the acquire than without it, and how much more often.
fn more<'a, K: Ord>(
    with: &'a BTreeMap<K, u64>,
    without: &'a BTreeMap<K, u64>,
) -> impl Iterator<Item = (&'a K, u64)> {
    let more = |(key, count): (&'a K, &u64)| (key, count.saturating_sub(*without.get(key).unwrap_or(&0)));
    with.iter().map(more).filter(|(_, count)| *count > 0)
}

/// What a process passes through that acquires so often.
fn count(acquires: u32, masters: &[String]) -> Passed {
    let out = std::env::temp_dir().join(format!("quorate-{}-{acquires}.callgrind", std::process::id()));
    let sample = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(std::env::current_exe().unwrap())
        .args(masters)
        .env(SAMPLE, acquires.to_string())
        .output()
        .unwrap();
    assert!(sample.status.success(), "{}", String::from_utf8_lossy(&sample.stderr));
    let passed = Passed::read(&std::fs::read_to_string(&out).unwrap());
    std::fs::remove_file(out).unwrap();
    passed
}

impl Passed {
    /// Reads what callgrind writes: `fl=`, `fi=` and `fe=` name a file, and `cfi=` that of a
    /// callee; `fn=` and `cfn=` a function; the first time as `(ID) NAME`. A line below is a
    /// position and a cost; the line after `calls=` is the cost of the callee, which is counted
    /// there.
    fn read(profile: &str) -> Self {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let within = |path: &str| {
            let path = Path::new(path);
            path.strip_prefix(&src).or(path.strip_prefix("src")).ok().map(|path| path.display().to_string())
        };
        let mut passed = Self::default();
        let mut names = BTreeMap::new();
        let mut latest: BTreeMap<&str, String> = BTreeMap::new(); // what each word named last
        let mut is_callee = false;
        for line in profile.lines() {
            let word = line
                .split_once('=')
                .map(|(word, named)| (word, named.split_once(' ').unwrap_or((named, ""))));
            match word {
                Some((word @ ("fl" | "fi" | "fe" | "cfl" | "cfi" | "fn" | "cfn"), (id, name))) => {
                    let key = (word.ends_with("fn"), id);
                    if !name.is_empty() {
                        names.insert(key, name);
                    }
                    let is_file_of_caller = matches!(word, "fl" | "fi" | "fe");
                    let word = if is_file_of_caller { "fl" } else { word.trim_end_matches(['l', 'i']) };
                    latest.insert(word, names[&key].to_owned());
                }
                Some(("calls", (calls, _))) => {
                    let file = latest.remove("cf").or(latest.get("fl").cloned()).unwrap_or_default();
                    let callee = latest.get("cfn").cloned().unwrap_or_default();
                    if within(&file).is_some() {
                        let caller = latest.get("fn").cloned().unwrap_or_default();
                        *passed.calls.entry((caller, callee)).or_default() += calls.parse::<u64>().unwrap();
                    }
                    is_callee = true;
                }
                Some(_) => {}
                None if line.starts_with(|first: char| "+-*".contains(first) || first.is_ascii_digit()) => {
                    let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                    let file = latest.get("fl").and_then(|file| within(file));
                    if let (Some(file), Some(cost), false) = (file, cost, is_callee) {
                        *passed.files.entry(file).or_default() += cost;
                    }
                    is_callee = false;
                }
                None => {}
            }
        }
        passed
    }
}

/// Is a sample.
pub(crate) fn run_sample(acquires: &str) {
    let acquires: u32 = acquires.parse().unwrap();
    contender::runtime().block_on(async {
        let masters: Vec<String> = std::env::args().skip(1).collect();
        let redlock = contender::new(&masters).build().unwrap();
        let lock = |i: u32| redlock.lock(format!("bench-{i}"));
        for i in 1..100 {
            lock(i).try_acquire().await.unwrap().release().await.unwrap();
        }
        tokio::time::sleep(REST).await;
        let held = if acquires == 100 { Some(lock(100).try_acquire().await.unwrap()) } else { None };
        tokio::time::sleep(REST).await;
        std::mem::forget(held); // its release is no part of the acquire
        std::process::exit(0);
    });
}
