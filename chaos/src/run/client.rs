//! What a client process of a stage does: this executable is started once more for it, and finds
//! its job in its environment.

use std::io;
use std::process::{Command, exit};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::workload::lock_set::Care;
use crate::workload::patient::Leases;
use crate::workload::{Order, Workload};

/// Where a process finds its job.
const JOB: &str = "QUORATE_CHAOS_CLIENT";

/// The line that tells a process to stop.
pub(super) const STOP: &str = "stop";

/// What a process decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It works until it is stopped.
    Works,
    /// It holds leases and waits for locks until it is stopped.
    HoldsAndWaits(Leases),
    /// It asks for locks with another list of masters until it is stopped.
    Strays,
    /// It follows orders, line by line: see [`Order`].
    Obeys,
    /// It adds elements to a set until it is stopped: see [`lock_set`](crate::workload::lock_set).
    AddsToSet(Care),
}

/// What a client process is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What it decides by itself.
    pub role: Role,
    /// What it is started with.
    pub workload: Workload,
}

impl Job {
    /// What this process was started for, if a stage started it.
    pub fn of_this_process() -> Option<Self> {
        serde_json::from_str(&std::env::var(JOB).ok()?).ok()
    }

    pub(super) fn give_to(&self, command: &mut Command) {
        command.env(JOB, serde_json::to_string(self).expect("a job is plain values"));
    }

    /// Does it, until its standard input says to stop. If the input ends, so does the process,
    /// because its parent is gone.
    ///
    /// # Errors
    ///
    /// When the history cannot be written, or the masters' URLs are none.
    pub fn run(self) -> io::Result<()> {
        let stop = CancellationToken::new();
        let (order, orders) = unbounded_channel();
        let stopped = stop.clone();
        std::thread::spawn(move || {
            listen(&order);
            stopped.cancel();
        });
        let runtime = Runtime::new()?;
        match self.role {
            Role::Works => runtime.block_on(self.workload.run(stop)),
            Role::HoldsAndWaits(leases) => runtime.block_on(self.workload.hold_and_wait(leases, stop)),
            Role::Strays => runtime.block_on(self.workload.stray(stop)),
            Role::Obeys => runtime.block_on(self.workload.obey(orders)),
            Role::AddsToSet(care) => runtime.block_on(self.workload.add_to_set(care, stop)),
        }
    }
}

/// Passes orders on until it reads the one to stop.
fn listen(order: &UnboundedSender<Order>) {
    for line in io::stdin().lines() {
        match line {
            Ok(line) if line == STOP => return,
            Ok(line) => {
                let given = serde_json::from_str(&line).expect("a stage gives orders");
                let _ = order.send(given); // one that works by itself takes none
            }
            Err(_) => break,
        }
    }
    exit(1)
}
