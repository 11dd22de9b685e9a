//! SETNX, and then EXPIRE: two commands. What comes between them, a crash or a lost connection,
//! leaves a key without an end.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};

pub(super) async fn acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    ttl: Duration,
) -> RedisResult<bool> {
    if !cmd("SETNX").arg(key).arg(1).query_async::<bool>(connection).await? {
        return Ok(false);
    }
    let seconds = ttl.as_millis().div_ceil(1_000) as u64;
    cmd("EXPIRE").arg(key).arg(seconds).query_async(connection).await
}
