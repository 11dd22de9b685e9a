//! Scripts that lack a guard, which some golden vector has to notice, or some scenario.
//!
//! Every condition is set to true and to false, every side of an `and` or an `or` left out, every
//! limit shifted by one, and every line left out that is a statement (`make`). What nothing notices
//! has to be in the list of what is the same anyhow, with the reason (`allowed`), by the label of
//! its statement (`labels`).

mod allowed;
mod labels;
mod make;
mod tokens;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once};
use std::thread;

use quorate::seam::Script;
use quorate_testkit::{EmbeddedServer, Resp};

use super::source::{self, File};
use super::{Scenario, fenced, free, free_rw, hello, record};
use crate::golden::{self, Vector};
use make::Edit;

/// How often the loops of a broken script may go round in one call before it is stopped.
const ROUNDS: u32 = 20_000;

/// How many mutants a thread tries: it keeps what it compiled.
const A_THREADS: usize = 100;

/// The scripts of which the first cases are tried without the rest, too, for the rest would do the
/// same; with what these checks are called, and what they are.
const FREE: [(&str, &str, &[Scenario]); 2] =
    [("rw", "free rw", free_rw::SCENARIOS), ("semaphore", "free semaphore", free::SCENARIOS)];

/// What may notice that a script is broken.
#[derive(Clone, Copy)]
enum Check<'a> {
    Vector(&'a Vector),
    Scenario(&'a Scenario),
}

/// For each script, by its name, what is tried with it.
type Checks<'a> = BTreeMap<&'static str, Vec<Check<'a>>>;

/// A broken file.
struct Mutant {
    file: File,
    edit: Edit,
    /// All files, with this one as it is broken.
    files: Vec<File>,
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    NoLua,
    Noticed,
    Survived,
}

thread_local! {
    /// Whether a check is expected to fail on this thread, so that nobody needs to see how.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn each_label_of_the_scripts_names_one_statement() {
    allowed::check_labels(&source::files());
}

#[test]
fn every_guard_of_the_scripts_is_needed() {
    hide_panics();
    let (files, vectors) = (source::files(), golden::vectors());
    let checks = checks(&vectors);
    for place in 0..files.len() {
        let fate = |edit| Mutant::new(&files, place, edit).fate(&mut checks.clone());
        assert_eq!(fate(Edit::default()), Fate::Survived, "nothing is broken");
        assert_eq!(fate(Edit { with: "end ".to_owned(), ..Edit::default() }), Fate::NoLua);
    }
    let fates = try_all(&files, &checks);
    let count = |fate| fates.iter().filter(|(other, _)| *other == fate).count();
    let [noticed, no_lua, survived] = [Fate::Noticed, Fate::NoLua, Fate::Survived].map(count);
    println!("{} mutants: {noticed} are noticed, {no_lua} are no Lua, {survived} survive", fates.len());
    let survivors = fates.into_iter().filter(|(fate, _)| *fate == Fate::Survived);
    allowed::check(&survivors.map(|(_, mutant)| mutant).collect::<Vec<_>>());
}

/// The golden vectors of each script, and the scenarios of those that are no lock's.
fn checks(vectors: &[Vector]) -> Checks<'_> {
    let of = |script: &'static Script| -> Vec<Check<'_>> {
        let scenarios = match script.name() {
            "hello" => hello::SCENARIOS,
            "record" => record::SCENARIOS,
            "fenced" => fenced::SCENARIOS,
            _ => &[],
        };
        let vectors = vectors.iter().filter(|vector| vector.script_name == script.name());
        scenarios.iter().map(Check::Scenario).chain(vectors.map(Check::Vector)).collect()
    };
    let mut checks: Checks<'_> = source::scripts().map(|script| (script.name(), of(script))).collect();
    checks.extend(FREE.map(|(_, name, scenarios)| (name, scenarios.iter().map(Check::Scenario).collect())));
    checks
}

/// What becomes of every mutant of these files.
fn try_all(files: &[File], checks: &Checks<'_>) -> Vec<(Fate, Mutant)> {
    let edits =
        |(place, file): (usize, &File)| make::edits(&file.text).into_iter().map(move |edit| (place, edit));
    let edits: Vec<(usize, Edit)> = files.iter().enumerate().flat_map(edits).collect();
    let (parts, fates) = (Mutex::new(edits.chunks(A_THREADS)), Mutex::new(Vec::new()));
    let try_part = |part: &[(usize, Edit)], checks: &mut Checks<'_>| {
        IS_QUIET.set(true);
        for (place, edit) in part {
            let mutant = Mutant::new(files, *place, edit.clone());
            let fate = mutant.fate(checks);
            fates.lock().unwrap().push((fate, mutant));
        }
    };
    let next = || parts.lock().unwrap().next();
    thread::scope(|threads| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                let mut checks = checks.clone();
                while let Some(part) = next() {
                    thread::scope(|one| one.spawn(|| try_part(part, &mut checks)).join().unwrap());
                }
            });
        }
    });
    fates.into_inner().unwrap()
}

impl Check<'_> {
    /// Whether something is not as it should be with this script.
    fn fails(self, script: &Script) -> bool {
        let tried = catch_unwind(AssertUnwindSafe(|| match self {
            Self::Vector(vector) => vector.play_embedded(script).is_ok(),
            Self::Scenario(scenario) => {
                scenario.try_embedded(script);
                true
            }
        }));
        !tried.unwrap_or(false)
    }
}

impl Mutant {
    fn new(files: &[File], place: usize, edit: Edit) -> Self {
        let mut files = files.to_vec();
        let file = files[place].clone();
        files[place].text = edit.apply(&file.text);
        Self { file, edit, files }
    }

    /// Tries all scripts that the file is a part of, until one is noticed to be broken.
    fn fate(&self, checks: &mut Checks<'_>) -> Fate {
        let name = self.file.name;
        let has_it = |script: &&Script| script.parts().any(|(part, _)| part == name);
        let text = |name: &str| &*self.files.iter().find(|file| file.name == name).unwrap().text;
        // Scripts are made for ever.
        let broken = |source: String| Script::new("broken", bounded(&source).leak());
        let all = source::scripts().filter(has_it);
        let all = all.map(|script| (script.name(), broken(script.source_of(|(name, _)| text(name)))));
        let is_first = name == "free" || name.starts_with("slots/");
        let first = FREE.iter().map(|(name, checks, _)| (source::script(name), *checks));
        let first = first.filter(|(script, _)| is_first && has_it(script));
        let first =
            first.map(|(script, checks)| (checks, broken(free::alone(script, |(name, _)| text(name)))));
        let mut fates = all.chain(first).map(|(name, script)| fate(&script, checks.get_mut(name).unwrap()));
        fates.find(|fate| *fate != Fate::Survived).unwrap_or(Fate::Survived)
    }

    /// What the list of those that are allowed calls it: the label of its statement, if that has
    /// one, and the change.
    fn labelled_change(&self) -> String {
        let (number, _) = self.edit.line(&self.file.text);
        let label = labels::labels(&self.file.text).find(|(_, lines)| lines.contains(&(number - 1)));
        format!("{}: {}", label.map_or("no label", |(name, _)| name), self.edit.describe(&self.file.text))
    }

    fn describe(&self, labelled_change: &str) -> String {
        let (number, line) = self.edit.line(&self.file.text);
        format!("scripts/lua/{}.lua:{number}: {line}\n    {labelled_change}", self.file.name)
    }
}

/// Checks until one fails. That is the first for the next script, which is likely to be much like
/// this one.
fn fate(script: &Script, checks: &mut [Check<'_>]) -> Fate {
    let reply = EmbeddedServer::new(0).eval(script, &[], &[]);
    if matches!(reply, Resp::Error(text) if text.contains("compiling")) {
        return Fate::NoLua;
    }
    match checks.iter().position(|check| check.fails(script)) {
        Some(place) => {
            checks[..=place].rotate_right(1);
            Fate::Noticed
        }
        None => Fate::Survived,
    }
}

/// A script that lost the end of a loop is stopped: a function counts the rounds.
fn bounded(text: &str) -> String {
    let mut bounded = format!(
        "local rounds = 0 local function round() rounds = rounds + 1 if rounds > {ROUNDS} then error('no end') end end\n"
    );
    for line in text.lines() {
        match line.trim_start().starts_with("while ") {
            true => bounded += &line.replace(" do", " do round()"),
            false => bounded += line,
        }
        bounded.push('\n');
    }
    bounded
}

/// From here on a panic says nothing on threads that are quiet.
fn hide_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
}
