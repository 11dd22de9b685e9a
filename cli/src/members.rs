//! `quorate members`: the set that the masters are.

use std::time::Duration;

use quorate::doctor::{Examined, Finding, Report, Severity};
use quorate::{Outcome, Redlock, Refusal, SetChange, Standing, Vote};
use quorate_cli::out;

use crate::args::{ChangeArgs, MasterArgs, MembersArgs, MembersChange, RecoverArgs};
use crate::ask;
use crate::exit::{self, Code, Failure};
use crate::init::{FIRST, waiting_for};
use crate::say::say;
use crate::signals;

/// What a recover risks if no master is silent.
const ALL_ANSWER: &str = "All masters answer. The set would go on by the records that are left, and without a \
                          master that stops to answer now. A change that only masters without a record knew is \
                          forgotten. Go on?";

/// How often to ask the masters whether they have a vote.
const LOOK: Duration = Duration::from_millis(250);

/// How often to say what is waited for.
const EVERY: Duration = Duration::from_secs(10);

/// A name to ask the masters about. Nothing is written there.
const ANY_NAME: &str = "members";

pub(crate) async fn members(args: MembersArgs) -> Result<Code, Failure> {
    match args.change {
        Some(MembersChange::Recover(args)) => recover(args).await,
        Some(MembersChange::Add(args)) => change(args.how, SetChange::add(args.master)).await,
        Some(MembersChange::Remove(args)) => change(args.how, SetChange::remove(args.master)).await,
        Some(MembersChange::Replace(args)) => change(args.how, SetChange::replace(args.old, args.new)).await,
        None => show_after(args.wait, args.masters).await,
    }
}

/// Changes the set, and says now and then what it waits for.
async fn change(args: ChangeArgs, change: SetChange) -> Result<Code, Failure> {
    let redlock = args.masters.builder()?.wait(args.wait).build()?;
    signals::unless_ended(redlock.change_members(change.on_progress(waiting_for))).await?;
    let masters: Vec<_> = redlock.master_status().into_iter().map(|status| status.master).collect();
    out!("the set is {} now", masters.join(", "));
    Ok(exit::OK)
}

/// Shows the set, once all masters have a vote or this time is over.
async fn show_after(wait: Option<Duration>, masters: MasterArgs) -> Result<Code, Failure> {
    let mut all_vote = true;
    if let Some(limit) = wait {
        let redlock = masters.clone().client()?;
        all_vote = signals::unless_ended(until_all_vote(&redlock, limit)).await?;
    }
    let (code, ..) = show(masters).await?;
    Ok(if code == exit::OK && !all_vote { exit::UNWELL } else { code })
}

/// Waits until all masters have a vote, for this long at most, and says now and then what it waits
/// for. Returns whether all have, and fails where no waiting helps.
async fn until_all_vote(redlock: &Redlock, limit: Duration) -> Result<bool, Failure> {
    let began = redlock.now();
    let mut next_message = began + FIRST;
    loop {
        // This connects, and notices a master that is silent by now.
        let seen = redlock.inspect(ANY_NAME).await?;
        if let Some(vote) = for_good(seen.votes()) {
            return Err(Failure::new(exit::REFUSED, vote.to_string()));
        }
        let status = redlock.master_status();
        let without_vote = status.iter().find_map(|each| match each.reachable {
            Some(true) if each.standing == Standing::Trusted => None,
            Some(true) => Some((&each.master, each.standing.to_string())),
            _ => Some((&each.master, "it is not reached".to_owned())),
        });
        let Some((master, why)) = without_vote else { return Ok(true) };
        let now = redlock.now();
        if now >= began + limit {
            return Ok(false);
        }
        if now >= next_message {
            next_message = now + EVERY;
            say(format_args!("waiting for {master}: {why}"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A vote by which a person has to act: a permanent refusal, except that one master alone may say
/// that there is no set while somebody begins it.
fn for_good(votes: &[Vote]) -> Option<&Vote> {
    let reason = |vote: &Vote| match &vote.outcome {
        Outcome::Refused { reason, .. } => Some(*reason),
        _ => None,
    };
    let is_without_set = votes.iter().all(|vote| reason(vote) == Some(Refusal::NoSet));
    let is_permanent =
        |vote: &&Vote| reason(vote).is_some_and(|reason| reason.is_permanent() && reason != Refusal::NoSet);
    if is_without_set { votes.first() } else { votes.iter().find(is_permanent) }
}

/// Shows the set, and returns what it comes to, and how many masters of how many do not answer.
async fn show(masters: MasterArgs) -> Result<(Code, usize, usize), Failure> {
    let report = masters.builder()?.examine().await?;
    let set = report.together.iter().find(|finding| finding.about == "set");
    if let Some(set) = set {
        out!("{set}");
    }
    let width = report.masters.iter().map(|master| master.master.chars().count()).max().unwrap_or(0);
    for master in &report.masters {
        match place(master) {
            Some(place) => out!("{:<width$}  {place}", master.master),
            None => out!("{:<width$}", master.master),
        }
    }
    let fails = |finding: &Finding| finding.severity == Severity::Fail && finding.about != "record";
    let is_silent = |master: &&Examined| master.round_trip.is_none() || master.findings.iter().any(fails);
    let silent = report.masters.iter().filter(is_silent).count();
    Ok((code(&report, set), silent, report.masters.len()))
}

async fn recover(args: RecoverArgs) -> Result<Code, Failure> {
    let redlock = args.masters.clone().builder()?.wait(args.wait).build()?;
    let (code, silent, all) = show(args.masters).await?;
    if code == exit::OK && silent == 0 {
        out!("all masters are there, and know their set: there is nothing to recover");
        return Ok(exit::OK);
    }
    let risk = match silent {
        0 => ALL_ANSWER.to_owned(),
        _ => format!(
            "{silent} of {all} masters {} answer, and the set would go on without them. If one of them is \
             not gone, but cut off, two sets may go on, and two may hold a lock. Are they gone for good?",
            if silent == 1 { "does not" } else { "do not" }
        ),
    };
    if !args.yes
        && !ask::is_confirmed(&risk).ok_or_else(|| {
            Failure::new(exit::REFUSED, format!("only a person can say so: {risk} If so: --yes"))
        })?
    {
        return Err(Failure::new(exit::REFUSED, "nothing was changed"));
    }
    signals::unless_ended(redlock.recover()).await?;
    out!("the set goes on: masters that had forgotten it vote when their quarantine is over");
    Ok(exit::OK)
}

/// What a master says of its place in the set, or why it cannot.
fn place(master: &Examined) -> Option<&Finding> {
    let is = |about: &str| master.findings.iter().find(|finding| finding.about == about);
    is("record").or_else(|| master.findings.iter().find(|finding| finding.severity == Severity::Fail))
}

fn code(report: &Report, set: Option<&Finding>) -> Code {
    let fails = |master: &Examined, about: &str| {
        let its = |finding: &Finding| finding.about == about && finding.severity == Severity::Fail;
        master.findings.iter().any(its)
    };
    let count = |has: &dyn Fn(&Examined) -> bool| report.masters.iter().filter(|master| has(master)).count();
    let answered = count(&|master| master.round_trip.is_some());
    let let_in = count(&|master| !fails(master, "login"));
    let not_ours = count(&|master| fails(master, "record"));
    match set {
        _ if let_in < report.quorum => exit::REFUSED,
        _ if answered < report.quorum => exit::NO_QUORUM,
        _ if not_ours > 0 => exit::REFUSED,
        Some(set) if set.severity != Severity::Fail => exit::OK,
        _ if answered < report.masters.len() => exit::NO_QUORUM, // one of the others may know a set
        _ => exit::REFUSED,
    }
}
