//! How the permits of a semaphore are kept, beside what holds for every lock.

use quorate_testkit::Resp;

use super::denied::without;
use super::ear::Ear;
use super::lab::{LOCK, Lab, QUEUE, text};
use super::operation::{A, B, C, Operation, acquire, extend, inspect, queue, release, transfer, withdraw};
use super::said::Said;

super::scenarios! {
    Both:
        each_permit_is_a_lock_of_its_own,
        who_is_refused_is_told_which_permits_are_taken,
        another_number_of_permits_is_refused_and_nothing_is_written,
        what_is_no_semaphore_is_left_alone,
        what_the_server_refuses_leaves_no_permit,
        what_cannot_be_noted_as_free_is_free_all_the_same,
        a_waiter_that_leaves_passes_the_call_on_where_another_permit_is_free,
        whoever_gets_a_permit_calls_the_next_where_another_is_free,
        a_permit_that_was_not_noted_is_noted_again,
        a_transfer_leaves_the_permit_taken,
        a_semaphore_lives_as_long_as_any_permit;
    Guarded:
        a_permit_is_not_made_again_where_there_is_another_number,
        a_permit_whose_record_cannot_be_written_is_free;
    Exact:
        a_permit_is_taken_until_its_time_is_over,
        another_number_is_refused_until_the_last_permit_is_over,
        of_two_numbers_the_one_that_lives_counts,
        what_is_over_is_taken_off_by_the_next_grant,
        an_extend_never_shortens_what_is_noted;
}

/// The members of the semaphore, with the moments (us) when they are over.
fn noted(lab: &Lab) -> Vec<(String, u64)> {
    let Resp::List(words) = lab.plain(&["ZRANGE", LOCK, "0", "-1", "WITHSCORES"]) else { panic!("no list") };
    let pair = |pair: &[Resp]| (text(&pair[0]), text(&pair[1]).parse().unwrap());
    words.chunks(2).map(pair).collect()
}

fn members(lab: &Lab) -> Vec<String> {
    noted(lab).into_iter().map(|(member, _)| member).collect()
}

/// Which permits are taken, and how soon one is over, as whoever is refused is told.
fn told(lab: &Lab, operation: Operation) -> (Vec<String>, i64) {
    lab.run(operation).held().permits.expect("it was to be told")
}

fn each_permit_is_a_lock_of_its_own(lab: &Lab) {
    assert!(lab.run(acquire(A).permit(0, 2)).is_grant());
    assert!(lab.run(queue(B).permit(1, 2)).is_grant());
    assert_eq!(members(lab), ["0/2", "1/2"]);
    for (number, holder) in [(0, A), (1, B)] {
        for ask in [acquire(C), extend(C), release(C), inspect()] {
            assert_eq!(lab.run(ask.permit(number, 2)).held().owner, holder);
        }
    }
    assert_eq!(lab.run(release(A).permit(0, 2).round(2)), Said::Granted);
    assert_eq!(members(lab), ["1/2"]);
    assert_eq!(lab.run(inspect().permit(0, 2)), Said::Absent);
    assert_eq!(lab.run(withdraw(B).permit(1, 2).round(2).place(B, lab.now(), 0)), Said::Granted);
    assert_eq!(lab.locks(), [QUEUE]);
}

fn who_is_refused_is_told_which_permits_are_taken(lab: &Lab) {
    lab.run(acquire(A).permit(1, 12).kept(60_000));
    let (taken, first) = told(lab, acquire(C).permit(1, 12));
    assert_eq!(taken, ["1/12"]);
    assert!((1..=60_000).contains(&first), "{first}");
    lab.run(acquire(B).permit(11, 12).kept(9_000));
    let (taken, first) = told(lab, queue(C).permit(1, 12));
    assert_eq!(taken, ["1/12", "11/12"], "the one that was asked for, and the others");
    assert!((1..=9_000).contains(&first), "{first}");
    let held = lab.run(queue(C).permit(11, 12).place(C, lab.now(), 0)).held();
    assert_eq!((held.owner.as_str(), held.ahead), (B, Some(0)));
    assert_eq!(held.permits.unwrap().0, ["11/12", "1/12"]);
    lab.plain(&["DEL", LOCK]);
    assert_eq!(
        told(lab, acquire(C).permit(11, 12)),
        (vec!["11/12".to_owned()], -1),
        "it is taken all the same"
    );
    let watched = lab.run(acquire(C).permit(11, 12).watched(&[])).held();
    assert_eq!(watched.watch.is_some(), lab.has_guards());
    assert_eq!(watched.permits.unwrap().0, ["11/12"]);
}

fn another_number_of_permits_is_refused_and_nothing_is_written(lab: &Lab) {
    lab.run(acquire(A).permit(0, 2));
    let before = (lab.locks(), noted(lab));
    for (number, of) in [(0, 3), (1, 3), (0, 1)] {
        for ask in [acquire(B), queue(B).place(B, lab.now(), 0), inspect()] {
            let Said::Refused(why) = lab.run(ask.permit(number, of)) else { panic!("{number}/{of}") };
            assert_eq!(why, format!("PERMITS 2 are there, and not {of}"));
        }
    }
    assert_eq!((lab.locks(), noted(lab)), before);
    assert!(lab.run(acquire(B).permit(1, 2)).is_grant());
    lab.run(release(A).permit(0, 2).round(2));
    lab.run(release(B).permit(1, 2).round(2));
    assert!(lab.locks().is_empty());
    assert!(lab.run(acquire(B).permit(2, 3)).is_grant(), "nobody has one");
}

fn what_is_no_semaphore_is_left_alone(lab: &Lab) {
    let others: [&[&str]; 5] = [
        &["HSET", LOCK, A, "1"],
        &["SET", LOCK, A],
        &["ZADD", LOCK, "1", A],
        &["ZADD", LOCK, "1", "0/2x"],
        &["ZADD", LOCK, "1", "x0/2"],
    ];
    for other in others {
        lab.plain(other);
        for ask in [acquire(A), queue(A), inspect()] {
            assert_eq!(lab.run(ask.permit(0, 2)).refused(), "WRONGTYPE", "{other:?}");
        }
        assert_eq!(lab.locks(), [LOCK]);
        lab.plain(&["DEL", LOCK]);
    }
    lab.run(acquire(A).permit(0, 2));
    lab.plain(&["DEL", LOCK]);
    lab.plain(&["SET", LOCK, "x"]);
    assert_eq!(lab.run(extend(A).permit(0, 2).round(2)).refused(), "WRONGTYPE");
    assert_eq!(lab.run(release(A).permit(0, 2).round(3)), Said::Granted, "it may go");
}

fn what_the_server_refuses_leaves_no_permit(lab: &Lab) {
    for denied in ["zrange", "zadd", "pttl", "pexpire", "time"] {
        let why = without(lab, denied, &acquire(A).permit(0, 2));
        assert!(why.contains("can't run this command"), "without {denied}: {why}");
        assert!(lab.locks().is_empty(), "without {denied}");
    }
    lab.run(acquire(A).permit(0, 2));
    if !lab.has_guards() {
        without(lab, "time", &acquire(B).permit(0, 3));
        without(lab, "time", &extend(A).permit(0, 2).round(2));
    }
    without(lab, "zadd", &extend(A).permit(0, 2).round(2));
    let Said::Refused(_) = lab.run(acquire(B).permit(1, 2).kept(9_223_372_036_854_775_000)) else {
        panic!("no key lives for so long");
    };
    assert_eq!(lab.run(inspect().permit(1, 2)), Said::Absent);
    assert_eq!(members(lab), ["0/2"], "it is its owner's all the same");
}

fn what_cannot_be_noted_as_free_is_free_all_the_same(lab: &Lab) {
    lab.run(acquire(A).permit(0, 2));
    lab.command(&["ACL", "SETUSER", "default", "-zrem"]);
    assert_eq!(lab.run(release(A).permit(0, 2).round(2)), Said::Granted);
    assert_eq!(members(lab), ["0/2"]);
    assert!(lab.run(acquire(B).permit(0, 2)).is_grant());
}

fn a_waiter_that_leaves_passes_the_call_on_where_another_permit_is_free(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    let stand = || lab.run(queue(C).permit(0, 2).place(C, lab.now(), 0)).held();
    lab.run(acquire(A).permit(0, 2));
    lab.run(acquire(A).permit(1, 2));
    stand();
    let leave = || release(B).permit(0, 2);
    assert_eq!(lab.run(leave()).held().owner, A);
    assert!(ear.heard().is_empty(), "there is none");
    assert_eq!(lab.queue(), [C]);
    lab.run(release(A).permit(1, 2).round(2));
    assert_eq!(ear.heard(), ["77"]);
    stand();
    assert_eq!(lab.run(leave().count(1)).held().owner, A);
    assert!(ear.heard().is_empty(), "it does not leave");
    assert_eq!(lab.run(leave()).held().owner, A);
    assert_eq!(ear.heard(), ["77"]);
    stand();
    lab.command(&["ACL", "SETUSER", "default", "-zrange"]);
    assert_eq!(lab.run(leave()).held().owner, A);
    assert_eq!(ear.heard(), ["77"], "who cannot know calls");
}

fn whoever_gets_a_permit_calls_the_next_where_another_is_free(lab: &Lab) {
    let mut ear = Ear::new(lab, "wake:00000000-0000-0000-0000-00000000000c");
    let stands = || lab.run(queue(C).permit(0, 3).place(C, lab.now(), 0)).held().ahead;
    assert!(lab.run(queue(A).permit(0, 3)).is_grant());
    assert_eq!(stands(), Some(0));
    assert_eq!(lab.run(queue(B).permit(0, 3)).held().owner, A);
    assert_eq!(lab.queue(), [C], "who is refused calls nobody");
    assert!(lab.run(queue(B).permit(1, 3)).is_grant());
    assert_eq!((ear.heard(), lab.queue().len()), (vec!["77".to_owned()], 0));
    assert_eq!(stands(), Some(0));
    assert!(lab.run(queue(B).permit(2, 3).round(2)).is_grant());
    assert_eq!((ear.heard(), lab.queue()), (vec![], vec![C.to_owned()]), "none is free");
}

fn a_permit_that_was_not_noted_is_noted_again(lab: &Lab) {
    lab.run(acquire(A).permit(0, 2));
    lab.plain(&["DEL", LOCK]);
    assert_eq!(lab.run(extend(A).permit(0, 2).round(2)), Said::Granted);
    assert_eq!(members(lab), ["0/2"]);
    let Resp::Int(lives) = lab.plain(&["PTTL", LOCK]) else { panic!("no TTL") };
    assert!((1..=6_000).contains(&lives), "{lives}");
}

fn a_transfer_leaves_the_permit_taken(lab: &Lab) {
    lab.run(acquire(A).permit(0, 2));
    assert!(lab.run(transfer(A, B).permit(0, 2)).is_grant());
    assert_eq!(members(lab), ["0/2"]);
    assert_eq!(lab.run(acquire(C).permit(0, 2)).held().owner, B);
    lab.run(release(B).permit(0, 2).round(9));
    assert!(lab.locks().is_empty());
}

fn a_semaphore_lives_as_long_as_any_permit(lab: &Lab) {
    let lives = |millis: u64| {
        let Resp::Int(left) = lab.plain(&["PTTL", LOCK]) else { panic!("no TTL") };
        let passed = (lab.now() - lab.began()) / 1000 + 1;
        assert!(
            (millis.saturating_sub(passed)..=millis).contains(&left.try_into().unwrap()),
            "{left}, not {millis}"
        );
    };
    lab.run(acquire(A).permit(0, 3));
    lives(6_000);
    lab.run(acquire(B).permit(1, 3).kept(5_500));
    lives(6_000);
    lab.run(acquire(C).permit(2, 3).kept(90_000));
    lives(90_000);
    lab.run(extend(A).permit(0, 3).ttl(100_000).kept(120_000).round(2));
    lives(120_000);
}

fn a_permit_is_not_made_again_where_there_is_another_number(lab: &Lab) {
    let token = lab.run(acquire(A).permit(0, 2)).token();
    lab.command(&["DEL", LOCK]);
    lab.plain(&["DEL", "lock:{k}:0/2", LOCK]);
    lab.run(acquire(B).permit(1, 3));
    let again = extend(A).permit(0, 2).token(token);
    assert_eq!(lab.run(again.clone().round(2)).refused(), "PERMITS");
    assert_eq!(members(lab), ["1/3"]);
    assert_eq!(lab.run(release(A).permit(0, 2).round(3)), Said::Absent);
    lab.run(release(B).permit(1, 3).round(2));
    assert!(lab.locks().is_empty());
}

fn a_permit_whose_record_cannot_be_written_is_free(lab: &Lab) {
    without(lab, "set", &acquire(A).permit(0, 2));
    assert!(lab.locks().is_empty());
}

/// Takes the first permit for so many ms, and the second for long; the second is free again.
fn one_that_will_be_over(lab: &Lab, kept: u64) {
    lab.run(acquire(A).permit(0, 3).ttl(kept - 10).kept(kept));
    lab.run(acquire(B).permit(1, 3).kept(60_000));
    lab.run(release(B).permit(1, 3).round(2));
    assert_eq!(noted(lab), [("0/3".to_owned(), lab.now() + kept * 1000)]);
}

fn a_permit_is_taken_until_its_time_is_over(lab: &Lab) {
    one_that_will_be_over(lab, 50);
    lab.run(acquire(B).permit(2, 3).round(3).kept(60_000));
    let ask = || acquire(C).permit(2, 3);
    assert_eq!(told(lab, ask()), (vec!["2/3".to_owned(), "0/3".to_owned()], 50));
    lab.pass(49_001);
    assert_eq!(told(lab, ask()).1, 1, "a part of a millisecond is a whole one");
    lab.pass(999);
    assert_eq!(told(lab, ask()), (vec!["2/3".to_owned(), "0/3".to_owned()], 0));
    assert_eq!(lab.run(acquire(C).permit(0, 3)).held().owner, A);
    lab.pass(1);
    assert_eq!(told(lab, ask()), (vec!["2/3".to_owned()], 59_950), "and that of the next");
    assert!(lab.run(acquire(C).permit(0, 3)).is_grant());
}

fn another_number_is_refused_until_the_last_permit_is_over(lab: &Lab) {
    one_that_will_be_over(lab, 50);
    lab.pass(50_000);
    assert_eq!(lab.run(acquire(C).permit(0, 2)).refused(), "PERMITS");
    lab.pass(1);
    assert_eq!(lab.run(inspect().permit(0, 2)), Said::Absent);
    assert!(lab.run(acquire(C).permit(1, 2)).is_grant());
    assert_eq!(members(lab), ["1/2"], "what was over is gone");
}

fn of_two_numbers_the_one_that_lives_counts(lab: &Lab) {
    lab.run(acquire(A).permit(0, 2).ttl(40).kept(50));
    lab.run(acquire(A).permit(1, 2).ttl(40).kept(50));
    lab.pass(50_001);
    lab.plain(&["ZADD", LOCK, &(lab.now() - 2).to_string(), "0/2", &(lab.now() - 1).to_string(), "1/2"]);
    lab.run(acquire(B).permit(2, 3));
    assert_eq!(members(lab), ["1/2", "2/3"]);
    assert_eq!(lab.run(acquire(C).permit(0, 2)).refused(), "PERMITS");
}

fn what_is_over_is_taken_off_by_the_next_grant(lab: &Lab) {
    one_that_will_be_over(lab, 50);
    lab.pass(50_000);
    lab.run(acquire(B).permit(1, 3).round(3).kept(60_000));
    assert_eq!(members(lab), ["0/3", "1/3"], "it is not over");
    lab.pass(1);
    lab.run(acquire(B).permit(2, 3).round(4).kept(60_000));
    assert_eq!(members(lab), ["1/3", "2/3"]);
}

fn an_extend_never_shortens_what_is_noted(lab: &Lab) {
    lab.run(acquire(A).permit(0, 2));
    let before = noted(lab);
    lab.run(extend(A).permit(0, 2).ttl(1_000).kept(2_000).round(2));
    assert_eq!(noted(lab), before);
    lab.run(extend(A).permit(0, 2).ttl(7_000).kept(8_000).round(3));
    assert_eq!(noted(lab), [("0/2".to_owned(), lab.now() + 8_000_000)]);
}
