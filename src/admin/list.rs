//! List: the names that are held or waited for. Each master lists its names in steps. Then all
//! masters tell about each name that one of them has.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::inspect::Sighting;
use crate::engine::Engine;
use crate::error::Error;
use crate::round::{Forward, is_outdated, quorum, verdict};
use crate::set::Voters;
use crate::vote::{Outcome, Refusal, Vote};
use crate::wire::{
    CallKind, Failure, Kind, LIST, ListStep, MasterIndex, MasterSet, ReplySink, Value, Words, key_pattern,
    name_of, step,
};

/// How many keys a master looks at in one step. That takes a few milliseconds, and blocks all its
/// other clients.
const KEYS_A_STEP: usize = 1000;

/// How many names one call inspects: as many as it can carry.
const NAMES_TOGETHER: usize = 64;

/// How far a listing is.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The masters of this listing.
    voters: Arc<Voters>,
    /// Of each of these, in their order.
    positions: Vec<Position>,
    /// The names that were inspected: each is listed once.
    known: HashSet<Arc<str>>,
}

/// How far the listing is with one master.
#[derive(Clone, Debug, PartialEq)]
enum Position {
    /// The next step begins here.
    At(u64),
    Done,
    /// The master did not answer, and is not asked again.
    Lost(Outcome),
}

impl Engine {
    /// Before the first step.
    pub(crate) fn begin_list(&self) -> Progress {
        let voters = self.dispatcher.voters();
        Progress { positions: vec![Position::At(0); voters.len()], voters, known: HashSet::new() }
    }

    /// Takes the next step on every master, and returns the names found there that a quorum says
    /// are held or waited for, without those that were returned before. `None` where no step is
    /// left. Dropping the future changes nothing.
    pub(crate) async fn list(
        self: &Arc<Self>,
        progress: &mut Progress,
    ) -> Result<Option<Vec<(Arc<str>, Sighting)>>, Error> {
        if !progress.positions.iter().any(|position| matches!(position, Position::At(_))) {
            return Ok(None);
        }
        let (positions, mut new) = self.step(&progress.voters, &progress.positions).await?;
        new.retain(|name| !progress.known.contains(name));
        let new = Vec::from_iter(new);
        let mut listed = Vec::new();
        for names in new.chunks(NAMES_TOGETHER) {
            let looks = self.look_at_each(names.iter().map(|name| &**name), Kind::Lock).await;
            for (name, looks) in names.iter().zip(looks) {
                let seen = self.sighting(&looks);
                if looks.iter().filter(|look| look.is_answer()).count() < quorum(looks.len()) {
                    return Err(verdict::no_quorum(name, seen.votes, false));
                }
                if !seen.held.is_empty() || seen.waiting > 0 {
                    listed.push((name.clone(), seen));
                }
            }
        }
        progress.positions = positions;
        progress.known.extend(new);
        Ok(Some(listed))
    }

    /// Has every master take its next step. Returns how far all are then, and the names they found.
    async fn step(
        self: &Arc<Self>,
        voters: &Voters,
        positions: &[Position],
    ) -> Result<(Vec<Position>, HashSet<Arc<str>>), Error> {
        let prefix = &self.settings.prefix;
        let (to, mut taken) = mpsc::unbounded_channel();
        let steps: Arc<dyn ReplySink> = Arc::new(Forward { to, read });
        let ask = |index: MasterIndex, cursor: u64| {
            let words = Words::new(0).with("list").with(0).with(3);
            let words = words.with(key_pattern(prefix)).with(cursor).with(KEYS_A_STEP);
            let kind = CallKind::Vote { timeout: self.dispatcher.timeout() };
            self.dispatcher.send(&LIST, words, kind, steps.clone(), index.into());
        };
        let mut asked = 0;
        for (index, position) in voters.masters.iter().zip(positions) {
            let Position::At(cursor) = position else { continue };
            asked += 1;
            ask(index, *cursor);
        }
        let mut positions = positions.to_vec();
        let mut names = HashSet::new();
        let mut asked_again = MasterSet::default();
        while asked > 0 {
            asked -= 1;
            let (index, step) = taken.recv().await.expect("the sender is here");
            let position = &mut positions[voters.masters.before(index)];
            let again = !asked_again.has(index);
            *position = match (step, &*position) {
                (Ok(ListStep { next, keys }), _) => {
                    names.extend(keys.iter().filter_map(|key| name_of(prefix, key)).map(Arc::from));
                    next.map_or(Position::Done, Position::At)
                }
                // It may have been told of a change of the set meanwhile, or this client was.
                (Err(outcome), Position::At(cursor)) if again && is_outdated(&outcome) => {
                    // In another process the cursor means nothing.
                    let lost = matches!(outcome, Outcome::Unknown(_));
                    let cursor = if lost { 0 } else { *cursor };
                    asked_again = asked_again.or(index.into());
                    asked += 1;
                    ask(index, cursor);
                    Position::At(cursor)
                }
                (Err(outcome), _) => Position::Lost(outcome),
            };
        }
        let lost = positions.iter().filter(|position| matches!(position, Position::Lost(_))).count();
        if positions.len() - lost >= quorum(positions.len()) {
            return Ok((positions, names));
        }
        let vote = |(master, position): (&Arc<str>, Position)| {
            let outcome = match position {
                Position::Lost(outcome) => outcome,
                _ => Outcome::Answered("some of its names".into()),
            };
            Vote { master: master.clone(), outcome, latency: Duration::ZERO }
        };
        let votes = voters.names.iter().zip(positions).map(vote).collect();
        Err(verdict::no_quorum(&key_pattern(prefix).into(), votes, false))
    }
}

/// What a master found in one step.
fn read(answer: Result<Value, Failure>, time: Option<u64>) -> Result<ListStep, Outcome> {
    match time {
        None if answer.is_ok() => {
            let detail = "FORGOT this master restarted, or lost keys".into();
            Err(Outcome::Refused { reason: Refusal::Forgot, detail })
        }
        _ => step(answer),
    }
}
