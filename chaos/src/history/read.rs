//! Makes a history of lines.

use std::collections::BTreeMap;
use std::path::Path;

use quorate_history::{
    Abstention, Call, Change, FaultRecord, History, Hold, Key, Made, Outcome, Pause, StrangerAsked, Struck,
    Time,
};

use super::line::{Event, Line};

/// Why lines are no history.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("the history cannot be read")]
    Io(#[from] std::io::Error),
    /// A line is none.
    #[error("line {line} of the history is not one of its events")]
    Line {
        /// Which one, from 1.
        line: usize,
        /// Why not.
        source: serde_json::Error,
    },
    /// A line is about something that was not there.
    #[error("{process} names {what} {number}, which it has not begun, or has ended already")]
    Nothing {
        /// Who says so.
        process: String,
        /// What it was to be.
        what: &'static str,
        /// The number of its call.
        number: u64,
    },
    /// A process has made two calls of one number.
    #[error("{process} has made call {number} twice")]
    Twice {
        /// Which one.
        process: String,
        /// The number of the calls.
        number: u64,
    },
}

/// Reads the history in a file.
///
/// # Errors
///
/// When it cannot be read, or is none.
pub fn read_file(path: &Path) -> Result<History, ReadError> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.split_inclusive('\n').enumerate().filter_map(|(place, line)| match parse(line) {
        Err(_) if !line.ends_with('\n') => None, // it is being written, or its process was killed
        parsed => Some(parsed.map_err(|source| ReadError::Line { line: place + 1, source })),
    });
    read(lines.collect::<Result<_, _>>()?)
}

/// Reads a line. A process that is killed while it writes may leave a part of one, behind which
/// another process goes on: what the first was about to say is not said.
fn parse(line: &str) -> Result<Line, serde_json::Error> {
    serde_json::from_str(line).or_else(|error| match line.rfind(BEGINS) {
        Some(begins) if begins > 0 => serde_json::from_str(&line[begins..]),
        _ => Err(error),
    })
}

/// What every line begins with, and no value within one: there its quotes have backslashes.
const BEGINS: &str = "{\"at\":";

/// Makes a history of lines in any order.
///
/// # Errors
///
/// When they are none.
pub fn read(mut lines: Vec<Line>) -> Result<History, ReadError> {
    lines.sort_by_key(|line| line.at); // those of one process stay in order
    let mut reader = Reader::default();
    for line in lines {
        reader.history.end = line.at;
        reader.take(line)?;
    }
    Ok(reader.history)
}

/// What calls are known by.
type Id = (String, u64);

#[derive(Debug, Default)]
struct Reader {
    history: History,
    /// Where calls are in the history, and the guards that they acquired.
    calls: BTreeMap<Id, usize>,
    holds: BTreeMap<Id, usize>,
    /// Which process was seen first with an owner.
    owners: BTreeMap<String, String>,
}

impl Reader {
    fn take(&mut self, line: Line) -> Result<(), ReadError> {
        let Line { at, process, event } = line;
        match event {
            Event::Run(run) => self.history.run = Some(run),
            Event::Invoke { number, call } => self.invoke(at, process, number, call)?,
            Event::Return { number, outcome, no_vote } => {
                self.returned(at, process, number, outcome)?;
                self.history.abstentions.extend(no_vote.into_iter().map(|of| Abstention { at, of }));
            }
            Event::Deadline { hold, deadline } => self.hold(&process, hold)?.deadline = deadline,
            Event::Lost { hold } => {
                self.hold(&process, hold)?.lost.get_or_insert(at);
            }
            Event::Paused { process } => {
                self.history.pauses.push(Pause { process, from: at, to: Some(Time::MAX) });
            }
            Event::Resumed { process } => self.resume(at, &process),
            Event::Killed { process } => {
                self.history.pauses.push(Pause { process, from: at, to: None });
            }
            Event::Strikes { fault } => {
                self.history.faults.push(Struck { fault, from: at, to: None, before: Vec::new() });
            }
            Event::Recovers { fault, master } => {
                self.struck(&fault).into_iter().for_each(|struck| struck.before.push((master, at)));
            }
            Event::Healed { fault } => {
                self.struck(&fault).into_iter().for_each(|struck| struck.to = Some(at))
            }
            Event::Changes { what } => self.history.changes.push(Change { what, from: at, to: None }),
            Event::Changed => {
                self.history.changes.last_mut().into_iter().for_each(|change| change.to = Some(at))
            }
            Event::Stranger { why } => self.history.strangers.push(StrangerAsked { at, why }),
            Event::Calm => self.history.calm = Some(at),
            Event::Quiet => self.history.quiet = Some(at),
            Event::Key { master, key, ttl } => {
                let ttl = ttl.map(Time::from_micros);
                self.history.keys.push(Key { master, key, ttl, seen: at });
            }
        }
        Ok(())
    }

    fn invoke(&mut self, at: Time, process: String, number: u64, call: Call) -> Result<(), ReadError> {
        let id = (process.clone(), number);
        if self.calls.contains_key(&id) {
            return Err(ReadError::Twice { process, number });
        }
        match call {
            Call::Release { hold } => {
                self.hold(&process, hold)?.given_back.get_or_insert(at);
            }
            Call::Extend { hold, .. } => {
                self.hold(&process, hold)?;
            }
            Call::Acquire { .. } | Call::Write { .. } => {}
        }
        self.calls.insert(id, self.history.calls.len());
        let outcome = Outcome::Unknown { why: "it has not returned".to_owned() };
        self.history.calls.push(Made { process, number, call, invoked: at, returned: None, outcome });
        Ok(())
    }

    fn returned(
        &mut self,
        at: Time,
        process: String,
        number: u64,
        outcome: Outcome,
    ) -> Result<(), ReadError> {
        let id = (process, number);
        let place = self.calls.get(&id).copied();
        let made = place.and_then(|place| self.history.calls.get_mut(place));
        let Some(made) = made.filter(|made| made.returned.is_none()) else {
            let (process, number) = id;
            return Err(ReadError::Nothing { process, what: "call", number });
        };
        (made.returned, made.outcome) = (Some(at), outcome.clone());
        let call = made.call.clone();
        let asked = made.invoked;
        match (call, outcome) {
            (Call::Acquire { lock, .. }, Outcome::Granted { owner, deadline, fence, permit }) => {
                let process = id.0.clone();
                // Two processes are two owners, also where they say that they are one.
                let owner = match self.owners.entry(owner.clone()).or_insert_with(|| process.clone()) {
                    first if *first == process => owner,
                    _ => format!("{owner} of {process}"),
                };
                let granted = at;
                let given_back = None;
                let free = None;
                let lost = None;
                self.holds.insert(id, self.history.holds.len());
                self.history.holds.push(Hold {
                    lock,
                    owner,
                    process,
                    asked,
                    granted,
                    deadline,
                    given_back,
                    free,
                    lost,
                    fence,
                    permit,
                });
            }
            (Call::Extend { hold, .. }, Outcome::Extended { deadline }) => {
                self.hold(&id.0, hold)?.deadline = deadline;
            }
            (Call::Release { hold }, Outcome::Released) => {
                self.hold(&id.0, hold)?.free.get_or_insert(at);
            }
            _ => {}
        }
        Ok(())
    }

    fn hold(&mut self, process: &str, number: u64) -> Result<&mut Hold, ReadError> {
        let place = self.holds.get(&(process.to_owned(), number)).copied();
        let hold = place.and_then(|place| self.history.holds.get_mut(place));
        hold.ok_or_else(|| ReadError::Nothing { process: process.to_owned(), what: "hold", number })
    }

    fn resume(&mut self, at: Time, process: &str) {
        let still = |pause: &&mut Pause| pause.process == process && pause.to == Some(Time::MAX);
        if let Some(pause) = self.history.pauses.iter_mut().rev().find(still) {
            pause.to = Some(at);
        }
    }

    /// Where a fault is that was not healed yet.
    fn struck(&mut self, fault: &FaultRecord) -> Option<&mut Struck> {
        self.history.faults.iter_mut().rev().find(|struck| struck.fault == *fault && struck.to.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_are_two_owners_though_they_say_that_they_are_one() {
        let line = |at: u64, process: &str, rest: &str| {
            serde_json::from_str::<Line>(&format!(r#"{{"at":{at},"process":"{process}","event":{rest}}}"#))
                .unwrap()
        };
        let acquire = r#""invoke","number":N,"call":{"do":"acquire","lock":{"kind":"k","names":["l"],"share":"exclusive"},"ttl":1,"wait":0}"#;
        let granted = r#""return","number":N,"outcome":{"is":"granted","owner":"o","deadline":90,"fence":1}"#;
        let calls = [("p", "0"), ("p", "1"), ("q", "0")].into_iter().zip([10, 20, 30]);
        let lines = calls.flat_map(|((process, number), at)| {
            [acquire, granted].map(|rest| line(at, process, &rest.replace('N', number)))
        });
        let holds = read(lines.collect()).unwrap().holds;
        let owners: Vec<_> = holds.iter().map(|hold| &*hold.owner).collect();
        assert_eq!(owners, ["o", "o", "o of q"]);
    }

    #[test]
    fn a_process_that_is_killed_while_it_writes_leaves_a_part_of_a_line() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("history");
        let write = |number| {
            format!(
                r#"{{"at":{number},"process":"p","event":"invoke","number":{number},"call":{{"do":"release","hold":0}}}}"#
            )
        };
        let acquire = r#"{"at":0,"process":"p","event":"invoke","number":0,"call":{"do":"acquire","lock":{"kind":"k","names":["{\"at\":"],"share":"exclusive"},"ttl":1,"wait":0}}"#;
        let granted = r#"{"at":1,"process":"p","event":"return","number":0,"outcome":{"is":"granted","owner":"o","deadline":9,"fence":1}}"#;
        for part in 0..acquire.len() {
            let torn = &acquire[..part];
            let tail = &write(3)[..part.min(20)];
            std::fs::write(&path, format!("{acquire}\n{granted}\n{torn}{}\n{tail}", write(2))).unwrap();
            let numbers: Vec<u64> = read_file(&path).unwrap().calls.iter().map(|made| made.number).collect();
            assert_eq!(numbers, [0, 2], "{torn}");
        }
        std::fs::write(&path, format!("{acquire}\n{granted}\n{}", write(2))).unwrap();
        assert_eq!(read_file(&path).unwrap().calls.len(), 2, "a last line that is whole counts");
    }
}
