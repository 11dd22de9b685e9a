//! A Lua script and its digest.

use std::sync::OnceLock;

/// A part of a script: the name of its file, and its text.
pub type Part = (&'static str, &'static str);

/// A Lua script that masters are asked to run by its digest.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    parts: Parts,
    source: OnceLock<String>,
    sha1: OnceLock<String>,
}

#[derive(Debug)]
enum Parts {
    One(Part),
    Many(&'static [Part]),
}

impl Script {
    /// A script; `name` is for logs.
    pub const fn new(name: &'static str, source: &'static str) -> Self {
        Self::with(name, Parts::One((name, source)))
    }

    /// A script that is made of these parts, in this order.
    pub const fn of(name: &'static str, parts: &'static [Part]) -> Self {
        Self::with(name, Parts::Many(parts))
    }

    const fn with(name: &'static str, parts: Parts) -> Self {
        Self { name, parts, source: OnceLock::new(), sha1: OnceLock::new() }
    }

    /// What logs call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is made of.
    pub fn parts(&self) -> &[Part] {
        match &self.parts {
            Parts::One(part) => std::slice::from_ref(part),
            Parts::Many(parts) => parts,
        }
    }

    /// Its text.
    pub fn source(&self) -> &str {
        self.source.get_or_init(|| self.parts().iter().map(|(_, text)| *text).collect())
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
        let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        assert_eq!(Script::new("one", "return 1").sha1(), digest);
        let parts = Script::of("two", &[("a", "return "), ("b", "1")]);
        assert_eq!((parts.source(), parts.sha1()), ("return 1", digest));
    }
}
