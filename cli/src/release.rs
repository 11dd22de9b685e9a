//! `quorate release`: break a stuck lock.

use quorate::{Error, Inspection, Lock, LockKind, Part, Redlock};
use quorate_cli::out;

use crate::args::ReleaseArgs;
use crate::exit::{self, Code, Failure};
use crate::quarantine::{Quarantine, seconds};
use crate::say::say;

pub(crate) async fn release(args: ReleaseArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let seen = redlock.inspect(&*args.name).await?;
    let taken = lock_of(&redlock, &seen, &args.owner.to_string()).force_release(&args.owner).await;
    if let (Err(Error::NoQuorum { .. }), Some(quarantine)) = (&taken, Quarantine::keeps(&redlock)) {
        say(format_args!("try again in {}: {quarantine}", seconds(quarantine.left)));
    }
    taken?;
    out!("{:?} was taken away from {}", args.name, args.owner);
    Ok(exit::OK)
}

/// The lock that the masters have under the name; of a read-write lock the half that this owner
/// has.
fn lock_of(redlock: &Redlock, seen: &Inspection, owner: &str) -> Lock {
    let name = seen.name();
    match seen.kind() {
        Some(LockKind::Mutex) => redlock.mutex(name),
        Some(LockKind::Fair) => redlock.fair_lock(name),
        Some(LockKind::Semaphore { permits }) => redlock.semaphore(name, permits),
        Some(LockKind::ReadWrite) => {
            let reads =
                seen.held().iter().any(|held| held.part == Part::Read && *held.holder.owner == *owner);
            if reads { redlock.read_lock(name) } else { redlock.write_lock(name) }
        }
        _ => redlock.lock(name),
    }
}
