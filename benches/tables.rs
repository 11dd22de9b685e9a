//! The tables of README.md and docs/PERFORMANCE.md, which are made from the figures and stand between two markers:
//! `<!-- figures: NAME -->` and `<!-- /figures -->`.

use std::collections::{BTreeMap, BTreeSet};

use crate::figures::{Figures, Row, median_and_range, root, values};

const DOCS: [&str; 2] = ["README.md", "docs/PERFORMANCE.md"];
const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- /figures -->";

struct Table {
    name: &'static str,
    /// What its lines are.
    heading: &'static str,
    lines: Lines,
    columns: &'static [(&'static str, Cell)],
}

enum Lines {
    /// A line for each case of a topic.
    Cases(&'static str),
    /// A line for each contender of a topic that has one case.
    Contenders(&'static str),
    Listed(&'static [Line<'static>]),
}

/// What a line's cells show, where the column leaves it open.
#[derive(Clone, Copy)]
struct Line<'a> {
    label: &'a str,
    topic: &'a str,
    case: &'a str,
    contender: &'a str,
    value: &'a str,
}

/// A contender's value, or several. What is empty is the line's.
enum Cell {
    /// The median of the runs.
    Of(&'static str, &'static str),
    /// The same, with the lowest and the highest.
    Range(&'static str, &'static str),
    /// The first contender's value to the second's, of each run; the median, with the lowest and the highest.
    Ratio(&'static str, &'static str, &'static str),
}

/// The runs of each topic that was measured.
type Measured<'a> = BTreeMap<&'a str, &'a [Vec<Row>]>;

use Cell::{Of, Range, Ratio};

const QUORATE: &str = "quorate";
const LENT: &str = "quorate, lent";
const RSLOCK: &str = "rslock";
const FLOOR: &str = "floor";
const SAME: &str = "same script";

const ACQUIRES: &[(&str, Cell)] = &[
    ("quorate, us", Of(QUORATE, "acquire_p50_us")),
    ("lent", Of(LENT, "acquire_p50_us")),
    ("rslock", Of(RSLOCK, "acquire_p50_us")),
    ("floor", Of(FLOOR, "acquire_p50_us")),
    ("same script", Of(SAME, "acquire_p50_us")),
    ("to rslock", Ratio(QUORATE, RSLOCK, "acquire_p50_us")),
    ("lent to rslock", Ratio(LENT, RSLOCK, "acquire_p50_us")),
    ("release to rslock", Ratio(QUORATE, RSLOCK, "release_p50_us")),
];

const TABLES: &[Table] = &[
    Table { name: "uncontended", heading: "masters", lines: Lines::Cases("uncontended"), columns: ACQUIRES },
    Table {
        name: "cycles",
        heading: "workers",
        lines: Lines::Cases("cost"),
        columns: &[
            ("quorate, cycles/s", Of(QUORATE, "cycles_per_s")),
            ("lent", Of(LENT, "cycles_per_s")),
            ("rslock", Of(RSLOCK, "cycles_per_s")),
            ("floor", Of(FLOOR, "cycles_per_s")),
            ("same script", Of(SAME, "cycles_per_s")),
            ("to rslock", Ratio(QUORATE, RSLOCK, "cycles_per_s")),
            ("lent to rslock", Ratio(LENT, RSLOCK, "cycles_per_s")),
        ],
    },
    Table { name: "latency", heading: "workers", lines: Lines::Cases("cost"), columns: ACQUIRES },
    Table {
        name: "masters-cpu",
        heading: "workers",
        lines: Lines::Cases("cost"),
        columns: &[
            ("quorate, us a cycle", Of(QUORATE, "masters_cpu_us")),
            ("lent", Of(LENT, "masters_cpu_us")),
            ("rslock", Of(RSLOCK, "masters_cpu_us")),
            ("floor", Of(FLOOR, "masters_cpu_us")),
            ("same script", Of(SAME, "masters_cpu_us")),
            ("to rslock", Ratio(QUORATE, RSLOCK, "masters_cpu_us")),
        ],
    },
    Table {
        name: "client-cpu",
        heading: "workers",
        lines: Lines::Cases("cost"),
        columns: &[
            ("quorate, us a cycle", Of(QUORATE, "client_cpu_us")),
            ("lent", Of(LENT, "client_cpu_us")),
            ("rslock", Of(RSLOCK, "client_cpu_us")),
            ("floor", Of(FLOOR, "client_cpu_us")),
            ("same script", Of(SAME, "client_cpu_us")),
            ("to rslock", Ratio(QUORATE, RSLOCK, "client_cpu_us")),
        ],
    },
    Table {
        name: "share",
        heading: "masters",
        lines: Lines::Cases("uncontended"),
        columns: &[
            ("quorate, %", Of(QUORATE, "percent_on_a_master")),
            ("lent", Of(LENT, "percent_on_a_master")),
            ("rslock", Of(RSLOCK, "percent_on_a_master")),
            ("floor", Of(FLOOR, "percent_on_a_master")),
            ("same script", Of(SAME, "percent_on_a_master")),
            ("quorate, us", Of(QUORATE, "operation_on_a_master_us")),
            ("rslock, us", Of(RSLOCK, "operation_on_a_master_us")),
        ],
    },
    Table {
        name: "instructions",
        heading: "workers",
        lines: Lines::Cases("instructions"),
        columns: &[
            ("quorate", Of(QUORATE, "instructions")),
            ("rslock", Of(RSLOCK, "instructions")),
            ("same script", Of(SAME, "instructions")),
            ("to rslock", Ratio(QUORATE, RSLOCK, "instructions")),
        ],
    },
    Table {
        name: "syscalls",
        heading: "workers",
        lines: Lines::Cases("syscalls"),
        columns: &[
            ("quorate", Of(QUORATE, "system_calls")),
            ("rslock", Of(RSLOCK, "system_calls")),
            ("same script", Of(SAME, "system_calls")),
            ("to rslock", Ratio(QUORATE, RSLOCK, "system_calls")),
        ],
    },
    Table {
        name: "leases",
        heading: "leases",
        lines: Lines::Cases("leases"),
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
        lines: Lines::Cases("names"),
        columns: &[
            ("acquire p50, us", Range(QUORATE, "acquire_p50_us")),
            ("the master's memory, bytes a name", Of(QUORATE, "master_memory_bytes")),
            ("keys a name", Of(QUORATE, "keys_a_name")),
        ],
    },
    Table {
        name: "waiters",
        heading: "waiters",
        lines: Lines::Cases("waiters"),
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
        lines: Lines::Cases("handoff"),
        columns: &[
            ("held", Range(QUORATE, "held")),
            ("release to grant p50, ms", Of(QUORATE, "gap_p50_ms")),
            ("calls a grant", Of(QUORATE, "calls_a_grant")),
            ("most to least", Of(QUORATE, "most_to_least")),
            ("rslock: held", Range(RSLOCK, "held")),
            ("release to grant p50, ms", Of(RSLOCK, "gap_p50_ms")),
            ("calls a grant", Of(RSLOCK, "calls_a_grant")),
            ("most to least", Of(RSLOCK, "most_to_least")),
        ],
    },
    Table {
        name: "degraded",
        heading: "",
        lines: Lines::Cases("degraded"),
        columns: &[
            ("granted, %", Of(QUORATE, "granted_percent")),
            ("acquire p50 to healthy", Range(QUORATE, "p50_to_healthy")),
            ("p99 to healthy", Range(QUORATE, "p99_to_healthy")),
            ("acquire p50, ms", Of(QUORATE, "acquire_p50_ms")),
            ("error after the time-out, ms", Of(QUORATE, "error_after_timeout_ms")),
            ("rslock: granted, %", Of(RSLOCK, "granted_percent")),
            ("acquire p50, ms", Of(RSLOCK, "acquire_p50_ms")),
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
        lines: Lines::Cases("guards"),
        columns: &[
            ("acquire p50, to without", Ratio(QUORATE, "quorate, unguarded", "acquire_p50_us")),
            ("cycles/s", Ratio(QUORATE, "quorate, unguarded", "cycles_per_s")),
            ("masters' CPU", Ratio(QUORATE, "quorate, unguarded", "masters_cpu_us")),
        ],
    },
    Table {
        name: "kinds",
        heading: "kind",
        lines: Lines::Contenders("kinds"),
        columns: &[
            ("acquire p50, us", Of("", "acquire_p50_us")),
            ("to the reentrant lock's", Ratio("", QUORATE, "acquire_p50_us")),
            ("release", Ratio("", QUORATE, "release_p50_us")),
            ("masters' CPU", Ratio("", QUORATE, "masters_cpu_us")),
        ],
    },
    Table {
        name: "beside-rslock",
        heading: "",
        lines: Lines::Listed(&[
            beside("acquire alone, five local masters, p50 us", "cost", "1", "acquire_p50_us"),
            beside("masters 19 to 167 ms away, p50 ms", "wide", "19 to 167 ms", "acquire_p50_ms"),
            beside("one of five masters frozen, p50 ms", "degraded", "one frozen", "acquire_p50_ms"),
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
        columns: &[
            ("quorate", Of(QUORATE, "")),
            ("rslock", Of(RSLOCK, "")),
            ("ratio", Ratio(QUORATE, RSLOCK, "")),
        ],
    },
];

const fn beside(
    label: &'static str,
    topic: &'static str,
    case: &'static str,
    value: &'static str,
) -> Line<'static> {
    Line { label, topic, case, contender: "", value }
}

/// Makes the tables of the docs.
pub(crate) fn fill() {
    for doc in DOCS {
        std::fs::write(root().join(doc), filled(&read(doc))).unwrap();
    }
}

/// # Panics
///
/// When a table of the docs is not what the figures make of it.
pub(crate) fn check() {
    for doc in DOCS {
        let text = read(doc);
        let filled = filled(&text);
        let differs = text.lines().zip(filled.lines()).find(|(is, made)| is != made);
        let differs = differs.or((text != filled).then_some(("another number of lines", "")));
        if let Some((is, made)) = differs {
            eprintln!("{doc}: a table is not made from docs/figures; run scripts/figures.sh --tables");
            eprintln!("  there:   {is}\n  figures: {made}");
            std::process::exit(1);
        }
    }
    let names = |old: fn(&[(&'static str, Figures)]) -> bool| -> Vec<&str> {
        TABLES.iter().filter(|table| old(&table.figures())).map(|table| table.name).collect()
    };
    report("not measured yet", &names(<[_]>::is_empty));
    let older = |answer| {
        TABLES.iter().filter(move |table| {
            table.figures().iter().any(|(_, figures)| figures.stamp.is_older_than_the_code() == answer)
        })
    };
    report("older than the code", &older(Some(true)).map(|table| table.name).collect::<Vec<_>>());
    report("of a commit that is not here", &older(None).map(|table| table.name).collect::<Vec<_>>());
    println!("the tables are what docs/figures make of them");
}

fn report(what: &str, tables: &[&str]) {
    if !tables.is_empty() {
        println!("{} tables are {what}: {}", tables.len(), tables.join(", "));
    }
}

/// Prints the tables of one topic, from one run.
pub(crate) fn print(topic: &str, rows: &[Row]) {
    let runs = [rows.to_vec()];
    let measured = Measured::from([(topic, &runs[..])]);
    for table in TABLES.iter().filter(|table| table.topics() == BTreeSet::from([topic])) {
        println!("\n{}", table.lines(&measured).join("\n"));
    }
}

fn read(doc: &str) -> String {
    std::fs::read_to_string(root().join(doc)).unwrap()
}

/// A document with its tables made anew.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n").expect("a marker ends its line");
        let (_, after) = after.split_once(END).unwrap_or_else(|| panic!("{name} has no end"));
        let table = TABLES.iter().find(|table| table.name == name);
        let table = table.unwrap_or_else(|| panic!("no table {name:?}")).text();
        filled += &format!("{before}{BEGIN}{name} -->\n{table}\n{END}");
        rest = after;
    }
    filled + rest
}

impl Table {
    fn topics(&self) -> BTreeSet<&'static str> {
        match self.lines {
            Lines::Cases(topic) | Lines::Contenders(topic) => BTreeSet::from([topic]),
            Lines::Listed(lines) => lines.iter().map(|line| line.topic).collect(),
        }
    }

    /// The figures that it is made from.
    fn figures(&self) -> Vec<(&'static str, Figures)> {
        self.topics().into_iter().filter_map(|topic| Some((topic, Figures::read(topic)?))).collect()
    }

    /// The table, and how it was measured.
    fn text(&self) -> String {
        let figures = self.figures();
        let measured = figures.iter().map(|(topic, figures)| (*topic, &figures.runs[..])).collect();
        let mut lines = self.lines(&measured);
        if lines.len() == 2 {
            let topics = self.topics().into_iter().collect::<Vec<_>>().join(" ");
            return format!("Not measured yet: `scripts/figures.sh {topics}`.");
        }
        lines.push(String::new());
        let stamps: Vec<String> = figures.iter().map(|(_, figures)| figures.stamp.to_string()).collect();
        lines.push(format!("Measured by {}.", stamps.join(";\n")));
        lines.join("\n")
    }

    /// The table alone: two lines when nothing of it was measured.
    fn lines(&self, measured: &Measured) -> Vec<String> {
        let headings = self.columns.iter().map(|(heading, _)| format!(" {heading} |")).collect::<String>();
        let mut text = vec![
            format!("| {} |{headings}", self.heading),
            format!("|---|{}", "---|".repeat(self.columns.len())),
        ];
        for line in self.measured_lines(measured) {
            let cells: Vec<String> =
                self.columns.iter().map(|(_, cell)| cell.text(&line, measured).unwrap_or_default()).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                let label = line.label.parse().map_or_else(|_| line.label.to_owned(), number);
                text.push(format!("| {label} | {} |", cells.join(" | ")));
            }
        }
        text
    }

    fn measured_lines<'a>(&self, measured: &Measured<'a>) -> Vec<Line<'a>> {
        let rows =
            |topic| measured.get(topic).and_then(|runs| runs.first()).map_or(&[][..], |rows| &rows[..]);
        let mut lines: Vec<Line> = match self.lines {
            Lines::Cases(topic) => rows(topic)
                .iter()
                .map(|row| Line { label: &row.case, topic, case: &row.case, contender: "", value: "" })
                .collect(),
            Lines::Contenders(topic) => rows(topic)
                .iter()
                .map(|row| {
                    let (case, contender) = (&row.case, &row.contender);
                    Line { label: contender, topic, case, contender, value: "" }
                })
                .collect(),
            Lines::Listed(lines) => lines.to_vec(),
        };
        lines.dedup_by_key(|line| (line.label, line.case));
        lines
    }
}

impl Cell {
    fn text(&self, line: &Line, measured: &Measured) -> Option<String> {
        let runs = measured.get(line.topic)?;
        let or = |own: &'static str, lines| if own.is_empty() { lines } else { own };
        let values =
            |contender, value| values(runs, line.case, or(contender, line.contender), or(value, line.value));
        Some(match *self {
            Of(contender, value) => number(median_and_range(&values(contender, value)?).0),
            Range(contender, value) => range(&values(contender, value)?),
            Ratio(ours, theirs, value) => {
                let pairs = values(ours, value)?.into_iter().zip(values(theirs, value)?);
                range(&pairs.map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
            }
        })
    }
}

fn range(values: &[f64]) -> String {
    let (median, least, most) = median_and_range(values);
    if values.len() == 1 {
        return number(median);
    }
    format!("{} ({} to {})", number(median), number(least), number(most))
}

/// Three digits or more, as in `1.23`, `12.3`, `123` and `12,345`.
fn number(value: f64) -> String {
    if value != value.trunc() && value < 100.0 {
        return format!("{value:.*}", if value < 10.0 { 2 } else { 1 });
    }
    let mut digits = format!("{value:.0}");
    for end in (1..digits.len()).rev().filter(|end| (digits.len() - end) % 3 == 0).collect::<Vec<_>>() {
        digits.insert(end, ',');
    }
    digits
}
