//! The way to a violation, for people: who did what, and what the masters know after it.

use std::fmt::Write;

use crate::client::Phase;
use crate::master::{Master, Owner};
use crate::search::Outcome;
use crate::world::{Step, World};

/// The steps to what is broken, a line each.
pub(crate) fn trace<const N: usize, const K: usize>(outcome: &Outcome<N, K>) -> String {
    let mut text = format!("{:54}each master's counter, whose that is, and who holds the lock there\n", "");
    for (number, (step, world)) in outcome.broken.iter().flat_map(|(_, steps)| steps).enumerate() {
        let what = describe(step, world);
        let masters: Vec<_> = world.places.iter().map(|place| know(&place.master)).collect();
        let _ = writeln!(text, "{:>4}. {what:<48} {}", number + 1, masters.join(" | "));
    }
    text
}

/// What a step is, and what it came to.
fn describe<const N: usize, const K: usize>(step: &Step<N>, after: &World<N, K>) -> String {
    match *step {
        Step::Begin { who, proposal } => format!("{} asks, and proposes {proposal}", attempt(who)),
        Step::Acquire { who, at } => {
            format!("{} grants {} {}", master(at), attempt(who), after.places[at].master.counter)
        }
        Step::Count { who, grants } => {
            let counted = grants.iter().enumerate().filter_map(|(at, grant)| Some((at, (*grant)?)));
            let counted: Vec<_> = counted.map(|(at, grant)| format!("{grant} of {}", master(at))).collect();
            format!("{} counts {}: {}", attempt(who), counted.join(", "), standing(who, after))
        }
        Step::Confirm { who, at } => {
            format!("{} confirms to {}: {}", master(at), attempt(who), standing(who, after))
        }
        Step::Extend { who, at, counted } => {
            let late = if counted { "" } else { ", by an earlier message" };
            format!("{} extends the hold of {}{late}", master(at), attempt(who))
        }
        Step::Renew { who } => format!("{} sends new extends", attempt(who)),
        Step::Release { who, at } => format!("{} runs the release of {}", master(at), attempt(who)),
        Step::Expire { at } => format!("the hold on {} is gone", master(at)),
        Step::Forget { at, counter, .. } => format!("{} forgets, and knows {counter}", master(at)),
        Step::Tick => format!("it is {}", after.now),
    }
}

fn standing<const N: usize, const K: usize>(who: usize, world: &World<N, K>) -> String {
    let attempt = world.attempts[who];
    match attempt.phase {
        Phase::Holding => format!("has token {}", attempt.token),
        _ => format!("confirms {}", attempt.token),
    }
}

/// A master's record, `number:owner`, then who holds the lock there, and until when it does not vote.
fn know(master: &Master) -> String {
    let Master { counter, held, holder, silent_until } = *master;
    let name = |owner: Option<Owner>| owner.map_or('-', |owner| attempt(owner.into()));
    let silent = if silent_until > 0 { format!(" silent until {silent_until}") } else { String::new() };
    format!("{counter}:{} {}{silent}", name(held), name(holder))
}

fn attempt(who: usize) -> char {
    ['X', 'Y', 'Z'][who]
}

fn master(at: usize) -> char {
    ['A', 'B', 'C', 'D', 'E'][at]
}
