//! Histories: what is written is read again, also where several processes write, and one of them is
//! killed.

use std::fs;
use std::path::Path;
use std::process::Command;

use quorate_chaos::Client;
use quorate_chaos::history::{
    Call, Event, FaultRecord, History, Line, Lock, NoVote, Outcome, Pause, ReadError, Recorder, Share,
    Struck, Time, now, read, read_file,
};
use tempfile::TempDir;

use crate::until;

fn micros(time: u64) -> Time {
    Time::from_micros(time)
}

fn lock() -> Lock {
    Lock { kind: "mutex".to_owned(), names: vec!["l".to_owned()], share: Share::Exclusive }
}

fn acquire() -> Call {
    Call::Acquire { lock: lock(), ttl: micros(2_000_000), wait: micros(500_000) }
}

fn granted(deadline: u64) -> Outcome {
    let deadline = micros(deadline);
    Outcome::Granted { owner: "9f0c:1".to_owned(), deadline, fence: Some(7), permit: None }
}

fn line(at: u64, event: Event) -> Line {
    Line { at: micros(at), process: "p".to_owned(), event }
}

fn invoke(at: u64, number: u64, call: Call) -> Line {
    line(at, Event::Invoke { number, call })
}

fn returned(at: u64, number: u64, outcome: Outcome) -> Line {
    line(at, Event::Return { number, outcome, no_vote: Vec::new() })
}

fn history(lines: &[Line]) -> History {
    read(lines.to_vec()).unwrap()
}

/// What others read.
#[test]
fn lines_are_as_they_are_described() {
    let texts = [
        r#"{"at":71000250,"process":"p","event":"invoke","number":7,"call":{"do":"acquire","lock":{"kind":"mutex","names":["l"],"share":"exclusive"},"ttl":2000000,"wait":500000}}"#,
        r#"{"at":71000900,"process":"p","event":"return","number":7,"outcome":{"is":"granted","owner":"9f0c:1","deadline":72978000,"fence":7}}"#,
        r#"{"at":71000901,"process":"p","event":"invoke","number":8,"call":{"do":"write","resource":"r","fence":7}}"#,
        r#"{"at":71000902,"process":"p","event":"return","number":8,"outcome":{"is":"unknown","why":"timed out"}}"#,
        r#"{"at":71000903,"process":"p","event":"stranger","why":"another list"}"#,
        r#"{"at":71000903,"process":"p","event":"calm"}"#,
        r#"{"at":71000904,"process":"p","event":"key","master":2,"key":"quorate:{l}","ttl":null}"#,
    ];
    let lines = [
        invoke(71_000_250, 7, acquire()),
        returned(71_000_900, 7, granted(72_978_000)),
        invoke(71_000_901, 8, Call::Write { resource: "r".to_owned(), fence: 7 }),
        returned(71_000_902, 8, Outcome::Unknown { why: "timed out".to_owned() }),
        line(71_000_903, Event::Stranger { why: Some("another list".to_owned()) }),
        line(71_000_903, Event::Calm),
        line(71_000_904, Event::Key { master: 2, key: "quorate:{l}".to_owned(), ttl: None }),
    ];
    for (text, line) in texts.into_iter().zip(lines) {
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
        assert_eq!(serde_json::from_str::<Line>(text).unwrap(), line);
    }
    for text in [
        r#"{"at":1,"process":"nemesis","event":"run","version":"0.1.0","scenario":"calm","seed":7,"duration":10000000,"subject":"quorate","kinds":["mutex"],"masters":5,"compose":false,"clients":3,"ttl":2000000,"leases":0}"#,
        r#"{"at":2,"process":"p","event":"return","number":7,"outcome":{"is":"failed","why":"held"},"no_vote":[{"master":2,"why":"quarantine"}]}"#,
        r#"{"at":3,"process":"nemesis","event":"recovers","fault":{"number":1,"family":"servers","what":"kill","masters":[0,2],"clients":[]},"master":2}"#,
    ] {
        let line: Line = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
    }
    let permits = Lock { share: Share::Permits(3), ..lock() };
    assert!(serde_json::to_string(&permits).unwrap().contains(r#""share":{"permits":3}"#));
}

#[test]
fn a_guard_is_what_its_lines_say() {
    let lines = [
        invoke(10, 0, acquire()),
        returned(20, 0, granted(100)),
        line(50, Event::Deadline { hold: 0, deadline: micros(150) }),
        invoke(60, 1, Call::Extend { hold: 0, ttl: micros(90) }),
        returned(61, 1, Outcome::Extended { deadline: micros(160) }),
        invoke(70, 2, Call::Release { hold: 0 }),
        returned(75, 2, Outcome::Released),
        line(80, Event::Lost { hold: 0 }),
    ];
    let whole = history(&lines);
    let hold = &whole.holds[0];
    assert_eq!([hold.asked, hold.granted, hold.deadline], [10, 20, 160].map(micros));
    let ends = [hold.given_back, hold.free, hold.lost].map(Option::unwrap);
    assert_eq!((ends, hold.fence), ([70, 75, 80].map(micros), Some(7)));
    assert_eq!(([hold.window_end(), whole.end], whole.calls.len()), ([70, 80].map(micros), 3));
    assert_eq!(history(&lines[..4]).holds[0].window_end(), micros(150));
    let lost =
        [&lines[..2], &[line(40, Event::Lost { hold: 0 }), line(45, Event::Lost { hold: 0 })]].concat();
    assert_eq!(history(&lost).holds[0].window_end(), micros(40), "when the loss was first reported");
}

#[test]
fn what_nobody_knows_stays_unknown() {
    let made = |lines: &[Line]| history(lines).calls.pop().unwrap();
    let never = made(&[invoke(10, 0, acquire())]);
    assert!(matches!(never.outcome, Outcome::Unknown { .. }) && never.returned.is_none());
    let unknown = Outcome::Unknown { why: "no quorum answered".to_owned() };
    let second = made(&[invoke(10, 0, acquire()), returned(20, 0, unknown.clone())]);
    assert_eq!((second.outcome, second.returned), (unknown, Some(micros(20))));
    let release = [
        invoke(10, 0, acquire()),
        returned(20, 0, granted(100)),
        invoke(30, 1, Call::Release { hold: 0 }),
        returned(40, 1, Outcome::Unknown { why: String::new() }),
    ];
    let hold = history(&release).holds.pop().unwrap();
    assert_eq!((hold.given_back, hold.free), (Some(micros(30)), None));
}

#[test]
fn processes_that_stood_still_or_were_killed_are_known() {
    let process = || "q".to_owned();
    let lines = [
        line(10, Event::Paused { process: process() }),
        line(20, Event::Resumed { process: process() }),
        line(30, Event::Paused { process: process() }),
        line(40, Event::Killed { process: process() }),
        line(60, Event::Quiet),
    ];
    let pause = |from, to| Pause { process: process(), from: micros(from), to };
    let history = history(&lines);
    assert_eq!(history.pauses, [pause(10, Some(micros(20))), pause(30, Some(Time::MAX)), pause(40, None)]);
    assert_eq!((history.quiet, history.calm), (Some(micros(60)), None));
}

#[test]
fn a_fault_lasts_until_it_is_healed() {
    let fault = |number| FaultRecord {
        number: Some(number),
        family: "servers".to_owned(),
        what: "kill".to_owned(),
        masters: vec![1],
        clients: Vec::new(),
    };
    let lines = [
        line(10, Event::Strikes { fault: fault(0) }),
        line(20, Event::Strikes { fault: fault(1) }),
        line(30, Event::Healed { fault: fault(0) }),
    ];
    let struck = |number, from, to: Option<u64>| Struck {
        fault: fault(number),
        from: micros(from),
        to: to.map(micros),
        before: Vec::new(),
    };
    assert_eq!(history(&lines).faults, [struck(0, 10, Some(30)), struck(1, 20, None)]);
}

#[test]
fn masters_of_a_fault_are_healed_one_by_one() {
    let fault = || FaultRecord {
        number: Some(0),
        family: "servers".to_owned(),
        what: "kill".to_owned(),
        masters: vec![0, 2],
        clients: Vec::new(),
    };
    let lines = [
        line(10, Event::Strikes { fault: fault() }),
        line(20, Event::Recovers { fault: fault(), master: 2 }),
        line(40, Event::Healed { fault: fault() }),
    ];
    let until = |lines: &[Line]| [0, 2].map(|master| history(lines).faults[0].until(master));
    let [first, second] = [40, 20].map(|at| Some(micros(at)));
    assert_eq!((until(&lines), until(&lines[..2])), ([first, second], [None, second]));
}

#[test]
fn masters_without_a_vote_are_known_and_so_is_what_a_history_is_of() {
    let no_vote = vec![NoVote { master: 2, why: "quarantine".to_owned() }];
    let answer = Event::Return { number: 0, outcome: granted(100), no_vote: no_vote.clone() };
    let whole = history(&[invoke(10, 0, acquire()), line(20, answer)]);
    let found: Vec<_> = whole.abstentions.iter().map(|one| (one.at, one.of.clone())).collect();
    assert_eq!((found, whole.run), (vec![(micros(20), no_vote[0].clone())], None));
}

#[test]
fn what_is_no_history_is_refused() {
    let twice = [invoke(10, 0, acquire()), invoke(20, 0, acquire())];
    assert!(matches!(read(twice.to_vec()), Err(ReadError::Twice { number: 0, .. })));
    let nothing = |lines: &[Line], of: &str| {
        let error = read(lines.to_vec()).unwrap_err();
        assert!(matches!(&error, ReadError::Nothing { what, .. } if *what == of), "{error}");
    };
    nothing(&[returned(10, 0, granted(100))], "call");
    nothing(&[invoke(1, 0, acquire()), returned(2, 0, granted(9)), returned(3, 0, granted(9))], "call");
    nothing(&[invoke(10, 0, Call::Release { hold: 5 })], "hold");
    nothing(&[invoke(1, 0, acquire()), line(2, Event::Lost { hold: 0 })], "hold");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history");
    assert!(matches!(read_file(&path), Err(ReadError::Io(_))));
    fs::write(&path, "{\"at\":1,\"process\":\"p\",\"event\":\"calm\"}\n{\"at\":2}\n").unwrap();
    assert!(matches!(read_file(&path), Err(ReadError::Line { line: 2, .. })));
}

/// Where a child of this test writes to, and its name.
const CHILD: [&str; 2] = ["QUORATE_HISTORY", "QUORATE_PROCESS"];

/// This is what the processes of the next test run, and otherwise nothing.
#[test]
fn a_process_writes() {
    let [Ok(path), Ok(process)] = CHILD.map(std::env::var) else { return };
    let recorder = Recorder::open(Path::new(&path), process).unwrap();
    let ends = |line: std::io::Result<usize>| !matches!(line, Ok(1..));
    while !ends(std::io::stdin().read_line(&mut String::new())) {
        for _ in 0..200 {
            let number = recorder.invoke(acquire()).unwrap();
            recorder.returned(number, Outcome::Released).unwrap();
        }
        recorder.invoke(acquire()).unwrap(); // and it never returns
    }
}

fn child(path: &Path, process: &str) -> Client {
    let (path, process) = (path.to_owned(), process.to_owned());
    let mut first = true;
    Client::start(move || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = if std::mem::take(&mut first) { process.clone() } else { format!("{process} again") };
        command
            .args(["--exact", "history::a_process_writes", "--nocapture"])
            .stdout(std::process::Stdio::null());
        command.env(CHILD[0], &path).env(CHILD[1], name);
        command
    })
}

#[test]
fn several_processes_write_to_one_file_and_one_is_killed_meanwhile() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history");
    let before = now();
    let mut children: Vec<_> = ["a", "b", "c"].map(|process| child(&path, process)).into();
    for child in &mut children {
        child.tell("go").unwrap();
    }
    let lines = || fs::read_to_string(&path).unwrap_or_default().lines().count();
    until("lines", || lines() > 300);
    children[2].restart();
    children[2].tell("go").unwrap();
    let made = |process: &str| {
        let calls = read_file(&path).map(|history| history.calls).unwrap_or_default();
        calls.iter().filter(|made| made.process == process).count()
    };
    for process in ["a", "b", "c again"] {
        until("all of its lines", || made(process) == 201);
    }
    drop(children);
    let history = read_file(&path).unwrap();
    for process in ["a", "b", "c", "c again"] {
        let calls: Vec<_> = history.calls.iter().filter(|made| made.process == process).collect();
        let unknown = calls.iter().filter(|made| made.returned.is_none()).count();
        let whole = process != "c";
        assert!(unknown == 1 || !whole && unknown == 0, "{process}: {unknown} of {}", calls.len());
        assert!(calls.is_sorted_by_key(|made| made.invoked), "{process}");
    }
    let times = history.calls.iter().map(|made| made.invoked);
    assert!(times.clone().all(|at| (before..=now()).contains(&at)));
    assert!(times.is_sorted());
}

#[test]
fn a_line_that_cannot_be_written_says_whose_and_where() {
    let recorder = Recorder::open(Path::new("/dev/full"), "client-0.1").unwrap();
    let error = recorder.record(Event::Calm).unwrap_err().to_string();
    assert!(error.starts_with("client-0.1 cannot write the history /dev/full: No space left"), "{error}");
    let error = Recorder::open(Path::new("/nowhere/history"), "nemesis").unwrap_err().to_string();
    assert!(error.starts_with("nemesis cannot write the history /nowhere/history: "), "{error}");
}
