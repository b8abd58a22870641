//! Every encoding of a secret that the documentation names is removed, and other text stays.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use super::tests::resolved;

/// With characters that the encodings encode differently, as in keys of storage services and in passwords.
const SECRET: &str = "wJal/rX+Ut=nF&E'M\"I <K>7\\M;9";

fn is_taken_out(spelling: &str) {
    is_hidden(SECRET, spelling);
}

fn is_hidden(secret: &str, spelling: &str) {
    let vault = resolved(&[("k", secret)]);
    assert_eq!(vault.scrub(format!("<{spelling}>")), "<[secret k]>", "{spelling}");
}

fn is_left(spelling: &str) {
    let vault = resolved(&[("k", SECRET)]);
    assert_eq!(vault.scrub(spelling.to_owned()), spelling);
}

fn percent(text: &str, kept: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte);
    text.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn json(text: &str) -> String {
    let written = serde_json::to_string(text).unwrap();
    written[1..written.len() - 1].to_owned()
}

fn entities(text: &str, write: fn(char) -> String) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == ' ' { c.to_string() } else { write(c) }).collect()
}

fn hex(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base32(bytes: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let fives = bits.as_bytes().chunks(5).map(|five| format!("{:0<5}", str::from_utf8(five).unwrap()));
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text: String = fives.map(|five| char::from(alphabet[usize::from_str_radix(&five, 2).unwrap()])).collect();
    while !text.len().is_multiple_of(8) {
        text.push('=');
    }
    text
}

fn broken(text: &str, every: usize, with: &str) -> String {
    text.as_bytes().chunks(every).map(|line| str::from_utf8(line).unwrap()).collect::<Vec<_>>().join(with)
}

#[test]
fn base64_that_is_broken_into_lines_is_taken_out() {
    for encoded in [STANDARD.encode(SECRET), URL_SAFE.encode(SECRET)] {
        for with in [
            "\n",
            "\r\n",
            "\r",
            "\\n",
            "\\r\\n",
            "\\\\n",
            "\\\\r\\\\n",
            "\n    ",
            " ",
            "\t",
            "%0A",
            "%0D%0A",
            "\\u000a",
            "&#10;",
        ] {
            for every in [1, 4, 5, 16, 76] {
                is_taken_out(&broken(&encoded, every, with));
            }
        }
    }
}

#[test]
fn base64_in_json_in_a_url_and_in_a_form_is_taken_out() {
    let encoded = STANDARD.encode(SECRET);
    is_taken_out(&encoded.replace('/', "\\/"));
    is_taken_out(&percent(&encoded, ""));
    is_taken_out(&percent(&percent(&encoded, ""), ""));
    is_taken_out(&json(&json(&encoded.replace('/', "\\/"))));
}

#[test]
fn a_percent_encoded_secret_that_keeps_its_slash_is_taken_out() {
    // Python's urllib.parse.quote keeps the slash, JavaScript's encodeURI more.
    for kept in ["/", "-._~/", "-._~", "", "-_.!~*'();/?:@&=+$,#"] {
        let once = percent(SECRET, kept);
        for spelling in [once.clone(), once.to_lowercase().replace("wjal", "wJal").replace("rx", "rX")] {
            let same = spelling.bytes().filter(|byte| *byte != b'%').count() >= SECRET.len();
            assert!(same);
        }
        is_taken_out(&once);
        is_taken_out(&once.replace("%20", "+"));
        is_taken_out(&percent(&once, kept));
        is_taken_out(&percent(&percent(&once, ""), ""));
        is_taken_out(&json(&once.replace('/', "\\/")));
    }
    // All of it encoded, in digits of both cases.
    is_taken_out(&SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>());
    is_taken_out(&SECRET.bytes().map(|byte| format!("%25{byte:02X}")).collect::<String>());
}

#[test]
fn entities_by_name_and_by_number_are_taken_out() {
    let named = SECRET.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    for apostrophe in ["'", "&apos;", "&#39;", "&#039;", "&#x27;", "&#X27;", "&#x0027;", "&#0000039;"] {
        is_taken_out(&named.replace('\'', apostrophe));
        is_taken_out(&named.replace('\'', apostrophe).replace("&quot;", "&#34;"));
        is_taken_out(&json(&named.replace('\'', apostrophe)));
    }
    is_taken_out(&entities(SECRET, |c| format!("&#{};", u32::from(c))));
    is_taken_out(&entities(SECRET, |c| format!("&#x{:x};", u32::from(c))));
    is_taken_out(&entities(SECRET, |c| format!("&amp;#x{:X};", u32::from(c))));
    is_taken_out(
        &named
            .replace('/', "&sol;")
            .replace('+', "&plus;")
            .replace('=', "&equals;")
            .replace(';', "&semi;")
            .replace("&semi;9", ";9")
            .replace("&sol&semi;", "&sol;"),
    );
}

#[test]
fn escapes_of_programming_languages_are_taken_out() {
    let each = |write: fn(char) -> String| SECRET.chars().map(write).collect::<String>();
    is_taken_out(&each(|c| format!("\\u{:04x}", u32::from(c))));
    is_taken_out(&each(|c| format!("\\\\u{:04X}", u32::from(c))));
    is_taken_out(&each(|c| format!("\\x{:02x}", u32::from(c))));
    is_taken_out(&each(|c| format!("\\{:03o}", u32::from(c))));
    is_taken_out(&each(|c| format!("\\u{{{:x}}}", u32::from(c))));
    is_taken_out(&each(|c| format!("\\U{:08x}", u32::from(c))));
    is_taken_out(&each(|c| format!("%u{:04X}", u32::from(c))));
    // A shell's `printf %q`.
    is_taken_out(&entities(SECRET, |c| format!("\\{c}")).replace(' ', "\\ "));
    let mut lines = SECRET.to_owned();
    lines.insert_str(9, "\\\n");
    is_taken_out(&lines);
    let twice = json(&json(SECRET));
    is_taken_out(&twice);
    is_taken_out(&json(&twice));
}

#[test]
fn hexadecimal_with_anything_between_its_digits_is_taken_out() {
    let pairs = hex(SECRET.as_bytes());
    for between in ["", " ", ":", "-", ", ", "\n", "\\n", "\r\n  ", "\\x", "%20"] {
        is_taken_out(&pairs.join(between));
        is_taken_out(&pairs.join(between).to_uppercase().replace("\\N", "\\n").replace("\\X", "\\x"));
    }
    is_taken_out(&pairs.iter().map(|pair| format!("0x{pair}")).collect::<Vec<_>>().join(", ")[..]);
    is_taken_out(&broken(&pairs.concat(), 60, "\n"));
}

#[test]
fn base32_is_taken_out_in_both_cases_with_and_without_padding_at_every_offset() {
    let whole = base32(SECRET.as_bytes());
    for spelling in [
        whole.clone(),
        whole.to_lowercase(),
        whole.trim_end_matches('=').to_owned(),
        broken(&whole, 8, "\n"),
        broken(whole.trim_end_matches('='), 4, "-"),
    ] {
        is_taken_out(&spelling);
    }
    let vault = resolved(&[("k", SECRET)]);
    for before in ["", "u", "us", "use", "user", "user:"] {
        let encoded = base32(format!("{before}{SECRET}{before}").as_bytes());
        let clean = vault.scrub(encoded.clone());
        assert!(clean.len() <= encoded.len() - SECRET.len() && clean.contains("[secret k]"), "{encoded} -> {clean}");
    }
}

#[test]
fn utf16_is_taken_out_plain_escaped_and_encoded() {
    let little: Vec<u8> = SECRET.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = SECRET.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let vault = resolved(&[("k", SECRET)]);
    for bytes in [&little, &big] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        for spelling in [text.clone(), json(&text), json(&json(&text)), percent(&text, "")] {
            let clean = vault.scrub(spelling.clone());
            let left = clean.replace("\\\\u0000", "").replace("\\u0000", "").replace("%00", "").replace('\0', "");
            assert_eq!(left, "[secret k]", "{spelling:?}");
        }
        is_taken_out(&STANDARD.encode(bytes));
        is_taken_out(&hex(bytes).concat());
        is_taken_out(&hex(bytes).join(" "));
        is_taken_out(&base32(bytes));
    }
}

#[test]
fn a_text_of_json_with_the_secret_is_taken_out_of_base64() {
    let vault = resolved(&[("k", SECRET)]);
    let document = serde_json::json!({ "key": SECRET }).to_string();
    let clean = vault.scrub(STANDARD.encode(&document));
    assert!(clean.contains("[secret k]") && clean.len() <= STANDARD.encode(&document).len() - SECRET.len(), "{clean}");
}

#[test]
fn a_secret_that_looks_like_escapes_itself_is_taken_out() {
    for secret in ["100%25\\u0041&amp;x", "a%41\\\\n\\n&#x27;b", "%2541%2541zz", "C:\\new\\x41\\table", "&amp;amp;lt;"]
    {
        for spelling in [
            secret.to_owned(),
            json(secret),
            json(&json(secret)),
            percent(secret, ""),
            percent(&percent(secret, "/"), ""),
            json(&percent(secret, "")),
            secret.replace('&', "&amp;"),
            STANDARD.encode(secret),
            hex(secret.as_bytes()).concat(),
        ] {
            is_hidden(secret, &spelling);
        }
    }
    // What is blank without its escapes is in every text.
    assert_eq!(resolved(&[("k", "%20%20%20%20%0A")]).scrub("a        \n".to_owned()), "a        \n");
}

#[test]
fn what_is_no_secret_stays_as_it_is() {
    let sentence = "100 % sure, C:\\new\\table &amp; \\u0041 %41 aGVsbG8gd29ybGQ=\n68 65 6c 6c 6f ORSXG5A=";
    is_left(sentence);
    // The same texts with one character changed: they are no secrets.
    is_left(&SECRET.replace('J', "j"));
    is_left(&percent(&SECRET.replace('J', "j"), "/"));
    is_left(&STANDARD.encode(SECRET.replace('7', "8"))[4..]);
    is_left(&STANDARD.encode(SECRET).to_lowercase());
    // What is not covered, as the documentation says.
    is_left(&SECRET.chars().rev().collect::<String>());
    is_left(&SECRET.chars().map(String::from).collect::<Vec<_>>().join(" "));
}

#[test]
fn two_secrets_that_share_a_part_leave_none_of_it() {
    let vault = resolved(&[("a", "hunter22"), ("b", "r22swordfish")]);
    assert_eq!(vault.scrub("<hunter22swordfish>".to_owned()), "<[secret b]>");
    assert_eq!(vault.scrub("<hunter22hunter22>".to_owned()), "<[secret a][secret a]>");
}

#[test]
fn the_beginning_of_a_secret_at_the_end_of_a_cut_text_is_taken_out() {
    let vault = resolved(&[("k", SECRET)]);
    let pairs = hex(SECRET.as_bytes()).concat();
    for spelling in [
        SECRET.to_owned(),
        json(SECRET),
        json(&json(SECRET)),
        percent(SECRET, ""),
        percent(&percent(SECRET, ""), ""),
        entities(SECRET, |c| format!("&#x{:x};", u32::from(c))),
        SECRET.chars().map(|c| format!("\\{:03o}", u32::from(c))).collect(),
        SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
        STANDARD.encode(SECRET),
        broken(&STANDARD.encode(SECRET), 5, "\n"),
        pairs,
        base32(SECRET.as_bytes()),
    ] {
        for length in 1..spelling.len() {
            let cut = format!("the key is <{}", &spelling[..length]);
            let clean = vault.scrub_cut(cut.clone());
            let left = clean.len() - "the key is <".len();
            assert!(clean == cut && left < 24 || clean == "the key is <[secret k]", "{cut} -> {clean}");
            // Four characters, or as many bytes of an encoding, are the most that is left.
            let shown = SECRET.char_indices().filter(|(at, _)| clean.contains(&SECRET[..*at]));
            assert!(shown.count() <= 4, "{clean}");
        }
        let whole = vault.scrub_cut(format!("<{spelling}> and more"));
        assert_eq!(whole, "<[secret k]> and more");
    }
    assert_eq!(vault.scrub_cut("nothing of it\\".to_owned()), "nothing of it\\");
    // The twin: a whole text whose end looks like the beginning of a secret.
    assert_eq!(vault.scrub("wJal/rX".to_owned()), "wJal/rX");
}

#[test]
fn a_periodic_secret_and_a_long_gap_cost_one_pass() {
    // Each character of the text ends a match that began thousands of characters before.
    let vault = resolved(&[("k", &"a".repeat(4_000))]);
    let text = format!("{}{}", "YWFh".repeat(50_000), " ".repeat(100_000));
    assert_eq!(vault.scrub(format!("{text}{}", "YWFh".repeat(50_000))), "[secret k]");
}

#[derive(Debug, Clone, Copy)]
enum Layer {
    Percent,
    Json,
    Html,
}

fn layered(text: &str, layers: &[Layer]) -> String {
    layers.iter().fold(text.to_owned(), |text, layer| match layer {
        Layer::Percent => percent(&text, "/-._~"),
        Layer::Json => json(&text),
        Layer::Html => {
            entities(&text, |c| if "&<>\"'".contains(c) { format!("&#{};", u32::from(c)) } else { c.to_string() })
        }
    })
}

#[test]
fn an_escape_of_the_secret_that_hides_the_start_of_a_layer_costs_no_layer() {
    let percent = [Layer::Percent; 3];
    for secret in
        ["Aa0Aa\\&A", "Aa0Aa\\\\\\&A", "Aa0Aa\\\"A", "Aa0Aa%25\\<A", "Aa0Aa&#6\\tA", "Aa0Aa\\&amp;amp;A\\\\\\\\t"]
    {
        is_hidden(secret, &layered(secret, &[&[Layer::Html], &percent[..]].concat()));
        is_hidden(secret, &layered(secret, &[Layer::Html; 4]));
        is_hidden(secret, &layered(secret, &[Layer::Json; 4]));
    }
}

#[test]
fn an_escape_behind_the_secrets_backslash_is_decoded_as_its_layer_encoded_it() {
    for secret in ["a0aAa\\&#2A", "a0aAa\\%41A", "0a0aA\\u00&#xA"] {
        is_hidden(secret, &layered(secret, &[Layer::Json]));
        is_hidden(secret, &layered(secret, &[Layer::Html, Layer::Percent, Layer::Json]));
    }
}

#[test]
fn a_secret_whose_own_escapes_are_zeros_is_taken_out_whole() {
    for secret in ["\\0aAA0\"A", "aAA0\"A\\0", "\\0\\0aAA0\"A"] {
        is_hidden(secret, &layered(secret, &[Layer::Html]));
    }
}

proptest! {
    #[test]
    fn no_layers_hide_a_secret(
        // The second kind is mostly beginnings of escapes.
        secret in prop_oneof![
            "[ -~é漢🦀]{0,3}[A-Za-z0-9]{5}[ -~é漢🦀]{0,12}[A-Za-z]",
            r#"[A-Za-z0-9]{5}([%\\&"'<#;xun0256]|&#|%25|&amp;|\\u00){0,10}[A-Za-z]"#,
        ],
        layers in prop::collection::vec(prop::sample::select(vec![Layer::Percent, Layer::Json, Layer::Html]), 0..=4),
    ) {
        let vault = resolved(&[("k", &secret)]);
        let text = layered(&secret, &layers);
        prop_assert_eq!(vault.scrub(format!("({text})")), "([secret k])", "{}", text);
    }

    #[test]
    fn no_text_makes_it_panic_and_what_is_outside_of_secrets_stays(text in "([%\\\\&#ux0-9a-f;é漢\\n ]|hunter22|aHVudGVyMjI=){0,40}") {
        let vault = resolved(&[("k", "hunter22")]);
        let clean = vault.scrub(text.clone());
        prop_assert!(!clean.contains("hunter22") && !clean.contains("aHVudGVyMjI"));
        let mut rest = text.as_str();
        for piece in clean.split("[secret k]") {
            let at = rest.find(piece);
            prop_assert!(at.is_some(), "{} -> {}", text, clean);
            rest = &rest[at.unwrap() + piece.len()..];
        }
        drop(vault.scrub_cut(text));
    }
}
