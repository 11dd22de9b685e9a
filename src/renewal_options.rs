//! What a user says about renewal.

use std::sync::Arc;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::renewal::Renewal;

/// The options as they were given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RenewalOptions {
    /// The lease is not renewed at all.
    pub(super) fixed: bool,
    pub(super) interval: Option<Duration>,
    pub(super) at_most: Option<Duration>,
    pub(super) times: Option<u32>,
    pub(super) heartbeat: Option<Duration>,
}

impl RenewalOptions {
    /// How a lease of `ttl` is renewed, if it is; where nothing was said, and that is what `usual`
    /// is for, as usual.
    pub(super) fn for_ttl(
        &self,
        ttl: Duration,
        usual: &Arc<Renewal>,
    ) -> Result<Option<Arc<Renewal>>, Invalid> {
        let Self { fixed, interval, at_most, times, heartbeat } = *self;
        let given = [
            ("renew_every", interval.is_some()),
            ("hold_at_most", at_most.is_some()),
            ("renew_at_most", times.is_some()),
            ("heartbeat", heartbeat.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if fixed => Err(Invalid::fixed_lease(option)),
            _ if fixed => Ok(None),
            None if ttl == usual.ttl => Ok(Some(usual.clone())),
            _ => {
                let interval = interval.unwrap_or(Renewal::every_third_of(ttl).interval);
                Ok(Some(Arc::new(Renewal { ttl, interval, at_most, times, heartbeat })))
            }
        }
    }
}
