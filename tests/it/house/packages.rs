//! What the packages bring along.

use std::collections::BTreeSet;
use std::process::Command;

/// The crates that a package needs by itself, with its default features.
fn crates_of(package: &str) -> BTreeSet<String> {
    let tree = ["tree", "--locked", "--offline", "-p", package, "-e", "normal", "--prefix", "none"];
    let output = Command::new(env!("CARGO")).args(tree).current_dir(super::root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

/// Whoever installs the command or adds the library does not build what tests them.
#[test]
fn users_get_nothing_that_is_for_tests() {
    let for_tests = ["mimalloc", "mlua", "quorate-chaos", "quorate-lab", "quorate-simulator", "rslock"];
    for (package, needs) in
        [("quorate", "redis"), ("quorate-cli", "quorate-testkit"), ("quorate-lab", "rslock")]
    {
        let crates = crates_of(package);
        assert!(crates.contains(needs), "{package}: {crates:?}");
        let found: Vec<_> = for_tests.into_iter().filter(|name| crates.contains(*name)).collect();
        let is_for_tests = package == "quorate-lab";
        assert_eq!(!found.is_empty(), is_for_tests, "{package} brings {found:?}");
    }
}

/// What nobody asked for stays out of the library.
#[test]
fn the_library_alone_is_small() {
    let crates = crates_of("quorate");
    for left_out in ["clap", "quorate-testkit", "ring", "serde", "serde_json", "tokio-rustls"] {
        assert!(!crates.contains(left_out), "{left_out}");
    }
}
