//! Client processes that are killed, or stand still.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use quorate_chaos::nemesis::{Clients, What};
use quorate_chaos::{Arena, Client, Persistence};

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
