//! Messages about masters that cannot vote yet, because they may have lost their locks: pure.

use std::fmt;
use std::time::Duration;

use quorate::{Redlock, Standing};

/// So many masters are in quarantine that the others are no quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quarantine {
    /// How many are.
    masters: usize,
    /// Of how many.
    all: usize,
    /// Until enough of them have a vote again.
    pub(crate) left: Duration,
}

impl Quarantine {
    /// The quarantine, if that is why this client has no quorum: as far as it has connected to its
    /// masters.
    pub(crate) fn keeps(redlock: &Redlock) -> Option<Self> {
        let standings: Vec<_> = redlock.master_status().into_iter().map(|status| status.standing).collect();
        Self::of(&standings)
    }

    fn of(standings: &[Standing]) -> Option<Self> {
        let mut trusted = 0;
        let mut ends = Vec::new();
        for standing in standings {
            match standing {
                Standing::Trusted => trusted += 1,
                Standing::Quarantined { left, .. } => ends.push(*left),
                _ => {}
            }
        }
        ends.sort_unstable();
        let quorum = standings.len() / 2 + 1;
        // Where a quorum has a vote, or would have none even then, this is not what is wrong.
        let last = usize::checked_sub(quorum, trusted + 1)?;
        let left = *ends.get(last)?;
        Some(Self { masters: ends.len(), all: standings.len(), left })
    }

    /// The message for a caller that would wait for `wait`.
    pub(crate) fn advice(&self, wait: Duration) -> String {
        let left = seconds(self.left);
        if wait >= self.left {
            return format!("waiting {left}: {self}");
        }
        // Some more than is left now: connecting takes its time, too.
        let enough = Duration::from_secs(self.left.as_secs() + 5);
        let wait = humantime::format_duration(wait);
        let enough = humantime::format_duration(enough);
        format!(
            "no quorum for {left} more, and a wait of {wait} is too short for that (--wait {enough}): {self}"
        )
    }
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { masters, all, .. } = *self;
        write!(
            f,
            "{masters} of {all} masters restarted or lost their keys, and cannot vote until all that they granted is \
             over"
        )
    }
}

/// A time in seconds, to a tenth.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use quorate::Moment;

    use super::*;

    fn ends_in(secs: u64) -> Standing {
        Standing::Quarantined { until: Moment::default(), left: Duration::from_secs(secs) }
    }

    #[test]
    fn it_is_over_when_enough_masters_have_a_vote() {
        let refused = || Standing::Refused("it is a slave".into());
        let left = |standings: &[Standing]| Quarantine::of(standings).map(|kept| kept.left.as_secs());
        assert_eq!(left(&[ends_in(3), ends_in(1), ends_in(2)]), Some(2));
        assert_eq!(left(&[ends_in(3), Standing::Trusted, refused()]), Some(3));
        assert_eq!(left(&[ends_in(3), Standing::Trusted, Standing::Trusted]), None, "a quorum votes");
        assert_eq!(left(&[ends_in(3), refused(), Standing::Unknown]), None, "that is not why");
        assert_eq!(left(&[]), None);
    }

    #[test]
    fn it_says_for_how_long_and_what_to_do() {
        let kept = Quarantine::of(&[ends_in(30), ends_in(29), Standing::Trusted]).unwrap();
        let what = "2 of 3 masters restarted or lost their keys, and cannot vote until all that they granted is over";
        assert_eq!(kept.advice(Duration::from_secs(60)), format!("waiting 29.0s: {what}"));
        let short = "no quorum for 29.0s more, and a wait of 10s is too short for that (--wait 34s)";
        assert_eq!(kept.advice(Duration::from_secs(10)), format!("{short}: {what}"));
    }
}
