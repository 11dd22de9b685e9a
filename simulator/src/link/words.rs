//! Calls and answers in words, for the trace.

use quorate::Refusal;
use quorate::seam::{Call, Failure, Value};

use crate::server::is_about_several;

/// What the words of each verb are, as the headers of the Lua files say.
const NAMES: [(&str, &[&str]); 7] = [
    ("acquire", &["owner", "holds", "ttl", "round", "fence", "kept", "watched"]),
    (
        "queue",
        &[
            "owner", "holds", "ttl", "round", "fence", "kept", "watched", "before", "ticket", "since",
            "waited",
        ],
    ),
    ("extend", &["owner", "holds", "ttl", "round", "fence", "kept", "heals"]),
    ("release", &["owner", "holds", "round", "", "undoes"]),
    ("withdraw", &["owner", "holds", "round", "ticket", "since", "waited"]),
    ("transfer", &["to", "holds", "ttl", "round", "fence", "kept", "from"]),
    ("inspect", &[]),
];

/// An operation: its verb, the lock, and its arguments by their names.
pub(super) fn describe(call: &Call) -> String {
    let is_about_several = is_about_several(call);
    let per_name = if is_about_several { 3 } else { call.words.keys().len().max(1) };
    let lock: Vec<_> = call.words.keys().step_by(per_name).map(name_of).collect();
    let lock = lock.join("+");
    let mut args = call.words.args();
    let verb = args.next().unwrap_or_default();
    let args = args.skip(usize::from(is_about_several));
    // An acquire of several names takes a place as it is refused.
    let named = if is_about_several && verb == "acquire" { "queue" } else { verb };
    let names = NAMES.iter().find(|(name, _)| *name == named).map_or(&[][..], |(_, names)| names);
    let named = names.iter().zip(args).filter(|(name, word)| !name.is_empty() && !word.is_empty());
    named.fold(format!("{verb} {lock}"), |line, (name, word)| format!("{line} {name}={word}"))
}

/// The lock that a key is of, or the permit.
fn name_of(key: &str) -> String {
    key.rsplit_once('{').map_or(key, |(_, name)| name).replace('}', "")
}

/// What the master said.
pub(super) fn tell(answer: &Result<Value, Failure>) -> String {
    match answer {
        Ok(Value::Int(1)) => "granted".to_owned(),
        Ok(Value::Int(0)) => "absent".to_owned(),
        Ok(Value::Int(token)) => format!("granted fence={token}"),
        Ok(Value::List(items)) => tell_items(&items.iter().map(tell_item).collect::<Vec<_>>()),
        Err(Failure::Refused { reason: Refusal::Other, detail }) => detail.to_string(),
        other => format!("{other:?}"),
    }
}

fn tell_items(items: &[String]) -> String {
    match items {
        [held, owner, holds, ttl, ahead @ ..] if held == "held" => {
            let ahead = ahead.first().map(|ahead| format!(" ahead={ahead}")).unwrap_or_default();
            format!("held by {owner} holds={holds} ttl={ttl}{ahead}")
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
