//! Scripts without their guards, to show what those are for: masters that vote whatever they
//! forgot, that end leases by their own clocks, and that say what these show only where they are
//! asked (`inspect`).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use quorate::seam::Script;

/// What the scripts have, and what they get in its place.
const CHANGES: [(&str, &str); 3] = [
    ("if forgot then return 'FORGOT", "if true then return nil end if forgot then return 'FORGOT"),
    ("min(time, trusts), max(time, trusts)", "time, time"),
    ("replies[1] = not forgot and (now or 0)", TIME_IF_ASKED),
];

const TIME_IF_ASKED: &str =
    "replies[1] = 0 for _, word in ipairs(ARGV) do if word == 'inspect' then replies[1] = now or 0 end end";

/// Those that were made, by their names.
static MADE: Mutex<BTreeMap<&str, &Script>> = Mutex::new(BTreeMap::new());

/// The same script without its guards, if it is one by which masters vote.
///
/// # Panics
///
/// Where the script has no such guards any more.
pub fn trusting(script: &'static Script) -> &'static Script {
    if ["decree", "hot"].contains(&script.name()) {
        return script;
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(script.name()).or_insert_with(|| {
        let source = CHANGES.iter().fold(script.source().to_owned(), |source, (guard, instead)| {
            assert!(source.contains(guard), "no {guard} in {}", script.name());
            source.replace(guard, instead)
        });
        // There are a few of them, and they are needed until the end.
        Box::leak(Box::new(Script::new(script.name(), source.leak())))
    })
}
