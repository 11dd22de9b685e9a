//! The operations that a master is asked to do, and their words: docs/PROTOCOL.md, section 7.

use std::sync::Arc;
use std::time::Duration;

use super::call::Words;
use super::keys::{WakeChannelPrefix, split_names, with_keys, with_shared_keys};
use super::kind::{Kind, Permit};
use super::ticket::Ticket;
use super::trusted_time::TrustedTime;
use crate::owner::Owner;

/// What an operation is about: one lock, or one permit of a semaphore, of one owner.
#[derive(Clone, Debug)]
pub(crate) struct LockId {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) permit: Option<Permit>,
    pub(crate) owner: Owner,
}

/// What a master is asked to do with a lock, for one owner.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// To grant it anew.
    Acquire {
        /// For how long the master keeps it from others if it is never released.
        kept: Duration,
        /// The label of its holder, for others to see; may be empty.
        label: Arc<str>,
        /// The ticket of the same waiter's previous acquire, whose place is given up.
        before: Option<Ticket>,
        /// The ticket that takes a place in the queue if the acquire is refused.
        ticket: Option<Ticket>,
        /// Since when the caller waits, for kinds that are granted in an order, and for a place.
        arrival: Option<Arrival>,
        /// The first round of the lease, where this is a later one; otherwise 0.
        first: u64,
    },
    /// To extend the lease; with more holds, to enter again; without `heals`, to confirm a token.
    Extend {
        holds: u32,
        kept: Duration,
        /// For an entry that is written again.
        label: Arc<str>,
        token: u64,
        /// Whether the master writes the entry again if it lost it.
        heals: bool,
        /// The first round of the lease, to confirm a token; otherwise 0.
        first: u64,
    },
    /// To go down to so many holds; with 0, to release it.
    Release {
        holds: u32,
        leaving: Leaving,
        /// The ticket whose place is given up.
        place: Option<Ticket>,
    },
    /// To undo a grant, and if there was one to take a place in the queue instead of waking others.
    Withdraw { leaving: Leaving, place: PlaceWanted },
    /// To hand it over from one owner to this one.
    Transfer {
        from: Owner,
        kept: Duration,
        label: Arc<str>,
        /// Whether this owner gets a new token.
        renews: bool,
        /// The token that is handed over, if it is known: the master keeps a later lease of `from`.
        handed: Option<u64>,
    },
    /// To tell who holds it.
    Inspect,
    /// To tell the time.
    Time,
}

/// Why an owner releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It has a lease with this token.
    Lease(u64),
    /// It undoes a grant whose token nobody has seen. This is the first round of the lease.
    Undone(u64),
    /// Somebody else takes the lock away from it. This is the highest token that it was seen with.
    Broken(u64),
}

/// The place in the queue that an operation asks for.
#[derive(Clone, Debug)]
pub(crate) struct PlaceWanted {
    pub(crate) ticket: Ticket,
    pub(crate) arrival: Arrival,
}

/// When somebody began to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The moment, as time since 1970: by the masters' clocks, as far as that is known.
    pub(crate) since: Duration,
    /// How long ago that is.
    pub(crate) waited: Duration,
}

impl Op {
    /// The words of the operation. All keys begin with `prefix`, `round` rises with every round of
    /// a client, and `time` is that which most masters show, which a new grant proposes as its
    /// token. An entry is kept for longer by its width, unless it is another library's key, which
    /// ends by no time of a client.
    pub(crate) fn words(&self, prefix: &str, lock: &LockId, round: u64, time: TrustedTime) -> Words {
        let LockId { kind, owner, .. } = *lock;
        let TrustedTime { low: trusted, width } = time;
        let kept_for = |kept: Duration| millis(if kind.is_shared() { kept } else { kept + width });
        let begin = |verb, args| lock.begin(prefix, verb, args);
        let ticket =
            |ticket: &Option<Ticket>| ticket.as_ref().map_or(String::new(), |ticket| ticket.text(kind));
        match self {
            Self::Acquire { kept, label, before, ticket: taken, arrival, first } => {
                let is_again = *first > 0;
                let is_plain = before.is_none() && taken.is_none() && !kind.is_in_order() && !is_again;
                let args = if is_plain { 6 } else { 11 + usize::from(is_again) };
                let words = begin("acquire", args).with(owner).with(round);
                let words = words.with(trusted).with(kept_for(*kept)).with(label);
                if is_plain {
                    return words;
                }
                let words = words.with(ticket(before)).with(ticket(taken));
                let words = match arrival {
                    Some(arrival) => arrived(words, *arrival),
                    None => words.with("").with(""),
                };
                let words = words.with(WakeChannelPrefix(prefix));
                if is_again { words.with(first) } else { words }
            }
            Self::Extend { holds, kept, label, token, heals, first } => {
                let words =
                    begin("extend", if *first > 0 { 10 } else { 9 }).with(owner).with(holds).with(round);
                let words = words.with(trusted).with(kept_for(*kept)).with(label).with(token);
                let words = words.with(if *heals { "1" } else { "" });
                if *first > 0 { words.with(first) } else { words }
            }
            Self::Release { holds, leaving, place } => {
                let words = begin("release", 9).with(owner).with(holds).with(round);
                left(words, *leaving, prefix, &ticket(place))
            }
            Self::Withdraw { leaving, place } => {
                let words = begin("release", 11).with(owner).with(0).with(round);
                let words = left(words, *leaving, prefix, &place.ticket.text(kind));
                arrived(words, place.arrival)
            }
            Self::Transfer { from, kept, label, renews, handed } => {
                let words = begin("transfer", 9).with(owner).with(round).with(trusted).with(kept_for(*kept));
                let words = words.with(label).with(if *renews { "1" } else { "" }).with(from);
                match handed {
                    Some(token) => words.with(token),
                    None => words.with(""),
                }
            }
            Self::Inspect | Self::Time => lock.inspection(prefix),
        }
    }
}

impl Op {
    /// The words of the operation for the hot script, if that can handle it.
    pub(crate) fn hot_words(
        &self,
        prefix: &str,
        lock: &LockId,
        round: u64,
        time: TrustedTime,
    ) -> Option<Words> {
        let LockId { kind, owner, ref name, .. } = *lock;
        if !matches!(kind, Kind::Lock | Kind::Mutex | Kind::Fair) {
            return None;
        }
        // Who has a fair lock expects that others wait, for whom the hot script does nothing.
        let expects_waiters = kind == Kind::Fair;
        let key = || Words::new(1).with(format_args!("{prefix}{{{name}}}"));
        let begin = |verb| key().text(verb).text(kind.slot()).with(owner).number(round);
        match self {
            Self::Acquire { kept, label, before: None, ticket: None, first: 0, .. } => {
                Some(begin("acquire").number(time.low).number(millis(*kept + time.width)).text(label))
            }
            Self::Release { holds: 0, leaving: Leaving::Lease(token), place: None } if !expects_waiters => {
                Some(begin("release").number(*token))
            }
            Self::Time => Some(key().text("time")),
            _ => None,
        }
    }
}

impl LockId {
    /// For what no owner asks.
    pub(crate) fn of_nobody(name: Arc<str>, kind: Kind) -> Self {
        Self { name, kind, permit: None, owner: Owner::of_nobody(uuid::Uuid::nil()) }
    }

    /// What tells who holds it.
    pub(crate) fn inspection(&self, prefix: &str) -> Words {
        self.begin(prefix, "inspect", 1)
    }

    /// The keys of all names, and the arguments that each operation begins with.
    fn begin(&self, prefix: &str, verb: &str, args: usize) -> Words {
        let Self { name, kind, permit, .. } = self;
        let words = if *kind == Kind::Several {
            let names = split_names(name);
            let keys = Words::new(2 * names.len());
            let keys = names.iter().fold(keys, |keys, name| with_keys(keys, prefix, name));
            keys.with(verb).with(names.len())
        } else if kind.is_shared() {
            with_shared_keys(Words::new(2), prefix, name).with(verb).with(1)
        } else {
            with_keys(Words::new(2), prefix, name).with(verb).with(1)
        };
        let words = words.with(args);
        match permit {
            Some(Permit { number, of }) => words.with(format_args!("{number}/{of}")),
            None => words.with(kind.slot()),
        }
    }
}

/// The last arguments of a release: why, the channels of waiters, and the ticket whose place is
/// given up, or that takes a place.
fn left(words: Words, leaving: Leaving, prefix: &str, place: &str) -> Words {
    let words = match leaving {
        Leaving::Lease(token) | Leaving::Broken(token) => words.with(token).with(""),
        Leaving::Undone(first) => words.with("").with(first),
    };
    let breaks = if matches!(leaving, Leaving::Broken(_)) { "1" } else { "" };
    words.with(WakeChannelPrefix(prefix)).with(place).with(breaks)
}

/// Since when somebody waits, in microseconds.
fn arrived(words: Words, Arrival { since, waited }: Arrival) -> Words {
    words.with(since.as_micros()).with(waited.as_micros())
}

/// Milliseconds, rounded up: an entry outlives its lease, never the reverse.
fn millis(time: Duration) -> u128 {
    time.as_nanos().div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u64) -> Owner {
        Owner::new(uuid::Uuid::from_u128(7), number)
    }

    fn lock(kind: Kind) -> LockId {
        LockId { name: "a".into(), kind, permit: None, owner: owner(3) }
    }

    fn words(lock: &LockId, op: &Op) -> (Vec<String>, Vec<String>) {
        let time = TrustedTime { low: 1_790_000_000_000_000, width: Duration::from_micros(999) };
        let words = op.words("q:", lock, 5, time);
        (words.keys().map(str::to_owned).collect(), words.args().map(str::to_owned).collect())
    }

    fn acquire() -> Op {
        let kept = Duration::from_micros(9_999_002);
        Op::Acquire { kept, label: "".into(), before: None, ticket: None, arrival: None, first: 0 }
    }

    /// The example of docs/PROTOCOL.md.
    #[test]
    fn an_acquire_and_a_release_are_as_short_as_they_can_be() {
        let (keys, args) = words(&lock(Kind::Lock), &acquire());
        assert_eq!(keys, ["q:{a}", "q:waiting:{a}"]);
        let me = &*owner(3).to_string();
        assert_eq!(args, ["acquire", "1", "6", "lock", me, "5", "1790000000000000", "10001", ""]);
        let release = Op::Release { holds: 0, leaving: Leaving::Lease(17), place: None };
        let (_, args) = words(&lock(Kind::Lock), &release);
        assert_eq!(args, ["release", "1", "9", "lock", me, "0", "5", "17", "", "q:wake:", "", ""]);
    }

    #[test]
    fn there_are_as_many_arguments_as_are_said() {
        let kept = Duration::from_secs(1);
        let label: Arc<str> = "web1".into();
        let ticket = || Some(Ticket { owner: owner(4), label: label.clone() });
        let arrival = Arrival { since: kept, waited: kept };
        let place = PlaceWanted { ticket: ticket().unwrap(), arrival };
        let leaving = Leaving::Undone(2);
        let waiting = |before, ticket, first| {
            let label = label.clone();
            Op::Acquire { kept, label, before, ticket, arrival: None, first }
        };
        let ops = [
            acquire(),
            waiting(ticket(), None, 0),
            waiting(None, ticket(), 0),
            waiting(None, None, 2),
            Op::Extend { holds: 1, kept, label: label.clone(), token: 7, heals: true, first: 0 },
            Op::Extend { holds: 1, kept, label: label.clone(), token: 7, heals: false, first: 2 },
            Op::Release { holds: 2, leaving, place: ticket() },
            Op::Release { holds: 0, leaving: Leaving::Broken(9), place: None },
            Op::Withdraw { leaving, place },
            Op::Transfer { from: owner(4), kept, label: label.clone(), renews: true, handed: None },
            Op::Inspect,
            Op::Time,
        ];
        let permit = Some(Permit { number: 3, of: 16 });
        let locks = [
            lock(Kind::Lock),
            lock(Kind::Write),
            LockId { name: "a+b".into(), ..lock(Kind::Several) },
            LockId { permit, ..lock(Kind::Semaphore) },
            lock(Kind::PlainMutex),
        ];
        for (op, lock) in ops.iter().flat_map(|op| locks.iter().map(move |lock| (op, lock))) {
            let (keys, args) = words(lock, op);
            let number = |i: usize| args[i].parse::<usize>().unwrap();
            assert_eq!((keys.len(), args.len()), (2 * number(1), 3 + number(2)), "{op:?} of {lock:?}");
        }
    }
}
