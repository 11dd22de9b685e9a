//! `quorate run`: runs a job under a lock, and ends it before the lease ends.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::Stream;
use nix::sys::signal::Signal;
use quorate::{Error, Guard, Lock, Loss, Moment, Redlock};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{LeaseArgs, RunArgs};
use crate::exit::{self, Code, Failure, message_of};
use crate::job::{self, Job};
use crate::lease_plan::{Due, LeasePlan};
use crate::quarantine::Quarantine;
use crate::say::say;
use crate::signals;

/// How long after its SIGKILL to wait for a job; after that there is nothing more to do.
const UNKILLABLE: Duration = Duration::from_secs(2);

/// How long to wait until the release reaches the remaining masters, before it is left to the TTL.
pub(crate) const FLUSH: Duration = Duration::from_millis(250);

const UNRENEWED: &str = "the lease could not be renewed";

pub(crate) async fn run(args: RunArgs) -> Result<Code, Failure> {
    let LeaseArgs { grace, lock_delay, .. } = args.lease;
    let ttl = args.lease.ttl(&args.masters)?;
    let label = args.lease.label(&args.command);
    let plan = LeasePlan::new(ttl, grace)?;
    let mut signals = signals::handled().map_err(no_signals)?;
    let redlock = args.masters.client()?;
    let wait = if args.no_wait { Duration::ZERO } else { args.wait };
    let lock = args.kind.lock(&redlock, &args.name).ttl(ttl).wait(wait).lock_delay(lock_delay).label(label);
    let acquired = unless_ended(&mut signals, acquire(&redlock, &lock, wait)).await;
    let ended = match acquired {
        Ok(guard) => under(guard, &redlock, &plan, lock_delay, &args.command, &mut signals).await,
        Err(failure) => Err(failure),
    };
    redlock.shutdown(FLUSH).await; // a master that is dead never hears of it
    match ended? {
        Ended::ByItself(code) => Ok(code),
        Ended::Stopped { why, .. } => Err(Failure::new(exit::LOST, format!("the job was ended: {why}"))),
    }
}

pub(crate) fn no_signals(error: std::io::Error) -> Failure {
    Failure::new(exit::FAILED, format!("signals: {error}"))
}

/// Acquires the lock, and says why it waits if it has to.
async fn acquire(redlock: &Redlock, lock: &Lock, wait: Duration) -> Result<Guard, Error> {
    let error = match lock.try_acquire().await {
        Err(error @ (Error::Held { .. } | Error::NoQuorum { .. })) => error,
        acquired => return acquired,
    };
    match (&error, Quarantine::keeps(redlock)) {
        (Error::NoQuorum { .. }, Some(quarantine)) => say(quarantine.advice(wait)),
        _ if wait.is_zero() => {}
        _ => say(format_args!(
            "waiting for up to {}: {}",
            humantime::format_duration(wait),
            message_of(&error)
        )),
    }
    if wait.is_zero() { Err(error) } else { lock.acquire().await }
}

/// Waits for what comes before a job, unless a signal ends that.
pub(crate) async fn unless_ended<T>(
    signals: &mut (impl Stream<Item = Signal> + Unpin),
    waiting: impl Future<Output = Result<T, Error>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = waiting => done.map_err(Failure::from),
        signal = fatal(signals) => Err(Failure::new(signals::code_of(signal), format!("{signal} while waiting"))),
    }
}

pub(crate) async fn fatal(signals: &mut (impl Stream<Item = Signal> + Unpin)) -> Signal {
    loop {
        let signal = signals::next(signals).await;
        if signals::is_fatal(signal) {
            return signal;
        }
    }
}

/// How a job ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// While it had the lock.
    ByItself(Code),
    /// It was stopped, because the lease could not be renewed.
    Stopped {
        /// How that came.
        why: String,
        /// Who sent this signal wanted the job to end anyway.
        asked: Option<Signal>,
    },
}

/// Runs the command under the lock, and releases it.
pub(crate) async fn under(
    guard: Guard,
    redlock: &Redlock,
    plan: &LeasePlan,
    lock_delay: Duration,
    command: &[std::ffi::OsString],
    signals: &mut (impl Stream<Item = Signal> + Unpin),
) -> Result<Ended, Failure> {
    let mut children = signal(SignalKind::child()).map_err(no_signals)?;
    // Declared after the guard, so that it ends before the lock is released, whatever happens.
    let mut job = Job::start(command, &guard)?;
    let deadline = guard.deadline();
    let failing = false;
    let asked = None;
    let ending = None;
    let kill_at = None;
    let killed_at = None;
    let mut watch =
        Watch { guard: &guard, redlock, plan, deadline, failing, asked, ending, kill_at, killed_at };
    let ended = watch.until_the_end(&mut job, signals, &mut children).await;
    drop(job); // kills it if it was not seen to end, and takes the terminal back
    let code = match ended? {
        Ended::ByItself(code) => code,
        stopped => {
            if !lock_delay.is_zero() {
                // A release before the lease is lost would end the delay.
                let _ = tokio::time::timeout(guard.remaining(), guard.lost()).await;
            }
            return Ok(stopped);
        }
    };
    match guard.release().await {
        Ok(()) => Ok(Ended::ByItself(code)),
        Err(Error::Lost { .. }) => {
            let why = "the lease was lost before the job ended, and another job may have run meanwhile";
            Err(Failure::new(exit::LOST, format!("{why}; the job's own code was {}", code.0)))
        }
        // The job is done, and nobody else is known to have had the lock. What is left of it ends
        // with its TTL.
        Err(error) => {
            say(message_of(&error));
            Ok(Ended::ByItself(code))
        }
    }
}

/// Supervises one job and its lease.
struct Watch<'a> {
    guard: &'a Guard,
    redlock: &'a Redlock,
    plan: &'a LeasePlan,
    /// When the lease ends, as last known: the guard of a lost lease has none.
    deadline: Moment,
    /// Whether the last renewal failed: its votes were printed then.
    failing: bool,
    /// The last signal that asked the job to end.
    asked: Option<Signal>,
    /// Why the job is being ended, once it is.
    ending: Option<String>,
    kill_at: Option<Moment>,
    /// When SIGKILL was sent for the first time.
    killed_at: Option<Moment>,
}

impl Watch<'_> {
    async fn until_the_end(
        &mut self,
        job: &mut Job,
        signals: &mut (impl Stream<Item = Signal> + Unpin),
        children: &mut tokio::signal::unix::Signal,
    ) -> Result<Ended, Failure> {
        let failed = |error: std::io::Error| Failure::new(exit::FAILED, format!("the job: {error}"));
        let mut looks = tokio::time::interval(self.plan.look());
        let mut lost = pin!(self.guard.lost().fuse());
        let mut status = None;
        loop {
            tokio::select! {
                ended = job.ended(), if status.is_none() => status = Some(ended.map_err(failed)?),
                signal = signals::next(signals) => self.pass_on(signal, job),
                loss = &mut lost => self.lost(&loss, job),
                _ = children.recv() => job.go_on_if_stopped(),
                _ = looks.tick() => {}
            }
            // If this process stood still, the time may be over before the select sees the end.
            if status.is_none() && self.killed_at.is_some() {
                status = job.try_ended().map_err(failed)?;
            }
            if let Some(status) = status
                && (self.ending.is_none() || !job.is_alive())
            {
                job.let_go();
                return Ok(self.ended(job::code(status)));
            }
            let is_past = |killed_at| self.redlock.now() >= killed_at + UNKILLABLE;
            if self.killed_at.is_some_and(is_past) {
                return Err(Failure::new(exit::LOST, "the lease was lost, and the job could not be killed"));
            }
            self.look_after(job);
        }
    }

    fn pass_on(&mut self, signal: Signal, job: &Job) {
        // A job may do with SIGHUP what it likes; one that is being ended anyway is not asked.
        if signals::is_request_to_end(signal) || (self.ending.is_some() && signals::is_fatal(signal)) {
            self.asked = Some(signal);
        }
        job.signal(signal);
    }

    /// Ends or kills the job when that is due, and reports what is wrong with the lease.
    fn look_after(&mut self, job: &Job) {
        self.deadline = self.deadline.max(self.guard.deadline());
        self.tell_of_renewal();
        if self.ending.is_none() && self.plan.due(self.guard.remaining()) != Due::Nothing {
            self.end(job, UNRENEWED);
        }
        let now = self.redlock.now();
        if self.kill_at.is_some_and(|kill_at| now >= kill_at) {
            self.killed_at.get_or_insert(now);
            job.signal(Signal::SIGKILL);
        }
    }

    /// Reports once that renewals fail, and why.
    fn tell_of_renewal(&mut self) {
        let error = self.guard.renewal_error();
        if let (Some(error), false) = (&error, self.failing) {
            let left = self.guard.remaining();
            say(format_args!("the lease was not renewed and has {left:.1?} left: {}", message_of(error)));
        }
        self.failing = error.is_some();
    }

    fn lost(&mut self, loss: &Error, job: &Job) {
        self.tell_of_renewal();
        if self.ending.is_none() {
            match loss {
                Error::Lost { cause: Loss::NotOurs, .. } => self.end(job, &message_of(loss)),
                _ => self.end(job, UNRENEWED),
            }
        }
    }

    /// Asks the job to end, and sets when it is killed: early enough to be gone when the lease
    /// ends.
    fn end(&mut self, job: &Job, why: &str) {
        self.ending = Some(why.to_owned());
        let kill_at = self.deadline - self.plan.margin;
        self.kill_at = Some(kill_at.min(self.redlock.now() + self.plan.grace));
        job.signal(Signal::SIGTERM);
        job.signal(Signal::SIGCONT); // a stopped process does not hear it otherwise
        say(format_args!("{why}; ending the job"));
    }

    fn ended(&mut self, code: Code) -> Ended {
        match self.ending.take() {
            None => Ended::ByItself(code),
            Some(why) => Ended::Stopped { why, asked: self.asked },
        }
    }
}
