//! How violations are shown to people: owners by their beginning, times in seconds from the run's
//! beginning, lengths in milliseconds.

use quorate_simulator::history::Time;

use crate::history::{Hold, Micros};

/// How much is shown of a longer owner.
const SHORT: usize = 8;

/// A holder.
pub(super) fn who(hold: &Hold) -> String {
    named(&hold.process, &hold.owner)
}

/// An owner, and its process.
pub(super) fn named(process: &str, owner: &str) -> String {
    match owner.strip_prefix(process) {
        Some(_) => owner.to_owned(), // it says which process it is
        None => format!("{process} ({})", short(owner)),
    }
}

/// How long a window is, and how much too early somebody else was granted what it is of.
pub(super) fn window(from: Micros, to: Micros, granted: Micros) -> String {
    format!("from {} to {}: {} too early", at(from), at(to), long(to.saturating_sub(granted)))
}

/// Of an identity that nobody could read, its beginning; and its number behind a colon, if it has
/// one.
pub(super) fn short(owner: &str) -> String {
    let (id, number) = owner.split_at(owner.rfind(':').unwrap_or(owner.len()));
    match id.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…{number}", &id[..end]),
        None => owner.to_owned(),
    }
}

/// Time as violations tell it.
pub(super) fn time(at: Micros) -> Time {
    Time::from_micros(at)
}

/// A moment.
pub(super) fn at(at: Micros) -> String {
    format!("{:.3} s", at as f64 / 1e6)
}

/// How long something took.
pub(super) fn long(time: Micros) -> String {
    let millis = time as f64 / 1e3;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{acquire, exclusive};
    use super::*;

    #[test]
    fn an_identity_is_told_by_its_beginning() {
        let owner = "3f809031-5192-4a95-a23e-bc1e98a66423:79";
        let shown = [owner, "823b9b9f9d63434794a59e8f564f7066", "9f0c:1", "üüüüüüüüü:2"].map(short);
        assert_eq!(shown, ["3f809031…:79", "823b9b9f…", "9f0c:1", "üüüüüüüü…:2"]);
    }

    #[test]
    fn an_owner_that_names_its_process_is_told_once() {
        let of = |owner: &str| {
            who(&Hold { process: "client-1.1".to_owned(), ..acquire(owner, &exclusive("l"), 1, 2) })
        };
        assert_eq!([of("client-1.1:18"), of("9f0c:1")], ["client-1.1:18", "client-1.1 (9f0c:1)"]);
    }

    #[test]
    fn times_have_one_unit_each() {
        assert_eq!([at(6_620_917), at(0)], ["6.621 s", "0.000 s"]);
        assert_eq!([400, 6_856, 58_418, 1_369_681].map(long), ["0.4 ms", "6.9 ms", "58 ms", "1370 ms"]);
    }
}
