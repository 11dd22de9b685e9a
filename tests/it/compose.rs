//! The compose file, started for real where a Docker engine answers.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use quorate::Error;

use crate::{PATIENT, SOON, TTL, answering, until};

const IMAGE: &str = "redis:7.4-alpine";

/// Ports 17001 to 17005, away from those that a developer may have up.
const PORTS: &str = "1700";

/// The compose file's project, taken down again when the test ends.
struct Project(Vec<&'static str>);

impl Project {
    fn run(&self, args: &[&str]) -> Output {
        let (program, before) = self.0.split_first().unwrap();
        Command::new(program)
            .args(before)
            .args(["-p", "quorate-test"])
            .args(args)
            .env("QUORATE_PORTS", PORTS)
            .current_dir(root())
            .output()
            .unwrap()
    }

    fn must(&self, args: &[&str]) {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.run(&["down", "--volumes", "--timeout", "1"]);
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn succeeds(words: &[&str]) -> bool {
    let output = Command::new(words[0]).args(&words[1..]).current_dir(root()).output();
    output.is_ok_and(|output| output.status.success())
}

/// The compose tool, if there is an engine for it and the image can be had.
fn project() -> Result<Project, &'static str> {
    if !succeeds(&["docker", "info"]) {
        return Err("no Docker engine answers");
    }
    let tools = [vec!["docker", "compose"], vec!["docker-compose"]];
    let tool = tools.into_iter().find(|tool| succeeds(&[tool.clone(), vec!["version"]].concat()));
    let Some(tool) = tool else { return Err("there is no compose tool") };
    let image = succeeds(&["docker", "image", "inspect", IMAGE])
        || succeeds(&["timeout", "60", "docker", "pull", IMAGE])
        || succeeds(&["scripts/redis-image.sh", IMAGE]);
    if image { Ok(Project(tool)) } else { Err("the image can be neither pulled nor built") }
}

fn healthy(project: &Project) -> usize {
    let output = project.run(&["ps", "-q"]);
    let ids = String::from_utf8(output.stdout).unwrap();
    let health = |id: &str| {
        let output =
            Command::new("docker").args(["inspect", "-f", "{{.State.Health.Status}}", id]).output().unwrap();
        output.stdout.starts_with(b"healthy")
    };
    ids.lines().filter(|id| health(id)).count()
}

async fn wait_for_health(project: &Project, count: usize) {
    let begun = Instant::now();
    while healthy(project) < count {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "only {} of {count} are healthy",
            healthy(project)
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn the_compose_file_gives_five_masters_that_keep_their_votes() {
    let project = match project() {
        Ok(project) => project,
        Err(why) => return println!("skipped: the compose file, {why}"),
    };
    project.must(&["down", "--volumes", "--timeout", "1"]);
    project.must(&["up", "-d"]);
    wait_for_health(&project, 5).await;
    let urls = (1..=5).map(|i| format!("redis://127.0.0.1:{PORTS}{i}"));
    let redlock = crate::begin().masters(urls).ttl(TTL * 4).timeout(PATIENT).build().unwrap();
    let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
    let everywhere = async || {
        redlock.lock("l").inspect().await.unwrap().holder().is_some_and(|holder| holder.masters == 5)
    };
    until("the key on every master", everywhere).await;

    // A crash loses no vote that was answered: three of five die and come back, and the lock is still held.
    project.must(&["kill", "master1", "master2", "master3"]);
    assert!(matches!(redlock.lock("other").try_acquire().await, Err(Error::NoQuorum { .. })));
    project.must(&["start", "master1", "master2", "master3"]);
    wait_for_health(&project, 5).await;
    answering(&redlock, 5).await;
    let holder = redlock.lock("l").inspect().await.unwrap().holder().unwrap();
    assert_eq!((&*holder.owner, holder.masters), (&*guard.owner().to_string(), 5));
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    guard.extend(TTL * 4).await.unwrap();
    guard.release().await.unwrap();
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
}
