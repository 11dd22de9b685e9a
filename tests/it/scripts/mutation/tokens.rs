//! Lua, cut into words.

use std::ops::Range;

/// A word, a number, a string or a sign of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) at: Range<usize>,
    /// Counted from 0.
    pub(super) line: usize,
    /// How many brackets are open around it; a bracket counts as inside.
    pub(super) depth: usize,
}

const SIGNS: [&str; 6] = ["...", "==", "~=", "<=", ">=", ".."];

const KEYWORDS: [&str; 17] = [
    "and", "break", "do", "else", "elseif", "end", "for", "function", "if", "in", "local", "not", "or",
    "return", "then", "until", "while",
];

/// The tokens of a text, without its comments.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut at, mut line, mut depth) = (Vec::new(), 0, 0, 0usize);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '\n' => {
                line += 1;
                1
            }
            _ if first.is_whitespace() => first.len_utf8(),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ => {
                let length = length(first, rest);
                let word = &rest[..length];
                depth += usize::from(["(", "[", "{"].contains(&word));
                tokens.push(Token { text: word, at: at..at + length, line, depth });
                depth -= usize::from([")", "]", "}"].contains(&word));
                length
            }
        };
        at += length;
    }
    tokens
}

fn length(first: char, rest: &str) -> usize {
    let run = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
    match first {
        'a'..='z' | 'A'..='Z' | '_' => run(|c| c.is_ascii_alphanumeric() || c == '_'),
        '0'..='9' => run(|c| c.is_ascii_alphanumeric() || c == '.'),
        '\'' | '"' => quoted(first, rest),
        _ => SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len()),
    }
}

fn quoted(quote: char, rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    panic!("a string has no end: {rest}");
}

impl Token<'_> {
    pub(super) fn is_keyword(&self) -> bool {
        KEYWORDS.contains(&self.text)
    }

    pub(super) fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether an expression may end with it.
    fn ends_a_value(&self) -> bool {
        let first = self.text.chars().next().expect("no token is empty");
        !self.is_keyword()
            && (first.is_ascii_alphanumeric() || "_'\")]}".contains(first) || self.text == "...")
            || self.text == "end"
    }

    /// Whether an expression may begin with it.
    fn begins_a_value(&self) -> bool {
        let first = self.text.chars().next().expect("no token is empty");
        self.text == "not"
            || !self.is_keyword() && (first.is_ascii_alphanumeric() || "_'\"({#".contains(first))
    }
}

/// Whether a statement ends between these two, which follow each other.
pub(super) fn is_end(one: &Token<'_>, next: &Token<'_>) -> bool {
    let is_word = |token: &Token<'_>| token.is_keyword() && !["and", "or", "not"].contains(&token.text);
    is_word(next) || is_word(one) || (one.line != next.line && one.ends_a_value() && next.begins_a_value())
}

#[test]
fn lua_is_cut_into_words() {
    let cut: Vec<&str> =
        tokens("if a.b~='x\\'y' -- c\n  then f(1.5,{...}) end").iter().map(|token| token.text).collect();
    let words =
        ["if", "a", ".", "b", "~=", "'x\\'y'", "then", "f", "(", "1.5", ",", "{", "...", "}", ")", "end"];
    assert_eq!(cut, words);
}
