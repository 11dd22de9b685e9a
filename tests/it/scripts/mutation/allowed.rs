//! Changes that nobody can notice, and why.

use std::collections::BTreeMap;

use super::{File, Mutant, labels::labels};

/// For each reason the changes that make no difference, as `LABEL: CHANGE`.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "for speed: a command without its words does nothing",
        &["rw-gone-taken-out: #gone > 0 -> true", "rw-gone-taken-out: > -> >="],
    ),
    ("for speed: a queue that is none cannot be read", &["rw-only-readers-wait: without not queue or"]),
    (
        "for speed: a reply of two words ends before its fifth, for Redis",
        &[
            "permits-only-where-held: reply[1] ~= 'held' -> false",
            "watch-only-where-held: without or reply[1] ~= 'held'",
        ],
    ),
    (
        "for speed: it is the same number",
        &["redisson-size-once: without found or", "reentrant-size-once: without found or"],
    ),
    (
        "for speed: nobody is called where nobody waits",
        &["somebody-waits: 'ZCARD' -> 'ZCARD~'", "somebody-waits: without call('ZCARD', queue) ~= 0 and"],
    ),
    ("for speed: it is the same time", &["time-once: now -> false"]),
    (
        "for speed: nobody's ticket is empty",
        &["place-before: '' -> '~'", "place-before: before ~= '' -> true"],
    ),
    ("for speed: none is less than any", &["above-own-token: had -> true"]),
    ("for speed: nothing is added", &["watch-rises: > -> >="]),
    (
        "for speed: the key is given the TTL that it has",
        &[
            "semaphore-ttl-rises: < -> <=",
            "ttl-rises: without and (beyond < 0 or found ~= 'mine')",
            "ttl-rises: 'mine' -> 'mine~'",
            "ttl-rises: < -> <=",
            "ttl-rises: 0 -> 1",
        ],
    ),
    ("for speed: the next one is not looked at", &["first-permit-over: 0 -> 1", "rw-first: 0 -> 1"]),
    (
        "for speed: to look at a free lock finds it absent, too",
        &["free-at-one-look: > -> >=", "free-at-one-look: there > 0 -> true"],
    ),
    (
        "for speed: what is looked at once more is the same",
        &[
            "marker-once: without now or",
            "marker-once: without or no_vote",
            "marker-once: without now or no_vote or",
        ],
    ),
    ("for speed: who holds the lock is not looked at", &["rw-nobody-waits: #waiting == 0 -> false"]),
    ("for speed: without a token no record is written", &["record-before: without highest and"]),
    ("a ticket has a moment", &["rw-nobody-waits: 0 -> 1"]),
    ("a token has sixteen digits", &["gone-token-is-higher: 1 -> 2", "rw-gone-token: 1 -> 2"]),
    ("a token is far above both: the time is", &["transfer-token-rises: 0 -> 1"]),
    ("a verb takes no notice of one argument more", &["arguments-of-a-verb: 1 -> 2"]),
    ("an argument that is not there is none", &["arguments-of-write: 11 -> 12"]),
    (
        "an error is an empty list, too",
        &["queue-empty: without failed(first) or", "rw-queue-empty: without failed(first) or"],
    ),
    ("both are more than none", &["places-given-up: 1 -> 2"]),
    ("either is more than nothing", &["mutex-exists: 1 -> 2"]),
    (
        "every token is above both",
        &["above-own-token: 0 -> 1", "extend-of-older-grant: 0 -> 1", "highest-token: 0 -> 1"],
    ),
    ("it is far more, or far less", &["clock-ahead-or-behind: 0 -> 1", "clock-ahead-or-behind: > -> >="]),
    ("it says the same again", &["rw-token-known: >= -> >"]),
    ("Lua has one number for both", &["largest-whole: 9007199254740992 -> 9007199254740993"]),
    ("neither is a fence", &["missing-fence: '' -> '~'"]),
    ("neither is a marker", &["no-marker: '' -> '~'"]),
    ("neither is a place", &["no-place-no-version: 1 -> 2"]),
    ("neither is a reader", &["inspect-nobody: '' -> '~'"]),
    ("neither is nothing, and no version", &["seen-nothing: ',' -> ',~'"]),
    ("neither is nothing, and no version is looked for", &["inspect-shows-version: ',' -> ',~'"]),
    (
        "neither is true",
        &[
            "reentrant-tells-itself: without = false",
            "rw-nobody-reads-yet: without = false",
            "rw-tells-itself: without = false",
        ],
    ),
    ("nil and false are both no token", &["transfer-unguarded: without or nil"]),
    ("no field of INFO has a name that ends with one of these, yet", &["info-field: without '\\n' .."]),
    ("no token is so low", &["record-of-last-writer: 0 -> 1"]),
    ("no TTL is so short", &["rw-ttl-kept: 0 -> 1"]),
    ("no version is watched for any time", &["no-place-no-version: 0 -> 1"]),
    ("of equals either will do", &["longest-reader-stays: > -> >=", "record-about-longest: > -> >="]),
    ("the first is looked at again before any is taken", &["all-can-be-given: 1 -> 2"]),
    ("the next one is put in between", &["unreleased-reader-stays: 1 -> 2"]),
    ("the two come together", &["version-to-watch: 6 -> 7"]),
    ("there are both, or none", &["any-permit-taken: 1 -> 2"]),
    ("what could not be written is as it was", &["take-back-written: without - 1"]),
    (
        "what has no token has no record from before; SET takes nothing but text, and its error is passed over",
        &["release-noted: without and fence"],
    ),
    ("what lives for no time lives for less than any TTL", &["lives-beyond: 1 -> 2"]),
    ("what stands behind the first does not matter", &["fair-first: 0 -> 1"]),
    ("what stands behind the version does not matter", &["seen-version: ',' -> ',~'"]),
    ("where they are equal, both are the highest", &["highest-token: > -> >="]),
    ("where they are equal, both are the TTL", &["ttl-kept: > -> >="]),
    (
        "without a token it is an error, which has no owner",
        &["gone-grant-is-own: without fence and", "own-grant: without not last or"],
    ),
];

fn allowed() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALLOWED.iter().flat_map(|(why, changes)| changes.iter().map(|change| (*change, *why)))
}

/// Panics unless each label of the scripts names one statement, and the list has these labels and no others.
pub(super) fn check_labels(files: &[File]) {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, (name, lines)) in
        files.iter().flat_map(|file| labels(&file.text).map(move |label| (file, label)))
    {
        places.entry(name).or_default().push(format!("{}.lua:{}", file.name, lines.start));
    }
    let label_of = |change: &'static str| change.split(": ").next().unwrap();
    let mut wrong = Vec::new();
    for (name, places) in &places {
        if places.len() > 1 {
            wrong.push(format!("{name} is the label of several: {}", places.join(", ")));
        }
        if !allowed().any(|(change, _)| label_of(change) == *name) {
            wrong.push(format!("{name} ({}) is not in the list: take the label out", places[0]));
        }
    }
    for (change, _) in allowed().filter(|(change, _)| !places.contains_key(label_of(change))) {
        wrong.push(format!(
            "{change}: no line of its own above a statement says `-- guard: {}`",
            label_of(change)
        ));
    }
    assert!(wrong.is_empty(), "labels of the scripts, and allowed.rs:\n{}", wrong.join("\n"));
}

/// Panics where a mutant survived that is not in the list, or one of the list did not.
pub(super) fn check(survivors: &[Mutant]) {
    let survived: Vec<String> = survivors.iter().map(Mutant::labelled_change).collect();
    let is_allowed = |change: &String| allowed().any(|(allowed, _)| allowed == change);
    let unknown = survivors.iter().zip(&survived).filter(|(_, change)| !is_allowed(change));
    let mut unknown: Vec<String> = unknown.map(|(mutant, change)| mutant.describe(change)).collect();
    unknown.sort();
    let gone = allowed().filter(|(change, _)| !survived.iter().any(|survived| survived == change));
    let gone: Vec<String> = gone.map(|(change, why)| format!("{change} ({why})")).collect();
    assert!(
        unknown.is_empty() && gone.is_empty(),
        "{} survivors are not in allowed.rs. Add a test that notices, or the change with its reason and the label of a line \
         `-- guard: NAME` above the statement:\n{}\n{} are in allowed.rs, but are noticed, or not made any more:\n{}",
        unknown.len(),
        unknown.join("\n"),
        gone.len(),
        gone.join("\n")
    );
}
