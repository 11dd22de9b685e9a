//! Changes that nobody can notice, and why.

use std::collections::BTreeMap;

use super::{File, Mutant, labels::labels};

/// For each reason the changes that make no difference, as `LABEL: CHANGE`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("without a ticket there is an error, and no place", &["shared-ticket: without ticket and"]),
    ("a change of the size removes it", &["over-of-size: without it.is_same and"]),
    (
        "a full master refuses it before it reads the arguments; no ticket is called so",
        &[
            "full-asks: '' -> '~'",
            "full-asks: '0' -> '0~'",
            "full-asks: 'XX' -> 'XX~'",
            "hot-full: '' -> '~'",
            "hot-full: '0' -> '0~'",
            "hot-full: 'XX' -> 'XX~'",
        ],
    ),
    ("a millionth of it is not shown", &["clock-text: 1000000 -> 1000001"]),
    ("a word has a token, or `last_read` is there", &["word-token: '0' -> '0~'"]),
    (
        "a writer's field is known; what another kind has was looked at before",
        &["writer-of-rw: 'x' -> 'x~'", "writer-of-rw: without it.is_same and"],
    ),
    (
        "an embedded server's errors are texts, as those of Redis 6",
        &[
            "error-of-table: 'refused' -> 'refused~'",
            "error-of-table: without reply = {'refused', reply.err}",
            "error-table: not is_done and reply.err -> false",
        ],
    ),
    ("an operation has arguments", &["decree-all: <= -> <", "list-all: <= -> <", "run-all: <= -> <"]),
    (
        "a scene says the number of its arguments rightly",
        &[
            "no-number-of-arguments: '' -> '~'",
            "no-number-of-arguments: not find(count or '', '^%d+$') -> false",
            "no-number-of-arguments: without or ''",
        ],
    ),
    ("another kind has no such field", &["readers-of-rw: without it.is_same and"]),
    (
        "any token is above it",
        &[
            "heal-last-none: '0' -> '0~'",
            "last-none: '0' -> '0~'",
            "no-token-yet: '0' -> '0~'",
            "rw-floor: '0' -> '0~'",
        ],
    ),
    ("both are long ago", &["least-too-far: 0 -> 1", "never-woken: 0 -> 1"]),
    (
        "for speed: all readers are looked at",
        &[
            "each-of-some: 1 -> 2",
            "longest-counts: longest and lives(longest) -> false",
            "longest-entry: without = field and entry_of(field, call('HGET', it.key, field))",
            "longest-first: without = not token and match(it.longest, ' (.*)$')",
            "noted-longest: without return reader",
            "some-count: lives(some[i]) -> false",
            "some-readers: > -> >=",
            "some-readers: without not",
            "some-readers: without not token and",
            "some-readers: without not token and it.readers > SWEEP and some_readers(it) or",
        ],
    ),
    (
        "for speed: a call of one operation finds out by its first write",
        &["full-asked: #KEYS > 2 -> true", "full-asked: > -> >="],
    ),
    ("for speed: it is the same time", &["hot-time-once: not now -> true", "time-once: not now -> true"]),
    (
        "for speed: a call of one operation finds out by its write",
        &["hot-full: 1 -> 2", "hot-full: > -> >=", "hot-full: without #KEYS > 1 and"],
    ),
    ("nothing else that it could be is an entry", &["hot-entry: '' -> '~'"]),
    (
        "no other has 0 there, and an empty word",
        &[
            "free-release: without and count == '9'",
            "free-release: without verb == 'release' and",
            "free-release: without verb == 'release' and count == '9' and",
        ],
    ),
    (
        "no other has so many arguments; nobody waits where `queued` is not there",
        &[
            "free-acquire: without and (count == '6' or (count == '11' and ARGV[a + 9] == ''))",
            "free-acquire: without and ARGV[a + 9] == ''",
            "free-acquire: without count == '11' and",
            "free-acquire: without verb == 'acquire' and",
        ],
    ),
    ("an error leaves it to the verbs as well", &["free-unusual: not more -> false"]),
    ("any time does", &["hot-asks-time: 0 -> 1"]),
    ("an operation has two words at least", &["free-none-left: > -> >="]),
    (
        "an embedded server forbids no command",
        &[
            "hot-known: without known.err or",
            "hot-tells-time: without now and",
            "hot-tells-time: without or NOT_HANDLED",
            "hot-time: without time.err or",
        ],
    ),
    (
        "an embedded server forbids no command, and a key that had a field is there; true is 1 in a reply",
        &[
            "hot-released: without and GRANTED",
            "hot-released: without done and",
            "hot-released: without or NOT_HANDLED",
        ],
    ),
    ("one word more is not looked at", &["free-words: 8 -> 9", "hot-acquire: 6 -> 7", "hot-release: 4 -> 5"]),
    ("for speed: in how many commands", &["at-once: 100 -> 101"]),
    (
        "for speed: in how many commands; one more is the one that is taken",
        &[
            "looked-together: min(PER_HMGET, others - looked) -> (others - looked)",
            "looked-together: without - looked",
        ],
    ),
    ("for speed: no more is told", &["told-enough: < -> <=", "told-enough: without and #free < MOST_LISTED"]),
    ("for speed: nobody has a place where nobody waits", &["granted-place: without it.queued and"]),
    (
        "for speed: nobody is woken where nobody waits",
        &[
            "wake-queued: without other.queued and",
            "permit-queued: without it.queued and",
            "release-queued: without and it.queued",
        ],
    ),
    ("for speed: of a name that is not there nothing is in the way", &["kind-is-other: without it.kind and"]),
    (
        "for speed: of one name it is held, or somebody else is woken",
        &["woken-several: > -> >=", "woken-several: without and names > 1"],
    ),
    ("for speed: the key is given the TTL that it has", &["extend-was-not-there: is_there == 0 -> true"]),
    ("for speed: one more is looked at", &["over-known: 0 -> 1", "over-known: > -> >="]),
    ("for speed: what is not there does not go", &["extend-drops: without it.entry and"]),
    (
        "for speed: where no reader is, none is found",
        &[
            "beside-readers: > -> >=",
            "beside-readers: without it.readers > 0 and",
            "longest-known: > -> >=",
            "longest-known: without it.readers > 0 and",
            "turn-readers: > -> >=",
            "turn-readers: without it.readers > 0 and",
            "wake-readers: > -> >=",
            "wake-readers: without it.readers > 0 and",
        ],
    ),
    ("it goes a microsecond sooner", &["sweep-over: < -> <="]),
    ("it is far more, or far less", &["clock-ahead-or-behind: 0 -> 1", "clock-ahead-or-behind: > -> >="]),
    (
        "for speed: the next one that is refused looks at all entries, and notes it again",
        &["over-equal: < -> <="],
    ),
    ("keys come in pairs", &["full-asked: 2 -> 3"]),
    ("Lua has an error of its own for it", &["names-no-number: without not names or"]),
    ("Lua has one number for both", &["largest-whole: 9007199254740992 -> 9007199254740993"]),
    ("neither is a fence", &["missing-fence: '' -> '~'"]),
    ("neither is a field", &["judged-by-none: 'none' -> 'none~'"]),
    ("neither is true", &["nobody: without or nil"]),
    ("nil and false are both no token", &["heals-not: without or nil"]),
    (
        "no field of INFO has a name that ends with one of these, yet",
        &["info-field: without '\\n' ..", "record-info-field: without '\\n' .."],
    ),
    ("no such field is there", &["only-a-master: 'none' -> 'none~'"]),
    ("no verb replies a text", &["reply-text: without and not is_done"]),
    ("nobody is called so", &["inspect-nobody: '' -> '~'", "shared-nobody: '' -> '~'"]),
    (
        "nobody's ticket is empty",
        &[
            "release-place: '' -> '~'",
            "release-place: place ~= '' -> true",
            "shared-before: '' -> '~'",
            "shared-before: without and before ~= ''",
            "shared-place: '' -> '~'",
            "shared-place: place ~= '' -> true",
        ],
    ),
    ("of equals nothing is less", &["lengths-differ: < -> <="]),
    ("of two that came at the same moment either may be first", &["rw-equal: >= -> >"]),
    ("one error is as good as another", &["first-failure: without failed or"]),
    ("one more or less is as good", &["most-at-once: 3000 -> 3001", "sweep-size: 16 -> 17"]),
    ("the key is given the TTL that it has", &["queue-ttl: < -> <="]),
    (
        "the key is given the TTL that it has; another entry keeps it for longer",
        &["short-ttl: < -> <=", "short-ttl: without not entry and"],
    ),
    ("the key of another library has no such field", &["queued-gone: without it.asked and"]),
    (
        "the last of a part is the label of a field that has none, or goes by itself",
        &["gone-in-parts: 1 -> 2", "gone-in-parts: without - 1"],
    ),
    (
        "the two come together",
        &["fair-none: 1 -> 2", "noted-any: 1 -> 2", "short-ttl: 1 -> 2", "two-fields: 2 -> 3"],
    ),
    ("there is no such field", &["gone-nothing: '' -> '~'", "no-owner-field: 'o:r' -> 'o:r~'"]),
    ("what is no text gets no place", &["error-as-it-is: 0 -> 1"]),
    ("what is not there lives for no time", &["shared-new: without it.holder and"]),
    ("what stands behind the first does not matter", &["fair-first: 0 -> 1", "rw-first: 0 -> 1"]),
    (
        "where the size changes, all of them are folded into `last`",
        &["last-of-size: not it.is_same -> false"],
    ),
    ("who is woken a microsecond sooner finds out", &["room-equal: < -> <="]),
];

fn allowed() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALLOWED.iter().flat_map(|(why, changes)| changes.iter().map(|change| (*change, *why)))
}

/// Panics unless each label of the scripts names one statement, and the list has these labels and
/// no others.
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
