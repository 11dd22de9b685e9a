//! The masters of the compose file, where a Docker engine answers: what containers can have, and
//! that they are taken down.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use quorate_chaos::nemesis::{Commands, Keys, Limits, Servers, What, Wound};
use quorate_chaos::run::{Stop, Trial};
use quorate_chaos::workload::{Kind, Subject};
use quorate_chaos::{Arena, Host, scenario};
use quorate_testkit::{Project, compose_file};

use crate::stage::client;
use crate::{connected, first, has, reached, reaches, set, until};

fn strike(arena: &mut Arena, what: What) -> Wound {
    assert!(what.suits(Host::Container), "{what}");
    first(what).strike(arena)
}

/// What names the first master's process.
fn run_id(arena: &Arena) -> String {
    let info: String = arena.masters[0].command(&["INFO", "server"]);
    info.lines().find(|line| line.starts_with("run_id:")).unwrap().to_owned()
}

fn is_up(arena: &Arena) -> bool {
    reaches(arena, 0, 0)
}

/// Nobody reaches it until it is healed, and everybody reaches the others; it keeps its keys.
fn is_out_of_reach(arena: &mut Arena, what: Servers) {
    let (before, key) = (run_id(arena), what.to_string());
    set(&arena.masters[0], &key);
    let wound = strike(arena, What::Servers(what));
    assert!(!is_up(arena) && !reaches(arena, 1, 0), "{what}");
    (1..5).for_each(|master| reached(arena, 0, master));
    wound.heal(arena);
    reached(arena, 0, 0);
    assert!(has(&arena.masters[0], &key), "{what}");
    assert_eq!(run_id(arena) != before, what == Servers::Kill, "{what}");
}

#[test]
fn containers_have_the_faults_that_suit_them_and_are_healed() {
    let Some(file) = compose_file("faults of containers") else { return };
    let mut arena = Arena::of_containers(&file, 2, 1).unwrap();
    assert_eq!((arena.masters.len(), arena.host()), (5, Host::Container));
    for what in [Servers::Kill, Servers::Freeze, Servers::Disconnect] {
        is_out_of_reach(&mut arena, what);
    }

    let mut connection = connected(&arena, 0, 0);
    strike(&mut arena, What::Commands(Commands::ClientKill)).heal(&mut arena);
    assert!(redis::cmd("PING").exec(&mut connection).is_err());
    reached(&arena, 0, 0);
    for what in [
        What::Commands(Commands::BusyScript),
        What::Limits(Limits::OutOfMemory),
        What::Limits(Limits::ReadOnly),
    ] {
        let wound = strike(&mut arena, what);
        assert!(arena.masters[0].try_command::<()>(&["SET", "k", "v"]).is_err(), "{what}");
        wound.heal(&mut arena);
        set(&arena.masters[0], "k");
    }
    set(&arena.masters[0], "k");
    set(&arena.masters[1], "k");
    strike(&mut arena, What::Keys(Keys::FlushAll)).heal(&mut arena);
    assert!(!has(&arena.masters[0], "k") && has(&arena.masters[1], "k"));
}

/// The same run as on processes: masters are killed, stand still, and are taken off their network.
#[test]
fn nothing_is_found_where_containers_fail() {
    let Some(file) = compose_file("failover of containers") else { return };
    let scenario = scenario::FAILOVER.on(Host::Container).unwrap();
    // A master that was killed has no vote for six seconds: a minority is, so that clients go on.
    let has_all = |trial: &Trial| {
        let faults = trial.plan().faults;
        let with = |what| faults.iter().filter(move |planned| planned.fault.what == What::Servers(what));
        let killed: BTreeSet<_> = with(Servers::Kill).flat_map(|planned| &planned.fault.masters).collect();
        let has = |what| with(what).next().is_some();
        (1..=2).contains(&killed.len()) && has(Servers::Freeze) && has(Servers::Disconnect)
    };
    let trial = |seed| Trial {
        scenario,
        seed,
        length: Duration::from_secs(8),
        masters: 5,
        clients: 3,
        subject: Subject::Quorate(Kind::ALL.to_vec()),
        ttl: Duration::from_secs(2),
    };
    let trial = (1..).map(trial).find(has_all).unwrap();
    let arena = Arena::of_containers(&file, trial.clients, trial.seed).unwrap();
    let outcome = trial.run(arena, client, None, &Stop::default(), |_| {}).unwrap();
    println!("{} calls, {} guards", outcome.history.calls.len(), outcome.history.holds.len());
    assert_eq!((outcome.verdict.violations, outcome.verdict.inconclusive), (vec![], vec![]));
    assert_eq!(outcome.history.faults.len(), trial.plan().faults.len());
    assert!(outcome.history.holds.len() > 100, "{} guards", outcome.history.holds.len());
}

/// What there is of a project: containers, networks and volumes.
fn remains(project: &str) -> String {
    let label = format!("label=com.docker.compose.project={project}");
    let lists = [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]];
    let list =
        |list: &[&str]| Command::new("docker").args(list).args(["--quiet", "--filter", &label]).output();
    lists.into_iter().map(|words| String::from_utf8(list(words).unwrap().stdout).unwrap()).collect()
}

/// This is what the process of the next test runs, and otherwise nothing. It says what it has
/// started, and waits.
#[test]
fn a_project_is_up() {
    if std::env::var(UP).is_err() {
        return;
    }
    let project = Project::up(&compose_file("a project").unwrap()).unwrap();
    println!("{UP}={}", project.name());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// What tells the process of the next test what to do, and what it says before a project's name.
const UP: &str = "QUORATE_PROJECT_UP";

#[test]
fn containers_are_taken_down_however_the_run_ends() {
    let Some(file) = compose_file("the end of containers") else { return };
    let project = Project::up(&file).unwrap();
    let name = project.name().to_owned();
    assert_eq!(remains(&name).lines().count(), 5 + 1 + 5);
    project.containers()[0].freeze();
    project.containers()[1].disconnect();
    drop(project);
    assert_eq!(remains(&name), "");

    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "compose::a_project_is_up", "--nocapture"])
        .env(UP, "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let name = lines
        .into_iter()
        .find_map(|line| Some(line.split_once("QUORATE_PROJECT_UP=")?.1.to_owned()))
        .unwrap();
    assert_eq!(remains(&name).lines().count(), 5 + 1 + 5);
    child.kill().unwrap();
    child.wait().unwrap();
    until("its end", || remains(&name).is_empty());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let Some(_) = compose_file("a missing file") else { return };
    let error = Project::up(Path::new("no-such.yml")).unwrap_err().to_string();
    assert!(error.starts_with("no-such.yml: ") && error.contains("No such file"), "{error}");
}

/// Services that are no masters, or whose data are not the run's own.
#[test]
fn services_that_faults_must_not_strike_are_refused() {
    let Some(file) = compose_file("refused services") else { return };
    let whole = std::fs::read_to_string(file).unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let refused = |from: &str, to: &str| {
        assert!(whole.contains(from));
        let other = folder.path().join("other.yml");
        std::fs::write(&other, whole.replace(from, to)).unwrap();
        Project::up(&other).unwrap_err().to_string()
    };
    let error = refused("127.0.0.1:${QUORATE_PORTS:-700}3:6379", "127.0.0.1::6379");
    assert!(error.contains("master3 publishes its port 6379 at no fixed one"), "{error}");
    let own = format!("{}:/data", folder.path().display());
    let error = refused("data2:/data", &own);
    assert!(error.contains("master2 would write to /"), "{error}");
}
