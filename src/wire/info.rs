//! A server's reply to INFO.

/// The major version of the oldest Redis that locks are tested with.
const OLDEST_REDIS: u32 = 7;

/// What INFO said; nothing where it was denied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(pub(crate) String);

impl Info {
    pub(crate) fn get(&self, field: &str) -> Option<&str> {
        let value = |line| str::strip_prefix(line, field)?.strip_prefix(':');
        self.0.lines().find_map(value).map(str::trim_end)
    }

    /// The version, if it is too old: Valkey 7.2 says that it is compatible with Redis 7.2.
    pub(crate) fn too_old(&self) -> Option<&str> {
        let version = self.get("redis_version")?;
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major < OLDEST_REDIS).then_some(version)
    }

    /// The policy by which the server drops keys, locks among them, where its memory is full.
    pub(crate) fn evicts(&self) -> Option<&str> {
        let is_limited = self.get("maxmemory") != Some("0");
        self.get("maxmemory_policy").filter(|policy| is_limited && *policy != "noeviction")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_info_is_found_by_its_whole_name() {
        let info =
            Info("# Memory\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\nrole:master\r\n".to_owned());
        assert_eq!((info.get("maxmemory"), info.get("role")), (Some("0"), Some("master")));
        assert_eq!((info.get("max"), Info::default().get("role")), (None, None));
    }
}
