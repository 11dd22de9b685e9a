//! What a master keeps when it is killed.

/// How masters persist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Not at all.
    None,
    /// A dump (RDB) a second after a write, at the earliest: what was written since is lost.
    Dump,
    /// A log (AOF) that reaches the disk every second. The system has it before that, so that a
    /// kill alone loses nothing, but on a slow disk.
    EverySecond,
    /// A log that reaches the disk before the answer is given.
    Always,
}

impl Persistence {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Dump, Self::EverySecond, Self::Always];

    /// The options of a server's command line.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Dump => &["--save", "1 1"],
            Self::EverySecond => &["--appendonly", "yes", "--appendfsync", "everysec"],
            Self::Always => &["--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}
