//! Changes the set of masters. Each change is made by a process of its own, as by the command: it
//! begins with the first list, and ends with what it has to do, or before.

use std::sync::Arc;
use std::time::Duration;

use quorate::SetChange;
use quorate_history::Time;

use crate::member_change::{MemberChange, Replacement};
use crate::stage::Stage;

/// How often a process begins a change again that was not made.
const TRIES: usize = 3;

/// A process begins at this time to change the set.
pub(crate) async fn change(stage: Arc<Stage>, at: Time, client: usize, change: MemberChange) {
    tokio::time::sleep(at.saturating_sub(stage.world.now())).await;
    if let Some(messages) = change.dies_after {
        let its = Arc::downgrade(&stage); // its process must not keep the stage
        let kill = move || {
            if let Some(stage) = its.upgrade() {
                stage.world.note(|| format!("c{client} is killed"));
                stage.kill(client);
            }
        };
        stage.clients[client].process.dies_after(messages, kill);
    }
    for _ in 0..TRIES {
        if make(&stage, client, change.what).await {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let its = stage.clone();
    stage.world.at(stage.world.now(), move || its.kill(client)); // the command has ended
}

/// In the calm a change is made at once.
pub(crate) async fn change_once_more(stage: Arc<Stage>, client: usize) {
    let members = stage.newest_list();
    let joins = (0..stage.servers.len()).find(|number| !members.contains(number));
    let leaves = joins.is_none().then_some(0);
    if !make(&stage, client, Replacement { joins, leaves }).await {
        let at = stage.world.now();
        stage.world.recorder.stuck(client, at);
    }
}

/// Whether it was made.
async fn make(stage: &Arc<Stage>, client: usize, what: Replacement) -> bool {
    stage.world.note(|| format!("c{client}     {what}"));
    let made = stage.clients[client].redlock.change_members(set_change(what, stage)).await;
    stage.world.note(|| match &made {
        Ok(()) => format!("c{client}     {what}: done"),
        Err(error) => format!("c{client}     {what}: {error:#}"),
    });
    made.is_ok()
}

fn set_change(what: Replacement, stage: &Stage) -> SetChange {
    let name = |number: usize| stage.servers[number].name();
    let change = match (what.joins, what.leaves) {
        (Some(joins), Some(leaves)) => SetChange::replace(name(leaves), name(joins)),
        (Some(joins), None) => SetChange::add(name(joins)),
        (None, Some(leaves)) => SetChange::remove(name(leaves)),
        (None, None) => unreachable!("it changes something"),
    };
    change.by_name()
}
