//! A Lua script and its digest.

use std::sync::OnceLock;

/// A Lua script that masters are asked to run by its digest.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    source: &'static str,
    sha1: OnceLock<String>,
}

impl Script {
    /// A script; `name` is for logs.
    pub const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, sha1: OnceLock::new() }
    }

    /// What logs call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its text.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The digest that EVALSHA names it by, in hexadecimal.
    pub fn sha1(&self) -> &str {
        self.sha1.get_or_init(|| sha1_smol::Sha1::from(self.source).digest().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_text() {
        assert_eq!(Script::new("one", "return 1").sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    }
}
