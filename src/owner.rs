//! Who holds a lock.

use std::fmt;
use std::future::Future;
use std::str::FromStr;

use uuid::Uuid;

use crate::invalid::Invalid;

tokio::task_local! {
    static SCOPE: Owner;
}

/// Who holds a lock: the client's random UUID and a random number, which is used once. Its text,
/// also on the masters, is `{client uuid}:{number}`. The numbers come from the operating system, so
/// two copies of one process (a machine that was forked, or a snapshot that was restored twice)
/// make different owners. What was made before the copy, they both have.
///
/// An acquire without a named owner gets a new one, so two tasks exclude each other. A caller that
/// names the same owner re-enters: see [`Redlock::owner`](crate::Redlock::owner).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    client: Uuid,
    number: u64,
}

impl Owner {
    pub(crate) fn new(client: Uuid, number: u64) -> Self {
        Self { client, number }
    }

    /// An owner that no guard ever has: 0 is no guard's number.
    pub(crate) fn of_nobody(unique: Uuid) -> Self {
        Self { client: unique, number: 0 }
    }

    pub(crate) fn client(&self) -> Uuid {
        self.client
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Runs `future` with this owner: it is the default owner of every acquire in it through the
    /// client that made this owner, which may therefore re-enter. It is the async counterpart of a
    /// thread's identity.
    ///
    /// Tasks that the future spawns are outside of the scope, such as
    /// `tokio::spawn(lock.acquire())`. Futures that it joins, as `join!`, `select!` and
    /// `buffer_unordered` do, are inside. They share the owner, so they re-enter each other's locks
    /// and do not exclude each other: give each a scope of its own, or spawn it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops `future`.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// redlock.owner().scope(async {
    ///     let outer = redlock.lock("invoice:42").acquire().await?;
    ///     let inner = redlock.lock("invoice:42").acquire().await?; // re-enters
    ///     assert_eq!(outer.owner(), inner.owner());
    ///     inner.release().await?;
    ///     outer.release().await
    /// }).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        SCOPE.scope(*self, future).await
    }

    /// [`scope`](Owner::scope) for threads: runs `work` with this owner. Threads that it starts are
    /// outside of the scope.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// redlock.owner().scope_blocking(|| {
    ///     let outer = redlock.lock("invoice:42").acquire_blocking()?;
    ///     let inner = redlock.lock("invoice:42").acquire_blocking()?; // re-enters
    ///     assert_eq!(outer.owner(), inner.owner());
    ///     inner.release_blocking()?;
    ///     outer.release_blocking()
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn scope_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        SCOPE.sync_scope(*self, work)
    }

    /// Whether this is the text of an owner of `client`.
    pub(crate) fn is_text_of(text: &str, client: Uuid) -> bool {
        text.parse().is_ok_and(|owner: Self| owner.client == client)
    }

    /// The owner of the current scope, if it is one of `client`'s.
    pub(crate) fn of_scope(client: Uuid) -> Option<Self> {
        SCOPE.try_with(|owner| *owner).ok().filter(|owner| owner.client == client)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.client.hyphenated(), self.number)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Owner {
    type Err = Invalid;

    /// Reads what [`Display`](fmt::Display) wrote, and nothing else: `{hyphenated uuid}:{number}`.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parse = || {
            let (client, number) = text.split_once(':')?;
            let owner = Self { client: Uuid::try_parse(client).ok()?, number: number.parse().ok()? };
            (owner.to_string() == text).then_some(owner)
        };
        parse().ok_or_else(|| Invalid::owner(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_reads_back_what_it_wrote() {
        let owner = Owner::new(Uuid::from_u128(7), 42);
        assert_eq!(owner.to_string(), "00000000-0000-0000-0000-000000000007:42");
        assert_eq!(owner.to_string().parse::<Owner>(), Ok(owner));
    }

    #[test]
    fn what_is_not_an_owner_is_refused_and_named() {
        for text in [
            "",
            ":",
            "x:1",
            "00000000-0000-0000-0000-000000000007",
            "00000000-0000-0000-0000-000000000007:",
            "00000000-0000-0000-0000-000000000007:-1",
            "00000000-0000-0000-0000-000000000007:+1",
            "00000000-0000-0000-0000-000000000007:01",
            "00000000000000000000000000000007:1",
            "00000000-0000-0000-0000-00000000000A:1",
        ] {
            let error = text.parse::<Owner>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}
