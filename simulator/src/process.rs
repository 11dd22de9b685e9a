//! A client's process: it runs its tasks, stands still, and dies.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use quorate::seam::Spawn;
use quorate_testkit::Dice;

use crate::client::ClientNumber;
use crate::world::World;

/// In this many of a thousand cases other tasks run before a task that could be run.
const PUT_OFF: u64 = 50;

type Delivery = Box<dyn FnOnce() + Send>;

/// One client's process.
pub(crate) struct Process {
    pub(crate) number: ClientNumber,
    world: Arc<World>,
    /// Decides which task is run next.
    dice: Dice,
    state: Mutex<ProcessState>,
    last_messages: Mutex<Option<LastMessages>>,
}

/// How many messages a process sends before it is killed.
struct LastMessages {
    left: u64,
    kill: Delivery,
}

#[derive(Default)]
struct ProcessState {
    life: Life,
    /// The tasks that are to be run when it goes on.
    waiting: Vec<Waker>,
    /// What arrived meanwhile: what there is to read, and then the timers.
    mail: Vec<Delivery>,
    alarms: Vec<Delivery>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Life {
    #[default]
    Running,
    Still,
    Dead,
}

impl Process {
    pub(crate) fn new(number: ClientNumber, world: &Arc<World>) -> Arc<Self> {
        let dice = world.dice("scheduler", number as u64);
        let world = world.clone();
        Arc::new(Self { number, world, dice, state: Mutex::default(), last_messages: Mutex::default() })
    }

    /// What arrives at the process: it is dealt with when that runs, and never if it is dead.
    pub(crate) fn deliver(&self, mail: impl FnOnce() + Send + 'static) {
        self.reach(mail, |state| &mut state.mail);
    }

    /// A timer of the process. After it stood still it reads what there is to read before it looks
    /// at its timers.
    pub(crate) fn alarm(&self, alarm: impl FnOnce() + Send + 'static) {
        self.reach(alarm, |state| &mut state.alarms);
    }

    /// The process does something by itself: when it goes on, if it stands still, and never if it
    /// is dead.
    pub(crate) fn does(&self, what: impl FnOnce() + Send + 'static) {
        if let Some(what) = self.now_or_later(what, |state| &mut state.alarms) {
            what();
        }
    }

    fn reach<D: FnOnce() + Send + 'static>(
        &self,
        delivery: D,
        kept: fn(&mut ProcessState) -> &mut Vec<Delivery>,
    ) {
        if let Some(delivery) = self.now_or_later(delivery, kept) {
            self.world.reach();
            delivery();
        }
    }

    /// Answers what is to be done now, unlocked, for it may look here.
    fn now_or_later<D: FnOnce() + Send + 'static>(
        &self,
        what: D,
        kept: fn(&mut ProcessState) -> &mut Vec<Delivery>,
    ) -> Option<D> {
        let mut state = self.state();
        match state.life {
            Life::Running => Some(what),
            Life::Still => {
                kept(&mut state).push(Box::new(what));
                None
            }
            Life::Dead => None,
        }
    }

    /// It stands still: stopped, swapped out, or collecting garbage.
    pub(crate) fn pause(&self) {
        let mut state = self.state();
        if state.life == Life::Running {
            state.life = Life::Still;
        }
    }

    /// It goes on.
    pub(crate) fn resume(&self) {
        let ProcessState { mail, alarms, waiting, .. } = {
            let mut state = self.state();
            if state.life != Life::Still {
                return;
            }
            std::mem::take(&mut *state) // it runs
        };
        self.world.reach();
        mail.into_iter().chain(alarms).for_each(|delivery| delivery());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// It is killed, and nothing of it is ever run again.
    pub(crate) fn kill(&self) {
        let gone = std::mem::replace(
            &mut *self.state(),
            ProcessState { life: Life::Dead, ..ProcessState::default() },
        );
        drop(gone); // unlocked: what its drop wakes may look here
    }

    /// From now on it sends so many messages, one at least, and is killed then.
    pub(crate) fn dies_after(&self, messages: u64, kill: impl FnOnce() + Send + 'static) {
        *self.last_messages() = Some(LastMessages { left: messages, kill: Box::new(kill) });
    }

    /// It has sent a message.
    pub(crate) fn has_sent(&self) {
        let mut last = self.last_messages();
        if let Some(last) = &mut *last {
            last.left = last.left.saturating_sub(1);
        }
        if let Some(last) = last.take_if(|last| last.left == 0) {
            self.world.at(self.world.now(), last.kill);
        }
    }

    fn last_messages(&self) -> MutexGuard<'_, Option<LastMessages>> {
        self.last_messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().life == Life::Dead
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task of this process.
    pub(crate) fn run(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        self.start(Box::pin(task));
    }

    fn start(self: &Arc<Self>, task: BoxFuture<'static, ()>) {
        let world = self.world.clone();
        let task = ProcessTask { process: self.clone(), task };
        drop(tokio::spawn(async move { world.guard(task).await }));
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.number).finish()
    }
}

/// The process as the engine sees it.
#[derive(Debug)]
pub(crate) struct Tasks(pub(crate) Arc<Process>);

impl Spawn for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.start(task);
    }
}

/// A task that is run when its process is.
struct ProcessTask {
    process: Arc<Process>,
    task: BoxFuture<'static, ()>,
}

impl Future for ProcessTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.process.state();
            match state.life {
                Life::Running => {}
                Life::Still => {
                    state.waiting.push(context.waker().clone());
                    return Poll::Pending;
                }
                Life::Dead => return Poll::Pending, // what it has is never dropped: its process does not exist any more
            }
        }
        self.process.world.look_at_the_time();
        if self.process.dice.happens(PUT_OFF) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.task.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;

    type Log = Arc<Mutex<Vec<&'static str>>>;

    fn note(log: &Log, what: &'static str) -> impl FnOnce() + Send + use<> {
        let log = log.clone();
        move || log.lock().unwrap().push(what)
    }

    async fn let_run() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_stands_still_reads_first_when_it_goes_on() {
        let process = Process::new(0, &World::new(1, Trace::new(false)));
        let log = Log::default();
        process.pause();
        let ran = note(&log, "task");
        process.run(async move { ran() });
        process.alarm(note(&log, "alarm"));
        process.deliver(note(&log, "mail"));
        let_run().await;
        assert!(log.lock().unwrap().is_empty(), "it stands still");
        process.resume();
        let_run().await;
        assert_eq!(*log.lock().unwrap(), ["mail", "alarm", "task"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_of_a_task_is_the_end_of_the_run() {
        let world = World::new(1, Trace::new(false));
        Process::new(0, &world).run(async { panic!("on purpose") });
        world.end().await;
        assert_eq!(world.panic().unwrap().what, "on purpose");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_killed_after_its_last_message() {
        let world = World::new(1, Trace::new(false));
        let process = Process::new(0, &world);
        let its = process.clone();
        process.dies_after(2, move || its.kill());
        let its = world.clone();
        tokio::spawn(async move { its.go_on().await });
        process.has_sent();
        let_run().await;
        assert!(!process.is_dead());
        process.has_sent();
        let_run().await;
        assert!(process.is_dead());
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_killed_does_nothing_more() {
        let process = Process::new(0, &World::new(1, Trace::new(false)));
        let log = Log::default();
        let ran = note(&log, "task");
        process.run(async move { ran() });
        process.kill();
        process.alarm(note(&log, "alarm"));
        process.does(note(&log, "deed"));
        process.deliver(note(&log, "mail"));
        process.resume();
        let_run().await;
        assert!(log.lock().unwrap().is_empty() && process.is_dead());
    }
}
