//! Beginning a set: what an `init` writes. Pure.

use std::sync::Arc;
use std::time::Duration;

use super::peer::Peer;
use super::proposer::AcceptorState;
use super::record::{MasterRecord, MemberState};
use super::rules::{Case, Verdict, write};
use super::state::{Beginning, Set, recent};
use super::terms::micros;
use super::write::{AcceptorWrite, RecordWrite};
use crate::vote::Refusal;
use crate::wire::MasterIndex;

/// How long ago (us) the quarantine of a master ended that never had one: longer than a clock may
/// be off.
const ENDED_AGO: u64 = 2_000_000;

impl Set {
    /// From now on a set may begin, if no master of the list has one. With `None` not any more.
    pub(crate) fn begin(&mut self, beginning: Option<Beginning>) {
        if self.inspected().is_some() {
            self.leave();
        }
        self.beginning = beginning;
    }

    /// Notes that a process has a record, or is given one: from now on it counts as used. If it is
    /// a member, its set has begun: all processes count as used, and if the set is the one that
    /// begins here, the next one has the id `next`.
    pub(super) fn note_used(&mut self, run_id: &str, record: Option<&MasterRecord>, next: &Arc<str>) {
        let Some(beginning) = &mut self.beginning else { return };
        let member = record.filter(|record| record.state == MemberState::Member);
        if member.is_some_and(|member| member.set == beginning.id) {
            beginning.id = next.clone();
        }
        if let Some(never_used) = &mut beginning.never_used {
            never_used.retain(|process| member.is_none() && **process != *run_id);
        }
    }
}

impl Case<'_> {
    /// Begins a set, if an operator said so, all masters answered a moment ago, and the client's
    /// set is none or lost.
    pub(super) fn begin(&self) -> Option<Verdict> {
        let beginning = self.set.beginning.as_ref().filter(|_| self.set.listed.has(self.index))?;
        let is_other =
            |record: &MasterRecord| record.state != MemberState::Candidate && !self.set.is_of_view(record);
        if self.set.records().any(|(_, record)| is_other(record)) || !self.all_answered_recently() {
            return None;
        }
        if let Some(newest) = self.set.newest() {
            if !self.is_lost(newest) {
                return None;
            }
            if self.set.list_in(newest) != Some(&newest.members) {
                return Some(self.other_members(newest));
            }
        }
        let set = self.begun_set(beginning);
        let found = self.reading.record.as_ref();
        if let Some(record) = found {
            let is_prepared = record.set == set && self.is_of_list(record) && !self.lost_state(record);
            let may_replace =
                self.set.is_of_view(record) || self.is_of_list(record) || self.is_left_over(record);
            if is_prepared || !may_replace {
                return None; // if it may not be replaced, another `init` prepares it
            }
        }
        let candidate = self.first(set, self.set.first_members(), MemberState::Candidate);
        Some(self.prepare(found, candidate, beginning))
    }

    /// Writes a candidate of the set that begins.
    fn prepare(
        &self,
        found: Option<&MasterRecord>,
        candidate: MasterRecord,
        beginning: &Beginning,
    ) -> Verdict {
        let Some(never_used) = &beginning.never_used else {
            return self.write_new(found, candidate, self.set.terms.quarantine());
        };
        if found.is_none() && never_used.contains(&self.reading.run_id) {
            return self.begin_without_quarantine(candidate);
        }
        let why = "its process is another one than the fingerprint names, or lost its record";
        Verdict::Refuse(Refusal::NoSet, why.to_owned())
    }

    /// Writes a candidate that no client ever used. Its quarantine is over, and its end tells when
    /// it was written.
    fn begin_without_quarantine(&self, record: MasterRecord) -> Verdict {
        let ended = self.reading.time.saturating_sub(ENDED_AGO);
        write(RecordWrite {
            found: None,
            quarantine: Some(Duration::ZERO),
            least: ended.max(self.peer().history.latest_quarantine),
            record,
            acceptor: AcceptorWrite::New(AcceptorState::default()),
        })
    }

    /// Which set begins: the lowest id that a candidate showed a moment ago, so that several `init`
    /// agree. A candidate that was left over does not count: its set may have begun once already.
    fn begun_set(&self, beginning: &Beginning) -> Arc<str> {
        let records = self
            .set
            .peers
            .values()
            .filter_map(|peer| recent(peer.reading.as_ref(), self.reading.time)?.record.as_ref());
        let candidates = records.filter(|record| self.is_of_list(record) && !self.is_left_over(record));
        candidates.map(|record| record.set.clone()).min().unwrap_or_else(|| beginning.id.clone())
    }

    /// Whether a candidate's quarantine ended more than a quarantine ago.
    fn is_left_over(&self, record: &MasterRecord) -> bool {
        let until = record.quarantine.saturating_add(micros(self.set.terms.quarantine()));
        record.state == MemberState::Candidate && until < self.reading.time
    }

    /// Whether each master of the list, and each member, answered a moment ago.
    fn all_answered_recently(&self) -> bool {
        let is_recent = |peer: &Peer| recent(peer.reading.as_ref(), self.reading.time).is_some();
        self.set.list_and_members().all(is_recent)
    }

    /// Whether at most half of the members keep their records, apart from candidates of a first
    /// generation. If all keep one in the first generation, the set is about to begin.
    fn is_lost(&self, newest: &MasterRecord) -> bool {
        let keep = self.set.members_with_records(newest);
        let has_begun =
            |index: &MasterIndex| self.set.record_of(*index).is_some_and(|record| !record.begins_set());
        let all = self.set.members().count();
        let begun = keep.iter().filter(has_begun).count();
        begun * 2 <= all && (keep.len() < all || newest.generation > 0)
    }
}
