//! `loopctl stats`.

use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use serde::Deserialize as _;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::json_line;
use super::recorded_run;
use super::run_filter::RunBoundsArgs;
use super::store::StoreArgs;
use super::surface::Surface;
use super::table_column::{TableColumn, rows_within};
use crate::drive::clock;
use crate::drive::run_stats::{LimitsQuery, MAX_STATS_RUNS, RecordedJournals, StatsQuery, limit_uses, run_stats};
use crate::engine::run_stats::{LimitUse, ModelFigures, RunFigures, RunGroup, RunStats, StatsKey, ToolFigures};
use crate::journal::RunFilter;
use crate::language::Project;
use crate::syntax::document::{DocumentKind, read_as};
use crate::trace::units::{count, dollars, duration, plural};
use crate::trace::{Look, Tone, escape, html};

/// Report what the runs of a store came to: endings, times, tokens, costs, retries and waits
///
/// A run that another one called counts with its caller. The days are those of --zone, and each run belongs to the day on which
/// it started. Retries, stuck patterns, waits, models and tools are in the journals of the runs: those of the newest runs are
/// read, as many as --journals says, and the report says of how many runs it lacks them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl stats --since 30d
  loopctl stats --by model --loop refund-check --since 2026-01-01 --until 2026-02-01
  loopctl stats --since 7d --zone Europe/Berlin --output html > week.html")]
pub struct StatsCommand {
    /// One kind of groups only
    #[arg(long, value_enum, value_name = "KEY")]
    pub by: Option<StatsBy>,
    #[command(flatten)]
    pub bounds: RunBoundsArgs,
    /// The time zone of the days, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone)]
    pub zone: TimeZone,
    /// The maximum number of journals that are read; 0 reads all
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub journals: usize,
    #[command(flatten)]
    pub store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: StatsOutput,
}

/// What the groups of a report are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsBy {
    /// The loop or workflow
    Loop,
    /// The day of the start
    Day,
    /// The model
    Model,
    /// The tool
    Tool,
    /// The organisation
    Org,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StatsOutput {
    /// Text for a terminal
    #[default]
    Text,
    /// One line of JSON
    Json,
    /// One HTML file with plots that fetches nothing
    Html,
}

impl From<StatsBy> for StatsKey {
    fn from(by: StatsBy) -> Self {
        match by {
            StatsBy::Loop => Self::Loop,
            StatsBy::Day => Self::Day,
            StatsBy::Model => Self::Model,
            StatsBy::Tool => Self::Tool,
            StatsBy::Org => Self::Org,
        }
    }
}

impl StatsCommand {
    /// Makes the report.
    ///
    /// # Errors
    /// When there is no store, or it fails.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let all = |most: usize| if most == 0 { usize::MAX } else { most };
        let query = StatsQuery {
            filter: self.bounds.bound(RunFilter::default()),
            zone: self.zone,
            most_runs: MAX_STATS_RUNS,
            most_journals: all(self.journals),
            most_events: usize::MAX,
        };
        let mut reader = RecordedJournals::new(recorded_run::reader(journal.clone()), place.project.clone());
        let mut report = run_stats(&*journal, &mut reader, &query).await?;
        let project = place.project.as_ref().map(|source| read_as(source, Some(DocumentKind::Project)).value);
        let project = project.and_then(|value| Project::deserialize(&value).ok()).unwrap_or_default();
        let limits = LimitsQuery { org: query.filter.org.as_deref(), limits: &project.limits };
        report.limits = limit_uses(&*journal, clock::wall_ms(), limits).await?;
        let report = match self.by {
            Some(by) => report.only(by.into()),
            None => report,
        };
        match self.output {
            StatsOutput::Text => surface.print(&text(&surface.out, &report, surface.out_columns))?,
            StatsOutput::Json => surface.print(&json_line(&report)?)?,
            StatsOutput::Html => surface.print_bytes(html::run_stats(&report).as_bytes())?,
        }
        Ok(Exit::Completed)
    }
}

fn zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text).map_err(|_| "a time zone such as Europe/Berlin, or UTC".to_owned())
}

/// The report for people.
fn text(look: &Look, report: &RunStats, columns: Option<usize>) -> String {
    let rows = |table: Vec<TableColumn>| rows_within(look, table, columns);
    let mut shown = summary(look, report);
    for (head, groups) in [("LOOP", &report.loops), ("DAY", &report.days), ("ORG", &report.orgs)] {
        // One organisation, or none, is all of it.
        if groups.is_empty() || head == "ORG" && report.by.is_none() && groups.len() < 2 {
            continue;
        }
        shown.push('\n');
        shown.push_str(&of_groups(&rows, head, groups));
    }
    if !report.models.is_empty() {
        shown.push('\n');
        shown.push_str(&of_models(&rows, &report.models));
    }
    if !report.tools.is_empty() {
        shown.push('\n');
        shown.push_str(&of_tools(&rows, &report.tools));
    }
    if !report.limits.is_empty() {
        shown.push('\n');
        shown.push_str(&of_limits(&rows, &report.limits));
    }
    let mut remarks = html::run_remarks(report);
    if report.left_out.journals > 0 {
        remarks.push("`--journals 0` reads all journals".to_owned());
    }
    if !remarks.is_empty() {
        shown.push('\n');
        remarks.iter().for_each(|remark| shown.push_str(&(look.paint(Tone::Dim, remark) + "\n")));
    }
    shown
}

/// All runs together.
fn summary(look: &Look, report: &RunStats) -> String {
    let RunStats { total, since, until, zone, .. } = report;
    let span = match (since, until) {
        (None, None) => String::new(),
        (Some(since), None) => format!(" since {since}"),
        (None, Some(until)) => format!(" before {until}"),
        (Some(since), Some(until)) => format!(" from {since} to {until}"),
    };
    let head = format!("{}{span}; days are of {}", plural(total.runs, "run"), escape::line(zone));
    let mut shown = look.paint(Tone::Bold, &head) + "\n";
    let mut line = |parts: Vec<String>| {
        if !parts.is_empty() {
            shown.push_str(&format!("  {}\n", parts.join(", ")));
        }
    };
    let statuses = [
        (total.completed, "completed"),
        (total.failed, "failed"),
        (total.cancelled, "cancelled"),
        (total.paused, "paused"),
        (total.open, "open"),
    ];
    let statuses = statuses.into_iter().filter(|(number, _)| *number > 0);
    line(statuses.map(|(number, word)| format!("{} {word}", count(number))).collect());
    let of = |ms: i64| duration(u64::try_from(ms).unwrap_or_default());
    let times = total
        .p50_ms
        .zip(total.p95_ms)
        .map(|(p50, p95)| format!("half ended within {}, 95 % within {}", of(p50), of(p95)));
    line(times.into_iter().collect());
    line(vec![plural(total.tokens, "token"), format!("cost {}", html::run_cost(total))]);
    let waits = (total.human_waits > 0).then(|| {
        format!("waited for a human {}, {} in all", times_of(total.human_waits), duration(total.human_wait_ms))
    });
    let stuck = total
        .stuck
        .iter()
        .map(|(pattern, number)| format!("in circles ({}) {}", escape::line(pattern), times_of(*number)));
    let retries = [(total.model_retries, "request"), (total.tool_retries, "call")];
    let retries = retries.into_iter().filter(|(number, _)| *number > 0);
    let retries = retries.map(|(number, noun)| format!("{} made again", plural(number, noun)));
    line(retries.chain(stuck).collect());
    line(waits.into_iter().collect());
    shown
}

fn times_of(number: u64) -> String {
    plural(number, "time")
}

/// Makes a table of columns.
type TableMaker<'m> = &'m dyn Fn(Vec<TableColumn>) -> String;

fn of_groups(rows: TableMaker<'_>, head: &'static str, groups: &[RunGroup]) -> String {
    let number = |head, of: &dyn Fn(&RunFigures) -> u64| {
        TableColumn::number(head, groups.iter().map(|group| counted(of(&group.figures))).collect())
    };
    let time = |head, of: &dyn Fn(&RunFigures) -> Option<i64>| {
        let cell = |group: &RunGroup| of(&group.figures).map(|ms| duration(u64::try_from(ms).unwrap_or_default()));
        TableColumn::number(head, groups.iter().map(|group| cell(group).unwrap_or_default()).collect())
    };
    let key = |group: &RunGroup| {
        if group.key.is_empty() { "(none)".to_owned() } else { escape::line(&group.key).into_owned() }
    };
    rows(vec![
        TableColumn::new(head, groups.iter().map(key).collect()),
        number("RUNS", &|figures| figures.runs),
        number("COMPLETED", &|figures| figures.completed),
        number("FAILED", &|figures| figures.failed),
        number("CANCELLED", &|figures| figures.cancelled),
        number("PAUSED", &|figures| figures.paused),
        number("OPEN", &|figures| figures.open),
        time("P50", &|figures| figures.p50_ms),
        time("P95", &|figures| figures.p95_ms),
        number("TOKENS", &|figures| figures.tokens),
        TableColumn::number("COST", groups.iter().map(|group| html::run_cost(&group.figures)).collect()),
        number("RETRIES", &|figures| figures.model_retries.saturating_add(figures.tool_retries)),
        number("STUCK", &|figures| figures.stuck.values().sum()),
        TableColumn::number("HUMANS", groups.iter().map(|group| timed(group.figures.human_wait_ms)).collect()),
    ])
}

fn of_models(rows: TableMaker<'_>, models: &[ModelFigures]) -> String {
    let number = |head, of: &dyn Fn(&ModelFigures) -> u64| {
        TableColumn::number(head, models.iter().map(|model| counted(of(model))).collect())
    };
    let texts = |of: &dyn Fn(&ModelFigures) -> String| models.iter().map(of).collect::<Vec<_>>();
    rows(vec![
        TableColumn::new("MODEL", texts(&|model| escape::line(&model.key).into_owned())),
        number("REPLIES", &|model| model.replies),
        number("RETRIES", &|model| model.retries),
        TableColumn::number("P50", texts(&|model| model.p50_ms.map(duration).unwrap_or_default())),
        TableColumn::number("P95", texts(&|model| model.p95_ms.map(duration).unwrap_or_default())),
        number("INPUT", &|model| model.input_tokens),
        number("CACHED", &|model| model.cached_input_tokens),
        number("OUTPUT", &|model| model.output_tokens),
        TableColumn::number("COST", texts(&|model| model.cost_usd.map_or_else(|| "not known".to_owned(), dollars))),
    ])
}

fn of_tools(rows: TableMaker<'_>, tools: &[ToolFigures]) -> String {
    let number = |head, of: &dyn Fn(&ToolFigures) -> u64| {
        TableColumn::number(head, tools.iter().map(|tool| counted(of(tool))).collect())
    };
    let texts = |of: &dyn Fn(&ToolFigures) -> String| tools.iter().map(of).collect::<Vec<_>>();
    rows(vec![
        TableColumn::new("TOOL", texts(&|tool| escape::line(&tool.key).into_owned())),
        number("CALLS", &|tool| tool.calls),
        number("FAILED", &|tool| tool.failed),
        number("RETRIES", &|tool| tool.retries),
        TableColumn::number("P50", texts(&|tool| tool.p50_ms.map(duration).unwrap_or_default())),
        TableColumn::number("P95", texts(&|tool| tool.p95_ms.map(duration).unwrap_or_default())),
    ])
}

fn of_limits(rows: TableMaker<'_>, limits: &[LimitUse]) -> String {
    let texts = |of: &dyn Fn(&LimitUse) -> String| limits.iter().map(of).collect::<Vec<_>>();
    let of_most = |used: String, most: Option<String>| most.map_or(used.clone(), |most| format!("{used} of {most}"));
    let tokens = |limit: &LimitUse| of_most(count(limit.tokens), limit.most_tokens.map(count));
    let cost = |limit: &LimitUse| of_most(dollars(limit.cost_usd), limit.most_usd.map(dollars));
    rows(vec![
        TableColumn::new("LIMIT OF", texts(&|limit| escape::line(&limit.of).into_owned())),
        TableColumn::new("EVERY", texts(&|limit| limit.every.clone())),
        TableColumn::number("USED", texts(&|limit| format!("{:.0} %", limit.used * 100.0))),
        TableColumn::number("TOKENS", texts(&tokens)),
        TableColumn::number("COST", texts(&cost)),
        TableColumn::number("RESERVED", texts(&|limit| counted(limit.reserved_tokens))),
        TableColumn::new("UNTIL", texts(&|limit| limit.until.clone().unwrap_or_default())),
    ])
}

/// A number; nothing for 0.
fn counted(number: u64) -> String {
    if number == 0 { String::new() } else { count(number) }
}

fn timed(ms: u64) -> String {
    if ms == 0 { String::new() } else { duration(ms) }
}
