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
