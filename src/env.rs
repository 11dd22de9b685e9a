//! The environment variables of a client: read by [`Redlock::from_env`](crate::Redlock::from_env),
//! and by the command if no option overrides them.
//!
//! | variable | what it sets | default |
//! |---|---|---|
//! | [`MASTERS`] | the masters' URLs, separated by commas, with spaces around them or not | none: it has to be set |
//! | [`PREFIX`] | [`Builder::prefix`](crate::Builder::prefix) | `quorate:` |
//! | [`MAX_TTL`] | [`Builder::max_ttl`](crate::Builder::max_ttl), as `500ms`, `30s` or `5m` | `30s` |
//! | [`STRICT`] | [`Builder::strict`](crate::Builder::strict), by `1`; `0` is not | `0` |
//!
//! An empty variable counts as not set, because that is what a shell passes for one that is not.

use std::time::Duration;

use crate::invalid::Invalid;

/// Where the masters are.
pub const MASTERS: &str = "QUORATE_MASTERS";
/// The prefix of all keys.
pub const PREFIX: &str = "QUORATE_PREFIX";
/// The longest TTL of any lock.
pub const MAX_TTL: &str = "QUORATE_MAX_TTL";
/// Whether no master's clock decides that a lease is over.
pub const STRICT: &str = "QUORATE_STRICT";

/// The URLs in [`MASTERS`]; empty if it is not set.
pub fn masters() -> Vec<String> {
    urls(&variable(MASTERS).unwrap_or_default()).map(str::to_owned).collect()
}

/// The value of [`PREFIX`].
pub fn prefix() -> Option<String> {
    variable(PREFIX)
}

/// The value of [`MAX_TTL`].
///
/// # Errors
///
/// [`Invalid`] for a text that is no duration.
pub fn max_ttl() -> Result<Option<Duration>, Invalid> {
    setting(MAX_TTL, |text| {
        humantime::parse_duration(text)
            .map_err(|why| format!("{text:?} is not a duration like 500ms, 30s or 5m: {why}"))
    })
}

/// Whether [`STRICT`] is `1`.
///
/// # Errors
///
/// [`Invalid`] for anything but `1` and `0`.
pub fn strict() -> Result<bool, Invalid> {
    let strict = setting(STRICT, |text| match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(format!("{text:?} is neither 1, for strict, nor 0")),
    });
    Ok(strict?.unwrap_or(false))
}

/// The URLs in a comma-separated list.
pub fn urls(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|url| !url.is_empty())
}

fn setting<T>(
    variable: &'static str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, Invalid> {
    let value = self::variable(variable).map(|text| read(&text)).transpose();
    value.map_err(|why| Invalid::environment(variable, &why))
}

/// The value of a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
