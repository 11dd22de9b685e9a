//! The read-write lock: many readers or one writer, each with a lease of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate::{Error, Guard, Lock, Loss, Redlock};
use quorate_testkit::{Masters, RedisServer, cancel_at_every_poll, eventually};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::cancel::same_runtime;
use crate::clock::{Jumping, NOTICE};
use crate::fair::TIME_TO_ASK;
use crate::waiting::{standing, waiter};
use crate::wake_ups::{LONG, clients, handed};
use crate::{SOON, TTL, answering, builder, ms, patient, until};

fn read(redlock: &Redlock) -> Lock {
    redlock.read_lock("l")
}

fn write(redlock: &Redlock) -> Lock {
    redlock.write_lock("l")
}

async fn nothing_is_left(masters: &Masters) {
    eventually(SOON, || masters.empty()).await;
}

/// How many entries the lock has on a master, be they over.
fn holders(masters: &Masters, place: usize) -> usize {
    let fields: Vec<(String, String)> = masters[place].command(&["HGETALL", "quorate:{l}"]);
    let is_entry = |(field, value): &&(String, String)| {
        (field == "x" || field.starts_with("r:")) && value.split(' ').nth(3) != Some("0")
    };
    fields.iter().filter(is_entry).count()
}

async fn holders_on_all(masters: &Masters, count: usize) {
    until("the holders on every master", async || {
        (0..masters.iter().len()).all(|i| holders(masters, i) == count)
    })
    .await;
}

#[tokio::test]
async fn many_read_at_a_time_and_nobody_writes_meanwhile() {
    let masters = Masters::start(5);
    let clients = clients(&masters, 3);
    let mut readers = Vec::new();
    for i in 0..9 {
        readers.push(read(&clients[i % 3]).acquire().await.unwrap());
    }
    let mut fences: Vec<_> = readers.iter().map(Guard::fencing_token).collect();
    fences.dedup();
    assert_eq!(fences.len(), 9, "each has a token of its own");
    let Err(Error::Held { .. }) = write(&clients[0]).try_acquire().await else { panic!("nine read") };
    let last = readers.pop().unwrap();
    for reader in readers {
        reader.release().await.unwrap();
    }
    let Err(Error::Held { holder, .. }) = write(&clients[0]).try_acquire().await else { panic!("one reads") };
    assert_eq!(*holder.owner, *last.owner().to_string());
    last.release().await.unwrap();
    let writer = write(&clients[1]).wait(SOON).acquire().await.unwrap();
    assert!(writer.fencing_token() > *fences.iter().max().unwrap());
    let Err(Error::Held { holder, .. }) = read(&clients[0]).try_acquire().await else { panic!("one writes") };
    assert_eq!(*holder.owner, *writer.owner().to_string());
    let Err(Error::Held { .. }) = write(&clients[0]).try_acquire().await else { panic!("one writes") };
    let fence = writer.fencing_token();
    writer.release().await.unwrap();
    let reader = read(&clients[2]).acquire().await.unwrap();
    assert!(reader.fencing_token() > fence);
    reader.release().await.unwrap();
    nothing_is_left(&masters).await;
}

/// The first client reads, and the second one waits to write.
async fn a_writer_behind_a_reader(
    masters: &Masters,
    clients: &[Redlock],
) -> (Guard, JoinHandle<Result<Guard, Error>>) {
    let reader = read(&clients[0]).acquire().await.unwrap();
    holders_on_all(masters, 1).await;
    let writing = waiter(write(&clients[1]).ttl(LONG)).await;
    standing(masters.iter(), 1).await;
    (reader, writing)
}

#[tokio::test]
async fn a_writer_that_waits_is_not_starved_by_new_readers() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let (first, writing) = a_writer_behind_a_reader(&masters, &clients).await;
    for _ in 0..20 {
        let Err(Error::Held { holder, .. }) = read(&clients[2]).try_acquire().await else {
            panic!("it barged in")
        };
        assert_ne!(*holder.owner, *first.owner().to_string(), "it is behind the writer");
    }
    let reading = waiter(read(&clients[2]).ttl(LONG)).await;
    standing(masters.iter(), 2).await;
    let fence = first.fencing_token();
    first.release().await.unwrap();
    let writer = handed(writing).await;
    assert!(writer.fencing_token() > fence && !reading.is_finished());
    let fence = writer.fencing_token();
    writer.release().await.unwrap();
    let reader = handed(reading).await;
    assert!(reader.fencing_token() > fence);
    reader.release().await.unwrap();
    nothing_is_left(&masters).await;
}

/// When the last reader leaves, the lock is free until the writer has been called and asks.
#[tokio::test]
async fn a_writer_is_not_starved_by_readers_that_only_try() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let (first, writing) = a_writer_behind_a_reader(&masters, &clients).await;
    let (stop, mut readers) = (CancellationToken::new(), JoinSet::new());
    for redlock in clients.iter().cycle().take(24) {
        let (lock, stop, mut let_in) = (read(redlock), stop.clone(), 0);
        readers.spawn(async move {
            while !stop.is_cancelled() {
                if let Ok(guard) = lock.try_acquire().await {
                    let_in += 1;
                    sleep(ms(20)).await;
                    let _ = guard.release().await; // a master may be too busy to answer in time
                }
            }
            let_in
        });
    }
    first.release().await.unwrap();
    let writer = handed(writing).await;
    stop.cancel();
    let before: u32 = readers.join_all().await.into_iter().sum();
    assert!(before <= 3, "{before} readers went before it: was it not asked for a second?");
    writer.release().await.unwrap();
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn all_readers_that_wait_are_let_in_together() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let writer = write(&clients[0]).acquire().await.unwrap();
    holders_on_all(&masters, 1).await;
    let mut waiting = Vec::new();
    for i in 0..6 {
        waiting.push(waiter(read(&clients[i % 3]).ttl(LONG)).await);
    }
    standing(masters.iter(), 6).await;
    writer.release().await.unwrap();
    let mut readers = Vec::new();
    for waiter in waiting {
        readers.push(handed(waiter).await);
    }
    assert!(readers.iter().all(Guard::is_valid));
    drop(readers);
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn a_writer_that_waits_no_more_lets_the_readers_behind_it_in() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let (first, writing) = a_writer_behind_a_reader(&masters, &clients).await;
    let reading = waiter(read(&clients[2]).ttl(LONG)).await;
    standing(masters.iter(), 2).await;
    writing.abort();
    let reader = handed(reading).await;
    assert!(first.is_valid() && reader.is_valid());
}

#[tokio::test]
async fn a_waiting_writer_that_died_is_in_nobodys_way() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    let first = read(&clients[0]).acquire().await.unwrap();
    for server in masters.iter() {
        let ticket = "w:00000000-0000-0000-0000-000000000001:1";
        crate::queue_up(server, "rw", ticket, 1);
    }
    let second = read(&clients[1]).try_acquire().await.unwrap();
    assert!(first.is_valid() && second.is_valid());
}

/// Its process hears that it is called, and does not ask.
#[tokio::test]
async fn a_waiting_writer_that_stands_still_keeps_readers_out_for_a_second_and_not_for_ever() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 3);
    let first = read(&clients[0]).acquire().await.unwrap();
    holders_on_all(&masters, 1).await;
    let _ears = crate::fair::frozen_as("rw", "w:", &masters, 2);
    assert!(matches!(read(&clients[1]).try_acquire().await, Err(Error::Held { .. })), "they may come yet");
    let second = read(&clients[1]).wait(SOON).acquire().await.unwrap();
    assert!(first.is_valid() && second.is_valid());
    // One that lives and waits as well is not passed over, however often it is called.
    let writing = waiter(write(&clients[2]).ttl(LONG)).await;
    standing(masters.iter(), 1).await;
    let begun = Instant::now();
    while begun.elapsed() < 3 * TIME_TO_ASK {
        assert!(matches!(read(&clients[1]).try_acquire().await, Err(Error::Held { .. })), "it barged in");
        sleep(ms(20)).await;
    }
    drop((first, second));
    handed(writing).await.release().await.unwrap();
}

#[tokio::test]
async fn a_dead_reader_does_not_live_on_through_the_others() {
    let masters = Masters::start(3);
    let clients = [(); 3].map(|()| patient(&masters));
    let brief = builder(&masters).timeout(ms(200)).build().unwrap();
    let dead = read(&brief).ttl(ms(700)).no_renewal().acquire().await.unwrap();
    let ends = dead.deadline();
    std::mem::forget(dead);
    let alive = read(&clients[1]).ttl(Duration::from_secs(30)).acquire().await.unwrap();
    let reads = |server: &RedisServer| -> bool {
        server.command(&["HEXISTS", "quorate:{l}", &format!("r:{}", alive.owner())])
    };
    until("the reader on every master", async || masters.iter().all(reads)).await;
    let writing = waiter(write(&clients[2]).ttl(LONG)).await;
    standing(masters.iter(), 1).await;
    // Whoever lives on goes after the dead one's lease, which masters keep from others for a while
    // longer. The writer follows at once, and not when the longest lease would end.
    until("the end of the lease", async || clients[0].now() > ends + ms(1_000)).await;
    alive.release().await.unwrap();
    let writer = handed(writing).await;
    writer.release().await.unwrap();
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn the_writer_follows_a_reader_that_died_when_its_own_lease_ends() {
    let masters = Masters::start(3);
    let clients = [(); 2].map(|()| builder(&masters).timeout(ms(200)).build().unwrap());
    std::mem::forget(read(&clients[0]).ttl(ms(700)).no_renewal().acquire().await.unwrap());
    let writer = write(&clients[1]).wait(SOON).acquire().await.unwrap();
    assert!(writer.is_valid());
}

/// Its writer died, or only forgets about it: readers wait for that lease, whatever else its owner
/// has.
#[tokio::test]
async fn a_writers_lease_ends_though_its_owner_reads_on() {
    let masters = Masters::start(3);
    let clients = [(); 2].map(|()| builder(&masters).timeout(ms(1_500)));
    let [first, other] = clients.map(|builder| builder.build().unwrap());
    answering(&other, 3).await;
    let owner = first.owner();
    let writer = write(&first).owned_by(&owner).ttl(ms(2_000)).no_renewal().acquire().await.unwrap();
    let reader = read(&first).owned_by(&owner).ttl(LONG).acquire().await.unwrap();
    let refused = read(&other).try_acquire().await.unwrap_err();
    assert_eq!(*refused.holder().unwrap().owner, *owner.to_string());
    let waited = std::time::Instant::now();
    let beside = handed(waiter(read(&other)).await).await;
    assert!(waited.elapsed() < LONG / 4, "{:?}", waited.elapsed());
    assert!(!writer.is_valid() && reader.is_valid() && beside.is_valid());
}

#[tokio::test]
async fn an_owner_reads_again_writes_again_and_goes_from_writing_to_reading_and_not_back() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let other = patient(&masters);
    let me = redlock.owner();
    let (reads, writes) = (read(&redlock).owned_by(&me), write(&redlock).owned_by(&me));
    let outer = writes.acquire().await.unwrap();
    let inner = writes.acquire().await.unwrap();
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    inner.release().await.unwrap();
    // Others wait to read, also in this process: who writes does not stand behind them.
    let waiting = [waiter(read(&redlock).ttl(LONG)).await, waiter(read(&other).ttl(LONG)).await];
    standing(masters.iter(), 2).await;
    let reading = reads.acquire().await.unwrap();
    assert!(reading.fencing_token() > outer.fencing_token());
    assert!(reads.is_held_by(&me).await.unwrap() && writes.is_held_by(&me).await.unwrap());
    outer.release().await.unwrap();
    for waiter in waiting {
        handed(waiter).await.release().await.unwrap();
    }
    assert!(reads.is_held_by(&me).await.unwrap() && !writes.is_held_by(&me).await.unwrap());
    let again = reads.acquire().await.unwrap();
    again.release().await.unwrap();
    for lock in [writes.clone(), writes.clone().wait(SOON), writes.clone().wait(Duration::ZERO)] {
        let error = lock.acquire().await.unwrap_err();
        assert!(
            matches!(&error, Error::Upgrade { name, owner, .. } if &**name == "l" && *owner == me),
            "{error}"
        );
        assert!(error.to_string().contains("cannot become a write lock"), "{error}");
    }
    assert!(matches!(writes.try_acquire().await, Err(Error::Upgrade { .. })));
    assert!(reading.is_valid());
    reading.release().await.unwrap();
    writes.acquire().await.unwrap().release().await.unwrap();
    nothing_is_left(&masters).await;
}

/// Two readers of which both would write: with locks that let them wait they wait for each other.
#[tokio::test]
async fn of_two_readers_that_would_write_none_waits_for_the_other() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let owners = [redlock.owner(), redlock.owner()];
    let mut reading = Vec::new();
    for owner in &owners {
        reading.push(read(&redlock).owned_by(owner).acquire().await.unwrap());
    }
    for owner in &owners {
        let error = write(&redlock).owned_by(owner).wait(SOON).acquire().await.unwrap_err();
        assert!(matches!(error, Error::Upgrade { .. }), "{error}");
    }
}

/// A writer that waits hears it, too, when its owner begins to read meanwhile: while it stands in
/// the queues, where its owner stands before it, and while it polls, where others read.
#[tokio::test]
async fn an_owner_that_reads_while_it_waits_to_write_is_refused() {
    let masters = Masters::start(3);
    let clients = clients(&masters, 2);
    let me = clients[1].owner();
    let (reads, writes) = (read(&clients[1]).owned_by(&me), write(&clients[1]).owned_by(&me));

    let held = write(&clients[0]).acquire().await.unwrap();
    holders_on_all(&masters, 1).await;
    let reading = waiter(reads.clone()).await;
    standing(masters.iter(), 1).await;
    let writing = waiter(writes.clone()).await;
    standing(masters.iter(), 2).await;
    held.release().await.unwrap();
    let reader = handed(reading).await;
    is_refused_to_upgrade(writing).await;
    assert!(reader.is_valid());
    standing(masters.iter(), 0).await;
    reader.release().await.unwrap();

    let held = read(&clients[0]).acquire().await.unwrap();
    holders_on_all(&masters, 1).await;
    let writing = waiter(writes.poll_every(ms(5), 100_000)).await;
    let reader = reads.acquire().await.unwrap();
    is_refused_to_upgrade(writing).await;
    assert!(held.is_valid() && reader.is_valid());
    drop((held, reader));
    nothing_is_left(&masters).await;
}

/// Far sooner than its wait ends.
async fn is_refused_to_upgrade(writing: JoinHandle<Result<Guard, Error>>) {
    let error = tokio::time::timeout(SOON, writing).await.expect("it is told").unwrap().unwrap_err();
    assert!(matches!(error, Error::Upgrade { .. }), "{error}");
}

#[tokio::test]
async fn readers_are_renewed_extended_seen_and_broken_each_by_itself() {
    let masters = Masters::start(3);
    let clients = [(); 2].map(|()| patient(&masters));
    let one = read(&clients[0]).renew_every(ms(200)).acquire().await.unwrap();
    let other = read(&clients[1]).acquire().await.unwrap();
    let first = one.deadline();
    until("two renewals", async || one.deadline() >= first + ms(350)).await;
    one.extend(Duration::from_secs(20)).await.unwrap();
    assert!(one.remaining() > Duration::from_secs(10) && other.is_valid());
    for guard in [&one, &other] {
        assert!(read(&clients[0]).is_held_by(&guard.owner()).await.unwrap());
        assert!(!write(&clients[0]).is_held_by(&guard.owner()).await.unwrap());
    }
    read(&clients[1]).force_release(&one.owner()).await.unwrap();
    assert!(!read(&clients[0]).is_held_by(&one.owner()).await.unwrap());
    assert!(read(&clients[0]).is_held_by(&other.owner()).await.unwrap());
    assert!(matches!(read(&clients[1]).force_release(&one.owner()).await, Err(Error::NotHeld { .. })));
    let error = one.extend(Duration::from_secs(20)).await.unwrap_err();
    assert!(matches!(error, Error::Lost { cause: Loss::NotOurs, .. }), "{error}");
    assert!(!read(&clients[0]).is_held_by(&one.owner()).await.unwrap(), "it does not come back");
    other.release().await.unwrap();
    write(&clients[0]).acquire().await.unwrap().release().await.unwrap();
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn a_reader_is_handed_over_while_others_read() {
    let masters = Masters::start(3);
    let (one, other) = (patient(&masters), patient(&masters));
    let beside = read(&other).acquire().await.unwrap();
    let held = read(&one).acquire().await.unwrap();
    let token = held.hand_over().await.unwrap();
    let adopted = read(&other).adopt(&token).await.unwrap();
    assert!(adopted.fencing_token() > held.fencing_token() && !held.is_valid() && beside.is_valid());
    assert!(matches!(read(&one).adopt(&token).await, Err(Error::Lost { .. })));
    beside.release().await.unwrap();
    assert!(matches!(write(&one).try_acquire().await, Err(Error::Held { .. })));
    adopted.release().await.unwrap();
    nothing_is_left(&masters).await;
}

#[tokio::test]
async fn readers_read_with_two_of_five_masters_down_and_lose_with_three() {
    let masters = Masters::start(5);
    let clock = Arc::new(Jumping::default());
    let redlock = builder(&masters).clock(clock.clone()).build().unwrap();
    (0..2).for_each(|i| masters[i].kill());
    let held = [read(&redlock), read(&redlock)];
    let mut held = futures::future::try_join_all(held.iter().map(Lock::acquire)).await.unwrap();
    assert!(matches!(write(&redlock).try_acquire().await, Err(Error::Held { .. })));
    masters[2].kill();
    clock.jump(TTL / 2);
    until("renewals that fail", async || held.iter().all(|guard| guard.renewal_error().is_some())).await;
    held.sort_by_key(Guard::deadline);
    for guard in held {
        clock.stand_at(guard.deadline() - NOTICE);
        let loss = tokio::time::timeout(SOON, guard.lost()).await.unwrap();
        assert!(matches!(loss, Error::Lost { cause: Loss::Expired, .. }), "{loss}");
        assert!(redlock.now() < guard.deadline());
    }
}

#[tokio::test]
async fn a_reader_dropped_after_any_number_of_polls_leaves_nothing() {
    let masters = Masters::start(3);
    let redlock = same_runtime(&masters);
    read(&redlock).acquire().await.unwrap().release().await.unwrap();
    let free = async |polls, guard: Option<Result<Guard, Error>>| {
        if let Some(guard) = guard {
            assert!(guard.is_ok(), "after {polls} polls: {guard:?}");
        }
        write(&redlock).wait(SOON).acquire().await.unwrap().release().await.unwrap();
    };
    let acquire = || async { read(&redlock).try_acquire().await };
    assert!(cancel_at_every_poll(100_000, acquire, free).await.unwrap() > 1);
    nothing_is_left(&masters).await;
}

/// A master that lost the readers' key takes them back one by one, and no writer comes in between.
#[tokio::test]
async fn readers_take_back_what_a_master_lost_and_no_writer_comes_in_between() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(300)).build().unwrap();
    let one = read(&redlock).ttl(Duration::from_secs(3)).acquire().await.unwrap();
    let other = read(&redlock).ttl(Duration::from_secs(4)).acquire().await.unwrap();
    holders_on_all(&masters, 2).await;
    let _: i64 = masters[1].command(&["DEL", "quorate:{l}"]);
    let Err(Error::Held { .. }) = write(&redlock).try_acquire().await else { panic!("two read") };
    holders_on_all(&masters, 2).await;
    assert!(one.is_valid() && other.is_valid());
    one.release().await.unwrap();
    let Err(Error::Held { .. }) = write(&redlock).try_acquire().await else { panic!("one reads") };
    other.release().await.unwrap();
    write(&redlock).wait(SOON).acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn nobody_is_given_one_of_the_two_locks_of_an_owner() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let me = redlock.owner();
    let writing = write(&redlock).owned_by(&me).acquire().await.unwrap();
    let reading = read(&redlock).owned_by(&me).acquire().await.unwrap();
    for guard in [&writing, &reading] {
        let error = guard.hand_over().await.unwrap_err();
        assert!(matches!(&error, Error::Invalid(why) if why.to_string().contains("is entered ")), "{error}");
    }
    writing.release().await.unwrap();
    let token = reading.hand_over().await.unwrap();
    let adopted = read(&redlock).adopt(&token).await.unwrap();
    assert!(adopted.is_valid() && !reading.is_valid());
}

/// Whoever stands in line behind others that wait for its own owner does not wait with them.
#[tokio::test]
async fn an_owner_in_line_is_let_in_or_refused_as_soon_as_it_has_the_other_lock() {
    for (first, second) in [(write as fn(&Redlock) -> Lock, read as fn(&Redlock) -> Lock), (read, write)] {
        let masters = Masters::start(3);
        let clients = clients(&masters, 2);
        let me = clients[0].owner();
        let held = write(&clients[1]).acquire().await.unwrap();
        holders_on_all(&masters, 1).await;
        let getting = waiter(first(&clients[0]).owned_by(&me).ttl(LONG)).await;
        standing(masters.iter(), 1).await;
        let mut others = Vec::new();
        for _ in 0..9 {
            others.push(waiter(second(&clients[0]).ttl(LONG)).await);
        }
        let asking = waiter(second(&clients[0]).owned_by(&me).ttl(LONG)).await;
        // Nobody comes for the lock when it is free already.
        let stands = if std::ptr::fn_addr_eq(second, read as fn(&Redlock) -> Lock) { 9 } else { 2 };
        standing(masters.iter(), stands).await;
        held.release().await.unwrap();
        let guard = handed(getting).await;
        match tokio::time::timeout(SOON, asking).await.unwrap().unwrap() {
            Ok(both) => both.release().await.unwrap(),
            Err(error) => assert!(matches!(error, Error::Upgrade { .. }), "{error}"),
        }
        others.iter().for_each(JoinHandle::abort);
        guard.release().await.unwrap();
    }
}
