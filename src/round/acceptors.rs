//! The way to the acceptors: asks masters for promises, and to accept a value. Changes of the set
//! need that, and masters that rejoin (`set/proposer.rs`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::dispatch::{Dispatcher, Forward};
use crate::set::{Accepted, Ballot, Event, Proposal, TimePrecision};
use crate::wire::{CallKind, DECREE, Failure, Kind, MasterIndex, Value};

/// The name whose inspection tells the time; nobody has to hold it.
const TIME_NAME: &str = "time";

/// How soon to ask again for the time, if too few masters answered.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The reply of an acceptor to a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AcceptorReply {
    /// It promises, and had accepted this value.
    Promised(Option<Accepted>),
    /// It accepts the value.
    Accepted,
    /// It had promised this higher ballot.
    Rejected(Ballot),
    /// It is in another set or generation, has another record than this connection knows, or has
    /// lost its acceptor's state.
    Other(Arc<str>),
    /// It did not answer.
    NoAnswer(Arc<str>),
}

impl Dispatcher {
    /// Asks masters for a promise, or to accept a value, each within its time-out. Their answers
    /// come as they come in; the channel ends with the last.
    pub(crate) fn ask_acceptors(
        &self,
        proposal: Proposal,
        value: &str,
    ) -> mpsc::UnboundedReceiver<(MasterIndex, AcceptorReply)> {
        let words = proposal.words(&self.trust().terms().decree, value, self.trust().trusted().low);
        let (to, heard) = mpsc::unbounded_channel();
        let kind = CallKind::Vote { timeout: self.timeout() };
        self.send(&DECREE, words, kind, Arc::new(Forward { to, read }), proposal.masters);
        heard
    }

    /// Asks masters for the answers that handshakes wait for, as long as this is polled: the time,
    /// and promises for the masters that rejoin.
    pub(crate) async fn gather_evidence(self: Arc<Self>) {
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
            let draw = trust.random.fresh_u64();
            let now = trust.time();
            let Some(proposal) = trust.set().handle(now, Event::Propose { draw }).ask else { continue };
            let ballot = proposal.ballot;
            let is_for_none = proposal.masters.is_empty();
            let mut heard = self.ask_acceptors(proposal, "");
            if is_for_none {
                trust.handle(Event::ReadAgain);
            }
            while let Some((master, said)) = heard.recv().await {
                match said {
                    AcceptorReply::Promised(accepted) => {
                        trust.handle(Event::Promised { master, ballot, accepted })
                    }
                    AcceptorReply::Rejected(promised) => trust.handle(Event::Rejected { promised }),
                    AcceptorReply::Accepted | AcceptorReply::Other(_) | AcceptorReply::NoAnswer(_) => {
                        continue;
                    }
                };
            }
        }
    }
}

fn read(answer: Result<Value, Failure>, _time: Option<u64>) -> AcceptorReply {
    let value = match answer {
        Ok(value) => value,
        Err(why) => return AcceptorReply::NoAnswer(why.text().into()),
    };
    if value == Value::Int(1) {
        return AcceptorReply::Accepted;
    }
    let text = |i: usize| value.list().and_then(|items| items.get(i)).and_then(Value::text).cloned();
    let ballot = |i: usize| text(i).and_then(|text| Ballot::read(&text));
    match text(0).as_deref() {
        Some("accepted") => {
            AcceptorReply::Promised(ballot(1).zip(text(2)).map(|(ballot, value)| Accepted { ballot, value }))
        }
        Some("promised") => ballot(1)
            .map_or_else(|| AcceptorReply::NoAnswer("it says no ballot".into()), AcceptorReply::Rejected),
        Some("other") => AcceptorReply::Other("it is in another set or generation by now".into()),
        Some("quarantined") => AcceptorReply::NoAnswer("it is in quarantine".into()),
        Some("forgot") => AcceptorReply::Other("it does not know what it promised".into()),
        _ => AcceptorReply::NoAnswer("a reply of an unknown form".into()),
    }
}
