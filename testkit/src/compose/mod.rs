//! Servers in the containers of a compose file.
//!
//! `container.rs` is one of them, `docker.rs` the engine's command, `created.rs` what the engine
//! says (pure), and `keeper.sh` takes everything down, however this process ends; `here.rs` is for
//! the repository's own tests.

mod container;
mod created;
mod docker;
mod error;
mod here;

pub use container::Container;
pub use error::ComposeError;
pub use here::{compose_file, skipped};

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use docker::docker;

const KEEPER: &str = include_str!("keeper.sh");

/// How often a start may meet a port that is taken.
const PORTS_TO_TRY: u32 = 5;

/// A project of its own from a compose file: new containers, networks and volumes, whatever else
/// was started from the file. Every service without a profile is a server, and publishes the port
/// 6379 at a fixed one. Dropping it takes all of that down, and so does the end of this process,
/// whatever ends it.
///
/// Each project has ports of its own if the file has them behind `QUORATE_PORTS`, as the
/// repository's has.
#[derive(Debug)]
pub struct Project {
    name: String,
    containers: Vec<Container>,
    _keeper: Keeper,
}

impl Project {
    /// Starts every service of a compose file that has no profile. Returns when all servers answer.
    ///
    /// # Errors
    ///
    /// When there is no Docker engine or no compose tool; when a service does not start or answer,
    /// publishes no port, or would write to what is not the project's own.
    pub fn up(file: &Path) -> Result<Self, ComposeError> {
        let tool = docker::tool()?;
        let failed = |why| ComposeError::Services { file: file.display().to_string(), why };
        fs::metadata(file).map_err(|error| failed(error.to_string()))?;
        let mut tried = 0;
        loop {
            tried += 1;
            match Self::start(tool, file) {
                Err(why) if is_about_a_port(&why) && tried < PORTS_TO_TRY => {}
                started => return started.map_err(failed),
            }
        }
    }

    /// Its name, as the compose tool has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The servers, in the order of their services' names.
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    fn start(tool: &[&str], file: &Path) -> Result<Self, String> {
        let number = next_number();
        let name = format!("quorate-{}-{number}", std::process::id());
        let keeper = Keeper::create(&name, tool, file, number)?;
        let of_it = format!("label=com.docker.compose.project={name}");
        let ids = docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &of_it])?;
        let ids: Vec<&str> = ids.lines().collect();
        let mut created = created::read(&docker(&[&["inspect"], &*ids].concat())?)?;
        created.sort_by(|one, other| one.service().cmp(other.service()));
        created.iter().try_for_each(|container| container.is_isolated(&name))?;
        let containers = created.iter().map(Container::new).collect::<Result<Vec<_>, _>>()?;
        docker(&[&["start"], &*ids].concat())?;
        containers.iter().try_for_each(Container::answers)?;
        Ok(Self { name, containers, _keeper: keeper })
    }
}

/// What takes a project down when this process ends, or when it is dropped.
#[derive(Debug)]
struct Keeper(Child);

impl Keeper {
    /// Has the containers created, and not started.
    fn create(project: &str, tool: &[&str], file: &Path, number: u32) -> Result<Self, String> {
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", project])
            .args(tool)
            .args(["-p", project, "-f"])
            .arg(file)
            .args(["up", "--no-start"])
            .env("QUORATE_PORTS", ports(number))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0) // what is typed to end this process does not end it
            .spawn();
        let mut keeper = Self(keeper.map_err(|error| format!("sh: {error}"))?);
        let output = BufReader::new(keeper.0.stdout.as_mut().expect("it was piped"));
        let mut said = Vec::new();
        for line in output.lines() {
            match line.map_err(|error| error.to_string())?.as_str() {
                "created" => return Ok(keeper),
                "failed" => break,
                line => said.push(line.to_owned()),
            }
        }
        Err(said.join("\n"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take()); // the keeper reads the end of its input, takes the project down, and ends
        let _ = self.0.wait();
    }
}

/// Another one for each project of a process, and mostly for those of others.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    std::process::id().wrapping_mul(7919).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What the last digit of each port is put behind: above the ports of the test kit's processes, and
/// below those that the system gives out by itself.
fn ports(number: u32) -> String {
    const FIRST: u32 = 3_000;
    const COUNT: u32 = 270;
    (FIRST + number % COUNT).to_string()
}

/// Whether the engine says so, of a port that another container has, or another process.
fn is_about_a_port(why: &str) -> bool {
    ["port is already allocated", "address already in use"].iter().any(|words| why.contains(words))
}
