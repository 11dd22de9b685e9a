//! Locks over several names: all of them or none, by the rules of a single lock for each.

use quorate_testkit::Resp;

use super::denied::without;
use super::ear::Ear;
use super::lab::{Lab, text};
use super::operation::{A, B, C, acquire, extend, inspect, queue, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Both:
        all_names_are_taken_or_none,
        the_first_name_that_is_held_is_told,
        each_name_is_a_lock_of_its_own,
        a_later_round_on_one_name_refuses_all,
        all_names_are_extended_or_none,
        a_release_leaves_what_is_its_own_and_touches_nothing_else,
        a_release_that_one_name_refuses_is_refused_and_leaves_the_others,
        a_release_wakes_the_first_for_each_name,
        a_withdrawal_takes_a_place_for_each_name_and_wakes_nobody,
        what_is_withdrawn_in_part_has_no_place_where_it_was_nothing,
        who_is_refused_waits_for_the_name_that_is_held,
        who_was_called_for_nothing_calls_the_next,
        who_was_not_called_calls_nobody,
        a_place_that_cannot_be_given_up_was_not_called,
        all_names_are_given_or_none,
        a_transfer_that_was_done_in_part_is_done_again,
        whoever_holds_some_of_the_names_holds_no_lock_over_them,
        a_lock_has_one_to_sixteen_names,
        operations_of_a_call_have_names_of_their_own;
    Guarded:
        one_token_is_above_the_last_of_every_name,
        one_new_token_goes_with_a_transfer,
        each_record_is_as_it_was_before_what_came_to_nothing,
        what_is_not_written_for_all_names_is_taken_back,
        what_is_not_taken_back_for_all_names_is_taken_back_for_none,
        one_name_that_was_not_released_keeps_all_from_others,
        a_name_that_is_gone_is_made_again_unless_it_was_granted_since,
        a_broken_lock_is_released_on_every_name,
        a_lease_over_several_names_is_watched_once_and_is_no_others,
        who_is_held_says_whose_version_to_watch,
        a_record_that_is_none_is_watched_by_nobody;
}

const ABC: &[&str] = &["a", "b", "c"];
const AB: &[&str] = &["a", "b"];

/// Who holds these locks, each as in `A x2`.
fn holders(lab: &Lab) -> Vec<String> {
    let holder = |lock: &&str| {
        let who = [(A, "A"), (B, "B"), (C, "C")];
        let counts = who.map(|(owner, name)| match lab.command(&["HGET", lock, owner]) {
            Resp::Nil => String::new(),
            count => format!("{name}{}", text(&count)),
        });
        counts.concat()
    };
    ABC.iter().map(holder).collect()
}

fn record(lab: &Lab, lock: &str) -> String {
    match lab.command(&["GET", &format!("fence:{{{lock}}}")]) {
        Resp::Nil => String::new(),
        text_of => text(&text_of),
    }
}

fn set_record(lab: &Lab, lock: &str, record: &str) {
    lab.command(&["SET", &format!("fence:{{{lock}}}"), record]);
}

/// Who waits for each of the names.
fn queues(lab: &Lab) -> [Vec<String>; 3] {
    ["a", "b", "c"].map(|lock| match lab.command(&["ZRANGE", &format!("waiting:{{{lock}}}"), "0", "-1"]) {
        Resp::List(tickets) => tickets.iter().map(text).collect(),
        other => panic!("{other:?}"),
    })
}

fn waits(lab: &Lab, lock: &str, ticket: &str, micros: u64) {
    lab.command(&["ZADD", &format!("waiting:{{{lock}}}"), &micros.to_string(), ticket]);
}

fn forget(lab: &Lab) {
    for lock in ABC {
        lab.command(&["DEL", lock, &format!("fence:{{{lock}}}"), &format!("waiting:{{{lock}}}")]);
    }
}

fn all_names_are_taken_or_none(lab: &Lab) {
    for taken in ABC {
        forget(lab);
        lab.run(acquire(B).on(taken));
        let before = holders(lab);
        for ask in [acquire(A), queue(A).before(C), queue(A).place(A, lab.now(), 0)] {
            assert_eq!(lab.run(ask.on_all(ABC)).held().owner, B);
            assert_eq!(holders(lab), before);
        }
        assert_eq!(lab.run(release(B).on(taken)), Said::Granted);
        assert!(ABC.iter().filter(|lock| *lock != taken).all(|lock| record(lab, lock).is_empty()));
        for round in [2, 3] {
            assert!(lab.run(acquire(A).on_all(ABC).count(2).round(round)).is_grant(), "also again");
            assert_eq!(holders(lab), ["A2", "A2", "A2"]);
        }
        assert_eq!(lab.run(acquire(B).on(taken)).held().owner, A);
        ABC.iter().for_each(|lock| lab.assert_lives(lock, 5000));
    }
}

fn the_first_name_that_is_held_is_told(lab: &Lab) {
    lab.run(acquire(C).on("c").ttl(50_000));
    lab.run(acquire(B).on("b").count(7).ttl(9000));
    let held = lab.run(acquire(A).on_all(ABC)).held();
    assert_eq!((&*held.owner, &*held.count, held.ahead), (B, "7", None));
    assert!((8000..=9000).contains(&held.ttl));
    lab.command(&["SET", "a", "text"]);
    assert_eq!(lab.run(acquire(A).on_all(ABC)).refused(), "WRONGTYPE");
}

fn each_name_is_a_lock_of_its_own(lab: &Lab) {
    let now = lab.now();
    lab.run(acquire(A).on("a").round(4).token(now));
    lab.run(acquire(A).on_all(&["b", "c"]).round(4).token(now));
    let [a, b, c] = ["a", "b", "c"].map(|lock| lab.command(&["HGETALL", lock]));
    assert_eq!((&a, &b), (&b, &c), "as a lock of one name");
    assert_eq!(lab.run(release(A).on("b").round(5)), Said::Granted);
    assert!(lab.run(acquire(B).on("b")).is_grant());
}

fn a_later_round_on_one_name_refuses_all(lab: &Lab) {
    lab.run(acquire(A).on_all(AB).round(3));
    lab.command(&["HSET", "b", "round", "9"]);
    let before = holders(lab);
    let stale = Said::Stale("9".to_owned());
    for ask in [acquire(A), extend(A), transfer(B, A)] {
        assert_eq!(lab.run(ask.on_all(AB).ttl(60_000).round(8)), stale);
    }
    assert_eq!(holders(lab), before);
    lab.assert_lives("a", 5000);
    assert_eq!(lab.run(release(A).on_all(AB).round(8)), stale);
    assert_eq!(holders(lab), ["", "A1", ""], "that is of another time");
}

fn all_names_are_extended_or_none(lab: &Lab) {
    lab.run(acquire(A).on_all(ABC));
    assert_eq!(lab.run(extend(A).on_all(ABC).count(2).ttl(60_000).round(2)), Said::Granted);
    assert_eq!(holders(lab), ["A2", "A2", "A2"]);
    ABC.iter().for_each(|lock| lab.assert_lives(lock, 60_000));
    for gone in ABC {
        forget(lab);
        lab.run(acquire(A).on_all(ABC));
        lab.command(&["DEL", gone]);
        let longer = || extend(A).on_all(ABC).ttl(90_000).count(2).round(2);
        assert_eq!(lab.run(longer().heals_not()), Said::Absent);
        lab.command(&["DEL", &format!("fence:{{{gone}}}")]);
        lab.run(acquire(B).on(gone));
        assert_eq!(lab.run(longer()).held().owner, B);
        for lock in ABC {
            assert_eq!(lab.run(inspect().on(lock)).held().count, "1");
            lab.assert_lives(lock, 5000);
        }
    }
}

fn a_release_leaves_what_is_its_own_and_touches_nothing_else(lab: &Lab) {
    assert_eq!(lab.run(release(A).on_all(ABC)), Said::Absent);
    for leave in [release(A), release(A).undoes(), withdraw(A).place(A, 1, 0)] {
        forget(lab);
        lab.run(acquire(A).on_all(ABC).count(2));
        assert_eq!(lab.run(leave.clone().on_all(ABC).count(1).round(2)), Said::Granted);
        assert_eq!(holders(lab), ["A1", "A1", "A1"]);
        assert_eq!(lab.run(leave.clone().on_all(ABC).round(3)), Said::Granted);
        assert_eq!(lab.run(leave.clone().on_all(ABC).round(3)), Said::Absent, "it is gone already");
        for part in ABC {
            forget(lab);
            lab.run(acquire(A).on(part));
            assert_eq!(lab.run(leave.clone().on_all(ABC)), Said::Absent, "that was no whole lock");
            assert_eq!(holders(lab), ["", "", ""]);
            forget(lab);
            let others: Vec<&str> = ABC.iter().copied().filter(|lock| lock != part).collect();
            lab.run(acquire(A).on(part));
            lab.run(acquire(B).on_all(&others));
            assert_eq!(lab.run(leave.clone().on_all(ABC)).held().owner, B);
            assert_eq!(holders(lab).concat(), "B1B1");
        }
    }
}

fn a_release_that_one_name_refuses_is_refused_and_leaves_the_others(lab: &Lab) {
    for leave in [release(A), withdraw(A).place(A, 1, 0)] {
        for wrong in ABC {
            forget(lab);
            let others: Vec<&str> = ABC.iter().copied().filter(|lock| lock != wrong).collect();
            lab.command(&["SET", wrong, "text"]);
            lab.run(acquire(A).on_all(&others));
            assert_eq!(lab.run(leave.clone().on_all(ABC)).refused(), "WRONGTYPE");
            assert_eq!(lab.locks().iter().filter(|key| key.len() == 1).count(), 1, "{wrong}");
            assert_eq!(
                lab.run(leave.clone().on_all(ABC)).refused(),
                "WRONGTYPE",
                "nor where nothing is left"
            );
            lab.run(acquire(B).on_all(&others));
            assert_eq!(lab.run(leave.clone().on_all(ABC)).refused(), "WRONGTYPE", "nor where another has it");
        }
    }
}

fn a_release_wakes_the_first_for_each_name(lab: &Lab) {
    let mut b = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000b");
    let mut c = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(A).on_all(ABC).count(2));
    waits(lab, "a", B, 1);
    waits(lab, "a", C, 2);
    waits(lab, "c", C, 1);
    assert_eq!(lab.run(release(A).on_all(ABC).count(1).round(2)), Said::Granted);
    assert_eq!(lab.run(acquire(B).on("b")).held().owner, A);
    assert!(b.heard().is_empty() && c.heard().is_empty());
    assert_eq!(lab.run(release(A).on_all(ABC).round(3)), Said::Granted);
    assert_eq!((b.heard(), c.heard()), (vec!["1".to_owned()], vec!["77".to_owned()]));
    assert_eq!(queues(lab), [vec![C.to_owned()], vec![], vec![]]);
    waits(lab, "b", C, 1);
    assert_eq!(lab.run(release(C).on_all(ABC)), Said::Absent);
    assert_eq!(queues(lab), [const { Vec::<String>::new() }; 3], "its places are given up");
}

fn a_withdrawal_takes_a_place_for_each_name_and_wakes_nobody(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(A).on_all(AB));
    waits(lab, "a", C, 1);
    assert_eq!(lab.run(withdraw(A).on_all(AB).round(2).place(B, lab.now() - 1000, 1000)), Said::Granted);
    assert_eq!(holders(lab), ["", "", ""]);
    assert_eq!(queues(lab), [vec![C.to_owned(), B.to_owned()], vec![B.to_owned()], vec![]]);
    assert!(ear.heard().is_empty());
}

fn what_is_withdrawn_in_part_has_no_place_where_it_was_nothing(lab: &Lab) {
    lab.run(acquire(A).on("a"));
    lab.run(acquire(B).on("b"));
    let place = |lab: &Lab| withdraw(A).place(A, lab.now(), 0);
    assert_eq!(lab.run(place(lab).on_all(ABC)).held().owner, B);
    assert_eq!(queues(lab), [vec![A.to_owned()], vec![], vec![]]);
}

/// An acquire on A's behalf, that stands in the queue where it is refused.
fn stand(lab: &Lab, before: &str, ticket: &str) -> Said {
    lab.run(queue(A).on_all(ABC).before(before).place(ticket, lab.now() - 300, 300))
}

fn who_is_refused_waits_for_the_name_that_is_held(lab: &Lab) {
    lab.run(acquire(B).on("b"));
    lab.run(acquire(C).on("c"));
    waits(lab, "b", "x:1", 1);
    assert_eq!(stand(lab, "", A).held().ahead, Some(1));
    assert_eq!(queues(lab), [vec![], vec!["x:1".to_owned(), A.to_owned()], vec![]]);
    assert_eq!(lab.run(release(B).on("b").round(2)), Said::Granted);
    lab.command(&["DEL", "waiting:{b}"]);
    assert_eq!(stand(lab, A, "00000000-0000-0000-0000-00000000000a:2").held().ahead, Some(0));
    assert_eq!(queues(lab), [vec![], vec![], vec!["00000000-0000-0000-0000-00000000000a:2".to_owned()]]);
    waits(lab, "a", A, 1);
    lab.run(release(C).on("c").round(2));
    assert!(stand(lab, A, A).is_grant());
    assert_eq!(queues(lab), [const { Vec::<String>::new() }; 3], "who has it waits no more");
}

fn who_was_called_for_nothing_calls_the_next(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    let place = |lab: &Lab| vec![queue(A).place(A, lab.now(), 0), queue(A)];
    for ask in place(lab).into_iter().map(|ask| ask.before("its:1").on_all(ABC)) {
        forget(lab);
        lab.run(acquire(B).on("b"));
        waits(lab, "a", C, 1);
        waits(lab, "b", C, 1);
        waits(lab, "c", "00000000-0000-0000-0000-00000000000c:78", 1);
        assert_eq!(lab.run(ask.clone()).held().owner, B);
        assert_eq!(ear.heard(), ["77", "78"], "a and c are free");
        let [a, b, c] = queues(lab);
        assert_eq!((a.len(), &*b[0], c.len()), (0, C, 0));
        lab.run(release(B).on("b").round(2));
        waits(lab, "a", C, 1);
        ear.heard();
        assert!(lab.run(ask).is_grant());
        assert!(ear.heard().is_empty(), "its release will");
        lab.run(release(A).on_all(ABC).round(2));
        ear.heard();
    }
    forget(lab);
    lab.command(&["HSET", "c", "no", "lock"]);
    waits(lab, "a", C, 1);
    assert_eq!(lab.run(queue(A).before("its:1").on_all(ABC)).refused(), "WRONGTYPE");
    assert!(ear.heard().is_empty(), "it knows nothing of who is here");
}

fn who_was_not_called_calls_nobody(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(B).on("b"));
    waits(lab, "a", C, 1);
    assert_eq!(stand(lab, "", "its:1").held().owner, B);
    assert!(ear.heard().is_empty(), "it comes for the first time");
    assert_eq!(stand(lab, "its:1", "its:2").held().owner, B);
    assert!(ear.heard().is_empty(), "it still had its place");
    assert_eq!(queues(lab)[0], [C]);
    assert_eq!(queues(lab)[1], ["its:2"]);
    waits(lab, "c", "its:2", 1);
    assert_eq!(lab.run(queue(A).on_all(ABC).before("its:2")).held().owner, B);
    assert!(ear.heard().is_empty());
    assert_eq!(queues(lab), [vec![C.to_owned()], vec![], vec![]], "it goes, and gives up all places");
}

fn a_place_that_cannot_be_given_up_was_not_called(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    lab.run(acquire(B).on("b"));
    waits(lab, "a", C, 1);
    lab.command(&["ACL", "SETUSER", "default", "-zrem"]);
    assert_eq!(lab.run(queue(A).on_all(ABC).before("its:1")).held().owner, B);
    assert!(ear.heard().is_empty());
    lab.command(&["ACL", "SETUSER", "default", "+zrem", "-hlen"]);
    assert_eq!(lab.run(queue(A).on_all(ABC).before("its:1")).refused(), "ERR");
    assert!(ear.heard().is_empty());
}

fn all_names_are_given_or_none(lab: &Lab) {
    assert_eq!(lab.run(transfer(A, B).on_all(AB)), Said::Absent);
    for other in AB {
        forget(lab);
        lab.run(acquire(A).on_all(AB).ttl(60_000));
        lab.command(&["DEL", other, &format!("fence:{{{other}}}")]);
        let before = holders(lab);
        assert_eq!(lab.run(transfer(A, B).on_all(AB)), Said::Absent);
        assert_eq!(holders(lab), before);
        lab.run(acquire(C).on(other));
        let before = holders(lab);
        assert_eq!(lab.run(transfer(A, B).on_all(AB)).held().owner, C);
        assert_eq!(holders(lab), before);
        lab.command(&["DEL", other]);
        lab.command(&["SET", other, "text"]);
        let before = lab.command(&["HGETALL", if *other == "a" { "b" } else { "a" }]);
        assert_eq!(lab.run(transfer(A, B).on_all(AB)).refused(), "WRONGTYPE");
        assert_eq!(lab.command(&["HGETALL", if *other == "a" { "b" } else { "a" }]), before);
    }
    forget(lab);
    lab.run(acquire(A).on_all(AB).ttl(60_000).round(1_000_000));
    for _ in 0..2 {
        assert!(lab.run(transfer(A, B).on_all(AB).count(3).round(4)).is_grant(), "also when it runs again");
        assert_eq!(holders(lab), ["B3", "B3", ""]);
        AB.iter().for_each(|lock| lab.assert_lives(lock, 60_000));
    }
    assert_eq!(lab.run(transfer(A, C).on_all(AB)).held().owner, B);
    assert_eq!(lab.run(release(B).on_all(AB).round(4)), Said::Granted);
    lab.set_head(["", "", ""]);
    lab.run(acquire(A).on_all(AB));
    assert_eq!(lab.run(transfer(A, B).on_all(AB).same_token()), Said::Granted);
    assert_eq!(lab.run(transfer(B, C).on_all(AB).round(2)), Said::Granted, "there is no token");
}

fn a_transfer_that_was_done_in_part_is_done_again(lab: &Lab) {
    for (given, left) in [("a", "b"), ("b", "a")] {
        forget(lab);
        lab.run(acquire(A).on_all(AB));
        lab.run(transfer(A, B).on(given));
        without(lab, "del", &transfer(A, B).on_all(AB));
        assert_eq!(lab.run(inspect().on(left)).held().owner, A);
        assert!(lab.run(transfer(A, B).on_all(AB)).is_grant());
        assert_eq!(holders(lab), ["B1", "B1", ""]);
    }
}

fn whoever_holds_some_of_the_names_holds_no_lock_over_them(lab: &Lab) {
    assert_eq!(lab.run(inspect().on_all(ABC)), Said::Absent);
    for part in ABC {
        forget(lab);
        lab.run(acquire(B).on(part).count(2).ttl(60_000));
        let held = lab.run(inspect().on_all(ABC)).held();
        assert_eq!((&*held.owner, &*held.count, held.ahead, held.watch), (B, "0", None, None));
        assert!((50_000..=60_000).contains(&held.ttl));
        let others: Vec<&str> = ABC.iter().copied().filter(|lock| lock != part).collect();
        lab.run(acquire(C).on_all(&others));
        let held = lab.run(inspect().on_all(ABC)).held();
        assert_eq!((&*held.owner, &*held.count), (if *part == "a" { B } else { C }, "0"));
        lab.command(&["DEL", "a", "fence:{a}"]);
        lab.command(&["SET", "a", "text"]);
        assert_eq!(lab.run(inspect().on_all(ABC)).refused(), "WRONGTYPE");
    }
    forget(lab);
    let granted = lab.run(acquire(A).on_all(ABC).count(2));
    let held = lab.run(inspect().on_all(ABC)).held();
    assert_eq!((&*held.owner, &*held.count), (A, "2"));
    if lab.has_guards() {
        assert!(held.watch.unwrap().0.starts_with(&format!("{}:", granted.token())));
        lab.command(&["DEL", "b"]);
        let held = lab.run(inspect().on_all(ABC)).held();
        assert_eq!((&*held.owner, &*held.count, held.watch), (A, "0", None), "one is kept from others only");
    }
}

fn a_lock_has_one_to_sixteen_names(lab: &Lab) {
    let names: Vec<String> = (0..17).map(|i| format!("n{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(lab.run(acquire(A).on_all(&names[..16])).is_grant());
    assert_eq!(lab.locks().iter().filter(|key| key.starts_with('n')).count(), 16);
    assert!(lab.run(acquire(A).on_all(&names[16..])).is_grant());
    assert_eq!(lab.run(release(A).on_all(&names[16..])), Said::Granted);
    assert_eq!(lab.run(release(A).on_all(&names[..16])), Said::Granted);
    let (keys, args) = lab.words(&[acquire(A).on_all(&names)]);
    for count in ["17", "0", "-1", "nan", "", "x"] {
        let args = [&args[..1], &[count.to_owned()], &args[2..]].concat();
        let reply = lab.eval(&keys, &args);
        let is_told = |text: &str| text.contains("no such number of names") && text.ends_with(count);
        assert!(matches!(&reply, Resp::Error(text) if is_told(text)), "{count}: {reply:?}");
    }
    assert!(lab.locks().is_empty());
}

fn operations_of_a_call_have_names_of_their_own(lab: &Lab) {
    lab.run(acquire(B).on("b"));
    let (_, said) = lab.call(&[
        acquire(A).on_all(AB),
        acquire(A).on("a"),
        acquire(A).on_all(&["d", "e", "c"]),
        inspect().on_all(&["c", "d"]),
        withdraw(A).on_all(&["d", "e", "c"]).round(2).place(C, lab.now(), 0),
        transfer(B, C).on_all(&["b"]),
        release(A).on_all(&["a"]).round(2),
        extend(C).on_all(&["b"]).heals_not(),
        release(C).on_all(&["b", "a"]).round(9),
    ]);
    assert_eq!(said[0].clone().held().owner, B);
    assert!(said[1].is_grant() && said[2].is_grant(), "{said:?}");
    assert_eq!(said[3].clone().held().owner, A);
    assert_eq!(said[4], Said::Granted);
    assert!(said[5].is_grant());
    assert_eq!(said[6], Said::Granted);
    assert_eq!(said[8], Said::Absent, "of b and a");
    assert_eq!(holders(lab), ["", "", ""]);
    assert_eq!(queues(lab)[2], [C]);
}

fn one_token_is_above_the_last_of_every_name(lab: &Lab) {
    let now = lab.now();
    for last in ABC {
        forget(lab);
        set_record(lab, "b", &(now - 5).to_string());
        set_record(lab, last, &(now + 400_000).to_string());
        let token = lab.run(acquire(A).on_all(ABC).token(now)).token();
        assert_eq!(token, now + 400_001);
        for lock in ABC {
            assert!(record(lab, lock).starts_with(&format!("{token}:1:6000:")));
            assert_eq!(text(&lab.command(&["HGET", lock, "fence"])), token.to_string());
        }
        assert_eq!(lab.run(release(A).on_all(ABC)), Said::Granted);
        ABC.iter().for_each(|lock| assert_eq!(record(lab, lock), token.to_string()));
        assert_eq!(lab.run(acquire(B).on("a").token(now)).token(), token + 1, "so is that of a single one");
    }
    forget(lab);
    assert_eq!(lab.run(acquire(A).on_all(ABC).token(now + 7)).token(), now + 7);
}

fn one_new_token_goes_with_a_transfer(lab: &Lab) {
    let now = lab.now();
    lab.run(acquire(A).on_all(AB).token(now));
    let token = lab.run(transfer(A, B).on("b").token(now + 90)).token();
    assert_eq!(token, now + 90);
    let token = lab.run(transfer(A, B).on_all(AB).token(now + 50)).token();
    assert_eq!(token, now + 90, "it is not below what one of them has");
    assert_eq!(lab.run(transfer(B, C).on_all(AB).same_token().round(7)), Said::Granted);
    for lock in AB {
        assert_eq!(text(&lab.command(&["HGET", lock, "fence"])), token.to_string());
        assert!(record(lab, lock).starts_with(&format!("{token}:7:")) && record(lab, lock).ends_with(C));
    }
    let before = holders(lab);
    assert_eq!(lab.run(transfer(C, A).on_all(AB).token(now - 3_600_000_000)).refused(), "CLOCK");
    lab.set_head(["marker", "another", "0"]);
    assert_eq!(lab.run(transfer(C, A).on_all(AB)).refused(), "FORGOT");
    assert_eq!(lab.run(transfer(A, B).on_all(AB)).refused(), "FORGOT", "whatever is there");
    assert_eq!(holders(lab), before);
}

fn each_record_is_as_it_was_before_what_came_to_nothing(lab: &Lab) {
    let old = lab.now() - 3_600_000_000;
    let records = [String::new(), old.to_string(), format!("{old}:5:1:{old}:{B}")];
    for undo in [release(A).undoes().round(9), withdraw(A).round(9).place(A, 1, 0)] {
        forget(lab);
        ABC.iter().zip(&records).skip(1).for_each(|(lock, record)| set_record(lab, lock, record));
        assert!(lab.run(acquire(A).on_all(ABC)).is_grant());
        assert_eq!(lab.run(undo.on_all(ABC)), Said::Granted);
        assert_eq!(["a", "b", "c"].map(|lock| record(lab, lock)), records);
        assert_eq!(holders(lab), ["", "", ""]);
    }
}

/// What is a name's own already takes a look at its TTL: that is refused when others have been written.
fn what_is_not_written_for_all_names_is_taken_back(lab: &Lab) {
    let old = lab.now() - 3_600_000_000;
    let records = [String::new(), old.to_string(), format!("{old}:5:1:{old}:{B}")];
    for kept in &records {
        forget(lab);
        if !kept.is_empty() {
            set_record(lab, "a", kept);
        }
        lab.run(acquire(A).on_all(&["b", "c"]));
        without(lab, "pttl", &acquire(A).on_all(ABC).round(2));
        assert_eq!(holders(lab), ["", "A1", "A1"], "as it was");
        assert_eq!(record(lab, "a"), *kept);
        without(lab, "pexpire", &acquire(A).on_all(ABC).round(3));
        assert_eq!(
            (holders(lab), record(lab, "a")),
            (["", "A1", "A1"].map(str::to_owned).to_vec(), kept.clone())
        );
    }
    forget(lab);
    lab.run(acquire(A).on("c"));
    without(lab, "pttl", &acquire(A).on_all(ABC).round(2));
    assert_eq!(holders(lab), ["", "", "A1"]);
    assert_eq!((record(lab, "a"), record(lab, "b")), Default::default());
    forget(lab);
    set_record(lab, "a", &old.to_string());
    lab.set_head(["", "", ""]);
    lab.run(acquire(A).on("b"));
    without(lab, "pttl", &acquire(A).on_all(AB).round(2));
    assert_eq!(holders(lab), ["", "A1", ""]);
    assert_eq!(record(lab, "a"), old.to_string(), "without guards it is not looked at");
}

fn what_is_not_taken_back_for_all_names_is_taken_back_for_none(lab: &Lab) {
    let token = lab.run(acquire(A).on_all(AB)).token();
    lab.command(&["DEL", "a"]);
    let kept = record(lab, "a");
    without(lab, "pttl", &extend(A).on_all(AB).token(token).round(2));
    assert_eq!(holders(lab), ["", "A1", ""]);
    assert_eq!(record(lab, "a"), kept);
    assert_eq!(lab.run(extend(A).on_all(AB).token(token).round(3)), Said::Granted);
    // What is its own is not taken from it, though another name cannot be written.
    lab.command(&["DEL", "b"]);
    without(lab, "pexpire", &extend(A).on_all(AB).token(token).ttl(1000).round(4));
    assert_eq!(holders(lab), ["A1", "", ""]);
}

fn one_name_that_was_not_released_keeps_all_from_others(lab: &Lab) {
    for lost in ABC {
        forget(lab);
        lab.run(acquire(B).on(lost).kept(60_000));
        lab.command(&["DEL", lost]);
        for ask in [acquire(A), queue(A).place(A, lab.now(), 0)] {
            let held = lab.run(ask.on_all(ABC)).held();
            assert_eq!((&*held.owner, &*held.count), (B, "0"));
            assert!((50_000..=60_000).contains(&held.ttl));
        }
        assert_eq!(holders(lab), ["", "", ""]);
        assert_eq!(lab.run(release(B).on(lost)), Said::Absent);
        assert!(lab.run(acquire(A).on_all(ABC)).is_grant());
    }
}

fn a_name_that_is_gone_is_made_again_unless_it_was_granted_since(lab: &Lab) {
    for gone in ABC {
        forget(lab);
        let token = lab.run(acquire(A).on_all(ABC)).token();
        let longer = || extend(A).on_all(ABC).token(token).ttl(60_000);
        lab.command(&["DEL", gone]);
        assert_eq!(lab.run(longer().round(2)), Said::Granted);
        assert_eq!(holders(lab), ["A1", "A1", "A1"]);
        ABC.iter().for_each(|lock| lab.assert_lives(lock, 60_000));
        assert_eq!(text(&lab.command(&["HGET", gone, "fence"])), token.to_string());
        lab.command(&["DEL", gone]);
        set_record(lab, gone, &(token + 1).to_string());
        assert_eq!(lab.run(longer().ttl(90_000).round(3)), Said::Absent);
        assert_eq!(holders(lab).concat(), "A1A1");
        ABC.iter().filter(|lock| *lock != gone).for_each(|lock| lab.assert_lives(lock, 60_000));
    }
}

fn a_broken_lock_is_released_on_every_name(lab: &Lab) {
    let token = lab.run(acquire(A).on_all(AB)).token();
    lab.command(&["DEL", "b", "fence:{b}"]);
    assert_eq!(lab.run(release(A).on_all(AB).round(9).breaks(token)), Said::Absent);
    assert_eq!(
        AB.iter().map(|lock| record(lab, lock)).collect::<Vec<_>>(),
        [token.to_string(), token.to_string()]
    );
    assert_eq!(lab.run(extend(A).on_all(AB).token(token)), Said::Absent, "it is not taken back");
}

fn a_lease_over_several_names_is_watched_once_and_is_no_others(lab: &Lab) {
    let now = lab.now();
    let token = lab.run(acquire(B).on_all(AB).round(5).kept(9000)).token();
    lab.command(&["DEL", "a", "b"]);
    let held = lab.run(acquire(A).on_all(ABC).watched(&[])).held();
    let version = format!("{token}:5:{B}");
    assert_eq!((&*held.owner, &*held.count, held.watch), (B, "0", Some((version.clone(), 9000))));
    let others =
        [format!("{token}:5"), format!("{token}:5:{B}0"), format!("{token}:5:{C}"), format!("1{version}")];
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    assert_eq!(lab.run(acquire(A).on_all(ABC).watched(&others)).held().owner, B);
    assert_eq!(holders(lab), ["", "", ""]);
    assert!(lab.run(acquire(A).on_all(ABC).watched(&["1:1:x:1", &version])).token() > token);
    forget(lab);
    for (owner, lock) in [(B, "a"), (C, "b")] {
        lab.run(acquire(owner).on(lock).token(now).round(5));
        lab.command(&["DEL", lock]);
    }
    let version = format!("{now}:5:{B}");
    let held = lab.run(acquire(A).on_all(AB).watched(&[&version])).held();
    assert_eq!((held.owner, held.watch), (C.to_owned(), Some((format!("{now}:5:{C}"), 6000))));
    assert_eq!(holders(lab), ["", "", ""]);
}

fn who_is_held_says_whose_version_to_watch(lab: &Lab) {
    let token = lab.run(acquire(B).on("b").round(5)).token();
    let held = lab.run(acquire(A).on_all(AB).watched(&[])).held();
    assert_eq!((&*held.count, held.ahead), ("1", Some(-1)));
    assert_eq!(held.watch, Some((format!("{token}:5:{B}"), 6000)));
    let held = lab.run(queue(A).on_all(AB).watched(&[]).place(A, lab.now(), 0)).held();
    assert_eq!((held.ahead, held.watch), (Some(0), Some((format!("{token}:5:{B}"), 6000))));
    lab.set_head(["", "", ""]);
    assert_eq!(lab.run(acquire(A).on_all(AB).watched(&[])).held().watch, None);
}

fn a_record_that_is_none_is_watched_by_nobody(lab: &Lab) {
    set_record(lab, "b", "no record");
    assert_eq!(lab.run(acquire(A).on_all(AB).watched(&[])).refused(), "WRONGTYPE");
    set_record(lab, "b", "7");
    assert!(lab.run(acquire(A).on_all(AB).watched(&[])).is_grant(), "what was released needs no watching");
}
