//! The child process, in a process group of its own, and signals to all of it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use futures::stream::{SelectAll, Stream, StreamExt};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{self, Code, Failure};
use crate::terminal::Terminal;

/// The signals that are passed on to the job.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// Every signal that arrives and is to be passed on.
pub(crate) fn signals() -> io::Result<SelectAll<impl Stream<Item = Signal> + Unpin>> {
    PASSED_ON
        .into_iter()
        .map(|number| {
            let mut arrivals = signal(SignalKind::from_raw(number as i32))?;
            Ok(futures::stream::poll_fn(move |context| {
                arrivals.poll_recv(context).map(|some| some.map(|()| number))
            }))
        })
        .collect::<io::Result<Vec<_>>>()
        .map(futures::stream::select_all)
}

/// Whether a signal that arrives while there is no job yet ends this process.
pub(crate) fn is_fatal(signal: Signal) -> bool {
    !matches!(signal, Signal::SIGWINCH)
}

/// A running job.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    group: Pid,
    terminal: Option<Terminal>,
}

impl Job {
    /// Starts the command. It gets the terminal, if there is one and we have it.
    pub(crate) fn start(command: &[OsString], lock: &str, owner: &str) -> Result<Self, Failure> {
        let (program, args) = command.split_first().expect("the command line has a command");
        let child = Command::new(program)
            .args(args)
            .env("QUORATE_LOCK", lock)
            .env("QUORATE_OWNER", owner)
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
        Ok(Self { child, group, terminal: Terminal::lend_to(group) })
    }

    /// Waits for its end. May be dropped and called again.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to every process of the job. There may be none left.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = killpg(self.group, signal);
    }

    /// Whether any process of the job is left, its first one or a later one.
    pub(crate) fn is_alive(&self) -> bool {
        killpg(self.group, None).is_ok()
    }

    /// A job that was stopped from the keyboard would keep the terminal, and the lock: it goes on.
    pub(crate) fn go_on_if_stopped(&self) {
        if self.terminal.is_some() && crate::terminal::is_stopped(self.group) {
            eprintln!("quorate: a job that holds a lock cannot be suspended; it goes on");
            self.signal(Signal::SIGCONT);
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

/// The code for a process that ends because of a signal of its own.
pub(crate) fn code_of(signal: Signal) -> Code {
    exit::by_signal(signal as i32)
}

/// The next signal to pass on.
pub(crate) async fn next(signals: &mut (impl Stream<Item = Signal> + Unpin)) -> Signal {
    match signals.next().await {
        Some(signal) => signal,
        None => std::future::pending().await,
    }
}
