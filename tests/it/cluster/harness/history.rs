//! Histories of lists that are appended to and read, as Jepsen's Elle takes them (`list-append`), for one list in each
//! operation: what everybody saw must be explained by one order of all operations, which keeps the order in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Instant;

/// What an operation does with its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Appends this value, which no other operation appends.
    Append(u64),
    /// Found these values.
    Read(Vec<u64>),
}

/// An operation, from its call to its answer.
#[derive(Debug, Clone)]
pub struct Operation {
    pub list: usize,
    pub action: Action,
    pub called: Instant,
    /// None when the outcome is not known: it happened later, or never.
    pub answered: Option<Instant>,
}

/// What happened, by all who took part.
#[derive(Default)]
pub struct History(Mutex<Vec<Operation>>);

impl History {
    pub fn note(&self, operation: Operation) {
        self.0.lock().unwrap().push(operation);
    }

    /// How many appends were answered, and how many reads.
    pub fn counts(&self) -> (usize, usize) {
        let all = self.0.lock().unwrap();
        let appends = |operation: &&Operation| matches!(operation.action, Action::Append(_));
        let answered = all.iter().filter(|operation| operation.answered.is_some());
        let (appends, reads): (Vec<_>, Vec<_>) = answered.partition(appends);
        (appends.len(), reads.len())
    }

    pub fn operations(&self) -> Vec<Operation> {
        self.0.lock().unwrap().clone()
    }

    /// What no order explains. The last read of each list, after everything, must be in the history.
    pub fn violations(&self) -> Vec<String> {
        let mut lists: BTreeMap<usize, Vec<Operation>> = BTreeMap::new();
        for operation in self.operations() {
            lists.entry(operation.list).or_default().push(operation);
        }
        lists.into_iter().flat_map(|(list, operations)| of_list(list, &operations)).collect()
    }
}

/// The violations of one list.
fn of_list(list: usize, operations: &[Operation]) -> Vec<String> {
    let mut violations = Vec::new();
    let reads = || {
        operations.iter().filter_map(|operation| match &operation.action {
            Action::Read(values) => Some((operation, values)),
            Action::Append(_) => None,
        })
    };
    let Some(longest) = reads().map(|(_, values)| values).max_by_key(|values| values.len()) else {
        return vec![format!("list {list} was never read")];
    };
    let distinct: BTreeSet<&u64> = longest.iter().collect();
    if distinct.len() < longest.len() {
        violations.push(format!("list {list} has a value twice: {longest:?}"));
    }
    for (_, values) in reads().filter(|(_, values)| !longest.starts_with(values)) {
        violations.push(format!("list {list} was {values:?}, which does not lead to {longest:?}"));
    }
    let place: BTreeMap<u64, usize> = longest.iter().enumerate().map(|(place, value)| (*value, place)).collect();
    for operation in operations {
        if let (Action::Append(value), Some(_)) = (&operation.action, operation.answered)
            && !place.contains_key(value)
        {
            violations.push(format!("list {list} lost {value}, which was acknowledged"));
        }
    }
    violations.extend(out_of_time(list, operations, &place));
    violations
}

/// Operations that see less than what was there when they were called, or what was not there yet when they were answered.
/// Each operation has a length of the list with which it is done: a read that of what it found, an append that of its place.
fn out_of_time(list: usize, operations: &[Operation], place: &BTreeMap<u64, usize>) -> Vec<String> {
    let length = |operation: &Operation| match &operation.action {
        Action::Read(values) => Some(values.len()),
        Action::Append(value) => place.get(value).map(|place| place + 1),
    };
    let mut calls: Vec<(&Operation, usize)> =
        operations.iter().filter_map(|operation| Some((operation, length(operation)?))).collect();
    calls.sort_by_key(|(operation, _)| operation.called);
    let mut answers: Vec<(Instant, &Operation, usize)> =
        calls.iter().filter_map(|(operation, length)| Some((operation.answered?, *operation, *length))).collect();
    answers.sort_by_key(|(answered, _, _)| *answered);
    let (mut violations, mut seen, mut answers) =
        (Vec::new(), None::<(&Operation, usize)>, answers.into_iter().peekable());
    for (operation, length) in calls {
        while let Some((_, before, was)) = answers.next_if(|(answered, _, _)| *answered < operation.called) {
            if seen.is_none_or(|(_, most)| was > most) {
                seen = Some((before, was));
            }
        }
        let Some((before, was)) = seen else { continue };
        let is_append = matches!(operation.action, Action::Append(_));
        if length < was + usize::from(is_append) {
            violations.push(format!("list {list}: {:?} came after {:?}", operation.action, before.action));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::harness::elle;

    /// Operations on one list, each with its call and its answer in milliseconds.
    fn of(operations: &[(Action, u64, Option<u64>)]) -> History {
        #![allow(clippy::disallowed_methods, reason = "any moment will do")]
        let (start, history) = (Instant::now(), History::default());
        let at = |ms: u64| start + Duration::from_millis(ms);
        for (action, called, answered) in operations {
            let (called, answered) = (at(*called), answered.map(at));
            history.note(Operation { list: 1, action: action.clone(), called, answered });
        }
        history
    }

    #[test]
    fn a_history_is_explained_or_says_what_no_order_explains() {
        use Action::{Append, Read};
        let sound = [
            (Append(1), 0, Some(5)),
            (Append(2), 6, None),
            (Read(vec![1]), 6, Some(9)),
            (Append(3), 7, Some(12)),
            (Read(vec![1, 3]), 11, Some(13)),
            (Read(vec![1, 3, 2]), 20, Some(21)),
        ];
        let history = of(&sound);
        assert_eq!((history.violations(), elle::anomalies(&history.operations())), (vec![], vec![]));
        for (unsound, why) in [
            (vec![(Append(1), 0, Some(1)), (Read(vec![]), 2, Some(3))], "lost 1"),
            (vec![(Read(vec![1, 2, 1]), 2, Some(3))], "twice"),
            (vec![(Read(vec![1, 2]), 0, Some(9)), (Read(vec![2]), 0, Some(9))], "does not lead to"),
            (vec![(Append(1), 0, Some(1)), (Read(vec![]), 2, Some(3)), (Read(vec![1]), 4, Some(5))], "came after"),
            (vec![(Append(1), 0, None), (Read(vec![1]), 0, Some(1)), (Read(vec![]), 2, Some(3))], "came after"),
            (vec![(Append(1), 0, Some(1)), (Append(2), 2, Some(3)), (Read(vec![2, 1]), 4, Some(5))], "came after"),
            (vec![(Read(vec![1]), 0, Some(1)), (Append(1), 2, Some(3))], "came after"),
        ] {
            let history = of(&unsound);
            let found = history.violations();
            assert!(found.iter().any(|found| found.contains(why)), "{why}: {found:?}");
            assert_ne!(elle::anomalies(&history.operations()), [""; 0], "{why}: {unsound:?}");
        }
        // The other checker leaves out a value that no operation appended.
        let found = of(&[(Read(vec![1]), 0, Some(1)), (Read(vec![]), 2, Some(3))]).violations();
        assert!(found.iter().any(|found| found.contains("came after")), "{found:?}");
    }
}
