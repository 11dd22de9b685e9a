//! Begins sets of masters, as by the command: before anybody works, and again when one is lost.

use std::sync::Arc;
use std::time::Duration;

use quorate::{Init, Redlock, SetError};
use tokio::sync::oneshot;

use crate::left::Left;
use crate::plan::Plan;
use crate::stage::Stage;

/// How often somebody looks after a set, and how often in a row it has to be lost.
pub(crate) const LOOK: Duration = Duration::from_millis(250);
const LOST: usize = 4;

/// Some clients begin sets, each of the masters that it was given, and are gone.
pub(crate) async fn begin_sets(stage: &Arc<Stage>, plan: &Plan) {
    let left = Left::of(stage);
    let founders = &plan.lists.founders;
    let begin = |client| begin(stage.clone(), client, plan.lists.are_used);
    founders.iter().for_each(|client| left.run(stage, *client, begin(*client)));
    left.wait(stage).await;
    founders.iter().for_each(|client| stage.kill(*client));
}

/// If no client ever used these masters, it says so.
async fn begin(stage: Arc<Stage>, client: usize, are_used: bool) {
    let redlock = &stage.clients[client].redlock;
    let begun = async {
        let how = Init::new();
        let how = if are_used { how } else { how.never_used(redlock.fingerprint().await?) };
        redlock.init(how).await
    };
    let begun = begun.await;
    stage.world.note(|| match &begun {
        Ok(()) => format!("c{client}     its set has begun"),
        Err(error) => format!("c{client}     its set has not begun: {error:#}"),
    });
}

/// Begins each set again whenever it is lost, as `quorate init --watch` does.
pub(crate) fn watch_sets(stage: &Arc<Stage>, plan: &Plan) {
    let lists = if plan.sets_change() { vec![plan.lists.of(0)] } else { plan.lists.founded_lists() };
    for list in lists {
        let its = stage.clone();
        let plan = plan.clone();
        drop(tokio::spawn(async move { its.world.guard(watch(&its, &plan, list)).await }));
    }
}

/// Whoever changes a set tells those that look after it.
async fn watch(stage: &Arc<Stage>, plan: &Plan, mut list: Vec<usize>) {
    let mut has_begun = false;
    let mut lost = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(set) = stage.set_of(&list) {
            (has_begun, lost) = (true, 0);
            if plan.sets_change() {
                stage.goes_on(set);
            }
        }
        let newest = if plan.sets_change() { stage.newest_list() } else { Vec::new() };
        if !newest.is_empty() {
            list = newest;
        }
        lost += usize::from(has_begun && stage.set_of(&list).is_none());
        if lost >= LOST {
            begin_again(stage, plan, &list).await;
        }
    }
}

/// A process begins the set of these masters, and ends.
async fn begin_again(stage: &Arc<Stage>, plan: &Plan, list: &[usize]) {
    stage.world.note(|| format!("the set of {list:?} is lost"));
    let begun = operate(stage, plan, list, |redlock| async move { redlock.init(Init::new()).await }).await;
    // Now, as the list may be another one a moment later.
    if begun.is_ok()
        && plan.sets_change()
        && let Some(set) = stage.set_of(list)
    {
        stage.goes_on(set);
    }
    stage.world.note(|| match &begun {
        Ok(()) => format!("the set of {list:?} began again"),
        Err(error) => format!("the set of {list:?} did not begin again: {error:#}"),
    });
}

/// A process has the set go on without the masters that do not answer, and ends.
pub(crate) async fn recover(stage: &Arc<Stage>, plan: &Plan, list: &[usize]) {
    let recovered = operate(stage, plan, list, |redlock| async move { redlock.recover().await }).await;
    stage.world.note(|| match &recovered {
        Ok(()) => "the set is recovered".to_owned(),
        Err(error) => format!("the set is not recovered: {error:#}"),
    });
}

/// An operator with this list runs a command, in a process of its own.
async fn operate<F>(
    stage: &Arc<Stage>,
    plan: &Plan,
    list: &[usize],
    command: fn(Redlock) -> F,
) -> Result<(), SetError>
where
    F: Future<Output = Result<(), SetError>> + Send + 'static,
{
    let operator = stage.operator(plan, list);
    let (tell, told) = oneshot::channel();
    let running = command(operator.redlock.clone());
    operator.process.run(async move {
        let _ = tell.send(running.await); // somebody waits for that
    });
    let done = told.await.expect("it is not killed before");
    operator.ends();
    done
}
