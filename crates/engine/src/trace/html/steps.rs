//! The steps of a workflow on the page: in a trace, and alone at an address.

use std::fmt::Write as _;

use super::value::boxed;
use super::{Show, folded, head, time};
use crate::decision::decision_record::DecisionRecord;
use crate::flow::record::{ItemCounts, StepRecord, StepStatus};
use crate::flow::view::{ItemsView, StepView};
use crate::outcome::Termination;
use crate::question::StepQuestion;
use crate::trace::decision::decision_sentence;
use crate::trace::entries::step_attempts;
use crate::trace::escape::{exact_html, html as escaped};
use crate::trace::step_text::after_a_no;
use crate::trace::steps::{MOST_ROWS, as_call, chosen_case, counted, failure, notable, totals};
use crate::trace::text::took;
use crate::trace::units::{count, rfc3339};
use crate::trace::{About, approval};

/// The steps of a workflow, each with the decisions about it and the steps in it.
pub fn steps(steps: &[StepRecord], decisions: &[DecisionRecord]) -> String {
    let mut page = String::from("<h2 class=\"title\">Steps</h2>\n<ol class=\"steps\">\n");
    for step in steps {
        let is_about = |decided: &str| {
            decided.strip_prefix(step.at.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let about = decisions.iter().filter(|record| record.step.as_deref().is_some_and(is_about));
        page.push_str(&card(step, about));
    }
    page.push_str("</ol>\n");
    page
}

/// The page of the steps at an address.
pub fn view(about: &About<'_>, run_id: &str, view: &StepView) -> String {
    let title = format!("{} · {}", about.loop_name, view.at.as_deref().unwrap_or(run_id));
    let mut page = head(&title, view.status);
    let status = view.status.word();
    let _ = write!(
        page,
        "<header>\n<p class=\"run\">{}</p>\n<h1>{}</h1>\n<p class=\"state\"><span class=\"status {status}\">{status}</span>\
         </p>\n</header>\n<main>\n",
        escaped(run_id),
        escaped(about.loop_name)
    );
    if let Some(at) = &view.at {
        let _ = write!(page, "<p class=\"address\"><code>{}</code>", exact_html(at));
        if let Some(label) = &view.item_label {
            let _ = write!(page, " {}", escaped(label));
        }
        if let Some(item) = view.item {
            let _ = write!(page, " {}", badge(item));
        }
        page.push_str("</p>\n");
    }
    if !view.questions.is_empty() {
        page.push_str(&questions(&view.questions, view.waiting));
    }
    page.push_str(&steps(&view.steps, &[]));
    if let Some(items) = &view.items {
        page.push_str(&self::items(view.at.as_deref().unwrap_or_default(), items));
    }
    page.push_str("</main>\n");
    page.push_str(super::END);
    page
}

pub(super) fn badge(status: StepStatus) -> String {
    format!("<span class=\"status {0}\">{0}</span>", status.word())
}

pub(super) fn card<'a>(step: &StepRecord, decisions: impl Iterator<Item = &'a DecisionRecord>) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "<li class=\"row {}\">\n<p class=\"action\"><code>{}</code> <span class=\"kind\">{}</span> {}</p>\n",
        step.status.word(),
        exact_html(&step.at),
        escaped(&step.kind),
        badge(step.status)
    );
    let started = step.started_at_ms.filter(|_| step.status != StepStatus::Skipped);
    if let Some(at_ms) = started {
        let _ = write!(page, "<p class=\"meta\">{}", time(&rfc3339(at_ms), Show::Day));
        if let Some(end_ms) = step.finished_at_ms {
            let _ = write!(page, " – {}", time(&rfc3339(end_ms), Show::Clock));
        }
        let took = took(step.duration_ms());
        let _ = writeln!(page, "{}{took}</p>", if took.is_empty() { "" } else { " · " });
    }
    if let Some(items) = &step.items {
        page.push_str(&bar(items));
        page.push_str(&folded("meta", &counted(items)));
        page.push_str(&failed(&step.at, items));
    }
    if let Some(case) = &step.case {
        let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(&chosen_case(case)));
    }
    if let Some(error) = &step.error {
        page.push_str(&folded("error", &failure(error)));
    }
    for sentence in step_attempts(step) {
        page.push_str(&folded("meta", &sentence));
    }
    if let Some(run_id) = &step.run_id {
        let _ = writeln!(page, "<p class=\"meta\">run <code>{}</code></p>", exact_html(run_id));
    }
    for record in decisions {
        let at = record.step.as_deref().filter(|at| *at != step.at);
        let at = at.map(|at| format!("{at}: ")).unwrap_or_default();
        page.push_str(&folded("meta", &format!("{at}{}", decision_sentence(record))));
    }
    for (name, value) in [("in", step.input.as_deref()), ("out", step.output.as_ref())] {
        if let Some(value) = value {
            page.push_str(&boxed(name, value));
        }
    }
    page.push_str("</li>\n");
    page
}

/// How many items ended in each way, as the parts of a bar. A part has its width in percent of all.
fn bar(items: &ItemCounts) -> String {
    let of = |part: u32| f64::from(part) * 100.0 / f64::from(items.total.max(1));
    let parts = [
        ("completed", items.completed),
        ("failed", items.failed),
        ("skipped", items.skipped),
        ("cancelled", items.cancelled),
    ];
    let parts = parts.iter().filter(|(_, part)| *part > 0);
    let parts: String =
        parts.map(|(kind, part)| format!("<span class=\"{kind}\" style=\"width:{:.3}%\"></span>", of(*part))).collect();
    format!("<p class=\"bar\" aria-hidden=\"true\">{parts}</p>\n")
}

/// The numbers of the first items that failed.
fn failed(at: &str, items: &ItemCounts) -> String {
    const SHOWN: usize = 20;
    let (Some(first), shown) = (items.failed_indexes.first(), items.failed_indexes.iter().take(SHOWN)) else {
        return String::new();
    };
    let numbers = shown.map(u32::to_string).collect::<Vec<_>>().join(", ");
    let more = if items.failed_indexes.len() > SHOWN { " …" } else { "" };
    format!("<p class=\"meta\">failed: {numbers}{more} (--at {}.{first} shows the first)</p>\n", exact_html(at))
}

/// The counts of a loop, and the items that are worth a look.
fn items(at: &str, items: &ItemsView) -> String {
    let mut page = format!("<h2 class=\"title\">Items</h2>\n<p>{}</p>\n", escaped(&totals(items)));
    let rows: Vec<_> = notable(items).take(MOST_ROWS).collect();
    if rows.is_empty() {
        return page;
    }
    page.push_str("<ol class=\"grid\">\n");
    for row in &rows {
        let status = row.status.word();
        let label = row.label.as_deref().map(|label| format!(" {}", escaped(label))).unwrap_or_default();
        let _ = writeln!(page, "<li class=\"{status}\" title=\"{status}\">{}{label}</li>", row.index);
    }
    page.push_str("</ol>\n");
    let more = notable(items).count() - rows.len();
    let more =
        if more > 0 { format!("and {} more; ", count(u64::try_from(more).unwrap_or(u64::MAX))) } else { String::new() };
    let _ = writeln!(page, "<p class=\"meta\">{more}--at {}.N shows an item</p>", exact_html(at));
    page
}

/// The data and the fields of a form with types.
fn form(question: &StepQuestion) -> String {
    let mut page = question.show.as_ref().map(|data| super::value::exactly("in", data)).unwrap_or_default();
    for field in &question.fields {
        let required = if field.required { " · required" } else { "" };
        let (name, label) = (exact_html(&field.name), field.label.as_deref().map(escaped).unwrap_or_default());
        let note = escaped(&field.note());
        let _ = writeln!(page, "<p><code>{name}</code> {label} <span class=\"meta\">{note}{required}</span></p>");
    }
    page
}

/// What the steps of a workflow that wait ask.
pub fn questions(questions: &[StepQuestion], waiting: usize) -> String {
    let asks_human = questions.iter().any(|question| !question.question.kind.needs_no_human());
    let title = if asks_human { "Waits for a human" } else { "Waits" };
    let mut page = format!("<section class=\"note wait\">\n<h2>{title}</h2>\n");
    for question in questions {
        let kind = match question.question.kind {
            Termination::Approval => "an approval",
            Termination::Uncertain => "it is not known whether it happened",
            Termination::Stuck => "is stuck",
            Termination::ModelError => "waits for its model, which can't be reached",
            Termination::Waiting => "waits for a time",
            Termination::WaitingEvent => "waits for an event",
            Termination::SpendingLimit => "waits for room in a spending limit",
            _ if !question.expected_keys.is_empty() => "a form",
            _ => "a question",
        };
        let _ = write!(
            page,
            "<p class=\"action\"><code>{}</code>{} <span class=\"meta\">{kind}</span></p>\n<p>{}</p>\n",
            exact_html(&question.at),
            question.item_label.as_deref().map(|label| format!(" {}", escaped(label))).unwrap_or_default(),
            escaped(&question.question.text)
        );
        if let Some(run_id) = &question.question.run_id {
            let _ = writeln!(page, "<p class=\"meta\">asked by the run {}</p>", exact_html(run_id));
        }
        for call in as_call(question).iter().chain(&question.calls) {
            page.push_str(&super::value::exactly("in", &call.action_input));
            for fact in approval::facts(call) {
                let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(&fact));
            }
        }
        page.push_str(&form(question));
        if let Some(fact) = after_a_no(question) {
            let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(fact));
        }
    }
    if waiting > questions.len() {
        let _ = writeln!(page, "<p class=\"meta\">and {} more steps</p>", waiting - questions.len());
    }
    page.push_str("</section>\n");
    page
}
