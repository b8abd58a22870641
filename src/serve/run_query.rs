//! Which runs a request is about.

use schemars::JsonSchema;
use serde::Deserialize;

use super::authorizer::{Caller, OrgReach};
use super::problem::ProblemDetails;
use super::view::session_in_store;
use crate::journal::{ListedStatus, RunFilter};

/// What a status of a query may be: words with commas between them.
const STATUSES: &str = "^(running|queued|paused|completed|failed|cancelled|quarantined)(,(running|queued|paused|completed|failed|cancelled|quarantined))*$";

/// Which runs. The fields of a query and of a body.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunQuery {
    /// Of one of these statuses, with commas between them: running, queued, paused, completed, failed, cancelled, quarantined.
    /// `running` lists the queued runs too: both are under way. `paused` lists also the runs that are under way while a part
    /// of them waits for a human: these have `"waiting": true`.
    #[schemars(extend("pattern" = STATUSES))]
    pub status: Option<String>,
    /// Of this loop.
    #[serde(rename = "loop")]
    pub loop_name: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// With this text in the beginning of its objective or its input. The case of letters does not matter.
    pub search: Option<String>,
    /// Started at this time or later, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Started before this time, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// Ended at this time or later, RFC 3339. Runs that have not ended are left out.
    #[schemars(extend("format" = "date-time"))]
    pub ended_since: Option<String>,
    /// Ended before this time, RFC 3339. Runs that have not ended are left out.
    #[schemars(extend("format" = "date-time"))]
    pub ended_until: Option<String>,
}

impl RunQuery {
    /// The filter for the caller's runs.
    ///
    /// # Errors
    /// 400 for a status that is none, a time that is none, and a session of no organisation.
    pub fn filter(&self, caller: &Caller) -> Result<RunFilter, ProblemDetails> {
        if self.session.is_some() && caller.reach == OrgReach::All {
            let detail =
                "`session` is of one organisation, and the token is for all: name the organisation with `X-Org-Id`";
            return Err(ProblemDetails::bad_request(detail));
        }
        let words = self.status.iter().flat_map(|words| words.split(','));
        let statuses = words.map(status).collect::<Result<Vec<_>, _>>()?;
        Ok(RunFilter {
            org: caller.seen_org(),
            loop_name: self.loop_name.clone(),
            session: self.session.as_deref().map(|session| session_in_store(caller.org.as_deref(), session)),
            search: self.search.clone(),
            since_ms: self.since.as_deref().map(moment).transpose()?,
            until_ms: self.until.as_deref().map(moment).transpose()?,
            ended_since_ms: self.ended_since.as_deref().map(moment).transpose()?,
            ended_until_ms: self.ended_until.as_deref().map(moment).transpose()?,
            ..RunFilter::of_statuses(&statuses)
        })
    }
}

fn status(word: &str) -> Result<ListedStatus, ProblemDetails> {
    ListedStatus::of_word(word).ok_or_else(|| {
        let known = ListedStatus::ALL.map(|status| format!("`{}`", status.word())).join(", ");
        ProblemDetails::bad_request(format!("`status` {word:?} is none of {known}: send one, or several with commas"))
    })
}

/// A time of a query, in milliseconds since 1970.
///
/// # Errors
/// 400.
pub fn moment(text: &str) -> Result<i64, ProblemDetails> {
    let at: Result<jiff::Timestamp, _> = text.parse();
    at.map(jiff::Timestamp::as_millisecond).map_err(|_| {
        ProblemDetails::bad_request(
            "`since`, `until`, `ended_since` and `ended_until` are times like 2026-01-31T12:00:00Z",
        )
    })
}
