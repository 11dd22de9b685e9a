//! `quorate init`: begins a set of masters, or completes one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate::{Init, MasterStatus, Redlock, SetError};
use quorate_cli::out;

use crate::args::InitArgs;
use crate::ask;
use crate::exit::{self, Code, Failure};
use crate::say::say;
use crate::signals;
use crate::words::quoted;

/// When to say for the first time what is waited for.
pub(crate) const FIRST: Duration = Duration::from_secs(1);

/// How long to do nothing between two looks at a set.
const AGAIN: Duration = Duration::from_secs(5);

pub(crate) async fn init(args: InitArgs) -> Result<Code, Failure> {
    if args.watch {
        signals::until_ended(watch(&args)).await?;
        return Ok(exit::OK);
    }
    let are_given = args.masters.are_given();
    let mut options = args.masters.options()?;
    let redlock = args.masters.builder()?.wait(args.wait).build()?;
    if are_given {
        // Without passwords.
        options.extend(masters(&redlock).into_iter().flat_map(|url| ["--master".to_owned(), url]));
    }
    let mut how = Init::new().on_progress(waiting_for);
    let never_used = match args.never_used.as_deref() {
        Some("") => Some(ask(&redlock, &options).await?),
        given => given.map(Arc::from),
    };
    if let Some(fingerprint) = &never_used {
        how = how.never_used(fingerprint);
    }
    signals::unless_ended(redlock.init(how)).await?;
    let count = masters(&redlock).len();
    if never_used.is_some() {
        out!("the set of {count} masters has begun: no client ever used them, so they vote at once");
    } else {
        out!("{}", outcome(&redlock));
    }
    Ok(exit::OK)
}

/// Begins the set whenever at least half of its masters lost their records, and says when the
/// outcome changes. Returns what another try does not mend.
async fn watch(args: &InitArgs) -> Failure {
    let mut before = String::new();
    loop {
        let outcome = match try_once(args).await {
            Ok(outcome) => outcome,
            Err(failure) => return failure,
        };
        if outcome != before {
            out!("{outcome}");
            before = outcome;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// With a client of its own, which knows nothing of before.
async fn try_once(args: &InitArgs) -> Result<String, Failure> {
    let redlock = args.masters.clone().builder()?.wait(args.wait).build()?;
    match redlock.init(Init::new().on_progress(waiting_for)).await {
        Ok(()) => Ok(outcome(&redlock)),
        Err(SetError::NotBegun { why, permanent: false, .. }) => Ok(format!("waits: {why}")),
        Err(error) => Err(error.into()),
    }
}

/// What to say of a set that goes on: it does so without a master that does not answer.
fn outcome(redlock: &Redlock) -> String {
    let masters = redlock.master_status();
    let is_away = |status: &&MasterStatus| {
        status.reachable == Some(false) && status.unchanged_for >= Some(FIRST) // not one that connects
    };
    let away: Vec<&str> = masters.iter().filter(is_away).map(|status| &*status.master).collect();
    match &away[..] {
        [] => format!("the set of {} masters is complete", masters.len()),
        _ => format!("the set of {} masters has begun; no answer from {}", masters.len(), away.join(", ")),
    }
}

/// Their URLs, without users and passwords.
fn masters(redlock: &Redlock) -> Vec<String> {
    redlock.master_status().iter().map(|status| status.master.to_string()).collect()
}

/// Says what an operation on the set waits for.
pub(crate) fn waiting_for(what: &str, left: Duration) {
    say(format_args!("waiting for {what}: {:.1} s yet at most", left.as_secs_f64()));
}

/// The fingerprint of the masters, once a person at a terminal has said that no client ever used
/// them. Elsewhere it is refused, with a command that has these options.
async fn ask(redlock: &Redlock, options: &[String]) -> Result<Arc<str>, Failure> {
    let mut fingerprint = pin!(redlock.fingerprint());
    let fingerprint = match tokio::time::timeout(FIRST, &mut fingerprint).await {
        Ok(known) => known?,
        Err(_) => {
            say("waiting for all masters to answer");
            fingerprint.await?
        }
    };
    let masters = masters(redlock).join(", ");
    let question =
        format!("{masters}\nHas no client ever used these masters? If one did, two may hold a lock.");
    match ask::is_confirmed(&question) {
        Some(true) => Ok(fingerprint),
        Some(false) => Err(Failure::new(
            exit::REFUSED,
            "nothing was begun; for masters that may have been used: quorate init",
        )),
        None => {
            let options: String = options.iter().map(|option| format!(" {}", quoted(option))).collect();
            Err(Failure::new(
                exit::REFUSED,
                format!(
                    "only a person can say that no client ever used {masters}: two may hold a lock if one did. If \
                     none did: quorate init --never-used={fingerprint}{options}"
                ),
            ))
        }
    }
}
