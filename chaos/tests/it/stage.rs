//! Stages whose client processes are this test binary.

use std::process::{Command, Stdio};
use std::time::Duration;

use quorate_chaos::run::{Job, Role, Setting, Stage};
use quorate_chaos::workload::Subject;
use quorate_chaos::{Arena, ClientSetup, Persistence};

/// This is what the processes of the other tests run, and otherwise nothing.
#[test]
fn a_client_works() {
    if let Some(job) = Job::of_this_process() {
        job.run().unwrap();
    }
}

pub(crate) fn client() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "stage::a_client_works", "--nocapture"]).stdout(Stdio::null());
    command
}

/// New masters, and clients that decide by themselves.
pub(crate) fn setting(subject: Subject, ttl: Duration) -> Setting {
    Setting {
        subject,
        ttl,
        new_masters: true,
        clients: ClientSetup::Usual,
        seed: 1,
        role: Role::Works,
        client,
        run: None,
        history: None,
    }
}

/// Masters that persist always, and clients, in these numbers.
pub(crate) fn set(masters: usize, clients: usize, setting: Setting) -> Stage {
    Stage::set(Arena::start(masters, clients, Persistence::Always, setting.seed), setting)
}
