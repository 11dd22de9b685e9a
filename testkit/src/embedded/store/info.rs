//! What a server says of itself: INFO, those sections and fields that a handshake asks for.

use super::context::{Answer, Context};
use crate::embedded::resp::Resp;

/// One section, or all of them.
pub(super) fn info(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let wanted = words.get(1).map(|word| word.to_ascii_lowercase());
    let uptime = context.now.saturating_sub(context.store.started) / 1_000_000;
    let settings = &context.store.settings;
    let role = if settings.is_replica { "slave" } else { "master" };
    let sections = [
        ("Server", format!("run_id:{}\r\nuptime_in_seconds:{uptime}", context.store.run_id)),
        ("Memory", format!("maxmemory:{}\r\nmaxmemory_policy:{}", settings.maxmemory, settings.policy)),
        (
            "Replication",
            format!("role:{role}\r\nconnected_slaves:0\r\nmaster_replid2:{:040x}", context.store.promotions),
        ),
    ];
    let is_wanted =
        |name: &str| wanted.as_deref().is_none_or(|wanted| name.as_bytes().eq_ignore_ascii_case(wanted));
    let wanted = sections.iter().filter(|(name, _)| is_wanted(name));
    let text = wanted.map(|(name, fields)| format!("# {name}\r\n{fields}\r\n")).collect::<Vec<_>>();
    Ok(Resp::Bulk(text.join("\r\n").into_bytes()))
}
