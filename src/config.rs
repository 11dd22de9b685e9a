//! Settings: plain values with limits, and a reason beside every default.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::invalid::Invalid;

/// The most bytes in a lock's name, 512: long enough for a path or a URL, short enough to log.
pub const MAX_NAME: usize = 512;

/// The most names of one lock over several: 16. One script takes them all and blocks the master
/// meanwhile, for about 10 us a name; if you need more, use a coarser name.
pub const MAX_NAMES: usize = 16;

/// The most masters: 15. A round costs one message each, and more than eight failures at once are
/// not worth surviving.
pub const MAX_MASTERS: usize = 15;

/// The shortest TTL, 10 ms: Redis counts whole milliseconds and the drift takes two, so below this
/// little is left.
pub const MIN_TTL: Duration = Duration::from_millis(10);

/// The longest TTL that any client may allow, 24 hours: a holder that dies blocks the others for
/// this long.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The default of the longest TTL: 30 s, that of Redisson's watchdog. It is short because a
/// restarted master has no vote for a little longer than this, and long ones are seldom needed,
/// since leases renew themselves.
pub const DEFAULT_MAX_TTL: Duration = Duration::from_secs(30);

/// The shortest pause between two renewals, or two tries of a polling acquire, 1 ms: timers are no
/// finer.
pub const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// The longest wait budget: 24 hours.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The default TTL: 10 s. A holder that dies blocks others for ten seconds at most, and a renewal
/// at a third of it leaves two more tries before the lease ends.
pub const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// The default wait budget, 60 s: longer than the TTL of a dead holder and the quarantine of
/// masters that are new, and short enough that the caller still cares about the answer.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(60);

/// The default per-master time-out, 250 ms, unless a quarter of the TTL is less: above a round trip
/// around the world, and a fraction of the default TTL. Only a master that has just fallen silent
/// costs it.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(250);

/// The default interval at which an observer of an election looks, 1 s: it reports a change within
/// about a second, less than a dead leader blocks the next one for, and costs a master 1.3 short
/// calls a second.
pub const DEFAULT_LOOK: Duration = Duration::from_secs(1);

/// The shortest interval of an observer, 10 ms: to know sooner, be a candidate, which is woken.
pub const MIN_LOOK: Duration = Duration::from_millis(10);

/// The longest interval of an observer: 24 hours.
pub const MAX_LOOK: Duration = MAX_WAIT;

/// The default number of acquires of one client that may wait for one lock, 10,000: enough for a
/// burst of requests, and a lock that is never released does not fill the memory with waiters.
pub const DEFAULT_MAX_WAITERS: usize = 10_000;

/// The default number of a client's rounds under way above which an acquire asks a quorum first:
/// 32. With fewer, asking all is as fast or faster, as the first answers decide. With more, it
/// costs throughput.
pub const DEFAULT_QUORUM_FIRST_ABOVE: usize = 32;

/// The most permits of a semaphore: 1,000. To refuse one, a master may have to look at all of them,
/// and is blocked meanwhile.
pub const MAX_PERMITS: u32 = 1_000;

/// The default key prefix, `quorate:`: it says whose keys these are.
pub const DEFAULT_PREFIX: &str = "quorate:";

/// The most bytes in a key prefix: 256.
pub const MAX_PREFIX: usize = 256;

/// The most bytes in a label, 64: enough for a host, a process and a job; it is stored with every
/// entry.
pub const MAX_LABEL: usize = 64;

/// The label of a process that runs this program: the host's name up to the first dot, the
/// process's number, and the program, cut to [`MAX_LABEL`] bytes. The default label of a client is
/// that of its own program.
pub fn label_of_process(program: &str) -> String {
    label_of(&host(), std::process::id(), program)
}

fn label_of(host: &str, process: u32, program: &str) -> String {
    let host = host.split('.').next().unwrap_or_default();
    let mut label = format!("{host} {process} {program}").replace(char::is_control, "?");
    while label.len() > MAX_LABEL {
        label.pop();
    }
    label
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// The label of this process.
fn default_label() -> Arc<str> {
    static LABEL: LazyLock<Arc<str>> = LazyLock::new(|| {
        let program = std::env::current_exe().unwrap_or_default();
        let program = program.file_name().unwrap_or_default();
        label_of_process(&program.to_string_lossy()).into()
    });
    LABEL.clone()
}

/// What a client was built with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) ttl: Duration,
    /// No lease is longer.
    pub(crate) max_ttl: Duration,
    pub(crate) wait: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) prefix: Arc<str>,
    /// The label of holders; may be empty.
    pub(crate) label: Arc<str>,
    pub(crate) max_waiters: usize,
    pub(crate) quorum_first_above: usize,
    /// Whether all masters are new, or forget nothing: for tests.
    pub(crate) all_new: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl: DEFAULT_TTL,
            max_ttl: DEFAULT_MAX_TTL,
            wait: DEFAULT_WAIT,
            timeout: None,
            prefix: DEFAULT_PREFIX.into(),
            label: default_label(),
            max_waiters: DEFAULT_MAX_WAITERS,
            quorum_first_above: DEFAULT_QUORUM_FIRST_ABOVE,
            all_new: false,
        }
    }
}

impl Settings {
    /// Checks the settings that do not depend on one lock.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        check_wait(self.wait)?;
        check_label(&self.label)?;
        if self.max_ttl < MIN_TTL || self.max_ttl > MAX_TTL {
            return Err(Invalid::max_ttl(self.max_ttl, MIN_TTL, MAX_TTL));
        }
        self.timeout_for(self.ttl)?;
        if self.max_waiters == 0 {
            return Err(Invalid::no_waiters());
        }
        if self.prefix.len() > MAX_PREFIX || self.prefix.contains(['{', '}']) {
            return Err(Invalid::prefix(&self.prefix, MAX_PREFIX));
        }
        Ok(())
    }

    /// The per-master time-out where no TTL sets a shorter one.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// The same for a TTL that was checked, or shortened by a cap: it may be too short for the
    /// time-out that was set.
    pub(crate) fn timeout_within(&self, ttl: Duration) -> Duration {
        self.timeout_for(ttl).unwrap_or(ttl / 2)
    }

    /// The per-master time-out for a round that asks for `ttl`, both checked.
    pub(crate) fn timeout_for(&self, ttl: Duration) -> Result<Duration, Invalid> {
        if ttl < MIN_TTL || ttl > self.max_ttl {
            return Err(Invalid::ttl(ttl, MIN_TTL, self.max_ttl));
        }
        let timeout = self.timeout.unwrap_or(DEFAULT_TIMEOUT.min(ttl / 4));
        if timeout.is_zero() || timeout >= ttl {
            return Err(Invalid::timeout(timeout, ttl));
        }
        Ok(timeout)
    }

    /// Checks the lock delay.
    pub(crate) fn check_delay(&self, delay: Duration, ttl: Duration) -> Result<(), Invalid> {
        if ttl.saturating_add(delay) > self.max_ttl {
            return Err(Invalid::lock_delay(delay, ttl, self.max_ttl));
        }
        Ok(())
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), Invalid> {
    match name.len() {
        0 => Err(Invalid::empty_name(MAX_NAME)),
        length if length > MAX_NAME => Err(Invalid::long_name(name, MAX_NAME)),
        _ => Ok(()),
    }
}

pub(crate) fn check_label(label: &str) -> Result<(), Invalid> {
    if label.len() > MAX_LABEL || label.chars().any(char::is_control) {
        return Err(Invalid::label(label, MAX_LABEL));
    }
    Ok(())
}

pub(crate) fn check_permits(permits: Option<u32>) -> Result<(), Invalid> {
    match permits {
        Some(permits) if permits == 0 || permits > MAX_PERMITS => Err(Invalid::permits(permits, MAX_PERMITS)),
        _ => Ok(()),
    }
}

pub(crate) fn check_wait(wait: Duration) -> Result<(), Invalid> {
    if wait > MAX_WAIT {
        return Err(Invalid::wait(wait, MAX_WAIT));
    }
    Ok(())
}

pub(crate) fn check_look(interval: Duration) -> Result<(), Invalid> {
    if interval < MIN_LOOK || interval > MAX_LOOK {
        return Err(Invalid::look_interval(interval, MIN_LOOK, MAX_LOOK));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_settings_are_valid() {
        assert_eq!(Settings::default().check(), Ok(()));
        assert_eq!(Settings::default().timeout_for(DEFAULT_TTL), Ok(DEFAULT_TIMEOUT));
    }

    #[test]
    fn the_default_timeout_fits_the_shortest_ttl() {
        assert_eq!(Settings::default().timeout_for(MIN_TTL), Ok(Duration::from_micros(2_500)));
    }

    #[test]
    fn a_ttl_outside_its_limits_is_refused_and_named() {
        for ttl in [Duration::ZERO, Duration::from_millis(9), DEFAULT_MAX_TTL + Duration::from_millis(1)] {
            let error = Settings::default().timeout_for(ttl).unwrap_err();
            assert_eq!(error, Invalid::ttl(ttl, MIN_TTL, DEFAULT_MAX_TTL));
            assert!(error.to_string().contains(&format!("{ttl:?}")), "{error}");
        }
    }

    #[test]
    fn a_timeout_must_be_above_zero_and_below_the_ttl() {
        let ttl = Duration::from_millis(100);
        for timeout in [Duration::ZERO, ttl, ttl * 2] {
            let settings = Settings { timeout: Some(timeout), ..Settings::default() };
            assert_eq!(settings.timeout_for(ttl), Err(Invalid::timeout(timeout, ttl)));
        }
    }

    #[test]
    fn a_label_is_short_and_has_no_control_characters() {
        for label in ["", "web1 4711 backup", "größer → kleiner", &"x".repeat(64)] {
            assert_eq!(check_label(label), Ok(()), "{label}");
        }
        for label in ["a\nb", "\u{7f}", "\u{85}", &"x".repeat(65), &"ü".repeat(33)] {
            let said = check_label(label).unwrap_err().to_string();
            assert!(
                said.contains(&format!("has {} bytes", label.len())) && said.contains("at most 64"),
                "{said}"
            );
        }
        assert!(Settings { label: "\t".into(), ..Settings::default() }.check().is_err());
    }

    #[test]
    fn a_label_has_as_much_as_there_is_room_for() {
        assert_eq!(label_of("web1.example.org", 7, "backup.sh"), "web1 7 backup.sh");
        assert_eq!(label_of("", 7, "a\nb"), " 7 a?b");
        let long = label_of(&"ü".repeat(20), 4_000_000, &"é".repeat(20));
        assert!((MAX_LABEL - 1..=MAX_LABEL).contains(&long.len()), "{long}");
        assert!(default_label().contains(&std::process::id().to_string()), "{}", default_label());
    }

    #[test]
    fn names_have_1_to_512_bytes() {
        assert_eq!(check_name(&"x".repeat(512)), Ok(()));
        assert_eq!(check_name(""), Err(Invalid::empty_name(512)));
        let error = check_name(&"ä".repeat(257)).unwrap_err().to_string();
        assert!(error.contains("514 bytes") && error.contains("512") && error.contains("ää…"), "{error}");
    }

    #[test]
    fn a_prefix_with_braces_or_too_long_is_refused() {
        for prefix in ["a{b".to_owned(), "}".to_owned(), "p".repeat(257)] {
            let settings = Settings { prefix: prefix.into(), ..Settings::default() };
            assert_eq!(settings.check(), Err(Invalid::prefix(&settings.prefix, 256)));
        }
    }
}
