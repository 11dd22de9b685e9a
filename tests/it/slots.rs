//! Where a Redis Cluster would put the keys of a lock: it has one slot for each name.

use std::collections::BTreeSet;

use quorate::{Lock, Redlock, Unfenced};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::waiting::waiter;
use crate::{SOON, builder, until};

/// What makes a lock.
type Make = fn(&Redlock, &str) -> Lock<Unfenced>;

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

fn all_keys(server: &RedisServer) -> BTreeSet<String> {
    server.command(&["KEYS", "*"])
}

/// Takes each lock under each name, with somebody who waits for it, and looks where all its keys
/// would be: the lock and the queue.
async fn have_one_slot_each(kinds: &[[Make; 2]], names: &[&str]) {
    let cluster = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let masters = Masters::start(1);
    for (i, [held, waits]) in kinds.iter().enumerate() {
        let client = || builder(&masters).prefix(format!("k{i}:")).build().unwrap();
        let (redlock, other) = (client(), client());
        redlock.lock("l").inspect().await.unwrap(); // the record is there
        for name in names {
            let before = all_keys(&masters[0]);
            let held = held(&redlock, name).acquire().await.unwrap();
            let waiting = waiter(waits(&other, name)).await;
            let is_queue = |key: &String| key.contains(":waiting:");
            until("a queue", async || all_keys(&masters[0]).iter().any(is_queue)).await;
            let its: BTreeSet<_> = all_keys(&masters[0]).difference(&before).cloned().collect();
            assert_eq!(its.len(), 2, "{its:?}");
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
