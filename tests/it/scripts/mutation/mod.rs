//! Scripts that lack a guard, each of which some scenario has to notice.
//!
//! Every condition is set to true and to false, every side of an `and` or an `or` left out, every limit shifted by one, and
//! every line left out that is a statement (`make`). What no scenario notices has to be in the list of what is the same
//! anyhow, with the reason (`allowed`), by the label of its statement (`labels`).

mod allowed;
mod labels;
mod make;
mod tokens;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once};
use std::thread;

use super::Scenario;
use super::lab::{Lab, Scripts};
use super::source::{self, File};
use make::Edit;
use quorate_testkit::Resp;

/// How often the loops of a broken script may go round in one call before it is stopped.
const ROUNDS: u32 = 20_000;

/// A broken script.
struct Mutant {
    file: File,
    edit: Edit,
    scripts: Arc<Scripts>,
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    NoLua,
    Noticed,
    Survived,
}

thread_local! {
    /// Whether a scenario is expected to fail on this thread, so that nobody needs to see how.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn each_label_of_the_scripts_names_one_statement() {
    allowed::check_labels(&source::files());
}

#[test]
fn every_guard_of_the_scripts_is_needed() {
    hide_panics();
    let files = source::files();
    allowed::check_labels(&files);
    let fate = |edit| Mutant::new(&files, 0, edit).fate(&mut super::all());
    assert_eq!(fate(Edit::default()), Fate::Survived, "nothing is broken");
    assert_eq!(fate(Edit { with: "end ".to_owned(), ..Edit::default() }), Fate::NoLua);
    let fates = try_all(&files);
    let count = |fate| fates.iter().filter(|(other, _)| *other == fate).count();
    let [noticed, no_lua, survived] = [Fate::Noticed, Fate::NoLua, Fate::Survived].map(count);
    println!("{} mutants: {noticed} are noticed, {no_lua} are no Lua, {survived} survive", fates.len());
    let survivors = fates.into_iter().filter(|(fate, _)| *fate == Fate::Survived);
    allowed::check(&survivors.map(|(_, mutant)| mutant).collect::<Vec<_>>());
}

/// What becomes of every mutant of these files.
fn try_all(files: &[File]) -> Vec<(Fate, Mutant)> {
    let edits =
        |(place, file): (usize, &File)| make::edits(&file.text).into_iter().map(move |edit| (place, edit));
    let edits = Mutex::new(files.iter().enumerate().flat_map(edits));
    let fates: Mutex<Vec<(Fate, Mutant)>> = Mutex::default();
    thread::scope(|threads| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                IS_QUIET.set(true);
                let mut scenarios = super::all();
                loop {
                    let Some((place, edit)) = edits.lock().unwrap().next() else { return };
                    let mutant = Mutant::new(files, place, edit);
                    let fate = mutant.fate(&mut scenarios);
                    fates.lock().unwrap().push((fate, mutant));
                }
            });
        }
    });
    fates.into_inner().unwrap()
}

impl Mutant {
    fn new(files: &[File], place: usize, edit: Edit) -> Self {
        let mut files = files.to_vec();
        let file = files[place].clone();
        files[place].text = edit.apply(&file.text);
        bound_loops(&mut files);
        Self { file, edit, scripts: Arc::new(source::assemble(&files)) }
    }

    /// Tries the scenarios until one fails. It is the first for the next mutant, which is likely to be much like this one.
    fn fate(&self, scenarios: &mut [Scenario]) -> Fate {
        let labs = (0..self.scripts.kinds.len()).map(|kind| Lab::embedded(self.scripts.clone(), kind, false));
        let is_no_lua = |reply: &Resp| matches!(reply, Resp::Error(text) if text.contains("compiling"));
        if labs.into_iter().any(|lab| is_no_lua(&lab.eval(&[], &[])) || is_no_lua(&lab.greet(&[]))) {
            return Fate::NoLua;
        }
        let fails = |scenario: &Scenario| {
            catch_unwind(AssertUnwindSafe(|| scenario.try_embedded(&self.scripts))).is_err()
        };
        match scenarios.iter().position(fails) {
            Some(place) => {
                scenarios[..=place].rotate_right(1);
                Fate::Noticed
            }
            None => Fate::Survived,
        }
    }

    /// What the list of those that are allowed calls it: the label of its statement, if that has one, and the change.
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

/// A script that lost the end of a loop is stopped: a function counts the rounds. No line gets another number. Embedded servers
/// define the functions once, so each call begins anew to count.
fn bound_loops(files: &mut [File]) {
    let count = format!(
        "local rounds = 0 local function round() rounds = rounds + 1 if rounds > {ROUNDS} then error('no end') end end "
    );
    for file in files.iter_mut() {
        let lines = file.text.lines().map(|line| match line.trim_start().starts_with("while ") {
            true => line.replace(" do", " do round()") + "\n",
            false => line.replace("local replies, ", "rounds = 0 local replies, ") + "\n",
        });
        file.text = lines.collect();
    }
    files[0].text.insert_str(0, &count);
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
