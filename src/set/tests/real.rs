//! The fake master does what a real one does: both take the same random requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use super::super::handshake::{Answer, HELLO, RECORD, read};
use super::super::peer::Reading;
use super::super::proposer::{Accepted, AcceptorState, Ballot, Proposal};
use super::super::record::{MasterRecord, MemberState, Members, SetTerms};
use super::super::write::{AcceptorWrite, RecordWrite, id};
use super::basics::{Dice, MAX_TTL, name, terms};
use super::fake::{FakeMaster, Reply};
use crate::wire::{DECREE, MasterSet, Script, TrustedTime, Value, Words};

/// A minute (us): far enough from now, on a machine that is slow.
const MINUTE: u64 = 60_000_000;

/// A real master, and a fake one that shall be like it.
struct Both {
    server: RealServer,
    fake: FakeMaster,
    /// The first reading of the real one. No fake has such a process and history.
    first: Reading,
}

/// A real server. The test kit depends on this package, so the tests in it do without.
struct RealServer {
    process: Child,
    folder: tempfile::TempDir,
}

impl Drop for RealServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl RealServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--unixsocket", "socket"]).current_dir(folder.path());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(log.any(|line| line.unwrap().contains("eady to accept")), "redis-server does not start");
        Self { process, folder }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("socket")
    }

    fn command(&self, words: &[&str]) -> Value {
        let stream = UnixStream::connect(self.socket()).unwrap();
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
        (&stream).write_all(request.as_bytes()).unwrap();
        reply(&mut BufReader::new(stream))
    }
}

/// One reply in RESP.
fn reply(from: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let (kind, rest) = line.trim_end().split_at(1);
    match (kind, rest.parse::<i64>()) {
        (":", Ok(number)) => Value::Int(number),
        ("$" | "*", Ok(-1)) => Value::Nil,
        ("*", Ok(count)) => Value::List((0..count).map(|_| reply(from)).collect()),
        ("$", Ok(length)) => {
            let mut text = vec![0; length as usize + 2];
            from.read_exact(&mut text).unwrap();
            Value::Text(std::str::from_utf8(&text).unwrap().trim_end_matches("\r\n").into())
        }
        _ => panic!("{line}"),
    }
}

fn eval(server: &RealServer, script: &Script, header: &[&str], words: &Words) -> Value {
    let mut command = vec!["EVAL", script.source(), "0"];
    command.extend(header);
    command.extend(words.args());
    server.command(&command)
}

fn hello(server: &RealServer) -> Reading {
    let terms = terms(MAX_TTL);
    let time = server.command(&["TIME"]);
    let part = |i: usize| time.list().unwrap()[i].text().unwrap().parse::<u64>().unwrap();
    let now = part(0) * 1_000_000 + part(1);
    let words = Words::new(0).with(&terms.record).with(now).with(&terms.decree);
    match read(&eval(server, &HELLO, &[], &words)) {
        Some((_, Answer::Master(reading))) => *reading,
        _ => panic!("no reading"),
    }
}

impl Both {
    fn new() -> Self {
        let server = RealServer::start();
        let first = hello(&server);
        Self { server, fake: FakeMaster::new(1), first }
    }

    /// A record of the fake one, with the real one's process and history.
    fn as_real(&self, record: MasterRecord) -> MasterRecord {
        let shown = self.fake.reading(0);
        let is_own = |record: &MasterRecord| record.run_id == shown.run_id;
        let run_id = if is_own(&record) { self.first.run_id.clone() } else { record.run_id.clone() };
        MasterRecord { run_id, replid2: self.first.replid2.clone(), ..record }
    }

    fn compare(&self) {
        let real = hello(&self.server);
        let fake = self.fake.reading(real.time);
        let record = fake.record.map(|record| self.as_real(record));
        assert_eq!((real.acceptor, real.record), (fake.acceptor, record));
    }

    /// Sends both this write, from a client that read the time `age` (us) ago.
    fn write(&mut self, write: &RecordWrite, age: u64) {
        let real_write = RecordWrite { record: self.as_real(write.record.clone()), ..write.clone() };
        let low = hello(&self.server).time - age;
        let words = real_write.words(&terms(MAX_TTL), TrustedTime { low, ..TrustedTime::UNKNOWN });
        let reply = eval(&self.server, &RECORD, &[], &words);
        let now: u64 = match reply.list() {
            Some([_, time]) => time.text().unwrap().parse().unwrap(),
            _ => panic!("{reply:?}"),
        };
        let is_written = self.fake.write(write, low, now);
        let word = if is_written { "written" } else { "changed" };
        assert_eq!(reply.list().unwrap()[0], Value::Text(word.into()), "{write:?} {age}");
    }

    /// Asks both to promise, or to accept a value, on a connection that knows this stamp.
    fn propose(&mut self, stamp: &str, proposal: &Proposal, value: Option<&str>) {
        let shown = hello(&self.server);
        let quarantine = shown.record.as_ref().map_or(0, |record| record.quarantine).to_string();
        let terms = terms(MAX_TTL);
        let header = [&*terms.record, stamp, &*quarantine, "1000"];
        let words = proposal.words(&terms.decree, value.unwrap_or_default(), shown.time);
        let replies = eval(&self.server, &DECREE, &header, &words);
        let text = |text: String| Value::Text(text.into());
        let said = |words: &[&str]| Value::List(words.iter().map(|word| text(word.to_string())).collect());
        let expected = match self.fake.decree(stamp, proposal, value, shown.time) {
            Reply::Promised(None) => said(&["accepted", "", ""]),
            Reply::Promised(Some(Accepted { ballot, value })) => {
                said(&["accepted", &ballot.to_string(), &value])
            }
            Reply::Accepted => Value::Int(1),
            Reply::Rejected(ballot) if ballot == Ballot::default() => said(&["promised", ""]),
            Reply::Rejected(ballot) => said(&["promised", &ballot.to_string()]),
            Reply::Quarantined => said(&["quarantined"]),
            Reply::Other => {
                let generation = shown.record.unwrap().generation.to_string();
                said(&["other", &generation])
            }
            Reply::Forgot => said(&["forgot"]),
        };
        assert_eq!(replies.list().unwrap()[1], expected, "{proposal:?} {value:?}");
    }
}

fn random_record(dice: &Dice) -> MasterRecord {
    let states = [MemberState::Member, MemberState::Member, MemberState::Candidate, MemberState::Removed];
    MasterRecord {
        set: ["a", "b"][dice.below(2)].into(),
        member: 1,
        members: Members::first(&[name(0), name(1)]),
        incarnation: id(dice.draw()),
        run_id: ["1", "1", "1", "1", "another"][dice.below(5)].into(),
        replid2: "0000".into(),
        stamp: id(dice.draw()),
        quarantine: 0,
        generation: dice.below(2) as u64,
        terms: SetTerms::of(&terms(MAX_TTL)),
        earlier: vec![],
        state: states[dice.below(4)],
    }
}

fn random_write(fake: &FakeMaster, now: u64, dice: &Dice) -> RecordWrite {
    let stamp = fake.record.as_ref().map(|record| record.stamp.clone());
    let found = if dice.below(6) == 0 { Some("another".into()) } else { stamp };
    let mut record = random_record(dice);
    let quarantine = match dice.below(3) {
        0 if found.is_some() => None,
        1 => Some(std::time::Duration::from_micros(MINUTE)),
        _ => Some(std::time::Duration::ZERO),
    };
    let acceptor = match dice.below(3) {
        0 => AcceptorWrite::Unchanged,
        1 if fake.acceptor.is_some() => AcceptorWrite::Kept,
        _ => {
            let ballot = Ballot::new(dice.below(3) as u64, Ballot::default(), 0);
            let accepted = Some(Accepted { ballot, value: "v".into() }).filter(|_| dice.below(2) == 0);
            let generation = dice.below(3) as u64;
            let promised = Some(ballot).filter(|_| accepted.is_some() || dice.below(2) == 0);
            AcceptorWrite::New(AcceptorState { generation, promised, accepted })
        }
    };
    if quarantine.is_none() {
        record.quarantine = fake.record.as_ref().map_or(0, |record| record.quarantine);
    }
    let least = [0, 0, now + 2 * MINUTE, now + 10 * MINUTE][dice.below(4)];
    RecordWrite { found, quarantine, least, record, acceptor }
}

#[test]
fn a_fake_master_does_what_a_real_one_does() {
    for seed in 0..4 {
        let dice = Dice::new(seed);
        let mut both = Both::new();
        for _ in 0..300 {
            let now = hello(&both.server).time;
            match dice.below(12) {
                0 => {
                    both.server.command(&["DEL", "r"]);
                    both.fake.record = None;
                }
                1 => {
                    both.server.command(&["DEL", "d"]);
                    both.fake.acceptor = None;
                }
                2..5 => {
                    let write = random_write(&both.fake, now, &dice);
                    both.write(&write, [0, 0, 0, 5_000_000][dice.below(4)]);
                }
                _ => {
                    let record = both.fake.record.as_ref();
                    let stamp = record.map(|record| record.stamp.to_string()).unwrap_or_default();
                    let stamp = if dice.below(8) == 0 { "another" } else { &stamp };
                    let ballot = Ballot::new(dice.below(4) as u64, Ballot::default(), 0);
                    let generation = 1 + dice.below(2) as u64;
                    let set = ["a", "b"][dice.below(2)].into();
                    let proposal = Proposal { set, ballot, generation, masters: MasterSet::default() };
                    both.propose(stamp, &proposal, [None, Some("w")][dice.below(2)]);
                }
            }
            both.compare();
        }
    }
}
