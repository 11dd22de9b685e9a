//! A plain mutex together with clients of other libraries, whose scripts do here what they do
//! there, command by command.

use quorate::{Error, Redlock};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::{SOON, TTL, on_all, patient};

const NAME: &str = "l";

/// What a library sends to each of the masters, always with its own value and a TTL (ms).
struct Library {
    name: &'static str,
    value: &'static str,
    acquire: &'static str,
    extend: &'static str,
    release: &'static str,
    /// What the release answers where there is nothing.
    nothing: i64,
}

/// What redsync sends is this command, and no script.
const SET_IF_NONE: &str =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0";

const REDSYNC: Library = Library {
    name: "redsync",
    value: "3q2+796tvu/erb7v3q2+7w==",
    acquire: SET_IF_NONE,
    extend: "
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
    release: "
        local found = redis.call('GET', KEYS[1])
        if found == false then return -1 end
        if found ~= ARGV[1] then return 0 end
        return redis.call('DEL', KEYS[1])",
    nothing: -1,
};

const NODE_REDLOCK: Library = Library {
    name: "node-redlock",
    value: "deadbeefdeadbeefdeadbeefdeadbeef",
    acquire: "
        for _, key in ipairs(KEYS) do
            if redis.call('EXISTS', key) == 1 then return 0 end
        end
        for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
        return #KEYS",
    extend: "
        for _, key in ipairs(KEYS) do
            if redis.call('GET', key) ~= ARGV[1] then return 0 end
        end
        for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
        return #KEYS",
    release: "
        local count = 0
        for _, key in ipairs(KEYS) do
            if redis.call('GET', key) == ARGV[1] then count = count + redis.call('DEL', key) end
        end
        return count",
    nothing: 0,
};

impl Library {
    /// What each master answers.
    fn on(&self, masters: &Masters, script: &str) -> Vec<i64> {
        let ttl = TTL.as_millis().to_string();
        let run = |server: &RedisServer| server.command(&["EVAL", script, "1", NAME, self.value, &ttl]);
        masters.iter().map(run).collect()
    }
}

/// Who has it, on each master, and until when.
fn holders(masters: &Masters) -> Vec<(Option<String>, i64)> {
    let of = |server: &RedisServer| {
        (server.command(&["GET", NAME]), server.command::<i64>(&["PEXPIRETIME", NAME]))
    };
    masters.iter().map(of).collect()
}

/// What we hold they do not get, extend or release.
async fn they_are_kept_out(masters: &Masters, redlock: &Redlock, theirs: &Library) {
    let held = redlock.plain_mutex(NAME).acquire().await.unwrap();
    on_all(masters).await;
    let before = holders(masters);
    for script in [theirs.acquire, theirs.extend, theirs.release] {
        assert_eq!(theirs.on(masters, script), [0; 3], "{}: {script}", theirs.name);
    }
    assert_eq!(holders(masters), before, "{}", theirs.name);
    held.extend(2 * TTL).await.unwrap();
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// What they hold we do not get, release, or take for ours; and they go on extending it.
async fn they_keep_out(masters: &Masters, redlock: &Redlock, theirs: &Library) {
    let mutex = redlock.plain_mutex(NAME);
    let late = mutex.acquire().await.unwrap(); // its keys are gone when they come
    on_all(masters).await;
    masters.iter().for_each(|server| assert_eq!(server.command::<i64>(&["DEL", NAME]), 1));
    assert_eq!(theirs.on(masters, theirs.acquire), [1; 3], "{}", theirs.name);
    let before = holders(masters);
    let error = mutex.try_acquire().await.unwrap_err();
    assert!(matches!(&error, Error::Held { holder, .. } if *holder.owner == *theirs.value), "{error}");
    assert!(!mutex.is_held_by(&late.owner()).await.unwrap());
    assert!(matches!(late.extend(TTL).await, Err(Error::Lost { .. })));
    assert!(matches!(late.release().await, Err(Error::Lost { .. })));
    assert_eq!(mutex.inspect().await.unwrap().answered(), 3); // behind all that came before
    assert_eq!(holders(masters), before, "{}", theirs.name);

    assert_eq!(theirs.on(masters, theirs.extend), [1; 3], "{}", theirs.name);
    assert!(matches!(mutex.try_acquire().await, Err(Error::Held { .. })));
    assert_eq!(theirs.on(masters, theirs.release), [1; 3], "{}", theirs.name);
    assert_eq!(theirs.on(masters, theirs.release), [theirs.nothing; 3], "{}", theirs.name);
}

/// Two of three are a majority, whoever has them.
async fn a_majority_decides(masters: &Masters, redlock: &Redlock, theirs: &Library) {
    let ttl = TTL.as_millis().to_string();
    let mutex = redlock.plain_mutex(NAME).wait(SOON);
    let script = |server: &RedisServer, script| -> i64 {
        server.command(&["EVAL", script, "1", NAME, theirs.value, &ttl])
    };
    assert_eq!(script(&masters[0], theirs.acquire), 1);
    let held = mutex.acquire().await.unwrap();
    assert_eq!(script(&masters[0], theirs.release), 1, "{} lost what it had", theirs.name);
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;

    (0..2).for_each(|i| assert_eq!(script(&masters[i], theirs.acquire), 1));
    assert!(matches!(mutex.try_acquire().await, Err(Error::Held { .. })));
    eventually(SOON, || masters[2].keys().is_empty().then_some(()).ok_or("a key on the third")).await;
    (0..2).for_each(|i| assert_eq!(script(&masters[i], theirs.release), 1, "{}", theirs.name));
    mutex.acquire().await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

async fn share_a_mutex(theirs: Library) {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    they_are_kept_out(&masters, &redlock, &theirs).await;
    a_majority_decides(&masters, &redlock, &theirs).await;
    they_keep_out(&masters, &redlock, &theirs).await;
}

#[tokio::test]
async fn redsync_and_a_plain_mutex_exclude_each_other_and_neither_releases_the_others() {
    share_a_mutex(REDSYNC).await;
}

#[tokio::test]
async fn node_redlock_and_a_plain_mutex_exclude_each_other_and_neither_releases_the_others() {
    share_a_mutex(NODE_REDLOCK).await;
}
