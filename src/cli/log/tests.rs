//! The form of a line, and which lines are counted in place of written.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::line::LogLine;
use super::repeats::{REPEAT_INTERVAL, Repeats};
use super::{LogFormat, filter, format};
use crate::drive::clock;

/// Keeps the lines of a test.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<LogLine>>>);

impl<S: Subscriber> Layer<S> for Kept {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().push(LogLine::of(event, std::iter::empty()));
    }
}

/// The lines that this logs.
fn lines(logs: impl FnOnce()) -> Vec<LogLine> {
    let kept = Kept::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(kept.clone()), logs);
    let mut lines = kept.0.lock().unwrap();
    std::mem::take(&mut *lines)
}

fn line(logs: impl FnOnce()) -> LogLine {
    lines(logs).pop().unwrap()
}

/// What is written of these lines, without their times.
fn shown(lines: impl IntoIterator<Item = LogLine>) -> Vec<String> {
    let text =
        |line: LogLine| line.written(LogFormat::Text).split_once("  WARN ").map(|(_, rest)| rest.trim().to_owned());
    lines.into_iter().map(|line| text(line).unwrap()).collect()
}

#[test]
fn a_text_of_a_tenant_forges_no_line_and_shows_no_secret() {
    let hostile = "a\nERROR forged\u{1b}[31m\u{202E}?token=abc\" x";
    let logged = line(|| tracing::warn!("loop" = hostile, number = 3, given = true, "the loop {hostile}"));
    let text = logged.written(LogFormat::Text);
    assert!(text.ends_with('\n') && text.trim_end().lines().count() == 1, "{text}");
    let (_, rest) = text.split_once("  WARN ").unwrap();
    assert_eq!(
        rest.trim_end(),
        "loopctl::cli::log::tests: the loop a\\nERROR forged\\u{1B}[31m\\u{202E}?token=[hidden]\" x \
         loop=\"a\\nERROR forged\\u{1B}[31m\\u{202E}?token=[hidden]\\\" x\" number=3 given=true"
    );
    let json = logged.written(LogFormat::Json);
    assert!(json.is_ascii() && json.trim_end().lines().count() == 1, "{json}");
    let object: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&object["level"], &object["number"], &object["given"]),
        (&"warn".into(), &3.into(), &true.into()),
        "{json}"
    );
    assert_eq!(object["loop"], "a\nERROR forged\u{1b}[31m\u{202E}?token=[hidden]\" x");
    assert_eq!(object["message"], format!("the loop {}", object["loop"].as_str().unwrap()));
    assert!(object["timestamp"].as_str().unwrap().ends_with('Z'));
    let forged = line(|| tracing::warn!(run_id = "r", "failed run_id=\"other\" by=\"ann\""));
    let text = forged.written(LogFormat::Text);
    assert!(text.contains(r#"failed run_id\="other" by\="ann" run_id="r""#), "{text}");
    let token = format!("loopctl-{}", "aB3-_x".repeat(7) + "9");
    let shown = line(|| tracing::warn!("the call failed with {token}")).written(LogFormat::Text);
    assert!(!shown.contains("aB3"), "{shown}");
}

#[test]
fn a_long_text_is_cut_after_its_secrets_are_hidden() {
    let long = format!("{} Bearer abcdefghijklmnopqrstuvwxyz0123456789", "x".repeat(1_980));
    let json = line(|| tracing::warn!("{long}")).written(LogFormat::Json);
    assert!(!json.contains("abcdef") && json.len() < 2_500, "{json}");
    let very_long = line(|| tracing::warn!("{}", "é".repeat(100_000))).written(LogFormat::Text);
    assert!(very_long.chars().count() < 2_200 && very_long.trim_end().ends_with('…'));
}

#[test]
fn equal_warnings_of_a_minute_are_one_line_and_a_count() {
    let mut repeats = Repeats::default();
    let now = clock::instant();
    let at = |second: u64| now + Duration::from_secs(second);
    // The number of attempts makes no other line.
    let away = |tries: u64| line(|| tracing::warn!(tries, "the database is away"));
    let written = |line: Option<LogLine>| shown(line);
    let place = "loopctl::cli::log::tests:";
    assert_eq!(written(repeats.admit(away(1), at(0))), [format!("{place} the database is away tries=1")]);
    for second in 1..60 {
        assert!(repeats.admit(away(1 + second), at(second)).is_none());
        assert!(repeats.admit(line(|| tracing::info!("answered")), at(second)).is_some(), "no warning is counted");
        assert!(repeats.due(at(second)).is_empty());
    }
    assert!(repeats.admit(line(|| tracing::warn!("another run")), at(30)).is_some());
    let counted = format!("{place} the database is away tries=60 (59 equal lines since the last one)");
    assert_eq!(shown(repeats.due(at(60))), [counted]);
    assert!(repeats.due(at(61)).is_empty(), "each is counted once");
    assert!(repeats.admit(away(90), at(62)).is_none(), "the next minute of it");
    let counted = format!("{place} the database is away tries=90 (1 equal lines since the last one)");
    assert_eq!(shown(repeats.all(at(63))), [counted.as_str()], "what is counted when the process ends");
    repeats.due(at(200));
    assert_eq!(written(repeats.admit(away(1), at(201))).len(), 1, "it was over, and comes again");
}

/// How many lines of a flood are written: all are of one place, and each is about something else.
fn flood(repeats: &mut Repeats, number: u64, now: Instant) -> usize {
    let logged = lines(|| (0..number).for_each(|path| tracing::warn!(path, request_id = path, "refused")));
    logged.into_iter().filter_map(|line| repeats.admit(line, now)).count()
}

#[test]
fn a_flood_of_different_warnings_of_one_place_is_bounded_and_counted() {
    let mut repeats = Repeats::default();
    let now = clock::instant();
    assert_eq!(flood(&mut repeats, 5_000, now), 200);
    assert!(repeats.admit(line(|| tracing::warn!("of another place")), now).is_some());
    let shown = shown(repeats.due(now + REPEAT_INTERVAL));
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(
        shown[0].contains("path=4999") && shown[0].ends_with("(4800 more lines like this one, which are left out)")
    );
    assert_eq!(flood(&mut repeats, 5_000, now + REPEAT_INTERVAL), 200, "the next minute has lines of its own");
    // Who repeats all of them in each minute gets no more lines for it.
    for minute in 2..6 {
        let now = now + minute * REPEAT_INTERVAL;
        let written = repeats.due(now).len() + flood(&mut repeats, 5_000, now);
        assert!(written <= 2 * 200 + 1, "{written} lines in minute {minute}");
    }
    repeats.all(now + 9 * REPEAT_INTERVAL);
    repeats.all(now + 9 * REPEAT_INTERVAL);
    assert!(format!("{repeats:?}").len() < 100, "nothing is kept: {repeats:?}");
}

#[test]
fn the_refusals_of_one_token_do_not_hide_those_of_another() {
    let mut repeats = Repeats::default();
    let now = clock::instant();
    assert_eq!(flood(&mut repeats, 5_000, now), 200);
    let refused = |token: &str| lines(|| (0..300).for_each(|path| tracing::warn!(path, token, "refused")));
    // Of one place too: a flood of those who have no token leaves room for each that is known.
    for token in ["ann", "bob"] {
        assert_eq!(refused(token).into_iter().filter_map(|line| repeats.admit(line, now)).count(), 200, "{token}");
    }
}

#[test]
fn a_server_logs_without_the_variable_and_a_bad_one_is_reported() {
    let shown = |written, default| {
        let (filter, fault) = filter(written, default);
        (filter.map(|filter| filter.to_string()), fault.is_some())
    };
    assert_eq!(shown(None, Some("info")), (Some("info".to_owned()), false));
    assert_eq!(shown(None, None), (None, false));
    assert_eq!(shown(Some("off"), Some("info")), (Some("off".to_owned()), false));
    assert_eq!(shown(Some("loopctl=loud"), Some("info")), (Some("info".to_owned()), true));
    assert_eq!(shown(Some("loopctl=loud"), None), (None, true));
}

#[test]
fn the_variable_names_a_format() {
    assert_eq!(format(None), (LogFormat::Text, None));
    assert_eq!(format(Some("JSON")), (LogFormat::Json, None));
    assert!(matches!(format(Some("xml")), (LogFormat::Text, Some(fault)) if fault.contains("`xml`")));
}
