//! `quorate elect`: runs a job on the leader, or shows who leads.

use std::time::Duration;

use futures::stream::Stream;
use nix::sys::signal::Signal;
use quorate::{Election, Error, Leadership, Observed, Redlock};
use quorate_cli::out;
use serde::Serialize;

use crate::args::{ElectArgs, LeaseArgs};
use crate::exit::{self, Code, Failure};
use crate::lease_plan::LeasePlan;
use crate::quarantine::{Quarantine, seconds};
use crate::run::{self, Ended};
use crate::say::{self, say};
use crate::signals;

pub(crate) async fn elect(args: ElectArgs) -> Result<Code, Failure> {
    let mut signals = signals::handled().map_err(run::no_signals)?;
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
    let terms = Terms { wait: args.wait, plan, lock_delay };
    let ended = lead(&redlock, &election, &terms, &args.command, &mut signals).await;
    redlock.shutdown(run::FLUSH).await; // a master that is dead never hears of it
    ended
}

/// How to campaign, and how to lead.
struct Terms {
    wait: Option<Duration>,
    plan: LeasePlan,
    lock_delay: Duration,
}

/// Runs the command whenever this process leads, until it ends by itself.
async fn lead(
    redlock: &Redlock,
    election: &Election,
    terms: &Terms,
    command: &[std::ffi::OsString],
    signals: &mut (impl Stream<Item = Signal> + Unpin),
) -> Result<Code, Failure> {
    let Terms { wait, plan, lock_delay } = terms;
    loop {
        let leadership = run::unless_ended(signals, campaign(redlock, election, *wait)).await?;
        let guard = leadership.into_guard();
        match run::under(guard, redlock, plan, *lock_delay, command, signals).await? {
            Ended::ByItself(code) => return Ok(code),
            Ended::Stopped { why, asked: Some(signal) } => {
                return Err(Failure::new(
                    signals::code_of(signal),
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
    #[serde(flatten)]
    seen: &'a Observed,
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
            signal = run::fatal(signals) => return Ok(signals::code_of(signal)),
        };
        if args.json {
            say::json_line(&Line { name: &args.name, seen: &seen })?;
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
