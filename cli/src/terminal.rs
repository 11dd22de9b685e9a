//! Lends the terminal to a job: only the foreground process group may read it, and gets the
//! keyboard's signals.

use std::io::{IsTerminal, stdin};

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
        tcsetpgrp(stdin(), group).ok()?;
        let _ = killpg(group, Signal::SIGCONT); // it may have asked for the terminal before it had it, and been stopped
        Some(Self(()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tcsetpgrp(stdin(), getpgrp()); // the terminal may be gone
    }
}

/// While a job has the terminal we are in the background, where SIGTTOU would stop us for taking it
/// back, or for a message (`stty tostop`). Blocks it for this thread and those that it starts; a
/// child begins without that.
pub(crate) fn never_stop_for_it() {
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    let _ = stop.thread_block(); // it fails for a wrong argument only
}

/// Whether this child was stopped since it was last asked.
pub(crate) fn is_stopped(child: Pid) -> bool {
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
    matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::Stopped(..)))
}
