//! The page as HTML: one file without scripts, in which everything is escaped.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::HeaderValue;
use base64::Engine as _;
use ring::digest;

use super::fields::inputs;
use super::{AskedDecision, SentForm};
use crate::engine::outcome::Termination;
use crate::engine::question::{OnRejected, WaitingCall};
use crate::program::form::FieldFault;
use crate::trace::approval::facts;
use crate::trace::escape::{exact_html, html as escaped};
use crate::trace::units::rfc3339;

/// The style, in the colours of the reader's system.
const STYLE: &str = include_str!("style.css");
/// The most characters of a comment.
const MAX_COMMENT_CHARS: &str = "2000";

/// What the page may do: show its own style, and send its forms to its own server.
static CONTENT_SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = digest::digest(&digest::SHA256, STYLE.as_bytes());
    let hash = base64::engine::general_purpose::STANDARD.encode(hash);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The content security policy of the page.
pub fn content_security_policy() -> HeaderValue {
    CONTENT_SECURITY_POLICY.clone()
}

/// Why a link takes no decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEnd {
    /// The run has no such token.
    Unknown,
    /// A decision was taken with it.
    Used,
    /// Its time is over, in milliseconds since 1970.
    Expired(i64),
    /// What it asks is over.
    Decided,
    /// The token that it has its rights from is not taken any more.
    StarterIsGone,
}

/// What was sent and is not taken.
pub struct RefusedInput<'f> {
    /// What was typed.
    pub form: &'f SentForm,
    /// Why it is not taken.
    pub why: &'f str,
    /// What is wrong with the fields of a form.
    pub faults: &'f [FieldFault],
}

/// The page of what waits, with what was sent before.
pub fn asked_page(asked: &AskedDecision, token: &str, sent: Option<&RefusedInput<'_>>) -> String {
    let title = title(asked);
    let mut page = head(title);
    let _ = write!(
        page,
        "<main>\n<h1>{title}</h1>\n<p class=\"meta\">{} · run <span class=\"run\">{}</span></p>\n",
        escaped(&asked.loop_name),
        escaped(&asked.run_id)
    );
    if let Some(RefusedInput { why, faults, .. }) = sent {
        let why = if faults.is_empty() { why } else { "see the fields below" };
        let _ = writeln!(page, "<p class=\"fault\" role=\"alert\">Nothing was decided: {}</p>", escaped(why));
    }
    page.push_str("<section class=\"card wait\" aria-label=\"What is asked\">\n");
    question(&mut page, asked);
    if let Some(call) = &asked.call {
        exactly(&mut page, asked, call);
    }
    if let Some(show) = &asked.show {
        let text = serde_json::to_string_pretty(show).unwrap_or_default();
        let _ = write!(page, "<h2 class=\"what\">To look at</h2>\n<pre>{}</pre>\n", exact_html(&text));
    }
    if asked.fields.is_empty() {
        forms(&mut page, asked, &TypedFields { token, sent: sent.map(|sent| sent.form) });
    } else {
        let fields = TypedFields { token, sent: None };
        fields.form(&mut page, &(inputs(asked, sent) + &send("first", "data", "Send")));
    }
    let _ = write!(
        page,
        "</section>\n</main>\n<footer>This link takes one decision, until {}. To open it decides nothing; who has it can \
         decide.</footer>\n",
        time(asked.expires_at_ms)
    );
    page + END
}

/// The page after a decision. `approvers`: how many different people must give it.
pub fn taken_page(said: &str, approvers: u32) -> String {
    let end = "This link takes no other decision; you can close the page.";
    match approvers {
        0 | 1 => notice(said, &format!("Your decision was taken. {end}")),
        _ => notice(
            "Your approval is recorded",
            &format!("{approvers} different people must approve it, and it waits until they have. {end}"),
        ),
    }
}

/// The page of a link that takes no decision.
pub fn end_page(end: LinkEnd) -> String {
    let (title, text) = match end {
        LinkEnd::Unknown => (
            "This link is not valid",
            "It is incomplete, or newer links have replaced it, or its run is not kept any more. Open it as it was sent, \
             with all its signs."
                .to_owned(),
        ),
        LinkEnd::Used => (
            "This link was used",
            "A decision was taken with it. Each link takes one decision, so nothing has changed now.".to_owned(),
        ),
        LinkEnd::Expired(at_ms) => {
            ("This link has expired", format!("It could be used until {}. Nothing has changed.", time(at_ms)))
        }
        LinkEnd::Decided => (
            "Nothing waits for this decision any more",
            "Somebody else has decided, what is asked was changed, or the run has ended. Nothing has changed.".to_owned(),
        ),
        LinkEnd::StarterIsGone => (
            "This link decides nothing any more",
            "The access token that its run was started with has expired or was withdrawn, and the link ended with it. Nothing \
             has changed, and the run still waits: somebody with an access token of their own can decide."
                .to_owned(),
        ),
    };
    notice(title, &text)
}

/// The page of a request that is refused for another reason.
pub fn refused_page(why: &str) -> String {
    notice("Nothing was decided", &escaped(why))
}

/// A page of one sentence or two; `text` is HTML.
fn notice(title: &str, text: &str) -> String {
    let mut page = head(title);
    let _ = write!(page, "<main>\n<h1>{title}</h1>\n<p class=\"card\">{text}</p>\n</main>\n");
    page + END
}

const END: &str = "</body>\n</html>\n";

fn head(title: &str) -> String {
    let mut page = String::with_capacity(8 * 1024);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"robots\" content=\"noindex, nofollow\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    );
    page
}

fn title(asked: &AskedDecision) -> &'static str {
    if !asked.keys.is_empty() {
        return "A form to fill in";
    }
    match asked.question.kind {
        Termination::Approval => "Your approval is asked for",
        Termination::Uncertain => "Did it happen?",
        Termination::Stuck => "The run repeats itself",
        Termination::ModelError => "The model can't be reached",
        Termination::SpendingLimit => "A spending limit is reached",
        _ => "A question",
    }
}

/// A time that people read.
fn time(at_ms: i64) -> String {
    let exact = rfc3339(at_ms);
    match (exact.get(..10), exact.get(11..16)) {
        (Some(day), Some(clock)) => format!("<time datetime=\"{exact}\">{day} {clock} UTC</time>"),
        _ => escaped(&exact),
    }
}

fn question(page: &mut String, asked: &AskedDecision) {
    let _ = writeln!(page, "<p class=\"question\">{}</p>", escaped(asked.question.text.trim()));
    if let Some(context) = &asked.question.context {
        let _ = writeln!(page, "<p class=\"context\">{}</p>", escaped(context.trim()));
    }
    if let Some(stuck) = &asked.question.stuck {
        let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(&stuck.detail));
    }
    if !asked.objective.trim().is_empty() {
        let _ = writeln!(page, "<p class=\"meta objective\">What the run is to do: {}</p>", escaped(&asked.objective));
    }
}

/// The call or the payload, to the last digit, and what is to be known of it.
fn exactly(page: &mut String, asked: &AskedDecision, call: &WaitingCall) {
    let is_payload = asked.is_approval_step();
    let is_empty = call.action_input.as_object().is_some_and(serde_json::Map::is_empty);
    if !(is_payload && is_empty) {
        let what = if is_payload {
            "What is to be approved".to_owned()
        } else {
            format!("<code>{}</code>, with exactly this input", exact_html(&call.action))
        };
        let text = serde_json::to_string_pretty(&call.action_input).unwrap_or_default();
        let _ = write!(page, "<h2 class=\"what\">{what}</h2>\n<pre>{}</pre>\n", exact_html(&text));
    }
    if !asked.concerns.is_empty() {
        page.push_str("<ul class=\"concerns\">\n");
        for concern in &asked.concerns {
            let _ = writeln!(page, "<li>{}</li>", escaped(concern));
        }
        page.push_str("</ul>\n");
    }
    for fact in facts(call) {
        let _ = writeln!(page, "<p class=\"meta\">{}</p>", escaped(&fact));
    }
    match asked.on_rejected {
        Some(OnRejected::Stop) => {
            page.push_str("<p class=\"meta\">A no stops the run, or the item: no later step of it runs.</p>\n")
        }
        Some(OnRejected::GoOn) => {
            page.push_str("<p class=\"meta\">After a no the next steps run, as their filters say.</p>\n")
        }
        None => {}
    }
}

/// What the fields of the forms hold.
struct TypedFields<'f> {
    token: &'f str,
    /// What was typed before.
    sent: Option<&'f SentForm>,
}

impl TypedFields<'_> {
    fn form(&self, page: &mut String, inside: &str) {
        let token = markup(self.token);
        let _ = write!(
            page,
            "<form method=\"post\" action=\"answer\">\n<input type=\"hidden\" name=\"token\" value=\"{token}\">\n{inside}</form>\n"
        );
    }

    /// What was typed in a field; else this.
    fn typed(&self, name: &str, otherwise: &str) -> String {
        markup(self.sent.map(|form| form.text(name)).filter(|text| !text.is_empty()).unwrap_or(otherwise))
    }

    fn comment(&self, id: &str) -> String {
        format!(
            "<label for=\"{id}\">Comment (optional)</label>\n\
             <textarea id=\"{id}\" name=\"comment\" rows=\"1\" maxlength=\"{MAX_COMMENT_CHARS}\">\n{}</textarea>\n",
            self.typed("comment", "")
        )
    }

    /// A field of several lines, with its label.
    fn area(&self, name: &str, label: &str, value: &str) -> String {
        let class = if value.is_empty() { "" } else { " class=\"exact\" spellcheck=\"false\"" };
        let text = self.typed(name, value);
        format!(
            "<label for=\"{name}\">{label}</label>\n<textarea id=\"{name}\" name=\"{name}\" rows=\"2\"{class}>\n{text}</textarea>\n"
        )
    }
}

/// The button that sends a decision.
fn send(class: &str, decision: &str, label: &str) -> String {
    format!(
        "<div class=\"buttons\"><button class=\"{class}\" name=\"decision\" value=\"{decision}\">{label}</button></div>\n"
    )
}

/// A text in an attribute or a field, as it is: what is shown of it is what is sent.
pub(super) fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A form for each decision: a key in a field of one can't press the button of another one.
fn forms(page: &mut String, asked: &AskedDecision, fields: &TypedFields<'_>) {
    for choice in asked.choices {
        match *choice {
            "answer" => answer(page, asked, fields),
            "approve" => fields.form(page, &(fields.comment("comment") + &send("good", "approve", "Approve"))),
            "deny" => {
                let label = match asked.on_rejected {
                    Some(_) => "Why not",
                    None => "Why not (the model reads it)",
                };
                fields.form(page, &(fields.area("reason", label, "") + &send("bad", "deny", "Deny")));
            }
            "edit" => edit(page, asked, fields),
            "happened" => {
                let area = fields.area("happened", "It happened, and gave this (JSON)", "");
                fields.form(page, &(area + &send("good", "happened", "It happened")));
            }
            "fail" => {
                let area = fields.area("fail", "It failed, because", "");
                fields.form(page, &(area + &send("bad", "fail", "It failed")));
            }
            "retry" => fields.form(page, &send("", "retry", "Try it again")),
            _ => filling(page, asked, fields),
        }
    }
}

fn answer(page: &mut String, asked: &AskedDecision, fields: &TypedFields<'_>) {
    let mut options = String::new();
    for (number, option) in asked.question.options.iter().enumerate() {
        let _ = writeln!(options, "<button name=\"option\" value=\"{number}\">{}</button>", escaped(option));
    }
    if !options.is_empty() {
        let group = format!("<div class=\"buttons\" role=\"group\" aria-label=\"Answers\">\n{options}</div>\n");
        fields.form(page, &group);
    }
    let label = match asked.question.kind {
        Termination::Stuck => "What should it do instead?",
        _ if options.is_empty() => "Your answer",
        _ => "Another answer",
    };
    fields.form(page, &(fields.area("answer", label, "") + &send("first", "answer", "Send")));
}

fn edit(page: &mut String, asked: &AskedDecision, fields: &TypedFields<'_>) {
    let Some(text) = asked.edited() else { return };
    let (what, label) = match asked.is_approval_step() {
        true => ("Change the payload", "Another payload, as JSON"),
        false => ("Change the input", "Another input, as JSON"),
    };
    let open = if fields.sent.is_some_and(|form| form.text("decision") == "edit") { " open" } else { "" };
    let _ = writeln!(page, "<details{open}><summary>{what}</summary>");
    let inside =
        fields.area("edit", label, &text) + &fields.comment("edit-comment") + &send("", "edit", "Approve this instead");
    fields.form(page, &inside);
    page.push_str("</details>\n");
}

/// A field for each key.
fn filling(page: &mut String, asked: &AskedDecision, fields: &TypedFields<'_>) {
    let mut inside = String::new();
    for (number, key) in asked.keys.iter().enumerate() {
        let (name, kind, key) = (format!("key.{number}"), format!("kind.{number}"), escaped(key));
        inside.push_str(&fields.area(&name, &key, ""));
        let chosen = fields.sent.map_or("", |form| form.text(&kind));
        let _ = writeln!(inside, "<select name=\"{kind}\" aria-label=\"How {key} is read\">");
        for (value, label) in [
            ("auto", "a number, true, false, null, a list or an object as JSON, else a text"),
            ("text", "as a text"),
            ("json", "as JSON"),
        ] {
            let selected = if value == chosen { " selected" } else { "" };
            let _ = writeln!(inside, "<option value=\"{value}\"{selected}>{label}</option>");
        }
        inside.push_str("</select>\n");
    }
    fields.form(page, &(inside + &send("first", "data", "Send")));
}
