//! Masters in the containers of a compose file, in place of processes.

use std::path::Path;

use quorate_chaos::Arena;
use quorate_chaos::run::Trial;
use quorate_cli::exit::{self, Failure};

use super::args::check_masters;

/// Whether the file is there.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    let why = match file.metadata() {
        Ok(it) if it.is_dir() => "it is a folder".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(Failure::of_file(exit::USAGE, "--compose", file, why))
}

/// Starts them. The run is about as many as there are then.
pub(super) fn start(file: &Path, trial: &mut Trial) -> Result<Arena, Failure> {
    let arena = Arena::of_containers(file, trial.clients, trial.seed)
        .map_err(|error| Failure::new(exit::FAILED, format!("--compose: {error}")))?;
    trial.masters = arena.masters.len();
    check_masters(&format!("--compose {}: services", file.display()), trial.masters)?;
    Ok(arena)
}
