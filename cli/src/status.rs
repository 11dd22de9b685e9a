//! `quorate status`: who holds a lock.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use quorate::{Inspection, MasterStatus, Outcome, Standing, Vote};
use serde::Serialize;

use crate::args::StatusArgs;
use crate::exit::{self, Code, Failure};
use crate::quarantine::{Quarantine, seconds};
use crate::say::out;

/// The status, for programs. Durations are in milliseconds. The README describes it.
#[derive(Debug, Serialize)]
struct Status<'a> {
    name: &'a str,
    /// `held`, when a majority names one holder; `free`, when a majority has no such lock; `split`, when a majority
    /// answered and neither is true; `unknown`, when too few answered.
    state: &'static str,
    holder: Option<Holder>,
    quorum: usize,
    /// How many masters answered.
    answered: usize,
    /// For how long no quorum has a vote, because masters may have forgotten what they granted; `null` where one has.
    quarantine_ms: Option<u64>,
    masters: Vec<Master>,
}

#[derive(Debug, Serialize)]
struct Holder {
    owner: String,
    masters: usize,
    /// `null` when the lock never expires.
    remaining_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Master {
    master: String,
    /// free, held, refused, unreachable or unknown.
    state: &'static str,
    owner: Option<String>,
    holds: Option<u64>,
    remaining_ms: Option<u64>,
    /// Whether it may vote: `trusted`, `quarantined`, `refused`, or `unknown` where it was not reached.
    standing: &'static str,
    /// For how long it has no vote, if it is in quarantine.
    quarantine_ms: Option<u64>,
    /// Why the master did not answer as asked.
    detail: Option<String>,
    latency_ms: f64,
}

pub(crate) async fn status(args: StatusArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let seen = args.kind.lock(&redlock, &args.name).inspect().await?;
    let quarantine = Quarantine::keeps(&redlock);
    let status = Status::new(&args.name, &seen, &redlock.standings(), quarantine);
    if args.json {
        let json = serde_json::to_string_pretty(&status)
            .map_err(|error| Failure::new(exit::FAILED, error.to_string()))?;
        out!("{json}");
    } else {
        out!("{}\n{}", status.table(), status.summary());
        if let Some(quarantine) = quarantine {
            out!("Nobody can get it for {}: {quarantine}", seconds(quarantine.left));
        }
    }
    Ok(if status.answered >= status.quorum { exit::OK } else { exit::NO_QUORUM })
}

impl<'a> Status<'a> {
    fn new(
        name: &'a str,
        seen: &Inspection,
        standings: &[MasterStatus],
        quarantine: Option<Quarantine>,
    ) -> Self {
        let holder = seen.holder().map(|holder| Holder {
            owner: holder.owner.to_string(),
            masters: holder.masters,
            remaining_ms: holder.remaining.map(whole_ms),
        });
        let state = match &holder {
            Some(_) => "held",
            None if seen.is_free() => "free",
            None if seen.answered() >= seen.quorum() => "split",
            None => "unknown",
        };
        Self {
            name,
            state,
            holder,
            quorum: seen.quorum(),
            answered: seen.answered(),
            quarantine_ms: quarantine.map(|quarantine| whole_ms(quarantine.left)),
            masters: seen.votes().iter().zip(standings).map(Master::new).collect(),
        }
    }

    fn table(&self) -> Table {
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
        for master in &self.masters {
            let dash = || "-".to_owned();
            table.add_row([
                master.master.clone(),
                master.state.to_owned(),
                master.owner.clone().or(master.detail.clone()).unwrap_or_else(dash),
                master.holds.map_or_else(dash, |holds| holds.to_string()),
                match (master.state, master.remaining_ms) {
                    ("held", None) => "never expires".to_owned(),
                    (_, Some(ms)) => format!("{:.1} s", ms as f64 / 1e3),
                    _ => dash(),
                },
                match master.quarantine_ms {
                    Some(ms) => format!("{} for {:.1} s", master.standing, ms as f64 / 1e3),
                    None => master.standing.to_owned(),
                },
                format!("{:.1} ms", master.latency_ms),
            ]);
        }
        table
    }

    fn summary(&self) -> String {
        let Self { name, state, holder, quorum, answered, masters, .. } = self;
        let all = masters.len();
        match holder {
            Some(Holder { owner, masters, remaining_ms: Some(ms) }) => {
                format!(
                    "{name:?} is held by {owner} on {masters} of {all} masters, for at most {:.1} s more",
                    *ms as f64 / 1e3
                )
            }
            Some(Holder { owner, masters, remaining_ms: None }) => {
                format!("{name:?} is held by {owner} on {masters} of {all} masters, and never expires")
            }
            None if *state == "free" => format!("{name:?} is free"),
            None if *state == "unknown" => {
                format!(
                    "{name:?}: no quorum, only {answered} of {all} masters answered, and {quorum} are needed"
                )
            }
            None => {
                format!("{name:?} is held by nobody: no owner has a majority of {quorum} of {all} masters")
            }
        }
    }
}

impl Master {
    fn new((vote, status): (&Vote, &MasterStatus)) -> Self {
        let (standing, quarantine) = match &status.standing {
            Standing::Trusted => ("trusted", None),
            Standing::Quarantined { left, .. } => ("quarantined", Some(*left)),
            Standing::Refused(_) => ("refused", None),
            _ => ("unknown", None),
        };
        let mut master = Self {
            standing,
            quarantine_ms: quarantine.map(whole_ms),
            master: vote.master.to_string(),
            state: "unknown",
            owner: None,
            holds: None,
            remaining_ms: None,
            detail: None,
            latency_ms: (vote.latency.as_secs_f64() * 1e6).round() / 1e3,
        };
        match &vote.outcome {
            Outcome::Held { owner, remaining, count, .. } => {
                master.state = "held";
                master.owner = Some(owner.to_string());
                master.holds = Some(*count);
                master.remaining_ms = remaining.map(whole_ms);
            }
            Outcome::Absent => master.state = "free",
            other => {
                master.state = match other {
                    Outcome::Refused { .. } => "refused",
                    Outcome::Unreachable(_) => "unreachable",
                    _ => "unknown",
                };
                master.detail = Some(other.to_string());
            }
        }
        master
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
