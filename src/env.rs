//! The environment variables of a client: read by [`Redlock::from_env`](crate::Redlock::from_env),
//! and by the command if no option overrides them.
//!
//! | variable | what it sets | default |
//! |---|---|---|
//! | [`MASTERS`] | the masters' URLs, separated by commas, with spaces around them or not | none: it has to be set |
//! | [`PREFIX`] | [`Builder::prefix`](crate::Builder::prefix) | `quorate:` |
//! | [`MAX_TTL`] | [`Builder::max_ttl`](crate::Builder::max_ttl), as `500ms`, `30s` or `5m` | `30s` |
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

/// No setting: the command has the owner of a job's lock in it, for that job.
pub const OWNER: &str = "QUORATE_OWNER";

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
    let read = |text: String| {
        humantime::parse_duration(&text).map_err(|why| {
            let why = format!("{text:?} is not a duration like 500ms, 30s or 5m: {why}");
            Invalid::environment(MAX_TTL, &why)
        })
    };
    variable(MAX_TTL).map(read).transpose()
}

/// The URLs in a comma-separated list.
pub fn urls(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|url| !url.is_empty())
}

/// The value of a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
