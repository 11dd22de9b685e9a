//! What the redis crate can do with the same scripts and nothing around them: a command to every
//! master, and the first majority of replies decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client as Redis, Cmd, IntoConnectionInfo, RedisResult, Value};

use super::{Client, Worker, lock};
use crate::measure::Cycle;
use crate::script::{self, Name, SAME_SCRIPT, Turn};

/// As many as wait for a connection in the widest bench.
const PIPELINE: usize = 2048;

pub(crate) struct Bare {
    connections: Vec<MultiplexedConnection>,
    numbers: Arc<AtomicU64>,
}

pub(crate) struct Caller {
    connections: Vec<MultiplexedConnection>,
    numbers: Arc<AtomicU64>,
    name: Name,
}

impl Bare {
    pub(crate) async fn connect(masters: &[String]) -> Self {
        SAME_SCRIPT.load(masters);
        let mut connections = Vec::new();
        for master in masters {
            connections.push(connect(master).await);
        }
        Self { connections, numbers: Arc::default() }
    }
}

/// A connection that sends at once, and waits for as long as it takes.
async fn connect(master: &str) -> MultiplexedConnection {
    let tcp = TcpSettings::default().set_nodelay(true);
    let master = master.into_connection_info().unwrap().set_tcp_settings(tcp);
    let config = AsyncConnectionConfig::new().set_pipeline_buffer_size(PIPELINE).set_response_timeout(None);
    Redis::open(master).unwrap().get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

impl Client for Bare {
    const NAME: &'static str = "bare";
    type Worker = Caller;

    fn worker(&self, place: usize) -> Caller {
        Caller {
            connections: self.connections.clone(),
            numbers: self.numbers.clone(),
            name: Name::new(Self::NAME, &lock(place)),
        }
    }
}

impl Worker for Caller {
    async fn cycle(&mut self) -> Option<Cycle> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let turn = Turn::new(number, 2 * number + 1);
        let mut acquiring = self.send((SAME_SCRIPT.acquire)(&self.name, &turn));
        majority(&mut acquiring, self.connections.len()).await;
        let granted = Instant::now();
        let mut releasing = self.send((SAME_SCRIPT.release)(&self.name, &turn.then(2 * number + 2)));
        majority(&mut releasing, self.connections.len()).await;
        let released = Instant::now();
        let rest = async move {
            while let Some(reply) = acquiring.next().await {
                check(reply);
            }
            while let Some(reply) = releasing.next().await {
                check(reply);
            }
        };
        tokio::spawn(rest);
        Some(Cycle { acquire: granted - began, release: released - granted })
    }
}

impl Caller {
    fn send(
        &self,
        words: Vec<&str>,
    ) -> FuturesUnordered<impl Future<Output = RedisResult<Value>> + Send + use<>> {
        let mut command = Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        let command = Arc::new(command);
        let send = |mut connection: MultiplexedConnection| {
            let command = command.clone();
            async move { connection.send_packed_command(&command).await }
        };
        self.connections.iter().cloned().map(send).collect()
    }
}

async fn majority<F>(voting: &mut FuturesUnordered<F>, masters: usize)
where
    F: Future<Output = RedisResult<Value>>,
{
    for _ in 0..masters / 2 + 1 {
        check(voting.next().await.unwrap());
    }
}

fn check(reply: RedisResult<Value>) {
    let Value::Array(replies) = reply.unwrap() else { panic!("a script replies with a list") };
    let granted = match &replies[..] {
        [_, Value::Int(number)] => script::grants(number.to_string().as_bytes()),
        _ => false,
    };
    assert!(granted, "not granted: {replies:?}");
}
