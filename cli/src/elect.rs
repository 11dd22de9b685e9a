//! `quorate elect`: runs a job on the leader, or shows who leads.

use std::time::Duration;

use futures::stream::Stream;
use nix::sys::signal::Signal;
use quorate::fence::FencingToken;
use quorate::{Election, Error, Leadership, Observed, Redlock};
use serde::Serialize;

use crate::args::{ElectArgs, LeaseArgs};
use crate::exit::{self, Code, Failure};
use crate::job;
use crate::lease_plan::LeasePlan;
use crate::quarantine::{Quarantine, seconds};
use crate::run::{self, Ended};
use crate::say::{self, out, say};

pub(crate) async fn elect(args: ElectArgs) -> Result<Code, Failure> {
    let mut signals = job::signals().map_err(run::no_signals)?;
    if args.observe {
        return observe(args, &mut signals).await;
    }
    let LeaseArgs { grace, lock_delay, .. } = args.lease;
    let ttl = args.lease.ttl(&args.masters)?;
    let label = args.lease.label(&args.command);
    let plan = LeasePlan::new(ttl, grace)?;
    let redlock = args.masters.client()?;
    let mut election = redlock.election(args.name).ttl(ttl).lock_delay(lock_delay).label(label);
    if let Some(wait) = args.wait {
        election = election.wait(wait);
    }
    let ended = lead(&redlock, &election, args.wait, &plan, &args.command, &mut signals).await;
    redlock.shutdown(run::FLUSH).await; // a master that is dead never hears of it
    ended
}

/// Runs the command whenever this process leads, until it ends by itself.
async fn lead(
    redlock: &Redlock,
    election: &Election,
    wait: Option<Duration>,
    plan: &LeasePlan,
    command: &[std::ffi::OsString],
    signals: &mut (impl Stream<Item = Signal> + Unpin),
) -> Result<Code, Failure> {
    loop {
        let leadership = run::unless_ended(signals, campaign(redlock, election, wait)).await?;
        match run::under(leadership.into_guard(), redlock, plan, command, signals).await? {
            Ended::ByItself(code) => return Ok(code),
            Ended::Stopped { why, asked: Some(signal) } => {
                return Err(Failure::new(
                    job::code_of(signal),
                    format!("{signal}, and the job was ended: {why}"),
                ));
            }
            Ended::Stopped { why, asked: None } => {
                say(format_args!("the job was ended: {why}; campaigning again"));
            }
        }
    }
}

/// Campaigns, and says who leads if it has to wait.
async fn campaign(
    redlock: &Redlock,
    election: &Election,
    wait: Option<Duration>,
) -> Result<Leadership, Error> {
    let error = match election.clone().wait(Duration::ZERO).campaign().await {
        Err(error @ (Error::Held { .. } | Error::NoQuorum { .. })) => error,
        elected => return elected,
    };
    let within =
        wait.map_or(String::new(), |wait| format!(" for up to {}", humantime::format_duration(wait)));
    match (&error, Quarantine::keeps(redlock)) {
        _ if wait.is_some_and(|wait| wait.is_zero()) => return Err(error),
        (Error::NoQuorum { .. }, Some(quarantine)) => {
            say(format_args!("waiting to lead{within}: {}", no_quorum_for(quarantine)));
        }
        (Error::Held { name, holder, .. }, _) => {
            say(format_args!("waiting to lead{within}: {name:?} is {holder}"));
        }
        _ => say(format_args!("waiting to lead{within}: {}", exit::message_of(&error))),
    }
    election.campaign().await
}

fn no_quorum_for(quarantine: Quarantine) -> String {
    format!("no quorum for {} more: {quarantine}", seconds(quarantine.left))
}

/// What is observed, for programs. docs/COMMAND.md describes it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    /// `led`, `nobody` or `unknown`.
    state: &'static str,
    owner: Option<&'a str>,
    term: Option<u64>,
}

/// Prints who leads, a line each change, until a signal comes or nobody reads it any more.
async fn observe(
    args: ElectArgs,
    signals: &mut (impl Stream<Item = Signal> + Unpin),
) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let mut observer = redlock.election(args.name.as_str()).look_every(args.every).observe()?;
    while !say::is_output_unread() {
        let seen = tokio::select! {
            seen = observer.changed() => seen?,
            signal = run::fatal(signals) => return Ok(job::code_of(signal)),
        };
        if args.json {
            let line = serde_json::to_string(&Line::new(&args.name, &seen))
                .map_err(|error| Failure::new(exit::FAILED, error.to_string()))?;
            out!("{line}");
        } else {
            out!("{seen}");
        }
        if seen == Observed::Unknown {
            say_why_unknown(&redlock, &args.name).await?;
        }
    }
    Ok(exit::OK)
}

/// Says why it is not known who leads, where that is known.
async fn say_why_unknown(redlock: &Redlock, name: &str) -> Result<(), Failure> {
    if let Some(quarantine) = Quarantine::keeps(redlock) {
        say(no_quorum_for(quarantine));
        return Ok(());
    }
    let seen = redlock.inspect(name).await?;
    if exit::is_without_set(seen.votes()) {
        return Err(Failure::new(exit::REFUSED, exit::NO_SET));
    }
    if exit::is_refused(&seen) {
        let votes: Vec<_> = seen.votes().iter().map(ToString::to_string).collect();
        return Err(Failure::new(exit::REFUSED, votes.join("; ")));
    }
    Ok(())
}

impl<'a> Line<'a> {
    fn new(name: &'a str, seen: &'a Observed) -> Self {
        let (state, leader) = match seen {
            Observed::Leader(leader) => ("led", Some(leader)),
            Observed::Nobody => ("nobody", None),
            Observed::Unknown => ("unknown", None),
        };
        let owner = leader.map(|leader| &*leader.owner);
        let term = leader.and_then(|leader| leader.term.map(FencingToken::get));
        Self { name, state, owner, term }
    }
}
