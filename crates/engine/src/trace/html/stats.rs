//! A report over runs on a page: plots by day, and tables by loop, organisation, model and tool.

use std::fmt::Write as _;

use super::{END, head};
use crate::outcome::Status;
use crate::run_stats::{LimitUse, ModelFigures, RunFigures, RunGroup, RunStats, ToolFigures};
use crate::trace::escape::html as escaped;
use crate::trace::units::{count, dollars, duration, plural};

/// The size of a plot, and its margins.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;
/// The most labels below a plot.
const MAX_LABELS: usize = 8;

/// A plot of bars, each of parts on each other.
struct BarPlot<'a> {
    title: &'a str,
    bars: Vec<Bar>,
    /// The class of each part, and what it says.
    parts: &'a [(&'a str, &'a str)],
    /// A value as it is shown.
    shown: fn(f64) -> String,
}

/// A bar: its label, and the values of its parts.
struct Bar {
    label: String,
    values: Vec<f64>,
}

/// The page.
pub fn run_stats(report: &RunStats) -> String {
    let mut page = head("runs", Status::Running);
    let span = match (&report.since, &report.until) {
        (None, None) => "all times".to_owned(),
        (Some(since), None) => format!("since {since}"),
        (None, Some(until)) => format!("before {until}"),
        (Some(since), Some(until)) => format!("{since} to {until}"),
    };
    let _ = write!(
        page,
        "<header>\n<h1>{}</h1>\n<p class=\"objective\">{}; days are of {}</p>\n",
        plural(report.total.runs, "run"),
        escaped(&span),
        escaped(&report.zone)
    );
    facts(&mut page, &report.total);
    page.push_str("</header>\n<main>\n");
    plots(&mut page, &report.days);
    for (title, head, groups) in [
        ("Loops", "loop", &report.loops),
        ("Days", "day", &report.days),
        ("Organisations", "organisation", &report.orgs),
    ] {
        let is_one = head == "organisation" && report.by.is_none() && groups.len() < 2;
        if !groups.is_empty() && !is_one {
            of_groups(&mut page, title, head, groups);
        }
    }
    of_models(&mut page, &report.models);
    of_tools(&mut page, &report.tools);
    of_limits(&mut page, &report.limits);
    left_out(&mut page, report);
    page.push_str("</main>\n");
    page.push_str(END);
    page
}

/// The numbers of all runs.
fn facts(page: &mut String, total: &RunFigures) {
    page.push_str("<dl>\n");
    let share = total.failed_share().map(|share| format!("{:.1} %", share * 100.0));
    let time = |ms: Option<i64>| ms.map(|ms| duration(u64::try_from(ms).unwrap_or_default()));
    let stuck: u64 = total.stuck.values().sum();
    let facts = [
        ("Completed", Some(count(total.completed))),
        ("Failed", Some(count(total.failed))),
        ("Failed share", share),
        ("Half within", time(total.p50_ms)),
        ("95 % within", time(total.p95_ms)),
        ("Tokens", Some(count(total.tokens))),
        ("Cost", Some(run_cost(total))),
        ("Retries", Some(count(total.model_retries.saturating_add(total.tool_retries)))),
        ("In circles", Some(count(stuck))),
        ("Waited for humans", Some(duration(total.human_wait_ms))),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
        }
    }
    page.push_str("</dl>\n");
}

fn plots(page: &mut String, days: &[RunGroup]) {
    if days.is_empty() {
        return;
    }
    let bars = |of: fn(&RunFigures) -> Vec<f64>| {
        days.iter().map(|day| Bar { label: day.key.clone(), values: of(&day.figures) }).collect()
    };
    let whole: fn(f64) -> String = |value| format!("{value:.0}");
    let of_ms: fn(f64) -> String = |seconds| format!("{seconds:.1} s");
    for plot in [
        BarPlot {
            title: "Runs by day",
            bars: bars(|day| {
                let rest = day.cancelled.saturating_add(day.paused).saturating_add(day.open);
                vec![number(day.completed), number(day.failed), number(rest)]
            }),
            parts: &[("right", "completed"), ("wrong", "failed"), ("rest", "cancelled, paused or open")],
            shown: whole,
        },
        BarPlot {
            title: "Cost by day",
            bars: bars(|day| vec![day.cost_usd]),
            parts: &[("spent", "US dollars, as far as prices are known")],
            shown: dollars,
        },
        BarPlot {
            title: "Time by day",
            bars: bars(|day| {
                let seconds =
                    |ms: Option<i64>| number(u64::try_from(ms.unwrap_or_default()).unwrap_or_default()) / 1000.0;
                vec![seconds(day.p50_ms), (seconds(day.p95_ms) - seconds(day.p50_ms)).max(0.0)]
            }),
            parts: &[("right", "half of the runs ended within"), ("rest", "95 % ended within")],
            shown: of_ms,
        },
    ] {
        plot.draw(page);
    }
}

impl BarPlot<'_> {
    fn draw(&self, page: &mut String) {
        let most = self.bars.iter().map(|bar| bar.values.iter().sum::<f64>()).fold(0.0, f64::max);
        if most <= 0.0 {
            return;
        }
        let _ = write!(
            page,
            "<h2 class=\"title\">{0}</h2>\n<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">\n",
            self.title
        );
        let (base, room) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
        for mark in [0.0, most / 2.0, most] {
            let y = base - mark / most * room;
            let _ = writeln!(
                page,
                "<line class=\"rule\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escaped(&(self.shown)(mark))
            );
        }
        let slot = (WIDTH - LEFT - RIGHT) / number(u64::try_from(self.bars.len()).unwrap_or(1)).max(1.0);
        let every = self.bars.len().div_ceil(MAX_LABELS).max(1);
        let mut x = LEFT;
        for (at, bar) in self.bars.iter().enumerate() {
            self.bar(page, bar, (x, slot), (base, room / most));
            if at % every == 0 {
                let _ = writeln!(
                    page,
                    "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    x + slot / 2.0,
                    base + 18.0,
                    escaped(&bar.label)
                );
            }
            x += slot;
        }
        page.push_str("</svg>\n<figcaption class=\"meta\">");
        for (class, says) in self.parts {
            let _ = write!(page, "<span class=\"{class}\">■</span> {} ", escaped(says));
        }
        page.push_str("</figcaption>\n</figure>\n");
    }

    /// A bar, with what it says to a pointer and a reader of screens.
    fn bar(&self, page: &mut String, bar: &Bar, place: (f64, f64), scale: (f64, f64)) {
        let ((x, slot), (base, unit)) = (place, scale);
        let width = (slot * 0.7).clamp(1.0, 48.0);
        let said: Vec<String> = bar
            .values
            .iter()
            .zip(self.parts)
            .map(|(value, (_, says))| format!("{} {says}", (self.shown)(*value)))
            .collect();
        let _ = write!(page, "<g><title>{}: {}</title>", escaped(&bar.label), escaped(&said.join(", ")));
        let mut y = base;
        for (value, (class, _)) in bar.values.iter().zip(self.parts) {
            let height = value * unit;
            y -= height;
            let _ = write!(
                page,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                x + (slot - width) / 2.0
            );
        }
        page.push_str("</g>\n");
    }
}

/// A table; the first cell of a row is its head.
fn table(page: &mut String, title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = write!(
        page,
        "<h2 class=\"title\">{title}</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table class=\"tuning\">\n<tr>"
    );
    for head in heads {
        let _ = write!(page, "<th scope=\"col\">{head}</th>");
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = match at {
                0 => write!(page, "<th scope=\"row\">{}</th>", escaped(cell)),
                _ => write!(page, "<td>{}</td>", escaped(cell)),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn of_groups(page: &mut String, title: &str, head: &str, groups: &[RunGroup]) {
    let heads = [
        head,
        "runs",
        "completed",
        "failed",
        "cancelled",
        "paused",
        "open",
        "half within",
        "95 % within",
        "tokens",
        "cost",
        "retries",
        "in circles",
        "waited for humans",
    ];
    let row = |group: &RunGroup| {
        let figures = &group.figures;
        let time = |ms: Option<i64>| ms.map(|ms| duration(u64::try_from(ms).unwrap_or_default())).unwrap_or_default();
        let key = if group.key.is_empty() { "(none)" } else { &group.key };
        vec![
            key.to_owned(),
            count(figures.runs),
            count(figures.completed),
            count(figures.failed),
            count(figures.cancelled),
            count(figures.paused),
            count(figures.open),
            time(figures.p50_ms),
            time(figures.p95_ms),
            count(figures.tokens),
            run_cost(figures),
            count(figures.model_retries.saturating_add(figures.tool_retries)),
            count(figures.stuck.values().sum()),
            duration(figures.human_wait_ms),
        ]
    };
    table(page, title, &heads, groups.iter().map(row));
}

fn of_models(page: &mut String, models: &[ModelFigures]) {
    if models.is_empty() {
        return;
    }
    let heads = ["model", "replies", "retries", "half within", "95 % within", "input", "cached", "output", "cost"];
    let row = |model: &ModelFigures| {
        vec![
            model.key.clone(),
            count(model.replies),
            count(model.retries),
            model.p50_ms.map(duration).unwrap_or_default(),
            model.p95_ms.map(duration).unwrap_or_default(),
            count(model.input_tokens),
            count(model.cached_input_tokens),
            count(model.output_tokens),
            model.cost_usd.map_or_else(|| "not known".to_owned(), dollars),
        ]
    };
    table(page, "Models", &heads, models.iter().map(row));
}

fn of_tools(page: &mut String, tools: &[ToolFigures]) {
    if tools.is_empty() {
        return;
    }
    let heads = ["tool", "calls", "failed", "retries", "half within", "95 % within"];
    let row = |tool: &ToolFigures| {
        vec![
            tool.key.clone(),
            count(tool.calls),
            count(tool.failed),
            count(tool.retries),
            tool.p50_ms.map(duration).unwrap_or_default(),
            tool.p95_ms.map(duration).unwrap_or_default(),
        ]
    };
    table(page, "Tools", &heads, tools.iter().map(row));
}

fn of_limits(page: &mut String, limits: &[LimitUse]) {
    if limits.is_empty() {
        return;
    }
    let heads = ["limit of", "every", "used", "tokens", "most", "cost", "most", "reserved tokens", "until"];
    let row = |limit: &LimitUse| {
        vec![
            limit.of.clone(),
            limit.every.clone(),
            format!("{:.0} %", limit.used * 100.0),
            count(limit.tokens),
            limit.most_tokens.map(count).unwrap_or_default(),
            dollars(limit.cost_usd),
            limit.most_usd.map(dollars).unwrap_or_default(),
            count(limit.reserved_tokens),
            limit.until.clone().unwrap_or_default(),
        ]
    };
    table(page, "Spending limits", &heads, limits.iter().map(row));
}

/// What the report lacks.
fn left_out(page: &mut String, report: &RunStats) {
    let remarks = run_remarks(report);
    if remarks.is_empty() {
        return;
    }
    page.push_str("<section class=\"note wait\">\n<h2>What the report lacks</h2>\n");
    remarks.iter().for_each(|remark| {
        let _ = writeln!(page, "<p>{}</p>", escaped(remark));
    });
    page.push_str("</section>\n");
}

/// What runs cost, as far as prices are known.
pub fn run_cost(figures: &RunFigures) -> String {
    match (figures.unpriced_runs > 0, figures.cost_usd > 0.0) {
        (false, _) => dollars(figures.cost_usd),
        (true, true) => format!("{} and more", dollars(figures.cost_usd)),
        (true, false) => "not known".to_owned(),
    }
}

/// What the report lacks, a sentence each.
pub fn run_remarks(report: &RunStats) -> Vec<String> {
    let RunStats { total, left_out, .. } = report;
    let mut remarks = Vec::new();
    if left_out.older_runs {
        remarks.push(format!("older runs are left out: the newest {} are counted", plural(total.runs, "run")));
    }
    if left_out.journals > 0 {
        remarks.push(format!(
            "retries, stuck patterns, waits, models and tools are those of the newest {}: the journals of {} were not read",
            plural(total.journals, "run"),
            count(left_out.journals)
        ));
    }
    if left_out.unreadable > 0 {
        remarks.push(format!("the journals of {} can't be read whole", plural(left_out.unreadable, "run")));
    }
    if total.unpriced_runs > 0 {
        remarks.push(format!("the cost lacks {} with tokens of unknown price", plural(total.unpriced_runs, "run")));
    }
    if total.unknown_runs > 0 {
        let runs = plural(total.unknown_runs, "run");
        remarks.push(format!("the tokens of {runs} that an older version wrote are not known"));
    }
    remarks
}

fn number(value: u64) -> f64 {
    f64::from(u32::try_from(value).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_without_a_price_is_not_shown_as_none() {
        let shown =
            |cost_usd, unpriced_runs| run_cost(&RunFigures { cost_usd, unpriced_runs, ..RunFigures::default() });
        assert_eq!((shown(0.0, 0), shown(2.0, 0)), ("$0.0000".to_owned(), "$2.00".to_owned()));
        assert_eq!((shown(0.0, 1), shown(2.0, 1)), ("not known".to_owned(), "$2.00 and more".to_owned()));
    }
}
