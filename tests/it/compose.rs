//! The compose file, started for real where a Docker engine answers.

use std::process::Command;
use std::time::Duration;

use quorate::Error;
use quorate_testkit::{Container, Project, compose_file, eventually};

use crate::{PATIENT, SOON, TTL, answering, until};

/// How long the engine may take to find all servers healthy, on a busy machine.
const HEALTHY: Duration = Duration::from_secs(120);

/// Whether the file's own check finds a server well.
fn is_healthy(container: &Container) -> bool {
    let publishes = format!("publish={}", container.address().port());
    let filters = ["--filter", &publishes, "--filter", "health=healthy"];
    let found = Command::new("docker").args(["ps", "--quiet"]).args(filters).output().unwrap();
    !found.stdout.is_empty()
}

async fn all_healthy(project: &Project) {
    eventually(HEALTHY, || {
        let ill = project.containers().iter().find(|container| !is_healthy(container));
        ill.map_or(Ok(()), |container| Err(format!("{} is not healthy", container.service())))
    })
    .await;
}

#[tokio::test]
async fn the_compose_file_gives_five_masters_that_keep_their_votes() {
    let Some(file) = compose_file("the compose file") else { return };
    let project = Project::up(&file).unwrap();
    assert_eq!(project.containers().len(), 5);
    all_healthy(&project).await;
    let urls = project.containers().iter().map(|container| format!("redis://{}", container.address()));
    let redlock = crate::begin().masters(urls).ttl(TTL * 4).timeout(PATIENT).build().unwrap();
    let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
    let everywhere = async || {
        redlock.lock("l").inspect().await.unwrap().holder().is_some_and(|holder| holder.masters == 5)
    };
    until("the key on every master", everywhere).await;

    // Three of five die and come back, and the lock is still held. On a busy disk one may have lost
    // what it wrote within two seconds before; its quarantine is for that.
    let dying = &project.containers()[..3];
    dying.iter().for_each(Container::kill);
    assert!(matches!(redlock.lock("other").try_acquire().await, Err(Error::NoQuorum { .. })));
    dying.iter().for_each(Container::restart);
    all_healthy(&project).await;
    answering(&redlock, 5).await;
    let holder = redlock.lock("l").inspect().await.unwrap().holder().unwrap();
    assert_eq!(*holder.owner, *guard.owner().to_string());
    assert!(holder.masters >= 3, "{holder}");
    assert!(matches!(redlock.lock("l").try_acquire().await, Err(Error::Held { .. })));
    guard.extend(TTL * 4).await.unwrap();
    guard.release().await.unwrap();
    redlock.lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
}
