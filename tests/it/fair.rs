//! The fair lock: granted in the order of arrival, across processes; and what may not hold it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate::{Error, Guard, Redlock};
use quorate_testkit::{Masters, Proxy, RedisServer, cancel_at_every_poll, eventually};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::cancel::same_runtime;
use crate::faults::calls;
use crate::waiting::{queue, standing, waiter};
use crate::wake_ups::{LONG, clients, handed};
use crate::{PATIENT, SOON, answering, begin, builder, ms, on_all, patient, until};

/// How long whoever was called may take to ask, as the script has it.
pub(crate) const TIME_TO_ASK: Duration = Duration::from_secs(1);

/// Takes the lock, on every master.
async fn hold(masters: &Masters, redlock: &Redlock) -> Guard {
    let held = redlock.fair_lock("l").acquire().await.unwrap();
    on_all(masters).await;
    held
}

/// A waiter of each of these clients, in this order: each stands in the queues before the next one
/// comes.
async fn in_order(masters: &Masters, clients: &[Redlock]) -> Vec<JoinHandle<Result<Guard, Error>>> {
    let mut waiters = Vec::new();
    for client in clients {
        let standing_before = queue(&masters[0]).len();
        waiters.push(waiter(client.fair_lock("l")).await);
        standing(masters.iter(), standing_before + 1).await;
    }
    waiters
}

/// The order in which they get the lock, each for a moment.
async fn order(waiters: Vec<JoinHandle<Result<Guard, Error>>>) -> Vec<usize> {
    let (turn, mut turns) = mpsc::unbounded_channel();
    let count = waiters.len();
    for (i, waiting) in waiters.into_iter().enumerate() {
        let turn = turn.clone();
        tokio::spawn(async move {
            let guard = waiting.await.unwrap().unwrap();
            turn.send(i).unwrap();
            tokio::time::sleep(ms(2)).await; // it works
            guard.release().await.unwrap();
        });
    }
    let mut order = Vec::new();
    for _ in 0..count {
        order.push(tokio::time::timeout(SOON, turns.recv()).await.expect("a turn").unwrap());
    }
    order
}

/// Somebody asks and asks, without waiting, until it is told to stop. How often it was refused, and
/// whether it ever got the lock.
fn hammer(redlock: &Redlock, stop: &Arc<AtomicBool>) -> JoinHandle<(u32, bool)> {
    let (lock, stop) = (redlock.fair_lock("l"), stop.clone());
    tokio::spawn(async move {
        let mut refused = 0;
        while !stop.load(Ordering::SeqCst) {
            match lock.try_acquire().await {
                Err(Error::Held { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
                Ok(_) => return (refused, true),
            }
        }
        (refused, false)
    })
}

/// They get it in their order, and nobody else before. The last one keeps it until that is known.
async fn in_turn(
    mut waiters: Vec<JoinHandle<Result<Guard, Error>>>,
    hammering: Vec<JoinHandle<(u32, bool)>>,
    stop: &AtomicBool,
) -> Guard {
    let last = waiters.pop().unwrap();
    let in_order: Vec<usize> = (0..waiters.len()).collect();
    assert_eq!(order(waiters).await, in_order);
    let last = tokio::time::timeout(SOON, last).await.unwrap().unwrap().unwrap();
    stop.store(true, Ordering::SeqCst);
    for newcomer in hammering {
        let (refused, barged) = newcomer.await.unwrap();
        assert!(refused > 5 && !barged, "{refused} refused; barged: {barged}");
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_granted_in_the_order_of_arrival_whoever_else_asks() {
    for count in [1, 3, 5] {
        let masters = Masters::start(count);
        let clients = clients(&masters, 9);
        let held = hold(&masters, &clients[0]).await;
        let waiters = in_order(&masters, &clients[1..7]).await;
        let stop = Arc::default();
        let hammering = clients[7..].iter().map(|newcomer| hammer(newcomer, &stop)).collect();
        for newcomer in &clients[7..] {
            answering(newcomer, count).await;
        }
        let before = calls(&masters[0], "evalsha");
        until("newcomers", async || calls(&masters[0], "evalsha") > before + 50).await;
        held.release().await.unwrap();
        let last = in_turn(waiters, hammering, &stop).await;
        last.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

/// In each process they stand in line; between the lines it is the order of arrival all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_a_few_processes_are_granted_in_the_order_of_all() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 4);
    let held = hold(&masters, &clients[3]).await;
    let mut waiters = in_order(&masters, &clients[..3]).await;
    for client in [2, 0, 0, 1, 2, 1, 0, 2, 1] {
        waiters.push(waiter(clients[client].fair_lock("l")).await);
        tokio::time::sleep(ms(50)).await; // apart in time, by each client's word
    }
    held.release().await.unwrap();
    assert_eq!(order(waiters).await, (0..12).collect::<Vec<_>>());
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn who_is_refused_for_somebody_who_waits_is_told_whom() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    for _ in 0..10 {
        let held = hold(&masters, &clients[0]).await;
        let _ears = frozen(&masters, 1);
        held.release().await.unwrap();
        // The last of them to hear of the release would name who had it.
        let is_free = |server: &RedisServer| !server.keys().contains(&"quorate:{l}".to_owned());
        until("the release on every master", async || masters.iter().all(is_free)).await;
        let error = match clients[1].fair_lock("l").try_acquire().await {
            Err(error) => error,
            Ok(guard) => {
                guard.release().await.unwrap(); // this machine was slow, and the time to ask is over
                masters.iter().for_each(|server| server.command(&["DEL", "quorate:waiting:{l}"]));
                eventually(SOON, || masters.empty()).await;
                continue;
            }
        };
        let Error::Held { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(*holder.owner, format!("{FROZEN}0:1"));
        assert!(holder.remaining.unwrap() <= TIME_TO_ASK, "{error}");
        assert!(clients[1].fair_lock("l").inspect().await.unwrap().is_free(), "nobody has it");
        return;
    }
    panic!("it was never refused");
}

#[tokio::test]
async fn whoever_has_it_enters_it_past_those_who_wait() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    let lock = clients[0].fair_lock("l").owned_by(&clients[0].owner());
    let outer = lock.acquire().await.unwrap();
    let waiting = in_order(&masters, &clients[1..]).await.remove(0);
    let inner = tokio::time::timeout(PATIENT, lock.try_acquire()).await.unwrap().unwrap();
    outer.release().await.unwrap();
    assert!(inner.is_valid() && !waiting.is_finished());
    inner.release().await.unwrap();
    handed(waiting).await.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// The process of the first one dies: nobody releases its place.
#[tokio::test]
async fn a_dead_waiter_is_passed_over_at_once() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 2);
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let held = hold(&masters, &clients[0]).await;
        let (process, doomed) = process(&masters);
        let first = waiter(doomed.fair_lock("l")).await;
        standing(masters.iter(), 1).await;
        let second = in_order(&masters, &clients[1..]).await.remove(0);
        drop(process);
        let listening = || crate::waiting::listeners(&masters);
        until("its connections to end", async || listening() == 5).await;
        let begun = Instant::now();
        held.release().await.unwrap();
        let next = handed(second).await;
        quickest = quickest.min(begun.elapsed());
        next.release().await.unwrap();
        first.abort();
        eventually(SOON, || masters.empty()).await;
    }
    assert!(quickest < TIME_TO_ASK / 2, "the quickest hand-over took {quickest:?}");
}

const FROZEN: &str = "00000000-0000-4000-8000-00000000000";

/// So many stand first, hear that they are called, and do not ask: their processes stand still.
fn frozen(masters: &Masters, count: usize) -> Vec<redis::Connection> {
    frozen_as("fair", "", masters, count)
}

/// The same in the queue of a lock of this kind, whose tickets begin so.
pub(crate) fn frozen_as(kind: &str, begins: &str, masters: &Masters, count: usize) -> Vec<redis::Connection> {
    let mut ears = Vec::new();
    for server in masters.iter() {
        for i in 0..count {
            let mut ear = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
            redis::cmd("SUBSCRIBE").arg(format!("quorate:wake:{FROZEN}{i}")).exec(&mut ear).unwrap();
            ears.push(ear);
            crate::queue_up(server, kind, &format!("{begins}{FROZEN}{i}:1"), i as u64);
        }
    }
    ears
}

#[tokio::test]
async fn a_waiter_that_stands_still_is_passed_over_within_its_time() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    for still in [1, 2] {
        let (bound, mut quickest) = (TIME_TO_ASK * 3 * still as u32 + ms(1500), Duration::MAX);
        for _ in 0..3 {
            let held = hold(&masters, &clients[0]).await;
            let ears = frozen(&masters, still);
            let waiting = waiter(clients[1].fair_lock("l")).await;
            standing(masters.iter(), still + 1).await;
            let begun = Instant::now();
            held.release().await.unwrap();
            let guard = tokio::time::timeout(SOON, waiting).await.expect("its turn").unwrap().unwrap();
            let took = begun.elapsed();
            assert!(took >= TIME_TO_ASK * still as u32, "after {took:?}: its time was not over");
            quickest = quickest.min(took);
            guard.release().await.unwrap();
            drop(ears);
            eventually(SOON, || masters.empty()).await;
            if quickest < bound {
                break; // a busy machine may take longer now and then
            }
        }
        assert!(quickest < bound, "past {still}, the quickest of three took {quickest:?}");
    }
}

/// What stands for a process: a thread with a runtime, which ends when this is dropped.
struct Process {
    runtime: Handle,
    _lives: oneshot::Sender<()>,
}

/// A process, and its client.
fn process(masters: &Masters) -> (Process, Redlock) {
    let (begun, begins) = std::sync::mpsc::channel();
    let (lives, dies) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        begun.send(runtime.handle().clone()).unwrap();
        let _ = runtime.block_on(dies);
    });
    let runtime = begins.recv().unwrap();
    let client = builder(masters).wait(LONG).runtime(runtime.clone()).build().unwrap();
    (Process { runtime, _lives: lives }, client)
}

/// It is first again: it did not come anew.
#[tokio::test]
async fn whoever_stood_still_has_its_turn_when_it_goes_on() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let (process, still) = process(&masters);
    let held = hold(&masters, &clients[0]).await;
    let first = in_order(&masters, &[still]).await.remove(0);
    let mut others = in_order(&masters, &clients[1..]).await;
    let (go_on, until_it_goes_on) = std::sync::mpsc::channel::<()>();
    let (stands_still, still) = oneshot::channel();
    process.runtime.spawn(async move {
        stands_still.send(()).unwrap();
        until_it_goes_on.recv()
    });
    still.await.unwrap();
    held.release().await.unwrap();
    let second = tokio::time::timeout(SOON, others.remove(0)).await.unwrap().unwrap().unwrap();
    go_on.send(()).unwrap();
    // A master on which the second asked too early has it in its queue still; a majority decides.
    until("the first to stand before the third on a majority", async || {
        masters.iter().filter(|server| queue(server).len() == 2).count() >= 2
    })
    .await;
    second.release().await.unwrap();
    assert_eq!(order(vec![others.remove(0), first]).await, [1, 0]);
    drop(process);
}

/// From the release to the grant it takes the way of the release to the masters, of the call to the
/// next one, and of its ask and the answers: twice there and back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_off_takes_two_round_trips() {
    const DELAY: Duration = Duration::from_millis(40);
    let masters = Masters::start(3);
    let mut far = Vec::new();
    for server in masters.iter() {
        far.push(Proxy::start_slow(server.address(), DELAY).await);
    }
    let urls: Vec<String> = far.iter().map(Proxy::url).collect();
    let client = || begin().masters(urls.clone()).ttl(LONG).timeout(PATIENT).wait(LONG).build().unwrap();
    let clients = [client(), client(), client()];
    let bound = DELAY * 5; // four ways, and one for what this machine takes
    let mut others = Vec::new();
    for _ in 0..20 {
        let held = hold(&masters, &clients[0]).await;
        let mut waiters = in_order(&masters, &clients[1..]).await;
        let scripts = || -> u32 { masters.iter().map(|server| calls(server, "evalsha")).sum() };
        let before = scripts();
        let begun = Instant::now();
        drop(held);
        let next = tokio::time::timeout(SOON, waiters.remove(0)).await.unwrap().unwrap().unwrap();
        let (took, asked) = (begun.elapsed(), scripts() - before);
        next.release().await.unwrap();
        handed(waiters.remove(0)).await.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
        if took < bound && asked <= 9 {
            return; // a release, an acquire, and a look of another one
        }
        others.push((took, asked));
    }
    panic!("none took less than {bound:?} and 9 calls at most: {others:?}");
}

/// Nobody releases, so nobody calls: the oldest gets it all the same, whoever looks first.
#[tokio::test]
async fn what_a_dead_holder_had_goes_to_the_oldest() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 4);
    // All three stand in the queues before it is over, on a busy machine as well.
    let held = clients[0].fair_lock("l").ttl(ms(6_000)).no_renewal().acquire().await.unwrap();
    on_all(&masters).await;
    let waiters = in_order(&masters, &clients[1..]).await;
    let stop = Arc::default();
    let hammering = vec![hammer(&patient(&masters), &stop)];
    in_turn(waiters, hammering, &stop).await.release().await.unwrap();
    drop(held);
}

#[tokio::test]
async fn the_order_stands_with_two_of_five_masters_down() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 5);
    let held = hold(&masters, &clients[0]).await;
    let waiters = in_order(&masters, &clients[1..]).await;
    (0..2).for_each(|i| masters[i].kill());
    held.release().await.unwrap();
    assert_eq!(order(waiters).await, [0, 1, 2, 3]);
}

/// It goes away before it asks, after it, or when it has the lock.
#[tokio::test]
async fn a_waiter_that_goes_away_costs_the_others_nothing() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 4);
    for after in [Duration::ZERO, ms(1), ms(100)] {
        let held = hold(&masters, &clients[0]).await;
        let mut waiters = in_order(&masters, &clients[1..]).await;
        let first = waiters.remove(0);
        held.release().await.unwrap();
        tokio::time::sleep(after).await;
        first.abort();
        drop(first); // a task that has ended keeps what it came to, which may be a guard, for whoever asks for it
        assert_eq!(order(waiters).await, [0, 1], "after {after:?}");
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    let held = redlock.fair_lock("l").owned_by(&redlock.owner()).acquire().await.unwrap();
    let acquire = || async { redlock.fair_lock("l").label("its job").acquire().await };
    let polls = cancel_at_every_poll(300, acquire, async |_, outcome| assert!(outcome.is_none())).await;
    assert_eq!(polls, None);
    held.release().await.unwrap();
    redlock.fair_lock("l").wait(SOON).acquire().await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn an_owner_that_has_the_name_as_another_kind_does_not_enter() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let (lock, fair) = (redlock.lock("l").owned_by(&me), redlock.fair_lock("l").owned_by(&me));
    for (its, other) in [(&lock, &fair), (&fair, &lock)] {
        let held = its.acquire().await.unwrap();
        on_all(&masters).await;
        let before = masters.keys();
        for refused in [other.try_acquire().await, other.acquire().await] {
            assert!(matches!(refused, Err(Error::AnotherKind { .. })), "{refused:?}");
        }
        assert_eq!(masters.keys(), before);
        assert!(its.is_held_by(&me).await.unwrap() && !other.is_held_by(&me).await.unwrap());
        held.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_clients_that_all_come_at_once_again_and_again_get_their_turns() {
    let masters = Masters::start(5);
    let taken = Arc::new(AtomicBool::new(false));
    let mut all = JoinSet::new();
    for client in clients(&masters, 16) {
        let (lock, taken) = (client.fair_lock("l"), taken.clone());
        all.spawn(async move {
            for _ in 0..10 {
                let guard = lock.acquire().await.unwrap();
                assert!(!taken.swap(true, Ordering::SeqCst), "two have it");
                tokio::time::sleep(ms(2)).await;
                taken.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        });
    }
    tokio::time::timeout(SOON * 2, all.join_all()).await.expect("all have had their turns");
    eventually(SOON, || masters.empty()).await;
}
