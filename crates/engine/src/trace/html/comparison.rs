//! Two runs on one page, side by side.

use std::fmt::Write as _;

use super::value::boxed;
use super::{END, head};
use crate::outcome::Status;
use crate::trace::compare::{ComparedCall, RunComparison};
use crate::trace::escape::{exact_html, html as escaped};
use crate::trace::units::plural;

/// The page of two runs.
pub fn beside(comparison: &RunComparison) -> String {
    let [left, right] = &comparison.runs;
    let mut page = head(&format!("{} · {}", left.run_id, right.run_id), Status::Running);
    page.push_str("<header>\n<h1>Two runs</h1>\n");
    let same = plural(comparison.same_calls, "call");
    let sentence = match &comparison.first_difference {
        None => format!("The same {same}."),
        Some(difference) => format!("The first {same} are the same; then the {} differs.", words(difference.what)),
    };
    let _ = writeln!(page, "<p class=\"objective\">{}</p>", escaped(&sentence));
    let ids = [left, right].map(|run| format!("<th scope=\"col\"><code>{}</code></th>", exact_html(&run.run_id)));
    let _ = writeln!(page, "<table class=\"totals\">\n<tr><td></td>{}</tr>", ids.concat());
    for ((name, one), (_, other)) in left.rows().into_iter().zip(right.rows()) {
        let differs = if one == other { "" } else { " class=\"differs\"" };
        let cells = [one, other].map(|value| format!("<td>{}</td>", escaped(&value))).concat();
        let _ = writeln!(page, "<tr{differs}><th scope=\"row\">{name}</th>{cells}</tr>");
    }
    page.push_str("</table>\n</header>\n<main>\n<h2 class=\"title\">Calls</h2>\n");
    let [one, other] = &comparison.calls;
    for at in 0..one.len().max(other.len()) {
        let state = match at.cmp(&comparison.same_calls) {
            std::cmp::Ordering::Less => "",
            std::cmp::Ordering::Equal => " differs",
            std::cmp::Ordering::Greater => " after",
        };
        let _ = write!(page, "<div class=\"pair{state}\">\n{}{}</div>\n", side(one.get(at)), side(other.get(at)));
    }
    page.push_str("</main>\n");
    page.push_str(END);
    page
}

/// What differs, in words.
pub fn words(what: &str) -> &'static str {
    match what {
        "action" => "tool",
        "action_input" => "input",
        "success" => "outcome",
        _ => "number of calls",
    }
}

fn side(call: Option<&ComparedCall>) -> String {
    let Some(call) = call else { return "<div class=\"none meta\">no call</div>\n".to_owned() };
    let place = match (&call.at, call.iteration) {
        (Some(at), _) => exact_html(at),
        (None, Some(iteration)) => iteration.to_string(),
        (None, None) => String::new(),
    };
    let name = match &call.action {
        Some(action) => format!("<code>{}</code>", escaped(action)),
        None => "<span>a reply that could not be taken</span>".to_owned(),
    };
    let (kind, mark) = if call.success { ("ok", "") } else { ("bad", " <span class=\"mark\">failed</span>") };
    let mut side = format!(
        "<div class=\"call {kind}\">\n<p class=\"action\">{name}{mark} <span class=\"meta\">{place}</span></p>\n"
    );
    side.extend(call.action_input.as_ref().map(|input| boxed("in", input)));
    if !call.observation.is_null() {
        side.push_str(&boxed("out", &call.observation));
    }
    side.push_str("</div>\n");
    side
}
