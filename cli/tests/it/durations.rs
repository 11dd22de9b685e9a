//! Any duration may be given to any option: it is taken, or refused with a message.

use std::process::Stdio;
use std::time::Instant;

use crate::{SOON, output, quorate, start};

/// The longest duration there is; more nanoseconds than fit 64 bits; the first century.
const LONG: [&str; 3] = ["18446744073709551615s", "18446744074s", "100years"];

/// Each verb that has options with durations, with what it needs besides.
const VERBS: &[(&[&str], &[&str])] = &[
    (&["init"], &[]),
    (&["members"], &[]),
    (&["members", "add"], &["redis://127.0.0.1:1"]),
    (&["members", "remove"], &["redis://127.0.0.1:1"]),
    (&["members", "replace"], &["redis://127.0.0.1:1", "redis://127.0.0.1:2"]),
    (&["members", "recover"], &["--yes"]),
    (&["run"], &["l", "--", "true"]),
    (&["elect"], &["l", "--", "true"]),
    (&["status"], &["l"]),
    (&["list"], &[]),
    (&["release"], &["l", "--owner", "00000000-0000-0000-0000-000000000007:1"]),
    (&["doctor"], &[]),
    (&["bench"], &[]),
];

/// The pause of `demo` is only slept.
const WITHOUT: [&str; 2] = ["demo", "help"];

#[test]
fn no_duration_makes_the_command_panic() {
    let masters = start(1);
    let help = |verb: &[&str]| output(quorate(&masters).args(verb).arg("--help")).1;
    let known = |verb: &str| WITHOUT.contains(&verb) || VERBS.iter().any(|(words, _)| words == &[verb]);
    assert!(commands(&help(&[])).all(known), "a verb is missing above");
    for (verb, needs) in VERBS {
        let options = help(verb);
        let options: Vec<&str> = options.lines().filter_map(option).collect();
        assert!(!options.is_empty(), "{verb:?}");
        for (option, value) in options.iter().flat_map(|option| LONG.map(|value| (*option, value))) {
            let needs = if option == "--every" { &["l", "--observe"][..] } else { needs };
            let mut child = quorate(&masters)
                .args(*verb)
                .args([option, value])
                .args(needs)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let begun = Instant::now();
            while child.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < SOON, "{verb:?} {option} {value} goes on");
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
            assert!(!said.contains("panicked"), "{verb:?} {option} {value}: {said}");
        }
    }
    let (code, _, said) = output(quorate(&masters).env("QUORATE_MAX_TTL", LONG[0]).args(["status", "l"]));
    assert_eq!(code, 64, "{said}");
}

fn commands(help: &str) -> impl Iterator<Item = &str> {
    let (_, rest) = help.split_once("Commands:").expect("a list of the verbs");
    rest.lines().skip(1).take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next())
}

/// The option with a duration that this line of a help is about.
fn option(line: &str) -> Option<&str> {
    let (option, _) = line.trim().split_once(" <DURATION>")?;
    option.split(' ').next_back().filter(|option| option.starts_with("--"))
}
