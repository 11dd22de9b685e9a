//! Begins a set of masters, or completes one: each writes its record, as the handshakes of this
//! client decide ([`Membership`](crate::trust::Membership)), while this waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::futures::Notified;

use super::decrees::Said;
use super::dispatch::CONNECTING;
use super::engine::Engine;
use super::quorum::quorum;
use crate::master_set::MasterSet;
use crate::set::{Init, SetError};
use crate::text::digest;
use crate::trust::{Ballot, Beginning, Membership, Proposal, Standing, Trust};

/// How often to look where no handshake says anything.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// How often to have all masters show their records while a set begins: more often than what they
/// show is forgotten.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Why there is no set to change, or to go on with.
pub(super) const NO_RECORDS: &str = "no master has a record of a set: `quorate init` begins one";

impl Engine {
    pub(crate) async fn init(self: &Arc<Self>, how: Init) -> Result<(), SetError> {
        let engine = self.clone();
        self.run_on_set(async move {
            let trust = engine.dispatcher.trust();
            let _until_then = EndOnDrop(trust);
            trust.membership().forget_misfits();
            let never_used = match &how.never_used {
                None => None,
                Some(fingerprint) => Some(engine.never_used(fingerprint).await?),
            };
            let all = engine.dispatcher.voters().len();
            trust.membership().begin(Some(Beginning::new(never_used, &*trust.random)));
            let all_are_members = |trust: &Trust| (trust.members() == trust.voters().len()).then_some(());
            match engine.until(all, all_are_members).await {
                // It was complete before: one that is away comes back to it.
                Err(_) if has_quorum(trust) && trust.membership().misfit().is_none() => Ok(()),
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
            let trust = engine.dispatcher.trust();
            let _until_then = EndOnDrop(trust);
            trust.membership().forget_misfits();
            trust.membership().recover(true);
            let needed = quorum(engine.dispatcher.voters().len());
            let goes_on = engine.until(needed, |trust| {
                let knows_no_set = || trust.membership().knows_no_set();
                if has_quorum(trust) { Some(true) } else { knows_no_set().then_some(false) }
            });
            if goes_on.await? {
                return Ok(());
            }
            Err(SetError::not_begun(NO_RECORDS, true))
        })
        .await
    }

    /// What names the processes of the masters to a person, if none has a record.
    pub(crate) async fn fingerprint_of_new_masters(self: &Arc<Self>) -> Result<Arc<str>, SetError> {
        let engine = self.clone();
        self.run_on_set(async move {
            engine.dispatcher.trust().membership().forget_misfits();
            Ok(fingerprint_of(&engine.unrecorded().await?))
        })
        .await
    }

    /// The processes of the masters, if they are the ones that a person named, and none has a
    /// record.
    async fn never_used(self: &Arc<Self>, fingerprint: &str) -> Result<Vec<Arc<str>>, SetError> {
        let run_ids = self.unrecorded().await?;
        let its = fingerprint_of(&run_ids);
        if *its == *fingerprint {
            return Ok(run_ids);
        }
        let why = format!("the fingerprint of these masters is {its}, and not {fingerprint:?}");
        Err(SetError::not_begun(why, true))
    }

    /// The processes of the masters, if none has a record.
    async fn unrecorded(self: &Arc<Self>) -> Result<Vec<Arc<str>>, SetError> {
        let seen = self.until(self.dispatcher.voters().len(), |trust| {
            let membership = trust.membership();
            membership.has_record().map(Err).or_else(|| membership.unrecorded().map(Ok))
        });
        seen.await?.map_err(|master| {
            let why = format!("{master} has a record, so it was used: begin it without --never-used");
            SetError::not_begun(why, true)
        })
    }

    /// Waits for what the records of `needed` masters come to, with all masters connected: for as
    /// long as this client waits, and for a quarantine when all were heard. Masters that refuse
    /// this client permanently are not waited for.
    async fn until<T>(
        self: &Arc<Self>,
        needed: usize,
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
            let is_past = |wait: Duration| self.clock().now() >= began + wait;
            let heard_all = trust.membership().heard_all();
            let quarantine = if heard_all { trust.terms().quarantine() } else { Duration::ZERO };
            // One that was not heard yet may know of a newer generation.
            let refused = trust.membership().misfit().filter(|_| heard_all || is_past(CONNECTING));
            let is_denied = trust.is_denied(needed, is_past(CONNECTING));
            if refused.is_some() || is_denied || is_past(self.settings().wait + quarantine) {
                let permanent = refused.is_some() || is_denied;
                let why = match refused {
                    Some(why) => why,
                    None => self.in_the_way().await.into(),
                };
                return Err(SetError::not_begun(why, permanent));
            }
            self.until_seen(seen).await;
        }
    }

    /// Makes the handshakes with all masters again: what they showed counts for a moment only.
    async fn read_again(&self) {
        let trust = self.dispatcher.trust();
        trust.end_views();
        trust.note_evidence(Membership::note_that_none_is_asked);
        let masters = trust.membership().listed().or(self.dispatcher.voters().masters);
        let mut answers = self.dispatcher.put_to_vote(no_proposal(masters), "");
        while answers.recv().await.is_some() {}
    }

    /// What keeps the masters from being a set.
    pub(super) async fn in_the_way(&self) -> String {
        let voters = self.dispatcher.voters();
        let mut all = Vec::new();
        for (index, master) in voters.masters.iter().zip(&voters.names) {
            let standing = self.dispatcher.trust().standing_of(index);
            if !matches!(standing, Standing::Trusted | Standing::Quarantined { .. }) {
                all.push(format!("{master}: {}", self.why_away(index).await));
            }
        }
        all.join("; ")
    }

    /// Why a master has no place in the set yet.
    pub(super) async fn why_away(&self, index: usize) -> String {
        if let Standing::Refused(why) = self.dispatcher.trust().standing_of(index) {
            return why.to_string();
        }
        let asks = no_proposal(index.into());
        match self.dispatcher.put_to_vote(asks, "").recv().await {
            Some((_, Said::Nothing(why))) => why.to_string(),
            _ => "it does not say why".to_owned(),
        }
    }

    /// Waits for a handshake to say something, for a moment, and connects to all masters meanwhile.
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

/// Asks masters for nothing but an answer.
fn no_proposal(masters: MasterSet) -> Proposal {
    Proposal { set: "".into(), ballot: Ballot::default(), generation: 0, masters }
}

/// Whether a quorum of the set is connected.
fn has_quorum(trust: &Trust) -> bool {
    trust.members() >= quorum(trust.voters().len())
}

/// What names the processes of new masters to a person.
fn fingerprint_of(run_ids: &[Arc<str>]) -> Arc<str> {
    let mut run_ids = run_ids.to_vec();
    run_ids.sort_unstable();
    digest(&run_ids.join("\n"), 8).into()
}

/// No set begins any more, nor goes on without others, when this is over.
struct EndOnDrop<'a>(&'a Trust);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let mut membership = self.0.membership();
        membership.begin(None);
        membership.recover(false);
    }
}
