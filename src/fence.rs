//! Fences: how a protected resource refuses a holder that comes too late.
//!
//! A holder can stand still between checking its lease and writing, or its write can be delayed in
//! the network, and arrive when another owner has the lock. No lock service can prevent that, but
//! it can number its grants ([Kleppmann 2016]). A fence is that number: it rises strictly with each
//! grant of a lock's name. The resource remembers the highest fence it has seen and refuses a lower
//! one, so a late write changes nothing.
//!
//! | the resource | the check |
//! |---|---|
//! | a value in Redis | the script [`SET`], and [`check`] on its reply |
//! | a row in an SQL database | [`sql_predicate`] in the `WHERE` of each write |
//! | a service | [`header`] in the request; in the service [`FencingToken::from_str`] and one of these checks |
//! | something in this process | [`Gate`] |
//! | a job of `quorate run` | its fence is in the environment, as [`VARIABLE`] |
//!
//! Rules for any resource:
//!
//! - The check and the write are one step: one statement, one script, one critical section.
//!   Otherwise a later holder can write in between.
//! - Every write is checked. A writer without a fence is refused: it does not hold the lock.
//! - A holder that reads before it writes shows the resource its fence before the read: [`SET`]
//!   without a value, an `UPDATE` of the fence column alone, [`Gate::admit`]. Otherwise a late
//!   write of an earlier holder is accepted between the read and the write, and then overwritten
//!   unread.
//! - The fence is stored for longer than a write can be late: with the data, not in a process that
//!   restarts.
//! - An equal fence is accepted: a holder may write many times. Fences do not order the writes of
//!   one holder.
//! - Fences of different locks are unrelated: a resource compares those of one lock's name.
//! - The check protects from late holders, not from malicious ones: a writer that sends a fence far
//!   too high shuts everybody else out.
//!
//! A fence is a number from 1 to [`MAX`]: a guard's [`FencingToken`]. It is made from the
//! microseconds since 1970, but do not read it as a time.
//!
//! [Kleppmann 2016]: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::sync::Mutex;

/// The highest fence, 2^53 - 1: Lua, JavaScript and JSON, whose numbers are doubles, can represent
/// each exactly. The microseconds since 1970 get there in the year 2255.
pub const MAX: u64 = (1 << 53) - 1;

/// The number of a grant: higher than that of every earlier grant of the lock. See
/// [`Guard::fencing_token`].
///
/// It is from 1 to [`MAX`], and so fits a signed 64-bit integer, a double, and SQL's `BIGINT`.
///
/// [`Guard::fencing_token`]: crate::Guard::fencing_token
///
/// # Examples
///
/// ```
/// use quorate::fence::FencingToken;
///
/// let token = FencingToken::new(1_767_225_600_000_000).expect("it is in range"); // a guard's, stored and read again
/// assert_eq!(token.as_i64(), 1_767_225_600_000_000_i64); // for SQL, whose integers have a sign
/// assert_eq!(u64::from(token), token.get());
/// assert_eq!("1767225600000000".parse(), Ok(token)); // of a header, or an environment variable
/// assert!("9007199254740992".parse::<FencingToken>().is_err()); // 2^53
/// assert!(FencingToken::new(0).is_none() && FencingToken::new(quorate::fence::MAX + 1).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FencingToken(u64);

impl FencingToken {
    /// The fencing token of this number, if it is from 1 to [`MAX`].
    pub const fn new(number: u64) -> Option<Self> {
        if number > 0 && number <= MAX { Some(Self(number)) } else { None }
    }

    /// A token from the masters, whose scripts keep it in range.
    pub(crate) const fn granted(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number for SQL, whose integers are signed. Lossless: [`MAX`] is far below `i64::MAX`.
    pub const fn as_i64(self) -> i64 {
        self.0.cast_signed()
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

/// The number in decimal, as `FromStr` reads it.
impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FencingToken {
    type Err = Invalid;

    /// Reads a token from a header or an environment variable: a decimal number from 1 to [`MAX`],
    /// with nothing around it. Anything else is [`Invalid`], so that no number reaches a check that
    /// would shut out all later holders.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let token = text.parse().ok().and_then(Self::new);
        token.filter(|token| token.to_string() == text).ok_or_else(|| Invalid::fence(text, MAX))
    }
}

/// The request header for the fence: see [`header`]. It is in lower case, as HTTP/2 and
/// `http::HeaderName::from_static` require; servers ignore the case.
pub const HEADER: &str = "quorate-fence";

/// The environment variable in which a job of `quorate run` finds its fence, in decimal: it parses
/// as a [`FencingToken`].
pub const VARIABLE: &str = "QUORATE_FENCE";

/// A Lua script for Redis or Valkey that writes a value unless a later holder of the
/// lock has written. It runs on the server that has the value, which need not be one of the lock's
/// masters.
///
/// `KEYS[1]` is the value's key; `ARGV` is what [`set_args`] returns: the fence, the value, and a
/// TTL in milliseconds or nothing. With the fence alone it only stores that: do this before a read,
/// and no earlier holder writes any more. It replies with the highest fence at the key: [`check`]
/// says whether that is this one, and the value was written, or a higher one, and nothing was.
/// Wrong arguments, or a key of another type, are an error, and nothing is written.
///
/// The key is a hash of two fields, `value` and `fence`, so that they are kept, copied and evicted
/// together: read it with `HGET key value`. `HDEL key value` deletes the value alone. Do not use
/// `DEL`, which forgets the fence, or `SET`, after which the script fails.
///
/// # Examples
///
/// With the redis crate:
///
/// ```
/// use quorate::fence::{self, FencingToken};
///
/// fn set_balance(redis: &mut redis::Connection, fence: FencingToken, balance: &str) -> Result<(), Box<dyn std::error::Error>> {
///     let args = fence::set_args(fence, balance, None);
///     let seen = redis::cmd("EVAL").arg(fence::SET).arg(1).arg("balance:42").arg(&args).query(redis)?;
///     Ok(fence::check(fence, seen)?)
/// }
///
/// fn add_to_balance(redis: &mut redis::Connection, fence: FencingToken, more: i64) -> Result<(), Box<dyn std::error::Error>> {
///     let seen = redis::cmd("EVAL").arg(fence::SET).arg(1).arg("balance:42").arg(fence.get()).query(redis)?;
///     fence::check(fence, seen)?; // from here on what is read stays, or the write below is refused
///     let balance: i64 = redis::cmd("HGET").arg("balance:42").arg("value").query(redis)?;
///     set_balance(redis, fence, &(balance + more).to_string())
/// }
/// ```
///
/// The script by itself, with `redis-cli` and the file `scripts/lua/fenced.lua` of this package:
///
/// ```text
/// $ redis-cli --eval fenced.lua balance:42 , 7 90
/// (integer) 7
/// $ redis-cli --eval fenced.lua balance:42 , 5 80     # 5 is stale
/// (integer) 7
/// $ redis-cli HGET balance:42 value
/// "90"
/// ```
///
pub const SET: &str = include_str!("../scripts/lua/fenced.lua");

/// What [`SET`] takes as `ARGV`.
///
/// Value and fence expire together, `ttl` (rounded up to milliseconds) after this write: it must be
/// longer than a write of an earlier holder can be late. Without a `ttl` the key does not expire,
/// even if an earlier write had one: prefer that, unless old keys would pile up. The script refuses
/// a `ttl` of zero and a number that is no fence.
pub fn set_args(fence: impl Into<u64>, value: impl Into<Vec<u8>>, ttl: Option<Duration>) -> [Vec<u8>; 3] {
    let ttl = ttl.map_or_else(String::new, |ttl| ttl.as_nanos().div_ceil(1_000_000).to_string());
    [fence.into().to_string().into_bytes(), value.into(), ttl.into_bytes()]
}

/// The rule of every resource: `given`, the fence of a write, is accepted unless `seen`, the
/// highest fence before it, or 0, is higher. For a resource that stores fences in its own way.
///
/// # Errors
///
/// [`Stale`] when `seen` is higher.
///
/// # Examples
///
/// ```
/// use quorate::fence::{self, Stale};
///
/// assert_eq!(fence::check(7_u64, 0), Ok(()));
/// assert_eq!(fence::check(7_u64, 7), Ok(()));
/// assert_eq!(fence::check(7_u64, 8), Err(Stale { given: 7, seen: 8 }));
/// ```
pub fn check(given: impl Into<u64>, seen: u64) -> Result<(), Stale> {
    let given = given.into();
    if given < seen { Err(Stale { given, seen }) } else { Ok(()) }
}

/// The condition for the `WHERE` of an SQL write: the fence in `column` is not above the one bound
/// to `parameter`. The same statement has to set the column. If it changes no row, the fence was
/// stale, or there is no such row.
///
/// ```text
/// UPDATE accounts SET balance = ?1, fence = ?2 WHERE id = ?3 AND (fence IS NULL OR fence <= ?2)
/// ```
///
/// Make the column a `BIGINT` and bind [`FencingToken::as_i64`]. A null fence means that the row
/// was not written under a fence yet, and is accepted. For a row that may not exist yet use an
/// upsert with the condition on its update: `ON CONFLICT (id) DO UPDATE SET .. WHERE ..`. A deleted
/// row forgets its fence; a late upsert brings it back.
///
/// MySQL and MariaDB count only rows whose values changed, so a holder that writes the same twice
/// looks stale: set `CLIENT_FOUND_ROWS` on the connection.
///
/// Both names go into the text unescaped: never take them from input.
///
/// # Examples
///
/// `examples/fenced_sql.rs` is a whole program, with SQLite.
///
/// ```
/// let unless_stale = quorate::fence::sql_predicate("fence", "?2");
/// let update = format!("UPDATE accounts SET balance = ?1, fence = ?2 WHERE id = ?3 AND {unless_stale}");
/// # let db = rusqlite::Connection::open_in_memory()?;
/// # db.execute_batch("CREATE TABLE accounts (id, balance, fence); INSERT INTO accounts VALUES (42, 100, NULL)")?;
/// assert_eq!(db.execute(&update, (90, 1_767_225_600_000_001_i64, 42))?, 1);
/// assert_eq!(db.execute(&update, (80, 1_767_225_600_000_000_i64, 42))?, 0, "stale");
/// # Ok::<(), rusqlite::Error>(())
/// ```
pub fn sql_predicate(column: &str, parameter: &str) -> String {
    format!("({column} IS NULL OR {column} <= {parameter})")
}

/// The header for a request to a service that checks fences: [`HEADER`] and the fence in decimal,
/// which the service parses as a [`FencingToken`].
///
/// # Examples
///
/// ```
/// use quorate::fence::{self, FencingToken, Gate};
///
/// let fence = FencingToken::new(1_767_225_600_000_000).unwrap(); // the guard's
/// let (name, value) = fence::header(fence); // request.header(name, value)
/// assert_eq!((name, value.as_str()), ("quorate-fence", "1767225600000000"));
///
/// /// The service's handler, which returns the HTTP status.
/// fn put(gate: &Gate, header: Option<&str>, write: impl FnOnce()) -> u16 {
///     let Some(header) = header else { return 428 }; // Precondition Required
///     let Ok(fence) = header.parse::<FencingToken>() else { return 400 }; // Bad Request
///     match gate.write(fence, write) {
///         Ok(()) => 204,
///         Err(_stale) => 412, // Precondition Failed
///     }
/// }
/// let gate = Gate::new(0);
/// assert_eq!(put(&gate, Some(&value), || ()), 204);
/// assert_eq!(put(&gate, Some("1767225599999999"), || unreachable!()), 412);
/// assert_eq!((put(&gate, None, || ()), put(&gate, Some("-1"), || ())), (428, 400));
/// ```
pub fn header(fence: impl Into<u64>) -> (&'static str, String) {
    (HEADER, fence.into().to_string())
}

/// Remembers the highest fence that a resource of this process has seen, and refuses lower ones.
///
/// It is for one lock's name (keep a map of gates for several), and only for what one process
/// writes: gates of different processes know nothing of each other, and a restart forgets. If the
/// resource outlives the process, store the fence with the data, and begin with [`Gate::new`] of
/// the stored one. Parse input as a [`FencingToken`] first: a gate takes any number, and one that
/// is far too high shuts out all later holders.
///
/// # Examples
///
/// ```
/// use quorate::fence::{Gate, Stale};
///
/// let gate = Gate::new(0);
/// let mut balance = 100;
/// gate.write(5_u64, || balance -= 10)?;
/// gate.write(7_u64, || balance -= 10)?; // a later holder
/// assert_eq!(gate.write(5_u64, || balance -= 10), Err(Stale { given: 5, seen: 7 }));
/// assert_eq!(balance, 80);
/// # Ok::<(), Stale>(())
/// ```
#[derive(Debug)]
pub struct Gate {
    seen: Mutex<u64>,
}

impl Gate {
    /// A gate that has seen this fence: the one stored with the data, or 0.
    pub const fn new(seen: u64) -> Self {
        Self { seen: Mutex::new(seen) }
    }

    /// Accepts and remembers a fence unless it has seen a higher one, in one step.
    ///
    /// The write that follows is another step, and a later holder may write first. So use this only
    /// if writes happen in the order of admission, by one task or from one queue; otherwise use
    /// [`write`](Gate::write), or keep the gate inside the (async) mutex of the data.
    ///
    /// # Errors
    ///
    /// [`Stale`] when a higher one was here.
    pub fn admit(&self, fence: impl Into<u64>) -> Result<(), Stale> {
        self.write(fence, || ())
    }

    /// Runs `write` unless it has seen a higher fence, and admits nobody else meanwhile. The fence
    /// is remembered before the write runs, even if that panics.
    ///
    /// It blocks the thread while another write runs; `write` must not use the same gate.
    ///
    /// # Errors
    ///
    /// [`Stale`] when it has seen a higher one; `write` was not run.
    pub fn write<T>(&self, fence: impl Into<u64>, write: impl FnOnce() -> T) -> Result<T, Stale> {
        let fence = fence.into();
        let mut seen = self.seen.lock(); // also after a write that panicked
        check(fence, *seen)?;
        *seen = fence;
        Ok(write())
    }

    /// The highest fence that it has accepted or began with: store it with the data.
    pub fn seen(&self) -> u64 {
        *self.seen.lock()
    }
}

/// A write was refused because a later holder of the lock has written: its sender has lost or
/// released the lock. This is final: the same fence will be refused again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "fence {given} is stale: a later holder of the lock was here, with {seen}, and nothing was written; \
     stop, and begin again with a new acquire"
)]
pub struct Stale {
    /// The fence of the write that was refused.
    pub given: u64,
    /// The highest that was seen.
    pub seen: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rule_refuses_what_is_below_and_nothing_else() {
        assert_eq!(check(1_u64, 0), Ok(()));
        assert_eq!(check(MAX, MAX), Ok(()));
        assert_eq!(check(MAX - 1, MAX), Err(Stale { given: MAX - 1, seen: MAX }));
    }

    #[test]
    fn a_refusal_names_both_fences_and_says_what_to_do() {
        let text = Stale { given: 5, seen: 7 }.to_string();
        assert!(text.contains("fence 5 is stale") && text.contains("with 7"), "{text}");
        assert!(text.contains("nothing was written") && text.contains("a new acquire"), "{text}");
    }

    #[test]
    fn what_is_not_a_fence_is_refused_and_named() {
        for text in
            ["", "0", "007", "+7", "-7", " 7", "7 ", "7\n", "0x7", "7e3", "7.0", "9007199254740992", "٧"]
        {
            let error = text.parse::<FencingToken>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("9007199254740991"), "{error}");
        }
        let error = "9".repeat(1000).parse::<FencingToken>().unwrap_err().to_string();
        assert!(error.len() < 200, "{error}");
    }

    #[test]
    fn a_ttl_is_in_milliseconds_rounded_up() {
        let ttl = |ttl| String::from_utf8(set_args(7_u64, "v", ttl)[2].clone()).unwrap();
        assert_eq!(set_args(7_u64, [0, 255], None), [vec![b'7'], vec![0, 255], vec![]]);
        assert_eq!(ttl(Some(Duration::from_secs(2))), "2000");
        assert_eq!(ttl(Some(Duration::from_nanos(1))), "1");
        assert_eq!(ttl(Some(Duration::ZERO)), "0"); // which the script refuses
    }

    #[test]
    fn a_write_that_panics_is_remembered_and_shuts_nobody_out() {
        let gate = Gate::new(0);
        let write = std::panic::AssertUnwindSafe(|| gate.write(7_u64, || panic!("on purpose")));
        std::panic::catch_unwind(write).unwrap_err();
        assert_eq!(gate.seen(), 7);
        assert_eq!(gate.admit(6_u64), Err(Stale { given: 6, seen: 7 }));
        assert_eq!(gate.admit(7_u64), Ok(()));
    }

    proptest! {
        #[test]
        fn a_fence_reads_back_what_was_written(fence in 1..=MAX) {
            let token: FencingToken = header(fence).1.parse().unwrap();
            prop_assert_eq!((token.get(), u64::try_from(token.as_i64())), (fence, Ok(fence)));
        }

        /// What was accepted never goes below what was accepted before; what was refused is below,
        /// and the error names the highest.
        #[test]
        fn what_a_gate_lets_in_never_falls(began in 0..20u64, fences in prop::collection::vec(1..40u64, 0..60)) {
            let gate = Gate::new(began);
            let mut highest = began;
            for given in fences {
                match gate.admit(given) {
                    Ok(()) => {
                        prop_assert!(given >= highest);
                        highest = given;
                    }
                    Err(stale) => {
                        prop_assert!(given < highest);
                        prop_assert_eq!(stale, Stale { given, seen: highest });
                    }
                }
                prop_assert_eq!(gate.seen(), highest);
            }
        }

        /// The same where threads write at once: the writes themselves are in order, not only what
        /// was let in.
        #[test]
        fn writes_of_many_threads_never_fall(
            of_threads in prop::collection::vec(prop::collection::vec(1..200u64, 50), 2..5),
        ) {
            let gate = &Gate::new(0);
            let written = &Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for fences in &of_threads {
                    scope.spawn(move || {
                        for fence in fences {
                            let write = || {
                                std::thread::yield_now();
                                written.lock().push(*fence);
                            };
                            let _ = gate.write(*fence, write);
                        }
                    });
                }
            });
            let written = written.lock();
            prop_assert!(written.is_sorted(), "{written:?}");
            prop_assert_eq!(written.last(), of_threads.iter().flatten().max());
        }
    }
}
