//! Client processes that are killed, or stand still.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use quorate_chaos::nemesis::{Clients, Fault, What};
use quorate_chaos::run::Stop;
use quorate_chaos::{Arena, Client, Persistence, Plan, Planned};

use crate::{A_WHILE, first, until};

/// A client that adds a line with its process's number to a file, again and again.
const CLIENT: &str = r#"while read -t 0.01 line; [ $? -gt 128 ]; do echo $$ >>"$0"; done"#;

/// A folder of the arena's own, where its clients write.
fn place(arena: &mut Arena) -> PathBuf {
    arena.masters[0].process().folder().join("client")
}

fn arena() -> Arena {
    let mut arena = Arena::start(1, 1, Persistence::None, 1);
    let file = place(&mut arena);
    arena.clients.push(Client::start(move || {
        let mut command = Command::new("bash");
        command.args(["-c", CLIENT]).arg(&file);
        command
    }));
    arena
}

fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn goes_on(file: &Path) {
    let before = lines(file).len();
    until("more lines", || lines(file).len() > before);
}

#[test]
fn a_client_stands_still_until_it_is_healed() {
    let mut arena = arena();
    let file = place(&mut arena);
    goes_on(&file);
    let wound = first(What::Clients(Clients::Freeze)).strike(&mut arena);
    let before = lines(&file);
    std::thread::sleep(A_WHILE);
    assert_eq!(lines(&file), before);
    wound.heal(&mut arena);
    goes_on(&file);
    assert_eq!(lines(&file).first(), lines(&file).last(), "it is the same one");
}

#[test]
fn a_client_is_killed_and_started_again() {
    let mut arena = arena();
    let file = place(&mut arena);
    goes_on(&file);
    let wound = first(What::Clients(Clients::Kill)).strike(&mut arena);
    assert!(!arena.clients[0].process().is_alive());
    let before = lines(&file);
    std::thread::sleep(A_WHILE);
    assert_eq!(lines(&file), before);
    wound.heal(&mut arena);
    goes_on(&file);
    assert_ne!(lines(&file).first(), lines(&file).last());
    let process = arena.clients[0].process();
    drop(arena);
    assert!(!process.is_alive());
}

#[test]
#[should_panic(expected = "client 1 has ended by itself: exit status: 3")]
fn a_plan_ends_with_a_client_that_ends_by_itself() {
    let mut arena = arena();
    arena.clients[0].kill(); // as faults do
    arena.check_clients();
    arena.clients.push(Client::start(|| {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        command
    }));
    until("the client to end", || !arena.clients[1].process().is_alive());
    let step = What::Clients(Clients::Step { millis: 0 });
    let fault = Fault { what: step, masters: vec![], clients: vec![0] };
    let planned = Planned { number: 0, at: Duration::ZERO, until: Duration::ZERO, fault };
    Plan { seed: 1, faults: vec![planned] }.run(&mut arena, &Stop::default(), |_| {});
}
