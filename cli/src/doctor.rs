//! `quorate doctor`: what is wrong with the masters, and how to fix it.

use quorate::doctor::Severity;
use quorate_cli::out;

use crate::args::DoctorArgs;
use crate::exit::{self, Code, Failure};
use crate::say;

pub(crate) async fn doctor(args: DoctorArgs) -> Result<Code, Failure> {
    let report = args.masters.builder()?.examine().await?;
    if args.json {
        say::json(&report)?;
    } else {
        out!("{report}");
    }
    Ok(match report.severity() {
        _ if !report.has_quorum() => exit::NO_QUORUM,
        Severity::Ok => exit::OK,
        _ => exit::UNWELL,
    })
}
