//! Wakes callers whose rounds are decided. Waking a task of another thread costs a system call, and
//! many rounds are decided at a time: so the engine's thread wakes one caller, and that wakes the
//! others when it is polled, on its own thread, where it costs next to nothing. This is only an
//! optimisation: if no caller is polled, the engine's thread wakes one of them each time it is run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use tokio::sync::Notify;

use crate::sync::{Mutex, MutexGuard};

/// The callers to wake.
#[derive(Debug, Default)]
pub(crate) struct CallerWaker {
    state: Mutex<Wakers>,
    /// Whether a caller waits to be woken; read without locking.
    is_waiting: AtomicBool,
    /// Notified when a caller was woken, or the waking has ended.
    somebody_woken: Notify,
}

#[derive(Debug, Default)]
struct Wakers {
    waiting: VecDeque<Waker>,
    mode: Mode,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The next caller is woken at once.
    #[default]
    Direct,
    /// The next caller waits to be woken by the one that was woken just now.
    Batching,
    /// The task has ended: each caller is woken at once.
    Ended,
}

impl CallerWaker {
    /// The waker, and the task that wakes callers if no caller does.
    pub(super) fn new() -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let caller_waker = Arc::new(Self::default());
        let running = Running(caller_waker.clone());
        (caller_waker, async move { running.0.go_on().await })
    }

    /// Wakes one caller, now or soon.
    pub(crate) fn wake(&self, waker: Waker) {
        {
            let mut state = self.state();
            match state.mode {
                Mode::Direct => state.mode = Mode::Batching,
                Mode::Batching => {
                    state.waiting.push_back(waker);
                    return self.is_waiting.store(true, Ordering::Release);
                }
                Mode::Ended => {}
            }
        }
        self.somebody_woken.notify_one();
        waker.wake();
    }

    /// Wakes all callers that wait for it. A caller does this first when it is polled.
    pub(crate) fn wake_rest(&self) {
        if self.is_waiting.load(Ordering::Acquire) {
            let waiting = self.take();
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    fn take(&self) -> VecDeque<Waker> {
        let mut state = self.state();
        self.is_waiting.store(false, Ordering::Release);
        std::mem::take(&mut state.waiting)
    }

    /// Wakes all callers, and from now on each new one at once.
    pub(crate) fn end(&self) {
        self.state().mode = Mode::Ended;
        self.somebody_woken.notify_one();
        self.take().into_iter().for_each(Waker::wake);
    }

    async fn go_on(&self) {
        while self.state().mode != Mode::Ended {
            self.somebody_woken.notified().await;
            while let Some(next) = self.next() {
                next.wake();
                tokio::task::yield_now().await;
            }
        }
    }

    fn next(&self) -> Option<Waker> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        if next.is_none() && state.mode == Mode::Batching {
            state.mode = Mode::Direct;
        }
        next
    }

    fn state(&self) -> MutexGuard<'_, Wakers> {
        self.state.lock()
    }
}

/// The task. Its end wakes all callers.
struct Running(Arc<CallerWaker>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn woken(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn wake(caller_waker: &CallerWaker, count: &Arc<Count>, times: usize) {
        (0..times).for_each(|_| caller_waker.wake(count.clone().into()));
    }

    #[test]
    fn the_first_is_woken_at_once_and_wakes_the_others() {
        let (caller_waker, _task) = CallerWaker::new();
        let count = Arc::new(Count::default());
        wake(&caller_waker, &count, 10);
        assert_eq!(count.woken(), 1);
        caller_waker.wake_rest();
        assert_eq!(count.woken(), 10);
        caller_waker.wake_rest();
        assert_eq!(count.woken(), 10);
    }

    #[tokio::test]
    async fn all_are_woken_though_none_is_run() {
        let (caller_waker, task) = CallerWaker::new();
        tokio::spawn(task);
        let count = Arc::new(Count::default());
        for round in 1..=3 {
            wake(&caller_waker, &count, 10);
            while count.woken() < 10 * round {
                tokio::task::yield_now().await;
            }
        }
    }

    #[test]
    fn nobody_is_left_when_the_task_ends() {
        let (caller_waker, task) = CallerWaker::new();
        let count = Arc::new(Count::default());
        wake(&caller_waker, &count, 10);
        drop(task);
        assert_eq!(count.woken(), 10);
        wake(&caller_waker, &count, 2);
        assert_eq!(count.woken(), 12);
    }

    #[tokio::test]
    async fn the_task_ends_when_the_waker_does() {
        let (caller_waker, task) = CallerWaker::new();
        let task = tokio::spawn(task);
        wake(&caller_waker, &Arc::default(), 10);
        caller_waker.end();
        task.await.unwrap();
    }
}
