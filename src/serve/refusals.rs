//! What callers were refused, for the list of what was done: counted, and written once a minute. However many requests are
//! refused, a minute has a bounded number of lines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::FutureExt as _;

use super::app::App;
use super::authorizer::Caller;
use crate::drive::clock;
use crate::journal::{AuditAction, AuditEntry, AuditLine};

/// How often what was counted is written.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);
/// The most lines of an interval: what comes after them is counted together.
const MAX_KINDS: usize = 100;

/// What was refused since it was last written.
#[derive(Debug, Default)]
pub struct Refusals {
    counted: Mutex<BTreeMap<RefusedRequest, u64>>,
}

/// Requests that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RefusedRequest {
    /// The name of the token, and its organisation; none for a caller that is not known.
    actor: Option<String>,
    org: Option<String>,
    /// The code of the problem, and the route.
    what: String,
}

impl Refusals {
    /// Counts a request whose caller may not do what it asked for. `route`: its pattern, of a route that there is.
    pub fn count(&self, caller: Option<&Caller>, status: StatusCode, code: &str, route: Option<&str>) {
        let Some(route) = route.filter(|_| matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) else {
            return;
        };
        let refused = RefusedRequest {
            actor: caller.and_then(|caller| caller.name.clone()),
            org: caller.and_then(|caller| caller.org.clone()),
            what: format!("{code} {route}"),
        };
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = counted.len() < MAX_KINDS || counted.contains_key(&refused);
        let rest = || RefusedRequest { actor: None, org: None, what: "others".to_owned() };
        let times = counted.entry(if is_room { refused } else { rest() }).or_default();
        *times = times.saturating_add(1);
    }

    /// The lines of what was counted, which begins anew.
    fn take(&self, at_ms: i64) -> Vec<AuditLine> {
        let counted = std::mem::take(&mut *self.counted.lock().unwrap_or_else(PoisonError::into_inner));
        let line = |(RefusedRequest { actor, org, what }, times): (RefusedRequest, u64)| {
            let entry = AuditEntry::new(at_ms, AuditAction::Refused, actor.as_deref(), Some(&what));
            AuditLine { org, times, ..AuditLine::new(entry) }
        };
        counted.into_iter().map(line).collect()
    }
}

/// Writes what was counted.
pub async fn write(app: &App) {
    let lines = app.refusals.take(clock::wall_ms());
    if lines.is_empty() {
        return;
    }
    if let Err(fault) = app.runs.journal.note_audit(lines).await {
        tracing::error!(code = fault.code(), "what was refused can't be stored: {fault}");
    }
}

/// Writes what was counted once a minute, until the server stops.
pub fn watch(app: &Arc<App>) {
    let app: Weak<App> = Arc::downgrade(app);
    tokio::spawn(
        async move {
            loop {
                tokio::time::sleep(REFUSAL_INTERVAL).await;
                let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                write(&app).await;
            }
        }
        .boxed(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_bounded_number_of_lines() {
        let refusals = Refusals::default();
        for _ in 0..5 {
            refusals.count(None, StatusCode::UNAUTHORIZED, "unauthorized", Some("/agents"));
        }
        refusals.count(None, StatusCode::NOT_FOUND, "no_such_run", Some("/agents/{id}"));
        refusals.count(None, StatusCode::FORBIDDEN, "forbidden", None);
        let lines = refusals.take(7);
        let said = |line: &AuditLine| (line.entry.detail.clone().unwrap(), line.times, line.entry.at_ms);
        assert_eq!(lines.iter().map(said).collect::<Vec<_>>(), [("unauthorized /agents".to_owned(), 5, 7)]);
        assert_eq!(refusals.take(8), []);
        for number in 0..10 * MAX_KINDS {
            refusals.count(None, StatusCode::FORBIDDEN, &format!("c{number}"), Some("/agents"));
        }
        let lines = refusals.take(9);
        assert_eq!(lines.len(), MAX_KINDS + 1);
        assert_eq!(lines.iter().map(|line| line.times).sum::<u64>(), 10 * u64::try_from(MAX_KINDS).unwrap());
    }
}
