//! Words of a command line that can be typed again.

use std::time::Duration;

/// A duration as one word.
pub fn joined(time: Duration) -> String {
    humantime::format_duration(time).to_string().replace(' ', "")
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
