//! The way to one master, an independent Redis server, behind a trait. Nothing outside this folder
//! names the redis crate.

mod address;
mod call;
#[cfg(feature = "simulation")]
mod connect;
mod contact;
mod contract;
mod dial;
mod driver;
mod examine;
mod failure;
mod link;
mod listen;
mod pending;
mod redis;
mod resp;
mod script;
mod session;
mod subscriber;
mod transport;
mod value;

pub(crate) use address::Address;
pub use call::{Call, CallKind, ReplySink, WordIter, Words};
#[cfg(feature = "simulation")]
pub use connect::connect;
pub use contact::Contact;
pub use contract::Master;
pub(crate) use dial::Dialler;
pub(crate) use examine::{Visit, examine};
pub use failure::Failure;
#[cfg(feature = "simulation")]
pub use link::{LinkState, Message, Reach};
#[cfg(feature = "simulation")]
pub use pending::{Delivery, Pending};
pub(crate) use redis::RedisMaster;
pub use script::{Layer, Script, ScriptPart};
pub(crate) use session::{LinkSettings, Roster};
pub use subscriber::{Subscriber, SubscriptionEvent};
pub use value::Value;
