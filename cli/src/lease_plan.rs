//! What to do about a lease while a job runs under it: pure.

use std::time::Duration;

use crate::exit::{self, Failure};

/// The shortest TTL that leaves time to renew, to end a job and to kill it.
pub(crate) const MIN_TTL: Duration = Duration::from_secs(1);

/// The longest default grace.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// When to do what, by what is left of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeasePlan {
    /// Between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// Between SIGKILL and the end of the lease: the time it takes the system to carry it out, and
    /// a busy machine to run us.
    pub(crate) margin: Duration,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Terminate,
    Kill,
}

impl LeasePlan {
    /// A plan for a job, if its TTL and grace are within their limits.
    pub(crate) fn new(ttl: Duration, grace: Option<Duration>) -> Result<Self, Failure> {
        let usage = |message: String| Err(Failure::new(exit::USAGE, message));
        if ttl < MIN_TTL {
            return usage(format!(
                "--ttl {ttl:?} is too short to end a job in; it must be at least {MIN_TTL:?}"
            ));
        }
        let grace = grace.unwrap_or_else(|| DEFAULT_GRACE.min(ttl / 4));
        if grace > ttl / 3 {
            return usage(format!(
                "--grace {grace:?} must be at most a third of the TTL, which is {:?}",
                ttl / 3
            ));
        }
        Ok(Self { grace, margin: Duration::from_millis(100).max(ttl / 50) })
    }

    /// What is due with `left` of the lease left. The library renews it from the first third of its
    /// TTL on.
    pub(crate) fn due(&self, left: Duration) -> Due {
        if left <= self.margin {
            Due::Kill
        } else if left <= self.margin.saturating_add(self.grace) {
            Due::Terminate
        } else {
            Due::Nothing
        }
    }

    /// How often to look at the clock. Timers stand still while the machine is suspended, and
    /// leases do not: the first look after it has to come soon.
    pub(crate) fn look(&self) -> Duration {
        self.margin / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(ttl: u64, grace: Option<u64>) -> Result<LeasePlan, Failure> {
        LeasePlan::new(Duration::from_millis(ttl), grace.map(Duration::from_millis))
    }

    #[test]
    fn a_job_is_ended_then_killed_before_its_lease_is_over() {
        let plan = plan(10_000, None).unwrap();
        let due = |left| plan.due(Duration::from_millis(left));
        assert_eq!(due(2_701), Due::Nothing);
        assert_eq!(due(2_700), Due::Terminate);
        assert_eq!(due(200), Due::Kill);
        assert_eq!(due(0), Due::Kill);
    }

    #[test]
    fn at_every_limit_there_is_time_to_renew_before_the_job_is_ended() {
        for (ttl, grace) in
            [(1_000, Some(333)), (1_000, None), (86_400_000, Some(28_800_000)), (3_000, Some(0))]
        {
            let plan = plan(ttl, grace).unwrap();
            // The first renewal is at two thirds, and three more tries fit into the next sixth.
            assert!(Duration::from_millis(ttl) / 2 > plan.margin + plan.grace, "{plan:?}");
            assert!(plan.look() * 4 <= plan.margin);
        }
    }

    #[test]
    fn a_value_outside_of_its_limits_is_named_with_the_limit() {
        let message = plan(999, None).unwrap_err().message;
        assert!(message.contains("999ms") && message.contains("1s"), "{message}");
        let message = plan(9_000, Some(3_001)).unwrap_err().message;
        assert!(message.contains("3.001s") && message.contains("3s"), "{message}");
    }
}
