//! Operations of the lock's script, in the form in which the library asks for them.

use super::lab::{ALL, LOCK, QUEUE, READ_WRITE, RECORD};

pub(super) const A: &str = "00000000-0000-0000-0000-00000000000a:1";
pub(super) const B: &str = "00000000-0000-0000-0000-00000000000b:1";
pub(super) const C: &str = "00000000-0000-0000-0000-00000000000c:77";

/// One operation. What is not said is a hold of 5 seconds in the client's first round, by a token that is proposed now, or
/// that was granted last; kept from others for 6 seconds.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    verb: &'static str,
    /// Those of each name.
    keys: Vec<[String; 3]>,
    owner: String,
    count: u64,
    ttl: u64,
    round: u64,
    token: Option<String>,
    kept: u64,
    /// The last argument: versions, whether it heals, who has the lock, or whether nobody has seen the token.
    last: String,
    before: String,
    place: Option<[String; 3]>,
}

fn operation(verb: &'static str, owner: &str, count: u64, last: &str) -> Operation {
    Operation {
        verb,
        keys: vec![[LOCK, RECORD, QUEUE].map(str::to_owned)],
        owner: owner.to_owned(),
        count,
        ttl: 5000,
        round: 1,
        token: None,
        kept: 6000,
        last: last.to_owned(),
        before: String::new(),
        place: None,
    }
}

pub(super) fn acquire(owner: &str) -> Operation {
    operation("acquire", owner, 1, "")
}

/// Without a place, until it is given one.
pub(super) fn queue(owner: &str) -> Operation {
    operation("queue", owner, 1, "")
}

/// It heals, until it is said not to.
pub(super) fn extend(owner: &str) -> Operation {
    operation("extend", owner, 1, "1")
}

pub(super) fn release(owner: &str) -> Operation {
    operation("release", owner, 0, "0")
}

/// It has to be given a place.
pub(super) fn withdraw(owner: &str) -> Operation {
    operation("withdraw", owner, 0, "")
}

pub(super) fn transfer(from: &str, to: &str) -> Operation {
    operation("transfer", to, 1, from)
}

pub(super) fn inspect() -> Operation {
    operation("inspect", "", 0, "")
}

/// Where there may be several holders, whether this one is.
pub(super) fn whether(owner: &str) -> Operation {
    operation("inspect", "", 0, owner)
}

/// The keys of another lock: the lock, its record, and its queue.
fn keys_of(lock: &str) -> [String; 3] {
    [lock.to_owned(), format!("fence:{{{lock}}}"), format!("waiting:{{{lock}}}")]
}

impl Operation {
    /// On another lock, whose keys have no common name.
    pub(super) fn on(self, lock: &str) -> Self {
        Self { keys: vec![keys_of(lock)], ..self }
    }

    /// On these names at once.
    pub(super) fn on_all(self, locks: &[&str]) -> Self {
        Self { keys: locks.iter().map(|lock| keys_of(lock)).collect(), ..self }
    }

    /// On this permit of so many.
    pub(super) fn permit(self, number: u32, of: u32) -> Self {
        let queue = self.keys[0][2].clone();
        Self { keys: vec![[format!("{LOCK}:{number}/{of}"), format!("{RECORD}:{number}"), queue]], ..self }
    }

    pub(super) fn count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    pub(super) fn ttl(self, ttl: u64) -> Self {
        Self { ttl, ..self }
    }

    pub(super) fn round(self, round: u64) -> Self {
        Self { round, ..self }
    }

    pub(super) fn token(self, token: u64) -> Self {
        Self { token: Some(token.to_string()), ..self }
    }

    /// With the token that the lock has.
    pub(super) fn same_token(self) -> Self {
        Self { token: Some(String::new()), ..self }
    }

    pub(super) fn kept(self, kept: u64) -> Self {
        Self { kept, ..self }
    }

    /// Without trust in clocks: these versions were watched.
    pub(super) fn watched(self, versions: &[&str]) -> Self {
        Self { last: versions.iter().fold(",".to_owned(), |all, version| all + version + ","), ..self }
    }

    pub(super) fn heals_not(self) -> Self {
        Self { last: "0".to_owned(), ..self }
    }

    /// The grant came to nothing.
    pub(super) fn undoes(self) -> Self {
        Self { last: "1".to_owned(), ..self }
    }

    /// Its owner is not asked, and has this token.
    pub(super) fn breaks(self, token: u64) -> Self {
        Self { last: token.to_string(), ..self }
    }

    pub(super) fn before(self, ticket: &str) -> Self {
        Self { before: ticket.to_owned(), ..self }
    }

    pub(super) fn place(self, ticket: &str, since: u64, waited: u64) -> Self {
        Self { place: Some([ticket.to_owned(), since.to_string(), waited.to_string()]), ..self }
    }

    pub(super) fn keys(&self, kind: usize) -> Vec<String> {
        let needs = match self.verb {
            _ if kind == ALL => 3,
            "release" | "withdraw" | "queue" => 3,
            _ => 2,
        };
        self.keys.iter().flat_map(|keys| keys[..needs].to_vec()).collect()
    }

    pub(super) fn args(&self, kind: usize, proposal: &str, granted: &str) -> Vec<String> {
        let Self { verb, count, ttl, round, kept, .. } = self;
        let [owner, before] = [&self.owner, &self.before].map(|owner| named(kind, owner));
        let last =
            if ["transfer", "inspect"].contains(verb) { named(kind, &self.last) } else { self.last.clone() };
        let token = self.token.as_deref().unwrap_or(if *verb == "extend" { granted } else { proposal });
        let [ticket, since, waited] = self.place.clone().unwrap_or_default();
        let place = [named(kind, &ticket), since, waited].join(" ");
        let hold = format!(" {owner} {count} {ttl} {round} {token} {kept} {last}");
        let words = match *verb {
            "inspect" if kind == ALL => String::new(),
            "inspect" => format!(" {last}"),
            "release" => format!(" {owner} {count} {round} wake: {last}"),
            "withdraw" => format!(" {owner} {count} {round} {place}"),
            "acquire" if kind != ALL => hold,
            "acquire" | "queue" => format!("{hold} {before} {place} wake:"),
            _ => hold,
        };
        let names = format!(" {}", self.keys.len());
        let (verb, names) = match (*verb, kind) {
            ("queue", ALL) => ("acquire", &*names),
            (verb, ALL) => (verb, &*names),
            (verb, _) => (verb, ""),
        };
        format!("{verb}{names}{words}").split(' ').map(str::to_owned).collect()
    }
}

/// An owner as the script knows it: of a read-write lock as a writer, unless it says itself that it reads.
fn named(kind: usize, owner: &str) -> String {
    let is_plain = kind == READ_WRITE && !owner.is_empty() && !owner.starts_with("r:");
    if is_plain { format!("w:{owner}") } else { owner.to_owned() }
}
