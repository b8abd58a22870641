//! The runs as a table. A terminal gets the columns that it has room for; a pipe gets all, and no text is cut.

use std::borrow::Cow;

use crate::cli::model_wait;
use crate::cli::table_column::TableColumn;
use crate::engine::outcome::{Status, Termination};
use crate::journal::{ListedStatus, RunSummary};
use crate::trace::layout::{cut, pad};
use crate::trace::reason::reason;
use crate::trace::text::status_tone;
use crate::trace::units::{count, dollars, duration, plural};
use crate::trace::{Look, Tone, escape};

/// The least width of the texts of a run in the table; with less, a run takes several lines.
const MIN_TEXT_COLUMNS: usize = 16;
/// The least width of what a run is about, if that is cut.
const MIN_ABOUT_COLUMNS: usize = 12;
/// The width of the texts for which other columns are left out.
const WANTED_TEXT_COLUMNS: usize = 48;
/// The columns of an age: the others stay where they are while it grows.
const AGE_COLUMNS: usize = "12 days".len();
/// The most columns of a loop's name in a terminal.
const MAX_NAME_COLUMNS: usize = 24;
/// The columns that are left out first where there is no room.
const FIRST_LEFT_OUT: [&str; 6] = ["ITER.", "TOKENS", "BY", "TIME", "ORG", "COST"];

/// How runs are shown.
pub struct ShownRuns {
    /// The colours, and the width where runs take several lines.
    pub look: Look,
    /// The columns of the terminal; none for a pipe or a file.
    pub columns: Option<usize>,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
}

impl ShownRuns {
    /// The runs; ids are shown whole, because they are copied.
    pub fn shown(&self, runs: &[RunSummary]) -> String {
        let Some(columns) = self.fitted(runs) else {
            return runs.iter().map(|run| self.lines(run)).collect();
        };
        let heads: Vec<String> = columns.iter().map(|column| column.aligned(column.head)).collect();
        let mut shown = self.look.paint(Tone::Dim, heads.join("  ").trim_end()) + "\n";
        for (at, run) in runs.iter().enumerate() {
            let cells = columns.iter().map(|column| {
                let cell = column.aligned(column.cells.get(at).map(String::as_str).unwrap_or_default());
                match (column.head, column.tone) {
                    ("STATUS", _) => self.look.paint(tone(run.listed_status()), &cell),
                    (_, Some(tone)) => {
                        self.look.paint(tone, cell.trim_end()) + &" ".repeat(cell.len() - cell.trim_end().len())
                    }
                    (_, None) => cell,
                }
            });
            shown.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            shown.push('\n');
        }
        shown
    }

    /// The columns that fit; none if a run takes several lines.
    fn fitted(&self, runs: &[RunSummary]) -> Option<Vec<TableColumn>> {
        let mut columns = self.all(runs);
        columns.retain(|column| matches!(column.head, "RUN" | "LOOP" | "STATUS" | "AGE") || !column.is_empty());
        let Some(width) = self.columns else { return Some(columns) };
        let is_text = |column: &TableColumn| matches!(column.head, "ABOUT" | "WHY");
        let room = |columns: &[TableColumn]| {
            let others: usize = columns.iter().filter(|column| !is_text(column)).map(|column| column.width + 2).sum();
            (width + 2).saturating_sub(others)
        };
        let wanted: usize = columns.iter().filter(|column| is_text(column)).map(|column| column.width + 2).sum();
        for head in FIRST_LEFT_OUT {
            if room(&columns) >= wanted.min(WANTED_TEXT_COLUMNS) {
                break;
            }
            columns.retain(|column| column.head != head);
        }
        let mut room = room(&columns);
        if room < wanted.min(MIN_TEXT_COLUMNS) || wanted == 0 && room == 0 {
            return None;
        }
        // Why a run is as it is says more than what it is about.
        let about = columns.iter().position(|column| column.head == "ABOUT");
        let why_width = columns.iter().find(|column| column.head == "WHY").map_or(0, |column| column.width + 2);
        if let Some(column) = about.and_then(|at| columns.get_mut(at)) {
            let least = if why_width == 0 { room } else { room * 2 / 5 };
            let width = column.width.min(least.max(room.saturating_sub(why_width)).saturating_sub(2));
            let is_shown = width == column.width || width >= MIN_ABOUT_COLUMNS;
            column.width = if is_shown { width } else { 0 };
            room = room.saturating_sub(if is_shown { width + 2 } else { 0 });
        }
        columns.iter_mut().filter(|column| column.head == "WHY").for_each(|column| {
            column.width = column.width.min(room.saturating_sub(2));
        });
        columns.retain(|column| column.width > 0);
        Some(columns)
    }

    fn all(&self, runs: &[RunSummary]) -> Vec<TableColumn> {
        let cells = |of: &dyn Fn(&RunSummary) -> String| runs.iter().map(of).collect::<Vec<String>>();
        let line = |text: Option<&str>| escape::line(text.unwrap_or_default()).into_owned();
        let name = |run: &RunSummary| match self.columns {
            Some(_) => cut(&escape::line(&run.loop_name), MAX_NAME_COLUMNS),
            None => line(Some(&run.loop_name)),
        };
        vec![
            TableColumn::new("RUN", cells(&|run| line(Some(&run.run_id)))),
            TableColumn::new("LOOP", cells(&name)),
            TableColumn::new("STATUS", cells(&|run| run.listed_status().word().to_owned())),
            TableColumn::number("ITER.", cells(&|run| run.iterations.to_string())),
            TableColumn::number(
                "TOKENS",
                cells(&|run| run.tokens.filter(|tokens| *tokens > 0).map(count).unwrap_or_default()),
            ),
            TableColumn::new("COST", cells(&cost)),
            TableColumn::new("TIME", cells(&took)),
            TableColumn::new("AGE", cells(&|run| age(self.now_ms, run.started_at_ms))).at_least(AGE_COLUMNS),
            TableColumn::new("ORG", cells(&|run| line(run.org.as_deref()))),
            TableColumn::new("BY", cells(&|run| line(run.token.as_deref()))),
            TableColumn::new("ABOUT", cells(&|run| line(run.title.as_deref()))),
            TableColumn::new("WHY", cells(&|run| why(run, self.now_ms).into_owned())).dim(),
        ]
    }

    /// A run on several lines, for a narrow terminal.
    fn lines(&self, run: &RunSummary) -> String {
        let Self { look, now_ms, .. } = self;
        let (id, name) = (escape::line(&run.run_id), cut(&escape::line(&run.loop_name), MAX_NAME_COLUMNS));
        // Without the header of a table, the text must say that it is no duration.
        let age = match age(*now_ms, run.started_at_ms) {
            now if now == NOW => now,
            age => format!("{age} ago"),
        };
        let cost = Some(cost(run)).filter(|cost| !cost.is_empty()).map(|cost| format!(", {cost}"));
        let facts = format!("  {name}, {}{}, {age}", plural(run.iterations, "iteration"), cost.unwrap_or_default());
        let facts = look.paint(Tone::Dim, &cut(&facts, look.width.saturating_sub(11)));
        let word = look.paint(tone(run.listed_status()), &pad(run.listed_status().word(), 9));
        let mut shown = format!("{id}\n  {word}{facts}\n");
        let title = run.title.as_deref().map(escape::line);
        for text in title.into_iter().chain([why(run, *now_ms)]).filter(|text| !text.is_empty()) {
            shown.push_str(&format!("  {}\n", look.paint(Tone::Dim, &cut(&text, look.width.saturating_sub(2)))));
        }
        shown
    }
}

/// The tone of a status: what is queued is not under way yet.
fn tone(of: ListedStatus) -> Tone {
    match of {
        ListedStatus::Queued => Tone::Dim,
        other => status_tone(other.status()),
    }
}

/// How long a run took that has ended; the age of the others says it.
fn took(run: &RunSummary) -> String {
    run.duration_ms().map(|ms| duration(u64::try_from(ms).unwrap_or_default())).unwrap_or_default()
}

/// What a run cost, where that is known.
pub(super) fn cost(run: &RunSummary) -> String {
    run.cost_usd.filter(|cost| *cost > 0.0).map(dollars).unwrap_or_default()
}

/// What a run asks, why it failed, or that its model is away; otherwise the reason for its status, where the status alone does not say it.
pub(super) fn why(run: &RunSummary, now_ms: i64) -> Cow<'_, str> {
    if let (Some(wait), None) = (&run.model_wait, &run.question) {
        return escape::line(&model_wait::brief(wait, now_ms)).into_owned().into();
    }
    if let Some(first) = &run.behind {
        return format!("waits for run {} to end", escape::line(first)).into();
    }
    let own = run.question.as_deref().or(run.error.as_deref());
    match (own, run.status) {
        (Some(text), Status::Running) => format!("{}: {}", reason_of(run), escape::line(text)).into(),
        (Some(text), Status::Paused | Status::Failed | Status::Cancelled) => escape::line(text),
        _ => Cow::Borrowed(reason_of(run)),
    }
}

fn reason_of(run: &RunSummary) -> &'static str {
    match (run.status, run.termination) {
        (Status::Cancelled, None) if run.is_imported() => "imported before it ended",
        (Status::Cancelled, None) if run.is_read_only_copy() => "under way in Restate",
        (Status::Running, _) if run.waits_since_ms.is_some() => "a part of it waits for a human",
        (Status::Running, _) if !run.driven && run.iterations == 0 => "waits for a process to execute it",
        (Status::Running, _) if !run.driven => "interrupted; resumable",
        (Status::Quarantined, _) => "its process died 3 times or more; resumable",
        (Status::Cancelled, None) => "stopped; resumable",
        (Status::Completed | Status::Running, None) => "",
        (_, Some(Termination::Complete | Termination::Cancelled)) => "",
        (_, why) => why.map_or("", reason),
    }
}

/// The age of a run that started in this second.
const NOW: &str = "now";

/// The age of a run; a clock that went back makes it "now".
fn age(now_ms: i64, then_ms: i64) -> String {
    let elapsed = u64::try_from(now_ms.saturating_sub(then_ms)).unwrap_or(0);
    match elapsed {
        0..1_000 => NOW.to_owned(),
        1_000..60_000 => format!("{} s", elapsed / 1_000),
        60_000..3_600_000 => format!("{} min", elapsed / 60_000),
        3_600_000..172_800_000 => format!("{} h", elapsed / 3_600_000),
        _ => plural(elapsed / 86_400_000, "day"),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn run(id: &str, status: Status, termination: Option<Termination>) -> RunSummary {
        RunSummary {
            run_id: id.to_owned(),
            loop_name: "refund-check".to_owned(),
            session: None,
            title: None,
            status,
            termination,
            iterations: 3,
            started_at_ms: 1_769_941_800_000,
            updated_at_ms: 1_769_941_800_000,
            tokens: None,
            cost_usd: None,
            error: None,
            model_wait: None,
            unsent: Vec::new(),
            question: None,
            due_at_ms: None,
            schedule: None,
            scheduled_for_ms: None,
            behind: None,
            is_complete: true,
            driven: false,
            waits_since_ms: None,
            damaged: None,
            identity: String::new(),
            parent_run_id: None,
            org: None,
            token: None,
            callback: None,
        }
    }

    /// The runs five minutes after they started.
    fn shown(runs: &[RunSummary], columns: Option<usize>) -> String {
        let look = Look::plain(columns.unwrap_or(100));
        ShownRuns { look, columns, now_ms: 1_769_941_800_000 + 5 * 60_000 }.shown(runs)
    }

    #[test]
    fn runs_are_shown_in_a_table() {
        let runs = [
            RunSummary { cost_usd: Some(0.0421), ..run("agent-1", Status::Completed, Some(Termination::Complete)) },
            run("agent-2", Status::Failed, Some(Termination::Stuck)),
            run("agent-3", Status::Paused, Some(Termination::Human)),
            run("agent-4", Status::Running, None),
            run("agent-5", Status::Cancelled, None),
            run("agent-6", Status::Cancelled, Some(Termination::Cancelled)),
            run("agent-7", Status::Quarantined, None),
            RunSummary {
                error: Some("the model answered 401".to_owned()),
                cost_usd: Some(12.3),
                ..run("agent-8", Status::Failed, Some(Termination::ModelError))
            },
            RunSummary {
                question: Some("Refund 40 EUR?".to_owned()),
                ..run("agent-9", Status::Paused, Some(Termination::Human))
            },
        ];
        let text = shown(&runs, Some(110));
        insta::assert_snapshot!(text, @r#"
    RUN      LOOP          STATUS       ITER.  COST     TIME  AGE      WHY
    agent-1  refund-check  completed        3  $0.0421  0 ms  5 min
    agent-2  refund-check  failed           3           0 ms  5 min    the agent is stuck
    agent-3  refund-check  paused           3                 5 min    a question for a human
    agent-4  refund-check  queued           3                 5 min    interrupted; resumable
    agent-5  refund-check  cancelled        3                 5 min    stopped; resumable
    agent-6  refund-check  cancelled        3           0 ms  5 min
    agent-7  refund-check  quarantined      3                 5 min    its process died 3 times or more; resumable
    agent-8  refund-check  failed           3  $12.30   0 ms  5 min    the model answered 401
    agent-9  refund-check  paused           3                 5 min    Refund 40 EUR?
    "#);
    }

    #[test]
    fn a_terminal_gets_the_columns_that_it_has_room_for_and_a_pipe_all_of_them() {
        let title = "Check whether order A-17 of Ada may be refunded, and refund it if that is so";
        let runs = [
            RunSummary {
                title: Some(title.into()),
                tokens: Some(12_345),
                cost_usd: Some(0.0421),
                updated_at_ms: 1_769_941_800_000 + 72_000,
                org: Some("acme".to_owned()),
                token: Some("night-jobs".into()),
                ..run("agent-1", Status::Completed, Some(Termination::Complete))
            },
            RunSummary {
                title: Some("order: A-18".into()),
                question: Some(
                    "May order A-18 of Bob, who has had three refunds this month, be refunded too?".to_owned(),
                ),
                ..run("agent-2", Status::Paused, Some(Termination::Human))
            },
        ];
        insta::assert_snapshot!(shown(&runs, None), @r#"
    RUN      LOOP          STATUS     ITER.  TOKENS  COST     TIME        AGE      ORG   BY          ABOUT                                                                         WHY
    agent-1  refund-check  completed      3  12,345  $0.0421  1 min 12 s  5 min    acme  night-jobs  Check whether order A-17 of Ada may be refunded, and refund it if that is so
    agent-2  refund-check  paused         3                               5 min                      order: A-18                                                                   May order A-18 of Bob, who has had three refunds this month, be refunded too?
    "#);
        for columns in [64, 80, 100, 132, 200] {
            let text = shown(&runs, Some(columns));
            assert!(text.lines().all(|line| line.width() <= columns), "{columns}\n{text}");
            assert_eq!(text.lines().count(), 3, "{columns}\n{text}");
            assert_eq!(text.contains("TOKENS"), columns == 200, "{columns}\n{text}");
            assert_eq!(text.contains("Check whet"), columns > 64, "{columns}\n{text}");
            assert!(text.contains("May order A"), "{columns}\n{text}");
        }
    }

    #[test]
    fn a_narrow_terminal_gets_a_few_lines_a_run() {
        let runs =
            [run("agent-1", Status::Completed, Some(Termination::Complete)), run("agent-2", Status::Running, None)];
        insta::assert_snapshot!(shown(&runs, Some(50)), @r#"
    agent-1
      completed  refund-check, 3 iterations, 5 min ago
    agent-2
      queued     refund-check, 3 iterations, 5 min ago
      interrupted; resumable
    "#);
    }

    #[test]
    fn a_hostile_id_is_one_harmless_line() {
        let text = shown(&[run("a\u{1b}[2J\nb", Status::Failed, None)], Some(100));
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains(escape::is_hidden));
    }

    #[test]
    fn a_clock_that_went_back_makes_it_now() {
        assert_eq!(age(0, 5_000), "now");
        assert_eq!(age(0, -2 * 86_400_000), "2 days");
    }
}
