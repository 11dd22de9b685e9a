//! The files of `src` that an acquire passes through: those with instructions in the hundredth
//! acquire, as callgrind counts them. A process that acquires and releases 99 times is compared
//! with one that acquires once more.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quorate_testkit::Masters;

use crate::contender;

/// The environment variable that makes a process a sample, with the number of acquires.
pub(crate) const SAMPLE: &str = "QUORATE_BENCH_ACQUIRES";

/// So that what the last cycle left to do is done, and the next begins from rest.
const REST: Duration = Duration::from_millis(300);

/// Prints the files, with the instructions in each.
pub(crate) fn print() {
    let masters = Masters::start(5);
    let (without, with) = (count(99, &masters.urls()), count(100, &masters.urls()));
    let more = |(file, count): (&String, &u64)| {
        let count = count.saturating_sub(without.get(file).copied().unwrap_or(0));
        (count > 0).then(|| (file.clone(), count))
    };
    let passed: Vec<(String, u64)> = with.iter().filter_map(more).collect();
    println!(
        "  the hundredth acquire passes through {} files of src, with so many instructions:",
        passed.len()
    );
    passed.iter().for_each(|(file, count)| println!("    {count:>7}  {file}"));
}

/// The instructions in each file of `src`, of a process that acquires so often.
fn count(acquires: u32, masters: &[String]) -> BTreeMap<String, u64> {
    let out = std::env::temp_dir().join(format!("quorate-{}-{acquires}.callgrind", std::process::id()));
    let sample = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(std::env::current_exe().unwrap())
        .args(masters)
        .env(SAMPLE, acquires.to_string())
        .output()
        .unwrap();
    assert!(sample.status.success(), "{}", String::from_utf8_lossy(&sample.stderr));
    let counted = by_file(&std::fs::read_to_string(&out).unwrap());
    std::fs::remove_file(out).unwrap();
    counted
}

/// Sums up what callgrind writes: `fl=`, `fi=` and `fe=` name a file, and `cfi=` that of a callee;
/// the first time as `(ID) PATH`; a line below is a position and a cost; the line after `calls=` is
/// the cost of the callee, which is counted there.
fn by_file(profile: &str) -> BTreeMap<String, u64> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut names, mut sums) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
    let (mut file, mut is_callee) = (None::<String>, false);
    for line in profile.lines() {
        let named = |heads: &[&str]| heads.iter().find_map(|head| line.strip_prefix(head));
        if let Some((id, path)) =
            named(&["fl=", "fi=", "fe=", "cfi=", "cfl="]).and_then(|named| named.split_once(' '))
        {
            names.insert(id, path);
        }
        if let Some(named) = named(&["fl=", "fi=", "fe="]) {
            let id = named.split(' ').next().unwrap();
            let path = names.get(id).map(Path::new);
            let within = path.and_then(|path| path.strip_prefix(&src).or(path.strip_prefix("src")).ok());
            file = within.map(|within| within.display().to_string());
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if line.starts_with(['+', '-', '*']) || line.starts_with(|first: char| first.is_ascii_digit())
        {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if let (Some(file), Some(cost), false) = (&file, cost, is_callee) {
                *sums.entry(file.clone()).or_default() += cost;
            }
            is_callee = false;
        }
    }
    sums
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
