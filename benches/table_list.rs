//! Which tables there are.

use crate::tables::Cell::{Of, Range, Ratio};
use crate::tables::{Cell, Line, Lines, Table};

const QUORATE: &str = "quorate";
const REUSED: &str = "quorate, names reused";
const ONE_THREAD: &str = "quorate, one thread";
const ASKS_ALL: &str = "quorate, asks all";
const QUORUM_FIRST: &str = "quorate, a quorum first";
const RSLOCK: &str = "rslock";
const RSLOCK_REUSED: &str = "rslock, names reused";
const RSLOCK_ONE_THREAD: &str = "rslock, one thread";
const FLOOR: &str = "floor";
const SAME: &str = "same script";

/// The contenders of the costs, by the value of the table.
const RIVALS: &[(&str, Cell)] = &[
    ("quorate", Of(QUORATE, "")),
    ("names reused", Of(REUSED, "")),
    ("one thread", Of(ONE_THREAD, "")),
    ("rslock", Of(RSLOCK, "")),
    ("names reused", Of(RSLOCK_REUSED, "")),
    ("one thread", Of(RSLOCK_ONE_THREAD, "")),
    ("floor", Of(FLOOR, "")),
    ("same script", Of(SAME, "")),
    ("quorate to rslock", Ratio(QUORATE, RSLOCK, "")),
    ("names reused", Ratio(REUSED, RSLOCK_REUSED, "")),
    ("one thread", Ratio(ONE_THREAD, RSLOCK_ONE_THREAD, "")),
];

/// Quantiles of acquires.
const ACQUIRES: &[(&str, Cell)] = &[
    ("quorate p50", Of(QUORATE, "acquire_p50_us")),
    ("p99", Of(QUORATE, "acquire_p99_us")),
    ("p99.9", Of(QUORATE, "acquire_p999_us")),
    ("rslock p50", Of(RSLOCK, "acquire_p50_us")),
    ("p99", Of(RSLOCK, "acquire_p99_us")),
    ("p99.9", Of(RSLOCK, "acquire_p999_us")),
    ("quorate to rslock p50", Ratio(QUORATE, RSLOCK, "acquire_p50_us")),
    ("p99", Ratio(QUORATE, RSLOCK, "acquire_p99_us")),
    ("p99.9", Ratio(QUORATE, RSLOCK, "acquire_p999_us")),
];

const RELEASES: &[(&str, Cell)] = &[
    ("quorate p50", Of(QUORATE, "release_p50_us")),
    ("p99", Of(QUORATE, "release_p99_us")),
    ("p99.9", Of(QUORATE, "release_p999_us")),
    ("rslock p50", Of(RSLOCK, "release_p50_us")),
    ("p99", Of(RSLOCK, "release_p99_us")),
    ("p99.9", Of(RSLOCK, "release_p999_us")),
    ("quorate to rslock p50", Ratio(QUORATE, RSLOCK, "release_p50_us")),
];

/// Lines of more than one table.
const ALONE: Line<'static> =
    beside("acquire alone, five local masters, p50 us", "cost", "1", "acquire_p50_us");
const FROZEN: Line<'static> =
    beside("one of five masters frozen, p50 us", "degraded", "one frozen", "acquire_p50_us");

/// What is beside rslock.
const BESIDE: &[(&str, Cell)] =
    &[("quorate", Of(QUORATE, "")), ("rslock", Of(RSLOCK, "")), ("ratio", Ratio(QUORATE, RSLOCK, ""))];

const COUNTED: &[(&str, Cell)] = &[
    ("quorate", Of(QUORATE, "")),
    ("rslock", Of(RSLOCK, "")),
    ("same script", Of(SAME, "")),
    ("quorate to rslock", Ratio(QUORATE, RSLOCK, "")),
];

const fn rivals(
    name: &'static str,
    heading: &'static str,
    topic: &'static str,
    value: &'static str,
    columns: &'static [(&'static str, Cell)],
) -> Table {
    Table { name, heading, lines: Lines::Cases(topic, value), columns }
}

pub(crate) const TABLES: &[Table] = &[
    rivals("uncontended", "masters (us)", "uncontended", "", ACQUIRES),
    rivals(
        "floors",
        "masters (us)",
        "uncontended",
        "acquire_p50_us",
        &[
            ("quorate", Of(QUORATE, "")),
            ("rslock", Of(RSLOCK, "")),
            ("floor", Of(FLOOR, "")),
            ("same script", Of(SAME, "")),
            ("quorate to same script", Ratio(QUORATE, SAME, "")),
        ],
    ),
    rivals("cycles", "workers (cycles/s)", "cost", "cycles_per_s", RIVALS),
    rivals("acquires", "workers (us)", "cost", "acquire_p50_us", RIVALS),
    rivals("quantiles", "workers (us)", "cost", "", ACQUIRES),
    rivals("releases", "workers (us)", "cost", "", RELEASES),
    rivals("masters-cpu", "workers (us)", "cost", "masters_cpu_us", RIVALS),
    rivals("client-cpu", "workers (us)", "cost", "client_cpu_us", RIVALS),
    Table {
        name: "whom",
        heading: "workers",
        lines: Lines::Cases("whom", ""),
        columns: &[
            ("cycles/s", Of(QUORATE, "cycles_per_s")),
            ("asks all", Of(ASKS_ALL, "cycles_per_s")),
            ("a quorum first", Of(QUORUM_FIRST, "cycles_per_s")),
            ("default to asks all", Ratio(QUORATE, ASKS_ALL, "cycles_per_s")),
            ("a quorum first to asks all", Ratio(QUORUM_FIRST, ASKS_ALL, "cycles_per_s")),
            ("p50, default to asks all", Ratio(QUORATE, ASKS_ALL, "acquire_p50_us")),
            ("masters' CPU", Ratio(QUORATE, ASKS_ALL, "masters_cpu_us")),
            ("client's CPU", Ratio(QUORATE, ASKS_ALL, "client_cpu_us")),
            ("hedged, by default", Of(QUORATE, "hedged")),
        ],
    },
    Table {
        name: "sustained",
        heading: "",
        lines: Lines::Listed(&[
            of("quorate, the first 20 s", "sustained", "first", QUORATE),
            of("the last 20 s of three minutes", "sustained", "last", QUORATE),
            of("rslock, the first 20 s", "sustained", "first", RSLOCK),
            of("the next 20 s", "sustained", "last", RSLOCK),
        ]),
        columns: &[
            ("cycles/s", Of("", "cycles_per_s")),
            ("acquire p50, us", Of("", "acquire_p50_us")),
            ("p99", Of("", "acquire_p99_us")),
            ("p99.9", Of("", "acquire_p999_us")),
            ("names on a master, at the end", Of("", "names")),
            ("memory of a master for them, MB", Of("", "memory_mb")),
            ("masters' CPU, us a cycle", Of("", "masters_cpu_us")),
            ("client's", Of("", "client_cpu_us")),
        ],
    },
    Table {
        name: "idle",
        heading: "idle for",
        lines: Lines::Cases("idle", ""),
        columns: &[
            ("first acquire p50, us", Of("first", "acquire_p50_us")),
            ("p99", Of("first", "acquire_p99_us")),
            ("a later one's p50", Of("later", "acquire_p50_us")),
            ("p99", Of("later", "acquire_p99_us")),
            ("first to later, p50", Ratio("first", "later", "acquire_p50_us")),
        ],
    },
    rivals("instructions", "workers", "instructions", "instructions", COUNTED),
    Table {
        name: "path",
        heading: "",
        lines: Lines::Listed(&[of("an acquire alone", "instructions", "path", QUORATE)]),
        columns: &[("files of `src`", Of("", "files")), ("hops from a function to another", Of("", "hops"))],
    },
    rivals("syscalls", "workers", "syscalls", "system_calls", COUNTED),
    Table {
        name: "leases",
        heading: "leases",
        lines: Lines::Cases("leases", ""),
        columns: &[
            ("client's memory, bytes a lease", Range(QUORATE, "client_memory_bytes")),
            ("a master's", Of(QUORATE, "master_memory_bytes")),
            ("client's CPU, ms a second", Range(QUORATE, "client_cpu_ms_per_s")),
            ("masters'", Range(QUORATE, "masters_cpu_ms_per_s")),
            ("calls a second", Of(QUORATE, "calls_per_s")),
            ("least time left, s", Range(QUORATE, "least_left_s")),
        ],
    },
    Table {
        name: "names",
        heading: "names",
        lines: Lines::Cases("names", ""),
        columns: &[
            ("acquire p50, us", Of(QUORATE, "acquire_p50_us")),
            ("p99", Of(QUORATE, "acquire_p99_us")),
            ("p99.9", Of(QUORATE, "acquire_p999_us")),
            ("the master's memory, bytes a name", Of(QUORATE, "master_memory_bytes")),
            ("keys a name", Of(QUORATE, "keys_a_name")),
            ("to list all, s", Range(QUORATE, "list_s")),
            ("calls for that", Of(QUORATE, "list_calls")),
            ("us a call", Range(QUORATE, "list_us_a_call")),
        ],
    },
    Table {
        name: "holders",
        heading: "beside",
        lines: Lines::Cases("holders", ""),
        columns: &[
            ("to refuse a writer, or one more permit, us", Range(QUORATE, "refusal_us")),
            ("a reader's acquire, or a permit's", Range(QUORATE, "acquire_us")),
            ("its renewal", Range(QUORATE, "extend_us")),
            ("its release", Range(QUORATE, "release_us")),
        ],
    },
    Table {
        name: "waiters",
        heading: "waiters",
        lines: Lines::Cases("waiters", ""),
        columns: &[
            ("grants a second", Range(QUORATE, "grants_per_s")),
            ("calls a grant", Range(QUORATE, "calls_a_grant")),
            ("clients' CPU, us a grant", Of(QUORATE, "client_cpu_us")),
            ("masters'", Of(QUORATE, "masters_cpu_us")),
            ("clients' memory, bytes a waiter", Of(QUORATE, "client_memory_bytes")),
        ],
    },
    Table {
        name: "handoff",
        heading: "processes",
        lines: Lines::Cases("handoff", ""),
        columns: &[
            ("held", Range(QUORATE, "held")),
            ("release to grant p50, ms", Of(QUORATE, "gap_p50_ms")),
            ("p99", Of(QUORATE, "gap_p99_ms")),
            ("calls a grant", Of(QUORATE, "calls_a_grant")),
            ("most to least", Of(QUORATE, "most_to_least")),
            ("rslock: held", Range(RSLOCK, "held")),
            ("release to grant p50, ms", Of(RSLOCK, "gap_p50_ms")),
            ("p99", Of(RSLOCK, "gap_p99_ms")),
            ("calls a grant", Of(RSLOCK, "calls_a_grant")),
            ("most to least", Of(RSLOCK, "most_to_least")),
        ],
    },
    Table {
        name: "degraded",
        heading: "",
        lines: Lines::Cases("degraded", ""),
        columns: &[
            ("granted, %", Of(QUORATE, "granted_percent")),
            ("acquire p50 to healthy", Range(QUORATE, "p50_to_healthy")),
            ("p99 to healthy", Range(QUORATE, "p99_to_healthy")),
            ("acquire p50, us", Of(QUORATE, "acquire_p50_us")),
            ("p99", Of(QUORATE, "acquire_p99_us")),
            ("p99.9", Of(QUORATE, "acquire_p999_us")),
            ("error after the time-out, ms", Of(QUORATE, "error_after_timeout_ms")),
            ("rslock: granted, %", Of(RSLOCK, "granted_percent")),
            ("acquire p50, us", Of(RSLOCK, "acquire_p50_us")),
        ],
    },
    Table {
        name: "wide",
        heading: "",
        lines: Lines::Contenders("wide"),
        columns: &[
            ("acquire p50, ms", Of("", "acquire_p50_ms")),
            ("to the round trip of the third fastest", Range("", "to_third_fastest")),
        ],
    },
    Table {
        name: "guards",
        heading: "workers",
        lines: Lines::Cases("cost", ""),
        columns: &[
            ("acquire p50, to a SET", Ratio(SAME, FLOOR, "acquire_p50_us")),
            ("cycles/s", Ratio(SAME, FLOOR, "cycles_per_s")),
            ("masters' CPU", Ratio(SAME, FLOOR, "masters_cpu_us")),
        ],
    },
    Table {
        name: "kinds",
        heading: "kind",
        lines: Lines::Contenders("kinds"),
        columns: &[
            ("acquire p50, us", Of("", "acquire_p50_us")),
            ("p99", Of("", "acquire_p99_us")),
            ("p99.9", Of("", "acquire_p999_us")),
            ("p50 to the reentrant lock's", Ratio("", QUORATE, "acquire_p50_us")),
            ("release", Ratio("", QUORATE, "release_p50_us")),
            ("masters' CPU", Ratio("", QUORATE, "masters_cpu_us")),
        ],
    },
    Table {
        name: "headline",
        heading: "",
        lines: Lines::Listed(&[
            ALONE,
            beside("cycles a second, 64 workers", "cost", "64", "cycles_per_s"),
            beside("1,024 workers", "cost", "1024", "cycles_per_s"),
            beside("five masters' CPU a cycle, 64 workers, us", "cost", "64", "masters_cpu_us"),
            FROZEN,
        ]),
        columns: BESIDE,
    },
    Table {
        name: "beside-rslock",
        heading: "",
        lines: Lines::Listed(&[
            ALONE,
            beside("p99", "cost", "1", "acquire_p99_us"),
            beside("p99.9", "cost", "1", "acquire_p999_us"),
            beside("masters 19 to 167 ms away, p50 ms", "wide", "19 to 167 ms", "acquire_p50_ms"),
            FROZEN,
            beside("cycles a second, 16 workers", "cost", "16", "cycles_per_s"),
            beside("64 workers", "cost", "64", "cycles_per_s"),
            beside("256 workers", "cost", "256", "cycles_per_s"),
            beside("1,024 workers", "cost", "1024", "cycles_per_s"),
            beside("five masters' CPU a cycle alone, us", "cost", "1", "masters_cpu_us"),
            beside("64 workers", "cost", "64", "masters_cpu_us"),
            beside("client's CPU a cycle alone, us", "cost", "1", "client_cpu_us"),
            beside("64 workers", "cost", "64", "client_cpu_us"),
            beside("2 processes in turn, 5 ms each: share of time held", "handoff", "2", "held"),
            beside("8 processes", "handoff", "8", "held"),
            beside("32 processes", "handoff", "32", "held"),
            beside("8, one master 20 ms away", "handoff", "8, a master 20 ms away", "held"),
            beside("calls a grant, 32 processes", "handoff", "32", "calls_a_grant"),
            beside("most to least grants of 32", "handoff", "32", "most_to_least"),
        ]),
        columns: BESIDE,
    },
];

const fn of(
    label: &'static str,
    topic: &'static str,
    case: &'static str,
    contender: &'static str,
) -> Line<'static> {
    Line { label, topic, case, contender, value: "" }
}

const fn beside(
    label: &'static str,
    topic: &'static str,
    case: &'static str,
    value: &'static str,
) -> Line<'static> {
    Line { label, topic, case, contender: "", value }
}
