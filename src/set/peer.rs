//! One master, as one client knows it. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::record::{MasterRecord, MemberState};
use crate::vote::Refusal;

/// What a master showed in a handshake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reading {
    /// When it answered (us): the earlier of the master's clock and T.
    pub(crate) time: u64,
    /// The later of these two (us). The end of time while T is not known.
    pub(crate) latest: u64,
    pub(crate) run_id: Arc<str>,
    pub(crate) replid2: Arc<str>,
    /// The incarnation that the acceptor's state belongs to; empty if there is no such state.
    pub(crate) acceptor: Arc<str>,
    pub(crate) record: Option<MasterRecord>,
}

/// The state of a master for this client. It follows from the last reading and the client's view.
/// It is computed when it is needed, so it is never out of date.
#[derive(Clone, Copy, Debug)]
pub(super) enum PeerState<'a> {
    /// It has not answered yet.
    Unknown,
    /// It is prepared to join the set, or to begin one.
    Candidate(&'a MasterRecord),
    Member(&'a MasterRecord),
    /// It may have lost grants and promises since its record was written, or has no record.
    LostState(Option<&'a MasterRecord>),
    /// The set goes on without it.
    Removed(&'a MasterRecord),
    /// Its record is of another set.
    Foreign(&'a MasterRecord),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    pub(super) name: Arc<str>,
    /// Its number in the view; `None` if it is not a member.
    pub(super) member: Option<u32>,
    pub(super) reading: Option<Reading>,
    /// How many state losses this client had seen, of all masters, when the master answered.
    pub(super) losses_seen: u64,
    pub(super) loss: Option<StateLoss>,
    pub(super) history: VoteHistory,
    pub(super) misfit: Option<Misfit>,
}

/// Seen on a master that has to rejoin before it votes again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StateLoss {
    /// The process, and the stamp of its record. Another one is another loss.
    evidence: (Arc<str>, Option<Arc<str>>),
    /// Sequence number, counted over all masters.
    pub(super) number: u64,
}

/// Why this client's list or terms are not those of a master's set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Misfit {
    /// Whether the list is why.
    pub(super) is_list: bool,
    pub(super) why: Arc<str>,
}

/// The incarnations that a master voted with. If an earlier one comes back, or the quarantine's end
/// moves back, the master was rolled back. Either somebody restored an older copy of its keys, or
/// its address led to another server for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct VoteHistory {
    pub(super) member: Option<u32>,
    last: Option<Arc<str>>,
    /// The incarnations before the last, the oldest first.
    earlier: VecDeque<Arc<str>>,
    /// The latest end (us) of a quarantine.
    pub(super) latest_quarantine: u64,
}

impl VoteHistory {
    /// How many incarnations are kept: each is a restart, or a loss of keys, that this client saw.
    const MOST_EARLIER: usize = 16;

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Drops an end that is later than `limit` (us): a wrong clock wrote it.
    pub(super) fn bound(&mut self, limit: u64) {
        if self.latest_quarantine > limit {
            self.latest_quarantine = 0;
        }
    }

    /// Notes the record that a master votes with. An end later than `limit` (us) does not count.
    pub(super) fn note(&mut self, record: &MasterRecord, limit: u64) {
        self.member = Some(record.member);
        if let Some(last) = self.last.replace(record.incarnation.clone())
            && last != record.incarnation
        {
            self.earlier.push_back(last);
            if self.earlier.len() > Self::MOST_EARLIER {
                self.earlier.pop_front();
            }
        }
        if record.quarantine <= limit {
            self.latest_quarantine = self.latest_quarantine.max(record.quarantine);
        }
    }

    fn shows_rollback(&self, record: &MasterRecord) -> bool {
        self.earlier.contains(&record.incarnation) || record.quarantine < self.latest_quarantine
    }
}

impl Reading {
    /// How long the master has no vote, by this record.
    pub(super) fn quarantined_for(&self, record: &MasterRecord) -> Duration {
        Duration::from_micros(record.quarantine.saturating_sub(self.time))
    }

    pub(super) fn stamp(&self) -> Option<Arc<str>> {
        self.record.as_ref().map(|record| record.stamp.clone())
    }

    /// Whether the acceptor's state is gone, or belongs to another incarnation.
    pub(super) fn lost_acceptor(&self, record: &MasterRecord) -> bool {
        self.acceptor != record.incarnation
    }

    /// Whether this process took over the keys of another one since the record was written. The
    /// second replication id is that of the master whose replica this process was last. It is zeros
    /// if there was none, and again an hour after the last replica left.
    fn took_over_keys(&self, record: &MasterRecord) -> bool {
        self.replid2 != record.replid2 && self.replid2.bytes().any(|digit| digit != b'0')
    }
}

impl Peer {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            member: None,
            reading: None,
            losses_seen: 0,
            loss: None,
            history: VoteHistory::default(),
            misfit: None,
        }
    }

    /// The record that it showed last.
    pub(super) fn record(&self) -> Option<&MasterRecord> {
        self.reading.as_ref()?.record.as_ref()
    }

    pub(super) fn state(&self, view: Option<&MasterRecord>) -> PeerState<'_> {
        let Some(reading) = &self.reading else { return PeerState::Unknown };
        let Some(record) = &reading.record else { return PeerState::LostState(None) };
        match record.state {
            MemberState::Removed => PeerState::Removed(record),
            _ if self.lost_state(reading, record) => PeerState::LostState(Some(record)),
            MemberState::Candidate => PeerState::Candidate(record),
            MemberState::Member if view.is_some_and(|view| view.set != record.set) => {
                PeerState::Foreign(record)
            }
            MemberState::Member => PeerState::Member(record),
        }
    }

    /// Whether it may have lost something that it had when this record was written.
    pub(super) fn lost_state(&self, reading: &Reading, record: &MasterRecord) -> bool {
        record.run_id != reading.run_id
            || reading.took_over_keys(record)
            || reading.lost_acceptor(record)
            || self.history.shows_rollback(record)
    }

    /// Notes that it has to rejoin. `losses` counts the losses of all masters.
    pub(super) fn note_loss(&mut self, losses: &mut u64) {
        let Some(reading) = &self.reading else { return };
        let evidence = (reading.run_id.clone(), reading.stamp());
        if self.loss.as_ref().is_none_or(|before| before.evidence != evidence) {
            *losses += 1;
            self.loss = Some(StateLoss { evidence, number: *losses });
        }
    }

    /// What a refusal says about this client's list and terms, if anything.
    pub(super) fn misfit(&self, reason: Refusal, why: &str, is_list: bool) -> Option<Misfit> {
        let is_about_set = !matches!(reason, Refusal::Removed);
        is_about_set.then(|| Misfit { is_list, why: format!("{}: {why}", self.name).into() })
    }
}
