//! The sums of a report, while runs are counted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::ReadJournal;
use super::journal_tally::{Measure, fold_measured};
use crate::journal::MeasuredRun;
use loopctl_engine::outcome::Status;
use loopctl_engine::refused::Refused;
use loopctl_engine::run_stats::{LeftOut, ModelFigures, RunFigures, RunGroup, RunStats, ToolFigures, percentile};
use loopctl_lang::policy::word::written;

/// The sums so far.
pub(super) struct StatsTally {
    zone: TimeZone,
    /// The day of the last run: most of the next ones started on it too.
    day: Option<KnownDay>,
    total: GroupTally,
    loops: BTreeMap<String, GroupTally>,
    days: BTreeMap<String, GroupTally>,
    orgs: BTreeMap<String, GroupTally>,
    models: BTreeMap<String, (ModelFigures, Vec<u64>)>,
    tools: BTreeMap<String, (ToolFigures, Vec<u64>)>,
}

#[derive(Default)]
struct GroupTally {
    figures: RunFigures,
    /// The times of the runs that ended, in milliseconds.
    times: Vec<i64>,
}

impl StatsTally {
    pub(super) fn new(zone: TimeZone) -> Self {
        let (loops, days, orgs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (models, tools) = (BTreeMap::new(), BTreeMap::new());
        Self { zone, day: None, total: GroupTally::default(), loops, days, orgs, models, tools }
    }

    /// The groups of a run, with all runs.
    fn groups(&mut self, run: &MeasuredRun, mut change: impl FnMut(&mut GroupTally)) {
        let started = run.started_at_ms;
        let known = self.day.take().filter(|day| day.from_ms <= started && started < day.until_ms);
        let day = self.day.insert(known.unwrap_or_else(|| KnownDay::of(started, &self.zone)));
        change(&mut self.total);
        in_group(&mut self.loops, &run.loop_name, &mut change);
        in_group(&mut self.days, &day.name, &mut change);
        in_group(&mut self.orgs, run.org.as_deref().unwrap_or_default(), &mut change);
    }

    /// Counts what the row of a run says.
    pub(super) fn count(&mut self, run: &MeasuredRun) {
        let ended = run.has_ended().then(|| run.updated_at_ms.saturating_sub(run.started_at_ms).max(0));
        let termination = run.termination.as_ref().filter(|_| ended.is_some()).and_then(written);
        self.groups(run, |group| {
            let figures = &mut group.figures;
            figures.runs += 1;
            *match (run.status, ended) {
                (Status::Completed, _) => &mut figures.completed,
                (Status::Failed, _) => &mut figures.failed,
                (Status::Cancelled, Some(_)) => &mut figures.cancelled,
                (Status::Paused, _) => &mut figures.paused,
                (Status::Running | Status::Quarantined | Status::Cancelled, _) => &mut figures.open,
            } += 1;
            group.times.extend(ended);
            if let Some(why) = &termination {
                *figures.terminations.entry(why.clone()).or_default() += 1;
            }
            figures.iterations += u64::from(run.iterations);
            figures.tokens = figures.tokens.saturating_add(run.tokens.unwrap_or_default());
            figures.cost_usd += run.cost_usd.unwrap_or_default();
            figures.unknown_runs += u64::from(run.tokens.is_none());
            figures.unpriced_runs += u64::from(run.tokens.is_some_and(|tokens| tokens > 0) && run.cost_usd.is_none());
        });
    }

    /// The journals of a run and of what it called were read.
    pub(super) fn has_read(&mut self, root: &MeasuredRun) {
        self.groups(root, |group| group.figures.journals += 1);
    }

    /// Counts what a journal says: of a run, or of one that it called.
    ///
    /// # Errors
    /// When the events do not fit together.
    pub(super) fn journal(&mut self, root: &MeasuredRun, read: ReadJournal, is_called: bool) -> Result<(), Refused> {
        let ReadJournal { program, events } = read;
        let mut of_run = RunFigures::default();
        let (models, tools) = (&mut self.models, &mut self.tools);
        let folded = fold_measured(&program, events, &mut |measure| {
            match &measure {
                Measure::ModelRetry { .. } => of_run.model_retries += 1,
                Measure::ToolRetries { count, .. } => of_run.tool_retries += u64::from(*count),
                Measure::Stuck { pattern } => *of_run.stuck.entry(pattern.clone()).or_default() += 1,
                Measure::Hints { count } => of_run.stuck_hints += u64::try_from(*count).unwrap_or(u64::MAX),
                // While a run that was called waits, its caller does.
                Measure::HumanWait { ms } if !is_called => {
                    of_run.human_waits += 1;
                    of_run.human_wait_ms += u64::try_from(*ms).unwrap_or_default();
                }
                Measure::HumanWait { .. } | Measure::Reply { .. } | Measure::Spent { .. } | Measure::Call { .. } => {}
            }
            of_model(models, &measure);
            of_tool(tools, &measure);
        });
        self.groups(root, |group| {
            let figures = &mut group.figures;
            figures.model_retries += of_run.model_retries;
            figures.tool_retries += of_run.tool_retries;
            figures.stuck_hints += of_run.stuck_hints;
            figures.human_waits += of_run.human_waits;
            figures.human_wait_ms += of_run.human_wait_ms;
            for (pattern, times) in &of_run.stuck {
                *figures.stuck.entry(pattern.clone()).or_default() += times;
            }
        });
        folded
    }

    /// The report.
    pub(super) fn report(self, left_out: LeftOut) -> RunStats {
        let most_runs = |groups: BTreeMap<String, GroupTally>| {
            let mut groups = in_order(groups);
            groups.sort_by_key(|group| std::cmp::Reverse(group.figures.runs));
            groups
        };
        let mut models: Vec<ModelFigures> = self
            .models
            .into_iter()
            .map(|(key, (figures, mut times))| {
                let (p50_ms, p95_ms) = (percentile(&mut times, 50), percentile(&mut times, 95));
                ModelFigures { key, p50_ms, p95_ms, cost_usd: figures.cost_usd.map(exact), ..figures }
            })
            .collect();
        models.sort_by_key(|model| std::cmp::Reverse(model.input_tokens.saturating_add(model.output_tokens)));
        let mut tools: Vec<ToolFigures> = self
            .tools
            .into_iter()
            .map(|(key, (figures, mut times))| {
                let (p50_ms, p95_ms) = (percentile(&mut times, 50), percentile(&mut times, 95));
                ToolFigures { key, p50_ms, p95_ms, ..figures }
            })
            .collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
        RunStats {
            by: None,
            since: None,
            until: None,
            zone: self.zone.iana_name().unwrap_or("UTC").to_owned(),
            total: self.total.figures(),
            loops: most_runs(self.loops),
            days: in_order(self.days),
            orgs: most_runs(self.orgs),
            models,
            tools,
            limits: Vec::new(),
            left_out,
        }
    }
}

impl GroupTally {
    fn figures(mut self) -> RunFigures {
        let (p50_ms, p95_ms) = (percentile(&mut self.times, 50), percentile(&mut self.times, 95));
        RunFigures { p50_ms, p95_ms, cost_usd: exact(self.figures.cost_usd), ..self.figures }
    }
}

fn in_order(groups: BTreeMap<String, GroupTally>) -> Vec<RunGroup> {
    groups.into_iter().map(|(key, group)| RunGroup { key, figures: group.figures() }).collect()
}

fn of_model(models: &mut BTreeMap<String, (ModelFigures, Vec<u64>)>, measure: &Measure<'_>) {
    let (Measure::Reply { model, .. } | Measure::Spent { model, .. } | Measure::ModelRetry { model }) = measure else {
        return;
    };
    let (figures, times) = models.entry((*model).to_owned()).or_default();
    match measure {
        Measure::Reply { ms, .. } => {
            figures.replies += 1;
            times.push(*ms);
        }
        Measure::ModelRetry { .. } => figures.retries += 1,
        Measure::Spent { tokens, cost_usd, .. } => {
            figures.input_tokens = figures.input_tokens.saturating_add(tokens.input);
            figures.cached_input_tokens = figures.cached_input_tokens.saturating_add(tokens.cached_input);
            figures.output_tokens = figures.output_tokens.saturating_add(tokens.output);
            if *cost_usd > 0.0 {
                *figures.cost_usd.get_or_insert(0.0) += cost_usd;
            }
        }
        _ => {}
    }
}

fn of_tool(tools: &mut BTreeMap<String, (ToolFigures, Vec<u64>)>, measure: &Measure<'_>) {
    match measure {
        Measure::Call { tool, ms, success } => {
            let (figures, times) = tools.entry((*tool).to_owned()).or_default();
            figures.calls += 1;
            figures.failed += u64::from(!success);
            times.push(*ms);
        }
        Measure::ToolRetries { tool, count } => {
            tools.entry((*tool).to_owned()).or_default().0.retries += u64::from(*count);
        }
        _ => {}
    }
}

/// Dollars without the noise of the binary fraction: every price is above a billionth of one.
fn exact(cost_usd: f64) -> f64 {
    (cost_usd * 1e9).round() / 1e9
}

/// Changes the group of this key. A report has few groups and many runs: their keys are copied once.
fn in_group(groups: &mut BTreeMap<String, GroupTally>, key: &str, change: &mut impl FnMut(&mut GroupTally)) {
    match groups.get_mut(key) {
        Some(group) => change(group),
        None => change(groups.entry(key.to_owned()).or_default()),
    }
}

/// A day of a time zone.
struct KnownDay {
    name: String,
    /// The moments that are known to be on it, in milliseconds since 1970.
    from_ms: i64,
    until_ms: i64,
}

impl KnownDay {
    /// The day of a moment.
    fn of(at_ms: i64, zone: &TimeZone) -> Self {
        let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone.clone());
        let next = at.tomorrow().and_then(|next| next.start_of_day());
        // While clocks are changed, a moment of one day may come after the first one of the next.
        let whole = at.start_of_day().ok().zip(next.ok()).filter(|(from, until)| from.offset() == until.offset());
        let whole = whole.map(|(from, until)| (from.timestamp().as_millisecond(), until.timestamp().as_millisecond()));
        let is_in = |(from_ms, until_ms): &(i64, i64)| (*from_ms..*until_ms).contains(&at_ms);
        let (from_ms, until_ms) = whole.filter(is_in).unwrap_or((at_ms, at_ms.saturating_add(1)));
        Self { name: at.date().to_string(), from_ms, until_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_on_its_day_also_where_clocks_are_changed() {
        // America/St_Johns changed its clocks at a minute past midnight until 2011: 23:01 came after 00:00.
        for (name, from) in [
            ("UTC", "2026-10-24T00:00:00Z"),
            ("Europe/Berlin", "2026-10-23T00:00:00Z"),
            ("America/St_Johns", "2010-11-06T00:00:00Z"),
        ] {
            let zone = TimeZone::get(name).unwrap();
            let from_ms = from.parse::<Timestamp>().unwrap().as_millisecond();
            for at_ms in (0..4 * 24 * 60).map(|minutes| from_ms + minutes * 60_000) {
                let on = |at_ms| Timestamp::from_millisecond(at_ms).unwrap().to_zoned(zone.clone()).date().to_string();
                let day = KnownDay::of(at_ms, &zone);
                assert!(day.from_ms <= at_ms && at_ms < day.until_ms && day.name == on(at_ms), "{name} {at_ms}");
                assert_eq!((on(day.from_ms), on(day.until_ms - 1)), (day.name.clone(), day.name), "{name} {at_ms}");
            }
        }
    }
}
