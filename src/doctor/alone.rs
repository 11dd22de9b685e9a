//! What is wrong with one master by itself: pure.

use std::time::Duration;

use super::{Denied, Facts, Finding, Info, Kept, Marker, Server, Unasked, Visitor};
use crate::trust::ColdStart;

/// Commands without which locks work, at a cost.
const OPTIONAL: [(&str, &str); 5] = [
    ("ping", "a master that falls silent takes longer to be found well again"),
    ("client|id", "one server under two names is not noticed"),
    ("client|kill", "what was lost on a broken connection may still run, and block a lock for its TTL"),
    ("publish", "waiters are not woken by a release, and come late"),
    ("subscribe", "waiters poll instead of being woken"),
];

/// What was found on one master, and when it has a vote.
pub(super) struct Verdict {
    pub(super) findings: Vec<Finding>,
    pub(super) votes_in: Option<Duration>,
}

/// Looks at one master.
pub(super) fn look(facts: &Facts, visitor: &Visitor) -> Verdict {
    let server = match &facts.server {
        Ok(server) => server,
        Err(why) => return Verdict { findings: vec![unasked(why)], votes_in: None },
    };
    let mut findings = vec![reach(server, visitor)];
    findings.extend(role(&server.info));
    findings.extend(version(&server.info));
    findings.extend(memory(&server.info));
    findings.extend(persistence(server, visitor));
    findings.extend(writes(server));
    findings.push(rights(&server.denied, visitor));
    let mut votes_in = Duration::ZERO;
    if let Some((finding, wait)) = marker(server, visitor) {
        findings.push(finding);
        votes_in = wait;
    }
    findings.extend(terms(&server.marker, visitor));
    Verdict { findings, votes_in: Some(votes_in) }
}

fn unasked(why: &Unasked) -> Finding {
    const ABOUT: &str = "reach";
    match why {
        Unasked::Unreached(why) => {
            let login = ["NOAUTH", "WRONGPASS", "NOPERM"].iter().any(|code| why.starts_with(code));
            let fix = if login {
                "put a user and a password that it knows into the URL"
            } else {
                "start it, correct its URL, or let this host connect to it"
            };
            Finding::fail(ABOUT, format!("it cannot be reached: {why}"), fix)
        }
        Unasked::Silent(time) => {
            let fix = "see what keeps it; if it is only far away, allow more time (--timeout)";
            Finding::fail(ABOUT, format!("it did not answer within {time:?}"), fix)
        }
        Unasked::NoServer => Finding {
            fix: None,
            ..Finding::fail(ABOUT, "it is a master of another kind, which cannot be examined", "")
        },
    }
}

/// The one in the middle.
pub(super) fn median(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

fn reach(server: &Server, visitor: &Visitor) -> Finding {
    const ABOUT: &str = "reach";
    let median = median(&server.round_trips).unwrap_or_default();
    let timeout = visitor.timeout;
    let what = format!("round trip {:.1} ms, the median of {}", ms(median), server.round_trips.len());
    if median * 2 <= timeout {
        return Finding::ok(ABOUT, what);
    }
    let fix = format!("allow more time than {timeout:?} (--timeout), or take a master that is nearer");
    Finding::warn(ABOUT, format!("{what}: its votes may come too late"), fix)
}

fn role(info: &Info) -> Option<Finding> {
    const ABOUT: &str = "role";
    let role = info.get("role")?;
    if role == "master" {
        return Some(Finding::ok(ABOUT, "master"));
    }
    let copied = info.get("master_host").zip(info.get("master_port"));
    let of = copied.map_or_else(String::new, |(host, port)| format!(" of {host}:{port}"));
    let fix = "list an independent server in its place, or make it one: REPLICAOF NO ONE";
    Some(Finding::fail(ABOUT, format!("{role}{of}: its keys are not its own"), fix))
}

/// The oldest Redis that has all commands of the scripts: HRANDFIELD is the newest of them.
const OLDEST: (u32, u32) = (6, 2);

fn version(info: &Info) -> Option<Finding> {
    const ABOUT: &str = "version";
    if let Some(version) = info.get("valkey_version") {
        return Some(Finding::ok(ABOUT, format!("Valkey {version}")));
    }
    let version = info.get("redis_version")?;
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), minor) if (major, minor.unwrap_or(0)) < OLDEST => {
            let (major, minor) = OLDEST;
            let fix = format!("install Redis {major}.{minor} or later, or Valkey");
            Some(Finding::fail(ABOUT, format!("Redis {version}"), fix))
        }
        _ => Some(Finding::ok(ABOUT, format!("Redis {version}"))),
    }
}

fn memory(info: &Info) -> Option<Finding> {
    const ABOUT: &str = "memory";
    let limit: u64 = info.get("maxmemory")?.parse().ok()?;
    let policy = info.get("maxmemory_policy")?;
    let what = match limit {
        0 => return Some(Finding::ok(ABOUT, "no limit")),
        _ => format!("{:.1} MiB at most, and then {policy}", limit as f64 / f64::from(1 << 20)),
    };
    Some(match policy {
        "noeviction" => Finding::ok(ABOUT, what),
        _ => Finding::fail(
            ABOUT,
            format!("{what}: it may drop locks"),
            "CONFIG SET maxmemory-policy noeviction",
        ),
    })
}

/// Whether every write is on its disk before its reply; `None` where this user may not ask.
fn keeps_all(Kept { appendonly, appendfsync, not_on_rewrite }: &Kept) -> Option<bool> {
    let so = |setting: &Option<String>, wanted: &str| setting.as_ref().map(|found| found == wanted);
    Some(so(appendonly, "yes")? && so(appendfsync, "always")? && so(not_on_rewrite, "no")?)
}

/// What a restart costs, by this client's cold start policy.
fn persistence(server: &Server, visitor: &Visitor) -> Option<Finding> {
    const ABOUT: &str = "persistence";
    const SETTINGS: &str = "appendonly yes, appendfsync always, no-appendfsync-on-rewrite no";
    let policy = visitor.terms.cold_start;
    let quarantine = secs(visitor.terms.quarantine());
    let Kept { appendonly, appendfsync, not_on_rewrite } = &server.kept;
    let setting = match (appendonly.as_deref(), appendfsync.as_deref(), not_on_rewrite.as_deref()) {
        (Some("no"), ..) => "no append-only file".to_owned(),
        (_, Some("always"), Some("yes")) => "appendfsync always, but not on rewrite".to_owned(),
        (_, Some(fsync), _) => format!("appendfsync {fsync}"),
        _ => match server.info.get("aof_enabled")? {
            "0" => "no append-only file".to_owned(),
            _ => "an append-only file, and this user may not see how it is kept".to_owned(),
        },
    };
    let costs = match policy {
        ColdStart::None => "votes at once",
        ColdStart::Fsync if keeps_all(&server.kept) == Some(true) => "votes at once",
        _ => &format!("has no vote for {quarantine}"),
    };
    match (keeps_all(&server.kept), policy) {
        (Some(true), ColdStart::Quarantine | ColdStart::Uptime) => Some(Finding::ok(
            ABOUT,
            format!(
                "{setting}: restarted, it has forgotten nothing, and {costs}; --cold-start fsync spares that"
            ),
        )),
        (Some(true), _) => {
            Some(Finding::ok(ABOUT, format!("{setting}: restarted, it has forgotten nothing, and {costs}")))
        }
        (None, ColdStart::Quarantine | ColdStart::Uptime) if server.info.get("aof_enabled") == Some("1") => {
            Some(Finding::ok(ABOUT, format!("{setting}: restarted, it {costs}")))
        }
        (None, ColdStart::Fsync) => Some(Finding::warn(
            ABOUT,
            format!("{setting}: it counts as one that forgets, and restarted it {costs}"),
            "ACL SETUSER USER +config|get",
        )),
        (_, ColdStart::None) => Some(Finding::warn(
            ABOUT,
            format!("{setting}: restarted, it may have forgotten locks, and by --cold-start none it {costs}"),
            format!("another --cold-start once it is in use, or in its configuration {SETTINGS}"),
        )),
        _ => Some(Finding::warn(
            ABOUT,
            format!("{setting}: restarted, it may have forgotten locks, and {costs}"),
            format!("in its configuration {SETTINGS}"),
        )),
    }
}

fn writes(server: &Server) -> Option<Finding> {
    let why = server.refuses_writes.as_ref().filter(|_| server.info.get("role") != Some("slave"))?;
    let fix = match why.split(' ').next() {
        Some("OOM") => "CONFIG SET maxmemory to more, or find out what fills it",
        Some("MISCONF") => "find out why it cannot write to its disk: its log says it",
        Some("LOADING" | "BUSY") => "wait until it has done that",
        _ => "see its log",
    };
    Some(Finding::fail("writes", format!("refused: {why}"), fix))
}

fn rights(denied: &Denied, visitor: &Visitor) -> Finding {
    const ABOUT: &str = "rights";
    let Denied { commands, keys, channels } = denied;
    let needed = commands.iter().filter(|name| price(name).is_none());
    let prefix = &visitor.prefix;
    let mut rules = Vec::new();
    rules.extend(keys.then(|| format!("~{prefix}*")));
    rules.extend(channels.then(|| format!("&{prefix}*")));
    rules.extend(commands.iter().map(|name| format!("+{name}")));
    let fix = format!("ACL SETUSER USER {}", rules.join(" "));
    let mut lacks: Vec<_> = needed.map(|name| (*name).to_owned()).collect();
    lacks.extend(keys.then(|| format!("the keys {prefix}*")));
    if !lacks.is_empty() {
        return Finding::fail(ABOUT, format!("this user may not use {}", lacks.join(", ")), fix);
    }
    let dear = |name: &&str| price(name).map(|price| format!("may not use {name}: {price}"));
    let mut prices: Vec<_> = commands.iter().filter_map(dear).collect();
    prices.extend(channels.then(|| format!("may not use the channels {prefix}*: waiters poll")));
    if prices.is_empty() {
        return Finding::ok(ABOUT, "this user may do all that is needed");
    }
    Finding::warn(ABOUT, format!("this user {}", prices.join("; ")), fix)
}

fn price(command: &str) -> Option<&'static str> {
    OPTIONAL.iter().find(|(name, _)| *name == command).map(|(_, price)| *price)
}

/// What a marker says.
pub(super) struct MarkerParts<'a> {
    run_id: &'a str,
    replid2: &'a str,
    /// Until when (us) the master has no vote.
    until: u64,
    /// Those of its clients.
    pub(super) terms: &'a str,
}

impl<'a> MarkerParts<'a> {
    pub(super) fn of(marker: &'a str) -> Option<Self> {
        let mut parts = marker.splitn(4, '|');
        Some(Self {
            run_id: parts.next()?,
            replid2: parts.next()?,
            until: parts.next()?.parse().ok()?,
            terms: parts.next()?,
        })
    }
}

/// Whether it remembers what it granted, and if not, how long it has no vote: the result that a
/// client's handshake would have (`scripts/lua/hello.lua`). `None` if the handshake would fail for
/// another reason.
fn marker(server: &Server, visitor: &Visitor) -> Option<(Finding, Duration)> {
    const ABOUT: &str = "marker";
    let info = &server.info;
    let terms = &visitor.terms;
    let run_id = info.get("run_id")?;
    let now = server.looks.last()?.time;
    if info.get("role") != Some("master") {
        return None;
    }
    let at_once = |what| Some((Finding::ok(ABOUT, what), Duration::ZERO));
    let unusable = |what: String| {
        let fix = format!("DEL {}, once nobody uses it", terms.marker);
        Some((Finding::fail(ABOUT, what, fix), Duration::ZERO))
    };
    let replid2 = info.get("master_replid2").unwrap_or_default();
    let has_copied = |known: &str| replid2 != known && replid2.bytes().any(|digit| digit != b'0');
    let keeps_all = terms.cold_start == ColdStart::Fsync && keeps_all(&server.kept) == Some(true);
    let (what, left) = match &server.marker {
        Marker::Unread(why) if why.starts_with("WRONGTYPE") => return unusable(why.clone()),
        Marker::Unread(_) => return None,
        Marker::Text(text) => match MarkerParts::of(text) {
            None => return unusable(format!("the key {} is not a marker", terms.marker)),
            Some(its) if !has_copied(its.replid2) && (its.run_id == run_id || keeps_all) => {
                match Duration::from_micros(its.until.saturating_sub(now)) {
                    Duration::ZERO => return at_once("it remembers what it granted"),
                    left => ("it was new, restarted, or lost its keys", Some(left)),
                }
            }
            Some(_) if terms.cold_start == ColdStart::None => {
                return at_once("it restarted, and votes at once");
            }
            Some(its) if its.run_id == run_id => ("it was a replica", None),
            Some(_) => ("it restarted", None),
        },
        Marker::Absent => {
            let up: Option<u64> = info.get("uptime_in_seconds").and_then(|up| up.parse().ok());
            let is_old = up.is_some_and(|up| up > terms.max_ttl.as_secs());
            match terms.cold_start {
                ColdStart::Fsync if keeps_all => return at_once("it is new, and votes at once"),
                ColdStart::Uptime if is_old => return at_once("it is new, and votes at once"),
                ColdStart::None => return at_once("it is new, and votes at once"),
                _ => ("it is new, or lost its keys", None),
            }
        }
    };
    Some(without_vote(what, left, terms.quarantine()))
}

/// A master without a vote: for the time `left`, or from the moment when a client connects.
fn without_vote(what: &str, left: Option<Duration>, quarantine: Duration) -> (Finding, Duration) {
    let (when, fix) = match left {
        Some(left) => (format!("no vote for {} more", secs(left)), "wait: it ends by itself"),
        None => (
            format!("no vote for {} from the moment when the first client connects", secs(quarantine)),
            "have one connect (quorate status); where it is used for the first time, --cold-start none",
        ),
    };
    (Finding::warn("marker", format!("{what}: {when}"), fix), left.unwrap_or(quarantine))
}

/// Whether its clients have the same terms as this one.
fn terms(marker: &Marker, visitor: &Visitor) -> Option<Finding> {
    const ABOUT: &str = "terms";
    let Marker::Text(text) = marker else { return None };
    let theirs = MarkerParts::of(text)?.terms;
    let ours = visitor.terms.to_string();
    if theirs == ours {
        return Some(Finding::ok(ABOUT, theirs));
    }
    let key = &visitor.terms.marker;
    Some(Finding::fail(
        ABOUT,
        format!("its clients have {theirs}, and this one would have {ours}"),
        format!(
            "give this one the same; or stop all clients, DEL {key} on every master, and start them with another"
        ),
    ))
}

pub(super) fn secs(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
