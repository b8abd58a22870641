//! What readers have of a reply that is arriving.

use super::*;

fn part(attempt: u32, text: &str, output_tokens: u64) -> Notice {
    let (time_to_first_token_ms, last) = ((output_tokens == 1).then_some(9), false);
    Notice::ModelDelta {
        iteration: 1,
        attempt,
        text: text.to_owned(),
        output_tokens,
        estimated: true,
        time_to_first_token_ms,
        last,
    }
}

fn text(notice: Option<Notice>) -> Option<(u32, String, Option<u64>)> {
    match notice? {
        Notice::ModelDelta { attempt, text, time_to_first_token_ms, .. } => {
            Some((attempt, text, time_to_first_token_ms))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_reader_gets_what_it_lacks_as_one_part() {
    let mut reply = LiveReply::new(Redaction::default());
    let (mut first, mut second) = (LivePosition::default(), LivePosition::default());
    assert_eq!(reply.since(&mut first), None, "there is no reply yet");
    reply.take(&part(1, "It is ", 1));
    assert_eq!(text(reply.since(&mut first)), Some((1, "It is ".to_owned(), Some(9))));
    assert_eq!(reply.since(&mut first), None);
    reply.take(&part(1, "the ", 2));
    reply.take(&part(1, "cable ", 3));
    assert_eq!(text(reply.since(&mut first)), Some((1, "the cable ".to_owned(), None)));
    assert_eq!(
        text(reply.since(&mut second)),
        Some((1, "It is the cable ".to_owned(), Some(9))),
        "one that came later"
    );
    reply.take(&part(2, "", 0));
    assert_eq!(text(reply.since(&mut first)), Some((2, String::new(), None)), "the first attempt is void");
    reply.clear();
    assert_eq!(reply.since(&mut second), None);
}

#[test]
fn a_secret_in_parts_is_hidden_and_the_last_part_gives_what_was_held_back() {
    let mut reply = LiveReply::new(Redaction::default());
    let mut position = LivePosition::default();
    let mut shown = String::new();
    for (at, piece) in ["{\"thought\": \"T\", \"pass", "word\": \"hun", "ter2\", ", "\"n\": 1} done"].iter().enumerate()
    {
        reply.take(&part(1, piece, at as u64 + 1));
        shown.extend(text(reply.since(&mut position)).map(|(_, text, _)| text));
        assert!(!shown.contains("hun"), "{shown}");
    }
    assert!(!shown.ends_with("done"), "it may go on");
    let mut end = part(1, "", 4);
    if let Notice::ModelDelta { last, .. } = &mut end {
        *last = true;
    }
    reply.take(&end);
    shown.extend(text(reply.since(&mut position)).map(|(_, text, _)| text));
    assert_eq!(shown, "{\"thought\": \"T\", \"password\": \"[hidden]\", \"n\": 1} done");
}
