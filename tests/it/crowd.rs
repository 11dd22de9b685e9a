//! A crowd of clients on real masters does what is drawn for it, of every kind of lock, while two
//! of five masters die. What happened is held to the specification that the simulator's runs are
//! held to: `quorate_history::checkers`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use quorate::fence::FencingToken;
use quorate::{Owner, Redlock, compat};
use quorate_history::checkers::{check_only, fences, permits, windows};
use quorate_history::{Call, History, Hold, Lock, Made, Outcome, Share, Time};
use quorate_testkit::{Masters, eventually};

use crate::{SOON, ms, until};

const CLIENTS: usize = 4;
const TASKS: usize = 12;
/// How many guards there are before masters die, and after.
const GRANTS: usize = 80;
const TTL: Duration = Duration::from_secs(2);
const PERMITS: u32 = 3;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// What somebody asks for: a lock, and what the history calls it.
type Wish = (compat::UnfencedLock, Lock);

fn named(names: &[&str], share: Share) -> Lock {
    Lock { kind: "lock".to_owned(), names: names.iter().map(ToString::to_string).collect(), share }
}

fn only(name: &str) -> Lock {
    named(&[name], Share::Exclusive)
}

/// A kind of lock: draws what somebody asks for. And whether a lock of it may have an owner that is
/// named.
type Kind = (fn(&Redlock, &mut fastrand::Rng) -> Wish, bool);

const REENTRANT: Kind = (|redlock, _| (redlock.lock("a").into(), only("a")), true);
const MUTEX: Kind = (|redlock, _| (redlock.mutex("a").into(), only("a")), true);
const PLAIN_MUTEX: Kind = (|redlock, _| (redlock.plain_mutex("a"), only("a")), true);
const REDISSON: Kind = (|redlock, _| (redlock.redisson_lock("a"), only("a")), true);
const FAIR: Kind = (|redlock, _| (redlock.fair_lock("a").into(), only("a")), true);
/// Two of three read.
const READ_WRITE: Kind = (
    |redlock, dice| match dice.u8(..3) {
        0 => (redlock.write_lock("a").into(), only("a")),
        _ => (redlock.read_lock("a").into(), named(&["a"], Share::Shared)),
    },
    true,
);
const SEMAPHORE: Kind =
    (|redlock, _| (redlock.semaphore("a", PERMITS).into(), named(&["a"], Share::Permits(PERMITS))), false);
/// Locks over some of the names, and locks of one.
const SEVERAL: Kind = (
    |redlock, dice| {
        let names: Vec<_> = NAMES.into_iter().filter(|_| dice.bool()).collect();
        match names[..] {
            [] => (redlock.lock("b").into(), only("b")),
            [name] if dice.bool() => (redlock.lock(name).into(), only(name)),
            _ => (redlock.lock_all(&names).into(), named(&names, Share::Exclusive)),
        }
    },
    true,
);
/// A lock of a name that nobody else has, as if it were one that others have, too.
const NONE: Kind = (|redlock, dice| (redlock.lock(dice.u64(..).to_string()).into(), only("a")), false);

/// Everything that a crowd does, and what became of it.
struct Crowd {
    kind: Kind,
    begun: Instant,
    history: Mutex<History>,
    granted: AtomicUsize,
    is_enough: AtomicBool,
}

fn process(client: usize) -> String {
    format!("client {client}")
}

/// One that does something with locks, one after the other.
struct Actor<'a> {
    crowd: &'a Crowd,
    client: usize,
    redlock: &'a Redlock,
    me: Owner,
    dice: fastrand::Rng,
}

/// A guard while it is held.
struct Held {
    guard: compat::UnfencedGuard,
    named: Lock,
    asked: Time,
    granted: Time,
    /// The last moment at which it was seen to be valid: it was, at least until then.
    seen: Time,
}

impl Crowd {
    fn now(&self) -> Time {
        self.begun.elapsed()
    }

    fn note(&self, note: impl FnOnce(&mut History)) {
        note(&mut self.history.lock().unwrap());
    }
}

impl Held {
    /// Looks whether it is valid still.
    fn look(&mut self, now: Time) {
        if self.guard.is_valid() {
            self.seen = now;
        }
    }

    fn hold(&self, client: usize) -> Hold {
        Hold {
            lock: self.named.clone(),
            permit: self.guard.permit(),
            owner: self.guard.owner().to_string(),
            process: process(client),
            asked: self.asked,
            granted: self.granted,
            deadline: self.seen,
            given_back: Some(self.seen),
            free: None,
            lost: None,
            fence: self.guard.fencing_token_if_any().map(FencingToken::get),
        }
    }
}

impl Actor<'_> {
    async fn act(&mut self) {
        while !self.crowd.is_enough.load(Ordering::Relaxed) {
            let (lock, named) = self.crowd.kind.0(self.redlock, &mut self.dice);
            let lock = if self.crowd.kind.1 && self.dice.bool() { lock.owned_by(&self.me) } else { lock };
            let runs_out = self.dice.u8(..10) == 0;
            let asked = if runs_out { lock.clone().ttl(ms(300)).no_renewal() } else { lock.clone() };
            let Some(mut held) = self.acquire(asked, &named).await else { continue };
            self.work(&mut held, &lock).await;
            self.end(held, runs_out).await;
        }
    }

    /// Asks once, for some time, or until it changes its mind.
    async fn acquire(&mut self, lock: compat::UnfencedLock, named: &Lock) -> Option<Held> {
        let asked = self.crowd.now();
        let patience = ms(self.dice.u64(1..300));
        let outcome = match self.dice.u8(..4) {
            0 => Some(lock.try_acquire().await),
            1 => tokio::time::timeout(patience / 20, lock.acquire()).await.ok(),
            _ => Some(lock.wait(patience).acquire().await),
        };
        let granted = self.crowd.now();
        let why = String::new();
        let made = Made {
            process: process(self.client),
            number: 0,
            call: Call::Acquire { lock: named.clone(), ttl: TTL, wait: patience },
            invoked: asked,
            returned: Some(granted),
            outcome: match &outcome {
                Some(Ok(guard)) => Outcome::Granted {
                    owner: guard.owner().to_string(),
                    deadline: granted,
                    fence: None,
                    permit: guard.permit(),
                },
                Some(Err(_)) => Outcome::Failed { why },
                None => Outcome::Cancelled,
            },
        };
        self.crowd.note(|history| history.calls.push(made));
        let guard = outcome?.ok()?;
        self.crowd.granted.fetch_add(1, Ordering::Relaxed);
        Some(Held { guard, named: named.clone(), asked, granted, seen: granted })
    }

    /// Does this and that under the lock.
    async fn work(&mut self, held: &mut Held, lock: &compat::UnfencedLock) {
        for _ in 0..self.dice.u8(..4) {
            match self.dice.u8(..4) {
                0 => drop(held.guard.extend(ms(self.dice.u64(200..2_000))).await),
                1 => {
                    // The same owner enters once more; anybody else tries in vain, or gets another
                    // permit.
                    if let Some(inner) =
                        self.acquire(lock.clone().wait(Duration::ZERO), &held.named.clone()).await
                    {
                        self.end(inner, false).await;
                    }
                }
                _ => tokio::time::sleep(ms(self.dice.u64(..5))).await,
            }
            held.look(self.crowd.now());
        }
    }

    async fn end(&mut self, mut held: Held, runs_out: bool) {
        while runs_out && held.guard.is_valid() {
            held.look(self.crowd.now());
            tokio::time::sleep(ms(1)).await;
        }
        held.look(self.crowd.now());
        self.crowd.note(|history| history.holds.push(held.hold(self.client)));
        if self.dice.bool() {
            let _ = held.guard.release().await; // it may be over
        }
    }
}

/// Has a crowd do what is drawn for it, while two of five masters die half-way.
async fn happened(kind: Kind, masters: &mut Masters) -> History {
    let client = || crate::begin().masters(masters.urls()).ttl(TTL).timeout(ms(300)).build().unwrap();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client()).collect();
    let crowd = Crowd {
        kind,
        begun: Instant::now(),
        history: Mutex::default(),
        granted: AtomicUsize::new(0),
        is_enough: AtomicBool::new(false),
    };
    let granted = || crowd.granted.load(Ordering::Relaxed);
    let act = |task: usize| {
        let (crowd, client) = (&crowd, task % CLIENTS);
        let redlock = &clients[client];
        let (me, dice) = (redlock.owner(), fastrand::Rng::with_seed(task as u64));
        async move { Actor { crowd, client, redlock, me, dice }.act().await }
    };
    let die = async {
        until("guards", async || granted() >= GRANTS).await;
        masters[0].kill();
        masters[1].kill();
        let (died, before) = (crowd.now(), granted());
        until("guards of three masters", async || granted() >= before + GRANTS).await;
        crowd.is_enough.store(true, Ordering::Relaxed);
        died
    };
    let (_, died) = tokio::join!(join_all((0..TASKS).map(act)), die);
    let history = History { end: crowd.now(), ..crowd.history.into_inner().unwrap() };
    let windows = || history.holds.iter().filter(|hold| hold.granted < hold.window_end());
    let (before, after): (Vec<_>, Vec<_>) = windows().partition(|hold| hold.granted < died);
    println!("{} holds before, {} after, in {:.1?}", before.len(), after.len(), history.end);
    assert!(before.len() > GRANTS / 2 && after.len() > GRANTS / 2, "hardly anything happened");
    history
}

/// What is not as it must be.
fn violated(history: &History) -> Vec<&'static str> {
    let found = check_only(history, &[windows::NAME, permits::NAME, fences::NAME]);
    found.iter().for_each(|violation| println!("{violation}"));
    found.iter().map(|violation| violation.property).collect()
}

async fn is_as_specified(kind: Kind, room: u32) {
    let mut masters = Masters::start(5);
    assert_eq!(violated(&happened(kind, &mut masters).await), [""; 0]);
    // Everything may be had again, by one that comes now, and nothing else is there.
    let redlock = crate::begin().masters(masters.urls()).ttl(TTL).timeout(ms(300)).build().unwrap();
    let dice = &mut fastrand::Rng::with_seed(0);
    let mut guards = Vec::new();
    for _ in 0..room {
        guards.push(kind.0(&redlock, dice).0.wait(SOON).acquire().await.unwrap());
    }
    drop(guards);
    let left = || -> Vec<String> { masters.iter().skip(2).flat_map(|server| server.keys()).collect() };
    eventually(SOON, || if left().is_empty() { Ok(()) } else { Err(left()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_one_name_are_as_specified() {
    for kind in [REENTRANT, MUTEX, PLAIN_MUTEX, REDISSON, FAIR] {
        is_as_specified(kind, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_are_as_specified() {
    is_as_specified(READ_WRITE, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_is_as_specified() {
    is_as_specified(SEMAPHORE, PERMITS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_over_several_names_beside_those_of_one_are_as_specified() {
    is_as_specified(SEVERAL, 1).await;
}

/// The specification is one that can be violated: two have the same, and more than there are
/// permits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_excludes_nobody_is_found_out() {
    let mut masters = Masters::start(5);
    let mut history = happened(NONE, &mut masters).await;
    assert!(violated(&history).contains(&windows::NAME));
    history.holds.iter_mut().for_each(|hold| hold.lock.share = Share::Permits(PERMITS));
    assert!(violated(&history).contains(&permits::NAME));
}
