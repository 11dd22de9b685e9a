//! Which names are held or waited for, of all kinds.

use std::collections::BTreeMap;

use quorate::{Error, Inspection, LockKind, Part, Redlock};
use quorate_testkit::{Masters, RedisServer};

use crate::{TTL, all_new, builder, ms, on_all, patient, until};

/// All of it, by name; no name is told twice.
async fn listed(redlock: &Redlock) -> BTreeMap<String, Inspection> {
    let mut names = BTreeMap::new();
    let mut listing = redlock.list();
    while let Some(page) = listing.next().await.unwrap() {
        for seen in page {
            let name = seen.name().to_owned();
            assert!(names.insert(name.clone(), seen).is_none(), "{name} twice");
        }
    }
    names
}

/// So many keys of somebody else, or hashes of names that nobody has any more.
fn fill(server: &RedisServer, count: usize, remembered: bool) {
    let script = "for i = 1, ARGV[1] do \
                  if ARGV[2] == '1' then redis.call('HSET', 'quorate:{old' .. i .. '}', 'kind', 'lock', 'fence', '7', 'last', '7') \
                  else redis.call('SET', 'other:' .. i, 'x') end end return 1";
    let (count, remembered) = (count.to_string(), if remembered { "1" } else { "0" });
    let _: i64 = server.command(&["EVAL", script, "0", &count, remembered]);
}

#[tokio::test]
async fn every_name_that_is_held_or_waited_for_is_told_once_with_its_holders() {
    let masters = Masters::start(3);
    let (here, there) = (builder(&masters).label("here").build().unwrap(), patient(&masters));
    for server in masters.iter() {
        fill(server, 3000, false);
        fill(server, 3000, true);
    }
    assert!(listed(&here).await.is_empty());
    let lock = here.lock("a lock").acquire().await.unwrap();
    let _fair = here.fair_lock("fair").acquire().await.unwrap();
    let _mutex = here.mutex("}").acquire().await.unwrap();
    let _reads =
        [here.read_lock("map").acquire().await.unwrap(), here.read_lock("map").acquire().await.unwrap()];
    let permit = here.semaphore("printers", 3).acquire().await.unwrap();
    let _both = here.lock_all(["x", "y"]).acquire().await.unwrap();
    let _foreign = here.plain_mutex("plain").acquire().await.unwrap();
    let released = here.lock("released").acquire().await.unwrap();
    released.release().await.unwrap();
    let waiter = tokio::spawn(async move { there.lock("a lock").wait(TTL).acquire().await });
    until("a waiter", async || listed(&here).await["a lock"].waiting() == 1).await;

    let names = listed(&here).await;
    assert_eq!(Vec::from_iter(names.keys()), ["a lock", "fair", "map", "printers", "x", "y", "}"]);
    let kind = |name: &str| names[name].kind().unwrap();
    assert_eq!((kind("a lock"), kind("fair"), kind("}")), (LockKind::Lock, LockKind::Fair, LockKind::Mutex));
    assert_eq!((kind("map"), kind("printers")), (LockKind::ReadWrite, LockKind::Semaphore { permits: 3 }));
    let holder = names["a lock"].holder().unwrap();
    assert_eq!((&*holder.owner, holder.label.as_deref()), (&*lock.owner().to_string(), Some("here")));
    assert!(
        holder.remaining.unwrap() <= TTL && names["a lock"].fencing_token() == Some(lock.fencing_token())
    );
    let reads = names["map"].held();
    assert_eq!((reads.len(), reads[0].part, reads[1].part), (2, Part::Read, Part::Read));
    assert_eq!(names["printers"].held()[0].part, Part::Permit(permit.permit().unwrap()));
    assert_eq!(names["printers"].free(), 2);

    lock.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    until("it to be free", async || !listed(&here).await.contains_key("a lock")).await;
}

#[tokio::test]
async fn a_listing_needs_a_majority_and_no_more() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(500)).build().unwrap();
    let _guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    crate::give(&masters[0], "a minority's", "somebody", TTL);
    masters[2].kill();
    assert_eq!(Vec::from_iter(listed(&redlock).await.into_keys()), ["l"]);
    masters[1].kill();
    let error = redlock.list().next().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { needed: 2, .. }), "{error}");
    assert!(error.to_string().contains("quorate:{*}"), "{error}");
}

#[tokio::test]
async fn names_of_another_prefix_are_not_told() {
    let masters = Masters::start(3);
    let [one, other] = ["a*:", "ab:"].map(|prefix| all_new(&masters).prefix(prefix).build().unwrap());
    let _guards = (one.lock("one").acquire().await.unwrap(), other.lock("other").acquire().await.unwrap());
    until("both", async || {
        listed(&one).await.contains_key("one") && listed(&other).await.contains_key("other")
    })
    .await;
    assert_eq!((listed(&one).await.len(), listed(&other).await.len()), (1, 1));
}

/// Two masters tell of their keys, and one of them not of the name: nobody knows whether a majority
/// has it.
#[tokio::test]
async fn a_name_that_too_few_masters_tell_of_is_not_passed_over() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(500)).build().unwrap();
    let _guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    masters[2].kill();
    let _: () = masters[1].command(&["ACL", "SETUSER", "default", "-hgetall"]);
    let mut listing = redlock.list();
    let error = listing.next().await.unwrap_err();
    assert!(matches!(&error, Error::NoQuorum { name, .. } if **name == *"l"), "{error}");
    let _: () = masters[1].command(&["ACL", "SETUSER", "default", "+hgetall"]);
    assert_eq!(listing.next().await.unwrap().unwrap()[0].name(), "l", "it is asked for again");
}

#[tokio::test]
async fn a_master_that_has_some_of_several_names_counts_once() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let _guard = redlock.lock_all(["a", "c"]).acquire().await.unwrap();
    let seen = redlock.lock_all(["a", "b", "c"]).inspect().await.unwrap();
    assert!(seen.held().iter().all(|held| held.holder.masters <= 3), "{seen:?}");
}
