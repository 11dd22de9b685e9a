//! The JSON of reports, which docs/COMMAND.md describes.

use std::time::Duration;

use quorate::doctor::Severity;
use quorate::fence::FencingToken;
use quorate::{
    HeldPart, Inspection, LockKind, LockState, Moment, Observed, Outcome, Owner, Part, Refusal, Silence,
    Standing, Votes,
};
use quorate_testkit::Masters;
use serde::Serialize;
use serde_json::{Value, json, to_value};

use crate::{begin, builder, ms, on_all, patient};

const COMMAND: &str = include_str!("../../docs/COMMAND.md");

/// What each of these is, and what it should be.
#[track_caller]
fn assert_all<T: Serialize>(expected: impl IntoIterator<Item = (T, Value)>) {
    for (value, json) in expected {
        assert_eq!(to_value(value).unwrap(), json);
    }
}

/// The objects of the example in docs/COMMAND.md with this text in it.
fn example(part: &str) -> Vec<Value> {
    let blocks = COMMAND.split("```json\n").skip(1).map(|block| block.split("```").next().unwrap());
    let example = blocks.clone().find(|block| block.contains(part)).expect("an example");
    serde_json::Deserializer::from_str(example).into_iter().map(Result::unwrap).collect()
}

/// The value without what differs from run to run.
fn shape(value: &Value) -> Value {
    const VARIES: [&str; 4] = ["master", "owner", "label", "detail"];
    match value {
        Value::Number(_) => "a number".into(),
        Value::Array(values) => values.iter().map(shape).collect(),
        Value::Object(fields) => {
            let shape_of = |(name, value): (&String, &Value)| {
                let varies = value.is_string() && VARIES.contains(&&**name);
                (name.clone(), if varies { "a text".into() } else { shape(value) })
            };
            fields.iter().map(shape_of).collect()
        }
        other => other.clone(),
    }
}

/// A part, and its holder.
fn held(HeldPart { part, holder, fencing_token, .. }: &HeldPart) -> Value {
    let mut json = json!({
        "owner": *holder.owner,
        "label": holder.label.as_deref(),
        "is_ours": holder.is_ours,
        "held_ms": holder.held_for.unwrap().as_millis() as u64,
        "masters": holder.masters,
        "remaining_ms": holder.remaining.unwrap().as_millis() as u64,
        "fence": fencing_token.unwrap().get(),
    });
    let fields = json.as_object_mut().unwrap();
    fields.extend(to_value(part).unwrap().as_object().unwrap().clone());
    json
}

#[test]
fn owners_and_tokens_are_their_text_and_number() {
    let owner = "0f8fad5b-d9cb-469f-a165-70867728950e:3";
    assert_all([(owner.parse::<Owner>().unwrap(), owner.into())]);
    assert_all([(FencingToken::new(quorate::fence::MAX).unwrap(), 9_007_199_254_740_991_u64.into())]);
}

#[test]
fn states_are_words() {
    assert_all([
        (LockState::Free, "free".into()),
        (LockState::Held, "held".into()),
        (LockState::Split, "split".into()),
        (LockState::NoLock, "no_lock".into()),
        (LockState::Unknown, "unknown".into()),
    ]);
    assert_all([
        (Severity::Ok, "ok".into()),
        (Severity::Warn, "warn".into()),
        (Severity::Fail, "fail".into()),
    ]);
    assert_all([(Refusal::ReadOnly, "read_only".into()), (Refusal::NoSet, "no_set".into())]);
}

#[test]
fn kinds_and_parts_have_their_numbers_beside_them() {
    assert_all([
        (LockKind::Lock, json!({ "kind": "lock" })),
        (LockKind::Mutex, json!({ "kind": "mutex" })),
        (LockKind::Fair, json!({ "kind": "fair" })),
        (LockKind::ReadWrite, json!({ "kind": "read_write" })),
        (LockKind::Semaphore { permits: 3 }, json!({ "kind": "semaphore", "permits": 3 })),
        (LockKind::PlainMutex, json!({ "kind": "plain_mutex" })),
        (LockKind::Redisson, json!({ "kind": "redisson" })),
    ]);
    assert_all([
        (Part::Whole, json!({ "part": "whole" })),
        (Part::Read, json!({ "part": "read" })),
        (Part::Permit(2), json!({ "part": "permit", "permit": 2 })),
    ]);
}

#[test]
fn an_outcome_has_the_fields_of_its_kind() {
    let holder = Outcome::Held {
        owner: "o".into(),
        label: None,
        held_for: Some(Duration::from_micros(1_999)),
        remaining: None,
        count: 2,
        ahead: None,
        permits: None,
    };
    let refused = Outcome::Refused { reason: Refusal::OutOfMemory, detail: "OOM".into() };
    let lost = Silence::ConnectionLost("reset".into());
    assert_all([
        (Outcome::Granted, json!({ "outcome": "granted" })),
        (
            holder,
            json!({
                "outcome": "held", "owner": "o", "label": null, "held_ms": 1, "remaining_ms": null, "holds": 2,
            }),
        ),
        (Outcome::Absent, json!({ "outcome": "absent" })),
        (Outcome::Answered("why".into()), json!({ "outcome": "answered", "detail": "why" })),
        (refused, json!({ "outcome": "refused", "reason": "out_of_memory", "detail": "OOM" })),
        (Outcome::Unreachable("refused".into()), json!({ "outcome": "unreachable", "detail": "refused" })),
        (Outcome::Unknown(Silence::TimedOut), json!({ "outcome": "unknown", "reason": "timed_out" })),
        (
            Outcome::Unknown(lost),
            json!({ "outcome": "unknown", "reason": "connection_lost", "detail": "reset" }),
        ),
        (Outcome::Pending, json!({ "outcome": "pending" })),
        (Outcome::NotAsked, json!({ "outcome": "not_asked" })),
    ]);
}

#[test]
fn a_standing_has_the_fields_of_its_kind() {
    assert_all([
        (Standing::Unknown, json!({ "standing": "unknown" })),
        (Standing::Trusted, json!({ "standing": "trusted" })),
        (
            Standing::Quarantined { until: Moment::default(), left: ms(34_300) },
            json!({ "standing": "quarantined", "quarantine_ms": 34_300 }),
        ),
        (
            Standing::Refused("it is a replica".into()),
            json!({ "standing": "refused", "detail": "it is a replica" }),
        ),
    ]);
}

#[test]
fn no_votes_are_an_empty_list() {
    assert_all([(Votes::default(), json!([]))]);
}

#[tokio::test]
async fn a_status_is_as_in_the_docs() {
    let masters = Masters::start(3);
    let holder = builder(&masters).label("batch-7 sleep 20").build().unwrap();
    let _guard = holder.lock("nightly-report").acquire().await.unwrap();
    on_all(&masters).await;
    masters[2].kill();
    let redlock = patient(&masters);
    let seen = redlock.inspect("nightly-report").await.unwrap();
    assert!(redlock.master_status()[2].reachable.is_some(), "an inspection waits for it");
    let votes: Vec<_> = seen.votes().iter().map(|vote| to_value(vote).unwrap()).collect();
    let mut status = json!({
        "name": "nightly-report",
        "kind": "lock",
        "state": "held",
        "free": 0,
        "held": [held(&seen.held()[0])],
        "waiting": 0,
        "quorum": 2,
        "answered": 2,
        "votes": votes,
    });
    assert_eq!(to_value(&seen).unwrap(), status);
    let latency = seen.votes()[0].latency.as_secs_f64() * 1e3;
    assert!((votes[0]["latency_ms"].as_f64().unwrap() - latency).abs() < 0.001);
    let fields = status.as_object_mut().unwrap();
    fields.insert("quarantine_ms".into(), Value::Null);
    fields.insert("masters".into(), to_value(redlock.master_status()).unwrap());
    assert_eq!([shape(&status)], *example("votes").iter().map(shape).collect::<Vec<_>>());
}

#[tokio::test]
async fn each_held_part_is_listed() {
    let masters = Masters::start(1);
    let redlock = patient(&masters);
    let semaphore = redlock.semaphore("s", 3);
    let _permits = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
    let _read = redlock.read_lock("r").acquire().await.unwrap();
    let json = |seen: &Inspection| {
        let json = to_value(seen).unwrap();
        assert_eq!(json["held"], seen.held().iter().map(held).collect::<Value>());
        json
    };
    let seen = json(&redlock.inspect("s").await.unwrap());
    assert_eq!((&seen["kind"], &seen["permits"], &seen["free"]), (&"semaphore".into(), &3.into(), &1.into()));
    assert_eq!(seen["held"].as_array().unwrap().len(), 2);
    let seen = json(&redlock.inspect("r").await.unwrap());
    assert_eq!((&seen["kind"], &seen["held"][0]["part"]), (&"read_write".into(), &"read".into()));
    let seen = json(&redlock.inspect("unused").await.unwrap());
    assert_eq!((seen.get("kind"), &seen["state"]), (None, &"free".into()));
}

#[tokio::test]
async fn what_an_observer_sees_is_as_in_the_docs() {
    let masters = Masters::start(1);
    let redlock = patient(&masters);
    let leadership = redlock.election("scheduler").campaign().await.unwrap();
    let observer = patient(&masters).election("scheduler").observe();
    let leader = observer.unwrap().changed().await.unwrap();
    let expected = json!({
        "state": "leader",
        "owner": leadership.owner(),
        "term": leadership.term(),
        "is_ours": false,
    });
    let seen = [&leader, &Observed::Nobody, &Observed::Unknown].map(|seen| to_value(seen).unwrap());
    assert_eq!(seen, [expected, json!({ "state": "nobody" }), json!({ "state": "unknown" })]);
    let lines = example("term").into_iter().map(|mut line| {
        assert_eq!(line.as_object_mut().unwrap().remove("name"), Some("scheduler".into()));
        shape(&line)
    });
    assert_eq!(lines.collect::<Vec<_>>(), seen.each_ref().map(shape));
}

#[tokio::test]
async fn a_report_has_the_findings_of_each_master() {
    let masters = Masters::start(2);
    masters[1].kill();
    let report = begin().masters(masters.urls()).examine().await.unwrap();
    let finding = |finding: &quorate::doctor::Finding| {
        json!({
            "severity": finding.severity.to_string(),
            "about": finding.about,
            "what": finding.what,
            "fix": finding.fix,
        })
    };
    let examined = report.masters.iter().map(|examined| {
        json!({
            "master": *examined.master,
            "findings": examined.findings.iter().map(finding).collect::<Value>(),
            "votes_in_ms": examined.votes_in.map(|time| time.as_millis() as u64),
            "round_trip_ms": examined.round_trip.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3),
            "clock_ahead_ms": examined.clock_ahead,
        })
    });
    let expected = json!({
        "severity": "fail",
        "quorum": 2,
        "can_vote": 1,
        "masters": examined.collect::<Value>(),
        "together": report.together.iter().map(finding).collect::<Value>(),
    });
    assert_eq!(to_value(&report).unwrap(), expected);
}
