//! `loopctl estimate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use super::exit::Exit;
use super::failure::CommandError;
use super::input::InputArgs;
use super::named_document;
use super::output::{ListOutput, json_line};
use super::store::StorePlace;
use super::surface::Surface;
use super::table_column::{TableColumn, rows_within};
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::engine::outcome::Status;
use crate::engine::run_stats::percentile;
use crate::estimate::{BoundedFigure, BoundingWord, Estimate, EstimatedPart, EstimatedRun, MostUsed, estimate};
use crate::journal::{Journal, MeasuredRun, RunFilter};
use crate::program::{Program, bind};
use crate::project::load::{Loaded, load};
use crate::trace::layout::wrap;
use crate::trace::units::{count, dollars, duration, plural, rfc3339};
use crate::trace::{Tone, escape};

/// The runs of a store that are measured, the newest.
const MAX_MEASURED_RUNS: usize = 10_000;
/// A run that names itself, for the texts of an input.
const SAMPLE_RUN: &str = "00000000-0000-0000-0000-000000000000";

/// Print what a run can use at most, before it starts: requests, calls, tokens, US dollars, time
///
/// The worst case follows from the document alone: iterations, calls of a turn, attempts, called loops, items. Beside each figure is
/// the word that bounds it. A text has at most one token for each byte, so that most runs use far less than the bound of their
/// input tokens: beside it is what the runs of the store used. Prices are those of the project, and no other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl estimate triage.json --input ticket_id=TK-1
  loopctl estimate triage.json --fail-over-usd 5
  loopctl estimate triage.json --output json | jq .most.cost_usd")]
pub struct EstimateCommand {
    /// The loop document, or its name: `triage` is triage.json, here or in `loops`
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub input: InputArgs,
    /// The model: a name from the project's `models`, or the provider's id of a model
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE")]
    pub actions: Vec<PathBuf>,
    /// Fail with exit code 1 when a run can cost more, or nothing bounds what it costs
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub fail_over_usd: Option<f64>,
    /// The store of earlier runs: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: as for `run`, if it exists
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

/// An estimate, and what runs used.
#[derive(Debug, Serialize)]
struct EstimateReport {
    #[serde(flatten)]
    estimate: Estimate,
    /// What the runs of the store used; left out without such runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<UsedByRuns>,
}

/// What the runs of a store used that have ended: half of them at most the first figure, 95 of 100 at most the second.
#[derive(Debug, Serialize)]
struct UsedByRuns {
    /// The runs that are measured, the newest.
    runs: usize,
    /// The turns of a loop; none of a workflow, whose row has none.
    iterations: Option<Percentiles<u32>>,
    tokens: Option<Percentiles<u64>>,
    cost_usd: Option<Percentiles<f64>>,
    /// From start to end, with the waits.
    time_ms: Option<Percentiles<u64>>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Percentiles<T> {
    p50: T,
    p95: T,
}

fn usd(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('$').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "a number of US dollars, 0 or more".to_owned())
}

impl EstimateCommand {
    /// Prints the estimate.
    ///
    /// # Errors
    /// When the document or the input is not valid, or the named store fails.
    pub async fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let Loaded { program, root, sources, .. } = load(&named_document::of(self.file.as_deref())?, &self.actions)?;
        let given = self.input.read(&program)?;
        let has_input = !self.input.fields.is_empty() || self.input.input_file.is_some();
        let input = if has_input {
            let now = rfc3339(clock::wall_ms());
            let bound = bind(&program, given, &now, SAMPLE_RUN);
            let refused = |faults| CommandError::Fault { fault: Fault::Diagnostics(faults), sources, resume: None };
            Some(bound.map_err(refused)?.input.into_whole())
        } else {
            None
        };
        let estimate = estimate(&program, EstimatedRun { model: self.model.as_deref(), input: input.as_ref() });
        let place = StorePlace::of_run(self.store.as_deref(), &program.project, &root);
        let used = self.used(surface, &place, &program).await?;
        let report = EstimateReport { estimate, used };
        match self.output {
            ListOutput::Json => surface.print(&json_line(&report)?)?,
            ListOutput::Human => surface.print(&text(surface, &report, program.word()))?,
        }
        Ok(self.verdict(surface, &report.estimate.most))
    }

    /// What runs used. A store that nobody named is no reason to fail: a pipeline may not reach it.
    async fn used(
        &self,
        surface: &Surface,
        place: &StorePlace,
        program: &Program,
    ) -> Result<Option<UsedByRuns>, CommandError> {
        if !place.exists() || !place.lasts() {
            return match &self.store {
                None => Ok(None),
                Some(_) => Err(CommandError::usage_help(
                    format!("there is no store {}", place.shown()),
                    "name the store of the runs: --store sqlite:PATH",
                )),
            };
        }
        let measured = match place.open() {
            Ok(journal) => used(&*journal, program).await,
            Err(error) => Err(error),
        };
        match measured {
            Err(error) if self.store.is_none() => {
                surface.say(&surface.line(
                    Tone::Warn,
                    "warning",
                    &format!("what runs used is left out: {}", place.shown()),
                ));
                surface.say(&error.shown(surface));
                Ok(None)
            }
            measured => measured,
        }
    }

    /// Whether the run stays within what it may cost. Smaller digits than billionths of a dollar are noise of the sum.
    fn verdict(&self, surface: &Surface, most: &MostUsed) -> Exit {
        let Some(limit) = self.fail_over_usd else { return Exit::Completed };
        let why = match most.cost_usd.map(|cost| (cost * 1e9).round() / 1e9) {
            Some(cost) if cost <= limit => return Exit::Completed,
            Some(cost) => format!("a run can cost ${cost}, and more than ${limit} fails"),
            None => format!("nothing bounds what a run costs, and more than ${limit} fails"),
        };
        surface.say(&surface.line(Tone::Bad, "error", &why));
        Exit::Failed
    }
}

/// What the newest runs of a loop used that have ended.
async fn used(journal: &dyn Journal, program: &Program) -> Result<Option<UsedByRuns>, CommandError> {
    let of_loop = RunFilter { loop_name: Some(program.name.clone()), limit: MAX_MEASURED_RUNS, ..RunFilter::default() };
    let mut runs = journal.measured(of_loop).await?;
    runs.retain(|run| matches!(run.status, Status::Completed | Status::Failed | Status::Cancelled));
    if runs.is_empty() {
        return Ok(None);
    }
    let time = |run: &MeasuredRun| u64::try_from(run.updated_at_ms.saturating_sub(run.started_at_ms)).ok();
    let mut costs: Vec<u64> = runs.iter().filter_map(|run| run.cost_usd).map(f64::to_bits).collect();
    // The bits of numbers that are not negative are in their order.
    let costs =
        percentiles(&mut costs).map(|of| Percentiles { p50: f64::from_bits(of.p50), p95: f64::from_bits(of.p95) });
    Ok(Some(UsedByRuns {
        runs: runs.len(),
        iterations: percentiles(
            &mut runs.iter().filter(|_| !program.is_flow()).map(|run| run.iterations).collect::<Vec<_>>(),
        ),
        tokens: percentiles(&mut runs.iter().filter_map(|run| run.tokens).collect::<Vec<_>>()),
        cost_usd: costs,
        time_ms: percentiles(&mut runs.iter().filter_map(time).collect::<Vec<_>>()),
    }))
}

fn percentiles<T: Copy + Ord>(values: &mut [T]) -> Option<Percentiles<T>> {
    Some(Percentiles { p50: percentile(values, 50)?, p95: percentile(values, 95)? })
}

/// The figures, and how people read them.
const FIGURES: [(&str, BoundedFigure); 7] = [
    ("model calls", BoundedFigure::ModelCalls),
    ("tool calls", BoundedFigure::ToolCalls),
    ("input tokens", BoundedFigure::InputTokens),
    ("output tokens", BoundedFigure::OutputTokens),
    ("tokens", BoundedFigure::Tokens),
    ("US dollars", BoundedFigure::CostUsd),
    ("active time", BoundedFigure::ActiveMs),
];
const NO_BOUND: &str = "no bound";

/// What a run of a program can use at most, in a line.
pub fn brief(program: &Program) -> String {
    let estimate = estimate(program, EstimatedRun { model: None, input: None });
    let [model_calls, tool_calls, .., tokens, usd, active] =
        FIGURES.map(|(name, figure)| format!("{name} {}", figure_of(&estimate, figure)));
    let name = escape::line(&estimate.name);
    format!("{name}: a run can use at most: {model_calls}, {tool_calls}, {tokens}, {usd}, {active}")
}

/// The report for people.
fn text(surface: &Surface, report: &EstimateReport, word: &str) -> String {
    let look = &surface.out;
    let rows = |table: Vec<TableColumn>| rows_within(look, table, surface.out_columns);
    let EstimateReport { estimate, used } = report;
    let head = format!("{}: what a run of this {word} can use at most", escape::line(&estimate.name));
    let mut shown = look.paint(Tone::Bold, &head) + "\n";
    let values = FIGURES.map(|(_, figure)| figure_of(estimate, figure));
    let words = FIGURES.map(|(_, figure)| words_of(&estimate.bounds, figure));
    let mut columns = vec![
        TableColumn::new("", FIGURES.map(|(name, _)| name.to_owned()).to_vec()),
        TableColumn::number("AT MOST", values.to_vec()),
    ];
    if let Some(used) = used {
        let of = |figure| used_of(used, figure).unwrap_or_default();
        let (half, most): (Vec<String>, Vec<String>) = FIGURES.iter().map(|(_, figure)| of(*figure)).unzip();
        columns.push(TableColumn::number("P50", half));
        columns.push(TableColumn::number("P95", most));
    }
    columns.push(TableColumn::new("BOUNDED BY", words.to_vec()).dim());
    shown.push_str(&rows(columns));
    if !estimate.parts.is_empty() {
        shown.push('\n');
        shown.push_str(&rows(of_parts(&estimate.parts)));
    }
    if let Some(used) = used {
        let about = format!("P50 and P95: of {} of the store{}", plural(used.runs, "run"), clock(used));
        let lines = wrap(&about, surface.out_columns.unwrap_or(usize::MAX));
        shown.push_str(&look.paint(Tone::Dim, &(lines.join("\n") + "\n")));
    }
    for why in &estimate.unbounded {
        let lines = wrap(&format!("no bound: {}", escape::line(why)), surface.out_columns.unwrap_or(usize::MAX));
        shown.push_str(&look.paint(Tone::Warn, &(lines.join("\n") + "\n")));
    }
    shown
}

/// How long the runs took by the clock: their waits are in it, and those are no active time.
fn clock(used: &UsedByRuns) -> String {
    let times = used.time_ms.map(|of| (duration(of.p50), duration(of.p95)));
    times.map_or_else(String::new, |(half, most)| format!("; {half} and {most} from start to end, with their waits"))
}

/// What asks models beside the loop itself.
fn of_parts(parts: &[EstimatedPart]) -> Vec<TableColumn> {
    let cells = |cell: &dyn Fn(&EstimatedPart) -> String| parts.iter().map(cell).collect::<Vec<_>>();
    let words = |part: &EstimatedPart| {
        let figures = FIGURES.map(|(_, figure)| figure);
        let mut words: Vec<BoundingWord> = Vec::new();
        // One word may bound several figures.
        for word in figures.iter().flat_map(|figure| part.bounds.iter().filter(move |word| word.figure == *figure)) {
            if word.at.is_some() && !words.iter().any(|known| known.word == word.word) {
                words.push(word.clone());
            }
        }
        words.iter().map(shown_word).collect::<Vec<_>>().join(", ")
    };
    vec![
        TableColumn::new("EACH CALL OF", cells(&|part| escape::line(&part.name).into_owned())),
        TableColumn::number("CALLS", cells(&|part| count(part.calls))),
        TableColumn::number("MODEL CALLS", cells(&|part| number(part.each.model_calls))),
        TableColumn::number("TOKENS", cells(&|part| number(part.each.tokens))),
        TableColumn::number("COST", cells(&|part| part.each.cost_usd.map_or_else(|| NO_BOUND.to_owned(), dollars))),
        TableColumn::new("BOUNDED BY", cells(&words)).dim(),
    ]
}

fn shown_word(word: &BoundingWord) -> String {
    let at = word.at.as_deref().unwrap_or("default");
    escape::line(&format!("{} {} ({at})", word.word, word.value)).into_owned()
}

fn number(figure: Option<u64>) -> String {
    figure.map_or_else(|| NO_BOUND.to_owned(), count)
}

fn figure_of(estimate: &Estimate, figure: BoundedFigure) -> String {
    let most = &estimate.most;
    match figure {
        BoundedFigure::ModelCalls => number(most.model_calls),
        BoundedFigure::ToolCalls => number(most.tool_calls),
        BoundedFigure::InputTokens => number(most.input_tokens),
        BoundedFigure::OutputTokens => number(most.output_tokens),
        BoundedFigure::Tokens => number(most.tokens),
        BoundedFigure::CostUsd => most.cost_usd.map_or_else(|| NO_BOUND.to_owned(), dollars),
        BoundedFigure::ActiveMs => estimate.active_ms.map_or_else(|| NO_BOUND.to_owned(), duration),
    }
}

/// What half of the runs, and 95 of 100, did not exceed.
fn used_of(used: &UsedByRuns, figure: BoundedFigure) -> Option<(String, String)> {
    let both = |of: Percentiles<u64>| (count(of.p50), count(of.p95));
    match figure {
        BoundedFigure::ModelCalls => used.iterations.map(|of| (count(u64::from(of.p50)), count(u64::from(of.p95)))),
        BoundedFigure::Tokens => used.tokens.map(both),
        BoundedFigure::CostUsd => used.cost_usd.map(|of| (dollars(of.p50), dollars(of.p95))),
        BoundedFigure::ToolCalls
        | BoundedFigure::InputTokens
        | BoundedFigure::OutputTokens
        | BoundedFigure::ActiveMs => None,
    }
}

/// The words that bound a figure.
fn words_of(words: &[BoundingWord], figure: BoundedFigure) -> String {
    let of = words.iter().filter(|word| word.figure == figure).map(shown_word);
    of.collect::<Vec<_>>().join(", ")
}
