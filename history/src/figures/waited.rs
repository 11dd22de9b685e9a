//! Whether those that were ready to wait got what they waited for.

use std::ops::Range;

use crate::history::{Call, History, Outcome, Time};

/// The acquires that were ready to wait, and of which there is an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many were granted.
    pub granted: usize,
    /// How many there were.
    pub all: usize,
}

/// Those that were made within this time.
pub fn waited(history: &History, time: &Range<Time>) -> Waited {
    let calls = history.calls.iter().filter(|made| made.returned.is_some() && time.contains(&made.invoked));
    let waited = calls.filter(|made| matches!(made.call, Call::Acquire { wait, .. } if !wait.is_zero()));
    waited.fold(Waited::default(), |sum, made| Waited {
        granted: sum.granted + usize::from(matches!(made.outcome, Outcome::Granted { .. })),
        all: sum.all + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::{Failed, Granted};
    use crate::made_up::{attempt, ms, patient_for};

    #[test]
    fn those_count_that_were_ready_to_wait_and_have_ended() {
        let calls = vec![
            attempt(10, Some(12), Granted),
            attempt(10, Some(15), Failed),
            patient_for(0, attempt(10, Some(12), Granted)), // did not wait
            attempt(10, None, Failed),                      // its client was killed
            attempt(20, Some(22), Granted),                 // later
        ];
        let history = History { calls, ..History::default() };
        assert_eq!(waited(&history, &(ms(0)..ms(20))), Waited { granted: 1, all: 2 });
    }
}
