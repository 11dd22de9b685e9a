//! One way of a connection: what is taken in is delivered in order, later.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Sleep, sleep, timeout};

use super::cut::Cut;
use super::shared::Shared;
use super::toxic::Way;
use super::weather::Weather;
use crate::dice::Dice;

/// How many chunks may be on their way; then their sender has to wait.
const MOST_CHUNKS: usize = 1024;

/// Steps a second of a narrow line.
const STEPS: u64 = 50;

/// Bytes on their way, and the end of their delay. None is the end of the stream.
type Chunk = (Option<Pin<Box<Sleep>>>, Vec<u8>);

/// How a connection breaks.
#[derive(Debug)]
pub(super) enum Break {
    /// Both ends are closed.
    Close,
    /// It is reset at the end of this way.
    Reset(Way),
    /// The client's end is closed, while this is on its way to the server.
    InFlight(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct Line {
    way: Way,
    dice: Dice,
    shared: Arc<Shared>,
    weather: watch::Receiver<Weather>,
}

impl Line {
    pub(super) fn new(way: Way, connection: usize, shared: Arc<Shared>) -> Self {
        let purpose = if way == Way::There { "there" } else { "back" };
        let dice = Dice::new(shared.seed, purpose, connection as u64);
        let weather = shared.weather.subscribe();
        Self { way, dice, shared, weather }
    }

    /// Carries everything, to the end of what is sent, or to where the connection is to break.
    pub(super) async fn carry(&self, from: ReadHalf<'_>, to: WriteHalf<'_>) -> Result<(), Break> {
        let (line, arrivals) = mpsc::channel(MOST_CHUNKS);
        tokio::try_join!(self.take(from, line), self.deliver(arrivals, to)).map(|_| ())
    }

    async fn take(&self, mut from: ReadHalf<'_>, line: mpsc::Sender<Chunk>) -> Result<(), Break> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut buffer).await.unwrap_or(0); // one that was reset ends as one that was closed
            let delay = self.weather.borrow().delay(self.way, &self.dice);
            let delay = delay.map(|delay| Box::pin(sleep(delay))); // it counts from here, not from when it is awaited
            if line.send((delay, buffer[..read].to_vec())).await.is_err() || read == 0 {
                return Ok(());
            }
        }
    }

    async fn deliver(&self, mut arrivals: mpsc::Receiver<Chunk>, mut to: WriteHalf<'_>) -> Result<(), Break> {
        while let Some((delay, bytes)) = arrivals.recv().await {
            if let Some(delay) = delay {
                delay.await;
            }
            self.until(|weather| !weather.is_hole(self.way)).await;
            if bytes.is_empty() {
                self.end().await;
                let _ = to.shutdown().await;
                return Ok(());
            }
            if let Some((part, broken)) = self.cut(&bytes) {
                let _ = to.write_all(&bytes[..part]).await;
                return Err(broken);
            }
            if let Some(strobe) = &*self.shared.strobe() {
                strobe.passes(self.way, &bytes);
            }
            if self.write(&bytes, &mut to).await.is_err() {
                return Ok(()); // the peer has gone, which the other line finds out
            }
        }
        Ok(())
    }

    /// How many of these bytes get through, where the connection is cut now.
    fn cut(&self, bytes: &[u8]) -> Option<(usize, Break)> {
        let part = || if bytes.len() < 2 { 0 } else { 1 + self.dice.below(bytes.len() - 1) };
        let drawn = self.weather.borrow().cuts(self.way, &self.dice);
        let cut = match self.ordered() {
            Cut::AtReply => (0, Break::Close),
            Cut::InFlight => (0, Break::InFlight(bytes.to_vec())),
            Cut::InReply => (part(), Break::Close),
            Cut::None if drawn => (part(), Break::Close),
            Cut::None => return None,
        };
        self.shared.cuts.fetch_add(1, Ordering::SeqCst);
        Some(cut)
    }

    /// The cut that was ordered, where this is its moment; the order is then used up.
    fn ordered(&self) -> Cut {
        let mut ordered = self.shared.ordered();
        let way = match *ordered {
            Cut::None => return Cut::None,
            Cut::AtReply | Cut::InReply => Way::Back,
            Cut::InFlight => Way::There,
        };
        if way == self.way { std::mem::replace(&mut ordered, Cut::None) } else { Cut::None }
    }

    async fn write(&self, mut bytes: &[u8], to: &mut WriteHalf<'_>) -> std::io::Result<()> {
        while !bytes.is_empty() {
            self.until(|weather| !weather.is_hole(self.way)).await;
            let bandwidth = self.weather.borrow().bandwidth(self.way);
            let Some(rate) = bandwidth else { return to.write_all(bytes).await };
            let step = usize::try_from(rate / STEPS).unwrap_or(usize::MAX).clamp(1, bytes.len());
            let takes = Duration::from_secs_f64(step as f64 / rate as f64);
            let _ = timeout(takes, self.until(|weather| weather.bandwidth(self.way) != bandwidth)).await;
            to.write_all(&bytes[..step]).await?;
            bytes = &bytes[step..];
        }
        Ok(())
    }

    /// Waits until the peer may see that the connection has ended.
    pub(super) async fn end(&self) {
        let delay = self.weather.borrow().slow_close(self.way);
        if let Some(delay) = delay {
            let _ = timeout(delay, self.until(|weather| weather.slow_close(self.way).is_none())).await;
        }
        self.until(|weather| !weather.is_half_open(self.way)).await;
    }

    pub(super) async fn until(&self, condition: impl FnMut(&Weather) -> bool) {
        let _ = self.weather.clone().wait_for(condition).await; // or until the proxy is gone
    }
}
