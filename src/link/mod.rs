//! The way to one master, an independent Redis server, behind a trait. Nothing outside this folder
//! names the redis crate.
//!
//! - `contract.rs`: the trait [`Master`]; `masters.rs`: those of a client.
//! - `state.rs`, pure: the state of a link, what it sends next and whom it answers. `pending.rs`
//!   has its calls, in order, until they are answered.
//! - `driver.rs`: the task that moves a link's bytes; `transport.rs` packs and reads them.
//! - `session.rs` opens a connection: `address.rs` and `dial.rs` find the server, `login.rs` and
//!   `password.rs` log in, `hello.rs` makes the handshake that `set/` decides, with the questions
//!   of `asks.rs`.
//! - `listen.rs`: a connection for wake-ups.

mod address;
mod asks;
#[cfg(feature = "unstable-testing")]
mod connect;
mod contract;
mod dial;
mod driver;
mod hello;
mod listen;
mod login;
mod masters;
mod password;
mod pending;
mod session;
mod state;
mod transport;

pub(crate) use address::Address;
pub(crate) use asks::{Asks, Replied};
#[cfg(feature = "unstable-testing")]
pub use connect::connect;
pub use contract::{Master, Subscriber, SubscriptionEvent};
pub(crate) use dial::Dialler;
pub(crate) use driver::RedisMaster;
pub(crate) use login::{LoggedIn, RedisConnection, log_in, subscribe};
pub(crate) use masters::{MasterMaker, Masters};
pub(crate) use password::PasswordCallback;
#[cfg(feature = "unstable-testing")]
pub use pending::{Delivery, Pending};
#[cfg(feature = "redis")]
pub(crate) use redis::ConnectionInfo;
pub(crate) use session::{LinkSettings, Roster};
#[cfg(feature = "unstable-testing")]
pub use state::{LinkState, Message, Reach};
