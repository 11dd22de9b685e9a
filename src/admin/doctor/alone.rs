//! The findings about one master alone: pure.

use std::time::Duration;

use super::facts::{Denied, Facts, Server, Unasked, Visitor};
use super::report::{Finding, Severity};
use crate::vote::Refusal;
use crate::wire::{Failure, Info};

/// Commands without which locks work, at a cost.
const OPTIONAL: [(&str, &str); 9] = [
    ("ping", "a master that falls silent takes longer to be found well again"),
    ("client|id", "one server under two names is not noticed"),
    ("client|tracking", "an older copy of its keys is noticed with the next connection only"),
    ("client|caching", "an older copy of its keys is noticed with the next connection only"),
    ("client|kill", "what was lost on a broken connection may still run, and block a lock for its TTL"),
    ("publish", "waiters poll instead of being woken"),
    ("subscribe", "waiters poll instead of being woken"),
    ("get", "there is no plain_mutex"),
    ("set", "there is no plain_mutex"),
];

/// Looks at one master.
pub(super) fn look(facts: &Facts, visitor: &Visitor) -> Vec<Finding> {
    let server = match &facts.server {
        Ok(server) => server,
        Err(why) => return vec![unasked(why)],
    };
    let mut findings = vec![reach(server, visitor)];
    findings.extend(role(server));
    findings.extend(version(&server.info));
    findings.extend(memory(&server.info));
    findings.extend(persistence(server, visitor));
    findings.extend(writes(server));
    findings.extend(commands(&server.denied));
    findings.push(rights(&server.denied, visitor));
    if !findings.iter().any(|finding| finding.severity == Severity::Fail) {
        findings.extend(calls(server));
    }
    findings
}

fn unasked(why: &Unasked) -> Finding {
    const ABOUT: &str = "reach";
    match why {
        Unasked::Failed(Failure::Refused { reason: Refusal::Password | Refusal::NoPermission, detail }) => {
            let fix = "put a user and a password that it knows into its URL, or where that is read from";
            Finding::fail("login", format!("it refuses this user: {detail}"), fix)
        }
        Unasked::Failed(Failure::Refused { detail, .. }) => {
            let what = format!("it answers, and refuses this client: {detail}");
            Finding::fail("login", what, "change what it names")
        }
        Unasked::Failed(why) => {
            let fix = "start it, correct its URL, or let this host connect to it";
            Finding::fail(ABOUT, format!("it cannot be reached: {}", why.text()), fix)
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

fn role(server: &Server) -> Option<Finding> {
    const ABOUT: &str = "role";
    let info = &server.info;
    let role = info.get("role")?;
    if role != "master" {
        let copied = info.get("master_host").zip(info.get("master_port"));
        let of = copied.map_or_else(String::new, |(host, port)| format!(" of {host}:{port}"));
        let fix = "list an independent server in its place, or make it one: REPLICAOF NO ONE";
        return Some(Finding::fail(ABOUT, format!("{role}{of}: its keys are not its own"), fix));
    }
    let replicas: u32 = info.get("connected_slaves").and_then(|count| count.parse().ok()).unwrap_or(0);
    if replicas == 0 {
        return Some(Finding::ok(ABOUT, "master"));
    }
    let plural = if replicas == 1 { "" } else { "s" };
    let what = format!(
        "master, with {replicas} replica{plural}: if one is promoted while this one runs, two have its vote"
    );
    let fix =
        "promote none automatically; or set min-replicas-to-write 1, or stop this one for certain first";
    Some(Finding::warn(ABOUT, what, fix))
}

fn version(info: &Info) -> Option<Finding> {
    const ABOUT: &str = "version";
    if let Some(version) = info.get("valkey_version") {
        return Some(Finding::ok(ABOUT, format!("Valkey {version}")));
    }
    let version = info.get("redis_version")?;
    let what = format!("Redis {version}");
    Some(match info.too_old() {
        Some(_) => Finding::fail(ABOUT, what, "install Redis 7.0 or later, or Valkey 7.2 or later"),
        None => Finding::ok(ABOUT, what),
    })
}

fn memory(info: &Info) -> Option<Finding> {
    const ABOUT: &str = "memory";
    let limit: u64 = info.get("maxmemory")?.parse().ok()?;
    let policy = info.get("maxmemory_policy")?;
    let what = match limit {
        0 => return Some(Finding::ok(ABOUT, "no limit")),
        _ => format!("{:.1} MiB at most, and then {policy}", limit as f64 / f64::from(1 << 20)),
    };
    Some(match info.evicts() {
        None => Finding::ok(ABOUT, what),
        Some(_) => Finding::fail(
            ABOUT,
            format!("{what}: it may drop locks"),
            "CONFIG SET maxmemory-policy noeviction",
        ),
    })
}

/// What a restart costs.
fn persistence(server: &Server, visitor: &Visitor) -> Option<Finding> {
    const ABOUT: &str = "persistence";
    let cost = format!("if it restarts, it has no vote for {}", secs(visitor.terms.quarantine()));
    Some(match server.info.get("aof_enabled")? {
        "0" => Finding::warn(
            ABOUT,
            format!("no append-only file: {cost}, and it may have lost its record"),
            "in redis.conf: appendonly yes",
        ),
        _ => Finding::ok(ABOUT, format!("an append-only file: {cost}")),
    })
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

/// Commands that were renamed, or that the server does not have.
fn commands(denied: &Denied) -> Option<Finding> {
    const ABOUT: &str = "commands";
    let (needed, costs) = lack(&denied.unknown, "does not know");
    let fix = "keep the names of commands: no rename-command for them in its configuration";
    if !needed.is_empty() {
        return Some(Finding::fail(ABOUT, format!("it does not know {}", needed.join(", ")), fix));
    }
    (!costs.is_empty()).then(|| Finding::warn(ABOUT, format!("it {}", costs.join("; ")), fix))
}

/// The refusal of a client's calls that no other finding explains.
fn calls(server: &Server) -> Option<Finding> {
    let why = server.refuses_calls.as_ref()?;
    let fix = Refusal::of_reply(why).remedy().unwrap_or("see its log");
    Some(Finding::fail("calls", format!("a client's calls are refused: {why}"), fix))
}

fn rights(denied: &Denied, visitor: &Visitor) -> Finding {
    const ABOUT: &str = "rights";
    let Denied { commands, keys, channels, .. } = denied;
    let (mut needed, mut costs) = lack(commands, "may not use");
    let prefix = &visitor.prefix;
    let mut rules = Vec::new();
    rules.extend(keys.then(|| format!("~{prefix}*")));
    rules.extend(channels.then(|| format!("&{prefix}*")));
    rules.extend(commands.iter().map(|name| format!("+{name}")));
    let fix = format!("ACL SETUSER USER {}", rules.join(" "));
    needed.extend(keys.then(|| format!("the keys {prefix}*")));
    if !needed.is_empty() {
        return Finding::fail(ABOUT, format!("this user may not use {}", needed.join(", ")), fix);
    }
    costs.extend(channels.then(|| format!("may not use the channels {prefix}*: waiters poll")));
    if costs.is_empty() {
        return Finding::ok(ABOUT, "this user may do all that is needed");
    }
    Finding::warn(ABOUT, format!("this user {}", costs.join("; ")), fix)
}

/// The commands among these that are required, and the cost of each other one that is missing.
fn lack(commands: &[&str], lacks: &str) -> (Vec<String>, Vec<String>) {
    let cost = |command: &&str| OPTIONAL.iter().find(|(name, _)| name == command);
    let needed = commands.iter().filter(|name| cost(name).is_none()).map(ToString::to_string);
    let costs = commands.iter().filter_map(cost).map(|(name, cost)| format!("{lacks} {name}: {cost}"));
    (needed.collect(), costs.collect())
}

pub(super) fn secs(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
