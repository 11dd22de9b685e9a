//! The calling thread: whether it may wait, and how it does.

use std::pin::pin;
use std::sync::{Arc, Condvar, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::coop;

use crate::sync::Mutex;

/// More steps than tokio grants a task before it has to yield, which are 128.
const MANY: usize = 1 << 10;

/// Whether tokio is running a task on this thread, so that it must not wait.
///
/// A [`Handle`] does not prove it: a thread of `spawn_blocking` has one as well, and may wait. The
/// budget of steps does: tokio gives one to each task it polls, and none to code that may block. To
/// find out whether there is one, this uses it up and then puts it back.
pub(super) fn runs_tasks() -> bool {
    if Handle::try_current().is_err() {
        return false;
    }
    let mut context = Context::from_waker(Waker::noop());
    let _puts_back = coop::poll_proceed(&mut context); // in its drop
    for _ in 0..MANY {
        if !coop::has_budget_remaining() {
            return true;
        }
        if let Poll::Ready(step) = coop::poll_proceed(&mut context) {
            step.made_progress(); // it stays used up
        }
    }
    false
}

/// Polls `future` on this thread, which sleeps in between, until it is done.
///
/// It is not `futures::executor::block_on`, which panics within another of its kind.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    block_on_within(future, || Duration::MAX).expect("there is always time left")
}

/// The same while there is time `left`.
pub(super) fn block_on_within<F: Future>(future: F, left: impl Fn() -> Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(alarm.clone());
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        match left() {
            Duration::ZERO => return None,
            left => alarm.sleep(left),
        }
    }
}

/// Wakes the sleeping thread. It does not use `thread::park`, since other code may.
#[derive(Default)]
struct Alarm {
    rung: Mutex<bool>,
    ringing: Condvar,
}

impl Alarm {
    /// Sleeps until it rings, or has rung since the last sleep, for `most` at most.
    fn sleep(&self, most: Duration) {
        let rung = self.rung.lock();
        let slept = self.ringing.wait_timeout_while(rung, most, |rung| !*rung);
        let (mut rung, _) = slept.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.rung.lock() = true;
        self.ringing.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtimes() -> [Runtime; 2] {
        let many = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        [Builder::new_current_thread().enable_all().build().unwrap(), many]
    }

    #[test]
    fn a_thread_that_runs_tasks_is_known() {
        for runtime in runtimes() {
            assert!(runtime.block_on(async { runs_tasks() }));
            assert!(runtime.block_on(async { tokio::spawn(async { runs_tasks() }).await.unwrap() }));
            let local = tokio::task::LocalSet::new();
            let task = local.spawn_local(async { runs_tasks() });
            assert!(runtime.block_on(local.run_until(task)).unwrap());
        }
    }

    #[test]
    fn a_thread_that_may_wait_is_known() {
        assert!(!runs_tasks());
        for runtime in runtimes() {
            let _context = runtime.enter();
            assert!(!runs_tasks());
            assert!(!block_on(runtime.spawn_blocking(runs_tasks)).unwrap());
        }
        let [_, many] = runtimes();
        let in_place = async { tokio::task::block_in_place(runs_tasks) };
        assert!(!block_on(many.spawn(in_place)).unwrap());
        assert!(!many.block_on(async { tokio::task::block_in_place(runs_tasks) }));
    }

    #[tokio::test]
    async fn asking_costs_a_task_nothing() {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(runs_tasks());
            assert!(coop::has_budget_remaining());
        }
        // The same without any budget left.
        while let Poll::Ready(step) = coop::poll_proceed(&mut context) {
            step.made_progress();
        }
        assert!(runs_tasks() && !coop::has_budget_remaining());
    }

    #[test]
    fn a_wake_is_not_lost_whenever_it_comes() {
        // Before the sleep, from the poll itself.
        let mut polls = 0;
        let twice = std::future::poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        });
        block_on(twice);
        assert_eq!(polls, 2);
        // And from another thread, at any moment.
        for _ in 0..1000 {
            let (reply, answer) = tokio::sync::oneshot::channel();
            let thread = std::thread::spawn(move || reply.send(7).unwrap());
            assert_eq!(block_on(answer), Ok(7));
            thread.join().unwrap();
        }
    }

    #[test]
    fn it_waits_within_another_executor() {
        assert_eq!(futures::executor::block_on(async { block_on(async { 7 }) }), 7);
    }

    #[test]
    fn it_ends_when_the_time_is_up() {
        let looks = std::cell::Cell::new(0);
        let left = || {
            looks.set(looks.get() + 1);
            Duration::from_millis(2 - looks.get())
        };
        assert_eq!(block_on_within(std::future::pending::<()>(), left), None);
        assert_eq!(looks.get(), 2);
    }
}
