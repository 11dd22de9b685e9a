//! How large a run is.

/// How many masters a run has.
pub const MASTERS: usize = 5;

/// How many more there are that may join the set, where that changes.
pub(crate) const JOINERS: usize = 3;

/// How many clients.
pub const CLIENTS: usize = 5;

/// How many locks.
pub(crate) const LOCKS: usize = 2;

/// How many times longer than the usual one a TTL may be.
pub(crate) const LONGER: u32 = 2;

/// A run is so much longer than others that masters' clocks would be too far apart at its end.
pub(crate) const LONGER_RUN: i64 = 20;

/// How many tasks each client works with.
pub(crate) const ACTORS: usize = 2;

/// How many operations a run has: acquires, re-entries, extensions, releases, cancellations and
/// drops.
pub const OPERATIONS: usize = 200;
