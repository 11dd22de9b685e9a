//! Begins a set of masters, or completes one. The handshakes of this client write the records
//! ([`Set`](crate::set::Set) decides), while this waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::futures::Notified;

use super::set_change::{Init, SetError, Tell};
use crate::engine::Engine;
use crate::round::{AcceptorReply, CONNECTING, quorum};
use crate::set::{Ballot, Beginning, Event, Proposal, Standing, Trust, id};
use crate::text::digest;
use crate::wire::{MasterIndex, MasterSet};

/// How often to check again without news from a handshake.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// How often to read all masters again while a set begins: answers count for two seconds.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Why there is no set to change, or to recover.
pub(super) const NO_RECORDS: &str = "no master has a record of a set: `quorate init` begins one";

impl Engine {
    pub(crate) async fn init(self: &Arc<Self>, how: Init) -> Result<(), SetError> {
        let engine = self.clone();
        let Init { never_used, mut tell } = how;
        self.run_on_set(async move {
            let _only_one = engine.beginning.lock().await;
            let trust = engine.dispatcher.trust();
            let _until_then = EndOnDrop(trust);
            trust.set().forget_misfits();
            let never_used = match &never_used {
                None => None,
                Some(fingerprint) => Some(engine.never_used(fingerprint, &mut tell).await?),
            };
            let all = engine.dispatcher.voters().len();
            let beginning = Beginning { id: id(trust.random.fresh_u64()), never_used };
            trust.set().begin(Some(beginning));
            let began = engine.clock().now();
            let is_complete = |trust: &Trust| {
                let is_connecting_over = engine.clock().now() >= began + CONNECTING;
                let is_whole = trust.members() == trust.voters().masters;
                (is_whole || is_connecting_over && is_whole_but_for_silent(trust)).then_some(())
            };
            match engine.until(all, &mut tell, is_complete).await {
                Err(_) if goes_on(trust) => Ok(()),
                done => done,
            }
        })
        .await
    }

    /// Runs an operation on the set for as long as the caller waits for it.
    pub(super) async fn run_on_set<T: Send + 'static>(
        self: &Arc<Self>,
        operation: impl Future<Output = Result<T, SetError>> + Send + 'static,
    ) -> Result<T, SetError> {
        let done = self.run_while_wanted(async { Ok(operation.await) });
        done.await.unwrap_or(Err(SetError::Closed))
    }

    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), SetError> {
        let engine = self.clone();
        self.run_on_set(async move {
            let _only_one = engine.beginning.lock().await;
            let trust = engine.dispatcher.trust();
            let _until_then = EndOnDrop(trust);
            trust.set().forget_misfits();
            // One that is not connected yet is not gone.
            let awaited = engine.until_voters(CONNECTING, |voters| engine.until_answered(voters)).await;
            trust.set().recover(Some(awaited));
            let needed = quorum(engine.dispatcher.voters().len());
            let mut tell = Tell::default();
            let goes_on = engine.until(needed, &mut tell, |trust| {
                let knows_no_set = || trust.set().knows_no_set();
                if has_quorum(trust) { Some(true) } else { knows_no_set().then_some(false) }
            });
            match goes_on.await {
                Ok(true) => Ok(()),
                Ok(false) => Err(SetError::not_begun(NO_RECORDS, true).of_recovery()),
                Err(error) => Err(error.of_recovery()),
            }
        })
        .await
    }

    /// The fingerprint of the masters' processes, if none has a record.
    pub(crate) async fn fingerprint_of_new_masters(self: &Arc<Self>) -> Result<Arc<str>, SetError> {
        let engine = self.clone();
        self.run_on_set(async move {
            engine.dispatcher.trust().set().forget_misfits();
            let run_ids = engine.unrecorded(&mut Tell::default()).await;
            Ok(fingerprint_of(&run_ids.map_err(SetError::of_fingerprint)?))
        })
        .await
    }

    /// The processes of the masters, if they are those of the operator's fingerprint, and none has
    /// a record.
    async fn never_used(
        self: &Arc<Self>,
        fingerprint: &str,
        tell: &mut Tell,
    ) -> Result<Vec<Arc<str>>, SetError> {
        let run_ids = self.unrecorded(tell).await?;
        let its = fingerprint_of(&run_ids);
        if *its == *fingerprint {
            return Ok(run_ids);
        }
        let why = format!("the fingerprint of these masters is {its}, and not {fingerprint:?}");
        Err(SetError::not_begun(why, true))
    }

    /// The processes of the masters, if none has a record.
    async fn unrecorded(self: &Arc<Self>, tell: &mut Tell) -> Result<Vec<Arc<str>>, SetError> {
        let seen = self.until(self.dispatcher.voters().len(), tell, |trust| {
            let set = trust.set();
            set.has_record().map(Err).or_else(|| set.unrecorded().map(Ok))
        });
        seen.await?.map_err(|master| {
            let why = format!("{master} has a record, so it was used: without --never-used a set that is complete is left alone");
            SetError::not_begun(why, true)
        })
    }

    /// Connects to all masters, and waits until `what` is known of the records of `needed` masters.
    /// It waits for as long as this client does, and for a quarantine more if all have answered. It
    /// does not wait for masters that refuse this client permanently.
    async fn until<T>(
        self: &Arc<Self>,
        needed: usize,
        tell: &mut Tell,
        what: impl Fn(&Trust) -> Option<T>,
    ) -> Result<T, SetError> {
        let trust = self.dispatcher.trust();
        let began = self.clock().now();
        let mut read_again = began;
        loop {
            if self.clock().now() >= read_again {
                self.read_again().await;
                read_again = self.clock().now() + READ_AGAIN;
            }
            let seen = trust.record_seen.notified();
            if let Some(found) = what(trust) {
                return Ok(found);
            }
            let now = self.clock().now();
            let heard_all = trust.set().all_answered();
            let quarantine = if heard_all { trust.terms().quarantine() } else { Duration::ZERO };
            let left = (began + self.settings().wait + quarantine).since(now);
            let is_connecting_over = now >= began + CONNECTING;
            // One that was not heard yet may know of a newer generation.
            let refused = trust.set().misfit().filter(|_| heard_all || is_connecting_over);
            let is_denied = trust.is_denied(needed, is_connecting_over);
            if refused.is_some() || is_denied || left.is_zero() {
                let permanent = refused.is_some() || is_denied;
                let why = match refused {
                    Some(why) => why,
                    None => self.in_the_way().await.into(),
                };
                return Err(SetError::not_begun(why, permanent));
            }
            if let Some(what) = self.waits_for() {
                tell.waits_for(&what, left, now);
            }
            self.until_seen(seen).await;
        }
    }

    /// Waits until all voters `are_there`, each for at most this long. Returns those that it waited
    /// for: there may be more than at first, as the first record can be out of date.
    pub(super) async fn until_voters<F: Future<Output = ()>>(
        &self,
        at_most: Duration,
        are_there: impl Fn(MasterSet) -> F,
    ) -> MasterSet {
        let mut awaited = MasterSet::default();
        loop {
            let voters = self.dispatcher.voters().masters;
            if voters.without(awaited).is_empty() {
                return awaited;
            }
            awaited = awaited.or(voters);
            let _ = tokio::time::timeout(at_most, are_there(voters)).await;
        }
    }

    /// Reads these masters again and again, until all have answered a moment ago.
    async fn until_answered(&self, masters: MasterSet) {
        let trust = self.dispatcher.trust();
        loop {
            self.read_again().await;
            let now = trust.time();
            if masters.iter().all(|index| trust.set().answered_recently(index, now)) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Makes the handshakes with all masters again: their answers count for a moment only.
    async fn read_again(&self) {
        let trust = self.dispatcher.trust();
        trust.end_views();
        trust.handle(Event::ReadAgain);
        let masters = trust.set().listed().or(self.dispatcher.voters().masters);
        let mut answers = self.dispatcher.ask_acceptors(no_proposal(masters), "");
        while answers.recv().await.is_some() {}
    }

    /// What keeps the masters from being a set.
    pub(super) async fn in_the_way(&self) -> String {
        let mut all = Vec::new();
        for (index, master, _) in self.no_members() {
            all.push(format!("{master}: {}", self.why_away(index).await));
        }
        all.join("; ")
    }

    /// How many masters are no members yet, and why one of them is not. It names one that is
    /// unreachable, if there is one: the others wait for it.
    fn waits_for(&self) -> Option<String> {
        let all = self.no_members();
        let (_, master, standing) =
            all.iter().min_by_key(|(_, _, standing)| *standing != Standing::Unknown)?;
        let why = match standing {
            Standing::Refused(why) => why,
            _ => "it is not reached",
        };
        Some(format!("{} of {} masters ({master}: {why})", all.len(), self.dispatcher.voters().len()))
    }

    /// The masters that are no members of the set yet.
    fn no_members(&self) -> Vec<(MasterIndex, Arc<str>, Standing)> {
        let voters = self.dispatcher.voters();
        let all = voters.masters.iter().zip(&voters.names);
        let all = all.map(|(index, name)| (index, name.clone(), self.dispatcher.trust().standing_of(index)));
        all.filter(|(_, _, standing)| !matches!(standing, Standing::Trusted | Standing::Quarantined { .. }))
            .collect()
    }

    /// Why a master has no place in the set yet.
    pub(super) async fn why_away(&self, index: MasterIndex) -> String {
        let asks = no_proposal(index.into());
        let said = self.dispatcher.ask_acceptors(asks, "").recv().await;
        match (said, self.dispatcher.trust().standing_of(index)) {
            (Some((_, AcceptorReply::NoAnswer(why))), _) | (_, Standing::Refused(why)) => why.to_string(),
            _ => "it does not say why".to_owned(),
        }
    }

    /// Connects to all masters, and waits for the next news from a handshake, for a moment.
    pub(super) async fn until_seen(&self, seen: Notified<'_>) {
        let ready = self.dispatcher.all_ready(self.dispatcher.voters().masters);
        tokio::select! {
            biased;
            () = seen => {}
            () = async { ready.await; std::future::pending().await } => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// A proposal that only asks for an answer.
fn no_proposal(masters: MasterSet) -> Proposal {
    Proposal { set: "".into(), ballot: Ballot::default(), generation: 0, masters }
}

/// Whether a quorum of the set is connected.
fn has_quorum(trust: &Trust) -> bool {
    trust.members().len() >= quorum(trust.voters().len())
}

/// Whether a set has begun, and fits this client. A member that is away comes back to it.
fn goes_on(trust: &Trust) -> bool {
    has_quorum(trust) && trust.set().misfit().is_none()
}

/// Whether a set goes on, and its other members do not answer. One that answers may have lost its
/// state, or begin with the set: it becomes a member soon.
fn is_whole_but_for_silent(trust: &Trust) -> bool {
    goes_on(trust) && !trust.hears_of_others(trust.members())
}

/// The fingerprint of processes.
fn fingerprint_of(run_ids: &[Arc<str>]) -> Arc<str> {
    let mut run_ids = run_ids.to_vec();
    run_ids.sort_unstable();
    digest(&run_ids.join("\n"), 8).into()
}

/// On drop, the client begins and recovers no set any more.
struct EndOnDrop<'a>(&'a Trust);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let mut set = self.0.set();
        set.begin(None);
        set.recover(None);
    }
}
