//! What may be at a key.

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Text(Vec<u8>),
    Hash(Hash),
    Zset(Zset),
}

impl Data {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Hash(hash) => hash.len() == 0,
            Self::Zset(zset) => zset.len() == 0,
        }
    }
}

/// Fields and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hash(pub(super) Vec<(Vec<u8>, Vec<u8>)>);

impl Hash {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<&Vec<u8>> {
        self.0.iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }

    /// Whether the field is new.
    pub(super) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        match self.0.iter_mut().find(|(name, _)| name == field) {
            Some((_, old)) => {
                old.clear();
                old.extend_from_slice(value);
                false
            }
            None => {
                self.0.push((field.to_vec(), value.to_vec()));
                true
            }
        }
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, field: &[u8]) -> bool {
        let place = self.0.iter().position(|(name, _)| name == field);
        place.map(|place| self.0.remove(place)).is_some()
    }
}

/// Members by their scores, and those of one score by their bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Zset(pub(super) Vec<(f64, Vec<u8>)>);

/// Which members ZADD changes, and what it counts.
#[derive(Default)]
pub(super) struct AddOptions {
    pub(super) only_new: bool,
    pub(super) only_old: bool,
    pub(super) count_changed: bool,
}

/// What became of a member.
pub(super) enum Put {
    Added,
    Changed,
    Left,
}

impl Zset {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        self.0.iter().position(|(_, name)| name == member)
    }

    pub(super) fn put(&mut self, score: f64, member: &[u8], options: &AddOptions) -> Put {
        let put = match self.rank(member) {
            Some(_) if options.only_new => return Put::Left,
            None if options.only_old => return Put::Left,
            Some(rank) if self.0[rank].0 == score => return Put::Left,
            Some(rank) => {
                self.0.remove(rank);
                Put::Changed
            }
            None => Put::Added,
        };
        let before = |(other, name): &(f64, Vec<u8>)| *other < score || (*other == score && **name < *member);
        self.0.insert(self.0.partition_point(before), (score, member.to_vec()));
        put
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        self.rank(member).map(|rank| self.0.remove(rank)).is_some()
    }
}
