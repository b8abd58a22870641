//! Where an encoding begins, ends and stops being one: the secret is removed whole, and its neighbours stay.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::encodings::Spellings;
use super::tests::resolved;

fn scrubbed(secret: &str, text: &str) -> String {
    resolved(&[("k", secret)]).scrub(text.to_owned())
}

fn units(text: &str, begin: &str) -> String {
    text.encode_utf16().map(|unit| format!("{begin}{unit:04x}")).collect()
}

#[test]
fn a_character_above_the_first_plane_is_decoded_from_its_two_units() {
    // The first and the last of the plane's pairs, and of all.
    for secret in ["key-🦀-9", "\u{10000}abcd", "ab\u{103FF}cd", "abcd\u{10400}", "abcd\u{10FFFF}"] {
        for begin in ["\\u", "%u", "\\\\u"] {
            assert_eq!(scrubbed(secret, &format!("<{}>", units(secret, begin))), "<[secret k]>", "{begin} {secret}");
        }
    }
    // The neighbours of the units of pairs stand alone.
    for secret in ["\u{D7FF}abcd", "\u{E000}abcd", "abcd\u{E000}"] {
        assert_eq!(scrubbed(secret, &units(secret, "\\u")), "[secret k]", "{secret}");
        for half in ["\\ud83e", "\\udc00"] {
            let text = format!("{half}{}{half}", units(secret, "\\u"));
            assert_eq!(scrubbed(secret, &text), format!("{half}[secret k]{half}"));
        }
    }
    // Each half in another notation is no pair.
    let mixed = "abcd\\ud83e%udd80";
    assert_eq!(scrubbed("abcd🦀", mixed), mixed);
}

#[test]
fn each_control_character_is_decoded_from_its_letter() {
    for (control, letter) in
        [('\n', 'n'), ('\r', 'r'), ('\t', 't'), ('\u{8}', 'b'), ('\u{C}', 'f'), ('\u{B}', 'v'), ('\0', '0')]
    {
        let secret = format!("ab{control}cd");
        assert_eq!(scrubbed(&secret, &format!("<ab\\{letter}cd>")), "<[secret k]>", "{letter}");
        assert_eq!(scrubbed(&secret, &format!("<ab\\\\{letter}cd>")), "<[secret k]>", "{letter}");
    }
    assert_eq!(scrubbed("ab\ncd", "ab\\acd, ab\\1cd"), "ab\\acd, ab\\1cd");
}

#[test]
fn an_escape_that_a_match_ends_in_is_removed_whole() {
    // Decoded, the secret ends with the first of the two bytes of `é`.
    assert_eq!(scrubbed("abcd%C3", "<abcd\\u00e9>"), "<[secret k]>");
    assert_eq!(scrubbed("abcd%C3", "<abcd&eacute;>"), "<abcd&eacute;>");
}

#[test]
fn base64_is_found_in_both_alphabets_and_with_nothing_but_blanks_inside() {
    let secret = "a?>>>~~~???b";
    let encoded = [STANDARD_NO_PAD.encode(secret), URL_SAFE_NO_PAD.encode(secret)];
    assert!(encoded[0].contains('+') && encoded[0].contains('/'), "{}", encoded[0]);
    assert!(encoded[1].contains('-') && encoded[1].contains('_'), "{}", encoded[1]);
    for encoded in &encoded {
        assert_eq!(scrubbed(secret, &format!("<{encoded}>")), "<[secret k]>");
        for (between, is_found) in [(" ", true), ("\n", true), (".", false), (",", false), ("é", false)] {
            let (head, tail) = encoded.split_at(7);
            let text = format!("<{head}{between}{tail}>");
            assert_eq!(scrubbed(secret, &text) == "<[secret k]>", is_found, "{text}");
        }
    }
}

#[test]
fn base32_is_found_with_nothing_but_blanks_and_hyphens_inside() {
    for (between, is_found) in [(" ", true), ("\r\n", true), ("-", true), (".", false), ("1", false), ("é", false)] {
        let text = format!("<MFRGGZD{between}FMZTWQ2LK>");
        assert_eq!(scrubbed("abcdefghij", &text) == "<[secret k]>", is_found, "{text}");
    }
}

#[test]
fn what_stands_behind_base32_stays() {
    // Of "abcdefghij", with more behind it: groups of five bytes are complete.
    assert_eq!(scrubbed("abcdefghij", "MFRGGZDFMZTWQ2LK"), "[secret k]");
    assert_eq!(scrubbed("abcdefghij", "MFRGGZDFMZTWQ2LKAA======"), "[secret k]AA======");
}

#[test]
fn a_secret_of_more_than_4096_bytes_is_searched_for_in_its_common_encodings_only() {
    let letters = |length: usize| (0..length).map(|n| char::from(b'a' + u8::try_from(n * 7 % 26).unwrap())).collect();
    for (length, has_all) in [(4096, true), (4097, false), (4098, false)] {
        let secret: String = letters(length);
        let spelled = Spellings::of(&secret);
        assert!(spelled.plain.contains(secret.as_bytes()), "{length}");
        assert!(spelled.base64.contains(STANDARD.encode(&secret).trim_end_matches('=').as_bytes()), "{length}");
        assert!(spelled.hex.iter().any(|hex| hex.len() == 2 * length), "{length}");
        assert_eq!(spelled.hex.iter().any(|hex| hex.len() == 3 * length), has_all, "{length}");
        assert_eq!(!spelled.base32.is_empty(), has_all, "{length}");
    }
}

#[test]
fn a_secret_that_is_escaped_more_than_eight_times_itself_costs_eight_layers() {
    for (layers, own) in [(1, 1), (7, 7), (8, 8), (9, 8), (40, 8)] {
        let secret = format!("abcd%{}41", "25".repeat(layers - 1));
        assert_eq!(Spellings::of(&secret).own_layers, own, "{secret}");
        assert_eq!(scrubbed(&secret, &format!("<{secret}>")), "<[secret k]>");
    }
}

#[test]
fn of_the_beginnings_of_several_secrets_at_a_cut_the_longest_is_removed() {
    let vault = resolved(&[("long", "swordfish-and-more"), ("short", "fish-and-chips"), ("mark", "&fishing-boat")]);
    assert_eq!(vault.scrub_cut("it is swordfish-and".to_owned()), "it is [secret long]");
    assert_eq!(vault.scrub_cut("it is fish-and".to_owned()), "it is [secret short]");
    // The mark may begin a secret, and an escape in the longer one.
    assert_eq!(vault.scrub_cut("it is swordfish&fishing".to_owned()), "it is [secret long]");
    assert_eq!(vault.scrub_cut("it is sword&fishing".to_owned()), "it is [secret long]");
    assert_eq!(vault.scrub_cut("it is swo&fishing".to_owned()), "it is swo[secret mark]");
}
