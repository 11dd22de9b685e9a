//! The pages that the README links to, from the folder `docs` of the repository.

/// [operations]: operations
#[doc = include_str!("../docs/COMMAND.md")]
pub mod command {}

#[doc = include_str!("../docs/OPERATIONS.md")]
pub mod operations {}

#[doc = include_str!("../docs/PERFORMANCE.md")]
pub mod performance {}

#[doc = include_str!("../docs/PROTOCOL.md")]
pub mod protocol {}

#[doc = include_str!("../docs/SAFETY.md")]
pub mod safety {}
