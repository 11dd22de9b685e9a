//! Records, writes, terms and voters, each alone.

use std::sync::Arc;
use std::time::Duration;

use super::super::record::{MasterRecord, MemberState, Members, SetTerms};
use super::super::terms::{CLOCK_RANGE, Terms};
use super::super::voters::Voters;
use super::super::write::{FreshIds, RecordWrite};
use super::basics::{Dice, MAX_TTL, indices, name, terms};
use super::sets::set;
use crate::config::Settings;
use crate::wire::{MasterSet, Value};

fn record() -> MasterRecord {
    set(&Dice::new(1))[0].record.clone().unwrap()
}

/// As a master shows it: the script adds what the client does not write.
fn words(record: &MasterRecord) -> Vec<Value> {
    let added = [
        ("run_id", record.run_id.to_string()),
        ("replid2", record.replid2.to_string()),
        ("quarantine", record.quarantine.to_string()),
    ];
    let pairs = record.fields().chain(added);
    pairs.flat_map(|(field, value)| [Value::Text(field.into()), Value::Text(value.into())]).collect()
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let first = MasterRecord { quarantine: 7, ..record() };
    let later = first.next(first.members.without(1)).next(first.members.clone());
    for state in [MemberState::Candidate, MemberState::Member, MemberState::Removed] {
        for record in [&first, &later] {
            let record = MasterRecord { state, ..record.clone() };
            assert_eq!(MasterRecord::read(&words(&record)), Some(record));
        }
    }
    let words = words(&first);
    for missing in (0..words.len()).step_by(2) {
        let mut left = words.clone();
        left.drain(missing..missing + 2);
        assert_eq!(MasterRecord::read(&left), None, "{:?}", words[missing]);
    }
}

#[test]
fn a_record_tells_of_sixteen_earlier_lists() {
    let mut record = record();
    for generation in 1..=20 {
        let before = record.members.clone();
        record = record.next(before.with(generation + 20, name(9)));
        assert_eq!(record.generation, u64::from(generation));
        assert_eq!(record.earlier.len(), usize::try_from(generation.min(16)).unwrap());
        assert_eq!(record.earlier[0], before);
    }
}

#[test]
fn members_and_terms_are_named() {
    let names = ["b", "a"].map(Arc::from);
    assert_eq!(Members::first(&names).to_string(), "1 a\n2 b");
    assert_eq!(Members::in_order(&names).to_string(), "1 b\n2 a");
    assert_eq!(Members::first(&names).names(), "a, b");
    assert_eq!(Members::read("1 a\nx b"), None);
    let said = SetTerms::of(&terms(MAX_TTL)).to_string();
    assert_eq!(said, "protocol v2 and a max TTL of 30000 ms");
}

#[test]
fn the_quarantine_is_longer_than_any_lease() {
    assert_eq!(terms(MAX_TTL).quarantine(), Duration::from_millis(34_300));
    assert_eq!(terms(MAX_TTL).longest_quarantine(), Duration::from_millis(94_300));
    assert_eq!(terms(MAX_TTL).kept_free(), Duration::from_millis(94_300));
    let settings = Settings { prefix: "p:".into(), max_ttl: MAX_TTL, ..Settings::default() };
    let expected = Terms { record: "p:master".into(), decree: "p:decree".into(), ..terms(MAX_TTL) };
    assert_eq!(Terms::of(&settings), expected);
}

#[test]
fn fresh_numbers_are_above_those_of_first_lists() {
    assert_eq!(FreshIds::draw(|| 7).member, 23);
    assert_eq!(FreshIds::draw(|| u64::from(u32::MAX / 2)).member, 16);
    assert_eq!(&*FreshIds::draw(|| 7).stamp, "0000000000000007");
}

#[test]
fn a_write_ends_a_quarantine_at_the_later_time_that_no_wrong_clock_wrote() {
    let quarantine = terms(MAX_TTL).quarantine();
    let [now, end] = [5, 5 + quarantine.as_micros() as u64];
    let last = end + CLOCK_RANGE.as_micros() as u64;
    let write =
        |quarantine, least| RecordWrite { quarantine, least, ..RecordWrite::update(&record(), |_| {}) };
    for (least, expected) in [(0, end), (end + 1, end + 1), (last, last), (last + 1, end)] {
        assert_eq!(write(Some(quarantine), least).written(now).quarantine, expected, "{least}");
    }
    assert_eq!(write(Some(Duration::ZERO), 3).written(now).quarantine, 3);
    assert_eq!(write(None, 3).written(now).quarantine, record().quarantine);
    let costs = [None, Some(Duration::ZERO), Some(quarantine)].map(|time| write(time, 0).costs_the_vote());
    assert_eq!(costs, [false, false, true]);
}

#[test]
fn half_of_the_voters_are_no_majority() {
    for (count, voting, is_majority) in [(3, 1, false), (3, 2, true), (4, 2, false), (5, 3, true)] {
        let voters = Voters::given(&(0..count).map(name).collect::<Vec<_>>());
        assert_eq!(voters.len(), count);
        let others = indices([9]);
        assert_eq!(
            voters.have_majority(MasterSet::first(voting).or(others)),
            is_majority,
            "{voting} of {count}"
        );
    }
}
