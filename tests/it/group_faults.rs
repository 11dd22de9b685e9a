//! Operations that leave together when something goes wrong: each has an outcome of its own, and
//! nothing is left behind.

use std::time::Instant;

use futures::future::{join_all, try_join_all};
use futures::poll;
use quorate::{Error, Guard, Lock, Outcome, Silence, Vote};
use quorate_testkit::{Cut, Masters, Proxy, RedisServer, eventually};

use crate::cancel::same_runtime;
use crate::group_commit::{acquire_all, locks, release_all};
use crate::lost_replies::through_proxies;
use crate::{SOON, TTL, answering, builder, ms, patient, until};

/// Each try is given up a step later: before it is sent, on its way, and when it was granted.
#[tokio::test]
async fn of_acquires_that_leave_together_some_are_dropped_and_the_others_are_granted() {
    const LOCKS: usize = 100;
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    answering(&redlock, 3).await;
    let locks = locks(&redlock, LOCKS);
    for steps in 0..12 {
        let mut acquires: Vec<_> = locks.iter().map(|lock| Box::pin(lock.try_acquire())).collect();
        for acquire in &mut acquires {
            assert!(poll!(acquire).is_pending());
        }
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        let (kept, dropped): (Vec<_>, Vec<_>) =
            acquires.into_iter().enumerate().partition(|(i, _)| i % 3 == 0);
        drop(dropped);
        let guards = try_join_all(kept.into_iter().map(|(_, acquire)| acquire)).await.unwrap();
        until("nothing but what is held", async || masters.keys().len() == 3 * guards.len()).await;
        assert!(guards.iter().all(Guard::is_valid));
        release_all(guards).await;
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn with_a_minority_frozen_each_of_many_acquires_has_its_own_outcome() {
    let masters = Masters::start(5);
    let (redlock, rival) = (patient(&masters), patient(&masters));
    let locks = locks(&redlock, 100);
    let held = rival.lock("l50").acquire().await.unwrap();
    crate::on_all(&masters).await;
    answering(&redlock, 5).await;
    for frozen in [1, 2] {
        (0..frozen).for_each(|i| masters[i].freeze());
        let mut answers = join_all(locks.iter().map(Lock::try_acquire)).await;
        let refused = answers.remove(50).unwrap_err();
        assert!(matches!(refused, Error::Held { .. }), "{refused}");
        release_all(answers.into_iter().map(Result::unwrap).collect()).await;
        (0..frozen).for_each(|i| masters[i].thaw());
        until("nothing but what is held", async || masters.keys().len() == 5).await;
        answering(&redlock, 5).await;
    }
    held.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

fn timed_out(vote: &&Vote) -> bool {
    vote.outcome == Outcome::Unknown(Silence::TimedOut)
}

/// An acquire has a quarter of its TTL, up to a quarter of a second; the masters are 60 ms away.
#[tokio::test]
async fn those_with_little_time_time_out_beside_those_that_have_enough() {
    let masters = Masters::start(3);
    let mut proxies = Vec::new();
    for server in masters.iter() {
        proxies.push(Proxy::start_slow(server.address(), ms(30)).await);
    }
    let urls = proxies.iter().map(Proxy::url);
    let redlock = crate::begin().masters(urls).ttl(TTL).build().unwrap();
    answering(&redlock, 3).await;
    let ttl = |i: usize| match i % 2 {
        0 => TTL,
        _ => ms(80),
    };
    let locks: Vec<_> =
        locks(&redlock, 60).into_iter().enumerate().map(|(i, lock)| lock.ttl(ttl(i))).collect();
    let mut late = Vec::new();
    for _ in 0..10 {
        let answers = join_all(locks.iter().map(Lock::try_acquire)).await;
        let (calm, hurried): (Vec<_>, Vec<_>) =
            answers.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
        // Where this machine stood still, an answer may be there before its time-out is noticed:
        // such a round does not count.
        let mut unnoticed = None;
        for (_, answer) in hurried {
            let error = answer.unwrap_err();
            if error.votes().iter().filter(timed_out).count() < 2 {
                assert!(matches!(error, quorate::Error::NoQuorum { late: true, .. }), "{error}");
                unnoticed = Some(error);
            }
        }
        let calm: Result<Vec<_>, _> = calm.into_iter().map(|(_, answer)| answer).collect();
        let granted = calm.and_then(|_| unnoticed.map_or(Ok(()), Err));
        eventually(SOON, || masters.empty()).await;
        match granted {
            Ok(()) => return,
            Err(error) => late.push(error), // a busy machine may take all of their quarter of a second now and then
        }
    }
    panic!("those with enough time had to wait for the others: {late:?}");
}

/// One cut on each of some masters, with a hundred acquires on their way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_told_to_all_that_were_on_it_and_leaves_nothing() {
    let masters = Masters::start(3);
    let (proxies, redlock) = through_proxies(&masters).await;
    let locks = locks(&redlock, 100);
    for (cut, count) in
        [Cut::AtReply, Cut::InFlight].into_iter().flat_map(|cut| (1..=3).map(move |i| (cut, i)))
    {
        let before: usize = proxies.iter().map(Proxy::cuts).sum();
        proxies[..count].iter().for_each(|proxy| proxy.cut_next(cut));
        let answers = join_all(locks.iter().map(Lock::try_acquire)).await;
        let lost = |vote: &&Vote| matches!(vote.outcome, Outcome::Unknown(Silence::ConnectionLost(_)));
        let mut guards = Vec::new();
        for answer in answers {
            match answer {
                Ok(guard) => guards.push(guard),
                Err(error) => assert!(count > 1 && error.votes().iter().any(|vote| lost(&vote)), "{error}"),
            }
        }
        let cuts = || proxies.iter().map(Proxy::cuts).sum::<usize>();
        until("every cut", async || cuts() == before + count).await; // the last may come after the decision
        until("nothing but what is held", async || {
            let held = |(_, key): &(usize, String)| {
                guards.iter().any(|guard| *key == format!("quorate:{{{}}}", guard.name()))
            };
            masters.keys().iter().all(held)
        })
        .await;
        assert!(guards.iter().all(Guard::is_valid));
        release_all(guards).await;
        answering(&redlock, 3).await;
        for proxy in &proxies {
            proxy.deliver();
        }
        eventually(SOON, || masters.empty()).await;
    }
}

/// Time-outs are told from what there is to read: this process stood still, not the masters.
#[tokio::test]
async fn answers_that_came_while_this_process_stood_still_are_votes() {
    let timeout = ms(300);
    let masters = Masters::start(3);
    let runtime = tokio::runtime::Handle::current();
    let asks_all = builder(&masters).quorum_first_above(usize::MAX);
    let redlock = asks_all.timeout(timeout).runtime(runtime).build().unwrap();
    answering(&redlock, 3).await;
    let locks = locks(&redlock, 100);
    for _ in 0..3 {
        masters.iter().for_each(RedisServer::freeze);
        let mut acquiring = Box::pin(acquire_all(&locks));
        assert!(poll!(&mut acquiring).is_pending());
        for _ in 0..20 {
            tokio::task::yield_now().await; // they are on their way
        }
        masters.iter().for_each(RedisServer::thaw);
        let begun = Instant::now();
        while masters.keys().len() < 300 {
            assert!(begun.elapsed() < SOON, "they have not all been granted");
        }
        std::thread::sleep(timeout + ms(100));
        release_all(acquiring.await).await;
        eventually(SOON, || masters.empty()).await;
    }
}

/// Nothing but the release was sent, so nothing else can find out that the masters are silent.
#[tokio::test]
async fn a_release_that_masters_do_not_answer_returns_in_time_and_has_them_probed() {
    let timeout = ms(1_500); // one after the other they would take half a minute
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(timeout).build().unwrap();
    let guards = acquire_all(&locks(&redlock, 20)).await;
    until("every key", async || masters.keys().len() == 60).await;
    (0..2).for_each(|i| masters[i].freeze());
    let begun = Instant::now();
    for released in join_all(guards.into_iter().map(Guard::release)).await {
        let error = released.unwrap_err();
        assert!(error.votes()[..2].iter().filter(timed_out).count() == 2, "{error}");
    }
    assert!(begun.elapsed() < timeout * 10, "{:?}", begun.elapsed());
    // The probe has as much time as a call. Then nobody waits for them.
    let out_of_reach = |vote: &Vote| matches!(vote.outcome, Outcome::Unreachable(_));
    until("two masters to be known as silent", async || {
        redlock.lock("l").inspect().await.unwrap().votes()[..2].iter().all(out_of_reach)
    })
    .await;
    (0..2).for_each(|i| masters[i].thaw());
    eventually(SOON, || masters.empty()).await;
}
