//! What the locks protect: values in Redis that remember the highest token.

use quorate::fence;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult, cmd};

use super::subject::unknown;
use crate::history::Outcome;

/// The field that the value is in.
const VALUE: &str = "value";

/// A server that checks tokens, by the library's own script.
#[derive(Clone, Debug)]
pub(super) struct Store(MultiplexedConnection);

impl Store {
    pub(super) async fn open(url: &str) -> RedisResult<Self> {
        // A client that stood still gets its answer all the same.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await.map(Self)
    }

    /// Writes a value, unless a newer token was here.
    pub(super) async fn write(&self, resource: &str, token: u64, value: &str) -> Outcome {
        self.set(resource, token, &fence::set_args(token, value, None)).await
    }

    /// Keeps older tokens out from now on.
    pub(super) async fn claim(&self, resource: &str, token: u64) -> Outcome {
        self.set(resource, token, &[token.to_string().into_bytes()]).await
    }

    async fn set(&self, resource: &str, token: u64, args: &[Vec<u8>]) -> Outcome {
        let mut script = cmd("EVAL");
        script.arg(fence::SET).arg(1).arg(resource).arg(args);
        match script.query_async::<u64>(&mut self.0.clone()).await {
            Ok(seen) if fence::check(token, seen).is_ok() => Outcome::Accepted,
            Ok(_) => Outcome::Rejected,
            Err(error) => unknown(&error.to_string()),
        }
    }

    /// Writes a value without a check.
    pub(super) async fn overwrite(&self, resource: &str, value: &str) -> Outcome {
        let written = cmd("HSET").arg(resource).arg(VALUE).arg(value).exec_async(&mut self.0.clone()).await;
        written.map_or_else(|error| unknown(&error.to_string()), |()| Outcome::Accepted)
    }

    /// The value; nothing where there is none.
    pub(super) async fn read(&self, resource: &str) -> RedisResult<String> {
        let value = cmd("HGET").arg(resource).arg(VALUE).query_async(&mut self.0.clone()).await;
        value.map(Option::unwrap_or_default)
    }
}
