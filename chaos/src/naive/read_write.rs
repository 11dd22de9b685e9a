//! A hash with the fields `read` and `write`, each the moment at which it was taken, by its
//! holder's wall clock: a lease is over when it is older than its TTL, and a release deletes the
//! field if it still is the same moment. All readers have one field and one TTL, those of the last
//! one that came: when it leaves, or its TTL is over, the others read on beside a writer.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};

use crate::history::Share;

const ACQUIRE: &str = r"
local key, field, now, ttl = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local function is_over(field)
  local since = redis.call('HGET', key, field)
  return not since or now - since > ttl
end
if not is_over('write') or field == 'write' and not is_over('read') then return 0 end
redis.call('HSET', key, field, now)
redis.call('PEXPIRE', key, ttl)
return 1";

const RELEASE: &str =
    "return redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] and redis.call('HDEL', KEYS[1], ARGV[1])";

pub(super) async fn acquire(
    connection: &mut MultiplexedConnection,
    key: &str,
    share: Share,
    moment: &str,
    ttl: Duration,
) -> RedisResult<bool> {
    let millis = ttl.as_millis() as u64;
    let mut script = cmd("EVAL");
    script.arg(ACQUIRE).arg(1).arg(key).arg(field(share)).arg(moment).arg(millis);
    script.query_async(connection).await
}

pub(super) async fn release(
    connection: &mut MultiplexedConnection,
    key: &str,
    share: Share,
    moment: &str,
) -> RedisResult<()> {
    cmd("EVAL").arg(RELEASE).arg(1).arg(key).arg(field(share)).arg(moment).exec_async(connection).await
}

fn field(share: Share) -> &'static str {
    if share == Share::Shared { "read" } else { "write" }
}
