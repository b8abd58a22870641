//! A text that grows by any pieces gives the same as the whole, and never a part of a secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::Vault;
use super::tests::resolved;

const SECRET: &str = "wJal/rX+Ut=nF&E'M\"I <K>7\\M;9";
const OTHER: &str = "tok-123";

fn vault() -> Vault {
    resolved(&[("k", SECRET), ("o", OTHER)])
}

/// The scrub of the whole begins with what is settled of each beginning of the text. So no cuts, wherever they are, give
/// anything else.
fn grows(vault: &Vault, text: &str) {
    let scrubber = vault.growing();
    let whole = vault.scrub(text.to_owned());
    assert_eq!(scrubber.whole(text), whole);
    for (end, _) in text.char_indices().chain([(text.len(), ' ')]) {
        let settled = scrubber.settled(&text[..end]);
        assert!(whole.starts_with(&*settled), "{:?}:\n{whole}\n{settled}", &text[..end]);
    }
}

fn json(text: &str) -> String {
    let written = serde_json::to_string(text).unwrap();
    written[1..written.len() - 1].to_owned()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn entities(text: &str) -> String {
    text.chars().map(|c| format!("&#x{:08x};", u32::from(c))).collect()
}

fn units(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn lines(text: &str, every: usize) -> String {
    text.as_bytes().chunks(every).map(|line| str::from_utf8(line).unwrap()).collect::<Vec<_>>().join("\n  ")
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("0x{byte:02x}, ")).collect()
}

fn spellings(secret: &str) -> Vec<String> {
    let base64 = STANDARD.encode(format!("a{secret}"));
    vec![
        secret.to_owned(),
        json(secret),
        json(&json(secret)),
        percent(secret),
        percent(&percent(secret)),
        entities(secret),
        json(&entities(&json(secret))),
        units(secret),
        json(&units(secret)),
        hex(secret),
        lines(&base64, 5),
        base64,
        STANDARD.encode(secret),
        secret.encode_utf16().flat_map(u16::to_le_bytes).map(char::from).collect(),
    ]
}

#[test]
fn a_secret_that_is_cut_anywhere_is_never_passed_on_in_any_encoding() {
    let vault = vault();
    let behind = "and then it goes on. ".repeat(20);
    // The two have the same spellings in the same order: each is tried with one of them.
    let of_both = spellings(SECRET).into_iter().zip(spellings(OTHER)).enumerate();
    for spelling in of_both.map(|(number, (one, other))| if number % 2 == 0 { one } else { other }) {
        for text in [
            format!("It is {spelling}"),
            format!("It is {spelling}{spelling}, {behind}"),
            // Beginnings of it, and what looks like one.
            format!("{}{spelling} {} {behind}", json(&SECRET[..9]), &spelling[..spelling.floor_char_boundary(7)]),
        ] {
            grows(&vault, &text);
        }
        let shown = vault.growing().settled(&format!("It is {spelling}, {behind}")).into_owned();
        assert!(shown.contains("[secret "), "{shown}");
    }
}

#[test]
fn a_text_without_secrets_is_passed_on_nearly_to_its_end() {
    let text = "The cable is loose, and the lamp is fine: 12 of 14. ".repeat(4);
    let settled = vault().growing().settled(&text).into_owned();
    assert!(text.starts_with(&settled) && text.len() - settled.len() < 20, "{settled}");
    assert_eq!(resolved(&[]).growing().settled(&text), text, "without secrets, all of it");
}

#[test]
fn padding_that_comes_later_belongs_to_the_secret_and_what_comes_far_behind_does_not() {
    let vault = resolved(&[("k", "hunter-22-x")]);
    let encoded = STANDARD.encode("hunter-22-x");
    let (digits, padding) = encoded.split_at(encoded.len() - 1);
    assert_eq!(padding, "=");
    for blanks in [" ", "\n", "\\n", " \r\n  "] {
        grows(&vault, &format!("It is {digits}{blanks}{padding} and more"));
    }
    let shown = |behind: usize| vault.growing().settled(&format!("It is {digits}{}", ".".repeat(behind))).into_owned();
    assert_eq!(shown(255), "It is ");
    assert_eq!(shown(256), format!("It is [secret k]{}", ".".repeat(256)));
}

#[test]
fn a_secret_before_the_beginning_of_another_one_is_passed_on() {
    let long = "long-".repeat(80);
    let vault = resolved(&[("k", "hunter22"), ("long", &long)]);
    let text = format!("It is hunter22{}", &long[..300]);
    assert_eq!(vault.growing().settled(&text), "It is [secret k]");
    grows(&vault, &format!("{text}, and so on"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]
    #[test]
    fn a_text_that_grows_by_any_pieces_gives_the_scrub_of_the_whole(
        parts in proptest::collection::vec((0usize..20, 0usize..40, 0usize..60), 1..7),
    ) {
        let all: Vec<String> = spellings(SECRET).into_iter().chain(spellings(OTHER)).collect();
        let others = ["\\", "&", "&#x", "%", "%25", "\\u00", "=", "==", " ", "\n", "\\n", "w", "dG9r", "prose. ", "{\"a\": \"", "é", "\0"];
        let mut text = String::new();
        for (kind, from, length) in parts {
            match all.get(kind) {
                // A part of a spelling, or all of it.
                Some(spelling) => text.extend(spelling.chars().skip(from / 2 * (from % 2)).take(length * 4)),
                None => text.push_str(others[(from + length) % others.len()]),
            }
            text.push_str(others[(kind + from + length) % others.len()]);
        }
        grows(&vault(), &text);
    }
}
