//! What a listener hears of a reply while it arrives, in played time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::drive::clock::played::{self, PlayedClock};
use crate::drive::secret::Vault;

/// Keeps what it hears.
#[derive(Default)]
struct Heard {
    notices: Mutex<Vec<Notice>>,
    is_away: AtomicBool,
}

impl Listener for Heard {
    fn on(&self, notice: Notice) {
        self.notices.lock().unwrap().push(notice);
    }

    fn wants_deltas(&self) -> bool {
        !self.is_away.load(Ordering::SeqCst)
    }
}

impl Heard {
    /// The texts, tokens and times since the last call.
    fn since(&self) -> Vec<(u32, String, u64, Option<u64>)> {
        let notices = std::mem::take(&mut *self.notices.lock().unwrap());
        let read = |notice| match notice {
            Notice::ModelDelta { attempt, text, output_tokens, time_to_first_token_ms, .. } => {
                (attempt, text, output_tokens, time_to_first_token_ms)
            }
            other => panic!("{other:?}"),
        };
        notices.into_iter().map(read).collect()
    }
}

fn partial(text: &str) -> PartialReply<'_> {
    PartialReply { text, written: text.len(), output_tokens: None, time_to_first_token_ms: 7 }
}

fn live<'a>(heard: &'a Heard, estimator: &'a TokenEstimator, secret: Option<&str>) -> ReplyReporter<'a> {
    let vault = Vault::new(BTreeMap::new(), Path::new("/"));
    if let Some(secret) = secret {
        vault.keep("key", &secrecy::SecretString::from(secret)).unwrap();
    }
    ReplyReporter::new(heard, 3, estimator, vault.growing())
}

fn waits(ms: u64) {
    assert!(played::wait(Duration::from_millis(ms)));
}

#[test]
fn pieces_come_at_a_bounded_rate_and_none_is_lost() {
    let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, None);
    live.take(partial("It "));
    assert_eq!(heard.since(), [(1, "It ".to_owned(), 1, Some(7))], "the first one at once, with its time");
    for text in ["It is", "It is the", "It is the cable"] {
        live.take(partial(text));
    }
    assert_eq!(heard.since(), [], "less than 100 ms later");
    waits(100);
    live.take(partial("It is the cable,"));
    assert_eq!(heard.since(), [(1, "is the cable,".to_owned(), 4, None)]);
    live.take(partial("It is the cable, yes."));
    // What the engine reads of it may be spelled otherwise.
    live.finish("It is the cable; yes.");
    let end = heard.since();
    assert_eq!(end.iter().map(|(_, text, ..)| text.as_str()).collect::<String>(), " yes.");
}

#[test]
fn a_second_of_tokens_gives_at_most_ten_notices() {
    let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, None);
    let text = "ab ".repeat(1_000);
    for tokens in 1..=1_000 {
        live.take(partial(&text[..tokens * 3]));
        waits(1);
    }
    assert!(heard.since().len() <= 10);
    // The longer the text, the longer the time between two notices: each reads it all again.
    let text = "ab ".repeat(200_000);
    waits(10_000);
    live.take(partial(&text[..120_000]));
    let before = heard.since();
    assert!(before.iter().all(|(_, text, ..)| text.len() <= 16 * 1024), "bounded, too");
    waits(300);
    live.take(partial(&text[..121_000]));
    assert_eq!(heard.since(), []);
    waits(200);
    live.take(partial(&text[..122_000]));
    assert_eq!(heard.since()[0].1.len(), 2_000);
    // Beyond the longest text only the tokens continue.
    waits(10_000);
    live.take(partial(&text));
    let all: usize = heard.since().iter().map(|(_, text, ..)| text.len()).sum();
    assert_eq!(all, 256 * 1024 - 122_000);
    live.finish(&text);
    assert_eq!(heard.since(), [(1, String::new(), 150_000, None)]);
}

#[test]
fn another_attempt_makes_what_was_heard_void_at_once() {
    let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, None);
    live.start_again();
    assert_eq!(heard.since(), [], "nothing was heard that could be void");
    live.take(partial("cut off"));
    live.start_again();
    live.take(partial("whole"));
    let heard = heard.since();
    assert_eq!(heard[0], (2, "cut off".to_owned(), 2, Some(7)));
    assert_eq!(heard[1..], [(3, String::new(), 0, None), (3, "whole".to_owned(), 2, Some(7))]);
}

#[test]
fn tokens_are_the_providers_count_and_an_estimate_of_what_came_since() {
    let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, None);
    let at = |written, output_tokens| {
        live.take(PartialReply { text: "", written, output_tokens, time_to_first_token_ms: 7 });
        waits(100);
        let notices = std::mem::take(&mut *heard.notices.lock().unwrap());
        notices
            .iter()
            .map(|notice| match notice {
                Notice::ModelDelta { output_tokens, estimated, .. } => (*output_tokens, *estimated),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(at(400, None), [(100, true)], "reasoning and calls count, and show no text");
    assert_eq!(at(800, Some(150)), [(150, false)]);
    assert_eq!(at(800, Some(150)), [], "nothing new");
    assert_eq!(at(1_200, Some(150)), [(250, true)]);
}

#[test]
fn a_secret_in_pieces_is_held_back_until_it_can_be_labelled() {
    let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, Some("s3cr3t-value"));
    let whole = "The key is s3cr3t-value, as you know.";
    for end in 1..=whole.len() {
        live.take(partial(&whole[..end]));
        waits(100);
    }
    live.finish(whole);
    let text: String = heard.since().into_iter().map(|(_, text, ..)| text).collect();
    assert_eq!(text, "The key is [secret key], as you know.");
}

#[test]
fn a_listener_that_is_away_costs_nothing_and_then_hears_all() {
    let (_clock, heard, estimator) = (PlayedClock::start(), Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, None);
    heard.is_away.store(true, Ordering::SeqCst);
    live.take(partial("It is"));
    heard.is_away.store(false, Ordering::SeqCst);
    assert_eq!(heard.since(), []);
    waits(100);
    live.take(partial("It is the cable"));
    assert_eq!(heard.since(), [(1, "It is the cable".to_owned(), 4, Some(7))]);
}

#[tokio::test]
async fn what_came_is_passed_on_although_nothing_follows() {
    let (heard, estimator) = (Heard::default(), TokenEstimator::default());
    let live = live(&heard, &estimator, None);
    // The reply never ends; the wait does when the second piece was heard.
    let reply = async {
        live.take(partial("It "));
        live.take(partial("It is"));
        std::future::pending::<()>().await;
    };
    let all_heard = async {
        while heard.notices.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = live.while_waiting(reply) => {}
        () = all_heard => {}
    }
    assert_eq!(heard.since()[1].1, "is");
}
