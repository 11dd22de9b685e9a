//! A way to one master.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult};
use tokio::sync::Mutex;

/// How long the master may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A master, with one connection, until that fails.
#[derive(Debug)]
pub(super) struct MasterConnection {
    client: redis::Client,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl MasterConnection {
    pub(super) fn new(url: &str) -> RedisResult<Self> {
        Ok(Self { client: redis::Client::open(url)?, connection: Mutex::default() })
    }

    pub(super) async fn connection(&self) -> RedisResult<MultiplexedConnection> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new();
        let config = config.set_connection_timeout(Some(TIMEOUT)).set_response_timeout(Some(TIMEOUT));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(kept.insert(connection).clone())
    }

    /// If this failed, the next call connects again.
    pub(super) async fn after<T>(&self, result: RedisResult<T>) -> RedisResult<T> {
        if result.is_err() {
            *self.connection.lock().await = None;
        }
        result
    }
}
