//! What a checker that others wrote finds in a history: `adya`, which follows Jepsen's Elle and reads its format.

use std::time::{Duration, Instant};

use adya::{Opts, Valid, Workload};
use serde_json::json;

use super::history::{Action, Operation};

/// Longer than a search for a cycle takes on a busy machine.
const SEARCH: Duration = Duration::from_secs(60);

/// Why the history is not strictly serializable, or why that is not known.
pub fn anomalies(operations: &[Operation]) -> Vec<String> {
    let history = adya::History::from_json(&lines(operations)).unwrap();
    let options = Opts { models: vec!["strict-serializable".to_owned()], timeout: SEARCH, ..Opts::default() };
    let report = adya::check(&history, Workload::ListAppend, &options);
    match report.valid {
        Valid::True => Vec::new(),
        Valid::False | Valid::Unknown => {
            let verdict = format!("strictly serializable: {:?}", report.valid);
            let found = report.anomalies.into_values().flatten();
            let found = found.map(|anomaly| format!("{}: {} {}", anomaly.kind, anomaly.explanation, anomaly.detail));
            std::iter::once(verdict).chain(found).collect()
        }
    }
}

/// The history in Elle's format: an invocation or a completion in each line, in the order in which they happened. Each
/// operation is a process, so that only time orders them.
fn lines(operations: &[Operation]) -> String {
    let mut events = Vec::new();
    for (process, operation) in operations.iter().enumerate() {
        let list = operation.list;
        let (asked, found) = match &operation.action {
            Action::Append(value) => (json!(["append", list, value]), json!(["append", list, value])),
            Action::Read(values) => (json!(["r", list, null]), json!(["r", list, values])),
        };
        let event = |kind: &str, step| json!({ "type": kind, "process": process, "value": [step] }).to_string();
        // Of an invocation and a completion at one moment, the invocation is first: nothing says that it came after.
        events.push((Some(operation.called), 0, event("invoke", asked)));
        events.push(match operation.answered {
            Some(answered) => (Some(answered), 1, event("ok", found)),
            None => (None, 1, event("info", found)),
        });
    }
    events.sort_by_key(|(at, kind, _): &(Option<Instant>, u8, String)| (at.is_none(), *at, *kind));
    events.into_iter().map(|(_, _, line)| line + "\n").collect()
}
