//! Masters within the process, which run the same Lua as real ones.
//!
//! [`EmbeddedServer`] stands for a Redis server: keys in memory ([`Store`]), Lua 5.1 for scripts,
//! and whoever listens. [`EmbeddedMaster`] puts one behind the trait that clients ask masters by.
//! Both are held to what real servers do: a differential test compares replies and keys, and one
//! suite of tests is run on both kinds of master.
//!
//! What is given up for it: sockets, and with them what gets lost there; scripts are never unknown
//! and never take long; and all of it is in memory.

mod lua;
mod master;
mod masters;
mod number;
mod resp;
mod server;
mod state;
mod store;
mod wall_clock;

pub use master::EmbeddedMaster;
pub use masters::EmbeddedMasters;
pub use resp::Resp;
pub use server::{EmbeddedServer, Restart, Snapshot};
pub use state::Subscription;
pub use store::Store;
pub use wall_clock::WallClock;
