//! Ways to break a script: each takes one guard out of it, or shifts one limit.

use std::ops::Range;

use super::tokens::{Token, is_end, tokens};

/// A change of a text; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edit {
    pub(super) at: (usize, usize),
    pub(super) with: String,
}

impl Edit {
    fn new(at: Range<usize>, with: impl Into<String>) -> Self {
        Self { at: (at.start, at.end), with: with.into() }
    }

    /// The text with this change.
    pub(super) fn apply(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.at.0], self.with, &text[self.at.1..])
    }

    /// The change in words: what is left out, or what is there instead.
    pub(super) fn describe(&self, text: &str) -> String {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (old, new) = (plain(&text[self.at.0..self.at.1]), plain(&self.with));
        let first = old.strip_prefix(&new).and_then(|rest| rest.strip_prefix(' '));
        let last = old.strip_suffix(&new).and_then(|rest| rest.strip_suffix(' '));
        match first.or(last) {
            _ if new.is_empty() => format!("without {old}"),
            Some(left_out) => format!("without {left_out}"),
            None => format!("{old} -> {new}"),
        }
    }

    /// The line that it begins in, without what stands around it.
    pub(super) fn line<'a>(&self, text: &'a str) -> (usize, &'a str) {
        let number = text[..self.at.0].matches('\n').count();
        (number + 1, text.lines().nth(number).unwrap_or_default().trim())
    }
}

/// All changes of a file.
pub(super) fn edits(text: &str) -> Vec<Edit> {
    let tokens = tokens(text);
    let mut edits: Vec<Edit> = [
        conditions(&tokens),
        operands(text, &tokens),
        comparisons(&tokens),
        negations(&tokens),
        arguments_of_math(text, &tokens),
        numbers(&tokens),
        strings(&tokens),
        statements(text, &tokens),
    ]
    .concat();
    edits.retain(|edit| text[edit.at.0..edit.at.1] != edit.with);
    edits.sort();
    edits.dedup();
    edits
}

/// What is between a keyword and its end is always so, or never.
fn conditions(tokens: &[Token<'_>]) -> Vec<Edit> {
    let begins = |token: &Token<'_>| ["if", "elseif", "while"].contains(&token.text);
    let conditions = tokens.iter().enumerate().filter(|(_, token)| begins(token)).map(|(i, _)| {
        let length = tokens[i..].iter().position(|token| ["then", "do"].contains(&token.text)).unwrap();
        tokens[i + 1].at.start..tokens[i + length - 1].at.end
    });
    conditions.flat_map(|at| ["true", "false"].map(|with| Edit::new(at.clone(), with))).collect()
}

/// Operators, and before each those that bind less: where its sides end. Comparisons are changed
/// otherwise.
const OPERATORS: [&[&str]; 6] =
    [&["or"], &["and"], &["==", "~=", "<", "<=", ">", ">="], &[".."], &["+", "-"], &["*", "/"]];
const COMPARISONS: usize = 2;

/// One side of an `and`, of an `or`, of a sum or of a concatenation.
fn operands(text: &str, tokens: &[Token<'_>]) -> Vec<Edit> {
    let strength = |token: &Token<'_>| OPERATORS.iter().position(|all| all.contains(&token.text));
    let operators = tokens.iter().enumerate().filter_map(|(i, token)| Some((i, strength(token)?)));
    let of_one = operators.filter(|(_, strength)| *strength != COMPARISONS).flat_map(|(i, strength)| {
        let (first, last) = sides(tokens, i, strength);
        let at = |from: usize, to: usize| tokens[from].at.start..tokens[to].at.end;
        let keep = |from, to| Edit::new(at(first, last), &text[at(from, to)]);
        if first < i && i < last { vec![keep(first, i - 1), keep(i + 1, last)] } else { Vec::new() }
    });
    of_one.collect()
}

/// The first token and the last of the expression that an operator of this strength stands in.
fn sides(tokens: &[Token<'_>], operator: usize, strength: usize) -> (usize, usize) {
    let depth = tokens[operator].depth;
    // A bracket is as deep as what it encloses: one that this expression opened itself is deeper,
    // and not its end.
    let is_one_of = |other: &Token<'_>, words: &[&str]| other.depth <= depth && words.contains(&other.text);
    let ends = |other: &Token<'_>| {
        is_one_of(other, &[",", "=", ";", "(", "[", "{", ")", "]", "}"])
            || OPERATORS[..strength].iter().any(|weaker| is_one_of(other, weaker))
    };
    let (mut first, mut last) = (operator, operator);
    while first > 0 && !is_end(&tokens[first - 1], &tokens[first]) && !ends(&tokens[first - 1]) {
        first -= 1;
    }
    while let Some(next) = tokens.get(last + 1) {
        if is_end(&tokens[last], next) || ends(next) || is_one_of(next, OPERATORS[strength]) {
            break;
        }
        last += 1;
    }
    (first, last)
}

/// The opposite, or a limit that is one off.
fn comparisons(tokens: &[Token<'_>]) -> Vec<Edit> {
    const OTHERS: [(&str, &str); 6] =
        [("==", "~="), ("~=", "=="), ("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")];
    let other =
        |token: &Token<'_>| OTHERS.iter().find(|(one, _)| *one == token.text).map(|(_, other)| *other);
    tokens.iter().filter_map(|token| Some(Edit::new(token.at.clone(), other(token)?))).collect()
}

fn negations(tokens: &[Token<'_>]) -> Vec<Edit> {
    tokens.iter().filter(|token| token.text == "not").map(|token| Edit::new(token.at.clone(), "")).collect()
}

/// One argument of `max`, `min`, `ceil` and the like instead of what is made of it.
fn arguments_of_math(text: &str, tokens: &[Token<'_>]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (i, window) in tokens.windows(2).enumerate() {
        let [name, open] = window else { continue };
        if open.text != "(" || !["max", "min", "ceil", "abs"].contains(&name.text) {
            continue;
        }
        let is_of_math = i > 1 && tokens[i - 1].text == ".";
        let begins = if is_of_math { tokens[i - 2].at.start } else { name.at.start };
        let inside: Vec<usize> =
            (i + 2..tokens.len()).take_while(|&j| tokens[j].depth >= open.depth).collect();
        let close =
            *inside.iter().find(|&&j| tokens[j].depth == open.depth && tokens[j].text == ")").unwrap();
        let commas =
            inside.iter().filter(|&&j| j < close && tokens[j].depth == open.depth && tokens[j].text == ",");
        let ends: Vec<usize> = commas.copied().chain([close]).collect();
        let mut from = i + 2;
        for end in ends {
            let argument = &text[tokens[from].at.start..tokens[end - 1].at.end];
            edits.push(Edit::new(begins..tokens[close].at.end, format!("({argument})")));
            from = end + 1;
        }
    }
    edits
}

/// One more.
fn numbers(tokens: &[Token<'_>]) -> Vec<Edit> {
    let numbers = tokens.iter().filter(|token| token.is_number());
    numbers
        .map(|token| Edit::new(token.at.clone(), (token.text.parse::<u64>().unwrap() + 1).to_string()))
        .collect()
}

/// Another word, where it is one: sentences are for people.
fn strings(tokens: &[Token<'_>]) -> Vec<Edit> {
    let words = tokens.iter().filter(|token| token.text.starts_with('\'') && !token.text.contains(' '));
    words
        .map(|token| Edit::new(token.at.clone(), format!("{}~'", &token.text[..token.text.len() - 1])))
        .collect()
}

/// No statement, where it is a whole line that is no part of another one; for a local, no value.
fn statements(text: &str, tokens: &[Token<'_>]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for line in tokens.chunk_by(|one, next| one.line == next.line) {
        let (first, last) = (&line[0], &line[line.len() - 1]);
        let after = tokens.iter().find(|token| token.line > last.line);
        let before = tokens.iter().rev().find(|token| token.line < first.line);
        let is_whole = after.is_none_or(|after| is_end(last, after))
            && before.is_none_or(|before| is_end(before, first))
            && first.depth == usize::from(["(", "[", "{"].contains(&first.text));
        let is_structure = ["if", "else", "elseif", "end", "for", "function", "while"].contains(&first.text);
        if !is_whole || is_structure || line.iter().any(|token| token.text == "function") {
            continue;
        }
        let at = first.at.start..last.at.end;
        match line.iter().find(|token| token.text == "=") {
            Some(value) if first.text == "local" => {
                edits.push(Edit::new(at, text[first.at.start..value.at.start].trim_end()));
            }
            None if first.text == "local" => {}
            _ => edits.push(Edit::new(at, "")),
        }
    }
    edits
}

#[test]
fn each_guard_is_taken_out_once() {
    let text = "local a = f(b) + 1\nif a and not (b or c) then return end\nwhile x < max(y, z) do\n  g(math.abs(x))\nend\n";
    let made: Vec<String> = edits(text).iter().map(|edit| edit.describe(text)).collect();
    assert_eq!(
        made,
        [
            "without = f(b) + 1",
            "without f(b) +",
            "without + 1",
            "1 -> 2",
            "without and not (b or c)",
            "a and not (b or c) -> false",
            "without a and",
            "a and not (b or c) -> true",
            "without not",
            "without or c",
            "without b or",
            "x < max(y, z) -> false",
            "x < max(y, z) -> true",
            "< -> <=",
            "max(y, z) -> (y)",
            "max(y, z) -> (z)",
            "without g(math.abs(x))",
            "math.abs(x) -> (x)",
        ]
    );
}
