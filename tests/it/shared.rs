//! Locks that other libraries have, too: clients that set a string if there is none, as many do,
//! and Redisson's scripts, word for word.

use quorate::{Error, Redlock};
use quorate_testkit::{Masters, RedisServer, eventually};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use rslock::LockManager;

use crate::waiting::waiter;
use crate::wake_ups::{LONG, handed};
use crate::{SOON, TTL, ms, on_all, patient, until};

/// What redis-py and others release by: only what is one's own.
pub(crate) const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

fn set_if_none(server: &RedisServer, value: &str) -> bool {
    let set: Option<String> = server.command(&["SET", "l", value, "NX", "PX", "30000"]);
    set.is_some()
}

#[tokio::test]
async fn a_plain_mutex_is_a_string_that_says_who_has_it() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = redlock.plain_mutex("l").acquire().await.unwrap();
    on_all(&masters).await;
    for server in masters.iter() {
        assert_eq!(server.command::<String>(&["GET", "l"]), held.owner().to_string());
        let left: i64 = server.command(&["PTTL", "l"]);
        assert!((1..=30_000).contains(&left), "{left}");
        assert!(!set_if_none(server, "theirs"), "it keeps others out");
        let deleted: i64 = server.command(&["EVAL", COMPARE_AND_DELETE, "1", "l", "theirs"]);
        assert_eq!(deleted, 0, "they do not release it");
    }
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_plain_mutex_is_kept_out_by_what_others_set_and_does_not_release_it() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    assert!(masters.iter().take(2).all(|server| set_if_none(server, "theirs")));
    let lock = redlock.plain_mutex("l");
    let error = lock.try_acquire().await.unwrap_err();
    assert!(matches!(&error, Error::Held { holder, .. } if &*holder.owner == "theirs"), "{error}");
    let holder = lock.inspect().await.unwrap().holder().unwrap();
    assert_eq!((&*holder.owner, holder.masters), ("theirs", 2));
    let waiting = waiter(lock.ttl(LONG).poll_every(ms(20), 10_000)).await;
    eventually(SOON, || masters[2].command::<Option<String>>(&["GET", "l"]).map_or(Ok(()), Err)).await;
    for server in masters.iter().take(2) {
        assert_eq!(server.command::<String>(&["GET", "l"]), "theirs", "nobody released it");
        let deleted: i64 = server.command(&["EVAL", COMPARE_AND_DELETE, "1", "l", "theirs"]);
        assert_eq!(deleted, 1);
    }
    handed(waiting).await.release().await.unwrap();
}

/// A client of another library may have had it meanwhile, and left no record of that.
#[tokio::test]
async fn a_key_that_others_have_too_is_not_made_again_where_it_is_gone() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    for lock in [redlock.plain_mutex("l"), redlock.redisson_lock("l"), redlock.mutex("own").into()] {
        let name = if lock.name() == "own" { "quorate:{own}" } else { "l" };
        let held = lock.acquire().await.unwrap();
        on_all(&masters).await;
        let _: i64 = masters[0].command(&["DEL", name]);
        held.extend(TTL).await.unwrap();
        held.extend(TTL).await.unwrap(); // the first has reached the third master by now
        let is_there: bool = masters[0].command(&["EXISTS", name]);
        assert_eq!(is_there, name != "l", "{lock:?}");
        held.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

/// rslock is one of those: its value is twenty bytes that are no text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rslock_and_a_plain_mutex_exclude_each_other() {
    let masters = Masters::start(3);
    let (redlock, theirs) = (patient(&masters), LockManager::new(masters.urls()));
    for _ in 0..5 {
        let held = redlock.plain_mutex("l").acquire().await.unwrap();
        theirs.lock("l", TTL).await.map(drop).unwrap_err();
        assert!(held.is_valid());
        assert!(redlock.plain_mutex("l").is_held_by(&held.owner()).await.unwrap());
        held.release().await.unwrap();

        let lock = theirs.lock("l", TTL).await.unwrap();
        let error = redlock.plain_mutex("l").try_acquire().await.unwrap_err();
        assert!(matches!(error, Error::Held { .. }), "{error}");
        theirs.unlock(&lock).await;
        eventually(SOON, || masters.empty()).await;
    }
}

/// Redisson's RLock, as its client has the scripts of it (4.7).
pub(crate) struct Java {
    redis: MultiplexedConnection,
    pub(crate) me: String,
}

const ACQUIRE: &str = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";

const RELEASE: &str = "local val = redis.call('get', KEYS[3]); if val ~= false then return tonumber(val); end; \
    if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil; end; \
    local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); \
    if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); redis.call('set', KEYS[3], 0, 'px', ARGV[5]); return 0; \
    else redis.call('del', KEYS[1]); redis.call(ARGV[4], KEYS[2], ARGV[1]); \
    redis.call('set', KEYS[3], 1, 'px', ARGV[5]); return 1; end;";

const RENEW: &str = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
    redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;";

pub(crate) const CHANNEL: &str = "redisson_lock__channel:{l}";

impl Java {
    pub(crate) async fn connect(server: &RedisServer) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        let patient =
            AsyncConnectionConfig::new().set_connection_timeout(Some(SOON)).set_response_timeout(Some(SOON));
        let redis = client.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
        Self { redis, me: "8743c9c0-0795-4907-87fd-6c719a6b4586:1".to_owned() }
    }

    /// What it has to wait (ms), where it did not get the lock.
    pub(crate) async fn acquire(&mut self) -> Option<i64> {
        let mut call = redis::cmd("EVAL");
        call.arg(ACQUIRE).arg(1).arg("l").arg(30_000).arg(&self.me);
        call.query_async(&mut self.redis).await.unwrap()
    }

    /// 1 for the last hold, 0 for another one, and nothing where it is not its own.
    pub(crate) async fn release(&mut self, request: &str) -> Option<i64> {
        let mut call = redis::cmd("EVAL");
        call.arg(RELEASE).arg(3).arg("l").arg(CHANNEL).arg(format!("redisson_unlock_latch:{{l}}:{request}"));
        call.arg(0).arg(30_000).arg(&self.me).arg("publish").arg(16_000);
        call.query_async(&mut self.redis).await.unwrap()
    }

    pub(crate) async fn renew(&mut self) -> i64 {
        let mut call = redis::cmd("EVAL");
        call.arg(RENEW).arg(1).arg("l").arg(30_000).arg(&self.me);
        call.query_async(&mut self.redis).await.unwrap()
    }
}

/// The lock's hash, and nothing else of it: the record is beside it.
pub(crate) fn hash(server: &RedisServer) -> Vec<String> {
    server.command(&["HGETALL", "l"])
}

async fn one() -> (Masters, Redlock, Java) {
    let masters = Masters::start(1);
    let redlock = patient(&masters);
    let java = Java::connect(&masters[0]).await;
    (masters, redlock, java)
}

#[tokio::test]
async fn a_lock_of_redissons_has_its_hash_and_nothing_else_in_it() {
    let (masters, redlock, mut java) = one().await;
    let me = redlock.owner();
    let lock = redlock.redisson_lock("l").owned_by(&me);
    let outer = lock.acquire().await.unwrap();
    assert_eq!(hash(&masters[0]), [me.to_string(), "1".to_owned()]);
    let inner = lock.acquire().await.unwrap();
    assert_eq!(hash(&masters[0]), [me.to_string(), "2".to_owned()]);
    let (uuid, number) = java.me.split_once(':').unwrap();
    let (ours, thread) = me.to_string().split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!((ours.len(), thread.parse::<u64>().is_ok()), (uuid.len(), number.parse::<u64>().is_ok()));
    assert!(java.acquire().await.is_some_and(|wait| (1..=30_000).contains(&wait)), "Java waits for its TTL");
    assert_eq!(java.release("a").await, None, "Java does not release it");
    assert_eq!(java.renew().await, 0);
    inner.release().await.unwrap();
    assert_eq!(hash(&masters[0]), [me.to_string(), "1".to_owned()]);
    outer.release().await.unwrap();
    assert!(hash(&masters[0]).is_empty());
    assert_eq!(java.acquire().await, None);
    assert_eq!(java.release("b").await, Some(1));
}

#[tokio::test]
async fn a_lock_that_java_has_is_seen_and_not_taken() {
    let (masters, redlock, mut java) = one().await;
    assert_eq!((java.acquire().await, java.acquire().await), (None, None));
    let lock = redlock.redisson_lock("l");
    let error = lock.try_acquire().await.unwrap_err();
    let Error::Held { holder, .. } = &error else { panic!("{error}") };
    assert_eq!(*holder.owner, *java.me);
    let holder = lock.inspect().await.unwrap().holder().unwrap();
    assert!(holder.remaining.unwrap() > ms(20_000));
    assert_eq!(java.renew().await, 1);
    assert_eq!(java.release("a").await, Some(0));
    assert_eq!(hash(&masters[0]), [java.me.clone(), "1".to_owned()]);
    lock.try_acquire().await.unwrap_err();
    assert_eq!(java.release("b").await, Some(1));
    lock.try_acquire().await.unwrap().release().await.unwrap();
}

/// Its lease is far longer than this takes.
#[tokio::test]
async fn whoever_waits_here_is_woken_by_a_release_in_java() {
    let (masters, redlock, mut java) = one().await;
    for request in ["a", "b", "c"] {
        assert_eq!(java.acquire().await, None);
        let waiting = waiter(redlock.redisson_lock("l").ttl(LONG)).await;
        until("somebody to listen", async || listening(&masters[0]) == 1).await;
        assert_eq!(java.release(request).await, Some(1));
        let held = handed(waiting).await;
        assert!(java.acquire().await.is_some());
        held.release().await.unwrap();
        until("nobody to listen", async || listening(&masters[0]) == 0).await;
    }
}

pub(crate) fn listening(server: &RedisServer) -> i64 {
    let (_, count): (String, i64) = server.command(&["PUBSUB", "NUMSUB", CHANNEL]);
    count
}

#[tokio::test]
async fn whoever_waits_in_java_is_told_of_a_release_here() {
    let (masters, redlock, mut java) = one().await;
    let client = redis::Client::open(masters[0].url()).unwrap();
    let mut told = client.get_async_pubsub().await.unwrap();
    told.subscribe(CHANNEL).await.unwrap();
    let held = redlock.redisson_lock("l").acquire().await.unwrap();
    assert!(java.acquire().await.is_some());
    held.release().await.unwrap();
    let mut messages = told.into_on_message();
    let message = tokio::time::timeout(SOON, futures::StreamExt::next(&mut messages)).await.unwrap().unwrap();
    assert_eq!(message.get_payload::<String>().unwrap(), "0");
    assert_eq!(java.acquire().await, None);
}

/// Where it may not listen, it asks again and again.
#[tokio::test]
async fn whoever_may_not_listen_asks_until_java_has_released() {
    let (masters, redlock, mut java) = one().await;
    let _: () = masters[0].command(&["ACL", "SETUSER", "default", "-subscribe"]);
    assert_eq!(java.acquire().await, None);
    let waiting = waiter(redlock.redisson_lock("l").ttl(LONG)).await;
    until("a few looks", async || crate::faults::calls(&masters[0], "evalsha") > 5).await;
    assert_eq!(java.release("a").await, Some(1));
    handed(waiting).await.release().await.unwrap();
}
