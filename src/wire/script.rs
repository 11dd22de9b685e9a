//! A Lua script and its digest.

use std::sync::OnceLock;

/// A part of a script: the name of its file, and its text.
pub type ScriptPart = (&'static str, &'static str);

/// A Lua script that masters are asked to run by its digest.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    parts: ScriptParts,
    source: OnceLock<String>,
    sha1: OnceLock<String>,
}

/// Files that make up one function, which sees what the layers before it define.
pub type Layer = &'static [ScriptPart];

#[derive(Debug)]
enum ScriptParts {
    One(ScriptPart),
    Layers(&'static [Layer]),
}

/// A line that begins with this names the statement below it, for the mutation test. It is not
/// sent.
const LABEL: &str = "-- guard: ";

fn without_labels(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim_start().starts_with(LABEL)).collect()
}

/// A file without its comments.
fn code(text: &str) -> String {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("--");
    text.lines().filter(is_code).map(|line| format!("{line}\n")).collect()
}

/// These layers as functions: each is defined at the end of the one before, and called there.
fn nested(layers: &[String]) -> String {
    match layers {
        [] => String::new(),
        [last] => last.clone(),
        [first, inner @ ..] => format!("{first}return (function()\n{}end)()\n", nested(inner)),
    }
}

impl Script {
    /// A script, as it is; `name` is for logs.
    pub const fn new(name: &'static str, source: &'static str) -> Self {
        Self::with(name, ScriptParts::One((name, source)))
    }

    /// A script of the protocol, which is made of these layers, from the outermost one to the one
    /// that replies. It is sent without comments, as docs/protocol has it.
    pub const fn of(name: &'static str, layers: &'static [Layer]) -> Self {
        Self::with(name, ScriptParts::Layers(layers))
    }

    const fn with(name: &'static str, parts: ScriptParts) -> Self {
        Self { name, parts, source: OnceLock::new(), sha1: OnceLock::new() }
    }

    /// What logs call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The names of the files that it is made of, and their texts.
    pub fn parts(&self) -> impl Iterator<Item = ScriptPart> {
        let (one, layers) = match self.parts {
            ScriptParts::One(part) => (Some(part), [].as_slice()),
            ScriptParts::Layers(layers) => (None, layers),
        };
        one.into_iter().chain(layers.iter().copied().flatten().copied())
    }

    /// Its text.
    pub fn source(&self) -> &str {
        self.source.get_or_init(|| self.source_of(|(_, text)| text))
    }

    /// The text that the script would have if its files had these texts.
    pub fn source_of<'a>(&self, text: impl Fn(ScriptPart) -> &'a str) -> String {
        let layers = match self.parts {
            ScriptParts::One(part) => return without_labels(text(part)),
            ScriptParts::Layers(layers) => layers,
        };
        let of_layer = |layer: &Layer| layer.iter().map(|part| code(text(*part))).collect::<String>();
        let layers: Vec<String> = layers.iter().map(of_layer).collect();
        let about = "MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.";
        format!("-- Quorate's protocol 2: {}. {about}\n{}", self.name, nested(&layers))
    }

    /// The digest that EVALSHA names it by, in hexadecimal.
    pub fn sha1(&self) -> &str {
        self.sha1.get_or_init(|| sha1_smol::Sha1::from(self.source()).digest().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_text() {
        let script = Script::new("one", "return 1");
        assert_eq!(
            (script.source(), script.sha1()),
            ("return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")
        );
    }

    #[test]
    fn labels_are_not_sent() {
        let script = Script::new("one", "do\n  -- guard: one\n  f() -- why\nend\n-- guard: two\nreturn 1");
        assert_eq!(script.source(), "do\n  f() -- why\nend\nreturn 1");
    }

    #[test]
    fn each_layer_is_a_function_within_the_one_before_without_comments() {
        let script = Script::of(
            "three",
            &[&[("a", "-- a\nlocal a = 1\n")], &[("b", "\nlocal b = 1\n")], &[("c", "return a + b")]],
        );
        let source = "local a = 1\nreturn (function()\nlocal b = 1\nreturn (function()\nreturn a + b\nend)()\nend)()\n";
        let about =
            "-- Quorate's protocol 2: three. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.\n";
        assert_eq!(script.source(), format!("{about}{source}"));
        assert_eq!(script.parts().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
