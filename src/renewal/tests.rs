//! The rules of renewal, without time.

use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(9);

fn at(ms: u64) -> Moment {
    Moment::from_origin(Duration::from_millis(ms))
}

fn course(renewal: Option<Renewal>) -> LeaseTimer {
    LeaseTimer::new(at(1_000), TTL, renewal.map(Arc::new))
}

/// Carries the steps out with renewals that are granted at once, until the lease is given up.
fn carry_out(mut course: LeaseTimer, mut touch: impl FnMut(Moment) -> bool) -> (LeaseTimer, Moment, Loss) {
    let mut now = course.began;
    for _ in 0..100_000 {
        if touch(now) {
            course.touched = now;
        }
        match course.step(now) {
            Step::Wait(until) => {
                assert!(until > now, "it goes on");
                now = until;
            }
            Step::Renew(ttl) => {
                assert!(now < course.deadline);
                course.prolong(now, ttl);
                course.succeeded(now, ttl);
            }
            Step::FillUp => unreachable!("all were asked"),
            Step::GiveUp(cause) => return (course, now, cause),
        }
    }
    panic!("it was never given up");
}

#[test]
fn a_fixed_lease_is_given_up_a_moment_before_its_end() {
    let (course, now, cause) = carry_out(course(None), |_| true);
    assert_eq!((course.renewed, cause), (0, Loss::Expired));
    assert_eq!(course.deadline.since(now), TTL / 20);
}

#[test]
fn the_watchdog_renews_at_a_third_of_the_ttl() {
    let course = course(Some(Renewal::every_third_of(TTL)));
    assert_eq!(course.step(at(1_000)), Step::Wait(at(4_000)));
    assert_eq!(course.step(at(4_000)), Step::Renew(TTL));
    let mut failed = course;
    failed.failed(at(4_100));
    assert_eq!(failed.step(at(4_100)), Step::Wait(at(4_600)), "and tries again soon");
}

#[test]
fn a_cap_by_count_ends_renewal() {
    let renewal = Renewal { times: Some(3), ..Renewal::every_third_of(TTL) };
    let (course, _, cause) = carry_out(course(Some(renewal)), |_| true);
    assert_eq!((course.renewed, cause), (3, Loss::Capped));
}

#[test]
fn a_cap_that_leaves_less_than_the_shortest_ttl_is_what_ends_the_lease() {
    let ttl = Duration::from_millis(10);
    let interval = Duration::from_micros(1_500);
    let at_most = Some(Duration::from_micros(11_428));
    let renewal = Renewal { ttl, interval, at_most, times: None, heartbeat: None };
    let (_, _, cause) = carry_out(LeaseTimer::new(at(1_000), ttl, Some(Arc::new(renewal))), |_| true);
    assert_eq!(cause, Loss::Capped);
}

#[test]
fn a_missed_heartbeat_stops_renewal_and_one_in_time_lets_it_go_on() {
    let renewal = Renewal { heartbeat: Some(Duration::from_secs(5)), ..Renewal::every_third_of(TTL) };
    let (ended, now, cause) = carry_out(course(Some(renewal)), |now| now < at(60_000));
    assert_eq!(cause, Loss::Silent);
    assert!(now < at(60_000) + TTL * 2 && ended.renewed >= 18, "{now:?} {}", ended.renewed);
    let late =
        carry_out(course(Some(renewal)), |now| !(at(5_000)..at(11_000)).contains(&now) && now < at(90_000));
    assert!(late.1 > at(90_000), "it was silent for six seconds, and still had a lease");
}

#[test]
fn what_cannot_work_is_refused_and_named() {
    let good = Renewal::every_third_of(TTL);
    assert_eq!(good.check(), Ok(()));
    for interval in [Duration::ZERO, TTL, TTL * 2, TTL * 2 / 3 + Duration::from_millis(1)] {
        let error = Renewal { interval, ..good }.check().unwrap_err();
        assert!(error.to_string().contains(&format!("{interval:?}")), "{error}");
        assert!(error.to_string().contains("6s"), "{error}");
    }
    let error = Renewal { at_most: Some(TTL / 2), ..good }.check().unwrap_err().to_string();
    assert!(error.contains("4.5s") && error.contains("9s"), "{error}");
    let error = Renewal { heartbeat: Some(Duration::ZERO), ..good }.check().unwrap_err().to_string();
    assert!(error.contains("0ns") && error.contains("10ms"), "{error}");
}

proptest! {
    /// Whatever the TTL, the interval and the cap: a capped lease ends within its cap, and not much
    /// before it.
    #[test]
    fn a_cap_by_time_is_used_and_kept(ttl in 10u64..100_000, share in 1u32..=66, cap in 1u32..20) {
        let ttl = Duration::from_millis(ttl);
        let cap = ttl * cap + ttl / 7;
        let interval = (ttl * share / 100).max(Duration::from_millis(1)).min(ttl * 2 / 3);
        let renewal = Renewal { ttl, interval, at_most: Some(cap), times: None, heartbeat: None };
        prop_assert_eq!(renewal.check(), Ok(()));
        let (ended, now, cause) = carry_out(LeaseTimer::new(at(1_000), ttl, Some(Arc::new(renewal))), |_| true);
        prop_assert!(ended.deadline <= ended.began + cap);
        let unused = ttl / 2 + ttl / 50 + ttl / 10 + Duration::from_millis(15);
        prop_assert!(ended.deadline + unused > ended.began + cap, "{ended:?}");
        prop_assert!(now < ended.deadline, "reported before the end");
        prop_assert_eq!(cause, Loss::Capped);
    }
}

#[test]
fn a_lease_that_lasts_is_given_to_the_masters_that_were_not_asked() {
    let mut course = course(Some(Renewal::every_third_of(TTL))).filled_up_later();
    let ms = Duration::from_millis;
    let began = course.began;
    assert_eq!(course.step(began), Step::Wait(began + ms(50)));
    assert_eq!(course.step(began + ms(50)), Step::FillUp);
    course.fill_up_again(began + ms(50));
    assert_eq!(course.step(began + ms(60)), Step::Wait(began + ms(100)));
    course.fill_up_again(began + ms(5_000));
    assert_eq!(course.fills_up, Some(began + ms(6_000)));
    assert_eq!(course.step(began + TTL / 3), Step::Renew(TTL), "the renewal gives it to all");
}
