//! The journal of a store, used directly.

use std::path::Path;
use std::sync::Arc;

use loopctl::journal::{Append, Created, Journal, Lease, NewRun, StoreError, Ticket};

pub fn open(url: &str) -> Arc<dyn Journal> {
    loopctl::journal::open(url, Path::new(".")).unwrap()
}

pub fn wait<T: Unpin>(ticket: Ticket<T>) -> Result<T, StoreError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(ticket)
}

/// Makes a run with one event.
pub fn create(journal: &dyn Journal, run_id: &str) -> Lease {
    let made = wait(journal.create(NewRun {
        run_id: run_id.to_owned(),
        loop_name: "test".to_owned(),
        session: None,
        org: None,
        token: None,
        callback_url: None,
        parent_run_id: None,
        identity: run_id.to_owned(),
        start_key: None,
        at_ms: 1,
        event: "event 0".to_owned(),
        texts: Vec::new(),
        scheduled: None,
        status_record: None,
        search_text: None,
        title: None,
        audit: None,
        line: None,
    }));
    let Created::New(lease) = made.unwrap() else { panic!("it is new") };
    lease
}

/// Appends an event to a run that is leased.
pub fn append(journal: &dyn Journal, run_id: &str, fence: u64, seq: u64, event: String) -> Ticket<()> {
    journal.append(Append::new(run_id.to_owned(), fence, seq, event))
}
