//! A proxy between clients and one server, which does to their connections what networks do.
//!
//! A connection is two lines (`line.rs`), one there and one back, which deliver in order what they
//! take in. What is wrong with them is the weather (`weather.rs`), which is the toxics (`toxic.rs`)
//! that there are now; `cut.rs` is one cut at a chosen moment, `strobe.rs` a clock that is wrong at
//! chosen moments, and `connection.rs` how a connection ends.

mod connection;
mod cut;
mod line;
mod shared;
mod strobe;
mod toxic;
mod weather;

pub use cut::Cut;
pub use strobe::Strobe;
pub use toxic::{Toxic, ToxicId, Way};

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use connection::Connection;
use shared::Shared;
use weather::Weather;

/// Passes bytes between clients and one server. [Toxics](Toxic) that are added do something to all
/// connections, those that are there and those to come, until they are removed. Dropping it closes
/// everything.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use quorate_testkit::{Proxy, Toxic, Way};
///
/// # let server = std::net::SocketAddr::from(([127, 0, 0, 1], 6379));
/// let proxy = Proxy::start(server).await;
/// let hole = proxy.add(Way::Back, Toxic::Blackhole); // commands arrive and run, and nobody hears the answers
/// let _client = quorate::Redlock::builder().master(proxy.url()).build()?;
/// proxy.remove(hole); // now they do
/// # Ok::<(), quorate::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a loopback port of the system's choice, for connections to `server`.
    ///
    /// # Panics
    ///
    /// When the system gives no port.
    pub async fn start(server: SocketAddr) -> Self {
        Self::start_seeded(server, 0).await
    }

    /// The same, where what toxics draw is decided by a seed: each connection has its own dice for
    /// each way, by its number, and what they are thrown for is what arrives on it.
    ///
    /// # Panics
    ///
    /// When the system gives no port.
    pub async fn start_seeded(server: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            seed,
            weather: watch::Sender::default(),
            server: Mutex::new(server),
            ordered: Mutex::new(Cut::None),
            strobe: Mutex::new(None),
            cuts: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let listener = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, listener }
    }

    /// The same as [`start`](Self::start), slow from the beginning: a reply comes two times `delay`
    /// late, and up to two milliseconds more (the grain of the timers).
    ///
    /// # Panics
    ///
    /// When the system gives no port.
    pub async fn start_slow(server: SocketAddr, delay: Duration) -> Self {
        let proxy = Self::start(server).await;
        proxy.add(Way::Both, Toxic::Latency { delay, jitter: Duration::ZERO });
        proxy
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that leads through the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Adds a toxic, for one way or both.
    pub fn add(&self, way: Way, toxic: Toxic) -> ToxicId {
        self.change(|weather| weather.add(way, toxic))
    }

    /// Removes a toxic. Whether it was there.
    pub fn remove(&self, toxic: ToxicId) -> bool {
        self.change(|weather| weather.remove(toxic))
    }

    /// Removes all toxics, and takes back the cut that was ordered.
    pub fn clear(&self) {
        self.cut_next(Cut::None);
        self.change(Weather::clear);
    }

    /// Resets the connections that there are, at both ends of each.
    pub fn reset(&self) {
        self.reset_at(Way::Both);
    }

    /// The same at the end of this way. The other end is closed, or left [half
    /// open](Toxic::HalfOpen).
    pub fn reset_at(&self, way: Way) {
        self.change(|weather| weather.reset(way));
    }

    /// Cuts the next connection on which `cut` becomes possible. One cut an order.
    pub fn cut_next(&self, cut: Cut) {
        *self.shared.ordered() = cut;
    }

    /// From now on this clock is wrong at the moments that the strobe says; with `None`, at no
    /// more, and it stays as it is.
    pub fn strobe(&self, strobe: Option<Strobe>) {
        *self.shared.strobe() = strobe;
    }

    /// Lets the server have what was on its way when connections were [cut](Cut::InFlight). It may
    /// have closed them.
    pub fn deliver(&self) {
        self.change(|weather| weather.deliveries += 1);
    }

    /// Connections from now on lead to this server, as when an address is given to another machine.
    /// Those that there are stay where they are.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.shared.server() = server;
    }

    /// How often it has cut.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Weather) -> T) -> T {
        let mut changed = None;
        self.shared.weather.send_modify(|weather| changed = Some(change(weather)));
        changed.expect("it has been called")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new(); // dropped with this task, and they with it
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let number = shared.connections.fetch_add(1, Ordering::SeqCst);
        connections.spawn(Connection::new(number, shared.clone()).pass(client));
    }
}
