//! The value is when the lock is over, by its holder's wall clock. A caller that finds a time in
//! the past by its own clock puts another there by GETSET, and has the lock if it got back the
//! value that it had found.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};

/// How far clocks may be off (ms).
const TOLERANCE: u128 = 1_000;

pub(super) async fn acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    ttl: Duration,
) -> RedisResult<bool> {
    let now = super::wall_clock::wall_clock();
    let over = (now + ttl.as_millis() + TOLERANCE).to_string();
    if !cmd("SETNX").arg(key).arg(&over).query_async::<bool>(connection).await? {
        let found: Option<String> = cmd("GET").arg(key).query_async(connection).await?;
        let Some(found) = found.filter(|found| found.parse().is_ok_and(|over: u128| over < now)) else {
            return Ok(false);
        };
        let before: Option<String> = cmd("GETSET").arg(key).arg(&over).query_async(connection).await?;
        if before.as_ref() != Some(&found) {
            return Ok(false);
        }
    }
    let seconds = ttl.as_millis().div_ceil(1_000) as u64;
    cmd("EXPIRE").arg(key).arg(seconds).query_async(connection).await
}
