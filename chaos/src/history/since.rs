//! A history by a clock of its own.

use super::{Abstention, Change, History, Hold, Key, Made, Micros, Outcome, Pause, StrangerAsked, Struck};

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
            back(begin, to.iter_mut().filter(|to| **to != Micros::MAX)); // as long as it is not over
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

fn call(made: &mut Made, begin: Micros) {
    back(begin, [&mut made.invoked].into_iter().chain(&mut made.returned));
    if let Outcome::Granted { deadline, .. } | Outcome::Extended { deadline } = &mut made.outcome {
        back(begin, [deadline]);
    }
}

fn hold(hold: &mut Hold, begin: Micros) {
    let Hold { asked, granted, deadline, given_back, free, lost, .. } = hold;
    back(begin, [asked, granted, deadline].into_iter().chain(given_back).chain(free).chain(lost));
}

fn back<'a>(begin: Micros, times: impl IntoIterator<Item = &'a mut Micros>) {
    times.into_iter().for_each(|time| *time = time.saturating_sub(begin));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::made_up::{acquire, exclusive, given_back, history};
    use crate::history::Call;

    #[test]
    fn everything_is_as_much_earlier() {
        let made = |invoked, deadline| Made {
            process: "p".to_owned(),
            number: 0,
            call: Call::Acquire { lock: exclusive("l"), ttl: 7, wait: 9 },
            invoked,
            returned: Some(invoked + 1_000),
            outcome: Outcome::Granted { owner: String::new(), deadline, fence: None, permit: None },
        };
        let at = |begin: Micros| {
            let ms = begin / 1_000;
            let pause = |to| Pause { process: "p".to_owned(), from: begin + 1_000, to };
            History {
                calls: vec![made(begin, begin + 5_000)],
                changes: vec![Change { what: String::new(), from: begin + 1_000, to: Some(begin + 2_000) }],
                pauses: vec![pause(Some(begin + 2_000)), pause(Some(Micros::MAX)), pause(None)],
                calm: Some(begin + 8_000),
                quiet: None,
                end: begin + 9_000,
                ..history([given_back(acquire("a", &exclusive("l"), ms + 2, ms + 5), ms + 4)])
            }
        };
        assert_eq!(at(71_000_000).from_its_beginning(), at(0));
    }
}
