//! Refused input: each text has the value, the limit and what to do.

use std::fmt::{self, Debug, Display};
use std::time::Duration;

use crate::text::{line, quoted};

/// How much of a value is shown.
const VALUE: usize = 40;

/// Input that was refused before anything was sent. The text has the value, what is allowed, and
/// what to do.
#[derive(Clone, PartialEq, Eq)]
pub struct Invalid {
    setting: &'static str,
    text: Box<str>,
}

impl Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for Invalid {}

impl Invalid {
    fn new(setting: &'static str, text: impl Display) -> Self {
        Self { setting, text: line(&text.to_string()).into() }
    }

    /// Which setting it is about: the name of the option's method, as in `ttl` or `masters`;
    /// `name`, `names`, `owner`, `handover` or `fence` for these; the variable of
    /// [`env`](mod@crate::env); or `thread` for a [blocking](crate::blocking) call where none is
    /// allowed.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

/// Names, labels and owners.
impl Invalid {
    pub(crate) fn empty_name(limit: usize) -> Self {
        Self::new("name", format_args!("the lock's name is empty; it must have 1 to {limit} bytes"))
    }

    pub(crate) fn long_name(name: &str, limit: usize) -> Self {
        let length = name.len();
        let name = quoted(name, VALUE);
        Self::new("name", format_args!("lock name {name} has {length} bytes; at most {limit} are allowed"))
    }

    pub(crate) fn no_names(limit: usize) -> Self {
        Self::new("names", format_args!("no names: give 1 to {limit} of them"))
    }

    pub(crate) fn too_many_names(count: usize, limit: usize) -> Self {
        Self::new("names", format_args!("a lock over {count} names: at most {limit} are allowed"))
    }

    pub(crate) fn duplicate_name(name: &str) -> Self {
        let name = quoted(name, VALUE);
        Self::new("names", format_args!("the name {name} is given twice; the names of one lock must differ"))
    }

    pub(crate) fn label(label: &str, limit: usize) -> Self {
        let length = label.len();
        let label = quoted(label, VALUE);
        Self::new(
            "label",
            format_args!(
                "label {label} has {length} bytes; at most {limit} are allowed, and no control characters"
            ),
        )
    }

    pub(crate) fn owner(text: &str) -> Self {
        let text = quoted(text, VALUE);
        Self::new(
            "owner",
            format_args!("{text} is not an owner; the form is the client's UUID, a colon and a number"),
        )
    }

    /// An owner that another client made: its holds are counted there.
    pub(crate) fn foreign_owner(owner: impl Display) -> Self {
        Self::new(
            "owner",
            format_args!(
                "owner {owner} belongs to another client; this one can only force_release its locks, not share them"
            ),
        )
    }

    pub(crate) fn no_owner() -> Self {
        Self::new("owner", "no owner was named: name one with owned_by, or run inside an owner's scope")
    }

    /// Every acquire of a semaphore takes another permit, so there is no re-entry.
    pub(crate) fn owned_permit(name: &str, owner: impl Display) -> Self {
        let name = quoted(name, VALUE);
        Self::new(
            "owner",
            format_args!("owner {owner} for semaphore {name}: each permit has an owner of its own"),
        )
    }

    /// A hand-over would leave the other guards of a re-entered lock behind.
    pub(crate) fn entered_again(name: &str, holds: u32) -> Self {
        let name = quoted(name, VALUE);
        Self::new(
            "hand_over",
            format_args!("lock {name} is entered {holds} times; only its last guard can hand it over"),
        )
    }

    /// An [environment variable](crate::env) that cannot be used.
    pub(crate) fn environment(variable: &'static str, why: &str) -> Self {
        Self::new(variable, format_args!("{variable}: {why}"))
    }

    pub(crate) fn handover(name: &str, why: &str) -> Self {
        Self::new("handover", format_args!("hand-over of {}: {why}", quoted(name, VALUE)))
    }

    /// Of the text it shows where the secret cannot be yet.
    pub(crate) fn no_handover(text: &str) -> Self {
        let beginning: String = text.chars().take(24).collect();
        let length = text.chars().count();
        Self::new(
            "handover",
            format_args!(
                "{length} characters that begin with {} are not a hand-over, or it was cut short or changed",
                quoted(&beginning, VALUE)
            ),
        )
    }

    pub(crate) fn fence(text: &str, max: u64) -> Self {
        let text = quoted(text, VALUE);
        Self::new(
            "fence",
            format_args!("{text} is not a fence; it is a whole number from 1 to {max}, in decimal"),
        )
    }
}

/// Times and numbers.
impl Invalid {
    pub(crate) fn ttl(ttl: Duration, min: Duration, max: Duration) -> Self {
        Self::new(
            "ttl",
            format_args!(
                "a TTL of {ttl:?} is not within {min:?} and {max:?}, the max TTL: ask for less, as leases renew \
             themselves, or raise it for all clients"
            ),
        )
    }

    pub(crate) fn max_ttl(max_ttl: Duration, min: Duration, max: Duration) -> Self {
        Self::new("max_ttl", format_args!("a max TTL of {max_ttl:?} is not within {min:?} and {max:?}"))
    }

    /// A quarantine must outlast all that a master may forget.
    pub(crate) fn lock_delay(delay: Duration, ttl: Duration, max: Duration) -> Self {
        Self::new(
            "lock_delay",
            format_args!(
                "a lock delay of {delay:?} and the TTL of {ttl:?} are together above the max TTL of {max:?}"
            ),
        )
    }

    pub(crate) fn timeout(timeout: Duration, ttl: Duration) -> Self {
        Self::new(
            "timeout",
            format_args!(
                "a per-master time-out of {timeout:?} must be above zero and below the TTL of {ttl:?}"
            ),
        )
    }

    pub(crate) fn wait(wait: Duration, max: Duration) -> Self {
        Self::new("wait", format_args!("a wait of {wait:?} is above the limit of {max:?}"))
    }

    pub(crate) fn look_interval(interval: Duration, min: Duration, max: Duration) -> Self {
        Self::new("look_every", format_args!("a look every {interval:?} is not within {min:?} and {max:?}"))
    }

    /// It must leave time for a second try before the lease ends.
    pub(crate) fn renewal_interval(interval: Duration, min: Duration, max: Duration, ttl: Duration) -> Self {
        Self::new(
            "renew_every",
            format_args!(
                "a renewal interval of {interval:?} is not within {min:?} and {max:?}, two thirds of the TTL of {ttl:?}"
            ),
        )
    }

    pub(crate) fn hold_cap(cap: Duration, ttl: Duration) -> Self {
        Self::new(
            "hold_at_most",
            format_args!("a cap of {cap:?} on the time held is below the TTL of {ttl:?}: use a shorter TTL"),
        )
    }

    pub(crate) fn heartbeat(heartbeat: Duration, min: Duration) -> Self {
        Self::new("heartbeat", format_args!("a heartbeat of {heartbeat:?} is below the limit of {min:?}"))
    }

    pub(crate) fn not_renewed(option: &'static str) -> Self {
        Self::new(
            option,
            format_args!("`{option}` and `no_renewal` exclude each other: leave out one of them"),
        )
    }

    pub(crate) fn polling(interval: Duration, min: Duration, tries: u32) -> Self {
        Self::new(
            "poll_every",
            format_args!(
                "polling {tries} times every {interval:?}: there must be one try at least, and {min:?} between two"
            ),
        )
    }

    pub(crate) fn permits(permits: u32, max: u32) -> Self {
        Self::new("permits", format_args!("a semaphore of {permits} permits: it must have 1 to {max}"))
    }

    pub(crate) fn no_waiters() -> Self {
        Self::new(
            "max_waiters",
            "at most 0 waiters: it must be 1 at least; to try without waiting, use try_acquire",
        )
    }
}

/// Masters, and where a client runs.
impl Invalid {
    pub(crate) fn no_masters(limit: usize) -> Self {
        Self::new("masters", format_args!("no masters: give 1 to {limit} of them"))
    }

    pub(crate) fn too_many_masters(count: usize, limit: usize) -> Self {
        Self::new("masters", format_args!("{count} masters: at most {limit} are allowed"))
    }

    /// It would have two votes. The name is without user and password.
    pub(crate) fn duplicate_master(master: &str) -> Self {
        let master = quoted(master, VALUE);
        Self::new(
            "masters",
            format_args!("master {master} is listed twice; each must be an independent server"),
        )
    }

    /// The URL is without user and password.
    pub(crate) fn url(url: &str, why: &str) -> Self {
        let url = quoted(url, 32);
        Self::new(
            "masters",
            format_args!("master URL {url}: {why}; the form is redis://[user:password@]host[:port][/db]"),
        )
    }

    /// Braces would move the keys to another cluster slot.
    pub(crate) fn prefix(prefix: &str, limit: usize) -> Self {
        let prefix = quoted(prefix, VALUE);
        Self::new("prefix", format_args!("key prefix {prefix} must have at most {limit} bytes and no braces"))
    }

    #[cfg(feature = "tls")]
    pub(crate) fn certificate(why: &str) -> Self {
        Self::new(
            "tls_root",
            format_args!("TLS root certificates: {}", crate::text::shortened(why, 2 * VALUE)),
        )
    }

    pub(crate) fn runtime() -> Self {
        Self::new(
            "runtime",
            "the engine's runtime must be a current-thread one: on several threads a clean-up could overtake what \
             it undoes",
        )
    }

    /// All tasks of the thread would stand still.
    pub(crate) fn inside_runtime() -> Self {
        Self::new(
            "thread",
            "a blocking call on a thread that runs async tasks, which would stand still: await the async API, or use \
             tokio::task::spawn_blocking",
        )
    }

    /// Nobody might be driving that runtime, and the call would never end.
    pub(crate) fn lent_runtime() -> Self {
        Self::new(
            "runtime",
            "a blocking call to a client that was lent a runtime or an executor: build it without, or use the async \
             API with its own block_on",
        )
    }
}
