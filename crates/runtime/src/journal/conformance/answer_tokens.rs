//! Tokens that answer a pause, and which pause was posted last.

use super::*;
use crate::journal::AnswerToken;
use crate::journal::answer_token::{MOST_ISSUES, NO_PAUSE};

fn token(hash: &str, pause: u32, call: Option<&str>) -> AnswerToken {
    let call = call.map(str::to_owned);
    AnswerToken { hash: hash.to_owned(), pause, call, expires_at_ms: 9_000, used: false }
}

pub(super) fn a_token_is_found_by_its_run_and_its_hash_together(journal: &dyn Journal) {
    begin(journal, "r");
    begin(journal, "other");
    let tokens = vec![token("a", 2, Some("1.0 f00d")), token("b", 2, None)];
    wait(journal.put_answer_tokens("r", tokens.clone())).unwrap();
    wait(journal.put_answer_tokens("other", Vec::new())).unwrap();
    for expected in tokens {
        assert_eq!(wait(journal.answer_token("r", &expected.hash)).unwrap(), Some(expected));
    }
    for (run, hash) in [("r", "c"), ("r", ""), ("other", "a"), ("nobody", "a")] {
        assert_eq!(wait(journal.answer_token(run, hash)).unwrap(), None, "{run} {hash}");
    }
    let missing = StoreError::NoSuchRun("nobody".to_owned());
    assert_eq!(wait(journal.put_answer_tokens("nobody", vec![token("c", 1, None)])).unwrap_err(), missing);
}

pub(super) fn a_token_is_used_up_with_its_event_or_not_at_all(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    wait(journal.put_answer_tokens("r", vec![token("a", 1, None), token("b", 1, None)])).unwrap();
    let by = |hash: &str, seq| Append { answer_token: Some(hash.to_owned()), ..event("r", fence, seq) };
    let used = |hash: &str| wait(journal.answer_token("r", hash)).unwrap().unwrap().used;
    assert!(wait(journal.append(by("a", 7))).is_err(), "not the next event");
    let late = Append { fence: fence + 1, ..by("a", 1) };
    assert_eq!(wait(journal.append(late)).unwrap_err(), StoreError::Fenced("r".to_owned()));
    assert!(!used("a"), "a refused event uses nothing up");
    wait(journal.append(by("a", 1))).unwrap();
    assert!(used("a") && !used("b"));
    for hash in ["a", "unknown"] {
        assert_eq!(wait(journal.append(by(hash, 2))).unwrap_err(), StoreError::TokenUsed("r".to_owned()));
    }
    assert_eq!(wait(journal.read("r")).unwrap().len(), 2, "a used token adds no event");
    // One that is put again stays as it is, beside new ones.
    wait(journal.put_answer_tokens("r", vec![token("a", 1, None), token("c", 1, None)])).unwrap();
    assert!(used("a") && !used("c"));
    wait(journal.append(event("r", fence, 2))).unwrap();
}

pub(super) fn a_token_of_another_run_is_not_used_up(journal: &dyn Journal) {
    let fence = begin(journal, "r");
    begin(journal, "other");
    wait(journal.put_answer_tokens("other", vec![token("a", 1, None)])).unwrap();
    let by = Append { answer_token: Some("a".to_owned()), ..event("r", fence, 1) };
    assert_eq!(wait(journal.append(by)).unwrap_err(), StoreError::TokenUsed("r".to_owned()));
    assert!(!wait(journal.answer_token("other", "a")).unwrap().unwrap().used);
}

pub(super) fn tokens_that_are_issued_again_leave_the_earlier_ones_valid_up_to_a_number(journal: &dyn Journal) {
    begin(journal, "r");
    wait(journal.put_answer_tokens("r", vec![token("of another pause", 1, None)])).unwrap();
    let there = |hash: &str| wait(journal.answer_token("r", hash)).unwrap().is_some();
    let while_running = |number: usize| token(&format!("while running {number}"), NO_PAUSE, None);
    for number in 0..=MOST_ISSUES {
        wait(journal.put_answer_tokens("r", vec![while_running(number)])).unwrap();
    }
    assert!((0..=MOST_ISSUES).all(|number| there(&while_running(number).hash)), "each is of a question of its own");
    for issue in 0..MOST_ISSUES {
        let of_call = |call: u32| token(&format!("{issue}.{call}"), 2, Some("1.0"));
        wait(journal.put_answer_tokens("r", vec![of_call(0), of_call(1)])).unwrap();
    }
    assert!(there("0.0") && there("0.1") && there("7.1"));
    wait(journal.put_answer_tokens("r", vec![token("8.0", 2, None), token("8.1", 2, None)])).unwrap();
    assert!(!there("0.0") && !there("7.1") && there("8.0") && there("8.1") && there("of another pause"));
}

pub(super) fn the_last_posted_pause_only_grows(journal: &dyn Journal) {
    wait(journal.create(NewRun { callback_url: Some("https://e.example/".to_owned()), ..new_run("r") })).unwrap();
    let posted = || wait(journal.find("r")).unwrap().unwrap().callback.unwrap().posted_pause;
    assert_eq!(posted(), 0);
    for (noted, expected) in [(1, 1), (3, 3), (2, 3)] {
        wait(journal.note_posted_pause("r", noted)).unwrap();
        assert_eq!(posted(), expected);
    }
    let missing = StoreError::NoSuchRun("nobody".to_owned());
    assert_eq!(wait(journal.note_posted_pause("nobody", 1)).unwrap_err(), missing);
}
