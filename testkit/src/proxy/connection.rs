//! One connection through a proxy, and how it ends.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::line::{Break, Line};
use super::shared::Shared;
use super::toxic::Way;
use super::weather::Resets;

#[derive(Debug)]
pub(super) struct Connection {
    there: Line,
    back: Line,
    shared: Arc<Shared>,
    /// How often all connections had been reset when this one came.
    resets: Resets,
}

impl Connection {
    pub(super) fn new(number: usize, shared: Arc<Shared>) -> Self {
        let line = |way| Line::new(way, number, shared.clone());
        let resets = shared.weather.borrow().resets;
        Self { there: line(Way::There), back: line(Way::Back), resets, shared }
    }

    pub(super) async fn pass(self, mut client: TcpStream) {
        let server = *self.shared.server();
        let Ok(mut server) = TcpStream::connect(server).await else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let broken = self.carry(&mut client, &mut server).await;
        match broken {
            Ok(()) | Err(Break::Close) => {}
            Err(Break::Reset(way)) => {
                tokio::join!(
                    break_off(server, &self.there, way.covers(Way::There)),
                    break_off(client, &self.back, way.covers(Way::Back)),
                );
            }
            Err(Break::InFlight(command)) => {
                let before = self.shared.weather.borrow().deliveries;
                drop(client);
                self.there.until(|weather| weather.deliveries > before).await;
                let _ = server.write_all(&command).await;
            }
        }
    }

    /// Both ways, until both are over, or something breaks them off.
    async fn carry(&self, client: &mut TcpStream, server: &mut TcpStream) -> Result<(), Break> {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let lines = async {
            tokio::try_join!(
                self.there.carry(from_client, to_server),
                self.back.carry(from_server, to_client)
            )
        };
        tokio::select! {
            biased;
            way = self.reset() => Err(Break::Reset(way)),
            carried = lines => carried.map(|_| ()),
        }
    }

    /// Waits until it is to be reset, and says at which end.
    async fn reset(&self) -> Way {
        let mut to_reset = None;
        self.there
            .until(|weather| {
                to_reset = weather.reset_since(self.resets);
                to_reset.is_some()
            })
            .await;
        to_reset.unwrap_or(Way::Both) // the proxy is gone
    }
}

/// Ends the connection at the end of a line: at once by a reset, or when the toxics allow it.
async fn break_off(stream: TcpStream, line: &Line, reset: bool) {
    if reset { drop(stream.set_zero_linger()) } else { line.end().await }
}
