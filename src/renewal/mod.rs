//! How leases are kept: the options, when to renew one, and when to give it up.
//!
//! The rules are pure; `engine/watchdog.rs` carries them out.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{MIN_INTERVAL, MIN_TTL};
use crate::error::Loss;
use crate::invalid::Invalid;
use crate::time::{Moment, lease};

/// How long before its end a lease that is not renewed any more is reported lost, at most: enough
/// to stop its work on a busy machine.
const LONGEST_NOTICE: Duration = Duration::from_secs(1);

/// A lease that lasts for this long is given to the masters that were not asked for it: most locks
/// are released before.
const LASTS: Duration = Duration::from_millis(50);

/// The longest time from one try to give it to them to the next. It is as long as the lease has
/// lasted.
const LONGEST_FILL_UP: Duration = Duration::from_secs(1);

/// How a lease is renewed. Leases that are renewed in the same way share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// What each renewal asks for.
    pub(crate) ttl: Duration,
    /// From one renewal to the next.
    pub(crate) interval: Duration,
    /// The longest time from the first round to the end of the last lease.
    pub(crate) at_most: Option<Duration>,
    /// The most renewals.
    pub(crate) times: Option<u32>,
    /// The longest time between two signs of life (`touch`) of the work.
    pub(crate) heartbeat: Option<Duration>,
}

impl Renewal {
    /// Renewal at a third of the TTL, as Redisson's watchdog does it: two more tries fit before the
    /// lease ends.
    pub(crate) fn every_third_of(ttl: Duration) -> Self {
        Self { ttl, interval: ttl / 3, at_most: None, times: None, heartbeat: None }
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let Self { ttl, interval, at_most, heartbeat, .. } = *self;
        let longest = ttl.saturating_mul(2) / 3;
        if interval < MIN_INTERVAL || interval > longest {
            return Err(Invalid::renewal_interval(interval, MIN_INTERVAL, longest, ttl));
        }
        if let Some(cap) = at_most.filter(|cap| *cap < ttl) {
            return Err(Invalid::hold_cap(cap, ttl));
        }
        if let Some(heartbeat) = heartbeat.filter(|heartbeat| *heartbeat < MIN_TTL) {
            return Err(Invalid::heartbeat(heartbeat, MIN_TTL));
        }
        Ok(())
    }

    /// The least that a renewal, shortened by a cap, must gain to be worth a round.
    fn least_gain(&self) -> Duration {
        self.ttl / 20
    }

    /// From a renewal that granted `ttl` to the next: where that is less than the whole TTL, the
    /// same part of it, unless there is time for a few tries all the same.
    fn interval_within(&self, ttl: Duration) -> Duration {
        let same_part = self.interval.mul_f64(ttl.div_duration_f64(self.ttl));
        self.interval.min(same_part.max(ttl / 3)).max(MIN_INTERVAL)
    }

    /// How long after a renewal that failed to try again, in a lease of `ttl`.
    fn retry(&self, ttl: Duration) -> Duration {
        (self.interval_within(ttl) / 6).max(MIN_INTERVAL)
    }
}

/// The options of a lock, as given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RenewalOptions {
    /// The lease is not renewed at all.
    pub(crate) off: bool,
    pub(crate) interval: Option<Duration>,
    pub(crate) at_most: Option<Duration>,
    pub(crate) times: Option<u32>,
    pub(crate) heartbeat: Option<Duration>,
}

impl RenewalOptions {
    /// How a lease of `ttl` is renewed; `None` if it is not. No option given and the TTL is the
    /// client's own: returns `usual`, which all such leases share.
    pub(crate) fn for_ttl(
        &self,
        ttl: Duration,
        usual: &Arc<Renewal>,
    ) -> Result<Option<Arc<Renewal>>, Invalid> {
        let Self { off, interval, at_most, times, heartbeat } = *self;
        let given = [
            ("renew_every", interval.is_some()),
            ("hold_at_most", at_most.is_some()),
            ("renew_at_most", times.is_some()),
            ("heartbeat", heartbeat.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if off => Err(Invalid::not_renewed(option)),
            _ if off => Ok(None),
            None if ttl == usual.ttl => Ok(Some(usual.clone())),
            _ => {
                let interval = interval.unwrap_or(Renewal::every_third_of(ttl).interval);
                Ok(Some(Arc::new(Renewal { ttl, interval, at_most, times, heartbeat })))
            }
        }
    }
}

/// The times of a lease: its end, and when it is renewed next.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseTimer {
    /// When its first round was sent.
    pub(crate) began: Moment,
    /// When it ends, and the TTL of the round that set this.
    pub(crate) deadline: Moment,
    pub(crate) ttl: Duration,
    pub(crate) renewal: Option<Arc<Renewal>>,
    /// How often it was renewed.
    pub(crate) renewed: u32,
    /// When the next renewal is due.
    pub(crate) due: Moment,
    /// The last sign of life of the work.
    pub(crate) touched: Moment,
    /// When to give it to the masters that were not asked, if there are any.
    pub(crate) fills_up: Option<Moment>,
}

/// The next step for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing, until then.
    Wait(Moment),
    /// Renew it for this TTL.
    Renew(Duration),
    /// Give it to the masters that were not asked for it.
    FillUp,
    /// Report it lost: it ends soon, and nothing will renew it in time.
    GiveUp(Loss),
}

impl LeaseTimer {
    /// Begins a lease, with the round that was sent at `sent`.
    pub(crate) fn new(sent: Moment, ttl: Duration, renewal: Option<Arc<Renewal>>) -> Self {
        let due = sent + renewal.as_ref().map_or(ttl, |renewal| renewal.interval);
        Self {
            began: sent,
            deadline: lease::deadline(sent, ttl),
            ttl,
            renewal,
            renewed: 0,
            due,
            touched: sent,
            fills_up: None,
        }
    }

    /// The same, but of a lease for which not all masters were asked.
    pub(crate) fn filled_up_later(self) -> Self {
        Self { fills_up: Some(self.began + LASTS), ..self }
    }

    /// It is to be given to the masters that lack it, once more.
    pub(crate) fn fill_up_again(&mut self, now: Moment) {
        self.fills_up = Some(now + now.since(self.began).min(LONGEST_FILL_UP));
    }

    /// The step at this moment.
    pub(crate) fn step(&self, now: Moment) -> Step {
        let given_up = self.given_up();
        if now >= given_up {
            return Step::GiveUp(self.cause(now));
        }
        let renews = self.next_renewal(now);
        match (renews, self.fills_up) {
            (Some((at, ttl)), _) if at <= now => Step::Renew(ttl),
            (_, Some(at)) if at <= now => Step::FillUp,
            (_, fills_up) => {
                let next = [renews.map(|(at, _)| at), fills_up].into_iter().flatten();
                Step::Wait(next.fold(given_up, Moment::min))
            }
        }
    }

    /// When it is reported lost unless it is renewed before.
    pub(crate) fn given_up(&self) -> Moment {
        self.deadline - (self.ttl / 20).min(LONGEST_NOTICE)
    }

    /// A round that was sent at `sent` has granted `ttl`.
    pub(crate) fn prolong(&mut self, sent: Moment, ttl: Duration) {
        let deadline = lease::deadline(sent, ttl);
        if deadline > self.deadline {
            (self.deadline, self.ttl) = (deadline, ttl);
        }
    }

    /// Has the lease renewed, unless it is already, as one that a round began which was sent at
    /// `sent`.
    pub(crate) fn renew_by(&mut self, sent: Moment, renewal: &Arc<Renewal>) {
        if self.renewal.is_none() {
            let Self { deadline, ttl, .. } = *self;
            *self = Self { deadline, ttl, ..Self::new(sent, ttl, Some(renewal.clone())) };
        }
    }

    /// A renewal that was sent at `sent` has granted `ttl`.
    pub(crate) fn succeeded(&mut self, sent: Moment, ttl: Duration) {
        self.renewed += 1;
        self.due = sent + self.renewal.as_ref().map_or(ttl, |renewal| renewal.interval_within(ttl));
    }

    /// A renewal failed: the next try is due soon.
    pub(crate) fn failed(&mut self, now: Moment) {
        self.due = now + self.renewal.as_ref().map_or(self.ttl, |renewal| renewal.retry(self.ttl));
    }

    /// When to renew it next and for how long; `None` once a cap is reached.
    fn next_renewal(&self, now: Moment) -> Option<(Moment, Duration)> {
        let renewal = self.renewal.as_ref()?;
        if renewal.times.is_some_and(|times| self.renewed >= times) {
            return None;
        }
        let at = match renewal.heartbeat {
            Some(heartbeat) if self.is_silent(now, heartbeat) => now.max(self.due) + renewal.retry(self.ttl),
            _ => self.due,
        };
        self.room(renewal, now.max(at)).map(|ttl| (at, ttl))
    }

    /// The TTL that a renewal sent at `sent` may ask for, if the cap leaves enough for one to be
    /// worth it.
    fn room(&self, renewal: &Renewal, sent: Moment) -> Option<Duration> {
        let room = renewal.at_most.map(|cap| (self.began + cap).since(sent));
        let ttl = renewal.ttl.min(room.unwrap_or(renewal.ttl));
        let longer = || ttl >= MIN_TTL && lease::deadline(sent, ttl) > self.deadline + renewal.least_gain();
        (ttl == renewal.ttl || longer()).then_some(ttl)
    }

    fn is_silent(&self, now: Moment, heartbeat: Duration) -> bool {
        now.since(self.touched) > heartbeat
    }

    /// Why nothing renewed it.
    fn cause(&self, now: Moment) -> Loss {
        let Some(renewal) = &self.renewal else { return Loss::Expired };
        let capped = renewal.times.is_some_and(|times| self.renewed >= times)
            || self.room(renewal, now).is_none()
            || renewal.at_most.is_some_and(|cap| {
                self.began + cap <= self.deadline + renewal.least_gain() + lease::shortfall(renewal.ttl)
            });
        match renewal.heartbeat {
            Some(heartbeat) if self.is_silent(now, heartbeat) => Loss::Silent,
            _ if capped => Loss::Capped,
            _ => Loss::Expired,
        }
    }
}

#[cfg(test)]
mod tests;
