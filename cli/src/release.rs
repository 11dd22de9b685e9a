//! `quorate release`: break a stuck lock.

use quorate::Error;

use crate::args::ReleaseArgs;
use crate::exit::{self, Code, Failure};
use crate::quarantine::{Quarantine, seconds};
use crate::say::{out, say};

pub(crate) async fn release(args: ReleaseArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let taken = args.kind.lock(&redlock, &args.name).break_from(&args.owner).await;
    if let (Err(Error::NoQuorum { .. }), Some(quarantine)) = (&taken, Quarantine::keeps(&redlock)) {
        say(format_args!("try again in {}: {quarantine}", seconds(quarantine.left)));
    }
    taken?;
    out!("{:?} was taken away from {}", args.name, args.owner);
    Ok(exit::OK)
}
