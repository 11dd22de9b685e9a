//! Random commands that plant what a lock does not expect, take something away, or ask.

use crate::operations::{Draw, RECORD};

/// A command about a name's key, its queue, or, seldom, the master's record.
pub(crate) fn command(draw: &mut Draw) -> Vec<String> {
    if draw.dice.happens(6) {
        return about_record(draw);
    }
    let [name, queue] = draw.keys();
    if draw.dice.happens(500) { about_name(draw, &name) } else { about_queue(draw, &queue) }
}

/// From here on calls are refused, until the record is written again.
fn about_record(draw: &mut Draw) -> Vec<String> {
    match draw.dice.below(5) {
        0 => words(&["DEL", RECORD]),
        1 => words(&["HDEL", RECORD, "stamp"]),
        2 => words(&["HSET", RECORD, "state", "member", "stamp", "fedc9876"]),
        3 => words(&["SET", RECORD, "no record"]),
        _ => words(&["PEXPIRE", RECORD, "-1"]),
    }
}

fn about_name(draw: &mut Draw, key: &str) -> Vec<String> {
    let (owner, odd) = (draw.owner(), draw.odd());
    let (life, token) = (draw.life(), draw.moments.token(&mut draw.dice));
    let entry = draw.moments.entry(&mut draw.dice);
    let of_reader = format!("r:{owner}");
    match draw.dice.below(22) {
        0..3 => words(&["PEXPIRE", key, life]),
        3 => words(&["PEXPIRE", key, "-5"]),
        4 => words(&["HGETALL", key]),
        5..7 if draw.kind == "rw" => words(&["HSET", key, "kind", "rw", &of_reader, &entry]),
        5..7 if draw.kind == "semaphore" => words(&["HSET", key, "p:0", &entry, "o:p:0", owner]),
        5..7 => words(&["HSET", key, "x", &entry, "o:x", owner]),
        7 => words(&["HSET", key, "last", &format!("{token} {owner}")]),
        8 => words(&["HSET", key, draw.dice.one_of(&["fence", "last", "last_read", "last:0"]), &token]),
        9 => words(&["HSET", key, "kind", draw.dice.one_of(&["lock", "mutex", "rw", "semaphore/3"])]),
        10 => words(&["HDEL", key, draw.dice.one_of(&["kind", "x", "o:x", "queued", "last", "over"])]),
        11 if draw.dice.happens(300) => {
            words(&["HSET", key, draw.dice.one_of(&["x", "fence", "last", "kind"]), odd])
        }
        12 if draw.dice.happens(300) => words(&["SET", key, owner, "PX", life]),
        13 if draw.dice.happens(300) => words(&["HSET", key, owner, "1"]),
        _ => words(&["DEL", key]),
    }
}

fn about_queue(draw: &mut Draw, key: &str) -> Vec<String> {
    let (ticket, odd, life) = (draw.ticket(), draw.odd(), draw.life());
    let score = draw.dice.below(1000);
    match draw.dice.below(16) {
        0 => words(&["ZADD", key, &score.to_string(), &ticket]),
        1 => words(&["ZADD", key, "CH", &format!("{score}.25"), &ticket]),
        2 => many(key, score),
        3 => words(&["ZADD", key, odd, &ticket]),
        4 => words(&["ZREM", key, &ticket]),
        5 => words(&["ZPOPMIN", key, "3"]),
        6 => words(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
        7 => words(&["PEXPIRE", key, draw.dice.one_of(&[life, life, "-5", odd])]),
        8 if draw.dice.happens(300) => words(&["SET", key, "x", "PX", life]),
        _ => words(&["DEL", key]),
    }
}

/// A queue that is full, or nearly.
fn many(key: &str, first: u64) -> Vec<String> {
    let members = (0..1020 + first % 8).flat_map(|i| [(first + i).to_string(), format!("u9:{i}")]);
    ["ZADD".to_owned(), key.to_owned()].into_iter().chain(members).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
