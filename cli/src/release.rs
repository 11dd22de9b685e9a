//! `quorate release`: break a stuck lock.

use crate::args::ReleaseArgs;
use crate::exit::{self, Code, Failure};
use crate::say::out;

pub(crate) async fn release(args: ReleaseArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    redlock.lock(args.name.as_str()).break_from(&args.owner).await?;
    out!("{:?} was taken away from {}", args.name, args.owner);
    Ok(exit::OK)
}
