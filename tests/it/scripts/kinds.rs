//! How each kind of lock is kept: what others see of it, and where its token is. And which scenarios are about which kinds.

use quorate_testkit::Resp;

use super::denied::without;
use super::ear::Ear;
use super::lab::{
    self, FAIR, LOCK, Lab, MARK, MARKER, MUTEX, READ_WRITE, RECORD, REDISSON, REENTRANT, SEMAPHORE, text,
};
use super::operation::{A, B, acquire, extend, inspect, queue, release, transfer, withdraw};
use super::said::Said;
use super::several;

super::scenarios! {
    Both:
        what_a_lock_is_kept_as_is_what_others_know,
        the_lock_of_another_client_is_seen_and_left_alone,
        what_is_no_lock_is_left_alone,
        what_the_server_refuses_is_told,
        others_are_told_of_the_last_release_and_of_no_other;
    Guarded:
        a_token_is_in_the_record_only,
        an_undone_grant_leaves_what_was_before_however_often_it_was_extended,
        only_one_record_is_kept_of_what_was_before,
        a_later_round_is_known_by_the_record,
        a_record_of_another_owner_says_nothing_of_this_one,
        a_record_that_is_none_is_no_obstacle_to_a_release,
        a_record_that_cannot_be_read_is_no_obstacle_to_a_release,
        the_record_goes_with_a_transfer,
        without_guards_the_record_is_not_looked_at;
}

const EVERY: &[usize] = &[REENTRANT, MUTEX, REDISSON, lab::ALL, SEMAPHORE, FAIR, READ_WRITE];
const OF_ONE_KEY: &[usize] = &[REENTRANT, MUTEX, REDISSON, lab::ALL, FAIR, READ_WRITE];

/// The kinds that a scenario is about. Those of this file are about those whose token is in the record. Others look into the
/// lock, are about holds, or about calls on several locks.
pub(super) fn of(scenario: &str) -> &'static [usize] {
    match scenario {
        name if super::semaphore::SCENARIOS.iter().any(|own| own.name == name) => &[SEMAPHORE],
        name if super::reading::SCENARIOS
            .iter()
            .chain(super::turns::SCENARIOS)
            .chain(super::parted::SCENARIOS)
            .any(|own| own.name == name) =>
        {
            &[READ_WRITE]
        }
        name if SCENARIOS.iter().any(|own| own.name == name) => &[MUTEX, REDISSON],
        name if super::fair::SCENARIOS.iter().any(|own| own.name == name) => &[FAIR],
        name if several::SCENARIOS.iter().any(|own| own.name == name) => &[lab::ALL],
        name if super::fenced::SCENARIOS.iter().any(|own| own.name == name) => OF_ONE_KEY,
        name if SPELLS_VERSIONS.contains(&name) && HAS_ONE_KEY.contains(&name) => {
            &[REENTRANT, MUTEX, REDISSON, FAIR, READ_WRITE]
        }
        name if SPELLS_VERSIONS.contains(&name) => &[REENTRANT, MUTEX, REDISSON, SEMAPHORE, FAIR, READ_WRITE],
        name if HAS_ONE_KEY.contains(&name) => OF_ONE_KEY,
        name if CAN_DO_WITHOUT_TIME.contains(&name) => &[REENTRANT, MUTEX, REDISSON, lab::ALL, SEMAPHORE],
        name if HAS_A_ROUND_IN_ONE_KEY.contains(&name) => &[REENTRANT, lab::ALL],
        name if LOOKS_INSIDE.contains(&name) => &[REENTRANT, lab::ALL, SEMAPHORE],
        name if IS_A_HASH.contains(&name) => &[REENTRANT, REDISSON, lab::ALL, SEMAPHORE],
        name if CALLS_ONCE.contains(&name) => &[REENTRANT, MUTEX, REDISSON, lab::ALL, SEMAPHORE],
        _ => EVERY,
    }
}

/// They know how a version to watch is written where there is one name.
const SPELLS_VERSIONS: &[&str] = &[
    "a_holder_that_renews_is_another_version",
    "a_place_in_the_queue_comes_with_what_to_watch",
    "what_is_held_says_what_to_watch",
    "without_trust_in_clocks_it_takes_a_version_that_was_watched",
    "without_trust_in_clocks_time_frees_nothing",
];

/// They delete the lock's key and look for another one, which of a semaphore there still is; or they know all words of a
/// reply to whoever is refused, which is longer there.
const HAS_ONE_KEY: &[&str] = &[
    "a_clock_that_jumped_ahead_does_not_end_the_wait",
    "a_lock_whose_key_is_gone_is_kept_from_everybody",
    "an_acquire_takes_a_free_lock_and_says_who_holds_a_taken_one",
    "nothing_is_made_again_after_a_newer_token",
    "nothing_is_made_again_that_was_given_to_another_owner",
    "nothing_is_made_again_where_that_is_not_wanted",
    "what_is_held_says_what_to_watch",
    "who_has_no_guards_watches_nothing",
    "without_trust_in_clocks_it_takes_a_version_that_was_watched",
];

/// Who reads a lock is known by the time.
const CAN_DO_WITHOUT_TIME: &[&str] =
    &["a_clock_that_cannot_be_read_grants_nothing", "a_queue_that_fails_gives_no_place"];

/// The same, and where a reentrant lock has its round and its token.
const HAS_A_ROUND_IN_ONE_KEY: &[&str] = &[
    "a_lock_that_is_not_made_again_stays_away",
    "a_release_of_what_is_gone_wakes_and_of_what_is_anothers_does_not",
    "every_operation_of_a_call_has_its_own_words",
    "who_gets_the_lock_takes_no_place",
];

/// They know where a reentrant lock has its round and its token, or what commands that takes.
const LOOKS_INSIDE: &[&str] = &[
    "a_hold_with_a_lower_token_gets_this_one",
    "a_key_that_is_gone_is_made_again",
    "a_lock_without_a_token_gets_this_one",
    "a_record_is_as_it_was",
    "a_token_is_above_that_of_the_hold_and_that_of_the_record",
    "a_token_is_kept_with_the_lock_and_in_the_record",
    "a_transfer_renames_the_owner_once_and_never_shortens",
    "a_transfer_takes_the_new_owners_round_for_its_own",
    "a_transfer_that_is_refused_gives_it_to_nobody_else",
    "a_transfer_with_a_new_token_is_a_grant",
    "a_transfer_with_the_same_token_tells_none",
    "an_extend_without_guards_leaves_the_token_and_the_record",
    "it_is_free_when_its_time_is_over",
    "there_is_no_record_where_there_was_none",
    "what_a_master_never_knew_or_forgot_is_made",
    "what_comes_after_a_later_round_is_stale_and_writes_nothing",
    "what_is_refused_for_a_free_lock_leaves_none",
    "what_is_refused_to_its_owner_leaves_it_as_it_is",
    "what_is_refused_to_others_is_told",
    "what_was_healed_or_transferred_or_has_no_token_was_nothing_before",
    "where_it_was_its_own_already_it_is_released_by_the_last_token",
];

/// They make a hash by themselves, or count holds.
const IS_A_HASH: &[&str] = &[
    "a_hash_that_is_not_a_lock_is_left_alone",
    "a_hash_with_as_many_fields_as_a_lock_may_have_is_looked_at",
    "a_hold_without_expiry_gets_one",
    "a_key_of_another_type_is_refused_by_every_verb",
    "a_lock_without_a_round_is_older_than_all",
    "a_lock_without_expiry_is_reported_as_such",
    "a_new_token_is_above_that_of_the_lock",
    "a_token_that_is_none_is_less_than_any",
    "a_transfer_without_guards_leaves_the_record_and_has_no_token",
    "an_acquire_that_runs_again_changes_nothing",
    "one_call_carries_many_operations_and_each_has_its_own_reply",
    "the_names_of_fields_are_no_owners",
    "whoever_looks_sees_who_holds_the_lock",
];

/// Whoever is called has no place any more.
const CALLS_ONCE: &[&str] = &[
    "a_call_that_is_denied_is_for_the_next_one",
    "only_a_full_release_wakes_and_only_the_first_whose_client_listens",
    "what_nobody_can_be_woken_by_is_dropped",
];

/// What is at the lock's key, as a client of another library sees it.
fn kept(lab: &Lab) -> Vec<String> {
    match (lab.command(&["TYPE", LOCK]), lab.kind()) {
        (Resp::Status(none), _) if none == "none" => Vec::new(),
        (_, MUTEX) => vec![text(&lab.command(&["GET", LOCK]))],
        _ => {
            let Resp::List(words) = lab.command(&["HGETALL", LOCK]) else { panic!("it is no hash") };
            words.iter().map(text).collect()
        }
    }
}

/// Takes the lock as a client of another library does.
fn taken_by_another(lab: &Lab, owner: &str) {
    match lab.kind() {
        MUTEX => {
            assert_eq!(lab.command(&["SET", LOCK, owner, "NX", "PX", "7000"]), Resp::Status("OK".to_owned()))
        }
        _ => {
            assert_eq!(lab.command(&["HINCRBY", LOCK, owner, "1"]), Resp::Int(1));
            assert_eq!(lab.command(&["PEXPIRE", LOCK, "7000"]), Resp::Int(1));
        }
    }
}

fn holds(lab: &Lab, owner: &str) -> Vec<String> {
    match lab.kind() {
        MUTEX => vec![owner.to_owned()],
        _ => vec![owner.to_owned(), "1".to_owned()],
    }
}

fn what_a_lock_is_kept_as_is_what_others_know(lab: &Lab) {
    for ask in [acquire(A), queue(A)] {
        assert!(lab.run(ask).is_grant());
        assert_eq!(kept(lab), holds(lab, A));
        lab.assert_lives(LOCK, 5000);
        assert_eq!(lab.run(extend(A).ttl(60_000).round(2)), Said::Granted);
        assert_eq!(kept(lab), holds(lab, A));
        lab.assert_lives(LOCK, 60_000);
        let held = lab.run(inspect()).held();
        assert_eq!((&*held.owner, &*held.count), (A, "1"));
        assert!(lab.run(transfer(A, B)).is_grant());
        assert_eq!(kept(lab), holds(lab, B));
        assert_eq!(lab.run(release(B).round(9)), Said::Granted);
        assert!(kept(lab).is_empty());
        lab.command(&["DEL", RECORD]);
    }
}

fn the_lock_of_another_client_is_seen_and_left_alone(lab: &Lab) {
    taken_by_another(lab, B);
    for ask in [acquire(A), extend(A), extend(A).heals_not(), transfer(A, "x:1"), inspect()] {
        let held = lab.run(ask).held();
        assert_eq!((&*held.owner, &*held.count), (B, "1"));
        assert!((1..=7000).contains(&held.ttl), "{}", held.ttl);
    }
    for ask in [release(A), withdraw(A).place(A, 1, 0)] {
        assert_eq!(lab.run(ask).held().owner, B);
    }
    assert_eq!(kept(lab), holds(lab, B));
    lab.assert_lives(LOCK, 7000);
    lab.command(&["PERSIST", LOCK]);
    assert_eq!(lab.run(acquire(A)).held().ttl, -1);
    // It is its own again, though it has no record.
    assert!(lab.run(acquire(B)).is_grant());
    assert_eq!(lab.run(release(B)), Said::Granted);
    assert!(lab.locks().is_empty());
}

fn what_is_no_lock_is_left_alone(lab: &Lab) {
    let (limit, owner) = ("x".repeat(512), "x".repeat(513));
    let others: &[&[&str]] = match lab.kind() {
        MUTEX => &[&["HSET", LOCK, A, "1"], &["SET", LOCK, &owner], &["ZADD", LOCK, "1", A]],
        _ => &[&["SET", LOCK, A], &["HSET", LOCK, "name", "Ada"]],
    };
    for other in others {
        lab.command(other);
        let before = lab.command(&["TYPE", LOCK]);
        for ask in [acquire(A), queue(A), extend(A), release(A), transfer(A, B), inspect()] {
            assert_eq!(lab.run(ask.clone()).refused(), "WRONGTYPE", "{other:?}, {ask:?}");
        }
        assert_eq!(lab.command(&["TYPE", LOCK]), before);
        lab.command(&["DEL", LOCK]);
    }
    if lab.kind() == MUTEX {
        lab.command(&["SET", LOCK, &limit]);
        assert_eq!(lab.run(acquire(A)).held().owner, limit);
        lab.command(&["SET", LOCK, ""]);
        assert_eq!(lab.run(acquire(A)).held().owner, "", "it is there");
    }
}

fn what_the_server_refuses_is_told(lab: &Lab) {
    let (looks, leaves): (&[_], &[_]) = match lab.kind() {
        MUTEX => (&["get", "pttl"], &["get", "del"]),
        _ => (&["hmget", "hlen", "hgetall", "pttl"], &["hmget", "del"]),
    };
    let first = if lab.kind() == MUTEX { "get" } else { "hlen" };
    taken_by_another(lab, B);
    without(lab, first, &acquire(A));
    without(lab, first, &inspect());
    for look in looks {
        for ask in [extend(A), release(A).count(1), transfer(A, "x:1")] {
            without(lab, look, &ask);
        }
    }
    for leave in leaves {
        without(lab, leave, &release(B));
    }
    assert_eq!(kept(lab), holds(lab, B));
    lab.command(&["DEL", LOCK]);
    for write in [if lab.kind() == MUTEX { "set" } else { "hset" }, "pexpire"] {
        without(lab, write, &acquire(A));
        assert!(lab.locks().is_empty(), "without {write}");
    }
}

fn others_are_told_of_the_last_release_and_of_no_other(lab: &Lab) {
    let mut ear = Ear::new(lab, "redisson_lock__channel:lock:{k}");
    let told: &[&str] = if lab.kind() == REDISSON { &["0"] } else { &[] };
    for leave in [release(A).round(5), withdraw(A).round(5).place(A, 1, 0), release(A).undoes().round(5)] {
        lab.run(acquire(A).count(2));
        if lab.kind() == REDISSON {
            assert_eq!(lab.run(release(A).count(1).round(2)), Said::Granted);
        }
        assert!(ear.heard().is_empty());
        assert_eq!(lab.run(leave), Said::Granted);
        assert_eq!(ear.heard(), told);
    }
    for (name, channel) in [
        ("another", "redisson_lock__channel:{another}"), // a name without braces gets some
        ("{an}other", "redisson_lock__channel:{an}other"),
        ("half{", "redisson_lock__channel:half{"),
    ] {
        let mut ear = Ear::new(lab, channel);
        lab.run(acquire(A).on(name));
        assert_eq!(lab.run(release(A).on(name).round(2)), Said::Granted);
        assert_eq!(ear.heard(), told, "{name}");
    }
    lab.run(acquire(A));
    lab.command(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(lab.run(release(A).round(2)), Said::Granted, "it is a hint");
}

/// The record's words, but for the moment.
fn words(lab: &Lab) -> Vec<String> {
    let record = lab.record().unwrap();
    let words: Vec<String> = record.splitn(5, ':').map(str::to_owned).collect();
    [&words[..3], &words[4..]].concat()
}

fn a_token_is_in_the_record_only(lab: &Lab) {
    let token = lab.run(acquire(A).round(3)).token();
    let of = |token: u64, round: &str, last: String| {
        vec![token.to_string(), round.to_owned(), "6000".to_owned(), last]
    };
    assert_eq!(words(lab), of(token, "3", format!("{A}|")));
    assert_eq!(lab.run(extend(A).round(4)), Said::Granted);
    assert_eq!(words(lab), of(token, "4", format!("{A}|")));
    assert_eq!(
        lab.run(extend(A).token(token + 5).round(5)),
        Said::Granted,
        "another master gave a higher one"
    );
    assert_eq!(words(lab), of(token + 5, "5", format!("{A}|")));
    assert_eq!(lab.run(extend(A).token(token).round(6)), Said::Stale((token + 5).to_string()));
    let again = lab.run(acquire(A).token(token).round(7)).token();
    assert_eq!(again, token + 6, "a new grant");
    assert_eq!(lab.run(release(A).round(8)), Said::Granted);
    assert_eq!(lab.record(), Some(again.to_string()));
    assert_eq!(lab.run(acquire(B).token(token)).token(), again + 1);
}

fn an_undone_grant_leaves_what_was_before_however_often_it_was_extended(lab: &Lab) {
    let old = lab.now() - 3_600_000_000;
    for before in ["".to_owned(), old.to_string(), format!("{old}:5:1:{old}:{B}")] {
        for undo in [release(A).undoes().round(9), withdraw(A).round(9).place(A, 1, 0)] {
            lab.command(&["DEL", RECORD]);
            if !before.is_empty() {
                lab.command(&["SET", RECORD, &before]);
            }
            assert!(lab.run(acquire(A)).is_grant());
            assert_eq!(lab.run(extend(A).round(2)), Said::Granted);
            assert_eq!(lab.run(extend(A).round(3)), Said::Granted);
            assert!(lab.record().unwrap().ends_with(&format!(":{A}|{before}")));
            assert_eq!(lab.run(undo), Said::Granted);
            assert_eq!(lab.record().unwrap_or_default(), before);
        }
    }
    lab.command(&["DEL", RECORD]);
    let token = lab.run(acquire(A)).token();
    assert_eq!(lab.run(release(A)), Said::Granted);
    assert_eq!(lab.record(), Some(token.to_string()), "that was none that came to nothing");
}

fn only_one_record_is_kept_of_what_was_before(lab: &Lab) {
    lab.command(&["SET", RECORD, "7"]);
    let token = lab.run(acquire(A).kept(1)).token();
    lab.command(&["DEL", LOCK]);
    lab.pass(2000);
    lab.run(acquire(B));
    let record = lab.record().unwrap();
    let (of_b, of_a) = record.split_once('|').unwrap();
    assert!(of_b.ends_with(B) && of_a.starts_with(&token.to_string()) && of_a.ends_with(A), "{record}");
    lab.run(release(B).undoes());
    assert_eq!(lab.record().as_deref(), Some(of_a));
    assert_eq!(lab.run(extend(A).token(token).round(2)), Said::Granted, "it takes back what is its own");
    assert_eq!(lab.run(release(A).undoes().round(3)), Said::Granted);
    assert_eq!(lab.record(), Some(token.to_string()), "what was before that is not known any more");
}

fn a_later_round_is_known_by_the_record(lab: &Lab) {
    lab.run(acquire(A).round(8));
    let record = lab.record();
    let stale = Said::Stale("8".to_owned());
    for ask in [acquire(A), extend(A), release(A), withdraw(A).place(A, 1, 0), transfer(B, A)] {
        assert_eq!(lab.run(ask.round(7)), stale);
    }
    assert_eq!((kept(lab), lab.record()), (holds(lab, A), record));
    assert_eq!(lab.run(extend(A).round(8)), Said::Granted);
    assert_eq!(lab.run(release(A).round(8)), Said::Granted);
}

fn a_record_of_another_owner_says_nothing_of_this_one(lab: &Lab) {
    let future = lab.now() + 60_000_000;
    lab.command(&["SET", RECORD, &format!("{future}:9:6000:{future}:{B}|7")]);
    taken_by_another(lab, A);
    assert_eq!(
        lab.run(extend(A).token(future - 5).round(1)),
        Said::Granted,
        "neither its round nor its token"
    );
    assert!(lab.record().unwrap().ends_with(A), "nor what was before it");
    lab.command(&["SET", RECORD, &format!("{future}:9:6000:{future}:{B}|7")]);
    assert_eq!(lab.run(release(A).undoes().round(1)), Said::Granted);
    assert!(lab.record().unwrap().ends_with("|7"), "it is left as it is");
}

fn a_record_that_is_none_is_no_obstacle_to_a_release(lab: &Lab) {
    for wrong in ["x", "1:2:3", "7"] {
        lab.command(&["SET", RECORD, wrong]);
        taken_by_another(lab, A);
        assert_eq!(lab.run(release(A)), Said::Granted);
        assert!(lab.locks().is_empty());
        assert_eq!(lab.record().as_deref(), Some(wrong));
    }
}

fn a_record_that_cannot_be_read_is_no_obstacle_to_a_release(lab: &Lab) {
    lab.command(&["HSET", RECORD, "no", "record"]);
    taken_by_another(lab, A);
    assert_eq!(lab.run(release(A)), Said::Granted);
    assert!(lab.locks().is_empty());
}

fn the_record_goes_with_a_transfer(lab: &Lab) {
    lab.command(&["SET", RECORD, "7"]);
    let token = lab.run(acquire(A)).token();
    assert_eq!(lab.run(transfer(A, B).same_token()), Said::Granted);
    let record = lab.record().unwrap();
    assert!(
        record.starts_with(&format!("{token}:1:6000:")) && record.ends_with(&format!(":{B}")),
        "{record}"
    );
    let new = lab.run(transfer(B, A).token(token).round(5)).token();
    assert_eq!(new, token + 1);
    assert_eq!(lab.run(transfer(B, A).token(token).round(5)).token(), new, "once");
    assert_eq!(lab.run(release(A).undoes().round(6)), Said::Granted);
    assert_eq!(lab.record(), Some(new.to_string()), "a lock that was given was a lease");
}

fn without_guards_the_record_is_not_looked_at(lab: &Lab) {
    lab.run(acquire(A).round(8));
    let record = lab.record();
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(acquire(A).round(1)), Said::Granted);
    assert_eq!(lab.run(extend(A).round(1)), Said::Granted);
    assert_eq!(lab.run(release(A).round(1)), Said::Granted);
    assert_eq!(lab.record(), record);
    lab.set_head([MARKER, MARK, "0"]);
    assert_eq!(lab.run(release(A).round(9)), Said::Absent);
}
