//! What a lock kind gives to the engine: the script and the words of each operation. The engine gives everything else.

use std::fmt;
use std::time::Duration;

use super::permits::Permit;
use crate::error::Invalid;
use crate::master::{Script, Words};
use crate::owner::Owner;

/// What an operation is about, in the same words for every kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    /// What keys begin with.
    pub(crate) prefix: &'a str,
    /// The lock's name.
    pub(crate) name: &'a str,
    /// Which permit it is about, if the lock is a semaphore.
    pub(crate) permit: Option<Permit>,
    pub(crate) owner: Owner,
    /// The hold count to end up with.
    pub(crate) count: u32,
    pub(crate) ttl: Duration,
    /// Rises with every round of a client; a master refuses what comes after a later round.
    pub(crate) round: u64,
    /// For an acquire, the place in the queue to take where it is refused; for a release, the place to take instead of
    /// waking others.
    pub(crate) place: Option<Place>,
    /// For an acquire, since when its caller waits, if it does. Whoever takes a place says the same there.
    pub(crate) arrival: Option<Arrival>,
    /// The ticket of the acquire before of the same waiter, whose place this one gives up.
    pub(crate) before: Option<Owner>,
    /// For a new grant the token that is proposed, for an extend the token of the grant, and for a release the token of an
    /// owner that is not asked; 0 where there is none.
    pub(crate) fence: u64,
    /// How long the lock is kept from others if the grant is never released.
    pub(crate) kept: Duration,
    /// For an acquire in strict mode, the versions of the record that were watched for long enough; otherwise empty.
    pub(crate) watched: &'a str,
    /// Whether an extend makes a key again that is gone.
    pub(crate) heals: bool,
    /// Whether a release is of a grant that came to nothing: nobody has seen its token.
    pub(crate) undoes: bool,
}

/// A waiter's place in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Whom to call: used for one acquire only. Where the owner is, too, it is the owner.
    pub(crate) ticket: Owner,
    pub(crate) arrival: Arrival,
}

/// When somebody began to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The moment, as time since 1970: the masters', as far as it is known.
    pub(crate) since: Duration,
    /// For how long that is.
    pub(crate) waited: Duration,
}

/// A lock kind. Its script answers in the words that `reply.rs` reads.
pub(crate) trait Kind: fmt::Debug + Send + Sync + 'static {
    /// What tells it from the others within a client.
    fn name(&self) -> &'static str;
    fn script(&self) -> &'static Script;
    /// Checks a name, before anything is sent.
    fn check_name(&self, name: &str) -> Result<(), Invalid>;
    /// Whether an owner may enter again.
    fn is_reentrant(&self) -> bool;
    /// Whether a named owner is the owner on the masters, too. Otherwise each of its holds has one of its own there.
    fn is_held_by_name(&self) -> bool;
    /// How often the first in the queue looks at the lock though nobody calls it, if more often than when its TTL is over; those
    /// behind it look so much more rarely.
    fn looks_every(&self) -> Option<Duration>;
    /// Whether other libraries have locks of this kind, too: the holder may be a client of theirs.
    fn is_shared(&self) -> bool;
    /// The channel on which other libraries tell of a release.
    fn channel(&self, name: &str) -> Option<String>;
    /// Whether several owners may have it at a time.
    fn admits_several(&self) -> bool;
    /// The other kind of lock under the same name, where there are two in one, and what becomes of its holder.
    fn sibling(&self) -> Option<(&'static dyn Kind, Meeting)>;
    fn acquire(&self, operation: &Operation<'_>) -> Words;
    fn extend(&self, operation: &Operation<'_>) -> Words;
    fn release(&self, operation: &Operation<'_>) -> Words;
    /// Gives the lock from the owner `from` to the operation's owner.
    fn transfer(&self, operation: &Operation<'_>, from: Owner) -> Words;
    /// Asks who holds the lock: of several holders, whether it is `asked`.
    fn inspect(&self, prefix: &str, name: &str, permit: Option<Permit>, asked: Option<Owner>) -> Words;
}

/// What becomes of an owner that has the sibling of what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// It is let in at once, as if it entered again.
    LetIn,
    /// It would wait for itself.
    WaitsForItself,
}
