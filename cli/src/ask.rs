//! A question that only a person can answer.

use std::io::{IsTerminal, stderr, stdin};

/// Asks at the terminal: whether the answer was yes, in full. `None` where there is none.
pub(crate) fn is_confirmed(question: &str) -> Option<bool> {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return None;
    }
    eprint!("{question} [yes/no] ");
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    Some(read.is_ok() && answer.trim().eq_ignore_ascii_case("yes"))
}
