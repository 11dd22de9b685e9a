//! Whether guards have a fencing token: a lock's type says so.

/// The guards of such a lock have a [fencing token](crate::Guard::fencing_token): all but those of
/// a [`plain_mutex`](crate::Redlock::plain_mutex) and a
/// [`redisson_lock`](crate::Redlock::redisson_lock). It is what [`Lock`](crate::Lock) and
/// [`Guard`](crate::Guard) mean where they say nothing else.
#[derive(Clone, Copy, Debug)]
pub enum Fenced {}

/// The guards of such a lock may have no fencing token, for the layout of another library has no
/// place for one: their [`fencing_token_if_any`](crate::Guard::fencing_token_if_any) is in place of
/// [`fencing_token`](crate::Guard::fencing_token).
///
/// A lock of any kind can be made one of this type, for code that takes locks of all kinds.
///
/// # Examples
///
/// ```
/// # quorate_testkit::doc(|masters| async move {
/// use quorate::{Lock, Unfenced};
/// let redlock = quorate::Redlock::builder().masters(masters).build()?;
/// let locks: [Lock<Unfenced>; 2] = [redlock.lock("invoice:42").into(), redlock.plain_mutex("invoice:42")];
/// for lock in locks {
///     lock.acquire().await?.release().await?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) });
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Unfenced {}
