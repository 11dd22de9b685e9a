//! The world: true time, and what happens when. Nothing in a run happens but through its agenda, or
//! because of something that did.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use quorate_history::{Time, Violation};
use quorate_testkit::Dice;
use tokio::sync::Notify;

use crate::recorder::Recorder;
use crate::trace::Trace;
use crate::true_time::TrueTime;

type Event = Box<dyn FnOnce() + Send>;

/// The property that is violated when the library panics.
pub const PANIC: &str = "panic";

/// What a panic says.
pub fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it says nothing".to_owned())
}

/// True time, the agenda, and the trace of one run.
pub(crate) struct World {
    pub(crate) time: Arc<TrueTime>,
    /// Whether the event that happens has reached any client.
    reached: AtomicBool,
    agenda: Mutex<Agenda>,
    /// Notified when something is to happen before everything that was on the agenda.
    sooner: Notify,
    /// The first panic.
    panic: Mutex<Option<Violation>>,
    /// Notified when there is one.
    panicked: Notify,
    pub(crate) trace: Trace,
    pub(crate) recorder: Recorder,
    /// What all dice of the run come from.
    pub(crate) seed: u64,
}

/// What happens at some time, and how many were put down before.
struct Scheduled {
    at: Time,
    number: u64,
    event: Event,
}

#[derive(Default)]
struct Agenda {
    events: BinaryHeap<Scheduled>,
    /// How many there ever were: those of one moment happen in the order in which they were put
    /// down.
    count: u64,
}

impl World {
    /// A world at its beginning, in a runtime whose time is paused.
    pub(crate) fn new(seed: u64, trace: Trace) -> Arc<Self> {
        Arc::new(Self {
            time: TrueTime::beginning_now(),
            reached: AtomicBool::new(false),
            agenda: Mutex::default(),
            sooner: Notify::new(),
            panic: Mutex::default(),
            panicked: Notify::new(),
            trace,
            recorder: Recorder::default(),
            seed,
        })
    }

    /// True time.
    pub(crate) fn now(&self) -> Time {
        self.time.now()
    }

    /// Looks what time it is, whenever some may have passed: when anybody is run.
    pub(crate) fn look_at_the_time(&self) -> Time {
        self.time.look()
    }

    /// The event that happens has reached a client, which may have something to do now.
    pub(crate) fn reach(&self) {
        self.reached.store(true, Relaxed);
    }

    /// Has something happen at `time`, or now if that is over.
    pub(crate) fn at(&self, time: Time, event: impl FnOnce() + Send + 'static) {
        let mut agenda = self.agenda();
        agenda.count += 1;
        let number = agenda.count;
        let is_first = agenda.events.peek().is_none_or(|first| time < first.at);
        agenda.events.push(Scheduled { at: time, number, event: Box::new(event) });
        if is_first {
            self.sooner.notify_one();
        }
    }

    /// Has something happen after a while.
    pub(crate) fn after(&self, delay: Duration, event: impl FnOnce() + Send + 'static) {
        self.at(self.now() + delay, event);
    }

    /// Dice of their own for each purpose: what one draws changes nothing for another.
    pub(crate) fn dice(&self, purpose: &str, number: u64) -> Dice {
        Dice::new(self.seed, purpose, number)
    }

    /// Writes a line of the trace, if there is one.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        self.trace.note(|| (self.now(), line()));
    }

    /// Resolves when this does; when it panics, that is the end of the run. A runtime would keep a
    /// panic of a task to itself.
    pub(crate) async fn guard(&self, doing: impl Future<Output = ()>) {
        let Err(panic) = AssertUnwindSafe(doing).catch_unwind().await else { return };
        let what = words_of(&*panic);
        self.note(|| format!("PANIC: {what}"));
        let violation = Violation { property: PANIC, what, at: self.now() };
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        self.panicked.notify_one();
    }

    /// Resolves when somebody has panicked.
    pub(crate) async fn end(&self) {
        self.panicked.notified().await;
    }

    /// The first panic.
    pub(crate) fn panic(&self) -> Option<Violation> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs the agenda, one event after the other. The tasks that one wakes run before the next.
    pub(crate) async fn go_on(&self) {
        loop {
            let (due, next) = self.agenda().due(self.look_at_the_time());
            if let Some(event) = due {
                event();
                if self.reached.swap(false, Relaxed) {
                    let_others_run().await;
                }
                continue;
            }
            let far = Duration::from_secs(1_000_000);
            tokio::select! {
                biased;
                () = self.sooner.notified() => {}
                () = tokio::time::sleep_until(self.time.instant_of(next.unwrap_or(far))) => {}
            }
        }
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agenda {
    /// What is due first, and otherwise when something will be.
    fn due(&mut self, now: Time) -> (Option<Event>, Option<Time>) {
        let Some(first) = self.events.peek() else { return (None, None) };
        if first.at > now {
            return (None, Some(first.at));
        }
        (self.events.pop().map(|first| first.event), None)
    }
}

/// The earliest is the greatest, as a heap wants it.
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// All woken tasks run before this resolves. Time stands still.
async fn let_others_run() {
    let mut has_let = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_let, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
