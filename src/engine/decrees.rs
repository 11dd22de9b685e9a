//! Asks masters what they promise about the next generation of their set, and to accept a value for
//! it (`trust/decree.rs`): before a master that forgot gets its place again, and for a change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::dispatch::{Dispatcher, Forward};
use crate::master::{CallKind, Failure, Value, Words};
use crate::protocol::{DECREE, Kind};
use crate::trust::{Accepted, Ballot, Membership, Proposal, TimePrecision};

/// The name whose inspection tells the time; nobody has to hold it.
const TIME_NAME: &str = "time";

/// How soon to ask again for the time that too few masters told.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What a master says to a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It promises, and had accepted this.
    Promised(Option<Accepted>),
    /// It accepts the value.
    Accepted,
    /// It had promised a later ballot.
    Later(Ballot),
    /// It is in another set or generation, or its record is another one than this connection knows,
    /// or it forgot what it promised.
    Other(Arc<str>),
    /// It did not answer.
    Nothing(Arc<str>),
}

impl Dispatcher {
    /// Asks masters for a promise, or to accept a value, each within its time-out. Their answers
    /// come as they come in; the channel ends with the last.
    pub(super) fn put_to_vote(
        &self,
        Proposal { set, ballot, generation, masters }: Proposal,
        value: &str,
    ) -> mpsc::UnboundedReceiver<(usize, Said)> {
        let key = &self.trust().terms().decree;
        let words = Words::new(0).with("decree").with(0).with(6);
        let words = words
            .with(key)
            .with(set)
            .with(generation)
            .with(ballot)
            .with(value)
            .with(self.trust().trusted().low);
        let (to, heard) = mpsc::unbounded_channel();
        let kind = CallKind::Vote { timeout: self.timeout() };
        self.send(&DECREE, words, kind, Arc::new(Forward { to, read }), masters);
        heard
    }

    /// Asks masters for what a handshake waits for, as long as this is polled: the time, and what
    /// they promise where one of them forgot.
    pub(super) async fn gather_evidence(self: Arc<Self>) {
        let trust = self.trust();
        loop {
            trust.evidence_wanted.notified().await;
            if trust.time_precision() == TimePrecision::Vague {
                self.ask_for_time(TIME_NAME, Kind::Lock).await;
                if trust.time_precision() == TimePrecision::Vague {
                    tokio::time::sleep(ASK_AGAIN).await; // too few answer
                }
                trust.time_seen.notify_waiters();
            }
            let proposal = trust.membership().take_proposal(trust.time(), &*trust.random);
            let Some(proposal) = proposal else { continue };
            let ballot = proposal.ballot;
            let is_for_none = proposal.masters.is_empty();
            let mut heard = self.put_to_vote(proposal, "");
            if is_for_none {
                trust.note_evidence(Membership::note_that_none_is_asked);
            }
            while let Some((index, said)) = heard.recv().await {
                trust.note_evidence(|membership| match said {
                    Said::Promised(accepted) => membership.note_promise(index, ballot, accepted),
                    Said::Later(ballot) => membership.note_higher(ballot),
                    Said::Accepted | Said::Other(_) | Said::Nothing(_) => {}
                });
            }
        }
    }
}

fn read(answer: Result<Value, Failure>, _time: Option<u64>) -> Said {
    let value = match answer {
        Ok(value) => value,
        Err(why) => return Said::Nothing(why.text().into()),
    };
    if value == Value::Int(1) {
        return Said::Accepted;
    }
    let text = |i: usize| value.list().and_then(|items| items.get(i)).and_then(Value::text).cloned();
    let ballot = |i: usize| text(i).and_then(|text| Ballot::read(&text));
    match text(0).as_deref() {
        Some("accepted") => {
            Said::Promised(ballot(1).zip(text(2)).map(|(ballot, value)| Accepted { ballot, value }))
        }
        Some("promised") => ballot(1).map_or_else(|| Said::Nothing("it says no ballot".into()), Said::Later),
        Some("other") => Said::Other("it is in another set or generation by now".into()),
        Some("quarantined") => Said::Nothing("it is in quarantine".into()),
        Some("forgot") => Said::Other("it does not know what it promised".into()),
        _ => Said::Nothing("a reply of an unknown form".into()),
    }
}
