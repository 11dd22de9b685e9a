//! The fenced store accepts nothing older than what it has accepted before.
//!
//! Of two writes to one resource that were accepted, one after the other, the later has no lower
//! token. When a write took place is known within its call: two that overlap may have either order.
//! A write whose outcome is not known says nothing.

use std::collections::BTreeMap;

use crate::history::{Call, History, Made, Outcome, Time, Violation};

/// The property's name.
pub const NAME: &str = "store";

/// Finds every write that the store should have rejected.
pub fn check(history: &History) -> Vec<Violation> {
    let mut resources: BTreeMap<&str, Vec<Accepted<'_>>> = BTreeMap::new();
    for made in &history.calls {
        let (Call::Write { resource, fence }, Outcome::Accepted) = (&made.call, &made.outcome) else {
            continue;
        };
        let Some(returned) = made.returned else { continue };
        resources.entry(resource).or_default().push(Accepted { made, fence: *fence, returned });
    }
    resources.into_values().flat_map(old_writes).collect()
}

#[derive(Clone, Copy)]
struct Accepted<'a> {
    made: &'a Made,
    fence: u64,
    returned: Time,
}

fn old_writes(mut writes: Vec<Accepted<'_>>) -> Vec<Violation> {
    let mut done = writes.clone();
    done.sort_by_key(|write| write.returned);
    writes.sort_by_key(|write| write.made.invoked);
    let mut done = done.into_iter().peekable();
    let mut newest = None;
    let mut found = Vec::new();
    for write in writes {
        while let Some(before) = done.next_if(|before| before.returned < write.made.invoked) {
            if newest.is_none_or(|newest: Accepted<'_>| before.fence > newest.fence) {
                newest = Some(before);
            }
        }
        found.extend(
            newest.filter(|newest| newest.fence > write.fence).map(|newest| violation(newest, write)),
        );
    }
    found
}

fn violation(newest: Accepted<'_>, write: Accepted<'_>) -> Violation {
    let what = format!(
        "a write of {} with token {} was accepted, though one of {} with token {} had been at {:?}",
        write.made.process, write.fence, newest.made.process, newest.fence, newest.returned
    );
    Violation { property: NAME, what, at: write.returned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{history, made, ms, words};

    fn write(fence: u64, invoked: u64, returned: u64, outcome: Outcome) -> Made {
        made(Call::Write { resource: "r".to_owned(), fence }, invoked, Some(returned), outcome)
    }

    fn accepted(fence: u64, invoked: u64, returned: u64) -> Made {
        write(fence, invoked, returned, Outcome::Accepted)
    }

    fn found(calls: impl IntoIterator<Item = Made>) -> Vec<Violation> {
        check(&History { calls: calls.into_iter().collect(), ..history([]) })
    }

    #[test]
    fn what_is_as_new_may_be_accepted_and_what_is_old_rejected() {
        let writes = [
            write(99, 1, 2, Outcome::Rejected), // which says nothing
            accepted(5, 10, 20),
            accepted(5, 30, 40),
            write(4, 50, 60, Outcome::Rejected),
            accepted(9, 70, 80),
        ];
        assert_eq!(found(writes), []);
    }

    #[test]
    fn what_is_old_and_accepted_is_found() {
        let found = found([accepted(5, 10, 20), accepted(3, 11, 15), accepted(4, 30, 40)]);
        let what = "a write of client 0 with token 4 was accepted, though one of client 0 with token 5 had been at 20ms";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(40));
    }

    #[test]
    fn it_is_held_against_the_newest_before() {
        assert_eq!(found([accepted(9, 1, 2), accepted(5, 3, 4), accepted(7, 5, 6)]).len(), 2);
    }

    #[test]
    fn those_that_overlap_may_have_either_order() {
        assert_eq!(found([accepted(5, 10, 30), accepted(4, 30, 40)]), []);
        assert_eq!(found([accepted(5, 10, 29), accepted(4, 30, 40)]).len(), 1);
    }

    #[test]
    fn what_is_not_known_says_nothing() {
        let unknown =
            |fence, invoked| write(fence, invoked, invoked + 1, Outcome::Unknown { why: String::new() });
        assert_eq!(found([unknown(9, 1), accepted(5, 10, 20), unknown(4, 30)]), []);
    }

    #[test]
    fn each_resource_is_looked_at_by_itself() {
        let call = Call::Write { resource: "s".to_owned(), fence: 4 };
        assert_eq!(found([accepted(5, 10, 20), Made { call, ..accepted(4, 30, 40) }]), []);
    }
}
