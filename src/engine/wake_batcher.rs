//! Wakes callers whose rounds are decided. Waking a task of another thread costs a system call, and
//! most answers come many at a time: so one caller is woken, and wakes the others when it is run,
//! on its own thread, where that costs next to nothing. Nobody depends on it: where no caller is
//! run, the engine's thread goes on waking them, one a turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use tokio::sync::Notify;

use crate::sync::{Mutex, MutexGuard};

/// Who is still to be woken.
#[derive(Debug, Default)]
pub(super) struct WakeBatcher {
    state: Mutex<Wakers>,
    /// Whether somebody is, to be looked at without locking.
    is_waiting: AtomicBool,
    begun: Notify,
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
    /// The next caller waits for its turn: one was woken just now.
    Batching,
    /// Nobody goes on: everybody is woken at once.
    Ended,
}

impl WakeBatcher {
    /// A batcher, and the task that goes on waking.
    pub(super) fn new() -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let wake_batcher = Arc::new(Self::default());
        let running = Running(wake_batcher.clone());
        (wake_batcher, async move { running.0.go_on().await })
    }

    /// Wakes one, now or soon.
    pub(super) fn wake(&self, waker: Waker) {
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
        self.begun.notify_one();
        waker.wake();
    }

    /// Wakes all waiting callers. A woken caller calls this first.
    pub(super) fn wake_rest(&self) {
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
    pub(super) fn end(&self) {
        self.state().mode = Mode::Ended;
        self.begun.notify_one();
        self.take().into_iter().for_each(Waker::wake);
    }

    async fn go_on(&self) {
        while self.state().mode != Mode::Ended {
            self.begun.notified().await;
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

/// The task, whose end leaves nobody waiting.
struct Running(Arc<WakeBatcher>);

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

    fn wake(wake_batcher: &WakeBatcher, count: &Arc<Count>, times: usize) {
        (0..times).for_each(|_| wake_batcher.wake(count.clone().into()));
    }

    #[test]
    fn the_first_is_woken_at_once_and_wakes_the_others() {
        let (wake_batcher, _task) = WakeBatcher::new();
        let count = Arc::new(Count::default());
        wake(&wake_batcher, &count, 10);
        assert_eq!(count.woken(), 1);
        wake_batcher.wake_rest();
        assert_eq!(count.woken(), 10);
        wake_batcher.wake_rest();
        assert_eq!(count.woken(), 10);
    }

    #[tokio::test]
    async fn all_are_woken_though_none_is_run() {
        let (wake_batcher, task) = WakeBatcher::new();
        tokio::spawn(task);
        let count = Arc::new(Count::default());
        for round in 1..=3 {
            wake(&wake_batcher, &count, 10);
            while count.woken() < 10 * round {
                tokio::task::yield_now().await;
            }
        }
    }

    #[test]
    fn nobody_is_left_when_the_task_ends() {
        let (wake_batcher, task) = WakeBatcher::new();
        let count = Arc::new(Count::default());
        wake(&wake_batcher, &count, 10);
        drop(task);
        assert_eq!(count.woken(), 10);
        wake(&wake_batcher, &count, 2);
        assert_eq!(count.woken(), 12);
    }

    #[tokio::test]
    async fn the_task_ends_when_the_batcher_does() {
        let (wake_batcher, task) = WakeBatcher::new();
        let task = tokio::spawn(task);
        wake(&wake_batcher, &Arc::default(), 10);
        wake_batcher.end();
        task.await.unwrap();
    }
}
