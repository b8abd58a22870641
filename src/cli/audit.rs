//! `loopctl audit`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::json_line;
use super::run_filter::{AskedTime, asked_time};
use super::store::StoreArgs;
use super::surface::Surface;
use crate::journal::audit::MAX_AUDIT_LINES;
use crate::journal::{AuditAction, AuditFilter, AuditLine};
use crate::trace::layout::pad;
use crate::trace::units::rfc3339;
use crate::trace::{Tone, escape};

/// Show who started, cancelled, decided, retried and released runs, and who was refused
///
/// The list only grows: what was done to a run stays in it when the run is deleted. A line never has what somebody wrote,
/// such as an answer or a reason: `loopctl trace RUN` shows that while the run is there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl audit --run order-7
  loopctl audit --since 24h --action refused
  loopctl audit --limit 0 --output ndjson > audit.ndjson")]
pub struct AuditCommand {
    /// Show only what was done at this time or later: 2026-01-31 or 2026-01-31T12:00:00Z (UTC), or so long ago, as in 30d, 2h
    #[arg(long, value_name = "TIME", value_parser = asked_time)]
    since: Option<AskedTime>,
    /// Show only what was done before this time, written like --since
    #[arg(long, value_name = "TIME", value_parser = asked_time)]
    until: Option<AskedTime>,
    /// Show only what was done to this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Show only what the token of this name, or this user of the machine, did
    #[arg(long, value_name = "NAME")]
    token: Option<String>,
    /// Show only lines of this kind
    #[arg(long, value_name = "ACTION", value_parser = action_parser())]
    action: Option<AuditAction>,
    /// Show only lines of this organisation
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    /// The maximum number of lines; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    output: AuditOutput,
}

/// The output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum AuditOutput {
    /// A table for people
    #[default]
    Human,
    /// A line of JSON for each, the newest first
    Ndjson,
}

fn action_parser() -> impl TypedValueParser<Value = AuditAction> {
    let words = PossibleValuesParser::new(AuditAction::ALL.map(AuditAction::word));
    words.try_map(|word| {
        AuditAction::ALL
            .into_iter()
            .find(|action| action.word() == word)
            .ok_or_else(|| "there is no such action".to_owned())
    })
}

/// A line as JSON.
#[derive(Debug, Serialize)]
struct AuditRecord<'a> {
    at: String,
    action: AuditAction,
    by: Option<&'a str>,
    run_id: Option<&'a str>,
    #[serde(rename = "loop")]
    loop_name: Option<&'a str>,
    org: Option<&'a str>,
    detail: Option<&'a str>,
    times: u64,
}

impl<'a> From<&'a AuditLine> for AuditRecord<'a> {
    fn from(line: &'a AuditLine) -> Self {
        Self {
            at: rfc3339(line.entry.at_ms),
            action: line.entry.action,
            by: line.entry.actor.as_deref(),
            run_id: line.run_id.as_deref(),
            loop_name: line.loop_name.as_deref(),
            org: line.org.as_deref(),
            detail: line.entry.detail.as_deref(),
            times: line.times,
        }
    }
}

impl AuditCommand {
    /// Shows the lines.
    ///
    /// # Errors
    /// When there is no store, or it can't be read.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let mut filter = AuditFilter {
            since_ms: self.since.map(AskedTime::at_ms),
            until_ms: self.until.map(AskedTime::at_ms),
            org: self.org,
            run_id: self.run,
            actor: self.token,
            action: self.action,
            before: None,
            after: None,
            limit: 0,
        };
        let mut left = if self.limit == 0 { usize::MAX } else { self.limit };
        let mut lines = Vec::new();
        // A piece at a time: others write in between.
        while left > 0 {
            filter.limit = left.min(MAX_AUDIT_LINES);
            let piece = journal.audit(filter.clone()).await?;
            let (count, last) = (piece.len(), piece.last().map(|line| line.id));
            left = left.saturating_sub(count);
            match self.output {
                AuditOutput::Ndjson => {
                    let texts = piece.iter().map(|line| json_line(&AuditRecord::from(line)));
                    surface.print(&texts.collect::<Result<String, _>>()?)?;
                }
                AuditOutput::Human => lines.extend(piece),
            }
            if count < filter.limit {
                break;
            }
            filter.before = last;
        }
        if self.output == AuditOutput::Human {
            if lines.is_empty() {
                surface.say(&format!("no such line in {}\n", escape::line(&place.shown())));
            } else {
                surface.print(&table(&lines, surface))?;
            }
        }
        Ok(Exit::Completed)
    }
}

fn table(lines: &[AuditLine], surface: &Surface) -> String {
    const HEAD: [&str; 6] = ["TIME", "ACTION", "BY", "RUN OR LOOP", "ORG", "DETAIL"];
    let rows: Vec<[String; 6]> = lines.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(HEAD.get(column).map(|head| head.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| pad(cell, *width)).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let head = surface.out.paint(Tone::Dim, &line(&HEAD.map(str::to_owned))) + "\n";
    rows.iter().fold(head, |shown, row| shown + &line(row) + "\n")
}

fn cells(line: &AuditLine) -> [String; 6] {
    let or_none = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let detail = line.entry.detail.as_deref();
    let detail = match line.times {
        1 => detail.unwrap_or_default().to_owned(),
        times => format!("{} ({times} times)", detail.unwrap_or_default()).trim_start().to_owned(),
    };
    let what = line.run_id.as_deref().or(line.loop_name.as_deref());
    let cells = [
        rfc3339(line.entry.at_ms),
        line.entry.action.word().replace('_', " "),
        or_none(line.entry.actor.as_deref()),
        or_none(what),
        or_none(line.org.as_deref()),
        detail,
    ];
    cells.map(|cell| escape::line(&cell).into_owned())
}
