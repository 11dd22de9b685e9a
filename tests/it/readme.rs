//! What the README says is true.

use std::fs;

fn readme() -> String {
    read("README.md")
}

fn read(file: &str) -> String {
    fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn its_conditions_of_safety_are_those_of_the_page_about_it_and_name_tests() {
    let conditions = |text: &str| {
        let (_, rest) = text.split_once("\n1. whoever holds it stops").unwrap();
        rest.split("\n\n").next().unwrap().to_owned()
    };
    let its = conditions(&readme());
    assert_eq!(its, conditions(&read("docs/SAFETY.md")));
    let all = its.split("\n").fold(vec![String::new()], |mut all, line| {
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
    let example = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart.rs")).unwrap();
    let code = example.split_once("\n\n").unwrap().1;
    let readme = readme();
    let shown = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(shown, code);
}

#[test]
fn its_example_runs() {
    let output = crate::example("quickstart").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("working as"));
}

#[test]
fn its_exit_codes_are_those_of_the_command() {
    let help = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/cli/src/exit.rs")).unwrap();
    for code in ["64", "69", "70", "75", "76", "77", "78", "79", "80", "81", "82"] {
        assert!(
            readme().contains(&format!("| {code} |")) && help.contains(&format!("Code({code})")),
            "{code}"
        );
    }
}
