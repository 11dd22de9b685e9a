//! SET NX PX, and DEL to give it back, even if another owner has it by then.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};

pub(super) async fn acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    ttl: Duration,
) -> RedisResult<bool> {
    super::one_master::acquire(connection, key, "1", ttl).await
}

pub(super) async fn release(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<()> {
    cmd("DEL").arg(key).exec_async(connection).await
}
