//! The page contains no element, address or script that we did not write.

use super::*;
use crate::conversation::Role;
use crate::event::{SaidCall, ToolFault};
use crate::trace::tests_state::{entry, of_loop, state};
use crate::trace::{Redaction, Shown, result};
use serde_json::json;

const HOSTILE: &str = "</pre></style><script>alert(1)</script><img src=x onerror=y>\" ' & \u{202E}";

fn page(hostile: &str) -> String {
    let mut state = state();
    std::sync::Arc::make_mut(&mut state.header).run_id = hostile.to_owned();
    let mut bad = entry(1);
    bad.thought = hostile.into();
    bad.action = Some(hostile.into());
    bad.action_input = json!({ hostile: hostile }).into();
    bad.observation = json!(hostile).into();
    bad.success = false;
    bad.error =
        Some(Box::new(ToolFault { class: hostile.to_owned(), detail: hostile.to_owned(), ..ToolFault::default() }));
    of_loop(&mut state).entries = vec![bad, entry(2)];
    let result = result(
        Shown { result_key: None, trace: true, driven: false, is_quarantined: false },
        &state,
        &Redaction::default(),
    );
    html(
        &About { loop_name: hostile, model: hostile, objective: hostile, active_ms: 4_200 },
        &result,
        &prompts(hostile),
        &ShownItems::default(),
    )
}

/// What the model was sent for two iterations: text, native calls, the observation of one, and memory.
fn prompts(hostile: &str) -> SentPrompts {
    let (mut prompts, mut state) = (SentPrompts::default(), state());
    let asked = of_loop(&mut state);
    asked.conversation.push(Role::System, hostile);
    asked.memory.insert(hostile.to_owned(), json!(hostile));
    prompts.add(1, asked, Vec::new(), &Redaction::default());
    let said =
        SaidCall { id: hostile.to_owned(), name: hostile.to_owned(), arguments: json!({ hostile: 1 }).to_string() };
    asked.conversation.push_reply(hostile.to_owned(), vec![said], None);
    asked.conversation.push_answer(hostile.to_owned(), false, format!("{hostile} {hostile}"));
    prompts.add(2, asked, vec![hostile.to_owned()], &Redaction::default());
    prompts.missing = Some(hostile.to_owned());
    prompts
}

fn elements(page: &str) -> Vec<&str> {
    page.split('<').skip(1).filter_map(|rest| rest.split(['>', ' ', '\n']).next()).collect()
}

#[test]
fn hostile_text_makes_no_element() {
    assert_eq!(elements(&page(HOSTILE)), elements(&page("harmless")));
    assert!(!page(HOSTILE).contains('\u{202E}'));
}

#[test]
fn a_call_that_waits_has_no_character_that_passes_for_another() {
    let input = json!({ "command": "rm\u{a0}-rf\u{fe0f}" });
    let exact = value::exactly("in", &input);
    assert!(exact.contains("rm\\u{A0}-rf\\u{FE0F}"), "{exact}");
    assert!(boxed("in", &input).contains("rm\u{a0}-rf\u{fe0f}"), "what was done already is prose");
}

#[test]
fn the_page_fetches_nothing_and_runs_nothing() {
    let page = page("x");
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'"));
    for word in ["<script", "<link", "<img", "src=", "url(", "@import", "http://", "https://", "javascript:"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn a_card_an_iteration() {
    let page = page("x");
    assert_eq!(page.matches("<article").count(), 2);
    assert!(page.contains("id=\"i1\"") && page.contains("id=\"i2\""));
}

#[test]
fn a_time_is_short_and_whole_in_its_title() {
    let at = "2026-02-01T10:30:00.123Z";
    assert!(time(at, Show::Clock).ends_with(&format!("title=\"{at}\">10:30:00</time>")));
    assert!(time(at, Show::Day).ends_with(">2026-02-01 10:30:00</time>"));
    assert!(time("<b>", Show::Day).ends_with(">&lt;b&gt;</time>"));
}
