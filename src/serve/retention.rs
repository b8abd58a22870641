//! Deletes runs that ended long ago, when the project file says for how long they are kept.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::app::App;
use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::prune::{PrunedLoops, prune_all};
use crate::journal::{AuditAction, AuditEntry, AuditLine, PruneQuery, StoreError};
use crate::language::retention::LoopRetention;
use crate::language::serving::Serving;

/// The interval of the looks.
const RETENTION_INTERVAL: Duration = Duration::from_secs(600);
const DAY_MS: i64 = 86_400_000;

/// For how long some of the runs are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RetentionRule {
    status: Status,
    days: u32,
    loops: PrunedLoops,
}

/// A function that reads the days of a status from those of a loop.
type DaysFn = fn(&LoopRetention) -> Option<u32>;

/// What the project says: at most one rule holds for a run.
fn rules(serving: &Serving) -> Vec<RetentionRule> {
    let retention = &serving.retention;
    let ends: [(Status, Option<u32>, DaysFn); 3] = [
        (Status::Completed, retention.completed_days, |days| days.completed_days),
        (Status::Failed, retention.failed_days, |days| days.failed_days),
        (Status::Cancelled, retention.cancelled_days, |days| days.cancelled_days),
    ];
    let mut rules = Vec::new();
    for (status, days, of_loop) in ends {
        let own = retention.loops.iter().filter_map(|(name, days)| Some((name.clone(), of_loop(days)?)));
        let own: Vec<(String, u32)> = own.collect();
        if let Some(days) = days.or(serving.keep_days) {
            let others = PrunedLoops::AllBut(own.iter().map(|(name, _)| name.clone()).collect());
            rules.push(RetentionRule { status, days, loops: others });
        }
        let of_one = |(name, days)| RetentionRule { status, days, loops: PrunedLoops::Only(name) };
        rules.extend(own.into_iter().map(of_one));
    }
    rules
}

/// Deletes runs now, and from then on every ten minutes, if the project says so.
pub fn watch(app: &Arc<App>) {
    let app: Weak<App> = Arc::downgrade(app);
    tokio::spawn(
        async move {
            loop {
                let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                // The folder may have been read again.
                for rule in &rules(&app.folder().project.serve) {
                    if let Err(fault) = apply(&app, rule).await {
                        tracing::error!(code = fault.code(), "old runs can't be deleted: {fault}");
                        break;
                    }
                }
                drop(app);
                tokio::time::sleep(RETENTION_INTERVAL).await;
            }
        }
        .boxed(),
    );
}

/// Deletes the runs of a rule whose time is over.
async fn apply(app: &App, rule: &RetentionRule) -> Result<(), StoreError> {
    let RetentionRule { status, days, loops } = rule;
    let before_ms = clock::wall_ms().saturating_sub(i64::from(*days).saturating_mul(DAY_MS));
    let which = PruneQuery::all_before(before_ms, vec![*status]);
    let runs = prune_all(&*app.runs.journal, &PruneQuery { loops: loops.clone(), ..which }).await?;
    app.metrics.deleted(*status, runs);
    if runs > 0 {
        let status = status.word();
        let of = match loops {
            PrunedLoops::Only(name) => Some(name.as_str()),
            PrunedLoops::AllBut(_) => None,
        };
        tracing::info!(runs, status, r#loop = of, "deleted runs that ended more than {days} days ago");
        let detail = format!("{status} for {days} days");
        let entry = AuditEntry::new(clock::wall_ms(), AuditAction::Pruned, None, Some(&detail));
        let loop_name = of.map(str::to_owned);
        let line = AuditLine { loop_name, times: runs, ..AuditLine::new(entry) };
        app.runs.journal.note_audit(vec![line]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::retention::Retention;

    #[test]
    fn a_run_falls_under_one_rule_at_most() {
        let of = |completed_days, failed_days| LoopRetention { completed_days, failed_days, cancelled_days: None };
        let loops = [("a".to_owned(), of(Some(1), None)), ("b".to_owned(), of(Some(2), Some(3)))];
        let retention = Retention { failed_days: Some(90), loops: loops.into_iter().collect(), ..Retention::default() };
        let serving = Serving { keep_days: Some(30), retention: retention.clone(), ..Serving::default() };
        let but = |names: &[&str]| PrunedLoops::AllBut(names.iter().map(|name| (*name).to_owned()).collect());
        let only = |name: &str| PrunedLoops::Only(name.to_owned());
        let rule = |status, days, loops| RetentionRule { status, days, loops };
        assert_eq!(
            rules(&serving),
            [
                rule(Status::Completed, 30, but(&["a", "b"])),
                rule(Status::Completed, 1, only("a")),
                rule(Status::Completed, 2, only("b")),
                rule(Status::Failed, 90, but(&["b"])),
                rule(Status::Failed, 3, only("b")),
                rule(Status::Cancelled, 30, but(&[])),
            ]
        );
        assert_eq!(rules(&Serving::default()), []);
        // Without `keep_days`, what is not named stays.
        let serving = Serving { retention, ..Serving::default() };
        assert_eq!(rules(&serving).iter().filter(|rule| rule.status != Status::Failed).count(), 2);
    }
}
