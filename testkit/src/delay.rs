//! A proxy that is slow, as a master far away is.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Sleep;

/// How many chunks may be on their way in one direction of a connection; then its sender has to wait.
const MOST_CHUNKS: usize = 1024;

/// Passes bytes between clients and one server, each a fixed time after it came, in order and in both directions. What
/// is on its way does not hold up what follows: it is a long line, not a narrow one. Dropping it closes everything.
#[derive(Debug)]
pub struct DelayProxy {
    address: SocketAddr,
    listener: JoinHandle<()>,
}

/// Bytes on their way, and the end of their delay.
type Chunk = (Pin<Box<Sleep>>, Vec<u8>);

impl DelayProxy {
    /// Listens on a loopback port of the system's choice, for connections to `server`, from where a reply comes two
    /// times `delay` late, and up to two milliseconds more (the grain of the timers).
    ///
    /// # Panics
    ///
    /// When the system gives no port.
    pub async fn start(server: SocketAddr, delay: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let listener = tokio::spawn(async move {
            let mut connections = JoinSet::new(); // dropped with this task, and they with it
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                connections.spawn(pass(client, server, delay));
            }
        });
        Self { address, listener }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that leads through the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn pass(client: TcpStream, server: SocketAddr, delay: Duration) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(carry(from_client, to_server, delay), carry(from_server, to_client, delay));
}

/// One direction, to the end of what is sent.
async fn carry(from: OwnedReadHalf, to: OwnedWriteHalf, delay: Duration) {
    let (line, arrivals) = mpsc::channel(MOST_CHUNKS);
    tokio::join!(take(from, line, delay), deliver(arrivals, to));
}

async fn take(mut from: OwnedReadHalf, line: mpsc::Sender<Chunk>, delay: Duration) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let delay = Box::pin(tokio::time::sleep(delay)); // it counts from here, not from when it is awaited
        if line.send((delay, buffer[..read].to_vec())).await.is_err() {
            return;
        }
    }
}

async fn deliver(mut arrivals: mpsc::Receiver<Chunk>, mut to: OwnedWriteHalf) {
    while let Some((delay, bytes)) = arrivals.recv().await {
        delay.await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const DELAY: Duration = Duration::from_millis(300);

    /// A server that sends back what it gets, and a connection to it through a proxy.
    async fn echo() -> (DelayProxy, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let proxy = DelayProxy::start(listener.local_addr().unwrap(), DELAY).await;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await
        });
        let stream = TcpStream::connect(proxy.address()).await.unwrap();
        (proxy, stream)
    }

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "it measures time")]
    async fn replies_are_two_delays_late_however_many_are_on_their_way() {
        let (_proxy, mut stream) = echo().await;
        let began = Instant::now();
        for chunk in [b"1", b"2"] {
            stream.write_all(chunk).await.unwrap();
            tokio::time::sleep(DELAY / 10).await; // so that each is a chunk, which leaves while the first one goes
        }
        let mut replies = [0; 2];
        stream.read_exact(&mut replies[..1]).await.unwrap();
        assert!(began.elapsed() >= DELAY * 2, "{:?}", began.elapsed());
        stream.read_exact(&mut replies[1..]).await.unwrap();
        assert!(began.elapsed() < DELAY * 11 / 4, "{:?}", began.elapsed()); // one after the other it would be three
        assert_eq!(&replies, b"12");
        stream.shutdown().await.unwrap(); // an end of the stream passes, too
        assert_eq!(stream.read(&mut replies).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_dropped_proxy_closes_its_connections() {
        let (proxy, mut stream) = echo().await;
        stream.write_all(b"x").await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        drop(proxy);
        let read = tokio::time::timeout(DELAY * 50, stream.read(&mut [0])).await;
        assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
    }
}
