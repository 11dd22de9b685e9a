//! Calls and answers in words, for the trace.

use quorate::Refusal;
use quorate::seam::{Call, Failure, Value};

use crate::server::KEYS_PER_NAME;

/// What the arguments of each verb are, as section 7 of docs/PROTOCOL.md says; those without a name
/// are left out.
const NAMES: [(&str, &[&str]); 5] = [
    ("acquire", &["", "owner", "round", "trusted", "kept", "", "before", "ticket", "since", "waited", ""]),
    ("extend", &["", "owner", "holds", "round", "trusted", "kept", "", "token", "heals", "first"]),
    ("release", &["", "owner", "holds", "round", "token", "first", "", "place", "breaks", "since", "waited"]),
    ("transfer", &["", "to", "round", "trusted", "kept", "", "renews", "from", "handed"]),
    ("inspect", &[]),
];

/// An operation: its verb, the lock and the permit, and its arguments by their names.
pub(super) fn describe(call: &Call) -> String {
    let lock: Vec<_> = call.words.keys().step_by(KEYS_PER_NAME).map(name_of).collect();
    let lock = lock.join("+");
    let args: Vec<&str> = call.words.args().collect();
    let [verb, _, _, slot, ..] = args[..] else { return lock };
    if let ["decree", _, _, _, _, generation, ballot, value, _] = args[..] {
        return format!("decree generation={generation} ballot={ballot} {}", value.replace('\n', " "));
    }
    let names = NAMES.iter().find(|(name, _)| *name == verb).map_or(&[][..], |(_, names)| names);
    let named = names.iter().zip(&args[3..]).filter(|(name, word)| !name.is_empty() && !word.is_empty());
    let slot = if PLAIN.contains(&slot) { String::new() } else { format!(" ({slot})") };
    named.fold(format!("{verb} {lock}{slot}"), |line, (name, word)| format!("{line} {name}={word}"))
}

/// What an operation is about that need not be shown: the lock as such.
const PLAIN: [&str; 5] = ["lock", "mutex", "fair", "plain", "redisson"];

/// The lock that a key is of.
fn name_of(key: &str) -> &str {
    key.rsplit_once('{').map_or(key, |(_, name)| name).trim_end_matches('}')
}

/// What the master said to a message.
pub(super) fn tell_reply(reply: &Result<Value, String>) -> String {
    match reply {
        Ok(Value::List(items)) => {
            let shown = items.iter().skip(1).map(|item| tell(&Ok(item.clone())));
            shown.collect::<Vec<_>>().join("; ")
        }
        other => format!("{other:?}"),
    }
}

/// What the master said.
pub(super) fn tell(answer: &Result<Value, Failure>) -> String {
    match answer {
        Ok(Value::Int(1)) => "granted".to_owned(),
        Ok(Value::Int(0)) => "absent".to_owned(),
        Ok(Value::Int(token)) => format!("granted token={token}"),
        Ok(Value::List(items)) => tell_items(&items.iter().map(tell_item).collect::<Vec<_>>()),
        Err(Failure::Refused { reason: Refusal::Other, detail }) => detail.to_string(),
        other => format!("{other:?}"),
    }
}

fn tell_items(items: &[String]) -> String {
    match items {
        [held, owner, holds, left, token, _, ahead, ..] if held == "held" => {
            format!("held by {owner} holds={holds} left={left} token={token} ahead={ahead}")
        }
        other => other.join(" "),
    }
}

fn tell_item(item: &Value) -> String {
    match item {
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}
