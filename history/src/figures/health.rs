//! When enough masters were well for locks to be had, and whether they were.
//!
//! A master is well while it has no fault, nor any client's way to it, and none has ended within
//! the time that it may take to recover: a master that may have forgotten has no vote for some
//! seconds more than the max TTL.

use std::ops::Range;

use super::latency::granted;
use crate::history::{History, Struck, Time};

/// When a majority of the masters, and at least one of the clients, was well.
pub fn healthy(
    history: &History,
    time: &Range<Time>,
    masters: usize,
    clients: usize,
    recovery: Time,
) -> Vec<Range<Time>> {
    let recovered = |to: Option<Time>| to.map_or(Time::MAX, |to| to.saturating_add(recovery));
    let has = |struck: &Struck, master: usize, at: Time| {
        struck.fault.masters.contains(&master) && (struck.from..recovered(struck.until(master))).contains(&at)
    };
    let edges = history.faults.iter().flat_map(|struck| {
        let before = struck.before.iter().map(|(_, at)| Some(*at));
        before.chain([struck.to]).map(recovered).chain([struck.from])
    });
    let mut edges: Vec<_> = edges.chain([time.start, time.end]).collect();
    edges.retain(|edge| time.contains(edge) || *edge == time.end);
    edges.sort_unstable();
    edges.dedup();
    let mut healthy: Vec<Range<Time>> = Vec::new();
    for during in edges.windows(2).map(|edges| edges[0]..edges[1]) {
        let now = during.start;
        let is_down = |client: usize| {
            history.faults.iter().any(|struck| {
                (struck.from..recovered(struck.to)).contains(&now)
                    && struck.fault.masters.is_empty()
                    && struck.fault.clients.contains(&client)
            })
        };
        let is_well = |master: &usize| !history.faults.iter().any(|struck| has(struck, *master, now));
        let well = (0..masters).filter(is_well).count();
        if well <= masters / 2 || (0..clients).all(is_down) {
            continue;
        }
        match healthy.last_mut() {
            Some(last) if last.end == during.start => last.end = during.end,
            _ => healthy.push(during),
        }
    }
    healthy
}

/// The longest time within these in which nobody was granted anything.
pub fn longest_without_grant(history: &History, healthy: &[Range<Time>]) -> Option<Range<Time>> {
    let mut grants: Vec<_> = granted(history).map(|(_, at)| at).collect();
    grants.sort_unstable();
    let without = healthy.iter().flat_map(|time| {
        let within = grants.iter().copied().filter(|at| time.contains(at));
        let edges: Vec<_> = [time.start].into_iter().chain(within).chain([time.end]).collect();
        edges.windows(2).map(|edges| edges[0]..edges[1]).collect::<Vec<_>>()
    });
    without.max_by_key(|time| time.end - time.start)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of times, of which there may be one")]
mod tests {
    use super::*;
    use crate::acquires::Ending::Granted;
    use crate::history::FaultRecord;
    use crate::made_up::{attempt, ms};

    const RECOVERY: Time = Time::from_millis(5);

    fn struck(masters: &[usize], clients: &[usize], from: u64, to: Option<u64>) -> Struck {
        let masters = masters.to_vec();
        let clients = clients.to_vec();
        let family = "servers".to_owned();
        let what = "kill".to_owned();
        let fault = FaultRecord { number: None, family, what, masters, clients };
        Struck { fault, from: ms(from), to: to.map(ms), before: Vec::new() }
    }

    /// Of three masters and two clients, from 0 to 100.
    fn of(faults: Vec<Struck>) -> Vec<Range<u128>> {
        let all = healthy(&History { faults, ..History::default() }, &(ms(0)..ms(100)), 3, 2, RECOVERY);
        all.into_iter().map(|time| time.start.as_millis()..time.end.as_millis()).collect()
    }

    #[test]
    fn a_majority_has_to_be_well_and_to_have_recovered() {
        assert_eq!(of(vec![]), [0..100]);
        assert_eq!(of(vec![struck(&[1], &[], 10, Some(20))]), [0..100], "a minority");
        assert_eq!(of(vec![struck(&[0, 1], &[], 10, Some(20))]), [0..10, 25..100]);
        let two = vec![struck(&[0], &[], 10, Some(20)), struck(&[1], &[0], 24, Some(30))];
        assert_eq!(of(two), [0..24, 25..100], "one while the other recovers");
        assert_eq!(of(vec![struck(&[0, 1], &[], 10, None)]), [0..10], "it is not healed");
    }

    #[test]
    fn each_master_is_well_when_it_was_healed() {
        let all = Struck { before: vec![(0, ms(20)), (2, ms(30))], ..struck(&[0, 1, 2], &[], 10, Some(60)) };
        assert_eq!(of(vec![all]), [0..10, 35..100]);
    }

    #[test]
    fn somebody_has_to_be_there_who_asks() {
        assert_eq!(of(vec![struck(&[], &[0], 10, Some(20))]), [0..100]);
        assert_eq!(of(vec![struck(&[], &[0, 1], 10, Some(20))]), [0..10, 25..100]);
    }

    #[test]
    fn the_longest_time_without_a_grant_is_within_the_healthy_ones() {
        let calls = [10, 30, 80].map(|at| attempt(at - 1, Some(at), Granted)).to_vec();
        let history = History { calls, ..History::default() };
        let longest = |healthy: &[Range<u64>]| {
            let healthy: Vec<_> = healthy.iter().map(|time| ms(time.start)..ms(time.end)).collect();
            let longest = longest_without_grant(&history, &healthy)?;
            Some(longest.start.as_millis()..longest.end.as_millis())
        };
        assert_eq!(longest(&[0..100]), Some(30..80));
        assert_eq!(longest(&[0..40, 75..95]), Some(10..30));
        assert_eq!(longest(&[40..70]), Some(40..70), "none at all");
        assert_eq!(longest(&[]), None);
    }
}
