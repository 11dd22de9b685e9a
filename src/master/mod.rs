//! The way to one master, an independent Redis server, behind a trait. Nothing outside this folder
//! names the redis crate.

mod address;
mod answer;
mod asks;
mod call;
#[cfg(feature = "unstable-testing")]
mod connect;
mod contract;
mod dial;
mod driver;
mod examine;
mod hello;
mod link;
mod listen;
mod login;
mod masters;
mod password;
mod pending;
mod resp;
mod script;
mod session;
mod transport;

pub(crate) use address::Address;
pub use answer::{Failure, Value};
pub use call::{Call, CallKind, NOT_HANDLED, ReplySink, WordIter, Words};
#[cfg(feature = "unstable-testing")]
pub use connect::connect;
pub use contract::{Master, Subscriber, SubscriptionEvent};
pub(crate) use dial::Dialler;
pub(crate) use driver::RedisMaster;
pub(crate) use examine::{Visit, examine};
#[cfg(feature = "unstable-testing")]
pub use link::{LinkState, Message, Reach};
pub(crate) use masters::{MasterMaker, Masters};
pub(crate) use password::PasswordCallback;
#[cfg(feature = "unstable-testing")]
pub use pending::{Delivery, Pending};
#[cfg(feature = "redis")]
pub(crate) use redis::ConnectionInfo;
pub use script::{Layer, Script, ScriptPart};
pub(crate) use session::{LinkSettings, Roster};
