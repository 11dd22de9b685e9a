//! The signals that this process handles.

use std::io;

use futures::stream::{SelectAll, Stream, StreamExt};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{self, Code, Failure};

/// The handled signals: passed on to the job, except SIGTSTP, because stopping us would let the
/// lease end while the job goes on.
const HANDLED: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
];

/// These end early what has no job.
const FATAL: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// Every signal that may have to be passed on to a job, when it arrives.
pub fn handled() -> io::Result<SelectAll<impl Stream<Item = Signal> + Unpin>> {
    arrivals(&HANDLED)
}

/// Each signal that ends early what has no job, when it arrives.
pub fn fatal_signals() -> Result<SelectAll<impl Stream<Item = Signal> + Unpin>, Failure> {
    arrivals(&FATAL).map_err(|error| Failure::new(exit::FAILED, format!("signals: {error}")))
}

/// Does what can be run again, unless a signal ends this process first.
pub async fn unless_ended<T>(
    what: impl Future<Output = Result<T, impl Into<Failure>>>,
) -> Result<T, Failure> {
    let mut signals = fatal_signals()?;
    tokio::select! {
        done = what => done.map_err(Into::into),
        signal = next(&mut signals) => {
            Err(Failure::new(code_of(signal), format!("ended by {signal}: run it again to go on")))
        }
    }
}

/// Does this until a signal ends this process.
pub async fn until_ended(what: impl Future<Output = Failure>) -> Result<(), Failure> {
    let mut signals = fatal_signals()?;
    tokio::select! {
        failure = what => Err(failure),
        _ = next(&mut signals) => Ok(()),
    }
}

/// Each of these signals, when it arrives.
fn arrivals(signals: &[Signal]) -> io::Result<SelectAll<impl Stream<Item = Signal> + Unpin + use<>>> {
    signals
        .iter()
        .copied()
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
pub fn is_fatal(signal: Signal) -> bool {
    !matches!(signal, Signal::SIGWINCH | Signal::SIGTSTP)
}

/// Whether its sender wants the job to end, and not to begin again.
pub fn is_request_to_end(signal: Signal) -> bool {
    matches!(signal, Signal::SIGINT | Signal::SIGQUIT | Signal::SIGTERM)
}

/// The code for a process that ends because of a signal of its own.
pub fn code_of(signal: Signal) -> Code {
    exit::by_signal(signal as i32)
}

/// The next signal to pass on.
pub async fn next(signals: &mut (impl Stream<Item = Signal> + Unpin)) -> Signal {
    match signals.next().await {
        Some(signal) => signal,
        None => std::future::pending().await,
    }
}
