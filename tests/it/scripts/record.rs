//! The script that writes a master's record: only in place of the one that the client saw, and with
//! the end of a quarantine that no clock makes too early.

use quorate_testkit::{Resp, Restart};

use super::lab::{Lab, RECORD, text};

super::scenarios! {
    &quorate::seam::RECORD;
    Real:
        a_decree_is_written_whole_or_gets_another_incarnation,
        a_record_is_written_where_none_is,
        another_record_is_left_alone,
        another_process_or_history_is_left_alone,
        fields_are_written_and_the_others_stay,
        a_quarantine_ends_no_earlier_than_before,
        a_process_and_its_history_are_noted_as_they_are_now,
        a_key_that_is_no_record_is_left_alone,
        what_cannot_be_written_whole_is_not_written,
        a_replica_takes_no_record;
    Exact:
        a_quarantine_begins_at_the_later_one_of_both_times,
        a_quarantine_of_any_length_is_written_in_digits,
        an_end_beyond_the_bound_does_not_count,
        a_late_record_is_not_written;
}

const DECREE: &str = "decree";

const PAUSE: &str = "34300000";

/// What a client writes.
#[derive(Clone, Copy)]
struct Write<'a> {
    /// The stamp that it saw.
    seen: &'a str,
    /// The run id and the second replication id that it saw; without one, those that are there.
    run_id: Option<&'a str>,
    replid2: Option<&'a str>,
    /// How far T is ahead of the time here (us).
    ahead: i64,
    pause: &'a str,
    least: u64,
    /// The incarnation, the generation, the ballots and the value of the decree.
    decree: [&'a str; 5],
    fields: &'a [&'a str],
}

const FIRST: Write<'_> = Write {
    seen: "",
    run_id: None,
    replid2: None,
    ahead: 0,
    pause: PAUSE,
    least: 0,
    decree: [""; 5],
    fields: &["stamp", "one", "set", "s", "state", "member"],
};

impl Write<'_> {
    fn ask(self, lab: &Lab<'_>) -> Resp {
        let time = lab.now().checked_add_signed(self.ahead).unwrap();
        let of_info = |seen: Option<&str>, field| seen.map_or_else(|| info(lab, field), str::to_owned);
        let (run_id, replid2) = (of_info(self.run_id, "run_id"), of_info(self.replid2, "master_replid2"));
        let (time, least) = (time.to_string(), self.least.to_string());
        let words = [RECORD, self.seen, &run_id, &replid2, &time, self.pause, &least];
        let words: Vec<String> = words
            .iter()
            .chain(&[DECREE])
            .chain(&self.decree)
            .chain(self.fields)
            .map(|&word| word.to_owned())
            .collect();
        lab.eval(&[], &words)
    }

    /// Asks, and tells the first word of the reply. Its second is the time.
    fn send(self, lab: &Lab<'_>) -> String {
        let before = lab.now();
        let reply = self.ask(lab);
        let Resp::List(items) = &reply else { panic!("{reply:?}") };
        let [word, time] = [0, 1].map(|place| text(&items[place]));
        assert!((before..=lab.now()).contains(&time.parse().unwrap()), "{reply:?}");
        assert_eq!(items.len(), 2);
        word
    }

    /// Checks that it is written, and tells the end of the quarantine.
    fn written(self, lab: &Lab<'_>) -> u64 {
        assert_eq!(self.send(lab), "written");
        field(lab, "quarantine").unwrap().parse().unwrap()
    }

    /// Checks that it is refused, for something is another one, and that the record stays as it is.
    fn assert_changed(self, lab: &Lab<'_>) {
        let before = lab.command(&["HGETALL", RECORD]);
        assert_eq!(self.send(lab), "changed");
        assert_eq!(lab.command(&["HGETALL", RECORD]), before);
    }

    /// Checks that there is an error that begins with this, and that what is there stays as it is.
    fn assert_fails(self, lab: &Lab<'_>, error: &str) {
        let state =
            || [["TYPE", RECORD], ["HGETALL", RECORD], ["GET", RECORD]].map(|words| lab.command(&words));
        let before = state();
        let reply = self.ask(lab);
        assert!(matches!(&reply, Resp::Error(text) if text.starts_with(error)), "{reply:?}");
        assert_eq!(state(), before);
    }
}

fn field(lab: &Lab<'_>, name: &str) -> Option<String> {
    match lab.command(&["HGET", RECORD, name]) {
        Resp::Nil => None,
        reply => Some(text(&reply)),
    }
}

/// How many fields it has.
fn length(lab: &Lab<'_>) -> Resp {
    lab.command(&["HLEN", RECORD])
}

fn info(lab: &Lab<'_>, field: &str) -> String {
    let info = text(&lab.command(&["INFO"]));
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| *name == field).unwrap().1.to_owned()
}

fn a_record_is_written_where_none_is(lab: &Lab<'_>) {
    Write { seen: "one", ..FIRST }.assert_changed(lab);
    let before = lab.now() + 34_300_000;
    let end = FIRST.written(lab);
    assert!((before..=lab.now() + 34_300_000).contains(&end), "{end}");
    for pair in FIRST.fields.chunks(2) {
        assert_eq!(field(lab, pair[0]).as_deref(), Some(pair[1]));
    }
    assert_eq!(field(lab, "run_id"), Some(info(lab, "run_id")));
    assert_eq!(field(lab, "replid2"), Some(info(lab, "master_replid2")));
    assert_eq!(length(lab), Resp::Int(6));
    assert_eq!(lab.command(&["PTTL", RECORD]), Resp::Int(-1), "it never expires");
}

fn another_record_is_left_alone(lab: &Lab<'_>) {
    FIRST.written(lab);
    let next = Write { fields: &["stamp", "two"], ..FIRST };
    next.assert_changed(lab);
    Write { seen: "other", ..next }.assert_changed(lab);
    Write { seen: "one", ..next }.written(lab);
    Write { seen: "one", ..next }.assert_changed(lab);
    Write { seen: "two", ..next }.written(lab);
}

fn another_process_or_history_is_left_alone(lab: &Lab<'_>) {
    let (run_id, replid2) = (info(lab, "run_id"), info(lab, "master_replid2"));
    let others = [("another", &*replid2), (&*run_id, "another"), ("another", "another"), ("", "")];
    let others = || others.map(|(run_id, replid2)| (Some(run_id), Some(replid2)));
    for (run_id, replid2) in others() {
        Write { run_id, replid2, ..FIRST }.assert_changed(lab);
    }
    assert_eq!(lab.command(&["EXISTS", RECORD]), Resp::Int(0));
    FIRST.written(lab);
    let next = Write { seen: "one", fields: &["stamp", "two", "state", "candidate"], ..FIRST };
    for (run_id, replid2) in others() {
        Write { run_id, replid2, ..next }.assert_changed(lab);
    }
    Write { run_id: Some(&run_id), replid2: Some(&replid2), ..next }.written(lab);
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]); // nobody is there
    lab.command(&["REPLICAOF", "NO", "ONE"]);
    Write { seen: "two", replid2: Some(&replid2), ..FIRST }.assert_changed(lab);
    if let Some(server) = lab.within() {
        server.restart("next", Restart::Whole);
        Write { seen: "two", run_id: Some(&run_id), ..FIRST }.assert_changed(lab);
        Write { seen: "two", ..FIRST }.written(lab);
    }
}

fn fields_are_written_and_the_others_stay(lab: &Lab<'_>) {
    let end = FIRST.written(lab);
    let next = Write { seen: "one", pause: "", fields: &["more", "1"], ..FIRST };
    assert_eq!(next.written(lab), end, "it is left as it is");
    let its = ["stamp", "set", "state", "more"].map(|name| field(lab, name).unwrap());
    assert_eq!(its, ["one", "s", "member", "1"]);
    assert_eq!(length(lab), Resp::Int(7));
    assert_eq!(Write { least: end + 1, ..next }.written(lab), end, "there is nothing to measure");
}

fn a_quarantine_ends_no_earlier_than_before(lab: &Lab<'_>) {
    let never = Write { seen: "one", pause: "0", ..FIRST };
    FIRST.written(lab);
    assert_eq!(never.written(lab), 0, "there is none");
    assert_eq!(Write { least: 7, ..never }.written(lab), 7);
    let late = 9_000_000_000_000_000;
    assert_eq!(Write { least: late, ..never }.written(lab), late);
    let later = lab.now() + 60_000_000;
    assert_eq!(Write { seen: "one", least: later, ..FIRST }.written(lab), later);
    assert!(Write { seen: "one", least: lab.now(), ..FIRST }.written(lab) >= lab.now());
}

fn a_process_and_its_history_are_noted_as_they_are_now(lab: &Lab<'_>) {
    FIRST.written(lab);
    lab.command(&["HSET", RECORD, "run_id", "another", "replid2", "another"]);
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]); // nobody is there
    lab.command(&["REPLICAOF", "NO", "ONE"]);
    let next = Write { seen: "one", pause: "", fields: &["more", "0"], ..FIRST };
    next.written(lab);
    assert_eq!(field(lab, "run_id"), Some(info(lab, "run_id")));
    let replid2 = field(lab, "replid2").unwrap();
    assert_eq!(replid2, info(lab, "master_replid2"));
    assert!(replid2.bytes().any(|digit| digit != b'0'), "{replid2}");
    if let Some(server) = lab.within() {
        server.restart("next", Restart::Whole);
        next.written(lab);
        assert_eq!(field(lab, "run_id").as_deref(), Some("next"));
    }
}

fn a_key_that_is_no_record_is_left_alone(lab: &Lab<'_>) {
    lab.command(&["SET", RECORD, "x"]);
    for seen in ["", "one"] {
        Write { seen, ..FIRST }.assert_fails(lab, "WRONGTYPE");
    }
    lab.command(&["DEL", RECORD]);
    lab.command(&["HSET", RECORD, "no", "record"]);
    for seen in ["", "one"] {
        Write { seen, ..FIRST }.assert_changed(lab);
    }
    lab.command(&["HSET", RECORD, "stamp", ""]);
    FIRST.assert_changed(lab);
}

/// Nothing of it, too: Lua does not roll back.
fn what_cannot_be_written_whole_is_not_written(lab: &Lab<'_>) {
    Write { pause: "", ..FIRST }.assert_fails(lab, ""); // it would have no quarantine's end
    FIRST.written(lab);
    let next = Write { seen: "one", ..FIRST };
    Write { fields: &["stamp", "two", "state"], ..next }.assert_fails(lab, "");
    Write { pause: "long", ..next }.assert_fails(lab, "");
    lab.command(&["CONFIG", "SET", "maxmemory", "1"]);
    next.assert_fails(lab, "OOM");
}

fn a_replica_takes_no_record(lab: &Lab<'_>) {
    lab.command(&["REPLICAOF", "127.0.0.1", "1"]);
    FIRST.assert_fails(lab, "READONLY");
}

fn a_quarantine_begins_at_the_later_one_of_both_times(lab: &Lab<'_>) {
    for (ahead, from) in [(-1, 0), (0, 0), (1, 1), (250_000, 250_000), (-250_000, 0)] {
        lab.command(&["DEL", RECORD]);
        assert_eq!(Write { ahead, ..FIRST }.written(lab), lab.now() + from + 34_300_000);
    }
    let now = lab.now();
    for (least, end) in [(now + 34_300_000, 0), (now + 34_300_001, 1)] {
        lab.command(&["DEL", RECORD]);
        assert_eq!(Write { least, ..FIRST }.written(lab), now + 34_300_000 + end);
    }
}

fn a_quarantine_of_any_length_is_written_in_digits(lab: &Lab<'_>) {
    let longest = 24 * 3_600_000_000;
    let end = Write { pause: &longest.to_string(), ..FIRST }.written(lab);
    assert_eq!(end, lab.now() + longest);
    let shortest = Write { seen: "one", pause: "1", ..FIRST }.written(lab);
    assert_eq!(shortest, lab.now() + 1);
}

/// A wrong clock wrote it.
fn an_end_beyond_the_bound_does_not_count(lab: &Lab<'_>) {
    let pause = 34_300_000;
    for (ahead, beyond) in [(0, 0), (0, 1), (1_000_000, 0), (1_000_000, 1), (-1_000_000, 0), (-1_000_000, 1)]
    {
        lab.command(&["DEL", RECORD]);
        let from = lab.now().max(lab.now().checked_add_signed(ahead).unwrap());
        let least = from + pause + 60_000_000 + beyond;
        let ends = if beyond == 0 { least } else { from + pause };
        assert_eq!(Write { ahead, least, ..FIRST }.written(lab), ends, "{ahead} {beyond}");
    }
}

/// Nor one whose T is as far ahead, if T is known.
fn a_late_record_is_not_written(lab: &Lab<'_>) {
    let not_known = 1 - i64::try_from(lab.now()).unwrap();
    for pause in ["0", PAUSE, ""] {
        for seen in ["", "one"] {
            if seen.is_empty() && pause.is_empty() {
                continue; // a record has an end
            }
            let write = Write { seen, pause, ..FIRST };
            let prepare = || {
                lab.command(&["DEL", RECORD]);
                if !seen.is_empty() {
                    FIRST.written(lab);
                }
            };
            prepare();
            for ahead in [-3_600_000_000, -2_000_001, 2_000_001, 3_600_000_000] {
                Write { ahead, ..write }.assert_changed(lab);
            }
            for ahead in [-2_000_000, 0, 2_000_000, not_known] {
                prepare();
                Write { ahead, ..write }.written(lab);
            }
        }
    }
}

/// An incarnation alone keeps what the master promised and accepted.
fn a_decree_is_written_whole_or_gets_another_incarnation(lab: &Lab<'_>) {
    let decree = || {
        ["incarnation", "generation", "promised", "ballot", "value"].map(|name| {
            match lab.command(&["HGET", DECREE, name]) {
                Resp::Nil => "none".to_owned(),
                reply => text(&reply),
            }
        })
    };
    FIRST.written(lab);
    assert_eq!(decree(), ["none"; 5]);
    let whole = ["first", "7", "70", "60", "value"];
    Write { seen: "one", decree: whole, ..FIRST }.written(lab);
    assert_eq!(decree(), whole);
    Write { seen: "one", ..FIRST }.written(lab);
    assert_eq!(decree(), whole);
    Write { seen: "one", decree: ["second", "", "", "", ""], ..FIRST }.written(lab);
    assert_eq!(decree(), ["second", "7", "70", "60", "value"]);
    Write { seen: "one", decree: ["third", "8", "", "", ""], ..FIRST }.written(lab);
    assert_eq!(decree(), ["third", "8", "", "", ""]);
}
