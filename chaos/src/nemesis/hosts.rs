//! Which faults masters can have where they run (pure).

use super::{Keys, Servers, What};
use crate::master::Host;

impl What {
    /// Whether masters can have it where they run. A container has the machine's clock and its
    /// disk, and shares neither folders nor replicas with this process; a process has the machine's
    /// network.
    pub fn suits(self, host: Host) -> bool {
        match self {
            Self::Clocks(_)
            | Self::Disks(_)
            | Self::Replicas(_)
            | Self::Servers(Servers::KillEmpty)
            | Self::Keys(Keys::WipeByReplication) => host == Host::Process,
            Self::Servers(Servers::Disconnect) => host == Host::Container,
            Self::Servers(Servers::Kill | Servers::Freeze)
            | Self::Keys(Keys::FlushAll)
            | Self::Network(_)
            | Self::Commands(_)
            | Self::Limits(_)
            | Self::Clients(_) => true,
        }
    }
}
