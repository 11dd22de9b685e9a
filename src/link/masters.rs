//! The masters of one client: those that it was given, and those that join the set while it runs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::contract::Master;
use crate::invalid::Invalid;
use crate::wire::{ByMaster, MasterIndex};

/// The masters of one client, by their indices.
pub(crate) struct Masters {
    all: ByMaster<OnceLock<Arc<dyn Master>>>,
    maker: Option<MasterMaker>,
}

/// Makes a master of its URL, or of its name in the record of the set.
#[derive(Clone)]
pub(crate) struct MasterMaker(pub(crate) Arc<MakeMaster>);

type MakeMaster = dyn Fn(&str) -> Result<Arc<dyn Master>, Invalid> + Send + Sync;

impl fmt::Debug for MasterMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterMaker")
    }
}

impl Masters {
    pub(crate) fn new(given: Vec<Arc<dyn Master>>, maker: Option<MasterMaker>) -> Arc<Self> {
        let given = given.into_iter().map(OnceLock::from);
        let all = given.chain(std::iter::repeat_with(OnceLock::new)).take(MasterIndex::COUNT).collect();
        Arc::new(Self { all, maker })
    }

    /// The masters that there are, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MasterIndex, &Arc<dyn Master>)> {
        self.all.iter().filter_map(|(index, master)| Some((index, master.get()?)))
    }

    /// The master at this index, if there is one.
    pub(crate) fn get(&self, index: MasterIndex) -> Option<&Arc<dyn Master>> {
        self.all[index].get()
    }

    /// Makes the master of this name, if there is none at this index. Returns it if it is new.
    pub(crate) fn join(&self, index: MasterIndex, name: &str) -> Option<&Arc<dyn Master>> {
        let (None, Some(maker)) = (self.get(index), &self.maker) else { return None };
        match (maker.0)(name) {
            Ok(master) => self.all[index].set(master).is_ok().then(|| self.get(index)).flatten(),
            Err(error) => {
                tracing::warn!(master = name, %error, "cannot connect to a master that has joined the set");
                None
            }
        }
    }
}

impl fmt::Debug for Masters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(_, master)| master.name())).finish()
    }
}
