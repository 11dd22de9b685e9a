//! A waker that is not heard while its task is busy with what would wake it. What a task sends to itself, as a link's driver
//! does to its transport, would otherwise cost it another turn each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};

use futures::task::AtomicWaker;

/// What its waker does.
#[derive(Debug, Default)]
pub(super) struct SelfWake {
    task: AtomicWaker,
    muted: AtomicBool,
    /// Whether it was woken while it was muted.
    missed: AtomicBool,
}

impl SelfWake {
    /// Wakes this task from now on.
    pub(super) fn register(&self, task: &Waker) {
        self.task.register(task);
    }

    /// Does something during which it wakes nobody, and says whether it would have. The task is then to look itself.
    pub(super) fn while_muted(&self, work: impl FnOnce()) -> bool {
        self.muted.store(true, SeqCst);
        work();
        self.muted.store(false, SeqCst);
        self.missed.swap(false, SeqCst)
    }
}

impl Wake for SelfWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.muted.load(SeqCst) {
            self.missed.store(true, SeqCst);
            // Still muted now, it is seen at the end of that.
            if self.muted.load(SeqCst) {
                return;
            }
        }
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    #[test]
    fn it_wakes_its_task_unless_muted_and_tells_what_was_missed() {
        let (wake, task) = (Arc::new(SelfWake::default()), Arc::new(Woken::default()));
        let waker = Waker::from(wake.clone());
        wake.register(&Waker::from(task.clone()));
        assert!(!wake.while_muted(|| {}));
        assert!(wake.while_muted(|| waker.wake_by_ref()));
        assert!(!task.0.load(SeqCst), "it was told otherwise");
        assert!(!wake.while_muted(|| {}), "it was told already");
        waker.wake_by_ref();
        assert!(task.0.load(SeqCst));
        assert!(!wake.while_muted(|| {}), "the task was woken");
    }
}
