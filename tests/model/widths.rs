//! How close two leases come where both clients know the time vaguely, and the master that both
//! quorums share has a clock that is off: every case, instead of walks.

use super::master::{Call, Estimate, Master, Time, VALID, Verb, Who};
use super::variants::Flaw;
use super::world::START;

const FIRST: Who = Who { owner: 0, reads: false, kind: 0 };
const SECOND: Who = Who { owner: 1, reads: false, kind: 0 };

/// What a client may know: the true time is within the band of the interval.
fn estimates(width: Time) -> impl Iterator<Item = Estimate> {
    (-width - super::master::BAND..=super::master::BAND).map(move |lag| Estimate { lag, width })
}

/// The clocks that a client with this estimate may take for right.
fn clocks(estimate: Estimate) -> impl Iterator<Item = Time> {
    (-40..=40).filter(move |clock| estimate.trusts(*clock))
}

/// Whether this client gets a grant at `now` on a master that shows this clock.
fn is_granted(master: &mut Master, who: Who, estimate: Estimate, clock: Time, now: Time) -> bool {
    let (lag, width) = estimate.sent(master.flaw);
    let call = Call {
        lease: usize::from(who.owner),
        at: 0,
        verb: Verb::Acquire,
        who,
        from: None,
        time: now + lag,
        width,
        estimate,
        token: 0,
        round: 1,
        first: 1,
        turn: 0,
        still_held: false,
    };
    master.clock = clock;
    master.run(&call, now).is_some()
}

/// The least time from the end of a lease to the next one, where both clients know the time to
/// within `width`; below 0 if the lock is held by two.
fn closest(width: Time, flaw: Option<Flaw>) -> Time {
    let mut closest = Time::MAX;
    let cases = estimates(width).flat_map(|first| clocks(first).map(move |clock| (first, clock)));
    for (first, clock) in cases {
        let mut granted = Master { flaw, ..Master::default() };
        if !is_granted(&mut granted, FIRST, first, clock, START) {
            continue; // H2
        }
        let cases = estimates(width).flat_map(|second| clocks(second).map(move |clock| (second, clock)));
        for (second, clock) in cases {
            let until = closest.min(VALID + 12);
            let at = |&after: &Time| is_granted(&mut granted.clone(), SECOND, second, clock, START + after);
            closest = (0..until).find(at).unwrap_or(closest);
        }
    }
    closest - VALID
}

#[test]
fn a_vague_time_ends_no_lease_early() {
    for width in 0..=10 {
        let apart = closest(width, None);
        println!("{:>4} ms wide: leases are {} ms apart", width * 250, apart * 250);
        assert_eq!(apart, 1, "width {width}");
    }
}

/// The rules that do not hold. A client that ignores what is wider than 500 ms is one whose time is
/// never wider.
#[test]
fn broken_widths() {
    for (what, width, flaw) in [
        ("T is the middle", 10, Flaw::MiddleOfTime),
        ("T is the middle, and what is wider than 500 ms is ignored", 2, Flaw::MiddleOfTime),
        ("T is the low end, and an entry is not kept for longer", 10, Flaw::KeptWithoutWidth),
    ] {
        let apart = closest(width, Some(flaw));
        println!("leases overlap by {} ms: {what}", -apart * 250);
        assert!(apart < 0, "{what}");
    }
}
