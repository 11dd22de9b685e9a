//! Embedded servers beside real ones: what they answer, and what they keep.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests say how long they took")]

mod dice;
mod differential;
mod ears;
mod embedded;
mod lua;
mod operations;
mod pair;
mod price;
mod source;
