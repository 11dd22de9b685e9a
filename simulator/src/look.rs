//! Looks at what the masters keep, and writes it down.

use std::sync::Arc;

use quorate_history::{Decree, FoundEntry, Place};

use crate::client::process_name;
use crate::recorder::short_name;
use crate::stage::Stage;

/// Looks at what all masters keep.
pub(crate) fn look(stage: &Arc<Stage>) {
    stage.world.look_at_the_time();
    let found = stage.servers.iter().flat_map(|server| server.locks());
    let found = found.map(|key| match stage.client_of(&key.owner) {
        Some(client) => {
            FoundEntry { process: Some(process_name(client)), owner: short_name(&key.owner, client), ..key }
        }
        None => key,
    });
    let found: Vec<_> = found.collect();
    let names = stage.servers.iter().flat_map(|server| server.names());
    let decrees = stage.servers.iter().filter_map(|server| server.decree());
    stage.world.note(|| format!("{} entries on the masters", found.len()));
    stage.world.recorder.with(|history| {
        history.entries.extend(found);
        history.names.extend(names);
        for decree in decrees {
            let is_it = |its: &Decree| {
                (&its.set, its.generation, &its.members) == (&decree.set, decree.generation, &decree.members)
            };
            if !history.decrees.iter().any(is_it) {
                history.decrees.push(decree);
            }
        }
    });
}

/// Looks who stands in the queues of all masters that were of the set all the time. In those of one
/// that left, and may be back, those stand who asked it before.
pub(crate) fn look_for_places(stage: &Arc<Stage>) {
    let stayed = stage.servers.iter().filter(|server| stage.has_stayed(server));
    let found = stayed.flat_map(|server| server.places());
    let found = found.filter_map(|place| {
        let client = stage.client_of(&place.ticket)?;
        Some(Place { process: process_name(client), ticket: short_name(&place.ticket, client), ..place })
    });
    let found: Vec<_> = found.collect();
    stage.world.note(|| format!("{} places in the queues", found.len()));
    stage.world.recorder.with(|history| history.places = found);
}
