//! A waker that is not heard while its task is busy with what would wake it. What a task sends to itself, as a carrier does
//! to its session's driver, would otherwise cost it another turn each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};

use futures::task::AtomicWaker;

/// What its waker does.
#[derive(Debug, Default)]
pub(super) struct Muffle {
    task: AtomicWaker,
    muffled: AtomicBool,
    /// Whether it was woken while it was muffled.
    missed: AtomicBool,
}

impl Muffle {
    /// Wakes this task from now on.
    pub(super) fn register(&self, task: &Waker) {
        self.task.register(task);
    }

    /// Does something during which it wakes nobody, and says whether it would have. The task is then to look itself.
    pub(super) fn while_muffled(&self, work: impl FnOnce()) -> bool {
        self.muffled.store(true, SeqCst);
        work();
        self.muffled.store(false, SeqCst);
        self.missed.swap(false, SeqCst)
    }
}

impl Wake for Muffle {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.muffled.load(SeqCst) {
            self.missed.store(true, SeqCst);
            // Still muffled now, it is seen at the end of that.
            if self.muffled.load(SeqCst) {
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
    fn it_wakes_its_task_unless_muffled_and_tells_what_was_missed() {
        let (muffle, task) = (Arc::new(Muffle::default()), Arc::new(Woken::default()));
        let waker = Waker::from(muffle.clone());
        muffle.register(&Waker::from(task.clone()));
        assert!(!muffle.while_muffled(|| {}));
        assert!(muffle.while_muffled(|| waker.wake_by_ref()));
        assert!(!task.0.load(SeqCst), "it was told otherwise");
        assert!(!muffle.while_muffled(|| {}), "it was told already");
        waker.wake_by_ref();
        assert!(task.0.load(SeqCst));
        assert!(!muffle.while_muffled(|| {}), "the task was woken");
    }
}
