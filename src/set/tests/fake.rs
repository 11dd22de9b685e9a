//! A fake master: its record and its acceptor, as the scripts change them.

use std::sync::Arc;

use super::super::peer::Reading;
use super::super::proposer::{Accepted, AcceptorState, Ballot, Proposal};
use super::super::record::{MasterRecord, MemberState};
use super::super::write::{AcceptorWrite, RecordWrite};

/// How old (us) a write may be that a master takes.
const LATEST: u64 = 2_000_000;

/// A master: its process, its record, and the acceptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FakeMaster {
    pub(super) run_id: u64,
    pub(super) replid2: u64,
    pub(super) record: Option<MasterRecord>,
    /// An incarnation, and the acceptor's state that belongs to it.
    pub(super) acceptor: Option<(Arc<str>, AcceptorState)>,
}

/// What an acceptor replies, as decree.lua does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It promises, and had accepted this value.
    Promised(Option<Accepted>),
    Accepted,
    /// It had promised this ballot.
    Rejected(Ballot),
    /// It is in quarantine.
    Quarantined,
    /// It is in another set or generation, or no member.
    Other,
    /// It does not know what it promised, or has another record than the connection knows.
    Forgot,
}

impl FakeMaster {
    pub(super) fn new(run_id: u64) -> Self {
        Self { run_id, replid2: 0, record: None, acceptor: None }
    }

    /// hello.lua.
    pub(super) fn reading(&self, time: u64) -> Reading {
        let incarnation = self.acceptor.as_ref().map(|(incarnation, _)| incarnation.clone());
        Reading {
            time,
            latest: time,
            run_id: self.run_id.to_string().into(),
            replid2: format!("{:04}", self.replid2).into(),
            acceptor: incarnation.unwrap_or_default(),
            record: self.record.clone(),
        }
    }

    /// record.lua, of a write that was sent at `trusted`. Whether it was written.
    pub(super) fn write(&mut self, write: &RecordWrite, trusted: u64, now: u64) -> bool {
        let shown = self.reading(now);
        let ours = (&write.record.run_id, &write.record.replid2);
        let is_seen = shown.stamp() == write.found;
        if !is_seen || ours != (&shown.run_id, &shown.replid2) || now.abs_diff(trusted) > LATEST {
            return false;
        }
        let written = write.written(now);
        match (&write.acceptor, &mut self.acceptor) {
            (AcceptorWrite::Unchanged, _) => {}
            (AcceptorWrite::Kept, Some((incarnation, _))) => *incarnation = written.incarnation.clone(),
            (AcceptorWrite::Kept, None) => panic!("nothing to keep"),
            (AcceptorWrite::New(state), acceptor) => {
                *acceptor = Some((written.incarnation.clone(), state.clone()));
            }
        }
        self.record = Some(written);
        true
    }

    /// decree.lua, on a connection that knows this stamp. Without a value it asks for a promise.
    pub(super) fn decree(
        &mut self,
        stamp: &str,
        proposal: &Proposal,
        value: Option<&str>,
        now: u64,
    ) -> Reply {
        let Some(record) = self.record.as_ref().filter(|record| *record.stamp == *stamp) else {
            return Reply::Forgot;
        };
        let is_next = record.generation + 1 == proposal.generation;
        if record.state != MemberState::Member || record.set != proposal.set || !is_next {
            return Reply::Other;
        }
        let Some((incarnation, state)) = &mut self.acceptor else { return Reply::Forgot };
        if *incarnation != record.incarnation {
            return Reply::Forgot;
        }
        let mut known = state.clone();
        if known.generation != proposal.generation {
            known = AcceptorState { generation: proposal.generation, ..AcceptorState::default() };
        }
        let ballot = proposal.ballot;
        match (known.promised, value) {
            (promised, Some(_)) if promised != Some(ballot) => {
                return Reply::Rejected(promised.unwrap_or_default());
            }
            (_, Some(_)) if now < record.quarantine => return Reply::Quarantined,
            (_, Some(value)) => {
                known.accepted = Some(Accepted { ballot, value: value.into() });
                *state = known;
                return Reply::Accepted;
            }
            (Some(promised), None) if ballot < promised => return Reply::Rejected(promised),
            _ => {}
        }
        let accepted = known.accepted.clone();
        *state = AcceptorState { promised: Some(ballot), ..known };
        Reply::Promised(accepted)
    }
}
