//! The rules of the house that a test can check.

mod docs;
mod graph;
mod layers;
mod made_up;
mod packages;
mod sources;
mod style;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use graph::Graph;
use sources::Sources;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder, or of all, with this ending, with its path from the root and its
/// text.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_built = [".git", "target"].iter().any(|name| path.ends_with(name));
            if is_built {
                continue;
            }
            if path.is_dir() { collect(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    let named = found.into_iter().filter(|path| path.to_str().unwrap().ends_with(ending));
    let mut read: Vec<_> = named
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    read.sort();
    assert!(!read.is_empty(), "no {ending} below {folder}");
    read
}

/// The code without its comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every library and every program of the workspace.
fn crates() -> Vec<Sources> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find(|line| line.starts_with("members = ")).unwrap();
    let members = members.split('"').skip(1).step_by(2);
    let mut found = vec![Sources::read("quorate", "src/lib.rs", &files("src", ".rs").into_iter().collect())];
    for member in members {
        let files: BTreeMap<_, _> = files(&format!("{member}/src"), ".rs").into_iter().collect();
        for target in ["lib.rs", "main.rs"].map(|name| format!("{member}/src/{name}")) {
            // A program names its library, and is not named by it.
            let name = if target.ends_with("lib.rs") { format!("quorate_{member}") } else { String::new() };
            found.extend(files.contains_key(&target).then(|| Sources::read(&name, &target, &files)));
        }
    }
    found
}

/// Files that name each other's items can only be understood together.
#[test]
fn no_files_are_in_a_circle() {
    let mut found = String::new();
    for sources in crates() {
        let graph = Graph::of(&sources);
        assert!(graph.unresolved.is_empty(), "paths that lead nowhere: {:#?}", graph.unresolved);
        for circle in graph.circles() {
            found += &format!("\n{} files: {}", circle.files.len(), circle.shortest);
        }
    }
    assert!(found.is_empty(), "files in a circle, the shortest of each:{found}");
}

/// The check above would not notice a circle if it saw no edges: the files of every crate hang
/// together, but for a few that only others use.
#[test]
fn most_files_name_items_of_another() {
    for sources in crates() {
        let files: BTreeSet<_> = sources.modules.values().map(|module| &module.file).collect();
        let edges = Graph::of(&sources).edges();
        assert!(edges * 2 >= files.len(), "{} edges among {} files", edges, files.len());
    }
}

/// A name that means two things in a crate has to be looked up each time.
#[test]
fn no_type_name_stands_for_two_types() {
    for sources in crates() {
        let mut defined: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for module in sources.modules.values() {
            module.types.iter().for_each(|name| defined.entry(name).or_default().push(&module.file));
        }
        for (name, files) in defined {
            assert!(files.len() == 1, "{name} is defined in {}", files.join(" and "));
        }
    }
}

#[test]
fn nothing_outside_link_names_the_redis_crate() {
    let outside = files("src", ".rs").into_iter().chain(files("cli/src", ".rs"));
    for (name, text) in outside.filter(|(name, _)| !name.starts_with("src/link/")) {
        let code = code(&text);
        for naming in ["redis::", "use redis", "extern crate redis", "fred::"] {
            assert!(!code.contains(naming), "{name} names the redis crate: {naming}");
        }
    }
    let inside = files("src/link", ".rs").into_iter().any(|(_, text)| code(&text).contains("redis::"));
    assert!(inside, "the check above would not notice");
}

/// The simulator drives the library's link, and has none of its own.
#[test]
fn the_simulator_names_nothing_that_the_link_decides() {
    let anywhere = ["silen", "reconnect", "probe"];
    let in_its_driver = ["sleep", "timeout(", "backoff"];
    for (name, text) in files("simulator/src", ".rs") {
        let is_driver = name.starts_with("simulator/src/link/");
        let code = code(&text).replace("Reach::Silent", "").to_lowercase();
        for word in anywhere.into_iter().chain(in_its_driver.into_iter().filter(|_| is_driver)) {
            assert!(!code.contains(word), "{name} names {word}: src/link/state.rs decides that");
        }
    }
    let link = code(&fs::read_to_string(root().join("src/link/state.rs")).unwrap()).to_lowercase();
    assert!(
        ["silen", "reconnect", "backoff"].iter().all(|word| link.contains(word)),
        "nothing would be noticed"
    );
}

/// Operators' builds have nothing that is for tests.
#[test]
fn the_library_never_names_the_test_kit() {
    for (name, text) in files("src", ".rs") {
        assert!(!code(&text).contains("quorate_testkit"), "{name} names the test kit");
    }
}

/// Pure rules: no time, no randomness, no waiting, no masters.
#[test]
fn pure_rules_are_pure() {
    for file in [
        "src/round/quorum.rs",
        "src/round/verdict.rs",
        "src/engine/pauses.rs",
        "src/renewal/mod.rs",
        "src/backoff.rs",
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let code = code(text.split("#[cfg(test)]").next().unwrap());
        for impure in ["async", ".await", "now()", "Clock", "Random", "Master"] {
            assert!(!code.contains(impure), "{file} is not pure: {impure}");
        }
    }
}

/// What the simulator runs must not draw lots: `select!` does unless it is told not to, threads and
/// tasks of somebody else's do, and maps that hash have an order of their own, which a lint keeps
/// from being seen.
#[test]
fn the_engine_has_no_order_of_its_own() {
    let places = [
        "src/engine/",
        "src/renewal/",
        "src/round/",
        "src/wake/",
        "src/lock",
        "src/guard",
        "src/election",
        "src/observer",
    ];
    let runs = |name: &String| places.iter().any(|place| name.starts_with(place));
    let mut seen = 0;
    for (name, text) in files("src", ".rs").into_iter().filter(|(name, _)| runs(name)) {
        let running = code(text.split("#[cfg(test)]").next().unwrap());
        for lot in ["tokio::spawn", "thread::spawn", "spawn_blocking", "Handle::current", "RandomState"] {
            assert!(!running.contains(lot), "{name} has an order of its own: {lot}");
        }
        for select in code(&text).split("select!").skip(1) {
            assert!(select.trim_start_matches([' ', '{', '\n']).starts_with("biased;"), "{name} draws lots");
            seen += 1;
        }
    }
    assert!(seen > 0, "the check above would not notice");
}

/// A claim names the test that shows it: there is one of that name.
#[test]
fn the_tests_that_the_docs_name_are_there() {
    let folders =
        ["tests", "src", "cli/tests", "lab/tests", "simulator/tests", "testkit/tests", "chaos/tests"];
    let tests: String =
        folders.iter().flat_map(|folder| files(folder, ".rs")).map(|(_, text)| text).collect();
    let mut named = 0;
    for page in ["SAFETY.md", "SEEDS.md"] {
        let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
        let words = text.split('`').skip(1).step_by(2);
        let is_name = |word: &&str| {
            word.matches('_').count() > 2
                && word.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        };
        for name in words.filter(is_name) {
            named += 1;
            assert!(tests.contains(&format!("fn {name}(")), "docs/{page} names {name}, which is no test");
        }
    }
    assert!(named > 60, "only {named} tests are named");
}

/// The methods of the public API that return futures, each with its type, and the others.
fn methods() -> (Vec<String>, Vec<String>) {
    let files = files("src", ".rs").into_iter().filter(|(name, _)| name.matches('/').count() == 1);
    let mut found = (Vec::new(), Vec::new());
    for (_, text) in files {
        for body in text.split("\nimpl").skip(1) {
            let Some((of, body)) = body.split_once(" {\n") else { continue };
            let of = of.trim().split('<').next().unwrap();
            let body = body.split("\n}").next().unwrap();
            for line in body.lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
                let asynchronous = line.strip_prefix("async fn ");
                let Some(method) = asynchronous.or(line.strip_prefix("fn ")) else { continue };
                let name = format!("{of}::{}", method.split(['(', '<']).next().unwrap());
                let is_future = asynchronous.is_some() || line.contains("-> impl Future");
                if is_future { found.0.push(name) } else { found.1.push(name) }
            }
        }
    }
    found
}

/// But for work that is dropped when the lock is lost, and for `lost`, whose twin is
/// `sleep_blocking`.
#[test]
fn every_async_method_has_a_blocking_twin() {
    let (futures, others) = methods();
    let (with, without): (Vec<String>, Vec<String>) =
        futures.into_iter().partition(|method| others.contains(&format!("{method}_blocking")));
    let expected = [
        "UnfencedGuard::run",
        "Election::lead",
        "Leadership::lost",
        "Leadership::run",
        "Guard::lost",
        "Guard::run",
    ];
    assert_eq!(without, expected, "these have no twin");
    assert!(with.len() >= 18, "only these were found: {with:?}");
    for of in ["Guard", "Leadership"] {
        assert!(others.contains(&format!("{of}::sleep_blocking")));
    }
}

#[test]
fn files_say_what_they_are() {
    for folder in [
        "src",
        "chaos/src",
        "cli/src",
        "history/src",
        "lab/src",
        "simulator/src",
        "testkit/src",
        "tests/model",
    ] {
        for (name, text) in files(folder, ".rs") {
            assert!(text.starts_with("//!"), "{name} does not begin with what it is");
        }
    }
}

/// Otherwise one finds out when the bugs are built, minutes later.
#[test]
fn the_known_bugs_fit_the_code() {
    let fits = Command::new("scripts/mutants.sh").arg("--fits").current_dir(root()).output().unwrap();
    assert!(fits.status.success(), "{}", String::from_utf8_lossy(&fits.stderr));
}
