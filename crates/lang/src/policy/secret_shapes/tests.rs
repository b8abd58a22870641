//! Each shape is found at its place, and similar texts are not.

use super::{PREFIXES, SHORTEST, find, url_passwords};

/// Characters as keys have them, put together here so that no file holds a key.
fn characters(count: usize) -> String {
    "a1B2c3D4e5F6g7H8".chars().cycle().take(count).collect()
}

fn called(text: &str) -> Vec<(&str, &'static str)> {
    find(text).into_iter().map(|found| (&text[found.range], found.called)).collect()
}

#[test]
fn keys_are_found_by_their_prefix_at_the_least_length_and_not_below() {
    for prefix in PREFIXES {
        let key = format!("{}{}", prefix.begins, characters(prefix.least));
        for (before, after) in [("", ""), ("the key ", " is"), ("\"", "\","), ("key=", "&x"), ("a.b.", "")] {
            let text = format!("{before}{key}{after}");
            assert_eq!(called(&text), [(key.as_str(), prefix.called)], "{text}");
        }
        if prefix.begins.starts_with("sk-") && prefix.begins != "sk-" {
            // Shorter ones are still known by `sk-`.
            continue;
        }
        let short = format!("{}{}", prefix.begins, characters(prefix.least - 1));
        assert_eq!(called(&short), [], "{short}");
        let letters = format!("{}{}", prefix.begins, "x".repeat(prefix.least));
        assert!(called(&letters).is_empty() || prefix.begins.contains(char::is_numeric), "{letters}");
        assert!(!prefix.is_sure || called(&letters).len() == 1, "{letters}");
    }
}

#[test]
fn keys_are_found_by_what_announces_them_and_by_their_parts() {
    let cases = [
        (format!("Authorization: Bearer {}", characters(16)), characters(16), "a bearer token"),
        (format!("AccountName=a;AccountKey={}==;Suffix=b", characters(86)), characters(86) + "==", "an Azure key"),
        (format!("SharedAccessKey={}=", characters(43)), characters(43) + "=", "an Azure key"),
        (format!("//registry.example.com/:_authToken={}", characters(36)), characters(36), "an npm token"),
        (format!("bot12345678:AA{}/send", characters(33)), String::new(), ""),
        (
            format!("/12345678:AA{}/send", characters(33)),
            format!("12345678:AA{}", characters(33)),
            "a Telegram bot token",
        ),
        (format!("k {}-us21", "0f".repeat(16)), format!("{}-us21", "0f".repeat(16)), "a Mailchimp key"),
        (
            format!("M{}.{}.{}", characters(23), characters(6), characters(27)),
            format!("M{}.{}.{}", characters(23), characters(6), characters(27)),
            "a Discord bot token",
        ),
        (format!("eyJ{0}.eyJ{0}.{0}", characters(9)), format!("eyJ{0}.eyJ{0}.{0}", characters(9)), "a JSON web token"),
    ];
    for (text, key, what) in cases {
        let expected: Vec<(&str, &str)> = (!key.is_empty()).then_some((key.as_str(), what)).into_iter().collect();
        assert_eq!(called(&text), expected, "{text}");
    }
}

#[test]
fn ids_names_and_publishable_keys_are_none() {
    for text in [
        format!("pk_live_{}", characters(24)),
        "the bearer of the message 12345678901234567".to_owned(),
        "sku-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".to_owned(),
        "_authToken=${NPM_TOKEN}".to_owned(),
        "12:30:AA and 1234567890:BB".to_owned(),
        "build-us1, 0123456789-us2".to_owned(),
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301".to_owned(),
        "SG.1".to_owned(),
    ] {
        assert_eq!(called(&text), [], "{text}");
    }
}

#[test]
fn a_long_text_is_looked_through_once() {
    // Each of these would take minutes, were the rest of the text looked through at every piece.
    for piece in ["sk-.", "eyJ.", "bearer ", "1:AA", "AccountKey=", "-----BEGIN ", "a.", "sk-"] {
        let text = piece.repeat(400_000 / piece.len());
        assert!(find(&text).len() < text.len(), "{piece}");
    }
}

#[test]
fn a_bot_token_is_found_from_its_number_on_wherever_it_stands() {
    let token = format!("12345678:AA{}", characters(33));
    assert_eq!(
        called(&format!("it asks https://api.example/{token}/send")),
        [(token.as_str(), "a Telegram bot token")]
    );
    for number in ["1234567", "12345678901", "abcdefgh", "1234567x"] {
        assert_eq!(called(&format!("/{number}:AA{}/send", characters(33))), [], "{number}");
    }
}

#[test]
fn secrets_are_reported_in_the_order_of_the_text() {
    let key = format!("ghp_{}", characters(30));
    let text = format!("-----BEGIN PRIVATE KEY-----MIIB-----END PRIVATE KEY----- {key}");
    assert_eq!(called(&text), [("MIIB", super::PRIVATE_KEY), (key.as_str(), "a GitHub token")]);
}

#[test]
fn a_web_token_has_two_parts_of_json_that_are_long_enough() {
    let part = |length: usize| format!("eyJ{}", characters(length - 3));
    let token = format!("{}.{}.s", part(11), part(11));
    assert_eq!(called(&token), [(token.as_str(), "a JSON web token")]);
    for other in [
        format!("{}.{}.s", part(10), part(11)),
        format!("{}.{}.s", part(11), part(10)),
        format!("{}.{}.s", characters(20), part(20)),
        format!("{}.{}.s", part(20), characters(20)),
        format!("{}.{}", part(20), part(20)),
    ] {
        assert_eq!(called(&other), [], "{other}");
    }
}

#[test]
fn a_whole_run_is_a_key_when_each_of_its_parts_is_as_it_must_be() {
    let discord =
        |first: String, second: usize, third: usize| format!("{first}.{}.{}", characters(second), characters(third));
    let first = |length: usize| format!("M{}", characters(length - 1));
    let hexadecimal = |count: usize| "0f".chars().cycle().take(count).collect::<String>();
    for key in
        [discord(first(23), 6, 27), discord(first(28), 6, 40), hexadecimal(32) + "-us1", hexadecimal(32) + "-us21"]
    {
        assert_eq!(called(&key).len(), 1, "{key}");
    }
    for other in [
        discord(first(22), 6, 27),
        discord(first(29), 6, 27),
        discord(first(23), 5, 27),
        discord(first(23), 6, 26),
        discord(first(23).replace('M', "P"), 6, 27),
        discord(first(23), 6, 27) + ".x",
        format!("M{}.{}.{}", "x".repeat(22), "x".repeat(6), "x".repeat(27)),
        hexadecimal(31) + "-us21",
        hexadecimal(31) + "g-us21",
        hexadecimal(32) + "-us",
        hexadecimal(32) + "-us213",
        hexadecimal(32) + "-us2x",
    ] {
        assert_eq!(called(&other), [], "{other}");
    }
}

#[test]
fn private_keys_are_found_between_their_lines_and_to_the_end_where_they_are_cut() {
    let key = |title: &str, body: &str| format!("-----BEGIN {title}PRIVATE KEY-----{body}");
    let one = format!("x {}-----END PRIVATE KEY----- y", key("RSA ", "MIIB"));
    assert_eq!(called(&one), [("MIIB", super::PRIVATE_KEY)]);
    assert_eq!(
        called(&format!("{one}{}", key("", "cut"))),
        [("MIIB", super::PRIVATE_KEY), ("cut", super::PRIVATE_KEY)]
    );
    // The longest title, and one that is longer: then the dashes are something else.
    assert_eq!(called(&key(&"T".repeat(23), "b")), [("b", super::PRIVATE_KEY)]);
    assert_eq!(called(&key(&"T".repeat(24), "b")), []);
    // What begins inside of a key is a part of it.
    let inner = key("", &format!("a{}-----END", key("", "b")));
    assert_eq!(called(&inner), [(&inner[key("", "").len()..inner.len() - 8], super::PRIVATE_KEY)]);
}

#[test]
fn what_a_word_announces_has_its_least_length_and_stands_alone_where_it_must() {
    let key = characters(16);
    for (text, found) in [
        (format!("Bearer {key}"), true),
        (format!("Bearer {}", characters(15)), false),
        (format!("forbearer {key}"), false),
        (format!("my_authToken={key}"), true),
        (format!("_authToken={}", characters(15)), false),
        (format!("_authToken {key}"), false),
        (format!("_authToken= {key}"), true),
        (format!("_authToken = {key}"), true),
        (format!("//npm.example.com/:_authToken\t=\t{key}"), true),
        (format!("_authToken=\n{key}"), false),
        (format!("_authToken={}{key}", " ".repeat(16)), false),
        (format!("Bearer  {key}"), true),
        (format!("Bearer={key}"), false),
        // Base64 has a `/` or a `+` anywhere.
        (format!("Bearer a1/{}+b=", characters(12)), true),
        (format!("Bearer a1/{}+", characters(11)), false),
    ] {
        assert_eq!(!called(&text).is_empty(), found, "{text}");
    }
    // Padding belongs to the value, two signs of it at the most.
    assert_eq!(called(&format!("AccountKey={}===", characters(40)))[0].0, characters(40) + "==");
}

#[test]
fn no_known_beginning_with_its_key_is_shorter_than_the_shortest_secret() {
    let shortest = PREFIXES.iter().map(|prefix| prefix.begins.len() + prefix.least).min();
    assert_eq!(shortest, Some(SHORTEST));
}

#[test]
fn the_passwords_of_addresses_end_before_their_last_at_and_stay_in_their_authority() {
    let found = |text: &'static str| url_passwords(text).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
    for (text, passwords) in [
        ("postgres://a:b@h", vec!["b"]),
        ("x postgres://user:p@ss:word@host/db and redis://:only@h", vec!["p@ss:word", "only"]),
        ("https://user@host https://user:@host https://host:80/a:b@c", vec![]),
        ("mailto:a:b@h", vec![]),
        ("http://a?x:y@h http://a#x:y@h http://a x:y@h", vec![]),
        ("\"http://a\":b@h 'http://a':b@h <http://a>:b@h", vec![]),
        ("://u:\u{e4}\u{f6}@", vec!["\u{e4}\u{f6}"]),
    ] {
        assert_eq!(found(text), passwords, "{text}");
    }
}
