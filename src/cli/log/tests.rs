//! An event is one escaped line.

use super::*;

#[test]
fn an_event_with_line_ends_and_escapes_is_one_line() {
    let mut out = Vec::new();
    {
        let mut writer = Escaping::new(&mut out);
        writer.write_all(b"INFO loopctl: reply=\"a\nERROR forged\x1b[31m").unwrap();
        writer.write_all(b"?token=abc\"\n").unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, "INFO loopctl: reply=\"a\\nERROR forged\\u{1B}[31m?token=[hidden]\"\n");
}

#[test]
fn equal_warnings_of_a_minute_are_one_line_and_a_count() {
    let mut repeats = RecentWarnings::default();
    let now = clock::instant();
    let line =
        |second: u64, level: &str, text: &str| format!("2026-01-31T12:00:{second:02}.000001Z  {level} loopctl: {text}");
    let mut admit = |second: u64, level: &str, text: &str| {
        repeats.admit(&line(second % 60, level, text), now + Duration::from_secs(second))
    };
    assert_eq!(admit(0, "WARN", "the database is away"), Some(0));
    for second in 1..60 {
        assert_eq!(admit(second, "WARN", "the database is away"), None);
        assert_eq!(admit(second, "INFO", "answered"), Some(0));
    }
    assert_eq!(admit(30, "WARN", "another run"), Some(0));
    assert_eq!(admit(31, "ERROR", "the database is away"), Some(0), "another level is another line");
    assert_eq!(admit(60, "WARN", "the database is away"), Some(59));
    assert_eq!(admit(61, "WARN", "the database is away"), None);
    assert_eq!(admit(200, "WARN", "the database is away"), Some(1));
    // What is remembered is bounded; what is not remembered is written.
    for number in 0..2 * MOST_REMEMBERED {
        assert_eq!(admit(300, "WARN", &number.to_string()), Some(0));
    }
    assert!(repeats.known.len() <= MOST_REMEMBERED);
}
