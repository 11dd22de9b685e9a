//! The usual cases of permits: see `quick`.

use std::sync::LazyLock;

use quorate::seam::Script;
use quorate_testkit::Resp;

use super::lab::Lab;
use super::quick::{
    FREE_FOR, HELD_FOR, assert_entry, call, done, field, fields, number, plant_as, script, some,
};

super::scenarios! {
    &crate::scripts::quick_semaphore::SCRIPT;
    Real:
        a_permit_is_taken_extended_and_given_back,
        permits_are_taken_and_given_back_beside_each_other,
        a_permit_has_a_label;
    Exact:
        a_permit_may_end_with_the_first;
}

static SCRIPT: LazyLock<Script> = LazyLock::new(|| script("semaphore"));

fn plant(lab: &Lab<'_>, more: &[&str]) {
    plant_as(lab, "semaphore/16", "100", more);
}

fn a_permit_is_taken_extended_and_given_back(lab: &Lab<'_>) {
    plant(lab, &[]);
    let token = number(&call(lab, &["acquire 3/16 a:1 7 T 10000 -"])[1]);
    assert_entry(lab, "p:3", &format!("{token} 7 1"), 10_000_000);
    assert_eq!(fields(lab, ["fence", "o:p:3", "entries"]), [some(token), some("a:1"), some(1)]);
    done(lab, &format!("extend 3/16 a:1 2 8 T 20000 - {token} 1"));
    assert_entry(lab, "p:3", &format!("{token} 8 2"), 20_000_000);
    assert_eq!(field(lab, "l0", "entries"), some(1));
    lab.assert_lives("l0", HELD_FOR);
    let replies = call(lab, &[&format!("release 3/16 a:1 0 9 {token} - w: - -")]);
    assert_eq!(replies, [Resp::Int(0), Resp::Int(1)], "nobody asked for the time");
    assert_eq!(
        fields(lab, ["p:3", "o:p:3", "entries", "last:3", "last"]),
        [None, None, some(0), some(token), None]
    );
    lab.assert_lives("l0", FREE_FOR);
}

fn permits_are_taken_and_given_back_beside_each_other(lab: &Lab<'_>) {
    plant(lab, &["p:0", "9000000000000000 99 1 1", "o:p:0", "b:1", "entries", "1", "last:0", "100"]);
    let token = number(&call(lab, &["acquire 15/16 a:1 7 T 10000 - - a:1 T 0 w:"])[1]);
    assert_eq!(field(lab, "l0", "entries"), some(2));
    done(lab, "release 0/16 b:1 0 9 99 - w: - -");
    assert_eq!(fields(lab, ["entries", "last:0", "fence", "p:0"]), [some(1), some(100), some(token), None]);
    lab.assert_lives("l0", HELD_FOR);
    done(lab, &format!("release 15/16 a:1 0 9 {token} - w: - -"));
    assert_eq!(fields(lab, ["entries", "last:15"]), [some(0), some(token)]);
    lab.assert_lives("l0", FREE_FOR);
}

fn a_permit_has_a_label(lab: &Lab<'_>) {
    plant(lab, &[]);
    let token = number(&call(lab, &["acquire 3/16 a:1 7 T 10000 work"])[1]);
    assert_eq!(field(lab, "l0", "l:p:3").as_deref(), Some("work"));
    done(lab, &format!("release 3/16 a:1 0 9 {token} - w: - -"));
    assert_eq!(field(lab, "l0", "l:p:3"), None);
}

fn a_permit_may_end_with_the_first(lab: &Lab<'_>) {
    let over = (lab.now() + 10_000_000).to_string();
    plant(lab, &["over", &over]);
    call(lab, &["acquire 3/16 a:1 7 T 10000 -"]);
    assert_eq!(fields(lab, ["entries", "over"]), [some(1), some(over)]);
}
