//! What is said about the code: comments have the width that one reads, and the files that they
//! name exist.

use std::collections::BTreeSet;

use super::files;

/// What comments wrap at, in characters.
const WIDTH: usize = 100;

/// What the names of files end with that docs speak of.
const ENDINGS: [&str; 7] = [".rs", ".lua", ".sh", ".md", ".toml", ".yml", ".bug"];

/// The comment of a line that is nothing else.
fn comment<'a>(name: &str, line: &'a str) -> Option<&'a str> {
    let mark = if name.ends_with(".lua") { "--" } else { "//" };
    let rest = line.trim_start().strip_prefix(mark)?;
    Some(rest.strip_prefix(['/', '!']).unwrap_or(rest).trim())
}

/// The comment lines that are too wide, but for tables, code, and what has no place to be parted
/// at.
fn wide<'a>(name: &str, text: &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        let Some(comment) = comment(name, line) else {
            is_code = false;
            continue;
        };
        is_code ^= comment.starts_with("```");
        let may_be_wide = is_code || comment.starts_with('|') || !comment.contains(' ');
        if line.chars().count() > WIDTH && !may_be_wide {
            found.push(line);
        }
    }
    found
}

#[test]
fn comments_are_not_too_wide() {
    let lua = files("scripts", ".lua");
    let mut lines = Vec::new();
    for (name, text) in files("", ".rs").into_iter().chain(lua) {
        lines.extend(wide(&name, &text).into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(lines.is_empty(), "{} comment lines above {WIDTH} columns:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn a_comment_that_is_too_wide_is_found() {
    let line = |length| format!("// {} ü", "ü".repeat(length - 5));
    let too_wide = line(WIDTH + 1);
    assert_eq!(wide("a.rs", &line(WIDTH)), [""; 0]);
    assert_eq!(wide("a.rs", &too_wide), [&too_wide]);
    let table = format!("/// | {too_wide} |");
    let code = format!("/// ```\n/// {too_wide}\n/// ```");
    let one_word = format!("// {}", "x".repeat(WIDTH));
    for free in [table, code, one_word] {
        assert_eq!(wide("a.rs", &free), [""; 0], "{free}");
    }
}

/// What looks like a file in a text: `state.rs`, `src/link/state.rs`, `../scripts/test.sh`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_./-*".contains(c)));
    let words = words.map(|word| word.trim_end_matches('.'));
    // Two slashes are what is left of a URL.
    let is_file = |word: &&str| {
        let stem = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
        stem.is_some_and(|stem| stem.ends_with(|c: char| c.is_ascii_alphanumeric())) && !word.contains("//")
    };
    words.filter(is_file)
}

/// Docs and comments name files by their ends, as in `state.rs` or `link/state.rs`.
#[test]
fn the_files_that_are_named_exist() {
    let mut there_are = BTreeSet::new();
    for (name, _) in ENDINGS.iter().flat_map(|ending| files("", ending)) {
        let ends = name.match_indices('/').map(|(place, _)| name[place + 1..].to_owned());
        there_are.extend(ends);
        there_are.insert(name);
    }
    let comments = |(name, text): (String, String)| {
        let lines = text.lines().filter_map(|line| comment(&name, line));
        let lines = lines.collect::<Vec<_>>().join("\n");
        (name, lines)
    };
    let code = [".rs", ".lua"].into_iter().flat_map(|ending| files("", ending)).map(comments);
    let mut names = 0;
    let mut missing = Vec::new();
    for (name, text) in files("", ".md").into_iter().chain(code) {
        for file in named(&text).filter(|file| !file.contains('*')) {
            names += 1;
            let end = file.trim_start_matches(['.', '/']);
            if !there_are.contains(end) {
                missing.push(format!("{name} names {file}"));
            }
        }
    }
    assert!(missing.is_empty(), "which is not there:\n{}", missing.join("\n"));
    assert!(names > 500, "only {names} files are named");
    assert!(
        named("see `gone.rs`, docs/GONE.md.").eq(["gone.rs", "docs/GONE.md"]),
        "nothing would be noticed"
    );
}
