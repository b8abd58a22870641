//! `GET /usage`: what the caller's runs came to.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::drive::run_stats::{JournalReader, LimitsQuery, MAX_STATS_RUNS, StatsQuery, limit_uses, run_stats};
use crate::engine::event::Event;
use crate::engine::run_stats::StatsKey;
use crate::journal::RunFilter;
use crate::program::Program;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{json, query};
use crate::serve::run_query::moment;
use crate::serve::run_store::RunStore;

/// The journals that are read when nothing is said, and the most.
const DEFAULT_JOURNALS: usize = 200;
const MAX_JOURNALS: usize = 1_000;
/// No further journal is read after this number of events.
const MAX_EVENTS: usize = 100_000;
/// One report at a time: it folds many journals.
static REPORTS: Semaphore = Semaphore::const_new(1);

/// Which runs, and what the groups are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UsageQuery {
    /// One kind of groups only: loop, day, model, tool or org. Without it, all of them.
    #[schemars(with = "Option<StatsKey>")]
    pub by: Option<StatsKey>,
    /// Runs of this loop only.
    #[serde(rename = "loop")]
    pub loop_name: Option<String>,
    /// Started at this time or later, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Started before this time, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// The time zone of the days, such as `Europe/Berlin`; UTC by default.
    pub zone: Option<String>,
    /// The maximum number of journals that are read for retries, stuck patterns, waits, models and tools: those of the newest
    /// runs. 0 to 1,000; 200 by default.
    #[schemars(range(max = 1_000))]
    pub journals: Option<usize>,
}

/// What the caller's runs came to.
pub async fn usage(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let asked: UsageQuery = query(&uri)?;
    let most_journals = asked.journals.unwrap_or(DEFAULT_JOURNALS);
    if most_journals > MAX_JOURNALS {
        return Err(ProblemDetails::bad_request(format!("`journals` is at most {MAX_JOURNALS}")));
    }
    let zone = asked.zone.as_deref().unwrap_or("UTC");
    let zone = TimeZone::get(zone)
        .map_err(|_| ProblemDetails::bad_request("`zone` is a time zone such as Europe/Berlin, or UTC"))?;
    let filter = RunFilter {
        org: caller.seen_org(),
        loop_name: asked.loop_name,
        since_ms: asked.since.as_deref().map(moment).transpose()?,
        until_ms: asked.until.as_deref().map(moment).transpose()?,
        ..RunFilter::default()
    };
    let stats = StatsQuery { filter, zone, most_runs: MAX_STATS_RUNS, most_journals, most_events: MAX_EVENTS };
    // It is never closed: without a permit, a report would be made all the same.
    let _turn = REPORTS.acquire().await.ok();
    let mut report = run_stats(&*app.runs.journal, &mut StoredJournals(&app.runs), &stats).await?;
    let sees_all = app.served().authorizer.may_see_all(&caller).is_ok();
    let org = stats.filter.org.as_deref().filter(|_| !sees_all);
    let folder = app.folder();
    let limits = LimitsQuery { org, limits: &folder.project.limits };
    report.limits = limit_uses(&*app.runs.journal, clock::wall_ms(), limits).await?;
    Ok(json(
        StatusCode::OK,
        &match asked.by {
            Some(by) => report.only(by),
            None => report,
        },
    ))
}

/// Reads journals with the programs that the server keeps.
struct StoredJournals<'s>(&'s RunStore);

impl JournalReader for StoredJournals<'_> {
    async fn events(&self, run_id: &str) -> Result<Vec<Event>, Fault> {
        self.0.events(run_id).await
    }

    async fn program(&mut self, run_id: &str, events: &[Event]) -> Result<Arc<Program>, Fault> {
        Ok(self.0.program(run_id, events).await?.program)
    }
}
