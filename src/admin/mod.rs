//! Administration: begins a set of masters (`init.rs`), changes it (`change.rs`), and examines it
//! ([`doctor`]). Shows the holders of a lock (`inspect.rs`) and the held names (`list.rs`).
//!
//! All except the doctor are operations of the [`Engine`](crate::engine::Engine). The engine itself
//! does not use them.

mod change;
pub mod doctor;
mod init;
mod inspect;
mod list;
mod set_change;

pub(crate) use change::ChangeStep;
pub(crate) use inspect::Sighting;
pub(crate) use list::Progress;
pub use set_change::{Init, SetChange, SetError};
