//! Lends the terminal to a job: only the foreground process group may read it, and gets the keyboard's signals.

use std::io::{IsTerminal, stdin};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The terminal, while a job has it. Dropping this takes it back.
#[derive(Debug)]
pub(crate) struct Terminal(());

impl Terminal {
    /// Makes `group` the foreground group, if standard input is a terminal and ours is.
    pub(crate) fn lend_to(group: Pid) -> Option<Self> {
        if !stdin().is_terminal() || tcgetpgrp(stdin()) != Ok(getpgrp()) {
            return None;
        }
        give_to(group).ok()?;
        let _ = killpg(group, Signal::SIGCONT); // it may have asked for the terminal before it had it, and been stopped
        Some(Self(()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = give_to(getpgrp()); // the terminal may be gone
    }
}

/// A background group that sets the foreground group is stopped by SIGTTOU, unless it blocks it.
fn give_to(group: Pid) -> Result<(), Errno> {
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    stop.thread_block()?;
    let given = tcsetpgrp(stdin(), group);
    stop.thread_unblock()?;
    given
}

/// Whether this child was stopped since it was last asked.
pub(crate) fn is_stopped(child: Pid) -> bool {
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
    matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::Stopped(..)))
}
