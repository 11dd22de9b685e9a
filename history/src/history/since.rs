//! A history by a clock of its own.

use super::call::{Made, Outcome};
use super::model::{History, Hold, Pause};
use super::observed::{Abstention, Change, Key, StrangerAsked, Struck};
use super::time::Time;

impl History {
    /// The same, with times from its first call or fault on.
    #[must_use]
    pub fn from_its_beginning(mut self) -> Self {
        let calls = self.calls.iter().map(|made| made.invoked);
        let begin = calls.chain(self.faults.iter().map(|struck| struck.from)).min().unwrap_or_default();
        self.calls.iter_mut().for_each(|made| call(made, begin));
        self.holds.iter_mut().for_each(|guard| hold(guard, begin));
        for Pause { from, to, .. } in &mut self.pauses {
            back(begin, [from]);
            back(begin, to.iter_mut().filter(|to| **to != Time::MAX)); // as long as it is not over
        }
        for Struck { from, to, before, .. } in &mut self.faults {
            back(begin, [from].into_iter().chain(to).chain(before.iter_mut().map(|(_, at)| at)));
        }
        for Change { from, to, .. } in &mut self.changes {
            back(begin, [from].into_iter().chain(to));
        }
        back(begin, self.abstentions.iter_mut().map(|Abstention { at, .. }| at));
        back(begin, self.strangers.iter_mut().map(|StrangerAsked { at, .. }| at));
        back(begin, self.keys.iter_mut().map(|Key { seen, .. }| seen));
        back(begin, [&mut self.end].into_iter().chain(&mut self.calm).chain(&mut self.quiet));
        self
    }
}

fn call(made: &mut Made, begin: Time) {
    back(begin, [&mut made.invoked].into_iter().chain(&mut made.returned));
    if let Outcome::Granted { deadline, .. } | Outcome::Extended { deadline } = &mut made.outcome {
        back(begin, [deadline]);
    }
}

fn hold(hold: &mut Hold, begin: Time) {
    let Hold { asked, granted, deadline, given_back, free, lost, .. } = hold;
    back(begin, [asked, granted, deadline].into_iter().chain(given_back).chain(free).chain(lost));
}

fn back<'a>(begin: Time, times: impl IntoIterator<Item = &'a mut Time>) {
    times.into_iter().for_each(|time| *time = time.saturating_sub(begin));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::Granted;
    use crate::made_up::{attempt, given_back, history, ms};

    #[test]
    fn everything_is_as_much_earlier() {
        let at = |begin: u64| {
            let mut made = attempt(begin, Some(begin + 1), Granted);
            made.outcome = Outcome::Extended { deadline: ms(begin + 5) };
            let pause = |to| Pause { process: "p".to_owned(), from: ms(begin + 1), to };
            History {
                calls: vec![made],
                changes: vec![Change { what: String::new(), from: ms(begin + 1), to: Some(ms(begin + 2)) }],
                pauses: vec![pause(Some(ms(begin + 2))), pause(Some(Time::MAX)), pause(None)],
                calm: Some(ms(begin + 8)),
                end: ms(begin + 9),
                ..history([given_back("a", begin + 2, begin + 5, begin + 4)])
            }
        };
        assert_eq!(at(71_000).from_its_beginning(), at(0));
    }
}
