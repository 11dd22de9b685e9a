//! What the locks protect: values in Redis that remember the highest token.

use quorate::fence;
use redis::aio::MultiplexedConnection;

use crate::history::Outcome;

/// A server that checks tokens, by the library's own script.
#[derive(Clone, Debug)]
pub(super) struct Store(MultiplexedConnection);

impl Store {
    pub(super) async fn open(url: &str) -> redis::RedisResult<Self> {
        redis::Client::open(url)?.get_multiplexed_async_connection().await.map(Self)
    }

    pub(super) async fn write(&self, resource: &str, token: u64) -> Outcome {
        let mut script = redis::cmd("EVAL");
        script.arg(fence::SET).arg(1).arg(resource);
        for arg in fence::set_args(token, "x", None) {
            script.arg(arg);
        }
        match script.query_async::<u64>(&mut self.0.clone()).await {
            Ok(seen) if fence::check(token, seen).is_ok() => Outcome::Accepted,
            Ok(_) => Outcome::Rejected,
            Err(error) => Outcome::Unknown { why: error.to_string() },
        }
    }
}
