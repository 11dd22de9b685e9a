//! Labels: a line `-- guard: NAME` names the statement below it, whatever that says and in
//! whichever file it is.

use std::ops::Range;

use super::tokens::{Token, is_end, tokens};

/// The labels of a text, each with the lines of its statement, counted from 0.
pub(super) fn labels(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let tokens = tokens(text);
    text.lines().enumerate().filter_map(move |(number, line)| {
        let name = line.trim_start().strip_prefix("-- guard: ")?;
        Some((name.trim_end(), statement(&tokens, number)))
    })
}

/// The lines of the first statement below a line; of one that has a body, its head.
fn statement(tokens: &[Token<'_>], above: usize) -> Range<usize> {
    let below = &tokens[tokens.partition_point(|token| token.line <= above)..];
    let is_last = |pair: &[Token<'_>]| pair[0].line != pair[1].line && is_end(&pair[0], &pair[1]);
    let last = below.windows(2).find(|pair| is_last(pair)).map(|pair| &pair[0]).or(below.last());
    last.map_or(above..above, |last| below[0].line..last.line + 1)
}

#[test]
fn a_label_is_for_the_statement_below_it() {
    let text = "f()\n-- guard: one\n-- why\nif a or\n  b then\n  -- guard: two\n  return f(1,\n    2)\nend\n-- guard: none\n";
    assert_eq!(labels(text).collect::<Vec<_>>(), [("one", 3..5), ("two", 6..8), ("none", 9..9)]);
}
