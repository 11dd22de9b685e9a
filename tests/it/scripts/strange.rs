//! Keys that hold something else than a lock, and calls that nobody should make.

use quorate_testkit::Resp;

use super::lab::{LOCK, Lab, RECORD, text};
use super::operation::{A, B, C, Operation, acquire, extend, inspect, queue, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Both:
        one_call_carries_many_operations_and_each_has_its_own_reply,
        every_operation_of_a_call_has_its_own_words,
        an_unknown_verb_is_an_error_of_the_call,
        a_hash_that_is_not_a_lock_is_left_alone,
        a_hash_with_as_many_fields_as_a_lock_may_have_is_looked_at,
        the_names_of_fields_are_no_owners,
        a_token_that_is_none_is_less_than_any,
        a_lock_without_expiry_is_reported_as_such,
        a_key_of_another_type_is_refused_by_every_verb;
}

fn one_call_carries_many_operations_and_each_has_its_own_reply(lab: &Lab) {
    lab.command(&["SET", "string", "x"]);
    lab.run(acquire(B).on("theirs"));
    let (_, said) = lab.call(&[
        acquire(A).on("one"),
        acquire(A).on("string"),
        acquire(A).on("theirs"),
        queue(A).on("two"),
        release(A).on("one").round(2),
        inspect().on("theirs"),
        extend(A).on("absent").heals_not().round(3),
        inspect().on("one"),
    ]);
    assert!(said[0].is_grant() && said[3].is_grant(), "{said:?}");
    assert_eq!(said[1].clone().refused(), "WRONGTYPE");
    assert_eq!(said[2].clone().held().owner, B);
    assert_eq!(said[4], Said::Granted);
    assert_eq!(said[5].clone().held().owner, B);
    assert_eq!(said[6..], [Said::Absent, Said::Absent]);
    assert_eq!(lab.command(&["GET", "string"]), Resp::Bulk(b"x".to_vec()));
}

fn every_operation_of_a_call_has_its_own_words(lab: &Lab) {
    let now = lab.now();
    for name in ["given", "left", "theirs", "kept"] {
        lab.run(acquire(A).on(name).token(now));
    }
    let hold = |operation: Operation, name| operation.on(name).count(3).ttl(7000).round(4).kept(8000);
    let (_, said) = lab.call(&[
        inspect().on("none"),
        release(B).on("none"),
        hold(acquire(A), "one").token(now + 1),
        hold(queue(A), "two").token(now + 1),
        hold(transfer(A, B), "given").token(now + 1),
        withdraw(A).on("left").place(C, now - 100_000, 0),
        queue(B).on("theirs").before(A).place(C, 0, 3_600_000_000),
        release(A).on("kept").count(2).round(6),
        hold(extend(A), "healed").token(now + 1),
        inspect().on("none"),
    ]);
    assert_eq!((&said[0], &said[9]), (&Said::Absent, &Said::Absent));
    for (name, owner) in [("one", A), ("two", A), ("given", B), ("healed", A)] {
        if lab.has_guards() || name != "healed" {
            assert_holds(lab, name, owner, now + 1);
        }
    }
    assert_eq!(said[6].clone().held().ahead, Some(0));
    let score = |name: &str| {
        let words = lab.command(&["ZRANGE", &format!("waiting:{{{name}}}"), "0", "-1", "WITHSCORES"]);
        let Resp::List(words) = words else { panic!("{words:?}") };
        assert_eq!((text(&words[0]), words.len()), (C.to_owned(), 2));
        text(&words[1]).parse::<f64>().unwrap() as u64
    };
    assert_eq!(score("left"), now - 100_000);
    assert!((now..=lab.now()).contains(&(score("theirs") + 3_600_000_000)));
    assert_eq!(fields(lab, "kept", A)[..2], [Some("2".to_owned()), Some("6".to_owned())]);
}

/// Checks the hold of this owner at a lock, which has 3 of them, and what is noted beside it.
fn assert_holds(lab: &Lab, name: &str, owner: &str, token: u64) {
    let fence = lab.has_guards().then(|| token.to_string());
    assert_eq!(fields(lab, name, owner), [Some("3".to_owned()), Some("4".to_owned()), fence], "{name}");
    lab.assert_lives(name, 7000);
    if lab.has_guards() {
        let record = text(&lab.command(&["GET", &format!("fence:{{{name}}}")]));
        assert!(record.starts_with(&format!("{token}:4:8000:")) && record.ends_with(owner), "{record}");
    }
}

fn fields(lab: &Lab, name: &str, owner: &str) -> [Option<String>; 3] {
    [owner, "round", "fence"].map(|field| match lab.command(&["HGET", name, field]) {
        Resp::Nil => None,
        reply => Some(text(&reply)),
    })
}

fn an_unknown_verb_is_an_error_of_the_call(lab: &Lab) {
    let reply = lab.eval(&[LOCK.to_owned()], &["steal".to_owned()]);
    assert!(matches!(&reply, Resp::Error(text) if text.contains("no such verb: steal")), "{reply:?}");
}

fn a_hash_that_is_not_a_lock_is_left_alone(lab: &Lab) {
    lab.command(&["HSET", LOCK, "name", "Ada"]);
    assert_eq!(lab.run(acquire(A)).refused(), "WRONGTYPE");
    lab.command(&["HSET", LOCK, B, "1"]);
    assert_eq!(lab.run(acquire(A)).held().owner, B, "it may be one");
    lab.command(&["HSET", LOCK, "2", "b", "3", "c", "4", "d", "5", "e", "6", "f", "7", "g", "8", "h"]);
    for operation in [acquire(A), extend(A), release(A), transfer(A, B), inspect()] {
        let said = lab.run(operation.clone());
        if said != Said::Granted && !matches!(said, Said::Token(_)) {
            assert_eq!(said.refused(), "WRONGTYPE", "{operation:?}");
        }
    }
    assert_eq!(lab.command(&["HGET", LOCK, "name"]), Resp::Bulk(b"Ada".to_vec()));
}

fn a_hash_with_as_many_fields_as_a_lock_may_have_is_looked_at(lab: &Lab) {
    lab.command(&[
        "HSET", LOCK, "1", "a", "2", "b", "3", "c", "4", "d", "5", "e", "6", "f", "7", "g", B, "1",
    ]);
    assert_eq!(lab.run(acquire(A)).held().owner, B);
    lab.command(&["HSET", LOCK, "8", "h"]);
    assert_eq!(lab.run(acquire(A)).refused(), "WRONGTYPE");
    assert_eq!(lab.run(extend(A)).refused(), "WRONGTYPE");
}

fn the_names_of_fields_are_no_owners(lab: &Lab) {
    lab.command(&["HSET", LOCK, "round", "7", "fence", "8", "before", "6"]);
    assert_eq!(lab.run(acquire(A)).refused(), "WRONGTYPE");
    lab.command(&["HSET", LOCK, B, "2"]);
    let held = lab.run(inspect()).held();
    assert_eq!((&*held.owner, &*held.count, held.ttl), (B, "2", -1));
}

fn a_token_that_is_none_is_less_than_any(lab: &Lab) {
    for wrong in ["x", ""] {
        for operation in [acquire(A), extend(A), transfer(A, B), release(A)] {
            lab.command(&["DEL", LOCK, RECORD]);
            lab.command(&["HSET", LOCK, A, "1", "fence", wrong]);
            let operation = operation.token(lab.now());
            assert!(lab.run(operation.clone()).is_grant(), "{wrong}, {operation:?}");
        }
    }
}

fn a_lock_without_expiry_is_reported_as_such(lab: &Lab) {
    lab.command(&["HSET", LOCK, B, "1"]);
    for looks in [acquire(A), inspect()] {
        let held = lab.run(looks).held();
        assert_eq!((&*held.owner, &*held.count, held.ttl), (B, "1", -1));
    }
}

fn a_key_of_another_type_is_refused_by_every_verb(lab: &Lab) {
    lab.command(&["SET", LOCK, "x"]);
    for operation in [acquire(A), queue(A), extend(A), release(A), transfer(A, B), inspect()] {
        assert_eq!(lab.run(operation.clone()).refused(), "WRONGTYPE", "{operation:?}");
    }
    assert_eq!(lab.command(&["GET", LOCK]), Resp::Bulk(b"x".to_vec()));
}
