//! The command, as somebody types it.

use std::process::{Command, Output, Stdio};

fn simulate(args: &str) -> Output {
    let command = env!("CARGO_BIN_EXE_quorate-lab");
    Command::new(command).arg("simulate").args(args.split_whitespace()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What comes after ` -- ` in the lines that say what to type.
fn commands(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("  cargo run --release -p quorate-lab -- simulate "))
        .collect()
}

#[test]
fn seeds_that_violate_nothing_are_a_success() {
    let output = simulate("--seeds 4 --from 11");
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output).starts_with("4 seeds, 11 to 14, in "), "{output:?}");
}

#[test]
fn a_violation_ends_a_run_that_has_time_left() {
    let output = simulate("--fault flush-all --trusting --during 20 --threads 1 --expect windows");
    assert!(output.status.success(), "{output:?}");
    let text = text(&output);
    let number = |before: &str| -> u64 {
        let words = text.split_once(before).unwrap().1;
        words.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert_eq!(number(""), number("\nseed "), "{text}");
}

#[test]
fn what_is_found_is_replayed_by_the_commands_that_are_printed() {
    let found = simulate("--fault flush-all --trusting --seeds 60");
    assert_eq!(found.status.code(), Some(79), "{found:?}");
    let found = text(&found);
    let commands = commands(&found);
    assert_eq!(commands.len(), 2, "the seed, and what is left of it: {found}");
    for command in commands {
        let replayed = simulate(command);
        assert_eq!(replayed.status.code(), Some(79), "{command}");
        assert!(text(&replayed).contains("windows at "), "{command}: {}", text(&replayed));
        assert_eq!(text(&replayed), text(&simulate(command)), "{command}");
        assert!(simulate(&format!("{command} --expect windows")).status.success(), "{command}");
    }
}

#[test]
fn a_bug_that_is_expected_and_not_found_is_a_failure() {
    assert_eq!(simulate("--seed 1 --expect windows").status.code(), Some(70));
}

#[test]
fn nothing_is_simulated_is_no_success() {
    for args in
        ["--seeds 0", "--threads 0", "--seed 7 --tasks 9999", "--seed 7 --faults 9999", "--expect nonsense"]
    {
        let output = simulate(args);
        assert_eq!(output.status.code(), Some(64), "{args}: {output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(args.split(' ').next_back().is_some_and(|value| error.contains(value)), "{args}: {error}");
    }
}

#[test]
fn whoever_reads_the_beginning_only_is_left_alone() {
    let command = env!("CARGO_BIN_EXE_quorate-lab");
    let mut child = Command::new(command)
        .args(["simulate", "--seed", "7", "--trace"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_fault_that_there_is_not_is_refused_with_those_that_there_are() {
    let output = simulate("--fault nonsense");
    assert_eq!(output.status.code(), Some(64));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("nonsense") && error.contains("restart-empty, clock-step"), "{error}");
}
