//! What the command's exit codes mean. They follow sysexits.h where it has a word for it, and stay
//! clear of what shells use for a command that was not found (127), not executable (126) or killed
//! by a signal (128 and above).

use std::fmt;
use std::path::Path;

use quorate::{Error, ErrorKind, Inspection, Outcome, Refusal, SetError, Vote, env};

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u8);

/// It was done.
pub const OK: Code = Code(0);
/// The command line is wrong, a value is outside its limits, or others use another kind of lock, or
/// number of permits, for the same name.
pub const USAGE: Code = Code(64);
/// Too few masters can vote.
pub const NO_QUORUM: Code = Code(69);
/// Something else failed.
pub const FAILED: Code = Code(70);
/// Another owner has the lock.
pub const HELD: Code = Code(75);
/// The lease was lost before the job had ended; the job was ended if it still ran.
pub const LOST: Code = Code(76);
/// The named owner does not have the lock.
pub const NOT_HELD: Code = Code(77);
/// Something is wrong with a master, but a quorum can vote.
pub const UNWELL: Code = Code(78);
/// So many masters refuse this client for good that the rest are no quorum, or they are no set that
/// it can be a client of: do not try again before that is mended.
pub const REFUSED: Code = Code(81);
/// The job cannot be executed.
pub const CANNOT_EXECUTE: Code = Code(126);
/// There is no such job.
pub const NOT_FOUND: Code = Code(127);

/// What is wrong where no set was begun.
pub const NO_SET: &str = "these masters are no set yet: quorate init begins one";

/// What a shell reports for a process that a signal ended.
pub fn by_signal(signal: i32) -> Code {
    Code(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

impl From<Code> for std::process::ExitCode {
    fn from(Code(code): Code) -> Self {
        code.into()
    }
}

/// A message for standard error, and the code to end with.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub code: Code,
    /// The message.
    pub message: String,
}

impl Failure {
    /// A failure with this code and message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What is wrong with the file that an option names.
    pub fn of_file(code: Code, option: &str, file: &Path, why: impl fmt::Display) -> Self {
        Self::new(code, format!("{option} {}: {why}", file.display()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Held | ErrorKind::WaitTimedOut => HELD,
            ErrorKind::NoQuorum if is_without_set(error.votes()) => REFUSED,
            ErrorKind::NoQuorum => NO_QUORUM,
            ErrorKind::Refused | ErrorKind::OtherSet => REFUSED,
            ErrorKind::Lost => LOST,
            ErrorKind::NotHeld => NOT_HELD,
            ErrorKind::Invalid | ErrorKind::AnotherKind | ErrorKind::OtherPermits => USAGE,
            _ => FAILED,
        };
        Self::new(code, message_of(&error))
    }
}

impl From<SetError> for Failure {
    fn from(error: SetError) -> Self {
        let code = match &error {
            SetError::NotBegun { .. }
            | SetError::NotRecovered { .. }
            | SetError::NoFingerprint { .. }
            | SetError::NotChanged { .. } => REFUSED,
            SetError::Unfinished { .. } => NO_QUORUM,
            SetError::Invalid(_) => USAGE,
            _ => FAILED,
        };
        Self::new(code, error.to_string())
    }
}

/// Whether no set was begun: a master says so when this client has heard all of them.
pub fn is_without_set(votes: &[Vote]) -> bool {
    let says_so = |vote: &Vote| matches!(vote.outcome, Outcome::Refused { reason: Refusal::NoSet, .. });
    votes.iter().any(says_so)
}

/// Whether so many masters refuse this client for good that the rest are no quorum.
pub fn is_refused(seen: &Inspection) -> bool {
    let is_for_good =
        |vote: &&Vote| matches!(vote.outcome, Outcome::Refused { reason, .. } if reason.is_permanent());
    let refused = seen.votes().iter().filter(is_for_good).count();
    seen.votes().len() - refused < seen.quorum()
}

/// The error for an operator: if the masters are at fault, with each master's answer.
pub fn message_of(error: &Error) -> String {
    let of_job = std::env::var(env::OWNER).unwrap_or_default();
    match error.holder() {
        Some(holder) if *holder.owner == *of_job => format!("{error}: this job runs under that lock itself"),
        _ if error.is_busy() => error.to_string(),
        _ => format!("{error:#}"),
    }
}

/// The codes, for the help.
pub const HELP: &str = "\
Exit codes:
  the job's own (run, elect); 128 + N when signal N ended it, or ended the wait for the lock, an
       observer, or a bench
    0  init: the set is complete, or only a minority of it does not answer; members: the masters are one set;
       elect --observe: its output was closed; status: a majority answered, held or not; release: it was taken away;
       bench: it was measured; doctor: all is well
   64  wrong usage, a value outside its limits, or a name that is held as another kind of lock, or with another
       number of permits (run, elect, status, release)
   69  no quorum: too few masters can vote. members: too few answer to finish a change; run it again
   70  another failure
   75  another owner had the lock until the wait ended (run, elect)
   76  the lease was lost before the job had ended; the job was ended if it still ran (run). With elect only if it
       had ended by itself by then, or could not be ended
   77  that owner does not have the lock (release)
   78  something is wrong with the masters, but a quorum of them can vote (doctor); a master has no vote yet (members
       --wait)
   81  the masters refused permanently: no set of masters was begun, they are those of another set, or have other
       terms; a wrong password or certificate, no rights, or an unsupported server. init: the set was not begun;
       members: they are no set, or not this client's, by its list and terms; or the set was not changed
  126  the job cannot be executed (run, elect)
  127  the job was not found (run, elect)

Durations are written like 500ms, 10s, 5m or 1h.";
