//! The lock over several names: all of them at once, or none.
//!
//! On a master it is a reentrant lock of each name, all of one owner and with one token, which one script takes and leaves
//! together; see `scripts/lua/all/write.lua`. The engine knows it by one name, in which the names are joined.

use std::time::Duration;

use super::Lock;
use super::words::{hold, queueing, script, standing};
use crate::client::Redlock;
use crate::config::{Key, MAX_NAMES, Queue, Record, Wakes, check_name};
use crate::coordinator::{Kind, Meeting, Operation, Permit};
use crate::error::{Invalid, excerpt};
use crate::master::{Script, Words};
use crate::owner::Owner;

impl Redlock {
    /// One lock over all of these names: it is granted all of them at once, or none, on each master in one script. It excludes a
    /// [`lock`](Redlock::lock) of any of its names, and every other lock over several of which one is the same; whoever waits
    /// has nothing meanwhile, so that no order of names can come to a deadlock. There is one lease, one [`Guard`](crate::Guard)
    /// and one fencing token, which is above the last token of every name: resources that single locks guard take it, too.
    ///
    /// There are 1 to [`MAX_NAMES`](crate::config::MAX_NAMES) names, none of them twice, each as for [`lock`](Redlock::lock).
    /// Their order does not matter: they are sorted. Nothing is sent, or checked, before the lock is acquired: then other names
    /// are an [`Error::Invalid`](crate::Error::Invalid). The lock's [`name`](Lock::name), which errors show, is theirs with a `+`
    /// in between, as in `a+b`; a `+` or a backslash within a name has a backslash before it.
    ///
    /// [`Error::Held`](crate::Error::Held) tells who has the first of the names that is taken. While one waits, whoever comes for
    /// one of the names only may be served before: a lock over several names waits longer the more of them are in demand.
    ///
    /// What is held over several names has an owner of its own, [`Guard::owner`](crate::Guard::owner), also where one is
    /// [named](Lock::owned_by). That one may enter the same names again by `lock_all`; its locks of single names, or of other
    /// names, are others, which exclude this one, so that no release of one takes a name from the other.
    ///
    /// Masters are independent servers. A cluster would take such a lock only where its names share a hash tag, which is a name up
    /// to its first `}`: `order:7}a` and `order:7}b` do.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let both = redlock.lock_all(["account:1", "account:2"]).acquire().await?;
    /// assert!(matches!(redlock.lock("account:2").try_acquire().await, Err(Error::Held { .. })));
    /// both.release().await?;
    ///
    /// let one = redlock.lock("account:2").acquire().await?;
    /// let error = redlock.lock_all(["account:2", "account:1"]).try_acquire().await.unwrap_err();
    /// assert_eq!(*error.holder().unwrap().owner, *one.owner().to_string());
    /// assert!(redlock.lock("account:1").inspect().await?.is_free()); // nothing was taken
    ///
    /// let error = redlock.lock_all(["a", "a"]).try_acquire().await.unwrap_err();
    /// assert_eq!(error.to_string(), "the name \"a\" is given twice; the names of one lock must differ");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Lock {
        Lock::new(self, &All, join(names).into())
    }
}

pub(super) static SCRIPT: Script = script!("all": ["kinds/hash", "kinds/reentrant", "kinds/single", "common/lock", "all/write"] [
    "all/acquire",
    "all/extend",
    "all/release",
    "all/withdraw",
    "all/transfer",
    "all/inspect",
    "all/run"
]);

/// The kind.
#[derive(Debug)]
struct All;

impl Kind for All {
    fn name(&self) -> &'static str {
        "all"
    }

    fn script(&self) -> &'static Script {
        &SCRIPT
    }

    fn check_name(&self, name: &str) -> Result<(), Invalid> {
        let names = split(name);
        if names.is_empty() {
            return Err(Invalid::NoNames { limit: MAX_NAMES });
        }
        if names.len() > MAX_NAMES {
            return Err(Invalid::TooManyNames { count: names.len(), limit: MAX_NAMES });
        }
        names.iter().try_for_each(|name| check_name(name))?;
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Invalid::DuplicateName { name: excerpt(&pair[0]) }),
            None => Ok(()),
        }
    }

    fn is_reentrant(&self) -> bool {
        true
    }

    /// The holds of single locks and these are counted apart, so they must not be the same owner's where they meet.
    fn is_held_by_name(&self) -> bool {
        false
    }

    fn looks_every(&self) -> Option<Duration> {
        None
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn channel(&self, _name: &str) -> Option<String> {
        None
    }

    fn admits_several(&self) -> bool {
        false
    }

    fn sibling(&self) -> Option<(&'static dyn Kind, Meeting)> {
        None
    }

    fn acquire(&self, operation: &Operation<'_>) -> Words {
        let words = hold("", on(operation, "acquire"), operation).with(operation.watched);
        queueing("", words, operation)
    }

    fn extend(&self, operation: &Operation<'_>) -> Words {
        hold("", on(operation, "extend"), operation).with(u8::from(operation.heals))
    }

    fn release(&self, operation: &Operation<'_>) -> Words {
        let Operation { prefix, owner, count, round, place, fence, undoes, .. } = *operation;
        let owned = |verb| on(operation, verb).with(owner).with(count).with(round);
        match place {
            None => owned("release").with(Wakes(prefix)).with(if undoes { 1 } else { fence }),
            Some(place) => standing("", owned("withdraw"), place),
        }
    }

    fn transfer(&self, operation: &Operation<'_>, from: Owner) -> Words {
        hold("", on(operation, "transfer"), operation).with(from)
    }

    fn inspect(&self, prefix: &str, name: &str, _: Option<Permit>, _: Option<Owner>) -> Words {
        keys(prefix, name, "inspect")
    }
}

fn on(operation: &Operation<'_>, verb: &str) -> Words {
    keys(operation.prefix, operation.name, verb)
}

/// The keys of all names, the verb, and how many names there are.
fn keys(prefix: &str, name: &str, verb: &str) -> Words {
    let names = split(name);
    let keys = names.iter().fold(Words::new(3 * names.len()), |words, name| {
        words.with(Key(prefix, name)).with(Record(prefix, false, name)).with(Queue(prefix, false, name))
    });
    keys.with(verb).with(names.len())
}

/// What stands between two names.
const BETWEEN: char = '+';

/// What stands before a character of a name that would mean something else. Alone, it is the name of no names.
const ESCAPE: char = '\\';

/// One name for all of these, whatever they are, and in whatever order.
fn join(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let escaped = |name: &str| {
        name.chars().fold(String::new(), |mut escaped, c| {
            escaped.extend([BETWEEN, ESCAPE].contains(&c).then_some(ESCAPE));
            escaped.push(c);
            escaped
        })
    };
    let mut names: Vec<String> = names.into_iter().map(|name| escaped(name.as_ref())).collect();
    names.sort_unstable();
    if names.is_empty() { ESCAPE.to_string() } else { names.join(&BETWEEN.to_string()) }
}

/// The names that were joined.
fn split(joined: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = joined.chars();
    while let Some(c) = chars.next() {
        let last = names.last_mut().expect("there is one");
        match c {
            BETWEEN => names.push(String::new()),
            ESCAPE => match chars.next() {
                Some(c) => last.push(c),
                None => return Vec::new(),
            },
            c => last.push(c),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_joined_name_is_read_at_a_glance() {
        assert_eq!(join(["b", "a"]), "a+b");
        assert_eq!(join(["a+b", "c\\"]), "a\\+b+c\\\\");
        assert_eq!(join(["a"]), "a");
    }

    proptest! {
        /// Whatever the names are, they are the same again, and no other names are joined alike.
        #[test]
        fn names_are_split_as_they_were_joined(names in proptest::collection::vec("[ab+\\\\é]{0,4}", 0..5)) {
            let joined = join(&names);
            let mut split = split(&joined);
            prop_assert_eq!(&join(&split), &joined);
            let mut names = names;
            names.sort();
            split.sort();
            prop_assert_eq!(split, names);
        }
    }
}
