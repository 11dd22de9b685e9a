//! Random operations of the lock's script, as clients send them and as nobody should, and random commands between them.

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

/// What is drawn from.
pub(crate) struct Draw {
    pub(crate) dice: Dice,
    pub(crate) moments: Moments,
    /// Whether operations are about several names.
    is_of_several: bool,
    /// Locks are permits.
    pub(crate) is_semaphore: bool,
    /// Locks are fair.
    pub(crate) is_fair: bool,
    /// Owners read or write.
    pub(crate) is_read: bool,
}

pub(crate) const MARKER: &str = "quorate:marker";
pub(crate) const MARK: &str = "0123abcd|0|its terms";

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const OWNERS: [&str; 10] =
    ["u1:1", "u1:1", "u1:1", "u1:1", "u1:2", "u2:1", "u2:1", "u2:33", "u3:1", "nobody"];
/// The same, of a read-write lock: most read.
const READERS_AND_WRITERS: [&str; 10] =
    ["r:u1:1", "r:u1:1", "r:u1:2", "w:u1:1", "w:u1:2", "r:u2:1", "r:u2:33", "w:u2:33", "r:u3:1", "nobody"];

/// What is no number, or an odd one. As times they are far from those of [`LIVES`] and from what is left of these.
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

/// What a few lives are long (ms): none of these ends while a batch is compared, but for those that are over at once.
const LIVES: [&str; 9] =
    ["60000", "30000", "90000", "3600000", "60000", "30000", "0", "0", "9223372036854775000"];

/// For how long a lock is kept from others (ms): for longer than a batch takes, or for no longer than its call.
const KEPT: [&str; 5] = ["0", "0", "60000", "30000", "90000"];

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        let (is_of_several, is_semaphore, is_fair, is_read) = (false, false, false, false);
        Self { dice: Dice(seed), moments: Moments::default(), is_of_several, is_semaphore, is_fair, is_read }
    }

    /// For the script of locks over several names.
    pub(crate) fn of_several(seed: u64) -> Self {
        Self { is_of_several: true, ..Self::new(seed) }
    }

    /// For the script of semaphores.
    pub(crate) fn of_permits(seed: u64) -> Self {
        Self { is_semaphore: true, ..Self::new(seed) }
    }

    /// For the script of fair locks.
    pub(crate) fn of_fair(seed: u64) -> Self {
        Self { is_fair: true, ..Self::new(seed) }
    }

    /// For the script of read-write locks.
    pub(crate) fn of_readers(seed: u64) -> Self {
        Self { is_read: true, ..Self::new(seed) }
    }

    /// A call, or now and then a command.
    pub(crate) fn request(&mut self) -> Request {
        if self.dice.happens(120) {
            return Request::Command(commands::command(self));
        }
        let (mut keys, mut args) = (Vec::new(), self.head().to_vec());
        for _ in 0..self.dice.one_of(&[1, 1, 1, 2, 3, 8]) {
            match self.is_of_several {
                true => self.operation_on_several(&mut keys, &mut args),
                false => self.operation(&mut keys, &mut args),
            }
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
        self.dice.one_of(if self.is_read { &READERS_AND_WRITERS } else { &OWNERS })
    }

    pub(crate) fn odd(&mut self) -> &'static str {
        self.dice.one_of(&ODD)
    }

    pub(crate) fn life(&mut self) -> &'static str {
        self.dice.one_of(&LIVES)
    }

    /// The names of a lock's key, of its record and of its queue.
    pub(crate) fn keys(&mut self) -> [String; 3] {
        let name = self.dice.one_of(&NAMES);
        ["quorate:", "quorate:fence:", "quorate:waiting:"].map(|prefix| format!("{prefix}{{{name}}}"))
    }

    /// The keys of an operation: a permit's, where locks are that.
    fn keys_of_one(&mut self) -> [String; 3] {
        let [lock, record, queue] = self.keys();
        if !self.is_semaphore {
            return [lock, record, queue];
        }
        let number = self.dice.below(3);
        [format!("{lock}:{number}/3"), format!("{record}:{number}"), queue]
    }

    /// What a call begins with: that of a client that knows the master, of one that has no guards, or of one that is to
    /// be refused.
    fn head(&mut self) -> [String; 3] {
        let (votes, not_yet) = (self.moments.votes_from(true), self.moments.votes_from(false));
        let [key, mark, votes_from] = match self.dice.below(1000) {
            0..60 => ["", "", ""],
            60..90 => [MARKER, "another|0|its terms", &votes],
            90..120 => [MARKER, MARK, &not_yet],
            120..125 => [MARKER, MARK, self.odd()],
            125..130 => ["quorate:{a}", MARK, &votes],
            _ => [MARKER, MARK, &votes],
        };
        [key.to_owned(), mark.to_owned(), votes_from.to_owned()]
    }

    /// Adds one operation to a call.
    fn operation(&mut self, keys: &mut Vec<String>, args: &mut Vec<String>) {
        const VERBS: [&str; 10] = [
            "acquire", "acquire", "release", "release", "queue", "extend", "extend", "withdraw", "transfer",
            "inspect",
        ];
        let drawn = self.dice.one_of(&VERBS);
        let verb = if self.dice.happens(2) { "steal" } else { drawn };
        let needs = match drawn {
            "release" | "queue" | "withdraw" => 3,
            _ => 2,
        };
        keys.extend(self.keys_of_one().into_iter().take(needs));
        args.push(verb.to_owned());
        for word in self.words(verb) {
            args.push(if self.dice.happens(8) { self.odd().to_owned() } else { word });
        }
        match verb {
            "withdraw" => args.extend(self.standing()),
            "queue" => args.extend(self.place()),
            _ => {}
        }
    }

    /// Adds one operation on several names to a call.
    fn operation_on_several(&mut self, keys: &mut Vec<String>, args: &mut Vec<String>) {
        const VERBS: [&str; 10] = [
            "acquire", "acquire", "acquire", "release", "release", "extend", "extend", "withdraw",
            "transfer", "inspect",
        ];
        let drawn = self.dice.one_of(&VERBS);
        let verb = if self.dice.happens(2) { "steal" } else { drawn };
        let names = self.dice.one_of(&[1, 1, 2, 2, 3]);
        keys.extend((0..names).flat_map(|_| self.keys()));
        let count = if self.dice.happens(4) { self.odd().to_owned() } else { names.to_string() };
        args.extend([verb.to_owned(), count]);
        for word in self.words(if verb == "acquire" { "queue" } else { verb }) {
            args.push(if self.dice.happens(8) { self.odd().to_owned() } else { word });
        }
        match verb {
            "withdraw" => args.extend(self.standing()),
            "acquire" => {
                args.extend(self.place());
            }
            _ => {}
        }
    }

    /// A place, or none, and what wake channels begin with.
    fn place(&mut self) -> Vec<String> {
        let mut place = if self.dice.happens(300) { vec![String::new(); 3] } else { self.standing() };
        if self.dice.happens(100) {
            place[0].clear(); // it waits, and comes for the last time
        }
        place.push("quorate:wake:".to_owned());
        place
    }

    /// The versions that were watched for long enough.
    fn watched(&mut self) -> String {
        let watched = self.moments.watched(&mut self.dice);
        if !self.is_of_several || watched.is_empty() {
            return watched;
        }
        let versions = watched.split(',').filter(|version| !version.is_empty());
        let of_owners =
            versions.flat_map(|version| OWNERS[3..].iter().map(move |owner| format!("{version}:{owner},")));
        of_owners.fold(",".to_owned(), |all, version| all + &version)
    }

    /// The arguments of a verb, as clients send them, without a place in a queue.
    fn words(&mut self, verb: &str) -> Vec<String> {
        let count = self.dice.one_of(&["0", "1", "1", "2"]);
        let round = self.dice.one_of(&["3", "20", "20", "20", "20", "20", "20", "21"]);
        let round = if self.dice.happens(4) { "1e1" } else { round };
        let owner = self.owner();
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        match verb {
            "release" => {
                let undoes = self.dice.one_of(&["0", "0", "1"]);
                return owned(&[owner, count, round, "quorate:wake:", undoes]);
            }
            "withdraw" => return owned(&[owner, count, round]),
            "inspect" if self.is_of_several => return Vec::new(),
            "inspect" => return owned(&[self.dice.one_of(&["", "", owner])]),
            "steal" => return Vec::new(),
            _ => {}
        }
        let mut words = owned(&[owner, count, self.life(), round]);
        let kept = if self.dice.happens(10) { self.life() } else { self.dice.one_of(&KEPT) };
        let token = match verb {
            "extend" => self.moments.token(&mut self.dice),
            "transfer" if self.dice.happens(500) => String::new(),
            _ => self.moments.proposal(&mut self.dice),
        };
        words.extend([token, kept.to_owned()]);
        words.push(match verb {
            "extend" => self.dice.one_of(&["0", "1"]).to_owned(),
            "transfer" => self.owner().to_owned(),
            _ => self.watched(),
        });
        if verb == "queue" {
            let before = self.dice.one_of(if self.is_read {
                &["", "r:u1:2", "w:u2:33"]
            } else {
                &["", "u1:2", "u2:33"]
            });
            words.push(before.to_owned());
        }
        words
    }

    /// A ticket, since when, and for how long. Two servers' clocks are not the same: where the moment is odd, so that each
    /// takes what its own clock says, the time waited is so long that the place among others is the same all the same.
    fn standing(&mut self) -> Vec<String> {
        const FORTNIGHT: u128 = 1_000_000_000_000;
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
        let ticket = self.owner().to_owned();
        if self.dice.happens(50) {
            let waited = FORTNIGHT * u128::from(1 + self.dice.below(40));
            let since = self.dice.one_of(&["", "x", "0", "1e3", "0x10", "nan", "-7"]).to_owned();
            return vec![ticket, since, waited.to_string()];
        }
        let waited = u128::from(self.dice.below(300_000));
        let ahead = u128::from(self.dice.below(100_000));
        vec![ticket, (now - waited + ahead).to_string(), waited.to_string()]
    }
}
