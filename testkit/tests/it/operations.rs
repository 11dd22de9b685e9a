//! Random operations of the scripts of locks, as clients send them and as nobody should, and random
//! commands between them.

use std::time::SystemTime;

use crate::commands;
use crate::dice::Dice;
use crate::moments::Moments;

/// What is sent to both servers.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// A call of the script: its keys and its arguments.
    Script(Vec<String>, Vec<String>),
    /// A command of a client.
    Command(Vec<String>),
}

/// What is drawn from, for one kind of lock.
pub(crate) struct Draw {
    pub(crate) dice: Dice,
    pub(crate) moments: Moments,
    /// The name of its script.
    pub(crate) kind: &'static str,
}

/// The key of the master's record, and its stamp.
pub(crate) const RECORD: &str = "quorate:master";
pub(crate) const STAMP: &str = "0123456789abcdef";

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Most of the time it is the same one, so that a lock is extended, left and entered again.
const OWNERS: [&str; 8] = ["u1:1", "u1:1", "u1:1", "u1:2", "u2:1", "u2:33", "u3:1", "nobody"];

/// What is no number, or an odd one. As times they are far from those of [`LIVES`] and from what is
/// left of these.
const ODD: [&str; 12] = [
    "",
    "0",
    "-",
    "x",
    "12345e3",
    "0xbc5ea8",
    " 12345000",
    "9223372036854775807",
    "99999999999999999999",
    "round",
    "nan",
    "1.5",
];

/// What a few lives are long (ms): none of these ends while a batch is compared.
const LIVES: [&str; 6] = ["60000", "30000", "90000", "3600000", "60000", "30000"];

/// The rounds of operations.
pub(crate) const ROUNDS: [&str; 8] = ["3", "20", "20", "20", "20", "20", "20", "21"];

impl Draw {
    pub(crate) fn new(kind: &'static str, seed: u64) -> Self {
        Self { dice: Dice(seed), moments: Moments::default(), kind }
    }

    /// A call, or now and then a command.
    pub(crate) fn request(&mut self) -> Request {
        if self.dice.happens(120) {
            return Request::Command(commands::command(self));
        }
        let (mut keys, mut args) = (Vec::new(), self.head());
        for _ in 0..self.dice.one_of(&[1, 1, 1, 2, 3, 8]) {
            self.operation(&mut keys, &mut args);
        }
        if self.dice.happens(10) {
            let most = args.len().try_into().unwrap();
            args.truncate(self.dice.below(most).try_into().unwrap());
        }
        if self.dice.happens(5) {
            keys.pop();
        }
        Request::Script(keys, args)
    }

    pub(crate) fn owner(&mut self) -> &'static str {
        self.dice.one_of(&OWNERS)
    }

    pub(crate) fn odd(&mut self) -> &'static str {
        self.dice.one_of(&ODD)
    }

    pub(crate) fn life(&mut self) -> &'static str {
        self.dice.one_of(&LIVES)
    }

    fn round(&mut self) -> &'static str {
        self.dice.one_of(&ROUNDS)
    }

    /// The keys of a name and of its queue.
    pub(crate) fn keys(&mut self) -> [String; 2] {
        keys_of(self.dice.one_of(&NAMES))
    }

    /// What an operation is about.
    fn slot(&mut self) -> &'static str {
        match self.kind {
            "fair" => "fair",
            "rw" => self.dice.one_of(&["read", "read", "read", "write"]),
            "semaphore" => self.dice.one_of(&["0/3", "0/3", "1/3", "2/3", "1/3", "0/2"]),
            _ => self.dice.one_of(&["lock", "lock", "lock", "lock", "lock", "lock", "lock", "mutex"]),
        }
    }

    /// A ticket, as the kind writes it.
    pub(crate) fn ticket(&mut self) -> String {
        let begins = if self.kind == "rw" { self.dice.one_of(&["r:", "r:", "w:"]) } else { "" };
        format!("{begins}{}", self.owner())
    }

    /// What a call begins with: that of a client that knows the master, or of one that is to be
    /// refused.
    fn head(&mut self) -> Vec<String> {
        let (votes, not_yet) = (self.moments.votes_from(true), self.moments.votes_from(false));
        let [key, stamp, votes_from] = match self.dice.below(1000) {
            0..30 => [RECORD, "another", &votes],
            30..60 => [RECORD, STAMP, &not_yet],
            60..65 => ["quorate:{a}", STAMP, &votes],
            _ => [RECORD, STAMP, &votes],
        };
        [key, stamp, votes_from, "94300"].map(str::to_owned).into()
    }

    /// Adds one operation to a call.
    fn operation(&mut self, keys: &mut Vec<String>, args: &mut Vec<String>) {
        const VERBS: [&str; 9] = [
            "acquire", "acquire", "acquire", "release", "release", "extend", "extend", "transfer", "inspect",
        ];
        let drawn = self.dice.one_of(&VERBS);
        let verb = if self.dice.happens(2) { "steal" } else { drawn };
        let has_several = self.kind == "exclusive" && verb != "inspect";
        let names = if has_several { self.dice.one_of(&[1, 1, 1, 1, 2, 3]) } else { 1 };
        let first = self.dice.below(4);
        for name in (first..).take(names).map(|place| NAMES[usize::try_from(place).unwrap() % NAMES.len()]) {
            keys.extend(keys_of(name));
        }
        let count = if self.dice.happens(3) { self.odd().to_owned() } else { names.to_string() };
        let words = self.words(verb);
        args.extend([verb.to_owned(), count, words.len().to_string()]);
        let of_shared = ["plain", "redisson"].contains(&self.kind);
        for (place, word) in words.into_iter().enumerate() {
            let may_be_odd = match place {
                // A slot says nothing to the layouts of others, and is nothing odd to those that
                // are ours.
                0 => of_shared,
                // Since when, and for how long: `place` has odd ones, which say the same to both
                // servers.
                8 | 9 if verb == "acquire" => false,
                9 | 10 if verb == "release" => false,
                _ => true,
            };
            let is_odd = self.dice.happens(6) && may_be_odd;
            args.push(if is_odd { self.odd().to_owned() } else { word });
        }
    }

    /// The arguments of a verb, as clients send them.
    fn words(&mut self, verb: &str) -> Vec<String> {
        let (slot, owner, round, kept) = (self.slot(), self.owner(), self.round(), self.life());
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let trusted = self.moments.proposal(&mut self.dice);
        let label = if slot == "read" { "" } else { self.dice.one_of(&["", "", "", "its work"]) };
        let holds = self.dice.one_of(&["1", "1", "2"]);
        match verb {
            "acquire" => {
                let mut words = owned(&[slot, owner, round, &trusted, kept, label]);
                let may_be_short = !["fair", "rw", "semaphore"].contains(&self.kind);
                if !may_be_short || self.dice.happens(500) {
                    let before = if self.dice.happens(300) { self.ticket() } else { String::new() };
                    words.push(before);
                    words.extend(self.place());
                    words.push("quorate:wake:".to_owned());
                }
                words
            }
            "extend" => {
                let (token, heals) = (self.moments.token(&mut self.dice), self.dice.one_of(&["", "1", "1"]));
                let mut words = owned(&[slot, owner, holds, round, &trusted, kept, label, &token, heals]);
                if self.dice.happens(200) {
                    words.push(self.dice.one_of(&["0", "3", "20"]).to_owned());
                }
                words
            }
            "release" => {
                let holds = self.dice.one_of(&["0", "0", "0", "1"]);
                let token = self.moments.token(&mut self.dice);
                let (token, first) = self.dice.one_of(&[(&*token, ""), (&*token, ""), ("", "3"), ("", "20")]);
                let breaks = self.dice.one_of(&["", "", "", "1"]);
                let mut words = owned(&[slot, owner, holds, round, token, first, "quorate:wake:"]);
                let [place, since, waited] = self.place();
                let takes_it = self.dice.happens(200) && !place.is_empty();
                words.extend([place, breaks.to_owned()]);
                if takes_it {
                    words.extend([since, waited]);
                }
                words
            }
            "transfer" => {
                let (from, renews) = (self.owner(), self.dice.one_of(&["", "1"]));
                let handed = self.moments.token(&mut self.dice);
                let mut words = owned(&[slot, owner, round, &trusted, kept, label, renews, from]);
                words.extend(self.dice.one_of(&[None, None, Some(handed), Some(String::new())]));
                words
            }
            "inspect" => owned(&[slot]),
            _ => Vec::new(),
        }
    }

    /// A ticket, since when, and for how long; or nothing. Two servers' clocks are not the same:
    /// where the moment is odd, so that each takes what its own clock says, the time waited is so
    /// long that the place among others is the same all the same.
    fn place(&mut self) -> [String; 3] {
        const FORTNIGHT: u128 = 1_000_000_000_000;
        if self.dice.happens(300) {
            return Default::default();
        }
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
        let ticket = self.ticket();
        if self.dice.happens(50) {
            let waited = FORTNIGHT * u128::from(1 + self.dice.below(40));
            let since = self.dice.one_of(&["", "x", "0", "1e3", "0x10", "nan", "-7"]).to_owned();
            return [ticket, since, waited.to_string()];
        }
        let waited = u128::from(self.dice.below(300_000));
        let ahead = u128::from(self.dice.below(100_000));
        [ticket, (now - waited + ahead).to_string(), waited.to_string()]
    }
}

fn keys_of(name: &str) -> [String; 2] {
    ["quorate:", "quorate:waiting:"].map(|prefix| format!("{prefix}{{{name}}}"))
}
