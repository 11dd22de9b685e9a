//! `quorate status`: who holds a lock.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use quorate::{
    HeldPart, Holder, Inspection, LockKind, LockState, MasterStatus, Outcome, Part, Standing, Vote,
};
use quorate_cli::out;
use serde::Serialize;

use crate::args::StatusArgs;
use crate::exit::{self, Code, Failure};
use crate::quarantine::{Quarantine, seconds};
use crate::say;

/// The status, for programs. docs/COMMAND.md describes it.
#[derive(Debug, Serialize)]
struct Status<'a> {
    #[serde(flatten)]
    seen: &'a Inspection,
    /// For how long no quorum has a vote, because masters may have forgotten what they granted;
    /// `null` where one has.
    quarantine_ms: Option<u128>,
    masters: &'a [MasterStatus],
}

pub(crate) async fn status(args: StatusArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let seen = redlock.inspect(args.name).await?;
    let masters = redlock.master_status();
    let quarantine = Quarantine::keeps(&redlock);
    let is_without_set = exit::is_without_set(seen.votes());
    if args.json {
        let quarantine_ms = quarantine.map(|quarantine| quarantine.left.as_millis());
        say::json(&Status { seen: &seen, quarantine_ms, masters: &masters })?;
    } else {
        if let Some(LockKind::ReadWrite | LockKind::Semaphore { .. }) = seen.kind() {
            out!("{}", table_of_parts(seen.held()).trim_fmt());
        }
        let waiting = match seen.waiting() {
            0 => String::new(),
            waiting => format!("; {waiting} waiting"),
        };
        out!("{}\n{}{waiting}", table_of_votes(seen.votes(), &masters).trim_fmt(), summary(&seen));
        if let Some(quarantine) = quarantine {
            out!("Nobody can get it for {}: {quarantine}", seconds(quarantine.left));
        }
        if is_without_set {
            out!("{}", exit::NO_SET);
        }
    }
    Ok(match seen.state() {
        LockState::Unknown if is_without_set || exit::is_refused(&seen) => exit::REFUSED,
        LockState::Unknown => exit::NO_QUORUM,
        LockState::NoLock => exit::USAGE,
        _ => exit::OK,
    })
}

fn table_of_parts(held: &[HeldPart]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["PART", "HOLDER", "MASTERS", "HELD FOR", "REMAINING"]);
    for HeldPart { part, holder, .. } in held {
        table.add_row([
            match part {
                Part::Permit(number) => format!("permit {number}"),
                Part::Read => "read".to_owned(),
                _ => "write".to_owned(),
            },
            who(holder),
            holder.masters.to_string(),
            held_for(holder),
            remaining(holder.remaining),
        ]);
    }
    table
}

fn table_of_votes(votes: &[Vote], masters: &[MasterStatus]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "MASTER",
        "STATE",
        "HOLDER OR REASON",
        "HOLDS",
        "REMAINING",
        "STANDING",
        "LATENCY",
    ]);
    for vote in votes {
        let [state, holder_or_reason, holds, left] = match &vote.outcome {
            Outcome::Held { owner, remaining: left, count, .. } => {
                ["held".to_owned(), owner.to_string(), count.to_string(), remaining(*left)]
            }
            Outcome::Absent => ["free".to_owned(), dash(), dash(), dash()],
            Outcome::Refused { .. } => ["refused".to_owned(), vote.outcome.to_string(), dash(), dash()],
            Outcome::Unreachable(_) => ["unreachable".to_owned(), vote.outcome.to_string(), dash(), dash()],
            other => ["unknown".to_owned(), other.to_string(), dash(), dash()],
        };
        let status = masters.iter().find(|status| status.master == vote.master);
        let standing = match status.map(|status| &status.standing) {
            Some(Standing::Trusted) => "trusted".to_owned(),
            Some(Standing::Quarantined { left, .. }) => format!("quarantined for {}", seconds(*left)),
            Some(Standing::Refused(_)) => "refused".to_owned(),
            _ => "unknown".to_owned(),
        };
        let latency = format!("{:.1} ms", vote.latency.as_secs_f64() * 1e3);
        table.add_row([vote.master.to_string(), state, holder_or_reason, holds, left, standing, latency]);
    }
    table
}

/// The state in a sentence.
fn summary(seen: &Inspection) -> String {
    let name = seen.name();
    let all = seen.votes().len();
    let quorum = seen.quorum();
    let permits = match seen.kind() {
        Some(LockKind::Semaphore { permits }) => Some(permits),
        _ => None,
    };
    match (seen.state(), permits, seen.held()) {
        (LockState::Unknown, ..) => {
            let is_refused = |vote: &&Vote| matches!(vote.outcome, Outcome::Refused { .. });
            let but = match seen.votes().iter().filter(is_refused).count() {
                0 => String::new(),
                refused => format!(", {refused} refused"),
            };
            let answered = seen.answered();
            format!(
                "{name:?}: no quorum, only {answered} of {all} masters answered{but}, and {quorum} are needed"
            )
        }
        (LockState::NoLock, ..) => format!("{name:?} is no lock: something else has its key"),
        (_, Some(permits), held) => match seen.free() {
            0 if held.len() == permits as usize => {
                format!("semaphore {name:?}: all of {permits} permits are held")
            }
            0 => {
                format!("semaphore {name:?}: none of {permits} permits is free, and some are held by nobody")
            }
            free => format!("semaphore {name:?}: {free} of {permits} permits are free"),
        },
        (LockState::Free, ..) => format!("{name:?} is free"),
        (_, _, [one]) => format!("{name:?} is {}", how_held(one)),
        (_, _, [first, others @ ..]) => {
            format!("{name:?} is {}, and by {} more", how_held(first), others.len())
        }
        (_, _, []) => {
            format!("{name:?} is held by nobody: no owner has a majority of {quorum} of {all} masters")
        }
    }
}

fn how_held(HeldPart { part, holder, .. }: &HeldPart) -> String {
    let verb = if *part == Part::Read { "read" } else { "held" };
    let so_far = match holder.held_for {
        Some(time) => format!(", for {} so far", seconds(time)),
        None => String::new(),
    };
    let left = match holder.remaining {
        Some(left) => format!("expires in at most {}", seconds(left)),
        None => "never expires".to_owned(),
    };
    format!("{verb} by {} on {} masters{so_far}, {left}", who(holder), holder.masters)
}

/// The owner, and its label.
pub(crate) fn who(Holder { owner, label, .. }: &Holder) -> String {
    match label {
        Some(label) => format!("{owner} ({label})"),
        None => owner.to_string(),
    }
}

pub(crate) fn held_for(holder: &Holder) -> String {
    holder.held_for.map_or_else(dash, seconds)
}

/// How long is left of a lease.
pub(crate) fn remaining(left: Option<Duration>) -> String {
    left.map_or_else(|| "never expires".to_owned(), seconds)
}

pub(crate) fn dash() -> String {
    "-".to_owned()
}
