//! SET NX PX with the owner, and DEL where it is still the owner's. One master decides alone: if
//! another server takes its place, locks that were not replicated to it are free.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};

const RELEASE: &str = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])";

pub(super) async fn acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    owner: &str,
    ttl: Duration,
) -> RedisResult<bool> {
    let millis = ttl.as_millis() as u64;
    cmd("SET").arg(key).arg(owner).arg("NX").arg("PX").arg(millis).query_async(connection).await
}

pub(super) async fn release(
    connection: &mut MultiplexedConnection,
    key: &str,
    owner: &str,
) -> RedisResult<()> {
    cmd("EVAL").arg(RELEASE).arg(1).arg(key).arg(owner).exec_async(connection).await
}
