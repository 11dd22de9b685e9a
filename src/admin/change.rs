//! Changes the set of masters by one at a time, while clients hold and wait. docs/SET.md draws it.
//!
//! Majorities of two lists that differ by one master share a master. So two such lists never decide
//! at the same time. A change is a value that more than half of the members accept
//! (`set/proposer.rs`). From then on it is the next generation, and every client that knows it
//! writes it on the other masters (`set/rules.rs`).
//!
//! Lists that are two changes apart must never be in use at the same time. So before it proposes,
//! the proposer checks that each majority of the previous list has a master in the current
//! generation. Then it waits for a quarantine. After that, every lease of the previous list alone
//! has expired, or was extended by the current list.
//!
//! An interrupted change either happened or did not. The next proposer finds out, and completes it
//! if any master accepted it.

use std::sync::Arc;
use std::time::Duration;

use super::init::{LOOK, NO_RECORDS};
use super::set_change::{SetError, Tell};
use crate::config::MAX_MASTERS;
use crate::engine::Engine;
use crate::round::{AcceptorReply, CONNECTING, quorum};
use crate::set::{
    Ballot, Choice, Event, LeaseBarrier, MasterRecord, MasterStatus, MemberState, Members, Promises,
    Proposal, Standing,
};
use crate::time::Moment;
use crate::wire::{MasterIndex, MasterSet};

/// How often to propose again while another client proposes, too.
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
    /// Whether the set already is as after this step.
    fn is_done(&self, newest: &MasterRecord) -> bool {
        match self {
            Self::Add { name, .. } => newest.members.id_of(name).is_some(),
            Self::Remove { name } => newest.members.id_of(name).is_none(),
        }
    }
}

/// What a proposer would have the masters accept.
struct OwnValue<'a> {
    step: &'a ChangeStep,
    next: &'a Members,
    barrier: Option<&'a LeaseBarrier>,
}

/// The replies to phase 1 of a proposal, also of those that did not promise.
struct PhaseOne {
    promises: Promises,
    /// Why the other masters did not promise, as a part of a sentence.
    not: String,
    /// Whether a master is in another generation. The next handshake tells this client which.
    are_outdated: bool,
}

impl Engine {
    /// Takes these steps, one after the other.
    pub(crate) async fn change_members(
        self: &Arc<Self>,
        mut steps: Vec<ChangeStep>,
        mut tell: Tell,
    ) -> Result<(), SetError> {
        let engine = self.clone();
        self.run_on_set(async move {
            let _only_one = engine.changing.lock().await;
            let _until_then = EndJoining(&engine);
            engine.until_set_is_known(engine.clock().now()).await?;
            let timeout = engine.dispatcher.timeout();
            engine.until_voters(timeout, |voters| engine.dispatcher.all_ready(voters)).await;
            let newest = engine.until_set_is_known(engine.clock().now()).await?;
            for step in &mut steps {
                engine.look_up(step, &newest)?;
            }
            engine.check(&steps, &newest)?;
            engine.complete_accepted(&mut tell).await?;
            if let [ChangeStep::Add { name: new, url }, ChangeStep::Remove { name: old }] = &*steps
                && !engine.answers(old).await
            {
                // It leaves first, when it is known that the new one can join.
                engine.until_prepared(new, url, &mut tell).await?;
                steps.reverse();
            }
            for step in steps {
                engine.take(&step, &mut tell).await?;
            }
            Ok(())
        })
        .await
    }

    /// Names a master as the set does.
    fn look_up(&self, step: &mut ChangeStep, newest: &MasterRecord) -> Result<(), SetError> {
        let leaves = matches!(step, ChangeStep::Remove { .. });
        let (ChangeStep::Add { name, .. } | ChangeStep::Remove { name }) = step;
        if let Some(own) = self.dispatcher.trust().set().own_name(name) {
            *name = own;
        } else if leaves {
            let why = format!("{name} is none of its masters, which are {}", newest.members.names());
            return Err(SetError::not_changed(why));
        }
        Ok(())
    }

    /// Refuses to replace a master with itself, or with one that is a member already, unless an
    /// interrupted replacement made it one.
    fn check(&self, steps: &[ChangeStep], newest: &MasterRecord) -> Result<(), SetError> {
        let [ChangeStep::Add { name: new, .. }, ChangeStep::Remove { name: old }] = steps else {
            return Ok(());
        };
        if old == new {
            let why = "it would replace itself: a master that is back has its place again without that";
            return Err(SetError::not_changed(why));
        }
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

    /// Has the next generation chosen if masters have accepted one. This comes before a candidate
    /// is prepared: one that restarted gets another number, and the list that was accepted may have
    /// the one that it has.
    async fn complete_accepted(&self, tell: &mut Tell) -> Result<(), SetError> {
        let mut began = self.clock().now();
        loop {
            let newest = self.until_set_is_known(began).await?;
            match self.decide(&newest, None).await {
                // Some may not be connected yet.
                Err(SetError::Unfinished { .. }) if self.clock().now().since(began) < CONNECTING => {
                    tokio::time::sleep(LOOK).await;
                }
                Ok(vote_in) if !vote_in.is_zero() => began = self.until_most_vote(vote_in, tell).await,
                decided => return decided.map(drop),
            }
        }
    }

    /// Waits for the quarantines of most masters to end, for a moment. Returns when that was.
    async fn until_most_vote(&self, vote_in: Duration, tell: &mut Tell) -> Moment {
        tell.waits_for("most of the masters to have a vote", vote_in, self.clock().now());
        tokio::time::sleep(vote_in.min(LOOK)).await;
        self.clock().now()
    }

    /// Whether the member of this name answers.
    async fn answers(&self, name: &str) -> bool {
        let index = self.dispatcher.trust().set().index_of_member(name);
        let Some(index) = index else { return false };
        tokio::time::timeout(CONNECTING, self.dispatcher.ready(index)).await.is_ok()
    }

    async fn take(&self, step: &ChangeStep, tell: &mut Tell) -> Result<(), SetError> {
        // Since when masters were waited for that have to answer.
        let mut began = self.clock().now();
        let mut barrier: Option<LeaseBarrier> = None;
        loop {
            let newest = self.until_set_is_known(began).await?;
            if step.is_done(&newest) {
                self.until_carried(MasterSet::default()).await?;
                let newest = self.dispatcher.trust().set().newest().cloned();
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
            let over_in = self.watch(&newest, &mut barrier, began).await?;
            let left = joins_in.max(over_in);
            if left.is_zero() {
                let before = self.dispatcher.voters().masters;
                let own = OwnValue { step, next: &next, barrier: barrier.as_ref() };
                let vote_in = self.decide(&newest, Some(own)).await?;
                if vote_in.is_zero() {
                    self.until_carried(before).await?;
                } else {
                    began = self.until_most_vote(vote_in, tell).await;
                }
                continue; // what was decided may be what somebody else proposed
            }
            let what = if over_in >= joins_in {
                "the leases of before the last change to end"
            } else {
                "the new master's quarantine to end"
            };
            tell.waits_for(what, left, self.clock().now());
            let now = self.clock().now();
            if self.dispatcher.trust().set().barrier_left(&newest, barrier.as_ref(), now).is_some() {
                began = now;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// The record of the set in the newest generation that its masters show.
    async fn until_set_is_known(&self, began: Moment) -> Result<MasterRecord, SetError> {
        let trust = self.dispatcher.trust();
        loop {
            let seen = trust.record_seen.notified();
            let newest = trust.set().newest().cloned();
            if let Some(newest) = newest.filter(|_| trust.knows_the_time()) {
                return Ok(newest);
            }
            let misfit = trust.set().misfit();
            if trust.set().knows_no_set() {
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
                let is_refused = status.iter().any(refuses) && trust.set().newest().is_none();
                let why = self.in_the_way().await;
                return Err(if is_refused {
                    SetError::not_changed(why)
                } else {
                    SetError::unfinished(format!("too few masters answer whose clocks agree: {why}"))
                });
            }
            self.until_seen(seen).await;
        }
    }

    /// The members after this step.
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
                    return Err(SetError::unfinished(format!("{name} does not answer any more")));
                };
                now.with(id, name.clone())
            }
            ChangeStep::Remove { name } => now.without(now.id_of(name).expect("it is not done")),
        })
    }

    /// The number of the master that joins, and for how long it has no vote yet. `None` until it is
    /// a candidate, and has [answered](Engine::read_candidate).
    fn joining(&self) -> Option<(u32, Duration)> {
        let trust = self.dispatcher.trust();
        let time = trust.trusted().low;
        let left = |its: &MasterRecord| Duration::from_micros(its.quarantine.saturating_sub(time));
        trust.set().joining().map(|its| (its.member, left(its)))
    }

    /// The index of the master that joins under this name. It has to answer from now on.
    fn make_room(&self, name: &Arc<str>) -> Result<MasterIndex, SetError> {
        self.dispatcher.trust().set().join(name).ok_or_else(no_room)
    }

    /// Has the master that joins answer once more: it may have died since it answered last.
    async fn read_candidate(&self, name: &Arc<str>, url: &str) -> Result<MasterIndex, SetError> {
        let trust = self.dispatcher.trust();
        let index = self.make_room(name)?;
        self.dispatcher.join(index, url);
        let answers = async {
            loop {
                let seen = trust.record_seen.notified();
                if self.joining().is_some() {
                    return;
                }
                seen.await;
            }
        };
        let _ = tokio::time::timeout(CONNECTING, answers).await;
        Ok(index)
    }

    /// Makes a master a candidate of the set, and waits until it is, or has joined.
    async fn until_prepared(&self, name: &Arc<str>, url: &str, tell: &mut Tell) -> Result<(), SetError> {
        let until = self.clock().now() + self.settings().wait;
        let index = self.make_room(name)?;
        loop {
            let is_one = |newest: &MasterRecord| newest.members.id_of(name).is_some();
            let is_prepared = self.prepare(name, url).await?.is_some();
            if is_prepared || self.dispatcher.trust().set().newest().is_some_and(is_one) {
                return Ok(());
            }
            let why = self.why_away(index).await;
            let left = until.since(self.clock().now());
            let is_denied = self.dispatcher.trust().denying().has(index);
            if left.is_zero() || is_denied {
                return Err(SetError::not_changed(format!("{name} cannot join: {why}")));
            }
            tell.waits_for(&format!("{name} to be ready ({why})"), left, self.clock().now());
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// Makes a master a candidate of the set. Returns for how long it has no vote yet; `None` if it
    /// is not a candidate yet.
    async fn prepare(&self, name: &Arc<str>, url: &str) -> Result<Option<Duration>, SetError> {
        let trust = self.dispatcher.trust();
        let index = self.read_candidate(name, url).await?;
        if let Some((_, left)) = self.joining() {
            return Ok(Some(left));
        }
        let record = trust.set().record_of(index).cloned();
        let newest = trust.set().newest().cloned();
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

    /// For how long leases of the previous list alone can still be valid. Raises the barrier, if
    /// there is none.
    async fn watch(
        &self,
        newest: &MasterRecord,
        barrier: &mut Option<LeaseBarrier>,
        began: Moment,
    ) -> Result<Duration, SetError> {
        let now = self.clock().now();
        let left = self.dispatcher.trust().set().barrier_left(newest, barrier.as_ref(), now);
        if let Some(left) = left {
            return Ok(left);
        }
        let PhaseOne { promises, not, are_outdated } =
            self.phase_one(self.proposal(newest, Ballot::default())).await;
        let raised = self.dispatcher.trust().set().raise_barrier(newest, &promises, self.clock().now());
        match raised {
            Ok(raised) => {
                *barrier = Some(raised);
                Ok(self.dispatcher.trust().terms().quarantine())
            }
            Err(_) if are_outdated && now < began + self.settings().wait => {
                Ok(LOOK) // somebody else has changed something
            }
            Err(seen) => {
                let before = newest.earlier.first().map_or(0, Members::len);
                Err(SetError::unfinished(format!(
                    "{seen} of the {before} masters of the list before answer, and half of them have to{not}"
                )))
            }
        }
    }

    /// A proposal to all masters of the set about its next generation, with a ballot above this.
    fn proposal(&self, newest: &MasterRecord, above: Ballot) -> Proposal {
        let trust = self.dispatcher.trust();
        let ballot = Ballot::new(trust.time(), above, trust.random.fresh_u64());
        trust.set().proposal(newest, ballot)
    }

    /// Phase 1 of a proposal.
    async fn phase_one(&self, proposal: Proposal) -> PhaseOne {
        let mut promises = Promises { highest: proposal.ballot, ..Promises::default() };
        let mut not = String::new();
        let mut are_outdated = false;
        let mut heard = self.dispatcher.ask_acceptors(proposal, "");
        while let Some((index, said)) = heard.recv().await {
            are_outdated |= matches!(said, AcceptorReply::Other(_) | AcceptorReply::Rejected(_));
            match said {
                AcceptorReply::Promised(accepted) => drop(promises.by.insert(index, accepted)),
                AcceptorReply::Rejected(ballot) => {
                    promises.highest = promises.highest.max(ballot);
                    promises.later = promises.later.or(index.into());
                }
                AcceptorReply::Accepted => {}
                AcceptorReply::Other(why) | AcceptorReply::NoAnswer(why) => {
                    let master = self.dispatcher.masters().get(index).map(|master| master.name().clone());
                    not += &format!("; {}: {why}", master.as_deref().unwrap_or("a new master"));
                }
            }
        }
        PhaseOne { promises, not, are_outdated }
    }

    /// Has the next generation chosen: the value that masters have accepted before, or else the
    /// proposer's own, if it has one. While most members have no vote yet, before or after the
    /// change, nothing is accepted: it returns for how long.
    async fn decide(&self, newest: &MasterRecord, own: Option<OwnValue<'_>>) -> Result<Duration, SetError> {
        let barrier = own.as_ref().and_then(|own| own.barrier);
        let all = newest.members.len();
        let mut highest = Ballot::default();
        for proposals in 1..=PROPOSALS {
            let proposal = self.proposal(newest, highest);
            let PhaseOne { promises, not, are_outdated } = self.phase_one(proposal.clone()).await;
            let is_overtaken = promises.highest > proposal.ballot;
            highest = promises.highest;
            let choice = self.dispatcher.trust().set().choice(newest, &promises, barrier, self.clock().now());
            let next = match (choice, &own) {
                (Choice::Accepted(found), _) => found,
                (Choice::Unreadable, _) => {
                    let why = "a newer build of Quorate has proposed what this one cannot read";
                    return Err(SetError::not_changed(why));
                }
                (Choice::NoMajority, _) if (is_overtaken || are_outdated) && proposals < PROPOSALS => {
                    tokio::time::sleep(self.jittered(LOOK)).await;
                    if self.is_over(newest) {
                        return Ok(Duration::ZERO);
                    }
                    continue;
                }
                (Choice::Own | Choice::NoBarrier, None) => return Ok(Duration::ZERO), // nothing was accepted
                (Choice::Own, Some(own)) => {
                    let vote_in = self.majority_in(own, &promises).await?;
                    if !vote_in.is_zero() {
                        return Ok(vote_in);
                    }
                    own.next.clone()
                }
                (Choice::NoBarrier, _) => {
                    let why = "too few masters of the list before kept what they knew";
                    return Err(SetError::unfinished(why));
                }
                (Choice::NoMajority, _) => {
                    let count = promises.by.len();
                    return Err(SetError::unfinished(format!(
                        "{count} of {all} masters answer, and most have to{not}"
                    )));
                }
            };
            let vote_in = self.votes_in(&newest.members, &promises).unwrap_or_default();
            if !vote_in.is_zero() {
                return Ok(vote_in);
            }
            let is_chosen =
                !self.is_over(newest) && self.phase_two(newest, proposal, next, &mut highest).await?;
            if is_chosen || self.is_over(newest) {
                return Ok(Duration::ZERO);
            }
            tokio::time::sleep(self.jittered(LOOK)).await;
        }
        Err(SetError::unfinished("too few masters accept it: they do not answer, or are in quarantine"))
    }

    /// Phase 2 of a proposal. Whether the value was chosen.
    async fn phase_two(
        &self,
        newest: &MasterRecord,
        proposal: Proposal,
        next: Members,
        highest: &mut Ballot,
    ) -> Result<bool, SetError> {
        let trust = self.dispatcher.trust();
        let since = trust.time();
        let mut heard = self.dispatcher.ask_acceptors(proposal, &next.to_string());
        let mut accepted = 0;
        while let Some((_, said)) = heard.recv().await {
            match said {
                AcceptorReply::Accepted => accepted += 1,
                AcceptorReply::Rejected(ballot) => *highest = (*highest).max(ballot),
                AcceptorReply::Promised(_) | AcceptorReply::Other(_) | AcceptorReply::NoAnswer(_) => {}
            }
        }
        if !newest.members.have_majority(accepted) {
            return Ok(false);
        }
        trust.set().handle(since, Event::Chosen { from: newest.clone(), members: next });
        trust.follow();
        if self.is_over(newest) { Ok(true) } else { Err(no_room()) }
    }

    /// For how long most masters of the proposer's next generation have no vote yet. An error if
    /// most do not answer.
    async fn majority_in(&self, own: &OwnValue<'_>, promises: &Promises) -> Result<Duration, SetError> {
        if let ChangeStep::Add { name, url } = own.step {
            self.read_candidate(name, url).await?;
        }
        self.votes_in(own.next, promises).map_err(|answered| {
            let names = own.next.names();
            let all = own.next.len();
            SetError::not_changed(format!(
                "the set would be {names}, and {answered} of these {all} answer, which is no majority"
            ))
        })
    }

    /// For how long most of these members have no vote yet. An error says how many have answered.
    fn votes_in(&self, members: &Members, promises: &Promises) -> Result<Duration, usize> {
        let trust = self.dispatcher.trust();
        let time = trust.trusted().low;
        trust.set().majority_votes_in(members, promises, time)
    }

    /// Whether another client had the next generation chosen, or began another set.
    fn is_over(&self, newest: &MasterRecord) -> bool {
        let set = self.dispatcher.trust().set();
        let is_later = |now: &MasterRecord| now.set != newest.set || now.generation > newest.generation;
        set.newest().is_some_and(is_later)
    }

    /// Waits until the masters know of the newest generation, also those that it removed. Clients
    /// tell the ones that cannot be connected to later, when these answer.
    async fn until_carried(&self, before: MasterSet) -> Result<(), SetError> {
        let trust = self.dispatcher.trust();
        let began = self.clock().now();
        loop {
            let Some(newest) = trust.set().newest().cloned() else { return Ok(()) };
            let voters = self.dispatcher.voters();
            let all =
                Proposal { masters: voters.masters.or(before), ..self.proposal(&newest, Ballot::default()) };
            // Each call makes a connection tell its master first.
            let PhaseOne { promises, not, .. } = self.phase_one(all).await;
            let those = promises.in_generation();
            let waited = self.clock().now().since(began);
            let all_are_told = voters.masters.without(those).is_empty();
            if all_are_told || voters.have_majority(those) && waited >= CONNECTING {
                return Ok(());
            }
            if waited >= self.settings().wait.max(CONNECTING) {
                return Err(SetError::unfinished(format!(
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

/// On drop, the operator adds no master any more.
struct EndJoining<'a>(&'a Arc<Engine>);

impl Drop for EndJoining<'_> {
    fn drop(&mut self) {
        self.0.dispatcher.trust().set().end_joining();
    }
}
