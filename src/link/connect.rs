//! A server as a master by itself, for tests of masters.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::contract::Master;
use super::dial::Dialler;
use super::driver::RedisMaster;
use super::session::LinkSettings;
use crate::executor::Executor;
use crate::invalid::Invalid;
use crate::random::SystemRandom;
use crate::wire::Script;

/// A server as a master without a client: masters of another kind have to pass the same tests. Its
/// I/O task runs on `runtime` until that ends. It loads `scripts`, and counts as silent when it
/// does not answer within `patience`.
///
/// # Errors
///
/// For a URL that cannot be used; see [`Builder::master`](crate::Builder::master).
pub fn connect(
    url: &str,
    scripts: &'static [&'static Script],
    patience: Duration,
    runtime: &Handle,
) -> Result<Arc<dyn Master>, Invalid> {
    let settings = LinkSettings {
        address: Address::parse(url, None)?,
        dialler: Dialler::new(&[])?,
        scripts,
        handshake: OnceLock::new(),
        roster: Arc::default(),
        random: Arc::new(SystemRandom),
        patience,
    };
    let executor = Executor::Runtime(runtime.clone());
    Ok(RedisMaster::new(settings, &executor, CancellationToken::new()))
}
