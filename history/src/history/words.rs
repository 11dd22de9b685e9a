//! How a history is told to people: owners by their beginning, locks by their kind and names.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use super::call::{Lock, Site};
use super::model::{Hold, Violation};
use super::observed::FoundEntry;

/// How much is shown of a longer owner.
const SHORT: usize = 8;

/// Of an identity that nobody could read, its beginning; and its number behind a colon, if it has
/// one.
fn short(owner: &str) -> Cow<'_, str> {
    let (id, number) = owner.split_at(owner.rfind(':').unwrap_or(owner.len()));
    match id.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…{number}", &id[..end]).into(),
        None => owner.into(),
    }
}

impl Display for Hold {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { lock, owner, process, .. } = self;
        let sites: Vec<_> =
            lock.names.iter().map(|name| Site { name, permit: self.permit }.to_string()).collect();
        let how = if self.reads() { ", to read" } else { "" };
        let what = format!("{} {}{how}", lock.kind, sites.join("+"));
        match owner.strip_prefix(&**process) {
            Some(_) => write!(f, "{owner} (on {what})"), // it says which process it is
            None => write!(f, "{process} ({} on {what})", short(owner)),
        }
    }
}

impl Display for Lock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.names.join("+"))
    }
}

impl Display for Site<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.permit.map_or(Ok(()), |permit| write!(f, ":{permit}"))
    }
}

impl Display for FoundEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = if self.is_entry { "entry" } else { "key" };
        let how = if self.shared { ", to read" } else { "" };
        write!(f, "the {what} of {} on lock {}{how}", self.owner, self.site())
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}: {}", self.property, self.at, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{exclusive, hold, on};

    #[test]
    fn an_identity_is_told_by_its_beginning() {
        let owner = "3f809031-5192-4a95-a23e-bc1e98a66423:79";
        let shown = [owner, "823b9b9f9d63434794a59e8f564f7066", "9f0c:1", "üüüüüüüüü:2"].map(short);
        assert_eq!(shown, ["3f809031…:79", "823b9b9f…", "9f0c:1", "üüüüüüüü…:2"]);
    }

    #[test]
    fn an_owner_that_names_its_process_is_told_once() {
        let lock = Lock { names: vec!["l".to_owned(), "m".to_owned()], ..exclusive("l") };
        let of = |owner: &str| {
            Hold { process: "client-1.1".to_owned(), ..on(&lock, hold(owner, 1, 2)) }.to_string()
        };
        let told = ["client-1.1:18 (on lock l+m)", "client-1.1 (9f0c:1 on lock l+m)"];
        assert_eq!([of("client-1.1:18"), of("9f0c:1")], told);
    }
}
