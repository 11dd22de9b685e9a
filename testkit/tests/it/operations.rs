//! Random operations of the lock's script, as clients send them and as nobody should, and random commands between them.

use std::time::SystemTime;

use crate::dice::Dice;

/// What is sent to both servers.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// A call of the script: its keys and its arguments.
    Script(Vec<String>, Vec<String>),
    /// A command of a client.
    Command(Vec<String>),
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const OWNERS: [&str; 10] =
    ["u1:1", "u1:1", "u1:1", "u1:1", "u1:2", "u2:1", "u2:1", "u2:33", "u3:1", "nobody"];
const ODD: [&str; 12] = [
    "",
    "0",
    "-1",
    "x",
    "1e3",
    "0x10",
    " 7",
    "9223372036854775807",
    "99999999999999999999",
    "round",
    "nan",
    "1.5",
];

/// What a few lives are long (ms): none of these ends while a batch is compared, but for those that are over at once.
const LIVES: [&str; 9] =
    ["60000", "30000", "90000", "3600000", "60000", "30000", "0", "-5", "9223372036854775000"];

/// A call, or now and then a command.
pub(crate) fn request(dice: &mut Dice) -> Request {
    if dice.happens(80) {
        return Request::Command(command(dice));
    }
    let (mut keys, mut args) = (Vec::new(), Vec::new());
    for _ in 0..dice.one_of(&[1, 1, 1, 2, 3, 8]) {
        operation(dice, &mut keys, &mut args);
    }
    if dice.happens(10) {
        let most = args.len().try_into().unwrap();
        args.truncate(dice.below(most).try_into().unwrap());
    }
    if dice.happens(5) {
        keys.pop();
    }
    Request::Script(keys, args)
}

fn lock(dice: &mut Dice) -> String {
    format!("quorate:{{{}}}", dice.one_of(&NAMES))
}

/// Adds one operation to a call.
fn operation(dice: &mut Dice, keys: &mut Vec<String>, args: &mut Vec<String>) {
    const VERBS: [(&str, bool); 9] = [
        ("acquire", false),
        ("acquire", false),
        ("release", true),
        ("release", true),
        ("queue", true),
        ("extend", false),
        ("withdraw", true),
        ("transfer", false),
        ("inspect", false),
    ];
    let (verb, with_queue) = dice.one_of(&VERBS);
    let verb = if dice.happens(2) { "steal" } else { verb };
    let name = dice.one_of(&NAMES);
    keys.push(format!("quorate:{{{name}}}"));
    if with_queue {
        keys.push(format!("quorate:waiting:{{{name}}}"));
    }
    args.push(verb.to_owned());
    for word in words(dice, verb) {
        args.push(if dice.happens(8) { dice.one_of(&ODD).to_owned() } else { word });
    }
    match verb {
        "withdraw" => args.extend(standing(dice)),
        "queue" if dice.happens(300) => args.extend(vec![String::new(); 3]),
        "queue" => args.extend(standing(dice)),
        _ => {}
    }
}

/// The arguments of a verb, as clients send them, without a place in a queue.
fn words(dice: &mut Dice, verb: &str) -> Vec<String> {
    let owner = dice.one_of(&OWNERS).to_owned();
    let count = dice.one_of(&["0", "1", "1", "2"]).to_owned();
    let life = dice.one_of(&LIVES).to_owned();
    let round = dice.one_of(&["3", "20", "20", "20", "20", "20", "20", "21", "1e1"]).to_owned();
    match verb {
        "acquire" | "extend" => vec![owner, count, life, round],
        "release" => vec![owner, count, round, "quorate:wake:".to_owned()],
        "transfer" => vec![owner, count, life, round, dice.one_of(&OWNERS).to_owned()],
        "withdraw" => vec![owner, count, round],
        "queue" => vec![owner, count, life, round, dice.one_of(&["", "u1:2", "u2:33"]).to_owned()],
        _ => Vec::new(),
    }
}

/// A ticket, since when, and for how long. Two servers' clocks are not the same: where the moment is odd, so that each takes
/// what its own clock says, the time waited is so long that the place among others is the same all the same.
fn standing(dice: &mut Dice) -> Vec<String> {
    const FORTNIGHT: u128 = 1_000_000_000_000;
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let ticket = dice.one_of(&OWNERS).to_owned();
    if dice.happens(50) {
        let waited = FORTNIGHT * u128::from(1 + dice.below(40));
        let since = dice.one_of(&["", "x", "0", "1e3", "0x10", "nan", "-7"]).to_owned();
        return vec![ticket, since, waited.to_string()];
    }
    let waited = u128::from(dice.below(300_000));
    let ahead = u128::from(dice.below(100_000));
    vec![ticket, (now - waited + ahead).to_string(), waited.to_string()]
}

/// A command that plants what a lock does not expect, takes something away, or asks.
fn command(dice: &mut Dice) -> Vec<String> {
    let key = if dice.happens(500) { lock(dice) } else { lock(dice).replace("quorate:", "quorate:waiting:") };
    let owner = dice.one_of(&OWNERS);
    let odd = dice.one_of(&ODD);
    let (life, score) = (dice.one_of(&LIVES), dice.below(1000));
    let command = match dice.below(24) {
        0 => format!("SET {key} {owner} PX {life}"),
        1 => format!("SET {key} {owner} NX"),
        2 => format!("HSET {key} {owner} {score} round 7"),
        3 => format!("HSET {key} f1 a f2 b f3 c f4 d f5 e f6 f f7 g f8 h {owner} 1"),
        4 => format!("HSET {key} {owner} x round {score}"),
        5 => format!("ZADD {key} {score} {owner} 0.1 {owner} 1e18 far:1"),
        6 => format!("ZADD {key} CH {score}.25 {owner}"),
        7 => return many(key, score),
        8 => format!("PEXPIRE {key} {life}"),
        9 => format!("HINCRBY {key} round {score}"),
        10 => format!("ZPOPMIN {key} 3"),
        11 => return ["ZADD", &key, odd, owner].map(str::to_owned).to_vec(),
        12 => return ["PEXPIRE", &key, odd].map(str::to_owned).to_vec(),
        13 => return ["HINCRBY", &key, owner, odd].map(str::to_owned).to_vec(),
        14 => return ["SET", &key, odd, "PX", odd].map(str::to_owned).to_vec(),
        _ => format!("DEL {key}"),
    };
    command.split(' ').map(str::to_owned).collect()
}

/// A queue that is full, or nearly.
fn many(key: String, first: u64) -> Vec<String> {
    let members = (0..1020 + first % 8).flat_map(|i| [(first + i).to_string(), format!("u9:{i}")]);
    ["ZADD".to_owned(), key].into_iter().chain(members).collect()
}
