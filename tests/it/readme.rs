//! What the README and the pages that it links to say is true.

use std::fs;
use std::time::{Duration, Instant};

use quorate::{Init, Redlock, config};
use quorate_testkit::Masters;

use crate::{SOON, begun};

fn readme() -> String {
    read("README.md")
}

fn read(file: &str) -> String {
    fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_readme_is_short() {
    let readme = readme();
    let words = readme.split_whitespace().count();
    assert!(
        readme.lines().count() <= 130 && words <= 1_300,
        "{} lines, {words} words",
        readme.lines().count()
    );
}

#[test]
fn each_condition_of_safety_names_a_test() {
    let page = read("docs/SAFETY.md");
    let (_, rest) = page.split_once("\n1. whoever holds it stops").unwrap();
    let conditions = rest.split("\n\n").next().unwrap();
    let all = conditions.split("\n").fold(vec![String::new()], |mut all, line| {
        if line.starts_with(|digit: char| digit.is_ascii_digit()) {
            all.push(String::new());
        }
        all.last_mut().unwrap().push_str(line);
        all
    });
    assert_eq!(all.len(), 6);
    for condition in all {
        assert!(condition.contains("(`") && condition.contains("`)"), "it names no test: {condition}");
    }
}

#[test]
fn its_example_is_the_one_that_runs() {
    let example = read("examples/minimal.rs");
    let code = example.split_once("\n\n").unwrap().1;
    let readme = readme();
    let shown = readme.split("```rust,no_run\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(shown, code);
}

/// Also while one of the masters is dead.
#[tokio::test]
async fn its_example_runs() {
    let masters = Masters::start(3);
    drop(begun(Redlock::builder().masters(masters.urls()), Init::new()).await);
    for is_one_dead in [false, true] {
        if is_one_dead {
            masters[0].kill();
        }
        let began = Instant::now();
        let mut example = crate::example("minimal");
        let output = example.env("QUORATE_MASTERS", masters.urls().join(",")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("nobody else has invoice:42"));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

/// On docs.rs there are no files beside the README: each page that it links to is in the docs.
#[test]
fn its_links_lead_somewhere_on_docs_rs_too() {
    let root = read("src/lib.rs");
    let pages = read("src/pages.rs");
    let readme = readme();
    let links = readme.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    let links: Vec<_> = links.filter(|(name, _)| !name.contains(']')).collect();
    assert_eq!(links.len(), 5);
    for (name, file) in links {
        assert!(root.contains(&format!("//! [{name}]: crate::pages::{name}\n")), "{name}");
        assert!(pages.contains(&format!("\"../{file}\")]\npub mod {name} ")), "{name}");
        let page = read(file);
        let is_elsewhere = |link: &&str| !link.starts_with('#') && !link.starts_with("https://");
        let broken: Vec<_> = page.split("](").skip(1).filter(is_elsewhere).collect();
        assert!(broken.is_empty(), "{file}: {broken:?}");
    }
}

#[test]
fn the_documented_exit_codes_are_those_of_the_command() {
    let help = read("cli/src/exit.rs");
    let page = read("docs/COMMAND.md");
    for code in ["64", "69", "70", "75", "76", "77", "78", "81"] {
        assert!(page.contains(&format!("| {code} |")) && help.contains(&format!("Code({code})")), "{code}");
    }
}

/// The values of constants, as docs show them.
fn constants() -> Vec<(&'static str, String)> {
    let time = |time: Duration| match (time.as_secs(), time.as_millis()) {
        (0, ms) => format!("{ms} ms"),
        (s @ 3_600.., _) => format!("{} hours", s / 3_600),
        (s, _) => format!("{s} s"),
    };
    let number = |number: usize| match (number / 1_000, number % 1_000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    };
    vec![
        ("MIN_TTL", time(config::MIN_TTL)),
        ("MAX_TTL", time(config::MAX_TTL)),
        ("DEFAULT_TTL", time(config::DEFAULT_TTL)),
        ("DEFAULT_MAX_TTL", time(config::DEFAULT_MAX_TTL)),
        ("DEFAULT_TIMEOUT", time(config::DEFAULT_TIMEOUT)),
        ("MIN_INTERVAL", time(config::MIN_INTERVAL)),
        ("MAX_WAIT", time(config::MAX_WAIT)),
        ("DEFAULT_WAIT", time(config::DEFAULT_WAIT)),
        ("MIN_LOOK", time(config::MIN_LOOK)),
        ("MAX_LOOK", time(config::MAX_LOOK)),
        ("DEFAULT_LOOK", time(config::DEFAULT_LOOK)),
        ("MAX_NAME", number(config::MAX_NAME)),
        ("MAX_NAMES", number(config::MAX_NAMES)),
        ("MAX_MASTERS", number(config::MAX_MASTERS)),
        ("MAX_PERMITS", number(config::MAX_PERMITS as usize)),
        ("MAX_PREFIX", number(config::MAX_PREFIX)),
        ("MAX_LABEL", number(config::MAX_LABEL)),
        ("DEFAULT_MAX_WAITERS", number(config::DEFAULT_MAX_WAITERS)),
        ("DEFAULT_PREFIX", format!("`{}`", config::DEFAULT_PREFIX)),
    ]
}

/// rustdoc shows no value of a `Duration`, so the text has it: with the constant, and where a
/// method's docs link to it.
#[test]
fn the_docs_show_the_values_of_constants() {
    let definitions = read("src/config.rs");
    let users = ["builder", "client", "election", "lock", "observer"];
    let users: String = users.map(|file| read(&format!("src/{file}.rs"))).concat();
    for (name, value) in constants() {
        let (before, _) = definitions.split_once(&format!("pub const {name}:")).expect(name);
        let text = before.rsplit("\n\n").next().unwrap().replace("\n/// ", " ");
        assert!(text.contains(&format!(" {value}")), "{name} is {value}: {text}");
        for (at, _) in users.match_indices(&format!("](crate::config::{name})")) {
            assert_eq!(users[..at].rsplit('[').next().unwrap(), value, "a link to {name}");
        }
    }
}
