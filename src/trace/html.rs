//! The trace as one HTML file: no scripts, nothing fetched, everything escaped.

use std::fmt::Write as _;

use serde_json::Value;

use super::About;
use super::entries::TraceEntry;
use super::escape::html as escaped;
use super::result::{RunResult, Waiting};
use super::text::{reason, text_of_pretty, word};
use super::units::{count, dollars, duration, plural};
use crate::engine::outcome::Termination;

#[cfg(test)]
mod tests;

/// The page's style; colours follow the reader's system.
const STYLE: &str = include_str!("html/style.css");

/// The page of a run. `result` must hold the trace.
pub fn html(about: &About<'_>, result: &RunResult) -> String {
    let mut page = String::with_capacity(16 * 1024);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} · {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escaped(about.loop_name),
        escaped(&result.run_id)
    );
    header(&mut page, about, result);
    page.push_str("<main>\n");
    if let Some(waiting) = &result.pause {
        pause(&mut page, waiting);
    }
    if let Some(error) = &result.error {
        let _ = writeln!(
            page,
            "<section class=\"note bad\"><h2>{}</h2><p>{}</p></section>",
            escaped(&error.code),
            escaped(&error.message)
        );
    }
    if let Some(stuck) = &result.stuck {
        let (first, last) = stuck.iterations;
        let _ = writeln!(
            page,
            "<section class=\"note\"><h2>In circles, iterations {first} to {last}</h2><p>{}</p></section>",
            escaped(&stuck.detail)
        );
    }
    if let Some(answer) = &result.result {
        let _ = write!(page, "<section class=\"answer\"><h2>Answer</h2>{}", value(&answer.answer));
        let _ = write!(page, "<p class=\"meta\">confidence {}", escaped(&answer.confidence.to_string()));
        if let Some(summary) = &answer.summary {
            let _ = write!(page, " · {}", escaped(summary));
        }
        page.push_str("</p></section>\n");
    }
    iterations(&mut page, result.trace.as_deref().unwrap_or_default());
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn header(page: &mut String, about: &About<'_>, result: &RunResult) {
    let status = word(result.status);
    let why = match result.termination {
        None | Some(Termination::Complete | Termination::Cancelled) => String::new(),
        Some(termination) => format!(" <span class=\"why\">{}</span>", reason(termination)),
    };
    let _ = write!(
        page,
        "<header>\n<p class=\"run\">{}</p>\n<h1>{}</h1>\n<p><span class=\"status {status}\">{status}</span>{why}</p>\n\
         <p class=\"objective\">{}</p>\n<dl>\n",
        escaped(&result.run_id),
        escaped(about.loop_name),
        escaped(about.objective)
    );
    let about_word = if result.usage.estimated { "about " } else { "" };
    let mut facts = vec![
        ("Model", about.model.to_owned()),
        ("Iterations", count(u64::from(result.iterations))),
        ("Tool calls", count(u64::from(result.metadata.tool_calls_made))),
        ("Tokens read", format!("{about_word}{}", count(result.usage.input_tokens))),
        ("Tokens written", format!("{about_word}{}", count(result.usage.output_tokens))),
    ];
    facts.extend(result.usage.cost_usd.map(|cost| ("Cost", format!("{about_word}{}", dollars(cost)))));
    facts.push(("Active", duration(about.active_ms)));
    facts.push(("Began", result.started_at.clone()));
    facts.extend(result.finished_at.clone().map(|at| ("Ended", at)));
    for (name, fact) in facts {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&fact));
    }
    page.push_str("</dl>\n</header>\n");
}

fn pause(page: &mut String, waiting: &Waiting) {
    let title = match waiting.kind {
        Termination::Human => "The agent asks",
        Termination::Stuck => "The agent goes in circles",
        Termination::Uncertain => "It is not known whether this call happened",
        _ => "This call wants approval",
    };
    let _ = write!(page, "<section class=\"note wait\"><h2>{title}</h2><p>{}</p>", escaped(&waiting.question));
    if let Some(context) = &waiting.context {
        let _ = write!(page, "<p class=\"meta\">{}</p>", escaped(context));
    }
    if !waiting.options.is_empty() {
        page.push_str("<ol>");
        for option in &waiting.options {
            let _ = write!(page, "<li>{}</li>", escaped(option));
        }
        page.push_str("</ol>");
    }
    let calls = if waiting.calls.is_empty() { waiting.call.as_slice() } else { &waiting.calls };
    for call in calls {
        let _ = write!(page, "<p><code>{}</code></p>{}", escaped(&call.action), value(&call.action_input));
    }
    page.push_str("</section>\n");
}

fn iterations(page: &mut String, trace: &[TraceEntry]) {
    for turn in trace.chunk_by(|one, next| one.iteration == next.iteration) {
        let Some(first) = turn.first() else { continue };
        let failed = if turn.iter().any(|entry| !entry.success) { " failed" } else { "" };
        let _ = write!(
            page,
            "<article class=\"iteration{failed}\" id=\"i{0}\">\n<h2><a href=\"#i{0}\">{0}</a> <time>{1}</time></h2>\n",
            first.iteration,
            escaped(&first.timestamp)
        );
        if !first.thought.trim().is_empty() {
            let _ = writeln!(page, "<p class=\"thought\">{}</p>", escaped(first.thought.trim()));
        }
        for entry in turn {
            call(page, entry);
        }
        if let Some(usage) = first.usage {
            let _ = writeln!(
                page,
                "<p class=\"meta\">{} read, {} written</p>",
                plural(usage.input_tokens, "token"),
                count(usage.output_tokens)
            );
        }
        page.push_str("</article>\n");
    }
}

fn call(page: &mut String, entry: &TraceEntry) {
    let (mark, word) = if entry.success { ("ok", "done") } else { ("bad", "failed") };
    page.push_str("<div class=\"call\">\n");
    let name = entry.action.as_deref().unwrap_or("a reply that could not be read");
    let _ = writeln!(
        page,
        "<p class=\"action\"><code>{}</code> <span class=\"mark {mark}\">{word}</span> <span class=\"meta\">{}</span></p>",
        escaped(name),
        duration(entry.duration_ms)
    );
    if let Some(input) = &entry.action_input {
        let _ = write!(page, "<h3>Input</h3>{}", value(input));
    }
    let _ = write!(page, "<h3>Observation</h3>{}", value(&entry.observation));
    if let Some(fault) = &entry.error {
        let _ = write!(page, "<h3>Error</h3><pre>{}", escaped(&fault.class));
        if !fault.detail.is_empty() {
            let _ = write!(page, "\n{}", escaped(&fault.detail));
        }
        page.push_str("</pre>");
    }
    page.push_str("</div>\n");
}

/// A value in a box; a long one can be folded.
fn value(value: &Value) -> String {
    let text = text_of_pretty(value);
    let lines = text.lines().count();
    if lines > 24 || text.len() > 4_000 {
        format!(
            "<details><summary>{}, {}</summary><pre>{}</pre></details>",
            plural(lines, "line"),
            plural(text.chars().count(), "character"),
            escaped(&text)
        )
    } else {
        format!("<pre>{}</pre>", escaped(&text))
    }
}
