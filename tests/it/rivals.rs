//! Each kind of lock meets each other one under one name: what has the name as another kind is
//! refused, what is kept alike excludes, and nothing that a lock has on a master is changed by
//! whoever does not get it.

use quorate::{Error, Redlock, compat};
use quorate_testkit::{Masters, eventually};

use crate::{SOON, TTL, patient, until};

const NAME: &str = "l";

/// A kind of lock: where its key is, how it is kept there, and what makes one.
type Kind = (&'static str, Space, &'static str, fn(&Redlock, &str) -> compat::UnfencedLock);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// The key is one of Quorate's.
    Own,
    /// The key is the bare name, which other libraries have, too.
    Shared,
}

const KINDS: [Kind; 9] = [
    ("lock", Space::Own, "a hash", |redlock, name| redlock.lock(name).into()),
    ("lock_all", Space::Own, "a hash", |redlock, name| redlock.lock_all([name, "beside"]).into()),
    ("fair_lock", Space::Own, "a fair hash", |redlock, name| redlock.fair_lock(name).into()),
    ("mutex", Space::Own, "a string", |redlock, name| redlock.mutex(name).into()),
    ("read_lock", Space::Own, "a hash of holders", |redlock, name| redlock.read_lock(name).into()),
    ("write_lock", Space::Own, "a hash of holders", |redlock, name| redlock.write_lock(name).into()),
    ("semaphore", Space::Own, "a sorted set", |redlock, name| redlock.semaphore(name, 2).into()),
    ("plain_mutex", Space::Shared, "a string", |redlock, name| redlock.plain_mutex(name)),
    ("redisson_lock", Space::Shared, "a hash", |redlock, name| redlock.redisson_lock(name)),
];

/// What becomes of whoever comes for a name that is held.
#[derive(Debug, PartialEq, Eq)]
enum Meeting {
    /// It is held as another kind.
    Refused,
    /// It is held.
    Held,
    /// The two are locks of their own.
    Beside,
}

impl Meeting {
    /// None where both may have it, as readers.
    fn of((holder, its, kept, _): &Kind, (rival, space, alike, _): &Kind) -> Option<Self> {
        match (its == space, kept == alike) {
            (false, _) => Some(Self::Beside),
            (true, false) => Some(Self::Refused),
            (true, true) => {
                (holder != rival || !["read_lock", "semaphore"].contains(holder)).then_some(Self::Held)
            }
        }
    }
}

/// All keys of a master but its record: what is there. Of a name that is its kind and its entries:
/// a token that was broken or released may be noted beside them.
const CONTENTS: &str = "
    local keys, all = redis.call('KEYS', '*'), {}
    table.sort(keys)
    for _, key in ipairs(keys) do
        local kept = redis.call('TYPE', key).ok
        local words = kept == 'hash' and redis.call('HGETALL', key) or {redis.sha1hex(redis.call('DUMP', key))}
        local shown = {}
        for i = 1, #words, 2 do
            local field = words[i]
            local is_its = kept ~= 'hash' or field == 'kind' or field == 'x' or string.find(field, '^[rpol]:')
            local is_word = string.find(words[i + 1] or '', ' 0$') -- of a reader that has left
            if is_its and not is_word then shown[#shown + 1] = field .. '=' .. (words[i + 1] or '') end
        end
        table.sort(shown)
        if key ~= 'quorate:master' then all[#all + 1] = {key, table.concat(shown, ' ')} end
    end
    return all";

type Contents = Vec<Vec<(String, String)>>;

/// What is on each master that may not change: all of it, or where the rival has a lock, too, what
/// is not in its space.
fn contents(masters: &Masters, meeting: &Meeting, rival: &Kind) -> Contents {
    let space = |key: &str| {
        let is_shared = key == NAME || key.contains(":shared:{");
        if is_shared { Space::Shared } else { Space::Own }
    };
    let all = masters.iter().map(|server| server.command::<Vec<_>>(&["EVAL", CONTENTS, "0"]));
    let stay = all.map(|mut all: Vec<(String, String)>| {
        all.retain(|(key, ..)| *meeting != Meeting::Beside || space(key) != rival.1);
        all
    });
    stay.collect()
}

/// Waits until every master has done what this client has sent.
async fn settled(redlock: &Redlock) {
    let behind = redlock.lock("behind");
    until("every master", async || behind.inspect().await.unwrap().answered() == 3).await;
}

/// Comes for a lock that is held.
async fn come(meeting: &Meeting, lock: &compat::UnfencedLock, held: &compat::UnfencedGuard) {
    match meeting {
        Meeting::Refused => {
            let at_once = lock.try_acquire().await;
            for refused in [at_once, lock.acquire().await, lock.clone().wait(SOON).acquire().await] {
                let error = refused.unwrap_err();
                assert!(
                    matches!(&error, Error::AnotherKind { name, .. } if **name == *lock.name()),
                    "{error}"
                );
                assert!(error.to_string().contains("held as another kind"), "{error}");
            }
        }
        Meeting::Held => {
            let error = lock.try_acquire().await.unwrap_err();
            let Error::Held { holder, .. } = &error else { panic!("{error}") };
            assert_eq!(*holder.owner, *held.owner().to_string());
        }
        Meeting::Beside => {
            let guard = lock.try_acquire().await.unwrap();
            guard.extend(2 * TTL).await.unwrap();
            assert!(guard.is_valid() && held.is_valid());
            guard.release().await.unwrap();
        }
    }
}

/// A guard whose lock was taken from it, so that it does not know.
async fn broken(redlock: &Redlock, operator: &Redlock, kind: &Kind) -> compat::UnfencedGuard {
    let guard = (kind.3)(redlock, NAME).ttl(TTL).no_renewal().wait(SOON).acquire().await.unwrap();
    settled(redlock).await;
    (kind.3)(operator, NAME).force_release(&guard.owner()).await.unwrap();
    settled(operator).await;
    guard
}

/// Somebody holds the name as one kind. Another one comes for it, and somebody whose guards are of
/// no worth any more uses them.
async fn meet(masters: &Masters, [one, other]: &[Redlock; 2], holder: &Kind, rival: &Kind, meeting: Meeting) {
    println!("a {} is held, and somebody comes for a {}: {meeting:?}", holder.0, rival.0);
    let (its, lock) = ((holder.3)(one, NAME), (rival.3)(other, NAME));
    let gone = [broken(other, one, rival).await, broken(other, one, rival).await];
    let held = its.ttl(TTL).no_renewal().wait(SOON).acquire().await.unwrap();
    settled(one).await;

    let before = contents(masters, &meeting, rival);
    come(&meeting, &lock, &held).await;
    let [extended, released] = gone;
    let refused = extended.extend(2 * TTL).await;
    assert!(matches!(refused, Err(Error::Lost { .. } | Error::NoQuorum { .. })), "{refused:?}");
    let refused = released.release().await;
    assert!(matches!(refused, Err(Error::Lost { .. } | Error::ReleaseUnconfirmed { .. })), "{refused:?}");
    drop(extended);
    if meeting != Meeting::Held {
        assert!(!lock.is_held_by(&held.owner()).await.unwrap());
        lock.force_release(&held.owner()).await.unwrap_err();
    }
    settled(other).await;
    assert_eq!(contents(masters, &meeting, rival), before);

    held.extend(TTL).await.unwrap();
    held.release().await.unwrap();
    settled(one).await;
    lock.wait(SOON).acquire().await.unwrap().release().await.unwrap();
    settled(other).await;
}

/// All meetings of a sort, on three masters.
async fn all_that_are(sort: Meeting) {
    let masters = Masters::start(3);
    let clients = [patient(&masters), patient(&masters)];
    let mut count = 0;
    for (holder, rival) in KINDS.iter().flat_map(|holder| KINDS.iter().map(move |rival| (holder, rival))) {
        if let Some(meeting) = Meeting::of(holder, rival).filter(|meeting| *meeting == sort) {
            meet(&masters, &clients, holder, rival, meeting).await;
            count += 1;
        }
    }
    let wanted = match sort {
        Meeting::Refused => 40,
        Meeting::Held => 11,
        Meeting::Beside => 28,
    };
    assert_eq!(count, wanted);
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_name_that_is_held_as_one_kind_is_refused_as_each_other_and_nothing_is_changed() {
    all_that_are(Meeting::Refused).await;
}

#[tokio::test]
async fn kinds_that_are_kept_alike_exclude_each_other_and_leave_alone_what_the_other_has() {
    all_that_are(Meeting::Held).await;
}

/// The keys of other libraries are other keys than Quorate's.
#[tokio::test]
async fn a_lock_and_a_shared_one_of_the_same_name_are_two() {
    all_that_are(Meeting::Beside).await;
}
