//! Makes a plan that violates a property smaller: with fewer tasks and fewer faults it violates the
//! same one.

use crate::plan::Plan;
use crate::run::run;

/// The numbers of the tasks and the faults that are enough to violate `property`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The tasks.
    pub tasks: Vec<usize>,
    /// The faults.
    pub faults: Vec<usize>,
    /// How many runs it took to find them.
    pub runs: usize,
}

/// Leaves out what is not needed: halves, quarters, and so on down to one by one.
pub fn shrink(plan: &Plan, property: &str) -> Shrunk {
    let mut runs = 0;
    let mut violates = |tasks: &[usize], faults: &[usize]| {
        runs += 1;
        let plan = plan.clone().with_tasks(tasks).with_faults(faults);
        run(&plan, false).violations.iter().any(|violation| violation.property == property)
    };
    let mut tasks = plan.task_numbers();
    let mut faults = plan.fault_numbers();
    loop {
        let before = tasks.len() + faults.len();
        faults = fewest(&faults, |faults| violates(&tasks, faults));
        tasks = fewest(&tasks, |tasks| violates(tasks, &faults));
        if tasks.len() + faults.len() == before {
            return Shrunk { tasks, faults, runs };
        }
    }
}

/// As few of `all` as still do.
fn fewest(all: &[usize], mut still_do: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut kept = all.to_vec();
    let mut piece = kept.len().div_ceil(2);
    while piece > 0 {
        let mut start = 0;
        while start < kept.len() {
            let mut without = kept.clone();
            without.drain(start..(start + piece).min(kept.len()));
            if still_do(&without) { kept = without } else { start += piece }
        }
        piece /= 2;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_left_out() {
        let all: Vec<usize> = (0..100).collect();
        assert_eq!(fewest(&all, |kept| [3, 50, 51].iter().all(|needed| kept.contains(needed))), [3, 50, 51]);
        assert_eq!(fewest(&all, |_| true), [] as [usize; 0]);
        assert_eq!(fewest(&[], |_| true), [] as [usize; 0]);
    }
}
