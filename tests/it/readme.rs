//! What the README says is true.

use std::fs;

fn readme() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap()
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
    for code in ["64", "69", "70", "75", "76", "77", "78", "79", "80"] {
        assert!(
            readme().contains(&format!("| {code} |")) && help.contains(&format!("Code({code})")),
            "{code}"
        );
    }
}
