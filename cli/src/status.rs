//! `quorate status`: who holds a lock.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use quorate::{Error, Inspection, MasterStatus, Outcome, Standing, Vote};
use serde::Serialize;

use crate::args::StatusArgs;
use crate::exit::{self, Code, Failure};
use crate::quarantine::{Quarantine, seconds};
use crate::say::{self, out};

/// The status, for programs. Durations are in milliseconds. The README describes it.
#[derive(Debug, Serialize)]
struct Status<'a> {
    name: &'a str,
    /// `held`, when a majority names one holder; `free`, when a majority has no such lock; `split`, when a majority
    /// answered and neither is true; `unknown`, when too few answered; `another_kind` or `other_permits`, when a majority has
    /// something else under this name. A semaphore is `free` where a permit is, and `held` where all are.
    state: &'static str,
    /// That of a lock; each permit has its own.
    holder: Option<Holder>,
    quorum: usize,
    /// How many masters answered.
    answered: usize,
    /// For how long no quorum has a vote, because masters may have forgotten what they granted; `null` where one has.
    quarantine_ms: Option<u64>,
    masters: Vec<Master>,
    /// Those of a semaphore, where there is one.
    permits: Option<Vec<Permit>>,
    /// Why there is no such lock under this name.
    #[serde(skip)]
    misuse: Option<Error>,
}

#[derive(Debug, Serialize)]
struct Permit {
    permit: usize,
    /// As that of a lock.
    state: &'static str,
    holder: Option<Holder>,
}

#[derive(Debug, Serialize)]
struct Holder {
    owner: String,
    /// What its client calls it.
    label: Option<String>,
    masters: usize,
    /// For how long it has had the lock.
    held_ms: Option<u64>,
    /// `null` when the lock never expires.
    remaining_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Master {
    master: String,
    /// free, held, refused, unreachable or unknown.
    state: &'static str,
    owner: Option<String>,
    label: Option<String>,
    /// How often the owner entered; of a semaphore, how many permits are taken there.
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
    let mut status = Status::new(&args.name, &seen, &redlock.standings(), quarantine);
    if args.kind.permits.is_some() && status.misuse.is_none() {
        status.tell_permits(&seen);
    }
    if args.json {
        say::json(&status)?;
    } else {
        if let Some(permits) = &status.permits {
            out!("{}", Permit::table(permits));
        }
        out!("{}\n{}", status.table(), status.summary());
        if let Some(quarantine) = quarantine {
            out!("Nobody can get it for {}: {quarantine}", seconds(quarantine.left));
        }
    }
    Ok(match status.misuse {
        Some(misuse) => Failure::from(misuse).code,
        None if status.answered >= status.quorum => exit::OK,
        None => exit::NO_QUORUM,
    })
}

impl<'a> Status<'a> {
    fn new(
        name: &'a str,
        seen: &Inspection,
        standings: &[MasterStatus],
        quarantine: Option<Quarantine>,
    ) -> Self {
        Self {
            name,
            state: state(seen),
            holder: Holder::of(seen),
            quorum: seen.quorum(),
            answered: seen.answered(),
            quarantine_ms: quarantine.map(|quarantine| whole_ms(quarantine.left)),
            masters: seen.votes().iter().zip(standings).map(Master::new).collect(),
            permits: None,
            misuse: seen.misuse(),
        }
    }

    /// Tells of all permits of a semaphore, where there was the first one only.
    fn tell_permits(&mut self, seen: &Inspection) {
        let views: Vec<Inspection> = seen.permits().collect();
        let permit = |(permit, seen)| Permit { permit, state: state(seen), holder: Holder::of(seen) };
        let permits: Vec<Permit> = views.iter().enumerate().map(permit).collect();
        let is = |state: &str| permits.iter().filter(|permit| permit.state == state).count();
        self.state = match permits.len() {
            _ if is("free") > 0 => "free",
            all if is("held") == all => "held",
            _ if is("unknown") > 0 => "unknown",
            _ => "split",
        };
        self.holder = None;
        self.answered = views.iter().map(Inspection::answered).min().unwrap_or(0);
        for (place, master) in self.masters.iter_mut().enumerate() {
            master.tell_permits(views.iter().map(|seen| &seen.votes()[place]));
        }
        self.permits = Some(permits);
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header([
            "MASTER",
            "STATE",
            "HOLDER OR REASON",
            if self.permits.is_some() { "TAKEN" } else { "HOLDS" },
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
                match &master.owner {
                    Some(_) => remaining(master.remaining_ms),
                    None => dash(),
                },
                match master.quarantine_ms {
                    Some(ms) => format!("{} for {}", master.standing, in_seconds(ms)),
                    None => master.standing.to_owned(),
                },
                format!("{:.1} ms", master.latency_ms),
            ]);
        }
        table
    }

    fn summary(&self) -> String {
        let Self { name, state, holder, quorum, answered, masters, permits, misuse, .. } = self;
        let all = masters.len();
        match misuse {
            Some(Error::OtherPermits { asked, permits, .. }) => {
                return format!("semaphore {name:?} has {permits} permits, and not {asked}");
            }
            Some(_) => {
                let kinds = "see --shared, --exclusive, --fair and --permits";
                return format!("{name:?} is held as another kind of lock, or is none: {kinds}");
            }
            None => {}
        }
        if let (Some(permits), false) = (permits, *state == "unknown") {
            let of = permits.len();
            return match permits.iter().filter(|permit| permit.state == "free").count() {
                0 if *state == "held" => format!("semaphore {name:?}: all of {of} permits are held"),
                0 => format!("semaphore {name:?}: none of {of} permits is free, and some are held by nobody"),
                free => format!("semaphore {name:?}: {free} of {of} permits are free"),
            };
        }
        match holder {
            Some(holder) => {
                let so_far = holder.held_ms.map(|ms| format!(", for {} so far", in_seconds(ms)));
                let left = match holder.remaining_ms {
                    Some(ms) => format!("for at most {} more", in_seconds(ms)),
                    None => "and never expires".to_owned(),
                };
                let (who, masters, so_far) = (holder.who(), holder.masters, so_far.unwrap_or_default());
                format!("{name:?} is held by {who} on {masters} of {all} masters{so_far}, {left}")
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

impl Permit {
    fn table(permits: &[Self]) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["PERMIT", "STATE", "HOLDER", "MASTERS", "REMAINING"]);
        for Self { permit, state, holder } in permits {
            let told = |of: fn(&Holder) -> String| holder.as_ref().map_or_else(|| "-".to_owned(), of);
            table.add_row([
                permit.to_string(),
                (*state).to_owned(),
                told(Holder::who),
                told(|holder| holder.masters.to_string()),
                told(|holder| remaining(holder.remaining_ms)),
            ]);
        }
        table
    }
}

impl Holder {
    /// The owner, and its label.
    fn who(&self) -> String {
        match &self.label {
            Some(label) => format!("{} ({label})", self.owner),
            None => self.owner.clone(),
        }
    }

    fn of(seen: &Inspection) -> Option<Self> {
        seen.holder().map(|holder| Self {
            owner: holder.owner.to_string(),
            label: holder.label.as_deref().map(str::to_owned),
            masters: holder.masters,
            held_ms: holder.held_for.map(whole_ms),
            remaining_ms: holder.remaining.map(whole_ms),
        })
    }
}

/// The state of a lock, or of one permit.
fn state(seen: &Inspection) -> &'static str {
    match seen.misuse() {
        Some(Error::OtherPermits { .. }) => "other_permits",
        Some(_) => "another_kind",
        None if seen.holder().is_some() => "held",
        None if seen.is_free() => "free",
        None if seen.answered() >= seen.quorum() => "split",
        None => "unknown",
    }
}

impl Master {
    /// Tells of what it said of all permits, where there was what it said of the first one.
    fn tell_permits<'a>(&mut self, votes: impl Iterator<Item = &'a Vote>) {
        let (mut taken, mut is_free) = (0, false);
        for vote in votes {
            self.latency_ms = self.latency_ms.max(latency_ms(vote));
            match &vote.outcome {
                Outcome::Held { .. } => taken += 1,
                Outcome::Absent => is_free = true,
                silent => return self.tell(silent),
            }
        }
        self.state = if is_free { "free" } else { "held" };
        (self.owner, self.label, self.holds, self.remaining_ms) = (None, None, Some(taken), None);
    }

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
            label: None,
            holds: None,
            remaining_ms: None,
            detail: None,
            latency_ms: latency_ms(vote),
        };
        master.tell(&vote.outcome);
        master
    }

    fn tell(&mut self, outcome: &Outcome) {
        (self.owner, self.label, self.holds, self.remaining_ms) = (None, None, None, None);
        match outcome {
            Outcome::Held { owner, label, remaining, count, .. } => {
                self.state = "held";
                self.owner = Some(owner.to_string());
                self.label = label.as_deref().map(str::to_owned);
                self.holds = Some(*count);
                self.remaining_ms = remaining.map(whole_ms);
            }
            Outcome::Absent => self.state = "free",
            other => {
                self.state = match other {
                    Outcome::Refused { .. } => "refused",
                    Outcome::Unreachable(_) => "unreachable",
                    _ => "unknown",
                };
                self.detail = Some(other.to_string());
            }
        }
    }
}

fn latency_ms(vote: &Vote) -> f64 {
    (vote.latency.as_secs_f64() * 1e6).round() / 1e3
}

/// What a holder has left.
fn remaining(ms: Option<u64>) -> String {
    ms.map_or_else(|| "never expires".to_owned(), in_seconds)
}

fn in_seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
