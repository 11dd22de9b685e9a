//! Where a Redis Cluster would put the keys of a lock: it has one slot for each name.

use std::collections::BTreeSet;

use quorate::{Redlock, compat};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::waiting::waiter;
use crate::{SOON, all_new};

/// What makes a lock.
type Make = fn(&Redlock, &str) -> compat::UnfencedLock;

/// Kinds whose keys have a prefix, and who has to wait meanwhile.
const OWN: [[Make; 2]; 7] = [
    [|redlock, name| redlock.lock(name).into(); 2],
    [|redlock, name| redlock.lock_all([name]).into(); 2],
    [|redlock, name| redlock.fair_lock(name).into(); 2],
    [|redlock, name| redlock.mutex(name).into(); 2],
    [|redlock, name| redlock.read_lock(name).into(), |redlock, name| redlock.write_lock(name).into()],
    [|redlock, name| redlock.write_lock(name).into(), |redlock, name| redlock.read_lock(name).into()],
    [|redlock, name| redlock.semaphore(name, 1).into(); 2],
];

/// And whose key is the bare name.
const SHARED: [[Make; 2]; 2] =
    [[|redlock, name| redlock.plain_mutex(name); 2], [|redlock, name| redlock.redisson_lock(name); 2]];

const ORDINARY: [&str; 5] = ["l", "invoice:42", " ", "a+b\\c", "\u{e9}\n\0"];

/// With braces of their own. The hash tag is what stands before the first `}`, so that a name that
/// begins with one has none.
const ODD: [&str; 6] = ["{", "{}", "{a}", "a{b}c", "a}b", "{}}{"];

/// The slot of each key, as a server of a cluster has it.
fn slots(cluster: &RedisServer, keys: &BTreeSet<String>) -> BTreeSet<u16> {
    keys.iter().map(|key| cluster.command(&["CLUSTER", "KEYSLOT", key])).collect()
}

/// The keys of a lock that somebody waits for: its own and its queue. There may be one more for a
/// moment: a waiter that was cancelled can have been granted its lock, which it then gives back.
fn lock_and_queue(masters: &Masters) -> Result<BTreeSet<String>, BTreeSet<String>> {
    let keys: BTreeSet<_> = masters.keys().into_iter().map(|(_, key)| key).collect();
    let has_queue = keys.iter().any(|key| key.contains(":waiting:"));
    if keys.len() == 2 && has_queue { Ok(keys) } else { Err(keys) }
}

/// Takes each lock under each name, with somebody who waits for it, and looks where all its keys
/// would be: the lock and the queue.
async fn have_one_slot_each(kinds: &[[Make; 2]], names: &[&str]) {
    let cluster = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let masters = Masters::start(1);
    for (i, [held, waits]) in kinds.iter().enumerate() {
        let client = || all_new(&masters).prefix(format!("k{i}:")).build().unwrap();
        let (redlock, other) = (client(), client());
        for name in names {
            let held = held(&redlock, name).acquire().await.unwrap();
            let waiting = waiter(waits(&other, name)).await;
            let its = eventually(SOON, || lock_and_queue(&masters)).await;
            assert_eq!(slots(&cluster, &its).len(), 1, "{its:?}");
            waiting.abort();
            held.release().await.unwrap();
            eventually(SOON, || masters.empty()).await;
        }
    }
}

#[tokio::test]
async fn all_keys_of_a_name_have_one_slot() {
    have_one_slot_each(&OWN, &ORDINARY).await;
    have_one_slot_each(&OWN, &ODD).await;
}

/// Names with braces are not among these: the bare name and the keys beside it would have tags of
/// their own.
#[tokio::test]
async fn all_keys_of_a_name_that_others_have_too_have_one_slot() {
    have_one_slot_each(&SHARED, &ORDINARY).await;
}
