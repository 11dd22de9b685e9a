//! Begins sets of masters, as by the command, before anybody works.

use std::sync::Arc;

use quorate::{Error, Init};

use crate::left::Left;
use crate::plan::Plan;
use crate::stage::Stage;

/// Some clients begin sets, each of the masters that it was given, and are gone.
pub(crate) async fn begin_sets(stage: &Arc<Stage>, plan: &Plan) {
    let left = Left::of(stage);
    let founders = &plan.lists.founders;
    let begin = |client| begin(stage.clone(), client);
    founders.iter().for_each(|client| left.run(stage, *client, begin(*client)));
    left.wait(stage).await;
    founders.iter().for_each(|client| stage.kill(*client));
}

/// No client ever used these masters: what is refused at first says by which fingerprint they are
/// known.
async fn begin(stage: Arc<Stage>, client: usize) {
    let redlock = &stage.clients[client].redlock;
    let mut begun = redlock.init(Init::new().never_used("")).await;
    if let Err(Error::NotBegun { fingerprint: Some(fingerprint), .. }) = &begun {
        begun = redlock.init(Init::new().never_used(fingerprint)).await;
    }
    stage.world.note(|| match &begun {
        Ok(()) => format!("c{client}     its set has begun"),
        Err(error) => format!("c{client}     its set has not begun: {error:#}"),
    });
}
