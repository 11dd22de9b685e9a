//! Changes the set of masters, one master at a time, while clients hold and wait.
//!
//! Majorities of two lists that differ by one master share a master. So there is no time in which
//! two lists decide together: a change is one value that most masters of the set accept
//! (`trust/decree.rs`), and from then on the next generation, which whoever knows it writes on the
//! others (`trust/membership.rs`). What is left is that lists which are two changes apart are never
//! in use at once. So before a change, whoever makes it sees that masters of the list before are in
//! this generation, so many that no majority of that list is without one, and waits for a
//! quarantine: then every lease that was granted by that list alone is over, or was extended by
//! this one.
//!
//! A change that is cut short is none, or is one: whoever makes the next one finds what was
//! accepted, and goes on with that.

use std::sync::Arc;
use std::time::Duration;

use super::decrees::Said;
use super::dispatch::CONNECTING;
use super::engine::Engine;
use super::init::{LOOK, NO_RECORDS};
use super::quorum::quorum;
use crate::clock::Moment;
use crate::config::MAX_MASTERS;
use crate::master_set::MasterSet;
use crate::set::{SetError, Tell};
use crate::trust::{Accepted, Ballot, MasterRecord, MasterStatus, MemberState, Members, Proposal, Standing};

/// How long to wait for the last masters to be told of a change: as long as a connection may take
/// to be opened. Clients tell the others as they answer.
const TELLING: Duration = Duration::from_secs(3);

/// How often to propose again where somebody else proposes, too.
const PROPOSALS: u32 = 8;

/// One step of a change.
#[derive(Clone, Debug)]
pub(crate) enum ChangeStep {
    /// A master joins: its name in the record, and the URL to connect to it by.
    Add { name: Arc<str>, url: Arc<str> },
    /// One leaves.
    Remove { name: Arc<str> },
}

impl ChangeStep {
    /// Whether the set is what it makes of it.
    fn is_done(&self, newest: &MasterRecord) -> bool {
        match self {
            Self::Add { name, .. } => newest.members.id_of(name).is_some(),
            Self::Remove { name } => newest.members.id_of(name).is_none(),
        }
    }
}

/// What masters promise.
struct Promises {
    /// Who promises, and what each had accepted.
    by: Vec<(usize, Option<Accepted>)>,
    /// The highest ballot that a master names.
    highest: Ballot,
    /// Why others do not, for a sentence.
    not: String,
    /// Who has promised a higher one.
    later: MasterSet,
    /// Whether one of them is in another generation: this client learns that with its next
    /// handshake.
    are_outdated: bool,
}

impl Promises {
    fn masters(&self) -> impl Iterator<Item = usize> {
        self.by.iter().map(|(index, _)| *index)
    }

    /// Those that are in this client's generation, and know what they promised.
    fn in_generation(&self) -> MasterSet {
        self.masters().chain(self.later.iter()).collect()
    }
}

/// [Enough](is_in_each_majority) masters of the list before were seen in this generation.
struct ListBefore {
    /// The set, and its generation.
    of: (Arc<str>, u64),
    since: Moment,
    /// Those, and who they are.
    seen: Vec<(usize, Arc<str>)>,
}

impl ListBefore {
    /// Whether these were seen in the generation of this record.
    fn is_of(&self, newest: &MasterRecord) -> bool {
        self.of == (newest.set.clone(), newest.generation)
    }
}

impl Engine {
    /// Takes these steps, one after the other.
    pub(crate) async fn change_members(
        self: &Arc<Self>,
        mut steps: Vec<ChangeStep>,
        tell: Tell,
    ) -> Result<(), SetError> {
        let engine = self.clone();
        self.run_on_set(async move {
            let _only_one = engine.changing.lock().await;
            let _until_then = EndJoining(&engine);
            engine.until_set_is_known(engine.clock().now()).await?;
            engine.until_all_are_heard().await;
            let newest = engine.until_set_is_known(engine.clock().now()).await?;
            for step in &mut steps {
                engine.look_up(step, &newest)?;
            }
            if let [ChangeStep::Add { name: new, url }, ChangeStep::Remove { name: old }] = &*steps {
                if old == new {
                    let why =
                        "it would replace itself: a master that is back has its place again without that";
                    return Err(SetError::not_changed(why));
                }
                engine.is_to_replace(old, new, &newest)?;
                if !engine.answers(old).await {
                    // It leaves first, when it is known that the new one can join.
                    engine.until_prepared(new, url, &tell).await?;
                    steps.reverse();
                }
            }
            for step in steps {
                engine.take(&step, &tell).await?;
            }
            Ok(())
        })
        .await
    }

    /// Waits for the masters' records, for as long as for a vote: the first one may be out of date.
    async fn until_all_are_heard(&self) {
        let ready = self.dispatcher.all_ready(self.dispatcher.voters().masters);
        let _ = tokio::time::timeout(self.dispatcher.timeout(), ready).await;
    }

    /// Names a master as the set does.
    fn look_up(&self, step: &mut ChangeStep, newest: &MasterRecord) -> Result<(), SetError> {
        let leaves = matches!(step, ChangeStep::Remove { .. });
        let (ChangeStep::Add { name, .. } | ChangeStep::Remove { name }) = step;
        if let Some(own) = self.dispatcher.trust().membership().own_name(name) {
            *name = own;
        } else if leaves {
            let why = format!("{name} is none of its masters, which are {}", newest.members.names());
            return Err(SetError::not_changed(why));
        }
        Ok(())
    }

    /// Whether `new` is to join in the place of `old`: not so where it was one of the set already,
    /// before a change that was cut short had it join.
    fn is_to_replace(&self, old: &str, new: &str, newest: &MasterRecord) -> Result<(), SetError> {
        let has = |its: &Members, name: &str| its.id_of(name).is_some();
        let now = &newest.members;
        let was_cut_short =
            newest.earlier.first().is_some_and(|before| has(before, old) && !has(before, new));
        if !has(now, old) || !has(now, new) || was_cut_short {
            return Ok(());
        }
        let why = format!("{new} is one of its masters already; to have one less, remove {old}");
        Err(SetError::not_changed(why))
    }

    /// Whether the member of this name answers.
    async fn answers(&self, name: &str) -> bool {
        let index = self.dispatcher.trust().membership().index_of_member(name);
        let Some(index) = index else { return false };
        tokio::time::timeout(TELLING, self.dispatcher.ready(index)).await.is_ok()
    }

    async fn take(&self, step: &ChangeStep, tell: &Tell) -> Result<(), SetError> {
        // Since when masters were waited for that have to answer.
        let mut began = self.clock().now();
        let mut watch: Option<ListBefore> = None;
        loop {
            let newest = self.until_set_is_known(began).await?;
            if step.is_done(&newest) {
                self.until_carried(MasterSet::default()).await?;
                let newest = self.dispatcher.trust().membership().newest().cloned();
                match newest {
                    Some(newest) if !step.is_done(&newest) => continue, // somebody has changed it since
                    _ => return Ok(()),
                }
            }
            let joins_in = match step {
                ChangeStep::Add { name, url } if self.joining().is_none() => {
                    self.until_prepared(name, url, tell).await?;
                    continue;
                }
                ChangeStep::Add { name, url } => match self.prepare(name, url).await? {
                    Some(left) => left,
                    None => continue,
                },
                ChangeStep::Remove { .. } => Duration::ZERO,
            };
            let next = self.next_members(step, &newest.members)?;
            let over_in = self.watch(&newest, &mut watch, began).await?;
            let left = joins_in.max(over_in);
            if left.is_zero() {
                let before = self.dispatcher.voters().masters;
                let vote_in = self.decide(&newest, &next, watch.as_ref()).await?;
                if vote_in.is_zero() {
                    self.until_carried(before).await?;
                } else {
                    tell("most of the masters to have a vote", vote_in);
                    tokio::time::sleep(vote_in.min(LOOK)).await;
                    began = self.clock().now();
                }
                continue; // what was decided may be what somebody else proposed
            }
            let what = if over_in >= joins_in {
                "the leases of before the last change to end"
            } else {
                "the new master's quarantine to end"
            };
            tell(what, left);
            let is_seen = |watch: &ListBefore| watch.is_of(&newest);
            if watch.as_ref().is_some_and(is_seen) || newest.earlier.is_empty() {
                began = self.clock().now();
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// The record of the set in the newest generation that its masters show.
    async fn until_set_is_known(&self, began: Moment) -> Result<MasterRecord, SetError> {
        let trust = self.dispatcher.trust();
        loop {
            let seen = trust.record_seen.notified();
            let newest = trust.membership().newest().cloned();
            if let Some(newest) = newest.filter(|_| trust.knows_the_time()) {
                return Ok(newest);
            }
            let misfit = trust.membership().misfit();
            if trust.membership().knows_no_set() {
                return Err(SetError::not_changed(NO_RECORDS));
            }
            if let Some(why) = misfit {
                return Err(SetError::not_changed(why));
            }
            let waited = self.clock().now().since(began);
            let needed = quorum(self.dispatcher.voters().len());
            if waited >= self.settings().wait || trust.is_denied(needed, waited >= CONNECTING) {
                let status = self.master_status();
                let refuses = |status: &MasterStatus| matches!(status.standing, Standing::Refused(_));
                let is_refused = status.iter().any(refuses) && trust.membership().newest().is_none();
                let why = self.in_the_way().await;
                return Err(if is_refused {
                    SetError::not_changed(why)
                } else {
                    unfinished(format!("too few masters answer whose clocks agree: {why}"))
                });
            }
            self.until_seen(seen).await;
        }
    }

    /// What the set is to be after this step.
    fn next_members(&self, step: &ChangeStep, now: &Members) -> Result<Members, SetError> {
        let not_changed = |why: String| Err(SetError::not_changed(why));
        Ok(match step {
            ChangeStep::Add { .. } if now.len() >= MAX_MASTERS => {
                return not_changed(format!("a set has {MAX_MASTERS} masters at most"));
            }
            ChangeStep::Remove { .. } if now.len() == 1 => {
                return not_changed("it is the last one: add another master first".to_owned());
            }
            ChangeStep::Add { name, .. } => {
                let Some((id, _)) = self.joining() else {
                    return Err(unfinished(format!("{name} does not answer any more")));
                };
                now.with(id, name.clone())
            }
            ChangeStep::Remove { name } => now.without(now.id_of(name).expect("it is not done")),
        })
    }

    /// As which member the master that is to join will be one, and for how long it has no vote yet,
    /// when it is a candidate.
    fn joining(&self) -> Option<(u32, Duration)> {
        let trust = self.dispatcher.trust();
        let time = trust.trusted().low;
        let left = |its: &MasterRecord| Duration::from_micros(its.quarantine.saturating_sub(time));
        trust.membership().joining(time).map(|its| (its.member, left(its)))
    }

    /// The index of the master of this name, which is to join.
    fn make_room(&self, name: &Arc<str>) -> Result<usize, SetError> {
        self.dispatcher.trust().membership().make_room(name).ok_or_else(no_room)
    }

    /// Makes a master a candidate of the set, and waits until it is, or has joined.
    async fn until_prepared(&self, name: &Arc<str>, url: &str, tell: &Tell) -> Result<(), SetError> {
        let until = self.clock().now() + self.settings().wait;
        loop {
            let is_one = |newest: &MasterRecord| newest.members.id_of(name).is_some();
            let is_prepared = self.prepare(name, url).await?.is_some();
            if is_prepared || self.dispatcher.trust().membership().newest().is_some_and(is_one) {
                return Ok(());
            }
            let why = self.why_away(self.make_room(name)?).await;
            let left = until.since(self.clock().now());
            let is_denied = self.dispatcher.trust().denying().has(self.make_room(name)?);
            if left.is_zero() || is_denied {
                return Err(SetError::not_changed(format!("{name} cannot join: {why}")));
            }
            tell(&format!("{name} to be ready ({why})"), left);
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// Makes a master a candidate of the set. Returns for how long it has no vote yet; `None` where
    /// it is no candidate yet.
    async fn prepare(&self, name: &Arc<str>, url: &str) -> Result<Option<Duration>, SetError> {
        let trust = self.dispatcher.trust();
        let index = self.make_room(name)?;
        self.dispatcher.join(index, url);
        let _ = tokio::time::timeout(LOOK, self.dispatcher.ready(index)).await; // it is no member yet
        if let Some((_, left)) = self.joining() {
            return Ok(Some(left));
        }
        let record = trust.membership().record_of(index).cloned();
        let newest = trust.membership().newest().cloned();
        match (record, newest) {
            (Some(record), Some(newest))
                if record.set != newest.set && record.state == MemberState::Member =>
            {
                let why = format!("{name} is a master of another set: {}", record.members.names());
                Err(SetError::not_changed(why))
            }
            _ => Ok(None),
        }
    }

    /// Sees that [enough](is_in_each_majority) masters of the list before are in this generation,
    /// and returns for how long yet a lease may be valid that was granted by that list alone.
    async fn watch(
        &self,
        newest: &MasterRecord,
        watch: &mut Option<ListBefore>,
        began: Moment,
    ) -> Result<Duration, SetError> {
        if newest.earlier.is_empty() {
            return Ok(Duration::ZERO);
        }
        let now = self.clock().now();
        let all = self.dispatcher.trust().terms().quarantine();
        if let Some(watch) = watch.as_ref().filter(|watch| watch.is_of(newest)) {
            return Ok((watch.since + all).since(now));
        }
        let proposal = self.proposal(newest, Ballot::default());
        let promises = self.promises(proposal).await;
        let seen = self.of_list_before(newest, promises.in_generation().iter());
        let before = newest.earlier.first().map_or(0, Members::len);
        let is_enough = is_in_each_majority(seen.len(), before);
        if !is_enough && promises.are_outdated && now < began + self.settings().wait {
            return Ok(LOOK); // somebody else has changed something
        }
        if !is_enough {
            let why = format!(
                "{} of the {before} masters of the list before answer, and half of them have to{}",
                seen.len(),
                promises.not
            );
            return Err(unfinished(why));
        }
        let of = (newest.set.clone(), newest.generation);
        *watch = Some(ListBefore { of, since: self.clock().now(), seen });
        Ok(all)
    }

    /// Those of these masters that are on the list before this generation, and who they are.
    fn of_list_before(
        &self,
        newest: &MasterRecord,
        masters: impl Iterator<Item = usize>,
    ) -> Vec<(usize, Arc<str>)> {
        let membership = self.dispatcher.trust().membership();
        let is_on_it = |id| newest.earlier.first().is_some_and(|before| before.has(id));
        masters
            .filter_map(|index| {
                let record = membership.record_of(index)?;
                is_on_it(record.member).then(|| (index, record.incarnation.clone()))
            })
            .collect()
    }

    /// A proposal to all masters of the set about its next generation, with a ballot above this.
    fn proposal(&self, newest: &MasterRecord, above: Ballot) -> Proposal {
        let trust = self.dispatcher.trust();
        let ballot = Ballot::new(trust.time(), above, &*trust.random);
        let masters = self.dispatcher.voters().masters;
        Proposal { set: newest.set.clone(), ballot, generation: newest.generation + 1, masters }
    }

    /// Who promises what.
    async fn promises(&self, proposal: Proposal) -> Promises {
        let highest = proposal.ballot;
        let mut heard = self.dispatcher.put_to_vote(proposal, "");
        let mut promises = Promises {
            by: Vec::new(),
            highest,
            not: String::new(),
            later: MasterSet::default(),
            are_outdated: false,
        };
        while let Some((index, said)) = heard.recv().await {
            promises.are_outdated |= matches!(said, Said::Other(_) | Said::Later(_));
            match said {
                Said::Promised(accepted) => promises.by.push((index, accepted)),
                Said::Later(ballot) => {
                    promises.highest = promises.highest.max(ballot);
                    promises.later = promises.later.or([index].into_iter().collect());
                }
                Said::Accepted => {}
                Said::Other(why) | Said::Nothing(why) => {
                    let master = self.dispatcher.masters().get(index).map(|master| master.name().clone());
                    promises.not += &format!("; {}: {why}", master.as_deref().unwrap_or("a new master"));
                }
            }
        }
        promises
    }

    /// Has most masters of the set accept the next generation: this, or what was accepted before.
    /// Not yet where most of the masters of this one would have no vote for as long as is returned.
    async fn decide(
        &self,
        newest: &MasterRecord,
        next: &Members,
        watch: Option<&ListBefore>,
    ) -> Result<Duration, SetError> {
        let trust = self.dispatcher.trust();
        let all = newest.members.len();
        let mut highest = Ballot::default();
        for proposals in 1..=PROPOSALS {
            let proposal = self.proposal(newest, highest);
            let promises = self.promises(proposal.clone()).await;
            let is_overtaken = promises.highest > proposal.ballot;
            highest = promises.highest;
            if promises.by.len() * 2 <= all {
                if !is_overtaken && !promises.are_outdated || proposals == PROPOSALS {
                    let count = promises.by.len();
                    let not = promises.not;
                    return Err(unfinished(format!(
                        "{count} of {all} masters answer, and most have to{not}"
                    )));
                }
                tokio::time::sleep(self.jittered(LOOK)).await;
                if self.is_over(newest) {
                    return Ok(Duration::ZERO);
                }
                continue;
            }
            let before = promises.by.iter().filter_map(|(_, accepted)| accepted.clone()).max();
            let next = match before.map(|accepted| Members::read(&accepted.value)) {
                Some(Some(found)) => found,
                Some(None) => {
                    let why = "a newer build of Quorate has proposed what this one cannot read";
                    return Err(SetError::not_changed(why));
                }
                None if !self.is_watched(newest, &promises, watch) => {
                    return Err(unfinished("a master forgot meanwhile what it knew".to_owned()));
                }
                None => {
                    let vote_in = self.majority_in(next, &promises)?;
                    if !vote_in.is_zero() {
                        return Ok(vote_in);
                    }
                    next.clone()
                }
            };
            if self.is_over(newest) {
                return Ok(Duration::ZERO);
            }
            let since = trust.time();
            let mut heard = self.dispatcher.put_to_vote(proposal, &next.to_string());
            let mut accepted = 0;
            while let Some((_, said)) = heard.recv().await {
                match said {
                    Said::Accepted => accepted += 1,
                    Said::Later(ballot) => highest = highest.max(ballot),
                    Said::Promised(_) | Said::Other(_) | Said::Nothing(_) => {}
                }
            }
            if accepted * 2 > all {
                trust.membership().decided(newest, next, since);
                trust.follow();
                return if self.is_over(newest) { Ok(Duration::ZERO) } else { Err(no_room()) };
            }
            if self.is_over(newest) {
                return Ok(Duration::ZERO);
            }
            tokio::time::sleep(self.jittered(LOOK)).await;
        }
        Err(unfinished("too few masters answer to know whether it was decided".to_owned()))
    }

    /// For how long yet most masters of the next generation have no vote; an error where most do
    /// not answer.
    fn majority_in(&self, next: &Members, promises: &Promises) -> Result<Duration, SetError> {
        let joins = self.joining();
        let trust = self.dispatcher.trust();
        let time = trust.trusted().low;
        let membership = trust.membership();
        let left = |its: &MasterRecord| Duration::from_micros(its.quarantine.saturating_sub(time));
        let votes_in = |id: u32| {
            let its = |index| membership.record_of(index).filter(|its| its.member == id);
            let joins_in = joins.filter(|(its, _)| *its == id).map(|(_, left)| left);
            joins_in.or_else(|| promises.masters().find_map(its).map(left))
        };
        let mut there: Vec<Duration> = next.iter().filter_map(|(id, _)| votes_in(*id)).collect();
        there.sort_unstable();
        let all = next.len();
        if let Some(most) = there.get(all / 2) {
            return Ok(*most);
        }
        let names = next.names();
        let there = there.len();
        let why =
            format!("the set would be {names}, and {there} of these {all} answer, which is no majority");
        Err(SetError::not_changed(why))
    }

    /// Whether somebody else had the generation after this one decided, or began another set.
    fn is_over(&self, newest: &MasterRecord) -> bool {
        let membership = self.dispatcher.trust().membership();
        let is_later = |now: &MasterRecord| now.set != newest.set || now.generation > newest.generation;
        membership.newest().is_some_and(is_later)
    }

    /// Whether [enough](is_in_each_majority) masters of the list before are still who they were
    /// when they were seen.
    fn is_watched(&self, newest: &MasterRecord, promises: &Promises, watch: Option<&ListBefore>) -> bool {
        let Some(before) = newest.earlier.first() else { return true };
        let now = self.of_list_before(newest, promises.masters());
        let same = watch.map_or(0, |watch| watch.seen.iter().filter(|seen| now.contains(seen)).count());
        is_in_each_majority(same, before.len())
    }

    /// Has every master that answers told of the newest generation; those that have left it, too.
    async fn until_carried(&self, before: MasterSet) -> Result<(), SetError> {
        let trust = self.dispatcher.trust();
        let began = self.clock().now();
        loop {
            let Some(newest) = trust.membership().newest().cloned() else { return Ok(()) };
            let voters = self.dispatcher.voters();
            let all =
                Proposal { masters: voters.masters.or(before), ..self.proposal(&newest, Ballot::default()) };
            // Each call makes a connection tell its master first.
            let promises = self.promises(all).await;
            let those = promises.in_generation();
            let waited = self.clock().now().since(began);
            let all_are_told = voters.masters.without(those).is_empty();
            if all_are_told || voters.have_majority(those) && waited >= TELLING {
                return Ok(());
            }
            if waited >= self.settings().wait.max(TELLING) {
                let not = promises.not;
                return Err(unfinished(format!(
                    "it is decided, and too few masters were told of it yet{not}"
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn no_room() -> SetError {
    SetError::not_changed("this client has seen too many masters: run it again")
}

fn unfinished(why: String) -> SetError {
    SetError::Unfinished { why: why.into() }
}

/// Whether so many masters of a list are in each majority of it: half of them, if it is even. Most
/// masters of a list that differs by one are always so many. If it took most, three masters of a
/// list that had four would all have to answer, and none that is dead could be replaced.
fn is_in_each_majority(count: usize, list: usize) -> bool {
    count * 2 >= list
}

/// No master is to join any more when this is over.
struct EndJoining<'a>(&'a Arc<Engine>);

impl Drop for EndJoining<'_> {
    fn drop(&mut self) {
        self.0.dispatcher.trust().membership().end_joining();
    }
}
