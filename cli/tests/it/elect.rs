//! `quorate elect`.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use quorate_testkit::Masters;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{SOON, begin, forget, output, quorate, read, start, wait_until, wait_until_released};

/// A candidate, whose job writes a line into its file whenever it begins; killed when this is
/// dropped, as is its job.
struct Candidate {
    command: Child,
    file: PathBuf,
}

impl Candidate {
    fn start(masters: &Masters, folder: &TempDir, name: &str, options: &[&str], job: &str) -> Self {
        let file = folder.path().join(name);
        let job = format!("echo $$ $QUORATE_FENCE $QUORATE_OWNER >> {0}; {job}", file.display());
        let command = quorate(masters)
            .args(["elect", "l"])
            .args(options)
            .args(["--", "sh", "-c", &job])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { command, file }
    }

    /// The process, fencing token and owner of each of its terms.
    fn terms(&self) -> Vec<(i32, u64, String)> {
        let text = read(&self.file);
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let term = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            (words[0].parse().unwrap(), words[1].parse().unwrap(), words[2].to_owned())
        };
        whole.map(term).collect()
    }

    fn leads(&self, times: usize) {
        wait_until("the job", || self.terms().len() == times);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.command), signal).unwrap();
    }

    /// Its exit code, and what it said.
    fn ended(mut self) -> (Option<i32>, String) {
        wait_until("its end", || self.command.try_wait().unwrap().is_some());
        let said = std::io::read_to_string(self.command.stderr.take().unwrap()).unwrap();
        (self.command.wait().unwrap().code(), said)
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
        for (job, ..) in self.terms() {
            let _ = kill_process(Pid::from_raw(job).unwrap(), Signal::KILL); // most have ended
        }
    }
}

/// Whether the process is there, and no zombie.
fn is_alive(process: i32) -> bool {
    let stat = read(Path::new(&format!("/proc/{process}/stat")));
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Until somebody removes the file.
fn until_removed(file: &Path) -> String {
    format!("while [ -e {} ]; do sleep 0.01; done; exit 7", file.display())
}

#[test]
fn the_second_leads_when_the_firsts_job_ends_or_the_first_is_killed() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let gate = folder.path().join("gate");
    std::fs::write(&gate, "").unwrap();
    let job = until_removed(&gate);
    // Its TTL is longer than any wait here: the others are called.
    let first = Candidate::start(&masters, &folder, "first", &["--ttl", "25s"], &job);
    first.leads(1);
    wait_until("the lock on every master", || masters.keys().len() == 3);
    let second = Candidate::start(&masters, &folder, "second", &["--ttl", "2s"], "exec sleep 60");
    wait_until("a place in the queue", || masters.keys().len() == 6);
    assert_eq!(second.terms().len(), 0, "two lead");
    std::fs::remove_file(&gate).unwrap();
    let first_term = first.terms()[0].1;
    assert_eq!(first.ended().0, Some(7));
    second.leads(1);
    assert!(second.terms()[0].1 > first_term);

    let third = Candidate::start(&masters, &folder, "third", &[], "exec sleep 60");
    wait_until("a place in the queue", || masters.keys().len() == 6);
    second.signal(Signal::KILL); // nobody renews its lease
    third.leads(1);
    let (_, second_term, owner) = second.terms().remove(0);
    assert!(third.terms()[0].1 > second_term);
    third.signal(Signal::TERM);
    let (code, said) = third.ended();
    assert_eq!(code, Some(128 + 15), "{said}");
    assert!(said.contains(&format!("waiting to lead: \"l\" is held by {owner}")), "{said}");
    wait_until_released(&masters);
}

#[test]
fn a_leader_that_loses_its_masters_ends_its_job_and_campaigns_again_when_they_are_back() {
    let mut masters = Masters::start_with(3, &["--appendonly", "yes"]); // they keep their records
    let terms = ["--max-ttl", "2s"]; // those that are back have no vote for 6 s
    begin(&masters, &terms);
    let folder = TempDir::new().unwrap();
    let options = [&terms[..], &["--ttl", "2s", "--grace", "300ms"]].concat();
    let leader = Candidate::start(&masters, &folder, "leader", &options, "exec sleep 60");
    leader.leads(1);
    (0..2).for_each(|i| masters[i].kill());
    let (first, first_term, first_owner) = leader.terms().remove(0);
    wait_until("the end of the job", || !is_alive(first));
    (0..2).for_each(|i| masters[i].restart());
    leader.leads(2);
    let (second, second_term, second_owner) = leader.terms().remove(1);
    assert!(second != first && second_term > first_term && second_owner != first_owner);
    assert!(is_alive(second));
    leader.signal(Signal::TERM);
    let (code, said) = leader.ended();
    assert_eq!(code, Some(128 + 15), "{said}");
    assert!(said.contains("could not be renewed; campaigning again"), "{said}");
    assert!(said.contains("waiting to lead: "), "{said}");
    wait_until_released(&masters);
}

/// Its masters go, and a signal asks it to end: it does not campaign again.
#[test]
fn a_signal_to_end_is_not_forgotten_when_the_lease_is_lost_meanwhile() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let (ready, asked) = (folder.path().join("ready"), folder.path().join("asked"));
    let trap = format!("trap 'echo >> {}' TERM; echo >> {}", asked.display(), ready.display());
    let job = format!("{trap}; while :; do sleep 0.01; done");
    let options = ["--ttl", "2s", "--grace", "300ms"];
    let leader = Candidate::start(&masters, &folder, "leader", &options, &job);
    wait_until("the trap", || ready.exists());
    leader.signal(Signal::TERM);
    wait_until("the signal", || asked.exists());
    assert!(is_alive(leader.terms()[0].0), "its job does not end by that");
    (0..2).for_each(|i| masters[i].kill());
    let job = leader.terms()[0].0;
    let (code, said) = leader.ended();
    assert_eq!(code, Some(128 + 15), "{said}");
    assert!(said.contains("SIGTERM, and the job was ended: "), "{said}");
    assert!(!is_alive(job));
}

#[test]
fn a_signal_ends_a_campaign_and_leaves_nothing() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let leader = Candidate::start(&masters, &folder, "leader", &[], "exec sleep 60");
    leader.leads(1);
    wait_until("the lock on every master", || masters.keys().len() == 3);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let waiting = Candidate::start(&masters, &folder, "waiting", &[], "exec sleep 60");
        wait_until("a place in the queue", || masters.keys().len() == 6);
        waiting.signal(signal);
        let (code, said) = waiting.ended();
        assert_eq!(code, Some(128 + signal.as_raw()), "{said}");
        wait_until("the end of its places", || masters.keys().len() == 3);
    }
    // A signal that is for the job reaches it.
    leader.signal(Signal::USR1);
    assert_eq!(leader.ended().0, Some(128 + Signal::USR1.as_raw()));
    wait_until_released(&masters);
}

#[test]
fn each_failure_has_its_own_exit_code() {
    let masters = start(3);
    let elect = |args: &[&str]| output(quorate(&masters).arg("elect").args(args));
    assert_eq!(elect(&["l", "--", "true"]).0, 0);
    assert_eq!(elect(&["l", "--", "no-such-command"]).0, 127);
    assert_eq!(elect(&["l", "--", "/"]).0, 126);
    for wrong in [
        &["l"][..],
        &["", "--", "true"],
        &["", "--observe"],
        &["l", "--ttl", "900ms", "--", "true"],
        &["l", "--ttl", "31s", "--", "true"],
        &["l", "--ttl", "10s", "--lock-delay", "21s", "--", "true"],
        &["l", "--observe", "--", "true"],
        &["l", "--observe", "--wait", "1s"],
        &["l", "--observe", "--every", "1ms"],
        &["l", "--json", "--", "true"],
        &["l", "--every", "1s", "--", "true"],
    ] {
        let (code, _, error) = elect(wrong);
        assert_eq!(code, 64, "{wrong:?}: {error}");
        assert!(!error.is_empty());
    }
    let folder = TempDir::new().unwrap();
    let leader = Candidate::start(&masters, &folder, "leader", &[], "exec sleep 60");
    leader.leads(1);
    let (code, _, error) = elect(&["l", "--wait", "0s", "--", "true"]);
    assert_eq!(code, 75);
    assert!(error.contains("is held by") && !error.contains("waiting"), "{error}");
    let (code, _, error) = elect(&["l", "--wait", "200ms", "--", "true"]);
    assert_eq!(code, 75);
    assert!(error.contains("waiting to lead for up to 200ms: \"l\" is held by"), "{error}");
    drop(leader);
    masters[0].kill();
    masters[1].kill();
    let (code, _, error) = elect(&["m", "--wait", "0s", "--", "true"]);
    assert_eq!(code, 69);
    assert!(error.contains("no quorum") && error.contains(&masters[0].url()), "{error}");
}

/// It stands still until long after the end of its lease, as on a machine that was suspended.
#[test]
fn a_leader_that_stood_still_kills_its_job_and_campaigns_again() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let leader = Candidate::start(&masters, &folder, "leader", &["--ttl", "2s"], "exec sleep 60");
    leader.leads(1);
    let first = leader.terms()[0].0;
    leader.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(5)); // more than the TTL and the time to wait for a killed job
    leader.signal(Signal::CONT);
    leader.leads(2);
    assert!(!is_alive(first));
    leader.signal(Signal::TERM);
    let (code, said) = leader.ended();
    assert_eq!(code, Some(128 + 15), "{said}");
    assert!(said.contains("campaigning again") && !said.contains("could not be killed"), "{said}");
}

/// The job ends by itself a moment before its lock is seen to be broken, and somebody else's.
#[test]
fn a_job_that_ended_under_a_lost_lease_is_not_run_again() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let gate = folder.path().join("gate");
    std::fs::write(&gate, "").unwrap();
    let leader = Candidate::start(&masters, &folder, "leader", &["--ttl", "25s"], &until_removed(&gate));
    leader.leads(1);
    let owner = leader.terms()[0].2.clone();
    let (code, _, error) = output(quorate(&masters).args(["release", "l", "--owner", &owner]));
    assert_eq!(code, 0, "{error}");
    masters.iter().for_each(|server| crate::hold(server, "7c9e6679-7425-40de-944b-e07fc1f90ae7:1", 1));
    std::fs::remove_file(&gate).unwrap();
    let (code, said) = leader.ended();
    assert_eq!(code, Some(76), "{said}");
    assert!(said.contains("the job's own code was 7"), "{said}");
}

/// So many lines of what is written there, as they come. Then nobody reads any more.
fn lines(pipe: impl Read + Send + 'static, count: usize) -> Receiver<String> {
    let (line, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let written = BufReader::new(pipe).lines().take(count);
        written.map_while(Result::ok).try_for_each(|text| line.send(text))
    });
    lines
}

/// An observer, and what it prints.
struct Observer {
    command: Child,
    lines: Receiver<String>,
}

impl Observer {
    fn start(masters: &Masters, options: &[&str]) -> Self {
        Self::read(masters, options, usize::MAX)
    }

    /// The same, of which no more than so many lines are read.
    fn read(masters: &Masters, options: &[&str], count: usize) -> Self {
        let mut command = quorate(masters)
            .args(["elect", "l", "--observe", "--every", "20ms"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(command.stdout.take().unwrap(), count);
        Self { command, lines }
    }

    /// The first line with this in it; what comes before it was between two leaders.
    fn prints(&mut self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(SOON).unwrap_or_else(|_| panic!("waited for {part}"));
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

#[test]
fn an_observer_prints_who_leads_a_line_each_change() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let (mut text, mut json) = (Observer::start(&masters, &[]), Observer::start(&masters, &["--json"]));
    assert_eq!(text.prints("leads"), "nobody leads");
    let nobody = r#"{"name":"l","state":"nobody"}"#;
    assert_eq!(json.prints("name"), nobody);
    for _ in 0..2 {
        let leader = Candidate::start(&masters, &folder, "leader", &[], "exec sleep 60");
        leader.leads(1);
        let (_, term, owner) = leader.terms().remove(0);
        assert_eq!(text.prints("in term"), format!("{owner} leads, in term {term}"));
        let led =
            format!(r#"{{"name":"l","state":"leader","owner":"{owner}","term":{term},"is_ours":false}}"#);
        assert_eq!(json.prints("leader"), led);
        leader.signal(Signal::TERM);
        std::fs::remove_file(&leader.file).unwrap();
        leader.ended();
        text.prints("nobody leads");
        assert_eq!(json.prints("nobody"), nobody);
    }
    masters[0].kill();
    masters[1].kill();
    assert_eq!(text.prints("leads"), "it is not known who leads");
    assert_eq!(json.prints("name"), r#"{"name":"l","state":"unknown"}"#);
    kill_process(Pid::from_child(&text.command), Signal::INT).unwrap();
    assert_eq!(text.command.wait().unwrap().code(), Some(128 + 2));
}

#[test]
fn an_observer_that_nobody_reads_ends() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let mut observer = Observer::read(&masters, &[], 1);
    assert_eq!(observer.prints("leads"), "nobody leads");
    let leader = Candidate::start(&masters, &folder, "leader", &[], "exec sleep 60");
    leader.leads(1);
    wait_until("its end", || observer.command.try_wait().unwrap().is_some());
    assert_eq!(observer.command.wait().unwrap().code(), Some(0));
}

#[test]
fn an_observer_of_masters_that_have_no_vote_says_why_it_does_not_know() {
    let masters = start(3);
    forget(&masters, 2, &[]);
    let mut command = quorate(&masters);
    command.args(["elect", "l", "--observe"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = command.spawn().unwrap();
    let said = lines(command.stderr.take().unwrap(), 1);
    let lines = lines(command.stdout.take().unwrap(), 1);
    let mut observer = Observer { command, lines };
    assert_eq!(observer.prints("leads"), "it is not known who leads");
    let said = said.recv_timeout(SOON).unwrap();
    assert!(
        said.contains("no quorum for") && said.contains("2 of 3 masters restarted or lost their keys"),
        "{said}"
    );
}
