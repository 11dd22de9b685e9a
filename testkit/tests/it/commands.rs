//! Random commands that plant what a lock does not expect, take something away, or ask.

use crate::operations::{Draw, MARKER};

/// A command about a lock's key, its record, its queue, or, seldom, the master's marker.
pub(crate) fn command(draw: &mut Draw) -> Vec<String> {
    if draw.dice.happens(6) {
        return about_marker(draw);
    }
    let (which, [lock, record, queue]) = (draw.dice.below(3), draw.keys());
    match which {
        0 => about_record(draw, record),
        1 => about_lock(draw, lock),
        _ => about_lock(draw, queue),
    }
}

/// From here on calls are refused, until the marker is written again.
fn about_marker(draw: &mut Draw) -> Vec<String> {
    match draw.dice.below(3) {
        0 => words(&["DEL", MARKER]),
        1 => words(&["SET", MARKER, "fedc9876|0|its terms"]),
        _ => words(&["PEXPIRE", MARKER, "-1"]),
    }
}

fn about_record(draw: &mut Draw, record: String) -> Vec<String> {
    let owner = draw.owner();
    let text = draw.moments.record(&mut draw.dice, owner);
    match draw.dice.below(8) {
        0..2 => words(&["SET", &record, &text, "PX", "3600000"]),
        2 if draw.dice.happens(200) => words(&["SET", &record, draw.odd()]),
        3 if draw.dice.happens(200) => words(&["HSET", &record, owner, "1"]),
        _ => words(&["DEL", &record]),
    }
}

fn about_lock(draw: &mut Draw, key: String) -> Vec<String> {
    let owner = draw.owner();
    let odd = draw.odd();
    if draw.is_semaphore && draw.dice.happens(300) {
        return words(&["ZADD", &key, "9e15", "0/5"]); // somebody says that there are five
    }
    let (life, score) = (draw.life(), draw.dice.below(1000));
    let command = match draw.dice.below(26) {
        0 => format!("SET {key} {owner} PX {life}"),
        1 => format!("SET {key} {owner} NX"),
        2 => format!("HSET {key} {owner} {score} round 7"),
        3 => format!("HSET {key} f1 a f2 b f3 c f4 d f5 e f6 f f7 g f8 h {owner} 1"),
        4 => format!("HSET {key} {owner} x round {score}"),
        5 => format!("ZADD {key} {score} {owner} 0.1 {owner} 1e18 far:1"),
        6 => format!("ZADD {key} CH {score}.25 {owner}"),
        7 => return many(key, score),
        8 => format!("PEXPIRE {key} {}", draw.dice.one_of(&[life, life, "-5"])),
        9 if draw.is_fair => return words(&["HSET", &key, owner, "1 fair"]),
        9 => format!("HINCRBY {key} round {score}"),
        10 => format!("ZPOPMIN {key} 3"),
        11 => return words(&["ZADD", &key, odd, owner]),
        12 => return words(&["PEXPIRE", &key, odd]),
        13 => return words(&["HINCRBY", &key, owner, odd]),
        14 => return words(&["SET", &key, odd, "PX", odd]),
        15 => format!("HSET {key} {owner} 1 round 3 fence {}", draw.moments.token(&mut draw.dice)),
        16 => return words(&["HSET", &key, "before", &draw.moments.record(&mut draw.dice, owner)]),
        17 => return words(&["HSET", &key, draw.dice.one_of(&["fence", "before"]), odd]),
        _ => format!("DEL {key}"),
    };
    command.split(' ').map(str::to_owned).collect()
}

/// A queue that is full, or nearly.
fn many(key: String, first: u64) -> Vec<String> {
    let members = (0..1020 + first % 8).flat_map(|i| [(first + i).to_string(), format!("u9:{i}")]);
    ["ZADD".to_owned(), key].into_iter().chain(members).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
