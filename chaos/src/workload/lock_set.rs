//! Jepsen's lock-set: a client reads a set, takes its time, and writes it back with one element
//! more, all under a lock. It does not notice that it stood still in between, as no program does:
//! its lease is over then, and its write takes away what others have added. An element that was
//! acknowledged, and is not in the set in the end, is a lost update.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::cycle::Cycle;
use super::subject::Held;
use super::{FLUSH, Workload};
use crate::history::{Call, History, Outcome};

/// Where the set is in the store.
pub const SET: &str = "set";

/// How long a client takes between its read and its write.
const TAKES: Duration = Duration::from_millis(100);

/// How long it waits for the lock before it asks again.
const WAIT: Duration = Duration::from_secs(10);

/// What a client does about its lease being over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Care {
    /// Nothing: it has the lock, and writes.
    Nothing,
    /// It asks its guard before it writes.
    Guard,
    /// It has the store look at its token, when it reads and when it writes.
    Fence,
}

impl Workload {
    /// Adds elements to the set until it is stopped.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), or when the store does not answer.
    pub async fn add_to_set(self, care: Care, stop: CancellationToken) -> io::Result<()> {
        let cycle = self.open().await?;
        while !stop.is_cancelled() {
            let lock = cycle.locks.lock(0, 0, false);
            if let Some((hold, held)) = cycle.acquire(&lock, self.ttl, WAIT).await? {
                cycle.add(&self.process, &held, care).await?;
                cycle.release(hold, held).await?;
            }
        }
        cycle.locks.close(FLUSH).await;
        Ok(())
    }
}

impl Cycle {
    async fn add(&self, process: &str, held: &Held, care: Care) -> io::Result<()> {
        let fence = held.fence().unwrap_or(0); // a naive lock has none
        if care == Care::Fence && self.store.claim(SET, fence).await != Outcome::Accepted {
            return Ok(());
        }
        let mut set = self.store.read(SET).await.map_err(io::Error::other)?;
        sleep(TAKES).await;
        if care == Care::Guard && !held.is_valid() {
            return Ok(());
        }
        let number = self.recorder.invoke(Call::Write { resource: SET.to_owned(), fence })?;
        set.push_str(&element(process, number));
        let outcome = match care {
            Care::Fence => self.store.write(SET, fence, &set).await,
            Care::Nothing | Care::Guard => self.store.overwrite(SET, &set).await,
        };
        self.recorder.returned(number, outcome)
    }
}

/// What a write adds, as it is in the set.
fn element(process: &str, number: u64) -> String {
    format!("{process}/{number} ")
}

/// The elements that were acknowledged, and are not in the set.
pub fn lost(history: &History, set: &str) -> Vec<String> {
    let kept: BTreeSet<_> = set.split_inclusive(' ').collect();
    let added = acknowledged(history);
    added.filter(|element| !kept.contains(&**element)).collect()
}

/// The elements that were acknowledged.
pub fn acknowledged(history: &History) -> impl Iterator<Item = String> {
    let writes = history.calls.iter().filter(|made| {
        matches!(&made.call, Call::Write { resource, .. } if resource == SET)
            && made.outcome == Outcome::Accepted
    });
    writes.map(|made| element(&made.process, made.number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Made, Time};

    fn write(number: u64, resource: &str, outcome: Outcome) -> Made {
        let call = Call::Write { resource: resource.to_owned(), fence: 1 };
        Made {
            process: "p".to_owned(),
            number,
            call,
            invoked: Time::ZERO,
            returned: Some(Time::ZERO),
            outcome,
        }
    }

    #[test]
    fn what_was_acknowledged_and_is_not_there_is_lost() {
        let unknown = Outcome::Unknown { why: String::new() };
        let calls = vec![
            write(1, SET, Outcome::Accepted),
            write(11, SET, Outcome::Accepted),
            write(2, SET, Outcome::Rejected),
            write(3, SET, unknown),
            write(4, "another", Outcome::Accepted),
        ];
        let history = History { calls, ..History::default() };
        assert_eq!(lost(&history, ""), ["p/1 ", "p/11 "]);
        assert_eq!(lost(&history, "p/11 "), ["p/1 "]);
        assert_eq!(lost(&history, "q/1 p/11 p/1 "), [""; 0]);
    }
}
