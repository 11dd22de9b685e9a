//! `quorate members`: the set that the masters are.

use quorate::doctor::{Examined, Finding, Report, Severity};

use crate::args::{MasterArgs, MembersArgs, MembersChange, RecoverArgs};
use crate::ask;
use crate::exit::{self, Code, Failure};
use crate::job;
use crate::say::out;

pub(crate) async fn members(args: MembersArgs) -> Result<Code, Failure> {
    match args.change {
        Some(MembersChange::Recover(args)) => recover(args).await,
        None => Ok(show(args.masters).await?.0),
    }
}

/// Shows the set, and returns what it comes to and how many masters do not answer.
async fn show(masters: MasterArgs) -> Result<(Code, usize), Failure> {
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
    let silent = report.masters.iter().filter(|master| master.round_trip.is_none()).count();
    Ok((code(&report, set), silent))
}

async fn recover(args: RecoverArgs) -> Result<Code, Failure> {
    let redlock = args.masters.clone().builder()?.wait(args.wait).build()?;
    let (_, silent) = show(args.masters).await?;
    let question = format!(
        "{silent} of {} masters do not answer, and the set would go on without them. Are they gone for good?",
        redlock.master_status().len()
    );
    if !args.yes
        && !ask::is_confirmed(&question).ok_or_else(|| {
            Failure::new(exit::REFUSED, format!("only a person can say so: {question} If so: --yes"))
        })?
    {
        return Err(Failure::new(exit::REFUSED, "nothing was changed"));
    }
    job::unless_ended(redlock.recover()).await?;
    out!("the set goes on: masters that had forgotten it vote when their quarantine is over");
    Ok(exit::OK)
}

/// What a master says of its place in the set, or why it cannot.
fn place(master: &Examined) -> Option<&Finding> {
    let is = |about: &str| master.findings.iter().find(|finding| finding.about == about);
    is("record").or_else(|| master.findings.iter().find(|finding| finding.severity == Severity::Fail))
}

fn code(report: &Report, set: Option<&Finding>) -> Code {
    let answered = report.masters.iter().filter(|master| master.round_trip.is_some()).count();
    match set {
        _ if answered < report.quorum => exit::NO_QUORUM,
        Some(set) if set.severity == Severity::Ok => exit::OK,
        _ => exit::REFUSED,
    }
}
