//! The items of a workflow's loops on the page: a table of what each of them was and what came of it, and below it the steps of each
//! with their texts, so that somebody who was not there can check them.

use std::fmt::Write as _;

use super::steps::{badge, card};
use crate::decision::decision_record::DecisionRecord;
use crate::flow::item_log::LoopItems;
use crate::flow::item_row::ItemRow;
use crate::trace::decision::decision_sentence;
use crate::trace::escape::{exact_html, html as escaped};
use crate::trace::json::on_one_line;
use crate::trace::steps::{item_label, totals};
use crate::trace::units::count;

/// The items of the loops, each with the decisions about it and its steps. `left_out`: how many steps are not among them.
pub fn items(loops: &[LoopItems], decisions: &[DecisionRecord], left_out: usize) -> String {
    let mut page = String::new();
    for of_loop in loops {
        let _ = writeln!(
            page,
            "<h2 class=\"title\">Items of {}</h2>\n<p>{}</p>",
            exact_html(&of_loop.at),
            escaped(&totals(&of_loop.items))
        );
        table(&mut page, of_loop, decisions);
        for row in &of_loop.items.rows {
            steps(&mut page, of_loop, row, decisions);
        }
    }
    if left_out > 0 {
        let left = count(u64::try_from(left_out).unwrap_or(u64::MAX));
        let _ = writeln!(page, "<p class=\"meta\">{left} more steps of items are not shown</p>");
    }
    page
}

fn about<'d>(address: &str, decisions: &'d [DecisionRecord]) -> impl Iterator<Item = &'d DecisionRecord> {
    let prefix = format!("{address}.");
    decisions.iter().filter(move |record| record.step.as_deref().is_some_and(|at| at.starts_with(&prefix)))
}

fn table(page: &mut String, of_loop: &LoopItems, decisions: &[DecisionRecord]) {
    page.push_str(
        "<table class=\"items\">\n<thead><tr><th scope=\"col\">Item</th><th scope=\"col\">What it is</th>\
         <th scope=\"col\">Result</th><th scope=\"col\">Decided</th><th scope=\"col\">State</th></tr></thead>\n<tbody>\n",
    );
    for row in &of_loop.items.rows {
        let address = format!("{}.{}", of_loop.at, row.index);
        let (label, rest) = item_label(row);
        let rest =
            if rest.is_empty() { String::new() } else { format!(" <span class=\"meta\">{}</span>", escaped(&rest)) };
        let decided: Vec<String> =
            about(&address, decisions).map(|record| escaped(&decision_sentence(record))).collect();
        let _ = writeln!(
            page,
            "<tr class=\"{}\"><th scope=\"row\"><a href=\"#{}\">{}</a></th><td>{}{rest}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.status.word(),
            escaped(&address),
            row.index,
            escaped(&label),
            result(row),
            decided.join("<br>"),
            badge(row.status)
        );
    }
    page.push_str("</tbody>\n</table>\n");
    let more = usize::try_from(of_loop.items.total).unwrap_or(usize::MAX).saturating_sub(of_loop.items.rows.len());
    if more > 0 {
        let more = count(u64::try_from(more).unwrap_or(u64::MAX));
        let _ = writeln!(page, "<p class=\"meta\">{more} more items of {} are not shown</p>", exact_html(&of_loop.at));
    }
}

/// What came of an item: why it failed, or what was gathered of it.
fn result(row: &ItemRow) -> String {
    match (&row.error, &row.output) {
        (Some(error), _) => format!("<span class=\"error\">{}</span>", escaped(error)),
        (None, Some(serde_json::Value::String(text))) => escaped(text),
        (None, Some(other)) => escaped(&on_one_line(other)),
        (None, None) => String::new(),
    }
}

fn steps(page: &mut String, of_loop: &LoopItems, row: &ItemRow, decisions: &[DecisionRecord]) {
    let Some(steps) = of_loop.steps.get(&row.index).filter(|steps| !steps.is_empty()) else { return };
    let address = format!("{}.{}", of_loop.at, row.index);
    let (label, _) = item_label(row);
    let _ = writeln!(
        page,
        "<details class=\"item\" id=\"{}\"><summary><code>{}</code> <span>{}</span> {}</summary>\n<ol class=\"steps\">",
        escaped(&address),
        exact_html(&address),
        escaped(&label),
        badge(row.status)
    );
    for step in steps {
        let own = decisions.iter().filter(|record| record.step.as_deref() == Some(step.at.as_str()));
        page.push_str(&card(step, own));
    }
    page.push_str("</ol>\n</details>\n");
}
