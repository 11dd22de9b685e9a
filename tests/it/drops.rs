//! Guards dropped where there is no runtime, or none any more.

use std::cell::RefCell;

use quorate::{Guard, Redlock};
use quorate_testkit::{Masters, eventually};
use tokio::runtime::{Builder, Runtime};

use crate::{SOON, patient};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn acquire(redlock: &Redlock) -> Guard {
    runtime().block_on(redlock.lock("l").acquire()).unwrap()
}

/// Waits until every master has the key, so that the test sees it go.
fn granted_everywhere(masters: &Masters) {
    let all = || if masters.keys().len() == masters.iter().len() { Ok(()) } else { Err(masters.keys()) };
    runtime().block_on(eventually(SOON, all));
}

fn released(masters: &Masters) {
    runtime().block_on(eventually(SOON, || masters.empty()));
}

#[test]
fn on_a_plain_thread() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = acquire(&redlock);
    granted_everywhere(&masters);
    std::thread::spawn(move || drop(guard)).join().unwrap();
    released(&masters);
}

#[test]
fn after_its_runtime_ended() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let runtime = runtime();
    let guard = runtime.block_on(redlock.lock("l").acquire()).unwrap();
    drop(runtime);
    granted_everywhere(&masters);
    assert!(guard.is_valid());
    drop(guard);
    released(&masters);
}

#[test]
fn by_a_runtime_that_ends_while_it_is_held() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (held, holding) = std::sync::mpsc::channel();
    let holder = redlock.clone();
    runtime.spawn(async move {
        let _guard = holder.lock("l").acquire().await.unwrap();
        held.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    holding.recv_timeout(SOON).unwrap();
    granted_everywhere(&masters);
    runtime.shutdown_background();
    released(&masters);
}

#[test]
fn in_a_destructor_when_its_thread_ends() {
    thread_local! {
        static KEPT: RefCell<Option<Guard>> = const { RefCell::new(None) };
    }
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let held = redlock.clone();
    std::thread::spawn(move || {
        let guard = acquire(&held);
        drop(held);
        KEPT.set(Some(guard));
    })
    .join()
    .unwrap();
    released(&masters);
    drop(redlock);
}

#[test]
fn in_a_destructor_that_is_the_last_of_its_client() {
    thread_local! {
        static KEPT: RefCell<Option<Guard>> = const { RefCell::new(None) };
    }
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    std::thread::spawn(move || KEPT.set(Some(acquire(&redlock)))).join().unwrap();
    released(&masters);
}

#[test]
fn by_a_task_that_panics() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let holder = redlock.clone();
    runtime().block_on(async move {
        let task = tokio::spawn(async move {
            let _guard = holder.lock("l").acquire().await.unwrap();
            panic!("on purpose");
        });
        assert!(task.await.unwrap_err().is_panic());
    });
    released(&masters);
}

/// A program that ends right after its last guard is dropped has released: the last drop waits for
/// the masters.
#[test]
fn with_the_last_handle_and_nothing_after_it() {
    let masters = Masters::start(3);
    let mut at_once = 0;
    for _ in 0..20 {
        let guard = acquire(&patient(&masters));
        drop(guard);
        at_once += usize::from(masters.empty().is_ok());
        released(&masters); // a busy machine may take longer than the drop waits
    }
    assert!(at_once > 10, "{at_once} of 20");
}

#[test]
fn when_a_master_is_frozen_the_last_drop_does_not_wait_for_it_for_long() {
    let masters = Masters::start(3);
    let guard = acquire(&patient(&masters));
    granted_everywhere(&masters);
    masters[0].freeze();
    let begun = std::time::Instant::now();
    drop(guard);
    assert!(begun.elapsed() < crate::PATIENT);
    masters[0].thaw();
    released(&masters);
}

/// The futures need no runtime of their own either.
#[test]
fn every_operation_runs_on_any_executor() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    futures::executor::block_on(async {
        let guard = redlock.lock("l").acquire().await.unwrap();
        guard.extend(crate::TTL).await.unwrap();
        assert!(redlock.lock("l").wait(crate::ms(20)).acquire().await.is_err());
        assert!(redlock.lock("l").inspect().await.unwrap().holder().is_some());
        guard.release().await.unwrap();
        assert!(redlock.shutdown(SOON).await.is_complete());
    });
    assert_eq!(masters.empty(), Ok(()));
}
