//! A loss is told before it happens, and no single master's trouble is one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use futures::FutureExt;
use quorate::{Error, Guard, Loss, Moment, Redlock};
use quorate_testkit::{Masters, Proxy, eventually};

use crate::clock::{Jumping, NOTICE};
use crate::renewal::{renewed, scripts_run};
use crate::{PATIENT, SOON, TTL, all_new, answering, builder, granted_since, ms, on_all, patient, until};

/// Waits for the loss, and tells its cause.
async fn lost(guard: &Guard) -> Loss {
    match tokio::time::timeout(SOON, guard.lost()).await {
        Ok(Error::Lost { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

/// Notes when it was dropped.
struct Dropped(Redlock, Arc<std::sync::Mutex<Option<Moment>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.1.lock().unwrap() = Some(self.0.now());
    }
}

/// Waits for the loss in each way there is, and checks that each was in time.
async fn is_told_in_time(redlock: Redlock, guard: Arc<Guard>) {
    let dropped = Arc::default();
    let work = Dropped(redlock.clone(), Arc::clone(&dropped));
    let running = async {
        let work = async move {
            let _work = work;
            std::future::pending::<()>().await
        };
        let end = guard.run(work).await;
        assert!(matches!(end, Err(Error::Lost { cause: Loss::Expired, .. })), "{end:?}");
    };
    let hearing = async {
        assert!(matches!(guard.lost().await, Error::Lost { cause: Loss::Expired, .. }));
        redlock.now()
    };
    let token = async {
        guard.lost_token().cancelled_owned().await;
        redlock.now()
    };
    let ((), heard, cancelled) = tokio::join!(running, hearing, token);
    let deadline = guard.deadline();
    let dropped = dropped.lock().unwrap().expect("the work was dropped");
    for (what, when) in [("lost()", heard), ("the token", cancelled), ("the drop", dropped)] {
        assert!(when < deadline, "{what} came {:?} after the deadline", when.since(deadline));
    }
}

/// A hundred leases at all stages of their course when the masters die.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_majority_dies_every_loss_is_told_before_the_deadline_and_nobody_is_granted_before_it() {
    const LEASES: usize = 100;
    let clock = Arc::new(Jumping::default());
    let mut masters = Masters::start(5);
    let clients: Vec<_> = (0..4).map(|_| all_new(&masters).clock(clock.clone()).build().unwrap()).collect();
    let rival = all_new(&masters).build().unwrap();
    for client in clients.iter().chain([&rival]) {
        answering(client, 5).await;
    }
    let mut guards = Vec::new();
    for i in 0..LEASES {
        guards.push(Arc::new(clients[i % 4].lock(format!("l{i}")).acquire().await.unwrap()));
        clock.jump(TTL / 3 / LEASES as u32);
    }
    let begin = |(i, guard): (usize, &Arc<Guard>)| {
        tokio::spawn(is_told_in_time(clients[i % 4].clone(), guard.clone()))
    };
    let losses: Vec<_> = guards.iter().enumerate().map(begin).collect();
    let before: Vec<_> = guards.iter().map(|guard| guard.deadline()).collect();
    for _ in 0..LEASES {
        clock.jump(TTL / 3 / LEASES as u32);
        tokio::time::sleep(ms(10)).await; // so that each is renewed at a stage of its own
    }
    for (guard, before) in guards.iter().zip(before) {
        until("a renewal", async || guard.deadline() > before).await;
    }
    let rivalry = guards.iter().enumerate().map(|(i, guard)| {
        let (lock, guard) = (rival.lock(format!("l{i}")), guard.clone());
        tokio::spawn(async move {
            loop {
                let granted = lock.try_acquire().await;
                let both = granted.is_ok() && guard.is_valid();
                assert!(!both, "granted to another while it is valid");
                if let Ok(granted) = granted {
                    return granted.release().await.unwrap();
                }
                tokio::time::sleep(ms(50)).await;
            }
        })
    });
    let rivalry: Vec<_> = rivalry.collect();

    (0..3).for_each(|i| masters[i].kill());
    clock.jump(TTL / 2);
    let failed = async || guards.iter().all(|guard| guard.renewal_error().is_some());
    until("renewals that fail", failed).await;
    let mut losses: Vec<_> = guards.iter().zip(losses).collect();
    losses.sort_by_key(|(guard, _)| guard.deadline());
    for (guard, loss) in losses {
        clock.stand_at(guard.deadline() - NOTICE);
        tokio::time::timeout(SOON, loss).await.expect("a loss").unwrap();
    }
    clock.jump(NOTICE);
    assert!(guards.iter().all(|guard| !guard.is_valid()));
    (0..3).for_each(|i| masters[i].restart());
    for granted in rivalry {
        tokio::time::timeout(SOON, granted).await.expect("a grant").unwrap();
    }
    for guard in &guards {
        assert!(matches!(guard.extend(TTL).await, Err(Error::Lost { .. })));
    }
}

/// Frozen masters keep their keys, and go on when the lease is over.
#[tokio::test]
async fn a_lease_that_a_frozen_majority_did_not_renew_goes_to_another_after_its_deadline() {
    let masters = Masters::start_with_clocks(5, &[]);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let rival = builder(&masters).timeout(ms(400)).build().unwrap();
    answering(&rival, 5).await;
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    (0..3).for_each(|i| masters[i].freeze());
    let lock = rival.lock("l").wait(SOON);
    let mut granted = std::pin::pin!(lock.acquire());
    clock.stand_at(guard.deadline() - NOTICE);
    let loss = tokio::select! {
        loss = lost(&guard) => loss,
        _ = &mut granted => panic!("granted to another before the loss was told"),
    };
    assert_eq!(loss, Loss::Expired);
    assert!(redlock.now() < guard.deadline());
    clock.jump(NOTICE);
    (0..3).for_each(|i| masters[i].thaw());
    masters.iter().for_each(|server| server.step_clock(TTL.as_millis() as i64));
    let granted = granted.await.unwrap();
    assert!(!guard.is_valid(), "both have it");
    assert!(granted.is_valid());
}

#[tokio::test]
async fn a_release_after_a_loss_that_was_told_says_the_same_before_the_lease_is_over() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).timeout(ms(300)).build().unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    (0..2).for_each(|i| masters[i].freeze());
    clock.stand_at(guard.deadline() - NOTICE);
    assert_eq!(lost(&guard).await, Loss::Expired);
    let released = guard.release().await.unwrap_err();
    assert!(matches!(released, Error::Lost { cause: Loss::Expired, .. }), "{released}");
}

/// Two of five could be a mistake of theirs; three cannot.
#[tokio::test]
async fn a_lease_that_most_masters_deny_is_lost_at_the_next_renewal() {
    let masters = Masters::start(5);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").renew_every(ms(200)).acquire().await.unwrap();
    on_all(&masters).await;
    let work = guard.run(std::future::pending::<()>());
    let denying = async {
        (0..2).for_each(|i| granted_since(&masters[i]));
        for _ in 0..2 {
            renewed(&guard).await;
        }
        assert!(!guard.lost_token().is_cancelled());
        granted_since(&masters[2]);
        assert_eq!(lost(&guard).await, Loss::NotOurs);
    };
    let (end, ()) = tokio::time::timeout(SOON, futures::future::join(work, denying)).await.unwrap();
    assert!(matches!(end, Err(Error::Lost { cause: Loss::NotOurs, .. })), "{end:?}");
    assert!(!guard.is_valid() && guard.remaining().is_zero() && guard.lost_token().is_cancelled());
    drop(guard);
    until("what is left to be released", async || masters.empty().is_ok()).await;
}

/// Nothing that a silent master could say would change it.
#[tokio::test]
async fn a_lease_that_most_masters_deny_is_lost_without_waiting_for_those_that_are_silent() {
    let timeout = ms(15_000);
    let masters = Masters::start(5);
    let redlock = builder(&masters).timeout(timeout).build().unwrap();
    let guard = redlock.lock("l").renew_every(ms(500)).acquire().await.unwrap();
    on_all(&masters).await;
    renewed(&guard).await;
    (3..5).for_each(|i| masters[i].freeze());
    (0..3).for_each(|i| granted_since(&masters[i]));
    let begun = redlock.now();
    assert_eq!(lost(&guard).await, Loss::NotOurs);
    let took = redlock.now().since(begun);
    assert!(took < timeout / 2, "it waited {took:?} for the silent masters");
    (3..5).for_each(|i| masters[i].thaw());
}

#[tokio::test]
async fn a_lock_that_another_client_broke_is_lost_at_the_next_renewal() {
    let masters = Masters::start(5);
    let (redlock, other) = (patient(&masters), patient(&masters));
    let guard = redlock.lock("l").renew_every(ms(200)).acquire().await.unwrap();
    on_all(&masters).await;
    other.lock("l").force_release(&guard.owner()).await.unwrap();
    let taken = other.lock("l").renew_every(ms(200)).try_acquire().await.unwrap();
    let Ok(loss) = tokio::time::timeout(SOON, guard.lost()).await else { panic!("not told") };
    let Error::Lost { cause: Loss::NotOurs, votes, .. } = &loss else { panic!("{loss}") };
    assert_eq!(votes.len(), 5, "it tells what each master said");
    assert!(!guard.is_valid());
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    renewed(&taken).await; // it is not disturbed by a release of the one who lost it
    taken.release().await.unwrap();
}

#[tokio::test]
async fn a_minority_that_is_frozen_slow_or_dead_is_no_loss() {
    let masters = Masters::start(5);
    let slow = Proxy::start_slow(masters[4].address(), ms(100)).await;
    let mut urls = masters.urls();
    urls[4] = slow.url();
    let redlock = crate::begin().masters(urls).ttl(TTL).timeout(PATIENT).build().unwrap();
    answering(&redlock, 5).await;
    let guard = redlock.lock("l").renew_every(ms(250)).acquire().await.unwrap();
    let holds = async || {
        for _ in 0..3 {
            renewed(&guard).await;
        }
        assert!(guard.is_valid() && !guard.lost_token().is_cancelled());
        assert_eq!(guard.lost().now_or_never().map(|loss| loss.to_string()), None);
    };
    holds().await; // with a slow one
    masters[0].freeze();
    holds().await; // and a frozen one
    masters[0].thaw();
    masters[0].kill();
    holds().await; // which is dead now
    masters[4].kill();
    holds().await; // and so is the slow one
    guard.release().await.unwrap();
}

#[tokio::test]
async fn work_that_is_done_in_time_has_its_output_and_the_guard_still_holds() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").renew_every(ms(200)).acquire().await.unwrap();
    let work = async {
        for _ in 0..4 {
            renewed(&guard).await;
        }
        "done"
    };
    assert_eq!(guard.run(work).await.unwrap(), "done");
    guard.release().await.unwrap();
}

/// The work blocks its thread past the lease. What it comes to cannot be trusted.
#[tokio::test]
async fn work_that_ends_after_the_lease_is_lost() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let guard = redlock.lock("l").ttl(ms(600)).no_renewal().acquire().await.unwrap();
    let late = async {
        std::thread::sleep(ms(700));
    };
    let end = guard.run(late).await;
    assert!(matches!(end, Err(Error::Lost { cause: Loss::Expired, work_ended: true, .. })), "{end:?}");
    let never = async { panic!("it is run though the lease is over") };
    let end = guard.run(never).await;
    assert!(matches!(end, Err(Error::Lost { work_ended: false, .. })), "{end:?}");
}

#[tokio::test]
async fn work_that_fails_is_told_apart_from_a_lock_that_is_lost() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    answering(&redlock, 3).await;
    let guard = redlock.lock("l").ttl(ms(2_000)).no_renewal().acquire().await.unwrap();
    let failed: Result<(), &str> = guard.run(async { Err("disk full") }).await.unwrap();
    assert_eq!(failed, Err("disk full"));
    assert!(guard.is_valid());
    let lost = guard.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { cause: Loss::Expired, work_ended: false, .. }), "{lost:?}");
}

/// The guard is in a struct, and its watcher somewhere else.
#[tokio::test]
async fn a_watcher_hears_of_the_release_too() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let me = redlock.owner();
    let lock = redlock.lock("l").owned_by(&me);
    let outer = lock.acquire().await.unwrap();
    let inner = lock.acquire().await.unwrap();
    let mut watcher = tokio::spawn(outer.lost());
    inner.release().await.unwrap();
    assert!(outer.is_valid() && (&mut watcher).now_or_never().is_none(), "another guard is left");
    drop(outer);
    let ended = tokio::time::timeout(SOON, watcher).await.expect("it ends").unwrap();
    assert!(matches!(ended, Error::Lost { cause: Loss::Released, .. }), "{ended}");
    assert_eq!(ended.to_string(), "lock \"l\" was released");
}

#[tokio::test]
async fn a_suspend_past_the_lease_is_noticed_without_a_call() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let renewing = redlock.lock("renewing").acquire().await.unwrap();
    let fixed = redlock.lock("fixed").ttl(TTL).no_renewal().acquire().await.unwrap();
    let tokens = [renewing.lost_token(), fixed.lost_token()];
    clock.jump(TTL);
    let began = std::time::Instant::now();
    for token in tokens {
        tokio::time::timeout(SOON, token.cancelled()).await.expect("it is told");
    }
    assert!(began.elapsed() < TTL / 3, "told at the next renewal only, after {:?}", began.elapsed());
    assert!(!renewing.is_valid() && !fixed.is_valid());
    assert_eq!(lost(&renewing).await, Loss::Expired);
}

#[tokio::test]
async fn a_lease_that_is_told_to_be_lost_stands_to_its_deadline_and_is_not_extended() {
    let masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    let guard = redlock.lock("l").ttl(TTL * 10).no_renewal().acquire().await.unwrap();
    on_all(&masters).await;
    clock.jump(guard.remaining() - ms(950)); // notice of a second is given
    assert_eq!(lost(&guard).await, Loss::Expired);
    let deadline = guard.deadline();
    let before = scripts_run(&masters[0]);
    assert!(matches!(guard.extend(TTL * 20).await, Err(Error::Lost { cause: Loss::Expired, .. })));
    assert_eq!(scripts_run(&masters[0]), before, "the masters were asked");
    assert_eq!(guard.deadline(), deadline);
    until("the end", async || !guard.is_valid()).await;
    assert_eq!(masters.keys().len(), 3, "the keys outlive the lease");
}

/// The votes for a renewal come in after the loss was told: whoever heard of it stopped.
#[tokio::test]
async fn a_renewal_that_is_granted_after_the_loss_was_told_brings_nothing_back() {
    let masters = Masters::start(5);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).timeout(ms(9_000)).clock(clock.clone()).build().unwrap();
    let guard = redlock.lock("l").renew_every(ms(300)).acquire().await.unwrap();
    renewed(&guard).await;
    on_all(&masters).await;
    (0..3).for_each(|i| masters[i].freeze());
    let asked = scripts_run(&masters[4]);
    until("a renewal on its way", async || scripts_run(&masters[4]) > asked).await;
    clock.jump(guard.remaining() - ms(900));
    let deadline = guard.deadline();
    assert_eq!(lost(&guard).await, Loss::Expired);
    (0..3).for_each(|i| masters[i].thaw());
    let ran: Vec<_> = (0..3).map(|i| scripts_run(&masters[i])).collect();
    answering(&redlock, 5).await; // behind the renewal
    assert!(guard.deadline() <= deadline, "it came back");
    assert!(guard.lost_token().is_cancelled());
    assert!(matches!(guard.lost().now_or_never(), Some(Error::Lost { cause: Loss::Expired, .. })));
    until("the end", async || !guard.is_valid()).await;
    assert!(ran.iter().all(|ran| *ran > 0));
}

/// Where the part of the process that stops is played.
const STAGE: &str = "QUORATE_TEST_STAGE";

/// What the process looks like that is stopped: it waits for a line, looks at its guard before
/// anything else, and says what it saw.
#[tokio::test]
#[ignore = "the part of another process: the next test runs it"]
async fn a_process_that_is_stopped() {
    let Ok(urls) = std::env::var(STAGE) else { return };
    let redlock = crate::begin().masters(urls.split(',')).timeout(ms(300)).build().unwrap();
    let guard = redlock.lock("l").ttl(ms(1_000)).acquire().await.unwrap();
    let mut lines = std::io::stdin().lines();
    println!("holding");
    lines.next();
    let valid = guard.is_valid();
    let lost = guard.lost().now_or_never();
    let ran = guard.run(async {}).now_or_never().expect("it is over at once").is_ok();
    println!("looked valid={valid} lost={} ran={ran}", lost.is_some());
    lines.next(); // the process ends without a release
    std::process::exit(0);
}

struct Stopped {
    process: Child,
    input: ChildStdin,
    output: std::io::Lines<BufReader<ChildStdout>>,
}

impl Stopped {
    fn start(masters: &Masters) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "loss::a_process_that_is_stopped", "--ignored", "--nocapture"])
            .env(STAGE, masters.urls().join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input, output }
    }

    /// The next line that begins so; the test harness writes others.
    fn says(&mut self, word: &str) -> String {
        self.output
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.find(word).map(|at| line[at..].to_owned()))
            .unwrap_or_else(|| panic!("it never said {word:?}"))
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill {signal} {}", self.process.id());
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_process_that_was_stopped_for_two_ttls_finds_its_lease_lost_at_the_first_look() {
    let masters = Masters::start(3);
    let mut stopped = Stopped::start(&masters);
    stopped.says("holding");
    stopped.signal("-STOP");
    until("the process to stand", async || stopped.is_stopped()).await;
    tokio::time::sleep(ms(2_000)).await;
    let redlock = patient(&masters);
    let guard = redlock.lock("l").try_acquire().await.unwrap();
    writeln!(stopped.input, "look").unwrap(); // it is there when the process goes on
    stopped.signal("-CONT");
    assert_eq!(stopped.says("looked"), "looked valid=false lost=true ran=false");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}
