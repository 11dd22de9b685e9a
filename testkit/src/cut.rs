//! A proxy that cuts connections at chosen moments.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};

/// Where to cut the next connection on which it becomes possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere: an order that was not carried out is taken back.
    None,
    /// When the server's next reply arrives: the command has run, and the client never hears of it.
    AtReply,
    /// When the client's next command arrives: the client's side is closed, and the server's side stays open. The
    /// command is on its way for as long as [`CutProxy::deliver`] is not called, as in a slow network.
    InFlight,
}

/// Passes bytes between clients and one server, until it is told to cut. Dropping it closes everything.
#[derive(Debug)]
pub struct CutProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    armed: AtomicU8,
    cuts: AtomicUsize,
    connections: AtomicUsize,
    /// Commands on their way, and the server sides of their connections.
    in_flight: Mutex<Vec<(Vec<u8>, OwnedWriteHalf)>>,
}

impl Cut {
    fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::AtReply => 1,
            Self::InFlight => 2,
        }
    }
}

impl CutProxy {
    /// Listens on a loopback port of the system's choice, for connections to `server`.
    ///
    /// # Panics
    ///
    /// When the system gives no port.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let passing = shared.clone();
        let listener = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                passing.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(pass(client, server, passing.clone()));
            }
        });
        Self { address, shared, listener }
    }

    /// The URL that leads through the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Cuts the next connection on which `cut` becomes possible. One cut an order.
    pub fn cut_next(&self, cut: Cut) {
        self.shared.armed.store(cut.code(), Ordering::SeqCst);
    }

    /// Lets the server have what was on its way when connections were cut. It may have closed them.
    pub async fn deliver(&self) {
        let in_flight =
            std::mem::take(&mut *self.shared.in_flight.lock().unwrap_or_else(PoisonError::into_inner));
        for (command, mut to_server) in in_flight {
            let _ = to_server.write_all(&command).await;
        }
    }

    /// How often it has cut.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for CutProxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Shared {
    /// Whether this is the moment that was ordered; it is then used up.
    fn take(&self, cut: Cut) -> bool {
        let taken = self
            .armed
            .compare_exchange(cut.code(), Cut::None.code(), Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if taken {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
        taken
    }
}

async fn pass(client: TcpStream, server: SocketAddr, shared: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut up, mut down) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        tokio::select! {
            read = from_client.read(&mut up) => {
                let Ok(read @ 1..) = read else { return };
                let command = &up[..read];
                if shared.take(Cut::InFlight) {
                    let late = (command.to_vec(), to_server); // an owned write half keeps its side open
                    return shared.in_flight.lock().unwrap_or_else(PoisonError::into_inner).push(late);
                }
                if to_server.write_all(command).await.is_err() {
                    return;
                }
            }
            read = from_server.read(&mut down) => {
                let Ok(read @ 1..) = read else { return };
                if shared.take(Cut::AtReply) || to_client.write_all(&down[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}
