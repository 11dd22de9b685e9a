//! The processes of one run of the hand-off bench, and the rule by which they take turns.

use std::process::Stdio;
use std::time::Duration;

use quorate::Moment;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::handoff_child::{CHILD, Job, Word};

/// How long children may take to connect.
const BOUND: Duration = Duration::from_secs(60);

/// Children that are connected. Dropping it kills them.
pub(crate) struct Crew {
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    /// Who said which line; none when its output has ended.
    lines: UnboundedReceiver<(usize, Option<String>)>,
}

impl Crew {
    pub(crate) async fn start(job: &Job, count: usize) -> Self {
        let (sender, lines) = unbounded_channel();
        let mut crew = Self { children: Vec::new(), inputs: Vec::new(), lines };
        for place in 0..count {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .env(CHILD, job.contender.to_string())
                .args(job.arguments())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            tokio::spawn(listen(place, child.stdout.take().unwrap(), sender.clone()));
            crew.inputs.push(child.stdin.take().unwrap());
            crew.children.push(child);
        }
        for _ in 0..count {
            let word = timeout(BOUND, crew.hear()).await.expect("every child connects in time");
            assert!(matches!(word, (_, Word::Ready)), "{word:?}");
        }
        crew
    }

    /// Who says what next.
    ///
    /// # Panics
    ///
    /// When a child has ended.
    pub(crate) async fn hear(&mut self) -> (usize, Word) {
        match self.lines.recv().await {
            Some((child, Some(line))) => (child, Word::read(&line)),
            ended => panic!("a child ended by itself: {ended:?}"),
        }
    }

    /// Has a child take a turn: acquire, hold, release.
    pub(crate) async fn go(&mut self, child: usize) {
        self.inputs[child].write_all(b"go\n").await.unwrap();
    }

    /// Kills the children, and returns when they are gone.
    pub(crate) async fn end(mut self) {
        for child in &mut self.children {
            child.kill().await.unwrap();
        }
    }
}

async fn listen(child: usize, output: ChildStdout, sender: UnboundedSender<(usize, Option<String>)>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = sender.send((child, Some(line)));
    }
    let _ = sender.send((child, None));
}

/// From a grant to the beginning of its release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) granted: Moment,
    /// `None` when it was not told before the end.
    pub(crate) released: Option<Moment>,
}

/// Keeps the strict rule: who has released goes again when somebody else has been granted since. It
/// goes by the moments, because lines of two children can come in another order than they were
/// written in.
#[derive(Debug)]
pub(crate) struct Referee {
    /// What each client held.
    pub(crate) holds: Vec<Vec<Hold>>,
    /// Who has released and may not go yet, and when that was.
    waiting: Vec<(usize, Moment)>,
}

impl Referee {
    pub(crate) fn new(clients: usize) -> Self {
        Self { holds: vec![Vec::new(); clients], waiting: Vec::new() }
    }

    /// Takes note, and answers who may go now.
    pub(crate) fn hear(&mut self, client: usize, word: Word) -> Vec<usize> {
        let holds = &mut self.holds[client];
        match word {
            Word::Granted(granted) => holds.push(Hold { granted, released: None }),
            Word::Released(released) => {
                holds.last_mut().unwrap().released = Some(released);
                self.waiting.push((client, released));
            }
            other => panic!("client {client}: {other:?}"),
        }
        let holds = &self.holds;
        let granted_since = |&mut (client, released): &mut (usize, Moment)| {
            let mut others = holds.iter().enumerate().filter(|(other, _)| *other != client);
            others.any(|(_, holds)| holds.last().is_some_and(|hold| hold.granted > released))
        };
        self.waiting.extract_if(.., granted_since).map(|(client, _)| client).collect()
    }
}
