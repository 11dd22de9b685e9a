//! Random walks of many clients and masters that go by the rules.

use super::super::record::MemberState;
use super::super::write::id;
use super::basics::{Dice, MAX_TTL, masters_of, quarantine};
use super::client::Client;
use super::fake::FakeMaster;

/// How far (us) the time goes at a time, at least.
const STEP: u64 = 3_000_000;

/// What came of a walk.
struct WalkOutcome {
    grants: usize,
    /// The highest generation.
    newest: u64,
    /// Whether locks can be had in the end.
    ends: bool,
}

/// Masters restart, lose their keys, become replicas, or go back to an older state. Clients with
/// several lists begin sets, connect, and lock. A holder is alone until its lease ends.
fn walk(seed: u64, lists: &[&[usize]], faults: bool, changes: bool) -> WalkOutcome {
    let dice = Dice::new(seed);
    let mut masters: Vec<_> = (1..6).map(FakeMaster::new).collect();
    // Whose each master remembers a lock to be, and until when.
    let mut held: Vec<Option<(usize, u64)>> = vec![None; masters.len()];
    let mut clients: Vec<Client> = Vec::new();
    let mut holder: Option<(usize, u64)> = None;
    let mut grants = 0;
    let mut newest = 0;
    let mut now = 0;
    let mut faulty_until = 0;
    for next_run in 10..610 {
        let at = dice.below(masters.len());
        let is_faulty = faults && now >= faulty_until && dice.below(15) == 0;
        let what = if is_faulty { 10 + dice.below(4) } else { dice.below(10) };
        if is_faulty && changes {
            faulty_until = now + quarantine(); // most remember
        }
        match what {
            0 if clients.len() < 12 => {
                let list = dice.below(lists.len());
                // Whoever begins a second set with masters that the first one lost has two.
                let begins = (dice.below(2) == 0 && (list == 0 || !faults)).then_some(None);
                let current = newest_list(&masters);
                let list = if changes { &current } else { lists[list] };
                let mut client = Client::new(list, begins);
                if let Some(begins) = &mut client.set.beginning {
                    begins.id = id(dice.draw());
                }
                clients.push(client);
            }
            1 => now += STEP * (1 + dice.below(8) as u64),
            10 => masters[at].run_id = next_run,
            11 | 12 => (masters[at], held[at]) = (FakeMaster::new(next_run), None),
            13 => (masters[at].record, held[at]) = (None, None),
            _ if !clients.is_empty() => {
                let number = dice.below(clients.len());
                let client = &mut clients[number];
                if changes && dice.below(8) == 0 {
                    client.cut_off = (0..masters.len()).filter(|_| dice.below(3) == 0).collect();
                }
                client.connect_to_all(&mut masters, now, &dice);
                if changes && what > 6 && client.change(&mut masters, now, &dice) {
                    let record = client.set.newest().unwrap();
                    newest = newest.max(record.generation);
                    if dice.below(2) == 0 {
                        continue; // it is killed, or cut off, before it tells a master
                    }
                    client.connect_to_all(&mut masters, now, &dice);
                }
                let free = |&at: &usize| held[at].is_none_or(|(owner, ends)| owner == number || ends <= now);
                let granted: Vec<_> = client.voters(&masters, now).into_iter().filter(free).collect();
                let ends = now + MAX_TTL.as_micros() as u64;
                // It reaches some of those only, and a grant of too few stays there all the same.
                let reached: Vec<_> = granted.into_iter().filter(|_| dice.below(4) > 0).collect();
                for &at in &reached {
                    held[at] = Some((number, ends));
                }
                if reached.len() >= client.quorum() {
                    let alone = holder.is_none_or(|(owner, ends)| owner == number || ends <= now);
                    assert!(alone, "seed {seed}: {number} and {holder:?} at {now}");
                    (holder, grants) = (Some((number, ends)), grants + 1);
                }
            }
            _ => {}
        }
    }
    WalkOutcome { grants, newest, ends: is_begun_again(&mut masters, now, &dice) }
}

/// Whether a quorum votes after one more `init` with the list of the set, and no more faults.
fn is_begun_again(masters: &mut [FakeMaster], mut now: u64, dice: &Dice) -> bool {
    let mut last = Client::new(&newest_list(masters), Some(None));
    for _ in 0..8 {
        now += quarantine();
        (0..6).for_each(|_| drop(last.connect_to_all(masters, now, dice)));
    }
    last.voters(masters, now).len() >= last.quorum()
}

/// The list of the newest generation that a master shows.
fn newest_list(masters: &[FakeMaster]) -> Vec<usize> {
    let records = masters.iter().filter_map(|master| master.record.as_ref());
    let of_set = records.filter(|its| its.state != MemberState::Candidate);
    let Some(newest) = of_set.max_by_key(|its| its.generation) else { return vec![0, 1, 2] };
    masters_of(&newest.members)
}

/// The members change meanwhile, one at a time.
#[test]
fn whoever_has_the_lock_has_it_alone_however_the_members_change() {
    for faults in [false, true] {
        let mut grants = 0;
        let mut changes = 0;
        let mut stuck = 0;
        for seed in 0..600 {
            let walked = walk(seed, &[&[0, 1, 2]], faults, true);
            grants += walked.grants;
            changes += walked.newest;
            stuck += usize::from(!walked.ends);
        }
        println!("{grants} grants, {changes} changes, {stuck} stuck, faults {faults}");
        assert!(faults || stuck == 0, "{stuck} sets that `init` does not help");
        assert!(grants > 4_000 && changes > 600, "faults {faults}: {grants} grants, {changes} changes");
    }
}

#[test]
fn whoever_has_the_lock_has_it_alone_whatever_lists_and_losses_there_are() {
    let lists: [&[&[usize]]; 4] = [
        &[&[0, 1, 2]],
        &[&[0, 1, 2], &[2, 3, 4]],
        &[&[0, 1, 2], &[0, 1, 3], &[0, 3, 4]],
        &[&[0, 1, 2, 3, 4], &[0, 1, 2]],
    ];
    for lists in lists {
        for faults in [false, true] {
            let grants: usize = (0..150).map(|seed| walk(seed, lists, faults, false).grants).sum();
            assert!(grants > 1_000, "{lists:?}, faults {faults}: {grants} grants only");
        }
    }
}
