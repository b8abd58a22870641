//! Shows a waiting call to a human: made from the call's own bytes, whole or with the count of hidden lines,
//! followed by a warning for everything that could deceive the reader.

use std::collections::BTreeMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;
use unicode_security::{MixedScript as _, RestrictionLevel, RestrictionLevelDetection as _};

use super::escape;
use super::layout::{Look, TextBlock, Tone, wrap};
use super::redact::HIDDEN;
use super::units::plural;
use crate::decision::awaited_approval::OnExpiry;
use crate::question::WaitingCall;
use crate::timestamp::rfc3339;
use loopctl_lang::policy::characters::{deceives, is_blank};

/// The most lines of a cut input.
const LINES: usize = 40;

/// A call as it is shown before somebody decides about it. `cut`: at most 40 lines of its input, the first and
/// the last ones, and the number of lines left out.
pub fn call(look: &Look, call: &WaitingCall, cut: bool) -> String {
    let id = look.paint(Tone::Dim, &format!("call {}  hash {}", call.id, call.hash));
    let name = look.paint(Tone::Accent, &escape::exact_line(&call.action));
    let mut shown = format!("  {name}  {id}\n");
    for line in input(look, &call.action_input, cut) {
        shown.push_str(&format!("    {line}\n"));
    }
    for fact in facts(call) {
        shown.push_str(&format!("    {}\n", look.paint(Tone::Dim, &escape::line(&fact))));
    }
    for concern in concerns(call) {
        let lead = format!("  {} ", look.paint(Tone::Warn, "!"));
        shown.push_str(
            &look.block(&concern, &TextBlock { lead: (&lead, 4), tone: Some(Tone::Warn), tail: "", lines: 8 }),
        );
    }
    shown
}

/// What the approval of a call needs, and what it has, in a sentence each.
pub fn facts(call: &WaitingCall) -> Vec<String> {
    let Some(approval) = &call.approval else { return Vec::new() };
    let mut facts = Vec::new();
    if approval.approvers > 1 {
        let so_far = match approval.approved_by.as_slice() {
            [] => "none has so far".to_owned(),
            names => format!("so far: {}", names.join(", ")),
        };
        facts.push(format!("{} different people must approve it; {so_far}", approval.approvers));
    }
    if let Some(at_ms) = approval.expires_at_ms {
        let then = match approval.on_expiry.unwrap_or_default() {
            OnExpiry::Deny => "is denied",
            OnExpiry::Fail => "fails the run",
            OnExpiry::Escalate => "is escalated",
        };
        facts.push(format!("without a decision until {}, it {then}", rfc3339(at_ms)));
    }
    if approval.escalated {
        facts.push("escalated: only holders of the scope `decide:escalated` may decide over HTTP".to_owned());
    }
    facts
}

/// The input as JSON on lines that fit, with numbers as written.
fn input(look: &Look, input: &Value, cut: bool) -> Vec<String> {
    let text = serde_json::to_string_pretty(input).unwrap_or_default();
    let lines = wrap(&escape::exact(&text), look.width.saturating_sub(4).max(16));
    if !cut || lines.len() <= LINES {
        return lines;
    }
    // Padding can hide text at the beginning as well as at the end, so both are shown.
    let (head, tail) = (LINES / 2, LINES - LINES / 2 - 1);
    let between = lines.len().saturating_sub(head + tail);
    let gap =
        format!("… {} of this input not shown here …", plural(u64::try_from(between).unwrap_or(u64::MAX), "line"));
    let last = lines.iter().skip(head + between).cloned();
    lines.iter().take(head).cloned().chain([look.paint(Tone::Warn, &gap)]).chain(last).collect()
}

/// Whether a cut would hide a part of the input.
pub fn is_cut(look: &Look, call: &WaitingCall) -> bool {
    let whole = input(look, &call.action_input, false);
    whole.len() > LINES
}

/// What could deceive a reader of this call, in one sentence each, escaped for a terminal.
pub fn concerns(call: &WaitingCall) -> Vec<String> {
    let mut found = Suspicions::default();
    found.walk(&call.action_input);
    let mut concerns = Vec::new();
    if let Some(why) = call.approval.as_ref().and_then(|approval| approval.why.as_deref()) {
        concerns.push(format!("whether it needs an approval can't be decided: {}", escape::line(why)));
    }
    if found.unseen > 0 {
        concerns.push(format!("{} that nobody sees: written as \\u{{...}} here", plural(found.unseen, "character")));
    }
    if found.blank > 0 {
        let what = if found.blank == 1 { "looks like a space and is none" } else { "look like a space and are none" };
        concerns.push(format!("{} that {what}: written as \\u{{...}} here", plural(found.blank, "character")));
    }
    for (one, other) in &found.alike {
        concerns.push(format!("two names look alike and are not the same: {} and {}", spelled(one), spelled(other)));
    }
    for word in found.mixed.iter().take(5) {
        concerns.push(format!("letters of several scripts in one word: {}", spelled(word)));
    }
    if found.mixed.len() > 5 {
        concerns.push(format!("and {} more words like that", found.mixed.len() - 5));
    }
    if found.secret > 0 {
        concerns
            .push(format!("{} hidden as a secret: it is sent as the model wrote it", plural(found.secret, "value")));
    }
    concerns
}

/// A text in which every character that is not ASCII is also written by its number.
fn spelled(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| if c.is_ascii_graphic() || c == ' ' { c.to_string() } else { format!("\\u{{{:X}}}", u32::from(c)) })
        .collect();
    let shown = escape::exact_line(text);
    if *shown == escaped { format!("\"{shown}\"") } else { format!("\"{shown}\" ({escaped})") }
}

/// The findings in a value.
#[derive(Default)]
struct Suspicions {
    unseen: u64,
    blank: u64,
    secret: u64,
    mixed: Vec<String>,
    alike: Vec<(String, String)>,
}

impl Suspicions {
    fn walk(&mut self, value: &Value) {
        match value {
            Value::String(text) if text == HIDDEN => self.secret += 1,
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(fields) => {
                let mut by_look: BTreeMap<String, &str> = BTreeMap::new();
                for (name, value) in fields {
                    self.text(name);
                    if let Some(other) = by_look.insert(look_of(name), name) {
                        self.alike.push((other.to_owned(), name.clone()));
                    }
                    self.walk(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        for c in text.chars().filter(|c| deceives(*c)) {
            let count = if is_blank(c) { &mut self.blank } else { &mut self.unseen };
            *count += 1;
        }
        if text.is_ascii() {
            return;
        }
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            if mixes(word) && !self.mixed.iter().any(|known| known == word) {
                self.mixed.push(word.to_owned());
            }
        }
    }
}

/// Whether one word mixes letters of scripts that look alike; Latin beside Chinese, Japanese or Korean is
/// normal.
fn mixes(word: &str) -> bool {
    !word.is_single_script() && !word.check_restriction_level(RestrictionLevel::ModeratelyRestrictive)
}

/// A name as a quick reader sees it: without case and invisible characters, and with one letter for all that
/// look alike.
fn look_of(name: &str) -> String {
    let seen: String = name.chars().filter(|c| !deceives(*c) && !c.is_whitespace()).collect();
    let folded: String = seen.nfkc().collect::<String>().to_lowercase();
    unicode_security::skeleton(&folded).collect::<String>().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::CallId;

    fn waiting(input: &str) -> WaitingCall {
        WaitingCall {
            id: "2.0".to_owned(),
            call: CallId { iteration: 2, index: 0 },
            action: "pay".to_owned(),
            action_input: serde_json::from_str(input).unwrap(),
            hash: "0123456789abcdef".to_owned(),
            approval: None,
            ask: None,
        }
    }

    fn approval(input: &str) -> String {
        call(&Look::plain(80), &waiting(input), true)
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn numbers_stand_as_they_are_written() {
        for number in ["1e2", "100", "1.0", "12345678901234567890123", "0.1", "-0", "1E400"] {
            let written: Value = serde_json::from_str(number).unwrap();
            assert!(approval(&format!(r#"{{"n": {number}}}"#)).contains(&format!("\"n\": {written}\n")), "{number}");
        }
        assert_ne!(approval(r#"{"n": 1e2}"#), approval(r#"{"n": 100}"#));
    }

    #[test]
    fn what_is_not_seen_is_written_out_and_said() {
        let mut tried = 0;
        for hidden in ('\u{7f}'..=char::MAX).filter(|c| deceives(*c) && !is_blank(*c)) {
            let shown = approval(&json!({ "to": format!("a{hidden}b") }).to_string());
            let written = format!("\\u{{{:X}}}", u32::from(hidden));
            assert!(shown.contains(&written) && shown.contains("1 character that nobody sees"), "{shown}");
            assert!(!shown.contains(hidden), "{shown}");
            tried += 1;
        }
        assert!(tried > 4_000, "{tried}");
        // JSON itself escapes the other control characters.
        assert!(approval(r#"{"to": "a\u001b[2Jb"}"#).contains(r"a\u001b[2Jb"));
    }

    #[test]
    fn a_look_alike_of_a_space_is_written_out_and_said() {
        let mut tried = 0;
        for blank in ('\0'..=char::MAX).filter(|c| is_blank(*c)) {
            let shown = approval(&json!({ "command": format!("rm{blank}-rf") }).to_string());
            let written = format!("rm\\u{{{:X}}}-rf", u32::from(blank));
            assert!(shown.contains(&written), "{shown}");
            assert!(shown.contains("1 character that looks like a space and is none"), "{shown}");
            tried += 1;
        }
        assert_eq!(tried, 17);
        let plain = approval(r#"{"command": "rm -rf"}"#);
        assert!(plain.contains("rm -rf") && !plain.contains("looks like a space"), "{plain}");
        assert!(approval("{\"a\": \"\u{a0}\u{3000}\"}").contains("2 characters that look like a space and are none"));
    }

    #[test]
    fn a_padded_call_is_readable_with_its_beginning_its_end_and_the_count_between() {
        let rows: Vec<u32> = (0..10_000).collect();
        let shown = approval(&json!({ "first": 1, "rows": rows, "last": "rm -rf" }).to_string());
        assert!(shown.lines().count() < 60, "{}", shown.lines().count());
        assert!(shown.contains("\"first\": 1") && shown.contains("\"last\": \"rm -rf\""), "{shown}");
        assert!(shown.contains("… 9,967 lines of this input not shown here …"), "{shown}");
        let padded = json!({ "cmd": format!("echo{}; rm -rf", "\n".repeat(10_000)) }).to_string();
        assert!(is_cut(&Look::plain(80), &waiting(&padded)) && approval(&padded).contains("; rm -rf"));
        assert!(call(&Look::plain(80), &waiting(&padded), false).lines().count() > 200);
    }

    #[test]
    fn names_that_look_alike_are_flagged_and_others_are_not() {
        for (one, other) in [
            ("amount", "\u{430}mount"),
            ("to", "to\u{200b}"),
            ("to", "TO"),
            ("id", "\u{ff49}d"),
            ("l1", "ll"),
            ("a_b", "a-b"),
        ] {
            let shown = approval(&json!({ one: 1, other: 2 }).to_string());
            assert!(shown.contains("two names look alike"), "{one} {other}: {shown}");
        }
        for names in [["amount", "account"], ["from", "to"], ["id", "ids"]] {
            let shown = approval(&json!({ names[0]: 1, names[1]: 2 }).to_string());
            assert!(!shown.contains('!'), "{shown}");
        }
    }

    #[test]
    fn words_of_several_scripts_are_flagged_and_names_of_one_script_are_not() {
        assert!(
            approval(r#"{"host": "p\u0430ypal.com"}"#).contains("letters of several scripts in one word"),
            "Cyrillic a"
        );
        for plain in ["Müller", "Москва", "日本語のテスト", "Ελλάδα", "Москва and London", "Tokyo東京", "naïve 5 €"]
        {
            let shown = approval(&json!({ "text": plain }).to_string());
            assert!(!shown.contains('!'), "{plain}: {shown}");
        }
    }

    #[test]
    fn a_hidden_secret_is_counted() {
        assert!(approval(r#"{"password": "[hidden]"}"#).contains("1 value hidden as a secret"));
    }
}
