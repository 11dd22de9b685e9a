//! The tables of README.md and docs/PERFORMANCE.md, which are made from the figures and stand
//! between two markers: `<!-- figures: NAME -->` and `<!-- /figures -->`.

use std::collections::{BTreeMap, BTreeSet};

use crate::figures::{Figures, Row, median_and_range, root, values};
use crate::table_list::TABLES;

const DOCS: [&str; 2] = ["README.md", "docs/PERFORMANCE.md"];
const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- /figures -->";

pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// What its lines are.
    pub(crate) heading: &'static str,
    pub(crate) lines: Lines,
    pub(crate) columns: &'static [(&'static str, Cell)],
}

pub(crate) enum Lines {
    /// A line for each case of a topic, by one value where the columns name none.
    Cases(&'static str, &'static str),
    /// A line for each contender of a topic that has one case.
    Contenders(&'static str),
    Listed(&'static [Line<'static>]),
}

/// What a line's cells show, where the column leaves it open.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) label: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) case: &'a str,
    pub(crate) contender: &'a str,
    pub(crate) value: &'a str,
}

/// A contender's value, or several. What is empty is the line's.
pub(crate) enum Cell {
    /// The median of the runs.
    Of(&'static str, &'static str),
    /// The same, with the lowest and the highest.
    Range(&'static str, &'static str),
    /// The first contender's value to the second's, of each run; the median, with the lowest and
    /// the highest.
    Ratio(&'static str, &'static str, &'static str),
}

/// The runs of each topic that was measured.
type Measured<'a> = BTreeMap<&'a str, &'a [Vec<Row>]>;

use Cell::{Of, Range, Ratio};

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
            Lines::Cases(topic, _) | Lines::Contenders(topic) => BTreeSet::from([topic]),
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
                let label = line.label.parse().map_or_else(|_| line.label.to_owned(), grouped);
                text.push(format!("| {label} | {} |", cells.join(" | ")));
            }
        }
        text
    }

    fn measured_lines<'a>(&self, measured: &Measured<'a>) -> Vec<Line<'a>> {
        let rows =
            |topic| measured.get(topic).and_then(|runs| runs.first()).map_or(&[][..], |rows| &rows[..]);
        let mut lines: Vec<Line> = match self.lines {
            Lines::Cases(topic, value) => rows(topic)
                .iter()
                .map(|row| Line { label: &row.case, topic, case: &row.case, contender: "", value })
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

/// Three digits or more, as in `0.0012`, `1.23`, `12.3`, `123` and `12,345`.
fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..0.01 => format!("{value:.4}"),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => grouped(value.round() as u64),
    }
}

/// A number such as `12,345`.
fn grouped(number: u64) -> String {
    let mut digits = number.to_string();
    let mut end = digits.len();
    while end > 3 {
        end -= 3;
        digits.insert(end, ',');
    }
    digits
}
