//! Reasoning in a run: what becomes of its text, what of it is in the journal, and how long it stays.

use serde_json::{Value, json};

use super::conversation::Message;
use super::dialect::{self, Reading};
use super::event::{EventKind, Finish, Reasoning, Reply, ToolResult};
use super::tests::{at, play, program, returns, started};
use loopctl_lang::language::react::Dialect;

const SEALED: &str = r#"[{"at":0,"json":{"reasoning_content":"Hm.\u00fc"}}]"#;

fn reasoned(text: &str, reply: &Value, finish: Finish) -> Reply {
    let reasoning = Reasoning { origin: "p h m".to_owned(), sealed: SEALED.to_owned(), text: text.to_owned() };
    let text = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
    Reply { text, reasoning: Some(Box::new(reasoning)), finish, ..Reply::default() }
}

fn looks(at: &str) -> Value {
    json!({ "action": "look", "action_input": { "at": at } })
}

#[test]
fn its_text_is_the_thought_of_a_reply_that_has_none_and_nothing_else_reads_it() {
    let program = program(&json!({}));
    let own = json!({ "thought": "mine", "action": "look", "action_input": { "at": "2" } });
    let replied = |reply: &Value| EventKind::ModelReplied(reasoned("Hm.", reply, Finish::Stop));
    let events = vec![
        (0, started()),
        (1, replied(&looks("1"))),
        (1, returns(1, ToolResult::Ok(json!("a")))),
        (1, replied(&own)),
        (1, returns(2, ToolResult::Ok(json!("b")))),
    ];
    let state = play(&program, events);
    let thoughts: Vec<&str> = state.entries().iter().map(|entry| &*entry.thought).collect();
    assert_eq!(thoughts, ["Hm.", "mine"]);
    let kept: Vec<&Reasoning> =
        state.as_loop().unwrap().conversation.messages.iter().filter_map(Message::reasoning).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|kept| kept.sealed == SEALED && kept.text.is_empty()));
    let texts: String = state.as_loop().unwrap().conversation.messages.iter().map(|message| &*message.text).collect();
    assert!(!texts.contains("Hm."), "{texts}");
}

#[test]
fn what_is_sealed_counts_in_the_history_and_goes_with_its_iteration() {
    let program = program(&json!({ "history": { "max_messages": 5, "keep_last": 3 } }));
    let mut events = vec![(0, started())];
    for iteration in 1..=3_u32 {
        let reply = reasoned("", &looks(&iteration.to_string()), Finish::Stop);
        events.push((1, EventKind::ModelReplied(reply)));
        events.push((1, returns(iteration, ToolResult::Ok(json!("a")))));
    }
    let state = play(&program, events);
    let conversation = &state.as_loop().unwrap().conversation;
    assert_eq!((state.counters.messages_trimmed, conversation.iterations().count()), (4, 1));
    assert_eq!(conversation.messages.iter().filter_map(Message::reasoning).count(), 1);
    let texts: usize = conversation.messages.iter().map(|message| message.text.len()).sum();
    assert_eq!(conversation.bytes, texts + SEALED.len());
}

#[test]
fn a_reply_that_was_cut_off_while_the_model_thought_is_called_that_in_every_dialect() {
    for dialect in [Dialect::Json, Dialect::ToolCalls, Dialect::Tags, Dialect::FinalAnswer] {
        let reading = dialect::read(dialect, &reasoned("Hm.", &json!(" \n"), Finish::Length));
        let Reading::Unreadable { why, .. } = reading else { panic!("{reading:?}") };
        assert!(why.contains("cut off while you were still thinking"), "{why}");
        let open = Reply { text: "<think>Hm".to_owned(), finish: Finish::Length, ..Reply::default() };
        let reading = dialect::read(dialect, &open);
        let Reading::Unreadable { why, thought } = reading else { panic!("{reading:?}") };
        assert!(why.contains("still thinking") && thought == "Hm", "{why}: {thought}");
        // What was cut off behind its thoughts is another thing.
        let reading = dialect::read(dialect, &reasoned("Hm.", &json!("The answer is"), Finish::Length));
        assert!(!matches!(&reading, Reading::Unreadable { why, .. } if why.contains("thinking")), "{reading:?}");
    }
}

#[test]
fn the_journal_keeps_it_to_the_byte_and_journals_without_it_are_read() {
    let event = EventKind::ModelReplied(reasoned("Hm.", &looks("1"), Finish::Stop));
    let written = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<EventKind>(&written).unwrap(), event);
    let plain = EventKind::ModelReplied(Reply { text: "x".to_owned(), ..Reply::default() });
    assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"model_replied":{"text":"x","duration_ms":0}}"#);
    let read: EventKind = serde_json::from_str(r#"{"model_replied":{"text":"x","duration_ms":0}}"#).unwrap();
    assert_eq!(read, plain);
}

#[test]
fn what_is_sealed_is_in_no_debug_output() {
    let event = at(1, EventKind::ModelReplied(reasoned("Hm.", &looks("1"), Finish::Stop)));
    let shown = format!("{event:?}");
    assert!(!shown.contains("reasoning_content") && shown.contains("Reasoning"), "{shown}");
}
