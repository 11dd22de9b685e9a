//! Masters within the process, which run the same Lua as real ones.
//!
//! [`EmbeddedServer`] stands for a Redis server: keys in memory ([`Store`]), Lua 5.1 for scripts,
//! and subscribers. [`EmbeddedMaster`] puts one behind the library's `Master` trait. A differential
//! test compares its replies and keys with those of real servers, and one suite of tests runs on
//! both kinds of master.
//!
//! What is given up for it: sockets, and with them what gets lost there; scripts are never unknown
//! and never take long; and all of it is in memory.

mod lua;
mod master;
mod masters;
mod number;
mod paused;
mod resp;
mod server;
mod state;
mod store;
mod wall_clock;

pub use master::EmbeddedMaster;
pub use masters::EmbeddedMasters;
pub use paused::PausedClock;
pub use resp::Resp;
pub use server::{EmbeddedServer, Restart, Snapshot};
pub use state::Subscription;
pub use store::Store;
pub use wall_clock::WallClock;
