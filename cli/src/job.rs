//! The child process, in a process group of its own, and what signals do to all of it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use quorate::{Guard, env, fence};
use tokio::process::{Child, Command};

use crate::exit::{self, Code, Failure};
use crate::say::say;
use crate::terminal::Terminal;

/// The variable with the number of a job's permit.
const PERMIT: &str = "QUORATE_PERMIT";

/// The answer to SIGTSTP.
const NO_SUSPENSION: &str = "a job that holds a lock cannot be suspended; it goes on";

/// A running job.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    group: Pid,
    terminal: Option<Terminal>,
    /// It has ended, or was left to itself after it could not be killed.
    over: bool,
}

impl Job {
    /// Starts the command. It gets the terminal, if there is one and we have it.
    pub(crate) fn start(command: &[OsString], guard: &Guard) -> Result<Self, Failure> {
        let (program, args) = command.split_first().expect("the command line has a command");
        let permit = guard.permit().map(|number| (PERMIT, number.to_string()));
        let child = Command::new(program)
            .args(args)
            .env_remove(PERMIT) // of a job that this one is part of
            .envs(permit)
            .env("QUORATE_LOCK", guard.name())
            .env(env::OWNER, guard.owner().to_string())
            .env(fence::VARIABLE, guard.fencing_token().to_string())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let code = match error.kind() {
                    io::ErrorKind::NotFound => exit::NOT_FOUND,
                    _ => exit::CANNOT_EXECUTE,
                };
                Failure::new(code, format!("{}: {error}", program.to_string_lossy()))
            })?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).expect("it was not waited for yet");
        let group = Pid::from_raw(id);
        Ok(Self { child, group, terminal: Terminal::lend_to(group), over: false })
    }

    /// Waits for the end of its first process. May be dropped and called again.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// How its first process ended, if it has.
    pub(crate) fn try_ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The job is no longer looked after.
    pub(crate) fn let_go(&mut self) {
        self.over = true;
    }

    /// Passes a signal on to every process of the job. There may be none left.
    pub(crate) fn signal(&self, signal: Signal) {
        if signal == Signal::SIGTSTP {
            say(NO_SUSPENSION);
        } else if killpg(self.group, signal) == Err(Errno::EPERM) {
            say(format_args!("this user may not send {signal} to the job"));
        }
    }

    /// Whether any process of the job is left. To be asked when its first one has ended.
    pub(crate) fn is_alive(&self) -> bool {
        // Where orphans come to us, as to the first process of a container, nobody else buries
        // them.
        while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
            waitpid(Pid::from_raw(-self.group.as_raw()), Some(WaitPidFlag::WNOHANG))
        {}
        // Each look counts only together with another: a process may fork and end meanwhile.
        killpg(self.group, None) != Err(Errno::ESRCH) && !(0..2).all(|_| has_only_zombies(self.group))
    }

    /// A job that was stopped from the keyboard would keep the terminal, and the lock: it goes on.
    pub(crate) fn go_on_if_stopped(&self) {
        if self.terminal.is_some() && crate::terminal::is_stopped(self.group) {
            say(NO_SUSPENSION);
            self.signal(Signal::SIGCONT);
        }
    }
}

/// Whether all processes of this group have ended, and wait for their parent to reap them: process
/// 1 of a container may never do that. Signals can be sent to them until then. False if it cannot
/// be seen.
fn has_only_zombies(group: Pid) -> bool {
    let me = std::process::id().to_string();
    let is_ours = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == &*me);
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let mut are_zombies =
        processes.flatten().filter_map(|process| is_zombie_of(group, &process.path())).peekable();
    is_ours && are_zombies.peek().is_some() && are_zombies.all(|is_zombie| is_zombie)
}

/// Whether the process in this folder of /proc has ended, with all its threads; `None` if it is
/// not in the group.
fn is_zombie_of(group: Pid, process: &Path) -> Option<bool> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let its_group = fields.nth(1)?;
    let has_threads = || fs::read_dir(process.join("task")).is_ok_and(|threads| threads.count() > 1);
    (its_group == group.to_string()).then(|| matches!(state, "Z" | "X") && !has_threads())
}

/// Also after an error: the lock is released next, so the job must not go on.
impl Drop for Job {
    fn drop(&mut self) {
        if !self.over {
            self.signal(Signal::SIGKILL);
        }
    }
}

/// The exit code of a job, as a shell would give it.
pub(crate) fn code(status: ExitStatus) -> Code {
    match (status.code(), status.signal()) {
        (Some(code), _) => Code(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => exit::by_signal(signal),
        (None, None) => exit::FAILED,
    }
}
