//! What commands say that fail, in the words of Redis.

pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const SYNTAX: &str = "ERR syntax error";
pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

pub(super) fn wrong_number(name: &str) -> String {
    format!("ERR wrong number of arguments for '{}' command", name.to_ascii_lowercase())
}

pub(super) fn unknown(words: &[&[u8]]) -> String {
    let name = words.first().map(|name| String::from_utf8_lossy(name)).unwrap_or_default();
    let args = words.iter().skip(1).map(|word| format!("'{}' ", String::from_utf8_lossy(word)));
    format!("ERR unknown command '{name}', with args beginning with: {}", args.collect::<String>())
}
