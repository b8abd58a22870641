//! Which suggestions `check --fix` takes, and the text once they are taken.
//!
//! A suggestion is taken when it has one reading and takes nothing away that someone may miss: a comma,
//! quotes around a number, a letter of a name. Everything else is shown and left to its author.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Source, Suggestion, codes};
use crate::policy::durations::written_milliseconds;
use crate::syntax;

/// What a suggestion's code says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Safe {
    /// It has one reading.
    Always,
    /// It is a name in the place of another one: taken when it is a slip of the finger.
    Slip,
    /// An error has one reading; a warning may be about what was meant.
    Error,
    /// Taken when the value stays what it is, and only its spelling changes.
    Spelling,
}

/// The codes whose suggestions are taken.
const SAFE: &[(&str, Safe)] = &[
    (codes::ENCODING, Safe::Always),
    (codes::STRING, Safe::Always),
    (codes::COMMA, Safe::Always),
    (codes::COMMENT, Safe::Always),
    (codes::UNKNOWN_FIELD, Safe::Slip),
    (codes::WRONG_WORD, Safe::Slip),
    (codes::WRONG_TYPE, Safe::Spelling),
    (codes::UNKNOWN_ACTION, Safe::Slip),
    (codes::LEGACY_TOOL, Safe::Always),
    (codes::DECLARED_BUILTIN, Safe::Always),
    (codes::LOOSENED, Safe::Always),
    (codes::PLAIN_VARIABLE, Safe::Error),
    (codes::MISSPELT_SECRET, Safe::Always),
    (codes::SCRIPT_REPLY, Safe::Slip),
    (codes::BAD_SCHEMA, Safe::Always),
    (codes::UNKNOWN_KEYWORD, Safe::Always),
    (codes::BAD_BASE_URL, Safe::Always),
    (codes::BAD_TOKEN, Safe::Always),
    (codes::BAD_OPERAND, Safe::Always),
    (codes::BAD_SCHEDULE, Safe::Always),
    (codes::UNKNOWN_ZONE, Safe::Always),
    (codes::QUOTED_PLACEHOLDER, Safe::Always),
];

/// The codes of faults that may throw a reader off its way.
const SYNTAX: &[&str] =
    &[codes::SYNTAX, codes::EMPTY, codes::STRING, codes::NUMBER, codes::COMMA, codes::COMMENT, codes::TOO_MUCH];

/// Those of the diagnostics of a text whose suggestion is taken, in the order of the text; no two of them
/// touch the same bytes. None where a fault of syntax stays that may have thrown the reader off its way.
pub fn taken<'a>(diagnostics: &'a [Diagnostic], source: &Source) -> Vec<(&'a Diagnostic, &'a Suggestion)> {
    let own = || diagnostics.iter().filter(|fault| fault.place.file == source.name);
    let is_fixed = |fault: &Diagnostic| {
        fault.suggestion.as_ref().is_some_and(|suggestion| is_safe(fault, &source.text, suggestion))
    };
    if own().any(|fault| SYNTAX.contains(&fault.code) && !is_fixed(fault)) {
        return Vec::new();
    }
    let mut taken: Vec<(&Diagnostic, &Suggestion)> = own()
        .filter_map(|fault| Some((fault, fault.suggestion.as_ref()?)))
        .filter(|(fault, suggestion)| is_safe(fault, &source.text, suggestion))
        .collect();
    taken.sort_by_key(|(_, suggestion)| (suggestion.start, suggestion.end));
    let mut end = None;
    let mut renamed = BTreeSet::new();
    taken.retain(|(fault, suggestion)| {
        // Nobody chose an order for two insertions at one place.
        let free = end.is_none_or(|end| suggestion.start > end || (suggestion.start == end && suggestion.end > end));
        // Two slips of one name can't both become it.
        let around = fault.path.rsplit_once('/').map(|(around, _)| around);
        let names = matches!(fault.code, codes::UNKNOWN_FIELD | codes::UNKNOWN_KEYWORD);
        let once = !names || renamed.insert((around, &suggestion.replacement));
        if free && once {
            end = Some(suggestion.end);
        }
        free && once
    });
    taken
}

/// The text once the suggestions are taken, which are in its order and do not overlap.
pub fn apply(text: &str, taken: &[(&Diagnostic, &Suggestion)]) -> String {
    let mut fixed = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (_, suggestion) in taken {
        let gone = if suggestion.replacement.is_empty() { emptied(text, suggestion) } else { None };
        let cut = gone.filter(|gone| gone.start >= at).unwrap_or(suggestion.start..suggestion.end);
        fixed.push_str(text.get(at..cut.start).unwrap_or_default());
        fixed.push_str(&suggestion.replacement);
        at = cut.end;
    }
    fixed.push_str(text.get(at..).unwrap_or_default());
    fixed
}

/// What goes with the end of a line: the blanks before it, and the line itself when nothing else is in it.
fn emptied(text: &str, suggestion: &Suggestion) -> Option<Range<usize>> {
    let blanks = |c: char| matches!(c, ' ' | '\t' | '\r');
    let (before, after) = (text.get(..suggestion.start)?, text.get(suggestion.end..)?);
    let rest = after.split('\n').next().unwrap_or_default();
    if !rest.trim_matches(blanks).is_empty() || after.len() == rest.len() {
        return None;
    }
    let kept = before.trim_end_matches(blanks);
    if kept.is_empty() || kept.ends_with('\n') {
        return Some(kept.len()..suggestion.end + rest.len() + 1);
    }
    Some(kept.len()..suggestion.end)
}

/// Whether a text became worse as JSON: then what was taken is given back.
pub fn is_worse(before: &Source, after: &Source) -> bool {
    let faults = |source: &Source| {
        let (tree, faults) = syntax::parse(source);
        faults.len() + syntax::repeated_keys(&tree).len()
    };
    faults(after) > faults(before)
}

/// Whether a suggestion may be applied, is inside the text, and changes it.
fn is_safe(fault: &Diagnostic, text: &str, suggestion: &Suggestion) -> bool {
    let code = fault.code;
    let Some(old) = text.get(suggestion.start..suggestion.end) else { return false };
    // The end of a string with a quote in it is a guess: the joined text may be two strings.
    let escaped = |text: &str| text.matches("\\\"").count();
    let joins = code == codes::STRING && !old.starts_with('\'') && escaped(&suggestion.replacement) > escaped(old);
    let safe = !joins
        && match safety(code) {
            Some(Safe::Always) => true,
            Some(Safe::Slip) => {
                let [written, meant] = [old, &suggestion.replacement].map(|name| name.trim_matches('"'));
                is_slip(written, meant) || says_unit(written, meant, text.get(suggestion.end..).unwrap_or_default())
            }
            Some(Safe::Error) => fault.is_error(),
            Some(Safe::Spelling) => is_respelled(old, &suggestion.replacement),
            None => false,
        };
    safe && old != suggestion.replacement
}

/// Whether a fault is one of the text itself, and not of what it says: its suggestion has one reading.
pub fn is_of_syntax(code: &str) -> bool {
    SYNTAX.contains(&code) || code == codes::ENCODING
}

/// Whether suggestions of a code may be taken.
pub fn is_taken(code: &str) -> bool {
    safety(code).is_some()
}

fn safety(code: &str) -> Option<Safe> {
    SAFE.iter().find(|(known, _)| *known == code).map(|(_, safe)| *safe)
}

/// Whether a value is the same as another one, but for quotes around it or a list of one entry, or is the word or the number that a
/// text or a 0 or 1 says: `"5"` is 5, `"yes"` is true, `"30s"` is 30000. One comparison of a value that is named by its path is the
/// same as a condition.
fn is_respelled(written: &str, meant: &str) -> bool {
    let bare = |text: &str| text.replace(|c: char| c.is_whitespace() || matches!(c, '"' | '[' | ']'), "");
    let is_plain = |text: &str| !text.starts_with(['[', '{']);
    let is_number = !meant.is_empty() && meant.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = is_number || matches!(meant, "true" | "false");
    let joints = ["&&", "||", " and ", " or ", " AND ", " OR "];
    let is_comparison =
        written.starts_with("\"@") && meant.starts_with('{') && !joints.iter().any(|joint| written.contains(joint));
    bare(written) == bare(meant) || (is_word && is_plain(written)) || is_comparison
}

/// Whether a field is one without its unit, and its value says the unit: `"timeout": "1h"` is `timeout_ms`, and 3600000 in it. `after`:
/// the text behind the name.
fn says_unit(written: &str, meant: &str, after: &str) -> bool {
    let is_cut = ["_ms", "_seconds"].iter().any(|unit| meant.strip_suffix(unit) == Some(written));
    let value = after.trim_start_matches('"').trim_start().strip_prefix(':').map(str::trim_start);
    let text = value.and_then(|value| value.strip_prefix('"')?.split('"').next());
    is_cut && text.is_some_and(|text| written_milliseconds(text).is_some())
}

/// Whether a name is another one with a slip of the finger in it, and not another word: `escalte` is
/// `escalate`, but `get_user` is not `set_user`, nor `v1` `v2`, nor `timeout` `timeout_ms`.
fn is_slip(written: &str, meant: &str) -> bool {
    let (old, new) = (words(written), words(meant));
    if old.concat() == new.concat() {
        // Another case or other word marks only.
        return true;
    }
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    old.len() == new.len()
        && digits(written) == digits(meant)
        && old.iter().zip(&new).all(|(old, new)| old == new || is_slip_of_word(old, new))
}

fn is_slip_of_word(old: &str, new: &str) -> bool {
    let shortest = old.chars().count().min(new.chars().count());
    // The words that turn a meaning round are short, or begin otherwise: get and set, min and max.
    let most = match shortest {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    };
    old.chars().next() == new.chars().next() && strsim::damerau_levenshtein(old, new) <= most
}

/// The words of a name in small letters: cut at marks and where a capital follows a small letter.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        let mark = matches!(c, '_' | '-' | '.' | '/' | ' ');
        if mark || (small && c.is_uppercase()) {
            words.push(String::new());
        }
        small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| !mark) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compile::{Texts, compile};

    const ACTIONS: &str = r#"[
    {"action_name": "look_at", "kind": "http", "description": "Looks.", "url": "https://e.com/x", "http_method": "GET"},
    {"action_name": "charge", "kind": "http", "description": "Pays.", "url": "https://e.com/x", "http_method": "POST"},
    {"action_name": "charges", "kind": "http", "description": "Lists.", "url": "https://e.com/x", "http_method": "GET"}]"#;

    fn judged(text: &str) -> (Source, Vec<Diagnostic>) {
        let mut texts = Texts::new(Source::new("loop.json", text));
        texts.actions.push(Source::new("actions/a.json", ACTIONS));
        let faults = compile(&texts).diagnostics;
        (texts.main, faults)
    }

    /// The text after one round.
    fn once(text: &str) -> String {
        let (source, faults) = judged(text);
        let now = apply(text, &taken(&faults, &source));
        if is_worse(&source, &Source::new("loop.json", now.as_str())) { text.to_owned() } else { now }
    }

    /// The text when nothing is left to take.
    fn settled(text: &str) -> String {
        let mut now = text.to_owned();
        for _ in 0..10 {
            let next = once(&now);
            if next == now {
                return now;
            }
            now = next;
        }
        panic!("it does not come to rest: {now}");
    }

    #[test]
    fn a_field_without_its_unit_is_taken_where_its_value_says_it() {
        for (written, fixed) in [
            (r#""timeout": "30s""#, r#""timeout_ms": 30000"#),
            (r#""timeout" : "2 hours""#, r#""timeout_ms" : 7200000"#),
            (r#""timeout": 30"#, r#""timeout": 30"#),
            (r#""timeout": "30""#, r#""timeout": 30"#),
            (r#""timeout": "soon""#, r#""timeout": "soon""#),
        ] {
            assert_eq!(settled(&document(written)), document(fixed), "{written}");
        }
    }

    fn document(properties: &str) -> String {
        format!(
            "{{\"type\": \"loop\", \"properties\": {{\"mode\": \"react\", \"objective\": \"x\", \"tools\": [], {properties}}}}}"
        )
    }

    #[test]
    fn a_slip_of_the_finger_is_one_and_another_word_is_none() {
        for (written, meant) in [
            ("max_iteration", "max_iterations"),
            ("maxIterations", "max_iterations"),
            ("MAX_ITERATIONS", "max_iterations"),
            ("max-iterations", "max_iterations"),
            ("escalte", "escalate"),
            ("objectvie", "objective"),
            ("lokk_at", "look_at"),
            ("retry_with_hnit", "retry_with_hint"),
        ] {
            assert!(is_slip(written, meant), "{written} {meant}");
        }
        for (written, meant) in [
            ("timeout", "timeout_ms"),
            ("get_user", "set_user"),
            ("min_iterations", "max_iterations"),
            ("send_mail", "read_mail"),
            ("create_v1", "create_v2"),
            ("order_10", "order_100"),
            ("list", "last_list"),
            ("put", "post"),
            ("", "x"),
            ("debit_card", "credit_card"),
        ] {
            assert!(!is_slip(written, meant), "{written} {meant}");
            assert!(!is_slip(meant, written), "{meant} {written}");
        }
    }

    #[test]
    fn everything_that_has_one_reading_is_fixed_in_the_end() {
        let text = "\u{feff}{
  \"type\": \"loop\", // a loop
  // only a comment
  \"properties\": {
    \"mode\": \"react\",
    'objective': \"a\ttab\",
    \"max_iteration\": \"10\",
    \"tools\": [\"__complete__\", \"look_at\", \"__pause_for_human__\",],
    \"on_stuck\": {\"action\": \"escalte\"},
  }
}
";
        let fixed = settled(text);
        assert_eq!(
            fixed,
            "{
  \"type\": \"loop\",
  \"properties\": {
    \"mode\": \"react\",
    \"objective\": \"a\\ttab\",
    \"max_iterations\": 10,
    \"tools\": [{\"type\":\"action\",\"name\":\"look_at\"}],
    \"on_stuck\": {\"action\": \"escalate\"}
  }
}
"
        );
        assert!(judged(&fixed).1.is_empty());
    }

    #[test]
    fn a_text_that_is_broken_otherwise_is_left_as_it_is() {
        for text in [
            // A quote is lost: what looks like comments and words is the author's text.
            "{\"type\": \"loop\", \"properties\": {\"objective\": see https://example.com/x, \"tools\": [],}}",
            "{\"type\": \"loop\", \"properties\": {\"max_iteration\": 1,000, \"tools\": [],}}",
            "{\"type\": \"loop\", \"properties\": {\"objective\": \"Say \"sorry\" to them.\", \"tools\": [],}}",
            "{\"type\": \"loop\", \"properties\": {\"objective\": \"x, \"tools\": [],}}",
            "{\"type\": \"loop\", \"properties\": {\"objective\": \"x\", // why\n",
        ] {
            assert_eq!(once(text), text);
        }
    }

    #[test]
    fn what_may_be_meant_otherwise_is_left_to_its_author() {
        for properties in [
            "\"timeout\": 30",
            "\"min_iterations\": 3",
            "\"colour\": 1",
            "\"tools\": [{\"type\": \"action\", \"name\": \"chargs\"}]",
            "\"tools\": [{\"type\": \"action\", \"name\": \"book_at\"}]",
        ] {
            let text = document(properties).replace("\"tools\": [], \"tools\"", "\"tools\"");
            assert_eq!(once(&text), text);
        }
    }

    #[test]
    fn two_slips_of_one_name_do_not_both_become_it() {
        let text = document("\"max_iteration\": 5, \"max_iterationz\": 6");
        let fixed = settled(&text);
        assert_eq!(fixed.matches("\"max_iterations\"").count(), 1, "{fixed}");
        assert!(fixed.contains("max_iterationz"), "{fixed}");
    }

    fn workflow(step: &str) -> String {
        format!(
            r#"{{"name": "w", "input": {{"type": "object", "properties": {{"order": {{}}, "rows": {{"type": "array"}}, "kind": {{}}}}}},
            "definition": {{"actions": [{{"type": "look_at", "properties": {{}}, "outputKey": "order"}}, {step}]}}}}"#
        )
    }

    fn replacements(text: &str) -> Vec<String> {
        judged(text).1.into_iter().filter_map(|fault| Some(fault.suggestion?.replacement)).collect()
    }

    #[test]
    fn a_value_that_would_become_another_one_is_left_to_its_author() {
        let action = r#""action_name": "pay", "kind": "http", "description": "Pays.", "url": "https://e.com/x", "http_method": "POST""#;
        let of_action = |more: &str| {
            format!(
                r#"{{"type": "loop", "actions": [{{{action}, {more}}}], "properties": {{"mode": "react", "objective": "Go.", "tools": [{{"type": "action", "name": "pay"}}]}}}}"#
            )
        };
        for more in [
            r#""requires_approval": [{"greaterThan": ["@input.a", 500]}, {"equal": ["@input.b", "x"]}]"#,
            r#""requires_approval": true, "approval": {"approvers": ["ann", "bob"]}"#,
            r#""parameters": [{"name": "b", "in": "query", "type": "int", "default": 3}]"#,
        ] {
            let text = of_action(more);
            let (source, faults) = judged(&text);
            assert!(faults.iter().any(|fault| fault.code == codes::WRONG_TYPE), "{faults:?}");
            assert_eq!(apply(&text, &taken(&faults, &source)), text);
        }
        let quoted = of_action(r#""timeout_ms": "5000", "idempotent": "yes""#);
        let (source, faults) = judged(&quoted);
        let fixed = apply(&quoted, &taken(&faults, &source));
        assert!(fixed.contains(r#""timeout_ms": 5000, "idempotent": true"#), "{fixed}");
    }

    #[test]
    fn a_suggestion_keeps_what_a_step_says() {
        let each = r#"{"type": "foreach", "items": "@input.rows", "steps": [{"type": "charge", "properties": {}}]}"#;
        assert!(replacements(&workflow(each)).iter().any(|meant| meant.contains("actions_to_execute")), "{each}");
        let guarded =
            each.replace(r#""items""#, r#""filter": {"condition": {"equal": ["@input.kind", "x"]}}, "items""#);
        assert_eq!(replacements(&workflow(&guarded)), Vec::<String>::new());
        let of = |condition: &str| {
            workflow(&format!(r#"{{"type": "charge", "properties": {{}}, "filter": {{"condition": {condition}}}}}"#))
        };
        for (condition, meant) in [
            (r#""@order.status == 'paid'""#, vec![r#"{"equal": ["@order.status", "paid"]}"#.to_owned()]),
            (r#""order.status == 'it\\'s'""#, vec![]),
            (r#""input.kind like 'a%'""#, vec![]),
            (r#"{"neq": ["@input.kind", "x"]}"#, vec!["\"notEqual\"".to_owned()]),
            (r#"{"any": [{"hasKey": "@input.kind"}]}"#, vec!["\"or\"".to_owned()]),
            (r#"{"xor": [{"hasKey": "@input.kind"}]}"#, vec![]),
        ] {
            assert_eq!(replacements(&of(condition)), meant, "{condition}");
        }
    }

    #[test]
    fn suggestions_of_other_files_and_of_unknown_codes_are_not_taken() {
        let source = Source::new("a.json", "{\"x\": 1}");
        let elsewhere = Source::new("b.json", "{\"x\": 1}");
        let faults = [
            Diagnostic::error(codes::COMMA, "x", "", elsewhere.place(0, 1)).suggest(""),
            Diagnostic::error("L999", "x", "", source.place(0, 1)).suggest(""),
            Diagnostic::error(codes::COMMA, "x", "", source.place(0, 0)).suggest_at("", 5_000, 9_000),
            Diagnostic::error(codes::COMMA, "x", "", source.place(0, 0)).suggest_at("", 5, 2),
        ];
        assert!(taken(&faults, &source).is_empty());
    }

    #[test]
    fn suggestions_that_touch_are_taken_one_after_the_other() {
        let source = Source::new("a.json", "abcdef");
        let fault = |start, end| Diagnostic::error(codes::COMMA, "x", "", source.place(start, end)).suggest("-");
        let faults = [fault(2, 4), fault(0, 3), fault(3, 5), fault(5, 5), fault(5, 5)];
        let taken = taken(&faults, &source);
        assert_eq!(apply(&source.text, &taken), "--f");
    }

    proptest! {
        #[test]
        fn a_second_time_finds_nothing_to_fix(text in spoiled()) {
            let fixed = settled(&text);
            prop_assert_eq!(&once(&fixed), &fixed);
            let (source, faults) = judged(&fixed);
            let (_, before) = judged(&text);
            let errors = |faults: &[Diagnostic]| faults.iter().filter(|fault| SYNTAX.contains(&fault.code)).count();
            prop_assert!(errors(&faults) <= errors(&before), "{}", source.text);
        }

        #[test]
        fn any_text_is_no_panic(text in "\\PC{0,200}") {
            settled(&text);
        }
    }

    /// A document with some of the mistakes that people make.
    fn spoiled() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            "\"max_iteration\": \"10\"",
            "\"max_iterations\": 10",
            "\"max_iterationss\": 3",
            "\"on_stuck\": {\"action\": \"escalte\"}",
            "\"temprature\": \"0.5\"",
            "\"modell\": 5",
            "\"tols\": [\"look_at\"]",
            "\"dialect\": \"jsn\"",
            "// words\n",
            "/* more */",
            "'single': 'quotes'",
            "bare: word",
            "\"fallback_models\": \"a\"",
            "\"result_key\": true",
            "\"budget\": {\"cost_us\": \"1\",}",
            "\"a\" \"b\"",
            "\"retry\": {\"atempts\": 2,, \"bas_ms\": 1}",
            "\"open",
            "]",
            "\"line\nbreak\": 1",
            "\"name\": .5",
        ];
        const TOOLS: &[&str] = &[
            "\"look_at\"",
            "\"lok_at\"",
            "\"__complete__\"",
            "\"__log_progress__\"",
            "{\"type\": \"action\", \"name\": \"look_t\"}",
            "{\"type\": \"acton\", \"name\": \"charge\"}",
            "{\"name\": \"charges\", \"max_calls\": \"3\"}",
            "7",
        ];
        let parts = proptest::collection::vec((proptest::sample::select(PARTS), 0..6_u8), 0..6);
        let tools = proptest::collection::vec(proptest::sample::select(TOOLS), 0..5);
        (parts, tools, any::<bool>()).prop_map(|(parts, tools, mark)| {
            let mut body = String::new();
            for (part, join) in parts {
                body.push_str(part);
                body.push_str(match join { 0 => "\n", 1 => ",,", 2 => ";", _ => ",\n  " });
            }
            let tools = tools.join(", ");
            let mark = if mark { "\u{feff}" } else { "" };
            format!("{mark}{{\"type\": \"loop\", \"properties\": {{\"mode\": \"react\", \"objective\": \"x\", {body} \"tools\": [{tools}]}}}}")
        })
    }
}
