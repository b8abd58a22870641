//! Thresholds of stuck detection on a page: a plot, and the table behind it.

use std::fmt::Write as _;

use super::{END, head};
use crate::outcome::Status;
use crate::trace::escape::html as escaped;
use crate::trace::tuning::{ThresholdTally, Tuning};
use crate::trace::units::{count, plural};

/// The size of the plot, and its margins.
const WIDTH: usize = 640;
const HEIGHT: usize = 240;
const LEFT: usize = 44;
const TOP: usize = 16;
const BOTTOM: usize = 34;

/// The page.
pub fn tuning(tuning: &Tuning) -> String {
    let name = tuning.loop_name.as_deref().unwrap_or("all loops");
    let mut page = head(&format!("on_stuck · {name}"), Status::Running);
    let _ = write!(
        page,
        "<header>\n<h1>on_stuck: {}</h1>\n<p class=\"objective\">{} that ended, {} of them completed. What each \
         threshold of <code>on_stuck.iterations</code> would have stopped.</p>\n</header>\n<main>\n",
        escaped(name),
        plural(tuning.runs, "run"),
        count(u64::try_from(tuning.completed).unwrap_or(u64::MAX)),
    );
    page.push_str(&plot(tuning));
    page.push_str(
        "<table class=\"tuning\">\n<tr><th scope=\"col\">iterations</th><th scope=\"col\">stopped</th>\
         <th scope=\"col\">false stops</th><th scope=\"col\">tokens saved</th><th scope=\"col\">runs with it</th></tr>\n",
    );
    for row in &tuning.thresholds {
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.iterations,
            row.stopped,
            row.false_stops,
            count(row.tokens_saved),
            row.in_use
        );
    }
    page.push_str("</table>\n</main>\n");
    page.push_str(END);
    page
}

/// Bars by threshold: the runs that it stops, in two parts.
fn plot(tuning: &Tuning) -> String {
    let rows = &tuning.thresholds;
    let most = rows.iter().map(|row| row.stopped).max().unwrap_or(0).max(1);
    let room = HEIGHT - TOP - BOTTOM;
    let slot = (WIDTH - LEFT) / rows.len().max(1);
    let bar = (slot * 3 / 5).clamp(1, 60);
    let mut svg = format!(
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Stopped runs by threshold\">\n"
    );
    let base = HEIGHT - BOTTOM;
    for mark in marks(most) {
        let y = base - mark * room / most;
        let _ = writeln!(
            svg,
            "<line class=\"rule\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y}\" y2=\"{y}\"/><text x=\"{}\" y=\"{}\" \
             text-anchor=\"end\">{mark}</text>",
            LEFT - 8,
            y + 4
        );
    }
    for (at, row) in rows.iter().enumerate() {
        let x = LEFT + at * slot + (slot - bar) / 2;
        bars(&mut svg, row, &BarPlace { x, bar, base, unit: (room, most) });
    }
    svg.push_str(
        "</svg>\n<figcaption class=\"meta\"><span class=\"right\">■</span> stopped, and not completed later \
         <span class=\"wrong\">■</span> false stops: completed later</figcaption>\n</figure>\n",
    );
    svg
}

struct BarPlace {
    x: usize,
    bar: usize,
    base: usize,
    /// The height of a number of runs: the number, and the height.
    unit: (usize, usize),
}

fn bars(svg: &mut String, row: &ThresholdTally, place: &BarPlace) {
    let BarPlace { x, bar, base, unit: (room, most) } = *place;
    let all = row.stopped * room / most;
    let wrong = row.false_stops * room / most;
    let right = all.saturating_sub(wrong);
    let _ = writeln!(
        svg,
        "<g><title>{} iterations: {} stopped, {} of them false stops</title>\
         <rect class=\"right\" x=\"{x}\" y=\"{}\" width=\"{bar}\" height=\"{right}\"/>\
         <rect class=\"wrong\" x=\"{x}\" y=\"{}\" width=\"{bar}\" height=\"{wrong}\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>",
        row.iterations,
        row.stopped,
        row.false_stops,
        base - wrong - right,
        base - wrong,
        x + bar / 2,
        base + 20,
        row.iterations,
    );
}

/// The numbers at the side: 0, the most, and one between.
fn marks(most: usize) -> Vec<usize> {
    let mut marks = vec![0, most / 2, most];
    marks.dedup();
    marks
}
