//! `quorate status`: who holds a lock.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use quorate::fence::FencingToken;
use quorate::{HeldPart, Inspection, LockKind, MasterStatus, Outcome, Part, Refusal, Standing, Vote};
use serde::Serialize;

use crate::args::StatusArgs;
use crate::exit::{self, Code, Failure};
use crate::quarantine::{Quarantine, seconds};
use crate::say::{self, out};

/// A name, and who has it, for programs. Durations are in milliseconds. docs/COMMAND.md describes
/// it.
#[derive(Debug, Serialize)]
pub(crate) struct Name {
    pub(crate) name: String,
    /// `lock`, `mutex`, `fair`, `read-write` or `semaphore`; `null` where the masters know of none.
    pub(crate) kind: Option<&'static str>,
    /// How many there are, of a semaphore.
    permits: Option<u32>,
    /// The holders of it or of parts of it, by the majority; the one that has had it for longest
    /// comes first.
    pub(crate) held: Vec<Held>,
    /// How many processes wait.
    pub(crate) waiting: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Held {
    owner: String,
    /// What its client calls it.
    label: Option<String>,
    /// Whether it has the right to read only.
    reads: bool,
    /// Which permit it has, of a semaphore.
    permit: Option<u32>,
    fence: Option<u64>,
    masters: usize,
    /// For how long it has had the lock.
    held_ms: Option<u64>,
    /// `null` when the lock never expires.
    remaining_ms: Option<u64>,
}

/// The status, for programs. docs/COMMAND.md describes it.
#[derive(Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    name: Name,
    /// `free`, when a majority knows it, or one of its permits, to be free; `held`, when a majority
    /// names a holder; `split`, when a majority answered and neither is true; `no_lock`, when a
    /// majority has something else at its key; `unknown`, when too few answered.
    state: &'static str,
    /// How many permits are free; of another lock, 1 where it is.
    free: usize,
    quorum: usize,
    /// How many masters answered.
    answered: usize,
    /// For how long no quorum has a vote, because masters may have forgotten what they granted;
    /// `null` where one has.
    quarantine_ms: Option<u64>,
    masters: Vec<ShownMaster>,
}

#[derive(Debug, Serialize)]
struct ShownMaster {
    master: String,
    /// free, held, refused, unreachable or unknown.
    state: &'static str,
    /// Who has had it for longest there.
    owner: Option<String>,
    label: Option<String>,
    /// How often the owner entered.
    holds: Option<u64>,
    remaining_ms: Option<u64>,
    /// Whether it may vote: `trusted`, `quarantined`, `refused`, or `unknown` where it was not
    /// reached.
    standing: &'static str,
    /// For how long it has no vote, if it is in quarantine.
    quarantine_ms: Option<u64>,
    /// Why the master did not answer as asked.
    detail: Option<String>,
    latency_ms: f64,
}

pub(crate) async fn status(args: StatusArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let seen = redlock.inspect(args.name).await?;
    let quarantine = Quarantine::keeps(&redlock);
    let is_without_set = exit::is_without_set(seen.votes());
    let is_refused = is_without_set || exit::is_refused(&seen);
    let status = Status::new(&seen, &redlock.master_status(), quarantine);
    if args.json {
        say::json(&status)?;
    } else {
        if let Some("read-write" | "semaphore") = status.name.kind {
            out!("{}", Held::table(&status.name.held));
        }
        let waiting = match status.name.waiting {
            0 => String::new(),
            waiting => format!("; {waiting} waiting"),
        };
        out!("{}\n{}{waiting}", status.table(), status.summary());
        if let Some(quarantine) = quarantine {
            out!("Nobody can get it for {}: {quarantine}", seconds(quarantine.left));
        }
        if is_without_set {
            out!("{}", exit::NO_SET);
        }
    }
    Ok(match status.state {
        "unknown" if is_refused => exit::REFUSED,
        "unknown" => exit::NO_QUORUM,
        "no_lock" => exit::USAGE,
        _ => exit::OK,
    })
}

impl Name {
    pub(crate) fn new(seen: &Inspection) -> Self {
        Self {
            name: seen.name().to_owned(),
            kind: seen.kind().map(|kind| match kind {
                LockKind::Lock => "lock",
                LockKind::Mutex => "mutex",
                LockKind::Fair => "fair",
                LockKind::ReadWrite => "read-write",
                LockKind::Semaphore { .. } => "semaphore",
                _ => "other",
            }),
            permits: match seen.kind() {
                Some(LockKind::Semaphore { permits }) => Some(permits),
                _ => None,
            },
            held: seen.held().iter().map(Held::new).collect(),
            waiting: seen.waiting(),
        }
    }

    /// It, and how it is held.
    fn summary(&self, free: usize) -> String {
        let Self { name, held, .. } = self;
        match (self.permits, &held[..]) {
            (Some(permits), _) if free == 0 && held.len() == permits as usize => {
                format!("semaphore {name:?}: all of {permits} permits are held")
            }
            (Some(permits), _) if free == 0 => {
                format!("semaphore {name:?}: none of {permits} permits is free, and some are held by nobody")
            }
            (Some(permits), _) => format!("semaphore {name:?}: {free} of {permits} permits are free"),
            (None, []) => format!("{name:?} is free"),
            (None, [one]) => format!("{name:?} is {one}"),
            (None, [first, others @ ..]) => format!("{name:?} is {first}, and by {} more", others.len()),
        }
    }
}

impl Status {
    fn new(seen: &Inspection, standings: &[MasterStatus], quarantine: Option<Quarantine>) -> Self {
        Self {
            name: Name::new(seen),
            state: match seen {
                seen if seen.answered() < seen.quorum() => "unknown",
                seen if seen.is_free() => "free",
                seen if !seen.held().is_empty() => "held",
                seen if no_lock(seen.votes()) >= seen.quorum() => "no_lock",
                _ => "split",
            },
            free: seen.free(),
            quorum: seen.quorum(),
            answered: seen.answered(),
            quarantine_ms: quarantine.map(|quarantine| whole_ms(quarantine.left)),
            masters: seen.votes().iter().map(|vote| ShownMaster::new(vote, standings)).collect(),
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
        let Self { name, state, quorum, answered, masters, .. } = self;
        let all = masters.len();
        let quoted = &name.name;
        match *state {
            "unknown" => {
                let refused = masters.iter().filter(|master| master.state == "refused").count();
                let but = if refused > 0 { format!(", {refused} refused") } else { String::new() };
                format!(
                    "{quoted:?}: no quorum, only {answered} of {all} masters answered{but}, and {quorum} are needed"
                )
            }
            "no_lock" => format!("{quoted:?} is no lock: something else has its key"),
            "split" if name.permits.is_none() => {
                format!("{quoted:?} is held by nobody: no owner has a majority of {quorum} of {all} masters")
            }
            _ => name.summary(self.free),
        }
    }
}

impl Held {
    fn new(held: &HeldPart) -> Self {
        let holder = &held.holder;
        Self {
            owner: holder.owner.to_string(),
            label: holder.label.as_deref().map(str::to_owned),
            reads: held.part == Part::Read,
            permit: match held.part {
                Part::Permit(number) => Some(number),
                _ => None,
            },
            fence: held.fencing_token.map(FencingToken::get),
            masters: holder.masters,
            held_ms: holder.held_for.map(whole_ms),
            remaining_ms: holder.remaining.map(whole_ms),
        }
    }

    fn table(held: &[Self]) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["PART", "HOLDER", "MASTERS", "HELD FOR", "REMAINING"]);
        for part in held {
            table.add_row([
                match part.permit {
                    Some(number) => format!("permit {number}"),
                    None => if part.reads { "read" } else { "write" }.to_owned(),
                },
                part.who(),
                part.masters.to_string(),
                part.held_for(),
                part.remaining(),
            ]);
        }
        table
    }

    /// The owner, and its label.
    pub(crate) fn who(&self) -> String {
        match &self.label {
            Some(label) => format!("{} ({label})", self.owner),
            None => self.owner.clone(),
        }
    }

    pub(crate) fn held_for(&self) -> String {
        self.held_ms.map_or_else(dash, in_seconds)
    }

    /// What it has left.
    pub(crate) fn remaining(&self) -> String {
        remaining(self.remaining_ms)
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = if self.reads { "read" } else { "held" };
        write!(f, "{verb} by {} on {} masters", self.who(), self.masters)?;
        if let Some(ms) = self.held_ms {
            write!(f, ", for {} so far", in_seconds(ms))?;
        }
        match self.remaining_ms {
            Some(ms) => write!(f, ", for at most {} more", in_seconds(ms)),
            None => f.write_str(", and never expires"),
        }
    }
}

impl ShownMaster {
    /// Its vote, with its standing among these.
    fn new(vote: &Vote, standings: &[MasterStatus]) -> Self {
        let status = standings.iter().find(|status| status.master == vote.master);
        let (standing, quarantine) = match status.map(|status| &status.standing) {
            Some(Standing::Trusted) => ("trusted", None),
            Some(Standing::Quarantined { left, .. }) => ("quarantined", Some(*left)),
            Some(Standing::Refused(_)) => ("refused", None),
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
            latency_ms: (vote.latency.as_secs_f64() * 1e6).round() / 1e3,
        };
        match &vote.outcome {
            Outcome::Held { owner, label, remaining, count, .. } => {
                master.state = "held";
                master.owner = Some(owner.to_string());
                master.label = label.as_deref().map(str::to_owned);
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

/// How many masters have something else at its key.
fn no_lock(votes: &[Vote]) -> usize {
    let says_so = |vote: &&Vote| matches!(vote.outcome, Outcome::Refused { reason: Refusal::WrongType, .. });
    votes.iter().filter(says_so).count()
}

pub(crate) fn dash() -> String {
    "-".to_owned()
}

fn remaining(ms: Option<u64>) -> String {
    ms.map_or_else(|| "never expires".to_owned(), in_seconds)
}

fn in_seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
