//! Leader election: one leads, the next one follows, and whoever looks sees that.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::poll;
use quorate::config::MAX_WAIT;
use quorate::{Election, Error, Leadership, Loss, Moment, Observed, Observer, Owner, Redlock, Standing};
use quorate_testkit::{EmbeddedMaster, Masters, Resp, cancel_at_every_poll, eventually};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cancel::same_runtime;
use crate::clock::{Jumping, NOTICE, masters_by};
use crate::renewal::scripts_run;
use crate::waiting::{listeners, standing};
use crate::{SOON, TTL, all_new, answering, begin_new, ms, on_all, patient, until};

/// Fails rather than hanging.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited {SOON:?} for {what}"),
    }
}

/// Begins a campaign, and waits until it is in the queue of every master.
async fn candidate(masters: &Masters, election: Election) -> JoinHandle<Result<Leadership, Error>> {
    let campaign = tokio::spawn(async move { election.campaign().await });
    standing(masters.iter(), 1).await;
    campaign
}

/// An observer that looks often.
fn observer(redlock: &Redlock) -> Observer {
    redlock.election("l").look_every(ms(20)).observe().unwrap()
}

async fn told(observer: &mut Observer) -> Observed {
    soon("a change", observer.changed()).await.unwrap()
}

/// Waits to be told of a leader: this one, and no other.
async fn told_of(observer: &mut Observer, leadership: &Leadership) {
    loop {
        // A look may have fallen between two leaders.
        if let Observed::Leader(leader) = told(observer).await {
            assert_eq!(*leader.owner, *leadership.owner().to_string());
            assert_eq!(leader.term, Some(leadership.term()));
            return;
        }
    }
}

/// Waits to be told that nobody leads, whatever it is told before.
async fn told_of_nobody(observer: &mut Observer) {
    while told(observer).await != Observed::Nobody {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_candidates_one_leads_at_a_time_and_terms_rise() {
    const CANDIDATES: usize = 24;
    let masters = Masters::start(3);
    let clients: Vec<_> = (0..4).map(|_| patient(&masters)).collect();
    let leading = Arc::new(AtomicUsize::new(0));
    let terms = Arc::new(Mutex::new(Vec::new()));
    let candidates: Vec<_> = (0..CANDIDATES)
        .map(|i| {
            let (election, leading, terms) = (clients[i % 4].election("l"), leading.clone(), terms.clone());
            tokio::spawn(async move {
                let leadership = election.campaign().await.unwrap();
                assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0, "two lead");
                terms.lock().unwrap().push(leadership.term());
                tokio::time::sleep(ms(5)).await; // time for a second one to come
                assert!(leadership.is_leader() && leadership.remaining() > ms(1_000));
                leading.fetch_sub(1, Ordering::SeqCst);
                match i % 2 {
                    0 => leadership.resign().await.unwrap(),
                    _ => drop(leadership),
                }
            })
        })
        .collect();
    for candidate in candidates {
        soon("its turn", candidate).await.unwrap();
    }
    let terms = terms.lock().unwrap().clone();
    assert_eq!(terms.len(), CANDIDATES);
    assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
    eventually(SOON, || masters.empty()).await;
}

/// Far sooner than the TTL, or an observer's look.
#[tokio::test]
async fn a_leader_that_resigns_or_is_dropped_is_followed_at_once() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    let mut leadership = here.election("l").campaign().await.unwrap();
    on_all(&masters).await;
    for resigns in [true, false] {
        let next = candidate(&masters, there.election("l")).await;
        let (term, token) = (leadership.term(), leadership.lost_token());
        match resigns {
            true => leadership.resign().await.unwrap(),
            false => drop(leadership),
        }
        soon("the token", token.cancelled()).await;
        leadership = soon("the next leader", next).await.unwrap().unwrap();
        assert!(leadership.term() > term);
    }
}

#[tokio::test]
async fn a_leader_that_died_is_followed_when_its_lease_is_over() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    // Nobody renews it, and nobody releases it.
    let dead = ManuallyDrop::new(here.lock("l").ttl(ms(4_000)).no_renewal().acquire().await.unwrap());
    let next = soon("the next leader", there.election("l").campaign()).await.unwrap();
    assert!(!dead.is_valid(), "both lead");
    assert!(next.term() > dead.fencing_token());
}

/// Notes when it was dropped.
struct Dropped(Redlock, Arc<Mutex<Option<Moment>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.1.lock().unwrap() = Some(self.0.now());
    }
}

#[tokio::test]
async fn a_loss_is_told_in_time_drops_the_work_and_is_followed_by_another_campaign() {
    let mut masters = Masters::start(3);
    let clock = Arc::new(Jumping::default());
    let redlock = all_new(&masters).clock(clock.clone()).build().unwrap();
    answering(&redlock, 3).await;
    let (terms, mut led) = tokio::sync::mpsc::unbounded_channel();
    let dropped = Arc::<Mutex<Option<Moment>>>::default();
    let leading = tokio::spawn({
        let (redlock, dropped) = (redlock.clone(), dropped.clone());
        let mut is_first = true;
        async move {
            let election = redlock.election("l");
            let work = |leadership: Arc<Leadership>| {
                terms.send((leadership.term().get(), Moment::default())).unwrap();
                let (work, terms) = (Dropped(redlock.clone(), dropped.clone()), terms.clone());
                let is_first = std::mem::take(&mut is_first);
                async move {
                    loop {
                        if !is_first {
                            return leadership.term().get();
                        }
                        terms.send((0, work.0.now() + leadership.remaining())).unwrap();
                        tokio::time::sleep(ms(10)).await;
                    }
                }
            };
            election.lead(work).await
        }
    });
    let (first, _) = soon("the first term", led.recv()).await.unwrap();
    clock.stand_at(redlock.now());
    while led.try_recv().is_ok() {} // of the clock that ran, the last of them perhaps yet to come
    soon("its deadline", led.recv()).await.unwrap();
    let (_, deadline) = soon("its deadline", led.recv()).await.unwrap();
    masters[0].kill();
    masters[1].kill();
    clock.stand_at(deadline - NOTICE);
    soon("the loss", until("the drop", async || dropped.lock().unwrap().is_some())).await;
    let when = dropped.lock().unwrap().unwrap();
    assert!(when < deadline, "it came {:?} after the deadline", when.since(deadline));
    clock.go_on();
    masters[0].restart();
    masters[1].restart();
    let second = soon("the second term", leading).await.unwrap().unwrap();
    assert!(second > first, "{first}, {second}");
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_leader_that_is_deposed_is_told() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let election = redlock.election("l").ttl(ms(4_000));
    let leadership = election.campaign().await.unwrap();
    on_all(&masters).await;
    patient(&masters).lock("l").force_release(&leadership.owner()).await.unwrap();
    let work = leadership.run(std::future::pending::<()>());
    let error = soon("the loss", work).await.unwrap_err();
    assert!(matches!(error, Error::Lost { cause: Loss::NotOurs, .. }), "{error}");
    assert!(matches!(leadership.lost().await, Error::Lost { cause: Loss::NotOurs, .. }));
    assert!(!leadership.is_leader() && leadership.remaining().is_zero());
    assert!(matches!(leadership.resign().await, Err(Error::Lost { .. })));
}

#[tokio::test]
async fn work_that_is_done_ends_it_and_so_does_a_token() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let election = redlock.election("l");
    let leads = async |leadership: Arc<Leadership>| leadership.is_leader();
    assert!(election.lead(leads).await.unwrap());
    let failed: Result<(), &str> = election.lead(async |_| Err("disk full")).await.unwrap();
    assert_eq!(failed, Err("disk full"));
    let next = redlock.election("l").wait(Duration::ZERO).campaign().await;
    drop(next.expect("it has resigned when it returns"));
    eventually(SOON, || masters.empty()).await;

    let stop = CancellationToken::new();
    let election = redlock.election("l").cancelled_by(stop.clone());
    let dropped = Arc::default();
    let work = |_| {
        let work = Dropped(redlock.clone(), Arc::clone(&dropped));
        stop.cancel();
        async move {
            let _work = work;
            std::future::pending::<()>().await
        }
    };
    let error = soon("the end", election.lead(work)).await.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(dropped.lock().unwrap().is_some());
    assert!(matches!(election.campaign().await, Err(Error::Cancelled { .. })));
    let next = redlock.election("l").wait(Duration::ZERO).campaign().await;
    drop(next.expect("it has resigned when it returns"));

    let work = async |_| -> () { panic!("it goes through") };
    let panics = tokio::spawn(async move { redlock.election("l").lead(work).await });
    assert!(soon("the panic", panics).await.unwrap_err().is_panic());
    eventually(SOON, || masters.empty()).await;
}

async fn no_work(_: Arc<Leadership>) {}

#[tokio::test]
async fn a_wait_bounds_a_campaign() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let _leadership = redlock.election("l").campaign().await.unwrap();
    let error = redlock.election("l").wait(Duration::ZERO).campaign().await.unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
    let error = redlock.election("l").wait(ms(50)).lead(no_work).await.unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { .. }), "{error}");
    masters[0].kill();
    masters[1].kill();
    let error = redlock.election("m").wait(ms(50)).campaign().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
}

#[tokio::test]
async fn a_campaign_waits_for_longer_than_any_wait_may_be() {
    let clock = Arc::new(Jumping::default());
    let masters = masters_by(&clock, 3);
    let client = || crate::begin().masters(&masters).ttl(TTL).clock(clock.clone()).build().unwrap();
    let (patient, bound) = (client(), client());
    let owner: Owner = "00000000-0000-4000-8000-000000000007:1".parse().unwrap();
    for master in masters.iter() {
        let fields = ["kind", "lock", "fence", "7", "x", "9000000000000000 7 1 1", "o:x", &owner.to_string()];
        master.server().command(&[&["HSET", "quorate:{l}"], &fields[..]].concat());
        master.server().command(&["PEXPIRE", "quorate:{l}", "2592000000"]);
    }
    let waits = tokio::spawn(async move { patient.election("l").campaign().await });
    let ends = tokio::spawn(async move { bound.election("l").wait(MAX_WAIT).campaign().await });
    let queue = |master: &EmbeddedMaster| master.server().command(&["ZCARD", "quorate:waiting:{l}"]);
    until("two candidates", async || masters.iter().all(|master| queue(master) == Resp::Int(2))).await;
    let Resp::List(tickets) = masters[0].server().command(&["ZRANGE", "quorate:waiting:{l}", "0", "-1"])
    else {
        panic!()
    };
    clock.jump(MAX_WAIT * 2);
    // Somebody calls both, so that they look.
    for ticket in tickets {
        let Resp::Bulk(ticket) = ticket else { panic!("{ticket:?}") };
        let ticket = String::from_utf8(ticket).unwrap();
        let (client, number) = crate::client_and_number(&ticket);
        masters.iter().for_each(|master| {
            master.server().command(&["PUBLISH", &format!("quorate:wake:{client}"), number]);
        });
    }
    let error = soon("the end of the wait", ends).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::WaitTimedOut { .. }), "{error}");
    assert!(!waits.is_finished());
    client().lock("l").force_release(&owner).await.unwrap();
    drop(soon("its turn", waits).await.unwrap().unwrap());
}

#[tokio::test]
async fn candidates_in_the_scope_of_one_owner_exclude_each_other() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let scope = async {
        let leadership = redlock.election("l").campaign().await.unwrap();
        assert_ne!(leadership.owner(), me);
        let second = redlock.election("l").wait(Duration::ZERO).campaign().await;
        assert!(matches!(second, Err(Error::Held { .. })), "{second:?}");
    };
    me.scope(scope).await;
}

#[tokio::test]
async fn two_of_five_masters_may_be_down() {
    let masters = Masters::start(5);
    masters[1].kill();
    masters[3].kill();
    let (here, there) = (all_new(&masters).build().unwrap(), all_new(&masters).build().unwrap());
    let mut observer = observer(&there);
    told_of_nobody(&mut observer).await;
    let first = soon("a leader", here.election("l").campaign()).await.unwrap();
    told_of(&mut observer, &first).await;
    let (term, election) = (first.term(), there.election("l"));
    let next = futures::future::join(election.campaign(), first.resign());
    let (next, resigned) = soon("the next leader", next).await;
    resigned.unwrap();
    assert!(next.unwrap().term() > term);
}

#[tokio::test]
async fn observers_see_each_leader_in_turn_then_nobody_and_what_cannot_be_known_as_unknown() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    let (mut inside, mut outside) = (observer(&here), observer(&there));
    assert_eq!(inside.latest(), Observed::Unknown, "before the first look");
    told_of_nobody(&mut inside).await;
    told_of_nobody(&mut outside).await;
    let mut leadership = here.election("l").campaign().await.unwrap();
    for _ in 0..4 {
        told_of(&mut inside, &leadership).await;
        told_of(&mut outside, &leadership).await;
        let is_ours = |seen| matches!(seen, Observed::Leader(leader) if leader.is_ours);
        assert!(is_ours(inside.latest()) && !is_ours(outside.latest()));
        assert_eq!(there.election("l").leader().await.unwrap(), outside.latest());
        on_all(&masters).await;
        let next = candidate(&masters, here.election("l")).await;
        let _ = leadership.resign().await;
        leadership = soon("the next leader", next).await.unwrap().unwrap();
    }
    leadership.resign().await.unwrap();
    told_of_nobody(&mut inside).await;
    told_of_nobody(&mut outside).await;
    assert_eq!(there.election("l").leader().await.unwrap(), Observed::Nobody);

    masters[0].kill();
    masters[1].kill();
    assert_eq!(told(&mut inside).await, Observed::Unknown);
    assert_eq!(told(&mut outside).await, Observed::Unknown);
    assert_eq!(there.election("l").leader().await.unwrap(), Observed::Unknown);
}

#[tokio::test]
async fn a_leader_that_cannot_be_seen_any_more_is_unknown_and_seen_again_later() {
    let mut masters = Masters::start_with(3, &["--appendonly", "yes"]);
    let redlock = all_new(&masters).build().unwrap();
    let leadership = redlock.election("l").campaign().await.unwrap();
    on_all(&masters).await;
    let mut observer = observer(&all_new(&masters).build().unwrap());
    told_of(&mut observer, &leadership).await;
    masters[0].kill();
    masters[2].kill();
    assert_eq!(told(&mut observer).await, Observed::Unknown);
    masters[0].restart();
    told_of(&mut observer, &leadership).await;
}

/// They have no such lock, and no vote: it is the leader's, which may lead for as long as its lease
/// lasts.
#[tokio::test]
async fn masters_that_forgot_the_leader_do_not_say_that_nobody_leads() {
    let masters = Masters::start(3);
    answering(&begin_new().masters(masters.urls()).build().unwrap(), 3).await; // they are not new
    let client = || Redlock::builder().masters(masters.urls()).ttl(ms(20_000)).build().unwrap();
    let (redlock, other) = (client(), client());
    for client in [&redlock, &other] {
        let trusted = || client.master_status().iter().all(|status| status.standing == Standing::Trusted);
        until("the handshakes", async || {
            client.lock("l").inspect().await.unwrap().answered() == 3 && trusted()
        })
        .await;
    }
    let leadership = soon("a leader", redlock.election("l").campaign()).await.unwrap();
    on_all(&masters).await;
    masters[0].wipe();
    masters[1].wipe();
    for _ in 0..20 {
        let seen = other.election("l").leader().await.unwrap();
        assert!(leadership.is_leader(), "this machine is too slow for the test");
        assert_eq!(seen, Observed::Unknown);
    }
}

#[tokio::test]
async fn an_observer_looks_at_its_interval_whatever_is_asked_of_it_and_no_more_when_it_is_dropped() {
    let masters = Masters::start(1);
    let redlock = patient(&masters);
    answering(&redlock, 1).await;
    let mut observer = redlock.election("l").look_every(ms(100)).observe().unwrap();
    assert_eq!(told(&mut observer).await, Observed::Nobody);
    let begun = redlock.now();
    let before = scripts_run(&masters[0]);
    // It is asked for a moment only, over and over, which loses no change and costs no look.
    let leadership = redlock.election("l").campaign().await.unwrap();
    let seen = loop {
        assert!(redlock.now().since(begun) < SOON, "the change was lost");
        if let Ok(seen) = tokio::time::timeout(ms(1), observer.changed()).await {
            break seen.unwrap();
        }
    };
    assert!(matches!(seen, Observed::Leader(_)), "{seen}");
    assert_eq!(observer.latest(), seen);
    until("some looks", async || scripts_run(&masters[0]) >= before + 8).await;
    let took = redlock.now().since(begun);
    // One of them was the campaign's, and the first can have come at once.
    assert!(took >= ms(50) * 6, "they were made in {took:?}");
    leadership.resign().await.unwrap();
    told_of_nobody(&mut observer).await;

    drop(observer);
    tokio::time::sleep(ms(50)).await; // a look may be under way
    let after = scripts_run(&masters[0]);
    tokio::time::sleep(ms(300)).await; // time to look again, if anybody did
    assert_eq!(scripts_run(&masters[0]), after);
}

#[tokio::test]
async fn a_shutdown_ends_campaigns_and_observers() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let _leadership = redlock.election("l").campaign().await.unwrap();
    on_all(&masters).await;
    let campaign = candidate(&masters, redlock.election("l")).await;
    let mut observer = redlock.election("l").look_every(Duration::from_secs(3600)).observe().unwrap();
    assert!(matches!(told(&mut observer).await, Observed::Leader(_)));
    let begun = redlock.now();
    assert!(redlock.shutdown(SOON).await.is_complete());
    assert!(redlock.now().since(begun) < SOON);
    assert!(matches!(soon("the end", campaign).await.unwrap(), Err(Error::Closed)));
    assert!(matches!(soon("the end", observer.changed()).await, Err(Error::Closed)));
    assert!(matches!(redlock.election("l").campaign().await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_campaign_that_is_cancelled_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    redlock.election("l").campaign().await.unwrap().resign().await.unwrap();
    // Free: some of these lead.
    let polls = cancel_at_every_poll(
        100_000,
        || {
            let election = redlock.election("l");
            async move { election.campaign().await }
        },
        async |_, leadership| {
            drop(leadership.transpose().unwrap());
            eventually(SOON, || masters.empty()).await;
        },
    )
    .await;
    assert!(polls.unwrap() > 1, "it was never cancelled half-way");

    // Led by another one: none of these do.
    let other = patient(&masters);
    let leadership = other.election("l").campaign().await.unwrap();
    on_all(&masters).await;
    for steps in 0..30 {
        let election = redlock.election("l");
        let mut campaign = Box::pin(election.campaign());
        assert!(poll!(&mut campaign).is_pending());
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        drop(campaign);
        standing(masters.iter(), 0).await;
    }
    let stop = CancellationToken::new();
    let campaign = candidate(&masters, redlock.election("l").cancelled_by(stop.clone())).await;
    stop.cancel();
    assert!(matches!(soon("the end", campaign).await.unwrap(), Err(Error::Cancelled { .. })));
    standing(masters.iter(), 0).await;
    assert!(leadership.is_leader());
    leadership.resign().await.unwrap();
    eventually(SOON, || masters.empty()).await;
    until("nobody to listen", async || listeners(&masters) == 0).await;
}

#[tokio::test]
async fn bad_input_is_refused_by_name_and_limit_before_anything_is_sent() {
    let masters = Masters::start(1);
    let redlock = crate::begin_new().masters(masters.urls()).build().unwrap();
    let invalid = |error| match error {
        Error::Invalid(invalid) => invalid.to_string(),
        other => panic!("{other}"),
    };
    let empty = "the lock's name is empty; it must have 1 to 512 bytes";
    assert_eq!(invalid(redlock.election("").campaign().await.unwrap_err()), empty);
    assert_eq!(invalid(redlock.election("").lead(no_work).await.unwrap_err()), empty);
    assert_eq!(invalid(redlock.election("").leader().await.unwrap_err()), empty);
    assert_eq!(invalid(redlock.election("").observe().unwrap_err()), empty);
    let election = || redlock.election("l");
    let ttl = TTL + ms(1);
    let error = invalid(election().ttl(ttl).campaign().await.unwrap_err());
    assert!(error.starts_with(&format!("a TTL of {ttl:?} is not within 10ms and 30s")), "{error}");
    let (delay, ttl) = (ms(20_001), ms(10_000));
    let error = invalid(election().ttl(ttl).lock_delay(delay).campaign().await.unwrap_err());
    assert!(error.starts_with(&format!("a lock delay of {delay:?} and the TTL of {ttl:?}")), "{error}");
    let day = MAX_WAIT;
    let error = invalid(election().wait(day + ms(1)).campaign().await.unwrap_err());
    assert_eq!(error, "a wait of 86400.001s is above the limit of 86400s");
    for interval in [Duration::ZERO, ms(9), day + ms(1), Duration::MAX] {
        let error = invalid(election().look_every(interval).observe().unwrap_err());
        assert_eq!(error, format!("a look every {interval:?} is not within 10ms and 86400s"));
    }
    assert!(!masters[0].command::<String>(&["INFO", "commandstats"]).contains("eval"), "something was sent");
}

#[test]
fn it_needs_no_runtime_and_the_example_runs() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    futures::executor::block_on(async {
        let mut observer = observer(&redlock);
        let leadership = redlock.election("l").campaign().await.unwrap();
        while !matches!(observer.changed().await.unwrap(), Observed::Leader(_)) {}
        leadership.resign().await.unwrap();
        redlock.election("l").lead(no_work).await.unwrap();
    });
    let output = crate::example("leader").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
