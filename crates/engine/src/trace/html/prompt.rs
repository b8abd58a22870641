//! What the model was sent, on the page: the iterations one by one. They are radio buttons, which a browser moves through
//! with the arrow keys, so that the page needs no script.

use std::fmt::Write as _;

use serde_json::Value;

use super::value::boxed;
use super::{Show, folded, time};
use crate::trace::escape::html as escaped;
use crate::trace::prompts::{PromptPart, PromptView};
use crate::trace::units::{dollars, duration, plural, rfc3339};

/// The button that shows all iterations.
pub const ALL: &str = "<p class=\"walk\" id=\"walk\">Choose an iteration, or use the arrow keys:</p>\n\
                       <input type=\"radio\" name=\"at\" id=\"at0\" data-at=\"All\" aria-label=\"All iterations\" checked>\n";

/// The button that shows this iteration alone.
pub fn button(iteration: u32) -> String {
    format!(
        "<input type=\"radio\" name=\"at\" id=\"at{iteration}\" data-at=\"{iteration}\" aria-label=\"Iteration {iteration}\">\n"
    )
}

/// What the model was sent for the reply of an iteration; `of`: how many replies there are.
pub fn prompt(view: &PromptView, of: u32) -> String {
    let number = view.iteration;
    let mut page = String::from("<div class=\"asked\">\n<p class=\"walk\">");
    let before = if number > 1 { format!("← {}", number - 1) } else { "← All".to_owned() };
    let _ = write!(page, "<label for=\"at{}\">{before}</label>", number - 1);
    let _ = write!(page, "<b>Iteration {number} of {of}</b>");
    if number < of {
        let _ = write!(page, "<label for=\"at{0}\">{0} →</label>", number + 1);
    }
    page.push_str("</p>\n");
    let cost = view.cost_usd.map(|cost| format!(" · {}", dollars(cost))).unwrap_or_default();
    let _ = writeln!(
        page,
        "<p class=\"meta\">asked at {} · until then {} active, {}{cost}</p>",
        time(&rfc3339(view.at_ms), Show::Clock),
        duration(view.active_ms),
        plural(view.tokens, "token")
    );
    let _ = writeln!(page, "<h3>What the model was sent: {}</h3>", plural(view.count, "message"));
    for part in &view.parts {
        match part {
            PromptPart::Known(first, last) if first == last => {
                let _ = writeln!(page, "<p class=\"meta\">Message {first}, as it was sent before</p>");
            }
            PromptPart::Known(first, last) => {
                let _ = writeln!(page, "<p class=\"meta\">Messages {first} to {last}, as they were sent before</p>");
            }
            PromptPart::New(number, message) => {
                let of = message.call_id.as_ref().map_or_else(String::new, |id| format!(" of the call {id}"));
                let _ = writeln!(page, "<p class=\"meta\"><b>{number}</b> {}{}</p>", message.role, escaped(&of));
                if !message.text.is_empty() {
                    page.push_str(&boxed("sent", &Value::from(message.text.as_str())));
                }
                for call in &message.calls {
                    page.push_str(&boxed("sent", &Value::from(format!("→ {} {}", call.name, call.arguments))));
                }
            }
        }
    }
    if let Some(offered) = &view.offered {
        page.push_str("<h3>Tools that were offered</h3>\n");
        page.push_str(&boxed("sent", &Value::from(offered.join(", "))));
    }
    if let Some(memory) = &view.memory {
        page.push_str("<h3>Memory</h3>\n");
        page.push_str(&boxed("sent", memory));
    }
    page.push_str("<h3>What came of it</h3>\n</div>\n");
    page
}

/// An iteration whose model was asked and did not reply yet, with its button.
pub fn without_reply(view: &PromptView, of: u32) -> String {
    format!(
        "{button}<article class=\"iteration\" id=\"i{0}\">\n<a class=\"number\" href=\"#i{0}\">{0}</a>\n{prompt}\
         <p class=\"meta\">no reply yet</p>\n</article>\n",
        view.iteration,
        button = button(view.iteration),
        prompt = prompt(view, of)
    )
}

/// Why the later prompts are not shown.
pub fn missing(why: &str) -> String {
    folded("meta", &format!("What the model was sent later can't be shown: {why}"))
}
