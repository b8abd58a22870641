//! The trace as one HTML file: no scripts, no external resources, everything escaped.

mod comparison;
mod items;
mod prompt;
mod stats;
mod steps;
mod tuning;
mod value;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use self::value::{boxed, exactly, prose};
use super::continuation::continuations_after;
use super::decision::{decision_sentence, decision_sentence_of, decisions_about, decisions_about_no_call};
use super::entries::{attempt_sentence, call_attempts, call_sentence, times};
use super::escape::{exact_html, html as escaped};
use super::prompts::SentPrompts;
use super::question_post::post_sentence;
use super::reason::{notes_sentence, reason};
use super::refused_replies::{ShownRefusals, unsaid};
use super::result::{PauseView, RunResult};
use super::text::{text_of_pretty, took};
use super::units::{count, dollars, duration, plural, rfc3339};
use super::{About, approval};
use crate::decision::decision_record::DecisionRecord;
use crate::flow::item_log::LoopItems;
use crate::flow::record::StepRecord;
use crate::outcome::{Status, Termination};
use crate::record::TraceEntry;
use crate::reply::refusal::RefusalCause;

#[cfg(test)]
mod tests;

/// The page's style; colours follow the system of the reader.
const STYLE: &str = include_str!("html/style.css");
/// A longer text is folded, in characters.
const LONG: usize = 900;

pub use comparison::{beside, words as difference_words};
pub use stats::{run_cost, run_remarks, run_stats};
pub use steps::view as steps_at;
pub use tuning::tuning;

/// The steps of a workflow and of the items of its loops, with secrets hidden.
#[derive(Debug, Default)]
pub struct ShownItems {
    /// The steps of the workflow itself that ended, by address, with their inputs and outputs.
    pub steps: BTreeMap<String, StepRecord>,
    /// The loops.
    pub loops: Vec<LoopItems>,
    /// How many steps of items are not among them.
    pub left_out: usize,
}

/// The page of a run. `result` must hold the trace; `prompts` let the reader step through it, and of a workflow `items` are shown with
/// their steps.
pub fn html(about: &About<'_>, result: &RunResult, prompts: &SentPrompts, items: &ShownItems) -> String {
    let mut page = head(&format!("{} · {}", about.loop_name, result.run_id), result.status);
    header(&mut page, about, result);
    page.push_str("<main>\n");
    if let Some(waiting) = &result.pause {
        pause(&mut page, waiting);
    }
    if let Some(error) = &result.error {
        let by = result.cancelled_by.as_deref().map(|by| format!(" (by {by})")).unwrap_or_default();
        note(&mut page, "bad", &error.code, &format!("{}{by}", error.message));
    }
    if let Some(stuck) = &result.stuck {
        let (first, last) = stuck.iterations;
        note(&mut page, "wait", &format!("In circles, iterations {first} to {last}"), &stuck.detail);
    }
    if let Some(answer) = &result.result {
        let _ = write!(page, "<section class=\"answer\">\n<h2>Answer</h2>\n{}", prose(&answer.answer));
        let confidence = answer.confidence.as_ref().map(|confidence| format!("confidence {confidence}"));
        let says: Vec<String> =
            confidence.into_iter().chain(answer.summary.clone()).map(|text| escaped(&text)).collect();
        if !says.is_empty() {
            let _ = writeln!(page, "<p class=\"meta\">{}</p>", says.join(" · "));
        }
        page.push_str("</section>\n");
    }
    if !result.steps.is_empty() {
        let whole = |step: &StepRecord| items.steps.get(&step.at).unwrap_or(step).clone();
        page.push_str(&steps::steps(&result.steps.iter().map(whole).collect::<Vec<_>>(), &result.decisions));
        page.push_str(&items::items(&items.loops, &result.decisions, items.left_out));
    }
    if !result.asked.is_empty() {
        page.push_str("<h2 class=\"title\">Asked</h2>\n");
        page.extend(result.asked.iter().map(|post| folded("meta", &post_sentence(post))));
    }
    iterations(&mut page, result, prompts);
    page.push_str("</main>\n");
    page.push_str(END);
    page
}

/// The end of a page.
const END: &str =
    concat!("<footer>written by loopctl ", env!("CARGO_PKG_VERSION"), "; times are UTC</footer>\n</body>\n</html>\n");

/// The begin of a page.
fn head(title: &str, status: Status) -> String {
    let mut page = String::with_capacity(16 * 1024);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body class=\"{}\">\n",
        escaped(title),
        status.word()
    );
    page
}

fn header(page: &mut String, about: &About<'_>, result: &RunResult) {
    let status = result.status.word();
    let why = match result.termination {
        None | Some(Termination::Complete | Termination::Cancelled) => String::new(),
        Some(termination) => format!(" <span class=\"why\">{}</span>", reason(termination)),
    };
    let _ = write!(
        page,
        "<header>\n<p class=\"run\">{}</p>\n<h1>{}</h1>\n<p class=\"state\"><span class=\"status {status}\">{status}</span>\
         {why}</p>\n{}",
        escaped(&result.run_id),
        escaped(about.loop_name),
        folded("objective", about.objective)
    );
    page.extend(result.fork_of.iter().map(|fork| folded("meta", &fork.sentence())));
    page.extend(result.webhook.iter().map(|webhook| folded("meta", &webhook.sentence())));
    page.push_str("<dl>\n");
    let about_word = result.usage.about();
    let mut facts = match result.steps.len() {
        0 => vec![
            ("Model", about.model.to_owned()),
            ("Iterations", count(u64::from(result.iterations))),
            ("Tool calls", count(u64::from(result.metadata.tool_calls_made))),
        ],
        steps => vec![
            ("Steps", count(u64::try_from(steps).unwrap_or(u64::MAX))),
            ("Calls and runs", count(u64::from(result.metadata.tool_calls_made))),
        ],
    };
    facts.extend([
        ("Tokens in", format!("{about_word}{}", count(result.usage.input_tokens))),
        ("Tokens out", format!("{about_word}{}", count(result.usage.output_tokens))),
    ]);
    facts.extend(result.usage.cost_usd.map(|cost| ("Cost", format!("{about_word}{}", dollars(cost)))));
    facts.push(("Active", duration(about.active_ms)));
    facts.extend(notes_sentence(&result.metadata).map(|notes| ("History", notes)));
    for (name, fact) in facts {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&fact));
    }
    let _ = write!(page, "<div><dt>When</dt><dd>{}", time(&result.started_at, Show::Day));
    if let Some(at) = &result.finished_at {
        let same_day = at.split('T').next() == result.started_at.split('T').next();
        let _ = write!(page, " – {}", time(at, if same_day { Show::Clock } else { Show::Day }));
    }
    page.push_str("</dd></div>\n");
    page.push_str("</dl>\n</header>\n");
}

/// How much of a time is shown; the title has the whole time.
#[derive(Clone, Copy)]
enum Show {
    /// The day and the time of day, on two lines if there is no room.
    Day,
    /// The time of day.
    Clock,
}

/// A time that this program wrote as RFC 3339; another text is shown unchanged.
fn time(at: &str, show: Show) -> String {
    let whole = escaped(at);
    let shown = at.split_once('T').map(|(day, clock)| (day, clock.split(['.', 'Z']).next().unwrap_or_default()));
    let shown = match (shown, show) {
        (Some((day, clock)), Show::Day) => format!("{day} {clock}"),
        (Some((_, clock)), Show::Clock) => clock.to_owned(),
        (None, _) => at.to_owned(),
    };
    format!("<time datetime=\"{whole}\" title=\"{whole}\">{}</time>", escaped(&shown))
}

fn note(page: &mut String, kind: &str, title: &str, text: &str) {
    let _ = writeln!(
        page,
        "<section class=\"note {kind}\">\n<h2>{}</h2>\n<p>{}</p>\n</section>",
        escaped(title),
        escaped(text)
    );
}

fn pause(page: &mut String, waiting: &PauseView) {
    const SHOWN: usize = 20;
    if !waiting.steps.is_empty() {
        let shown = waiting.steps.get(..SHOWN).unwrap_or(&waiting.steps);
        page.push_str(&steps::questions(shown, waiting.steps.len()));
        return;
    }
    let title = match waiting.question.kind {
        Termination::Human => "The agent asks",
        Termination::Stuck => "The agent is stuck",
        Termination::Uncertain => "It is not known whether this call happened",
        Termination::ModelError => "The model can't be reached",
        Termination::Waiting | Termination::WaitingEvent | Termination::SpendingLimit => "The run waits",
        _ => "This tool call needs approval",
    };
    let _ =
        write!(page, "<section class=\"note wait\">\n<h2>{title}</h2>\n<p>{}</p>\n", escaped(&waiting.question.text));
    if let Some(run_id) = &waiting.question.run_id {
        let _ = writeln!(page, "<p class=\"meta\">asked by the sub-run {}</p>", escaped(run_id));
    }
    if let Some(context) = &waiting.question.context {
        let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(context));
    }
    if !waiting.question.options.is_empty() {
        page.push_str("<ol>");
        for option in &waiting.question.options {
            let _ = write!(page, "<li>{}</li>", escaped(option));
        }
        page.push_str("</ol>\n");
    }
    let calls = if waiting.calls.is_empty() { waiting.call.as_slice() } else { &waiting.calls };
    for call in calls {
        let _ = write!(
            page,
            "<p class=\"action\"><code>{}</code> <span class=\"meta\">call {}.{}</span></p>\n{}",
            exact_html(&call.action),
            call.call.iteration,
            call.call.index,
            exactly("in", &call.action_input)
        );
        for fact in approval::facts(call) {
            let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(&fact));
        }
    }
    page.push_str("</section>\n");
}

fn iterations(page: &mut String, result: &RunResult, prompts: &SentPrompts) {
    let trace = result.trace.as_deref().unwrap_or_default();
    if trace.is_empty() && result.continuations.is_empty() && prompts.all.is_empty() {
        return;
    }
    page.push_str("<h2 class=\"title\">Iterations</h2>\n<div class=\"timeline\">\n");
    let steps = !prompts.all.is_empty();
    let last = trace.last().map_or(0, |entry| entry.iteration);
    let of = prompts.all.last().map_or(0, |prompt| prompt.iteration).max(last);
    if steps {
        page.push_str(prompt::ALL);
    }
    let mut before = 0;
    let mut refusals = ShownRefusals::default();
    for turn in trace.chunk_by(|one, next| one.iteration == next.iteration) {
        let Some(first) = turn.first() else { continue };
        page.extend(continuations_after(result, before..first.iteration).map(|sentence| folded("meta", &sentence)));
        before = first.iteration;
        let failed = if turn.iter().any(|entry| !entry.success) { " failed" } else { "" };
        if steps {
            page.push_str(&prompt::button(first.iteration));
        }
        let _ = write!(
            page,
            "<article class=\"iteration{failed}\" id=\"i{0}\">\n<a class=\"number\" href=\"#i{0}\">{0}</a>\n\
             <p class=\"meta\">{1}",
            first.iteration,
            time(&rfc3339(first.at_ms), Show::Clock)
        );
        if let Some(usage) = first.usage {
            let _ = write!(page, " · {} in, {} out", plural(usage.input_tokens, "token"), count(usage.output_tokens));
        }
        page.push_str("</p>\n");
        page.extend(prompts.at(first.iteration).map(|view| prompt::prompt(view, of)));
        for attempt in result.attempts.iter().filter(|attempt| attempt.iteration == first.iteration) {
            page.push_str(&folded("meta", &attempt_sentence(attempt)));
        }
        page.push_str(&folded("thought", first.thought.trim()));
        for entry in turn {
            call(page, entry, &refusals.shown(entry, &entry.observation), decisions_about(result, entry));
        }
        page.push_str("</article>\n");
    }
    for record in decisions_about_no_call(result).filter(|record| record.step.is_none()) {
        page.push_str(&folded("meta", &decision_sentence_of(record)));
    }
    page.extend(continuations_after(result, before..u32::MAX).map(|sentence| folded("meta", &sentence)));
    page.extend(prompts.all.iter().filter(|view| view.iteration > last).map(|view| prompt::without_reply(view, of)));
    page.extend(prompts.missing.as_deref().map(prompt::missing));
    page.push_str("</div>\n");
}

/// A text of the document or the model: as a paragraph, or folded when it is long.
fn folded(class: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let long = text.chars().count();
    if long <= LONG {
        return format!("<p class=\"{class}\">{}</p>\n", escaped(text));
    }
    let begin: String = text.chars().take(LONG / 3).collect();
    format!(
        "<details class=\"{class}\"><summary><span>{}…</span> <em>{}</em></summary><p>{}</p></details>\n",
        escaped(begin.trim_end()),
        plural(long, "character"),
        escaped(text)
    )
}

fn call<'a>(page: &mut String, entry: &TraceEntry, seen: &Value, decisions: impl Iterator<Item = &'a DecisionRecord>) {
    let kind = if entry.success { "ok" } else { "bad" };
    let _ = write!(page, "<div class=\"call {kind}\">\n<p class=\"action\">");
    match &entry.action {
        Some(action) => {
            let _ = write!(page, "<code>{}</code>", escaped(action));
        }
        None => {
            let class = entry.error.as_ref().map_or("", |error| &error.class);
            let _ = write!(page, "<span>{}</span>", RefusalCause::title(class));
        }
    }
    match entry.call_status {
        Some(status) => {
            let _ = write!(page, " <span class=\"mark\">{}</span>", status.word());
        }
        None if !entry.success => page.push_str(" <span class=\"mark\">failed</span>"),
        None => {}
    }
    let _ = writeln!(page, " <span class=\"meta\">{}</span></p>", took(entry.duration_ms));
    if entry.action.is_some() {
        let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(&times(entry)));
    }
    if let Some(run_id) = &entry.run_id {
        let _ = writeln!(page, "<p class=\"meta\">run <code>{}</code></p>", exact_html(run_id));
    }
    if let Some(input) = &entry.action_input {
        page.push_str(&boxed("in", input));
    }
    for record in decisions {
        page.push_str(&folded("meta", &decision_sentence(record)));
    }
    for sentence in call_attempts(entry) {
        page.push_str(&folded("meta", &sentence));
    }
    if let Some(status) = entry.call_status {
        page.push_str(&folded("meta", call_sentence(status, &entry.attempts)));
    }
    // The call that ends a run has no observation: its answer is above.
    if entry.call_status.is_none() && !(entry.success && entry.observation.is_null()) {
        page.push_str(&boxed("out", seen));
    }
    // The observation often contains all that is known about the fault.
    let observation = text_of_pretty(&entry.observation);
    if let Some(fault) = &entry.error {
        let detail = if fault.detail.is_empty() { &fault.class } else { &fault.detail };
        let detail = unsaid(entry.action.is_none(), &entry.thought, detail);
        if !observation.contains(&*detail) {
            page.push_str(&boxed("out", &Value::from(&*detail)));
        }
    }
    if let Some(hint) = &entry.hint {
        page.push_str(&folded("meta", hint));
    }
    page.push_str("</div>\n");
}
