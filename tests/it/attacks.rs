//! The attacks on one master by which plain Redlock is held by two: a clock that jumps, keys that
//! are forgotten, or are those of a moment before. The first client has the lock on masters 0, 1
//! and 2; master 2 is attacked; the second one reaches 2, 3 and 4, and asks.
//!
//! Source: Kleppmann, "How to do distributed locking" (2016), for the first and the second; the
//! others are their kin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorate::seam::{BootClock, Call, Clock, Master, Random, SCRIPTS, connect};
use quorate::{Builder, Error, Guard, Init, Lock, Moment, Redlock, Refusal, SetChange, Standing};
use quorate_testkit::{Masters, Proxy, RedisServer, Toxic, Way, trusting};

use crate::altered::Altered;
use crate::clock::Jumping;
use crate::{answering, ms};

/// The master that is attacked: the one that both quorums have.
const VICTIM: usize = 2;

/// Long enough to be still there when all that an attack does is done, on a busy machine.
const TTL: Duration = Duration::from_secs(20);

/// How far clocks are set (ms): every key is over then.
const FAR: i64 = 60_000;

/// How often each attack is made: an odd number, so that most may succeed where one does not.
/// `QUORATE_ATTACKS` says otherwise.
pub(crate) fn times() -> usize {
    std::env::var("QUORATE_ATTACKS").ok().map_or(3, |times| times.parse().unwrap())
}

/// How a client is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guards {
    On,
    /// Without what refuses a vote in the scripts and in the handshake: plain Redlock.
    Out,
}

/// A call of a script without guards.
fn to_trusting(call: Arc<Call>) -> Arc<Call> {
    Arc::new(Call::new(trusting(call.script), call.words.clone(), call.kind, call.sink.clone()))
}

impl Guards {
    fn builder(self) -> Builder {
        Redlock::builder().ttl(TTL).timeout(ms(500))
    }

    fn build(self, urls: Vec<String>) -> Redlock {
        let builder = self.builder();
        let build = |builder: Builder| builder.build().unwrap();
        let runtime = tokio::runtime::Handle::current();
        let trusting = |url: String| -> Arc<dyn Master> {
            Arc::new(Altered(connect(&url, SCRIPTS, ms(500), &runtime).unwrap(), to_trusting))
        };
        match self {
            Self::On => build(builder.masters(urls)),
            Self::Out => build(builder.all_new().masters(urls.into_iter().map(trusting))),
        }
    }
}

/// The machine's clock, but that its time is so much (ms) ahead.
#[derive(Debug)]
struct WrongClock(i64);

impl Clock for WrongClock {
    fn now(&self) -> Moment {
        BootClock.now()
    }

    fn wall(&self) -> Duration {
        let off = ms(self.0.unsigned_abs());
        if self.0 < 0 { BootClock.wall() - off } else { BootClock.wall() + off }
    }
}

/// Five masters that have been in use for long, and a client that reaches the first three.
struct Stage {
    masters: Masters,
    guards: Guards,
    first: Redlock,
    /// A client that is connected to the last three before anything happens.
    second: Redlock,
    /// A client that reaches all, so that masters that forgot get their records again.
    _witness: Redlock,
    /// A server that has what the victim had before the lock was taken.
    older: RedisServer,
}

impl Stage {
    async fn set(guards: Guards) -> Self {
        let masters = Masters::start_with_clocks(5, &[]);
        // They are not new: they have had their records for long.
        let pioneer = crate::begin_new().masters(masters.urls());
        answering(&pioneer.build().unwrap(), 5).await;
        let witness = guards.builder().masters(masters.urls()).build().unwrap();
        answering(&witness, 5).await;
        let first = guards.build(reach(&masters, 0..3));
        let second = guards.build(reach(&masters, 2..5));
        answering(&first, 3).await;
        answering(&second, 3).await;
        let older = RedisServer::start();
        older.copy(&masters[VICTIM]);
        Self { masters, guards, first, second, _witness: witness, older }
    }

    fn victim(&self) -> &RedisServer {
        &self.masters[VICTIM]
    }

    /// A client that comes now, and reaches the last three.
    fn newcomer(&self) -> Redlock {
        self.guards.build(reach(&self.masters, 2..5))
    }

    /// Whether somebody else gets the lock while it is held.
    async fn is_held_by_two(&self, guard: &Guard) -> bool {
        self.is_held_by_two_within(ms(600), guard).await
    }

    /// The same of the first who gets it, within so long.
    async fn is_held_by_two_within(&self, long: Duration, guard: &Guard) -> bool {
        let (second, newcomer) = (self.second.lock("l"), self.newcomer());
        let begun = std::time::Instant::now();
        while begun.elapsed() < long {
            for lock in [&second, &newcomer.lock("l")] {
                if lock.try_acquire().await.is_ok() {
                    return guard.is_valid();
                }
            }
            tokio::time::sleep(ms(20)).await;
        }
        false
    }
}

/// Five masters, of which these can be reached. Nobody listens at the others' addresses.
fn reach(masters: &Masters, within: std::ops::Range<usize>) -> Vec<String> {
    let url = |(place, url): (usize, String)| match within.contains(&place) {
        true => url,
        false => format!("redis://127.0.1.{}:1", place + 1),
    };
    masters.urls().into_iter().enumerate().map(url).collect()
}

/// What is done to the victim. Where it takes time, the second client goes on asking meanwhile.
async fn attack(name: &str, stage: &mut Stage, guard: &Guard) -> bool {
    match name {
        "clock step" => stage.victim().step_clock(FAR),
        "restart without its keys" => stage.masters[VICTIM].restart_empty(),
        "restart with a slow clock that is put right" => return slow_restart(stage, guard, 3_600_000).await,
        // As much as a handshake may take for the delay of a message.
        "restart with a clock a little slow" => return slow_restart(stage, guard, 950).await,
        "FLUSHALL" => stage.victim().wipe(),
        "clock strobe" => return strobe(stage, guard).await,
        "restart, and then a clock strobe" => {
            stage.masters[VICTIM].restart_empty();
            if stage.is_held_by_two(guard).await {
                return true;
            }
            return strobe(stage, guard).await;
        }
        "a wipe by replication" => stage.victim().wipe_by_replication(),
        "a rollback by replication" => stage.victim().copy(&stage.older),
        other => panic!("{other}"),
    }
    stage.is_held_by_two(guard).await
}

/// It restarts with a clock that is so much (ms) behind, and is put right.
async fn slow_restart(stage: &mut Stage, guard: &Guard, behind: i64) -> bool {
    stage.victim().step_clock(-behind);
    stage.masters[VICTIM].restart_empty();
    if stage.is_held_by_two(guard).await {
        return true;
    }
    stage.victim().step_clock(behind);
    stage.is_held_by_two(guard).await
}

/// The clock is set forward, and back.
async fn strobe(stage: &Stage, guard: &Guard) -> bool {
    let (_, during) = tokio::join!(stage.victim().strobe_clock(FAR, ms(400)), stage.is_held_by_two(guard));
    during || stage.is_held_by_two(guard).await
}

/// How often the lock was held by two, and how often it was tried.
async fn try_it(name: &str, guards: Guards) -> (usize, usize) {
    let mut breaches = 0;
    for _ in 0..times() {
        let mut stage = Stage::set(guards).await;
        let guard = stage.first.lock("l").try_acquire().await.unwrap();
        assert!(!stage.is_held_by_two(&guard).await, "before anything happened");
        breaches += usize::from(attack(name, &mut stage, &guard).await);
        assert!(guard.is_valid() || guards == Guards::Out, "it lasts longer than the attack");
    }
    println!("{name}, guards {guards:?}: held by two {breaches} of {} times", times());
    (breaches, times())
}

async fn is_withstood(name: &str) {
    let (breaches, _) = try_it(name, Guards::On).await;
    assert_eq!(breaches, 0, "{name}, guards on");
    let (breaches, times) = try_it(name, Guards::Out).await;
    // Where the machine is busy a lease is over now and then before anybody asks.
    assert!(breaches > times / 2, "{name}: without guards it succeeds, so that the test can fail");
}

macro_rules! attacks {
    ($($test:ident: $name:literal;)*) => {$(
        #[tokio::test]
        async fn $test() {
            is_withstood($name).await;
        }
    )*};
}

attacks! {
    a_clock_step: "clock step";
    a_restart_without_its_keys: "restart without its keys";
    a_restart_with_a_slow_clock_that_is_put_right: "restart with a slow clock that is put right";
    a_restart_with_a_clock_that_is_a_little_slow: "restart with a clock a little slow";
    a_flushall: "FLUSHALL";
    a_clock_strobe: "clock strobe";
    a_restart_and_then_a_clock_strobe: "restart, and then a clock strobe";
    a_wipe_by_replication: "a wipe by replication";
    a_rollback_by_replication: "a rollback by replication";
}

/// The five masters' addresses, with the victim's behind a proxy.
fn with_proxy(masters: &Masters, within: std::ops::Range<usize>, proxy: &Proxy) -> Vec<String> {
    let mut urls = reach(masters, within);
    urls[VICTIM] = proxy.url();
    urls
}

/// Leads the victim's address to another server, for new connections, and breaks the others.
async fn lead(proxy: &Proxy, to: &RedisServer, clients: &[&Redlock]) {
    proxy.lead_to(to.address());
    proxy.reset();
    for client in clients {
        answering(client, 3).await;
    }
}

/// The address of a master leads to another server for a while, where the lock is granted, and then
/// to the first one again. Clients that saw both know that it has missed something.
#[tokio::test]
async fn a_server_that_is_back_behind_its_address_has_no_vote_for_those_that_saw_another_one() {
    for _ in 0..times() {
        let masters = Masters::start(5);
        let other = RedisServer::start();
        let proxy = Proxy::start(masters[VICTIM].address()).await;
        let mut with_other = masters.urls();
        with_other[VICTIM] = other.url();
        for urls in [masters.urls(), with_other] {
            answering(&crate::begin_new().masters(urls).build().unwrap(), 5).await;
        }
        let client = |within| Guards::On.build(with_proxy(&masters, within, &proxy));
        let (first, second) = (client(0..3), client(2..5));
        lead(&proxy, &masters[VICTIM], &[&first, &second]).await;
        lead(&proxy, &other, &[&first, &second]).await;
        let guard = first.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
        lead(&proxy, &masters[VICTIM], &[]).await;
        crate::until("it to be noticed", async || {
            let _ = second.lock("l").inspect().await;
            matches!(&second.master_status()[VICTIM].standing, Standing::Refused(why) if why.contains("forgotten"))
        })
        .await;
        let error = second.lock("l").wait(ms(300)).acquire().await.unwrap_err();
        assert!(guard.is_valid(), "{error}");
    }
}

/// The clocks are where each client takes them for right, and the victim's is stepped by as much as
/// nobody notices: from as far behind as it may be for the one who has the lock to as far ahead as
/// it may be for those who ask. It ends the lease for them too soon; the guard has ended before.
#[tokio::test]
async fn clocks_that_are_off_within_the_band_end_no_lease_before_its_guard() {
    let lease = Duration::from_secs(3);
    for guards in [Guards::On, Guards::Out] {
        let mut breaches = 0;
        for _ in 0..times() {
            let stage = Stage::set(guards).await;
            stage.victim().set_clock_offset(-240);
            [3, 4].iter().for_each(|&at| stage.masters[at].set_clock_offset(240));
            let guard = stage.first.lock("l").ttl(lease).no_renewal().try_acquire().await.unwrap();
            stage.victim().set_clock_offset(480);
            breaches += usize::from(stage.is_held_by_two_within(lease * 2, &guard).await);
        }
        let is_as_it_should_be = if guards == Guards::Out { breaches > times() / 2 } else { breaches == 0 };
        assert!(is_as_it_should_be, "guards {guards:?}: held by two {breaches} of {} times", times());
    }
}

/// Sets the clocks of a client and of its masters forward, as if so long had passed without a call.
pub(crate) fn idle(clock: &Jumping, masters: &Masters, long: Duration) {
    clock.jump(long);
    masters.iter().for_each(|master| master.step_clock(long.as_millis() as i64));
}

/// A client was idle, and the answers that it got then came late by this, so that it knows the time
/// no better. The right time is at one end of that. The victim's clock is at the other one, and so
/// is taken for right. It is put right when the victim has granted.
#[tokio::test]
async fn late_answers_and_a_slow_clock_give_the_lock_to_nobody_else() {
    let late = ms(900);
    for _ in 0..times() {
        let masters = Masters::start_with_clocks(3, &[]);
        answering(&crate::begin_new().masters(masters.urls()).build().unwrap(), 3).await;
        let mut proxies = Vec::new();
        for master in masters.iter() {
            proxies.push(Proxy::start(master.address()).await);
        }
        let clock = Arc::new(Jumping::default());
        let urls = proxies.iter().map(Proxy::url);
        let holder =
            Guards::On.builder().timeout(late * 2).clock(clock.clone()).masters(urls).build().unwrap();
        answering(&holder, 3).await;
        idle(&clock, &masters, Duration::from_secs(120));
        masters[VICTIM].step_clock(-(late.as_millis() as i64));
        for proxy in &proxies {
            proxy.add(Way::Back, Toxic::Latency { delay: late, jitter: ms(0) });
        }
        answering(&holder, 3).await;
        proxies.iter().for_each(Proxy::clear);
        proxies.remove(1);
        let guard = holder.lock("l").ttl(ms(6_000)).no_renewal().try_acquire().await.unwrap();
        masters[VICTIM].step_clock(late.as_millis() as i64);
        let mut urls = masters.urls();
        urls[0] = "redis://127.0.1.1:1".into();
        let other = Guards::On.builder().masters(urls).build().unwrap();
        while guard.is_valid() {
            let granted = other.lock("l").try_acquire().await;
            assert!(granted.is_err() || !guard.is_valid(), "held by two");
            tokio::time::sleep(ms(5)).await;
        }
    }
}

/// The entry of a lease is kept for longer by as much as the client does not know of the time.
#[tokio::test]
async fn a_client_that_was_idle_asks_for_the_time() {
    let masters = Masters::start_with_clocks(3, &[]);
    let clock = Arc::new(Jumping::default());
    let redlock = crate::begin_new().clock(clock.clone()).masters(masters.urls()).build().unwrap();
    answering(&redlock, 3).await;
    idle(&clock, &masters, Duration::from_secs(150));
    let _guard = redlock.lock("l").ttl(Duration::from_secs(10)).no_renewal().try_acquire().await.unwrap();
    for master in masters.iter() {
        let entry: Option<String> = master.command(&["HGET", "quorate:{l}", "x"]);
        let Some(entry) = entry else { continue };
        let ends: u64 = entry.split(' ').next().unwrap().parse().unwrap();
        let (seconds, micros): (u64, u64) = master.command(&["TIME"]);
        let left = ends.saturating_sub(seconds * 1_000_000 + micros) / 1_000;
        assert!(left < 11_000, "{left} ms, and not 3 s more");
    }
}

/// The connections that follow the master's record.
fn following(server: &RedisServer) -> Vec<String> {
    let list: String = server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
    let is_tracking = |line: &&str| line.contains(" flags=t ");
    let ids = list.lines().filter(is_tracking).filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

/// What others write is pushed to every client. A handshake writes nothing that is there already,
/// so however many there are, no other client connects anew (trace 13).
#[tokio::test]
async fn a_thousand_handshakes_cost_no_other_client_its_connection() {
    let server = RedisServer::start();
    let client = || crate::begin_new().master(server.url()).build().unwrap();
    let watching = client();
    answering(&watching, 1).await;
    let ids = || following(&server);
    let before = ids();
    assert_eq!(before.len(), 1, "it follows the record");
    for _ in 0..20 {
        let others: Vec<Redlock> = (0..50).map(|_| client()).collect();
        for other in &others {
            answering(other, 1).await;
        }
        crate::until("those of before to leave", async || ids().len() == 51).await;
    }
    crate::until("the others to leave", async || ids() == before).await;
}

/// All records are other ones again and again, while a client takes locks and gives them back. It
/// makes the handshakes again on the connections that it has, and nothing that it asks for fails.
#[tokio::test]
async fn records_that_change_cost_no_client_its_connections_and_no_acquire() {
    let masters = Masters::start(3);
    let redlock = crate::begin_new().masters(masters.urls()).timeout(ms(2_000)).build().unwrap();
    answering(&redlock, 3).await;
    let connections = || masters.iter().map(following).collect::<Vec<_>>();
    let before = connections();
    assert!(before.iter().all(|of_one| of_one.len() == 1), "{before:?}");
    let done = AtomicBool::new(false);
    let work = async |name: usize| {
        let lock = redlock.lock(name.to_string());
        let mut granted = 0;
        while !done.load(Ordering::Relaxed) {
            let guard = lock.try_acquire().await.unwrap();
            guard.release().await.unwrap();
            granted += 1;
        }
        granted
    };
    let change = async {
        for change in 0..50 {
            let stamp = format!("change {change}");
            for master in masters.iter() {
                let _: () = master.command(&["HSET", "quorate:master", "stamp", &stamp]);
            }
            tokio::time::sleep(ms(5)).await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let (granted, ()) = tokio::join!(futures::future::join_all((0..8).map(work)), change);
    assert!(granted.iter().sum::<usize>() > 50, "{granted:?}");
    let all_grant = async || {
        let guard = redlock.lock("l").try_acquire().await.unwrap();
        guard.votes().iter().all(|vote| vote.outcome == quorate::Outcome::Granted)
    };
    crate::until("the votes of all", all_grant).await;
    assert_eq!(connections(), before);
}

/// What is given up: a name that somebody deletes by hand on one master, or that an evicting policy
/// drops there, is forgotten where both quorums meet. docs/SAFETY.md says so.
#[tokio::test]
async fn a_name_that_is_deleted_on_the_master_that_both_quorums_have_is_held_by_two() {
    let stage = Stage::set(Guards::On).await;
    let guard = stage.first.lock("l").try_acquire().await.unwrap();
    assert!(stage.victim().evict("quorate:{l}"));
    assert!(stage.is_held_by_two(&guard).await);
}

fn read(redlock: &Redlock) -> Lock {
    redlock.read_lock("l").ttl(TTL).no_renewal()
}

/// The clock is far ahead while a reader renews, and is put right again. What that reader does
/// leaves the others' entries alone.
#[tokio::test]
async fn a_strobe_while_a_reader_renews_lets_no_writer_in_beside_another_reader() {
    let stage = Stage::set(Guards::On).await;
    let one = read(&stage.first).try_acquire().await.unwrap();
    let other = read(&stage.first).try_acquire().await.unwrap();
    stage.victim().step_clock(FAR);
    one.extend(TTL).await.unwrap_err(); // its clock is off
    stage.victim().step_clock(-FAR);
    one.release().await.unwrap();
    let error = stage.second.write_lock("l").try_acquire().await.unwrap_err();
    assert!(other.is_valid(), "{error}");
}

/// A step that nobody can see ends no entry of one reader, whatever another one does after it.
#[tokio::test]
async fn a_reader_that_came_after_a_small_step_and_left_lets_no_writer_in_beside_the_one_before() {
    let stage = Stage::set(Guards::On).await;
    let held = read(&stage.first).try_acquire().await.unwrap();
    stage.victim().step_clock(200);
    read(&stage.second).ttl(TTL + ms(5_000)).acquire().await.unwrap().release().await.unwrap();
    let error = stage.second.write_lock("l").try_acquire().await.unwrap_err();
    assert!(held.is_valid(), "{error}");
}

/// A clock that jumps ends no permit, so nobody comes for another number of them.
#[tokio::test]
async fn a_clock_step_lets_nobody_say_another_number_of_permits() {
    let stage = Stage::set(Guards::On).await;
    let held = stage.first.semaphore("l", 2).try_acquire().await.unwrap();
    for millis in [FAR, -FAR] {
        stage.victim().step_clock(millis);
        let error = stage.second.semaphore("l", 3).try_acquire().await.unwrap_err();
        assert!(held.is_valid(), "{error}");
    }
}

/// A key that is another library's, too, has no prefix: a master that forgot it has no vote for
/// clients of any prefix.
#[tokio::test]
async fn a_master_that_restarted_is_held_back_for_shared_names_of_every_prefix() {
    let mut stage = Stage::set(Guards::On).await;
    let other = |within| Guards::On.builder().prefix("other:").masters(reach(&stage.masters, within));
    crate::begun(Guards::On.builder().prefix("other:").masters(stage.masters.urls()), Init::new()).await;
    let first = other(0..3).build().unwrap();
    answering(&first, 3).await;
    let held = first.plain_mutex("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
    let rival = stage.second.clone();
    stage.masters[VICTIM].restart_empty();
    answering(&rival, 3).await;
    let error = rival.plain_mutex("l").try_acquire().await.unwrap_err();
    assert!(held.is_valid(), "{error}");
}

/// The host of a master comes up with a clock that is wrong, and a client on it is the first to
/// connect, when it reaches no other master. Then the clock is put right. No quarantine was
/// measured by it.
#[tokio::test]
async fn a_client_that_shares_a_wrong_clock_with_its_master_begins_no_quarantine() {
    for _ in 0..times() {
        let mut stage = Stage::set(Guards::On).await;
        // The record is there when it comes up again; it may still be saving for the copy.
        crate::until("it to be saved", async || stage.victim().try_command::<()>(&["SAVE"]).is_ok()).await;
        let guard = stage.first.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
        stage.victim().step_clock(-3_600_000);
        stage.masters[VICTIM].restart();
        let its_own = WrongClock(-3_600_000);
        let neighbour =
            Guards::On.builder().clock(Arc::new(its_own)).masters(reach(&stage.masters, VICTIM..VICTIM + 1));
        let neighbour = neighbour.build().unwrap();
        neighbour.lock("l").try_acquire().await.unwrap_err();
        stage.victim().set_clock_offset(0);
        assert!(!stage.is_held_by_two(&guard).await);
        assert!(guard.is_valid());
    }
}

/// Two clocks of five are far ahead, and a client that comes now hears those two first, and one
/// that is right. It does not take their time for that of most.
#[tokio::test]
async fn two_wrong_clocks_that_are_heard_first_end_nothing() {
    let stage = Stage::set(Guards::On).await;
    let guard = stage.first.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
    let wrong = [1, VICTIM];
    wrong.iter().for_each(|&at| stage.masters[at].step_clock(FAR));
    let misled = Guards::On.build(reach(&stage.masters, 1..4));
    misled.lock("l").try_acquire().await.unwrap_err();
    let _ = misled.shutdown(ms(1_000)).await; // it has taken back what it may have been granted
    wrong.iter().for_each(|&at| stage.masters[at].step_clock(-FAR));
    assert!(!stage.is_held_by_two(&guard).await);
    assert!(guard.is_valid());
}

/// A client whose host's clock is as far ahead as that of the only master that it reaches asks for
/// nothing by that time.
#[tokio::test]
async fn a_client_that_shares_a_wrong_clock_with_a_master_ends_nothing_there() {
    let stage = Stage::set(Guards::On).await;
    let guard = stage.first.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
    stage.victim().step_clock(FAR);
    let its_own = WrongClock(FAR);
    let neighbour =
        Guards::On.builder().clock(Arc::new(its_own)).masters(reach(&stage.masters, VICTIM..VICTIM + 1));
    let neighbour = neighbour.build().unwrap();
    neighbour.lock("l").try_acquire().await.unwrap_err();
    let _ = neighbour.shutdown(ms(1_000)).await;
    stage.victim().step_clock(-FAR);
    assert!(!stage.is_held_by_two(&guard).await);
    assert!(guard.is_valid());
}

/// All clocks are two hours ahead when the quarantines are written. When they are right again, no
/// master waits for two hours, and no client that runs writes such an end again.
#[tokio::test]
async fn quarantines_by_clocks_that_were_ahead_end_soon() {
    let ahead = 7_200_000;
    let longest = 3_600_000_000; // far less than these two hours, and more than any quarantine (us)
    for _ in 0..times() {
        let mut masters = Masters::start_with_clocks(3, &[]);
        let urls = masters.urls();
        let builder = || {
            let builder = Redlock::builder().masters(urls.clone()).timeout(ms(500));
            builder.max_ttl(ms(1_000)).ttl(ms(1_000)).wait(TTL)
        };
        answering(&builder().all_new().build().unwrap(), 3).await;
        for master in masters.iter() {
            crate::until("it to be saved", async || master.try_command::<()>(&["SAVE"]).is_ok()).await;
            master.set_clock_offset(ahead);
        }
        (0..3).for_each(|at| masters[at].restart());
        let running = builder().build().unwrap();
        let ends = async |at: usize| {
            let field = ["HGET", "quorate:master", "quarantine"];
            let quarantine: Option<u64> = masters[at].try_command(&field).unwrap();
            let now = u64::try_from(BootClock.wall().as_micros()).unwrap();
            quarantine.map(|ends| ends.saturating_sub(now))
        };
        let waits = tokio::spawn({
            let running = running.clone();
            async move { running.lock("l").acquire().await }
        });
        for at in 0..3 {
            let is_written = async || ends(at).await.is_some_and(|left| left > longest);
            crate::until("a quarantine to be written", is_written).await;
        }
        masters.iter().for_each(|master| master.set_clock_offset(0));
        drop(builder().build().unwrap().lock("other").acquire().await.unwrap());
        drop(waits.await.unwrap().unwrap());
        masters[VICTIM].try_command::<()>(&["DEL", "quorate:master"]).unwrap();
        drop(running.lock("again").acquire().await.unwrap());
        crate::until("the record to be back", async || ends(VICTIM).await.is_some()).await;
        assert!(ends(VICTIM).await.unwrap() < longest);
    }
}

/// Randomness that is the same in two copies of one process.
#[derive(Debug)]
struct Copied;

impl Random for Copied {
    fn next_u64(&self) -> u64 {
        7
    }
}

/// Two copies of one process image are one client as far as both know. Neither enters what the
/// other holds.
#[tokio::test]
async fn two_copies_of_a_client_are_two_owners() {
    let masters = Masters::start(5);
    let copy = || crate::begin().masters(masters.urls()).random(Arc::new(Copied)).build().unwrap();
    let (one, other) = (copy(), copy());
    answering(&one, 5).await;
    answering(&other, 5).await;
    for name in (0..100).map(|number| format!("l{number}")) {
        let guard = one.lock(&name).try_acquire().await.unwrap();
        let error = other.lock(&name).try_acquire().await.unwrap_err();
        assert!(matches!(error, Error::Held { .. }) && guard.is_valid(), "{error}");
        assert_eq!(guard.owner().to_string()[..36], other.owner().to_string()[..36]);
    }
}

/// Who reads the hand-over of one copy cannot adopt what the other hands over.
#[tokio::test]
async fn two_copies_of_a_client_hand_over_with_two_secrets() {
    let masters = Masters::start(5);
    let secret = async |name: &str| {
        let copy = crate::begin().masters(masters.urls()).random(Arc::new(Copied)).build().unwrap();
        answering(&copy, 5).await;
        let guard = copy.lock(name).acquire().await.unwrap();
        let handover = guard.hand_over().await.unwrap().to_string();
        handover.split('.').nth(3).unwrap().to_owned()
    };
    assert_ne!(secret("one").await, secret("other").await);
}

/// A break is no reason to take masters for ones that forgot.
#[tokio::test]
async fn whoever_breaks_a_lock_trusts_the_masters_as_before() {
    let stage = Stage::set(Guards::On).await;
    let held = stage.first.lock("l").try_acquire().await.unwrap();
    stage.second.lock("l").force_release(&held.owner()).await.unwrap();
    let trusted = |status: &&quorate::MasterStatus| status.standing == Standing::Trusted;
    assert_eq!(stage.second.master_status().iter().filter(trusted).count(), 3);
}

/// A client with another list of masters, of the same length, which meets the set in some of them.
async fn has_other_list(set: &Redlock, urls: Vec<String>, theirs: &str) {
    let guard = set.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
    let stranger = Guards::On.builder().masters(urls).build().unwrap();
    for _ in 0..3 {
        let error = stranger.lock("l").wait(ms(200)).acquire().await.unwrap_err();
        assert!(guard.is_valid(), "{error}");
    }
    let said = async || match stranger.lock("l").try_acquire().await.unwrap_err() {
        Error::OtherSet { why, .. } => why.contains(theirs) && why.contains("give all clients the same"),
        Error::Refused { reason, .. } => reason == Refusal::OtherMembers,
        _ => false,
    };
    crate::until("both lists to be named", said).await;
    guard.release().await.unwrap();
}

/// Lists that meet in one master only, and lists of which some masters were replaced while the old
/// ones live: [0, 1, 2] and [2, 3, 4], [0, 3, 4], [0, 1, 3].
#[tokio::test]
async fn a_client_with_another_list_of_the_same_length_gets_nothing_and_is_told_both_lists() {
    for _ in 0..times() {
        let masters = Masters::start(5);
        let urls = |at: [usize; 3]| at.map(|at| masters.urls()[at].clone()).to_vec();
        let builder = Guards::On.builder().masters(urls([0, 1, 2]));
        let set = crate::begun(builder, Init::new()).await;
        let mut theirs = urls([0, 1, 2]);
        theirs.sort();
        for other in [[2, 3, 4], [0, 3, 4], [0, 1, 3]] {
            has_other_list(&set, urls(other), &theirs.join(", ")).await;
        }
    }
}

/// Two sets that want the same master begin at once: one of the two is complete at most, and where
/// it is, the other list is refused.
#[tokio::test]
async fn of_two_sets_that_begin_together_and_share_a_master_one_is_complete_at_most() {
    for _ in 0..times() {
        let masters = Masters::start(5);
        let begin = async |at: [usize; 3]| {
            let urls = at.map(|at| masters.urls()[at].clone());
            let builder = Guards::On.builder().max_ttl(TTL).wait(ms(3_000)).masters(urls);
            let redlock = builder.build().unwrap();
            let Ok(fingerprint) = redlock.fingerprint().await else { return false };
            redlock.init(Init::new().never_used(fingerprint)).await.is_ok()
        };
        let (one, other) = tokio::join!(begin([0, 1, 2]), begin([2, 3, 4]));
        assert!(!(one && other));
    }
}

/// {a, b, c} became {a, d, e}, the records were deleted, and a set of {a, b, c} begun again. A
/// client of the set of before, which was cut off, returns.
#[tokio::test]
async fn a_client_of_a_set_that_was_begun_again_undoes_nothing() {
    for _ in 0..times() {
        let masters = Masters::start(5);
        let urls = masters.urls();
        let builder = |list: [String; 3]| {
            Redlock::builder().masters(list).max_ttl(ms(1_000)).ttl(ms(1_000)).timeout(ms(500)).wait(TTL)
        };
        let first = || [0, 1, 2].map(|at| urls[at].clone());
        let operator = crate::begun(builder(first()), Init::new()).await;
        for (leaves, joins) in [(1, 3), (2, 4)] {
            operator.change_members(SetChange::replace(&urls[leaves], &urls[joins])).await.unwrap();
        }
        drop(operator);
        let mut proxies = Vec::new();
        for at in [0, 3, 4] {
            proxies.push(Proxy::start(masters[at].address()).await);
        }
        let old = builder([0, 1, 2].map(|at| proxies[at].url())).build().unwrap();
        drop(old.lock("l").acquire().await.unwrap());
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let lead_to = |addresses: [std::net::SocketAddr; 3]| {
            proxies.iter().zip(addresses).for_each(|(proxy, address)| proxy.lead_to(address));
            proxies.iter().for_each(Proxy::reset);
        };
        lead_to([silent.local_addr().unwrap(); 3]);
        for master in masters.iter() {
            master.command::<usize>(&["DEL", "quorate:master", "quorate:decree"]);
        }
        let new = builder(first()).build().unwrap();
        new.init(Init::new()).await.unwrap();
        drop(new.lock("l").acquire().await.unwrap());
        let records = || {
            let record = |at: usize| masters[at].command::<Vec<String>>(&["HGETALL", "quorate:master"]);
            [0, 1, 2].map(record)
        };
        let before = records();
        lead_to([0, 3, 4].map(|at| masters[at].address()));
        old.lock("l").wait(ms(2_000)).acquire().await.unwrap_err();
        assert_eq!(records(), before);
        drop(new.lock("l").try_acquire().await.unwrap());
    }
}

/// All keys of most masters are deleted at once. No word of a person, nor of a client, makes them
/// vote before all that they granted is over.
#[tokio::test]
async fn a_flushall_of_most_masters_gives_the_lock_to_nobody_else() {
    for _ in 0..times() {
        let masters = Masters::start(5);
        let builder = || Guards::On.builder().masters(masters.urls());
        let first = crate::begun(builder(), Init::new()).await;
        let guard = first.lock("l").ttl(TTL).no_renewal().try_acquire().await.unwrap();
        masters.iter().take(3).for_each(RedisServer::wipe);
        let second = builder().build().unwrap();
        let refused = second.init(Init::new().never_used("?")).await.unwrap_err();
        assert!(refused.to_string().contains("has a record"), "{refused}");
        let error = second.lock("l").wait(ms(500)).acquire().await.unwrap_err();
        assert!(guard.is_valid(), "{error}");
    }
}
