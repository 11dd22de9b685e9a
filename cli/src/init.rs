//! `quorate init`: begins a set of masters, or completes one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate::{Init, Redlock, SetError, Standing};

use crate::args::InitArgs;
use crate::ask;
use crate::exit::{self, Code, Failure};
use crate::job;
use crate::say::{out, say};
use crate::words::quoted;

/// When to say for the first time what it waits for, and how often from then on.
pub(crate) const FIRST: Duration = Duration::from_secs(1);
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// How long to do nothing between two looks at a set.
const AGAIN: Duration = Duration::from_secs(5);

pub(crate) async fn init(args: InitArgs) -> Result<Code, Failure> {
    if args.watch {
        job::until_ended(watch(&args)).await?;
        return Ok(exit::OK);
    }
    let are_given = args.masters.are_given();
    let mut options = args.masters.options()?;
    let redlock = args.masters.builder()?.wait(args.wait).build()?;
    if are_given {
        // Without passwords.
        options.extend(masters(&redlock).into_iter().flat_map(|url| ["--master".to_owned(), url]));
    }
    let mut how = Init::new();
    let never_used = match args.never_used.as_deref() {
        Some("") => Some(ask(&redlock, &options).await?),
        given => given.map(Arc::from),
    };
    if let Some(fingerprint) = &never_used {
        how = how.never_used(fingerprint);
    }
    let ((), waited) = job::unless_ended(telling(&redlock, redlock.init(how))).await?;
    let count = masters(&redlock).len();
    match (never_used, waited) {
        (Some(_), _) => {
            out!("the set of {count} masters has begun: no client ever used them, so they vote at once")
        }
        (None, true) => out!("the set of {count} masters is complete now"),
        (None, false) => out!("the set of {count} masters is complete"),
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
    match telling(&redlock, redlock.init(Init::new())).await {
        Ok(_) => Ok(format!("the set of {} masters is complete", masters(&redlock).len())),
        Err(SetError::NotBegun { why, permanent: false, .. }) => Ok(format!("waits: {why}")),
        Err(error) => Err(error.into()),
    }
}

/// Their URLs, without users and passwords.
fn masters(redlock: &Redlock) -> Vec<String> {
    redlock.master_status().iter().map(|status| status.master.to_string()).collect()
}

/// Waits for this, and says now and then what that waits for. Returns whether it waited for a
/// master.
async fn telling<T>(
    redlock: &Redlock,
    what: impl Future<Output = Result<T, SetError>>,
) -> Result<(T, bool), SetError> {
    let mut what = pin!(what);
    let mut waited = false;
    let mut pause = FIRST;
    loop {
        tokio::select! {
            done = &mut what => return done.map(|done| (done, waited)),
            () = tokio::time::sleep(pause) => {}
        }
        pause = EVERY;
        let status = redlock.master_status();
        let no_members = status.iter().filter(|each| !is_member(&each.standing));
        if let Some(waits) = waits_for(no_members.map(|each| (&*each.master, &each.standing))) {
            waited = true;
            say(format_args!("waiting for {waits}"));
        }
    }
}

/// Whether a master is one of the set, with a vote or without one yet.
fn is_member(standing: &Standing) -> bool {
    matches!(standing, Standing::Trusted | Standing::Quarantined { .. })
}

/// The first of these masters, which stand in the way, and how many others do; one that is not
/// reached comes before one that has no vote yet.
pub(crate) fn waits_for<'a>(in_the_way: impl Iterator<Item = (&'a str, &'a Standing)>) -> Option<String> {
    let in_the_way: Vec<_> = in_the_way
        .map(|(master, standing)| match standing {
            Standing::Unknown => (master, None),
            Standing::Refused(why) => (master, Some(why.to_string())),
            other => (master, Some(other.to_string())),
        })
        .collect();
    let (master, why) = in_the_way.iter().min_by_key(|(_, why)| why.is_some())?;
    let others = match in_the_way.len() - 1 {
        0 => String::new(),
        1 => " and another master".to_owned(),
        more => format!(" and {more} others"),
    };
    Some(format!("{master}{others}: {}", why.as_deref().unwrap_or("it is not reached")))
}

/// The fingerprint of the masters, once a person at a terminal has said that no client ever used
/// them. Elsewhere it is refused, with a command that has these options.
async fn ask(redlock: &Redlock, options: &[String]) -> Result<Arc<str>, Failure> {
    let (fingerprint, _) = telling(redlock, redlock.fingerprint()).await?;
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

#[cfg(test)]
mod tests {
    use quorate::Moment;

    use super::*;

    #[test]
    fn what_is_not_reached_is_named_before_what_has_no_vote_yet() {
        let begins = Standing::Refused("its set begins in 3.0 s".into());
        let quarantined =
            Standing::Quarantined { until: Moment::default(), left: Duration::from_millis(3_000) };
        let waits =
            |standings: &[&Standing]| waits_for(["a", "b", "c"].into_iter().zip(standings.iter().copied()));
        let unknown = Standing::Unknown;
        assert_eq!(waits(&[]), None);
        assert_eq!(waits(&[&begins]).unwrap(), "a: its set begins in 3.0 s");
        assert!(waits(&[&quarantined]).unwrap().starts_with("a: in quarantine for 3.0 s more"));
        assert_eq!(waits(&[&begins, &begins, &begins]).unwrap(), "a and 2 others: its set begins in 3.0 s");
        assert_eq!(waits(&[&begins, &unknown]).unwrap(), "b and another master: it is not reached");
        assert!(is_member(&quarantined) && is_member(&Standing::Trusted) && !is_member(&begins));
    }
}
