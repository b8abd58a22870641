//! Keys and tokens that are known by their shape, wherever they occur in a text: `check` reports those
//! that are written out in a document, traces hide those that turn up in a run.
//!
//! Only well-known exact shapes, so that ids, hashes and uuids stay readable. A publishable key
//! (`pk_live_`) is no secret.

use std::ops::Range;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its place, without what announces it (`Bearer `, `AccountKey=`).
    pub range: Range<usize>,
    /// What such a secret is called.
    pub called: &'static str,
}

/// What a private key is called. Its lines of dashes say for sure what it is.
pub const PRIVATE_KEY: &str = "a private key";

/// How a provider's keys begin.
struct Prefix {
    begins: &'static str,
    /// The least number of characters that follow.
    least: usize,
    called: &'static str,
    /// Whether nothing else begins so: then what follows need have no digit.
    is_sure: bool,
}

const fn prefix(begins: &'static str, least: usize, called: &'static str) -> Prefix {
    Prefix { begins, least, called, is_sure: false }
}

const fn sure_prefix(begins: &'static str, least: usize, called: &'static str) -> Prefix {
    Prefix { begins, least, called, is_sure: true }
}

const API_KEY: &str = "an API key";
const AWS: &str = "an AWS access key";
const GITHUB: &str = "a GitHub token";
const GITLAB: &str = "a GitLab token";
const SLACK: &str = "a Slack token";
const STRIPE: &str = "a Stripe key";
const LOOPCTL: &str = "a token of loopctl";

const PREFIXES: &[Prefix] = &[
    prefix("sk-ant-", 20, API_KEY),
    prefix("sk-proj-", 20, API_KEY),
    prefix("sk-or-v1-", 20, API_KEY),
    prefix("sk-", 20, API_KEY),
    prefix("sk_live_", 16, STRIPE),
    prefix("sk_test_", 16, STRIPE),
    prefix("rk_live_", 16, STRIPE),
    prefix("rk_test_", 16, STRIPE),
    prefix("whsec_", 20, "a webhook's secret"),
    prefix("AKIA", 16, AWS),
    prefix("ASIA", 16, AWS),
    prefix("ghp_", 30, GITHUB),
    prefix("gho_", 30, GITHUB),
    prefix("ghu_", 30, GITHUB),
    prefix("ghs_", 30, GITHUB),
    prefix("ghr_", 30, GITHUB),
    prefix("github_pat_", 30, GITHUB),
    prefix("glpat-", 20, GITLAB),
    prefix("gldt-", 20, GITLAB),
    prefix("glsoat-", 20, GITLAB),
    prefix("glcbt-", 20, GITLAB),
    prefix("glptt-", 20, GITLAB),
    prefix("glagent-", 20, GITLAB),
    prefix("glimt-", 20, GITLAB),
    prefix("gloas-", 20, GITLAB),
    prefix("glrt-", 20, GITLAB),
    prefix("glrtr-", 20, GITLAB),
    prefix("glft-", 20, GITLAB),
    prefix("glffct-", 20, GITLAB),
    // Registers runners; GitLab gives all of them this number.
    sure_prefix("GR1348941", 20, GITLAB),
    prefix("xoxb-", 20, SLACK),
    prefix("xoxp-", 20, SLACK),
    prefix("xoxa-", 20, SLACK),
    prefix("xoxs-", 20, SLACK),
    prefix("xoxr-", 20, SLACK),
    prefix("xapp-", 20, SLACK),
    prefix("npm_", 30, "an npm token"),
    prefix("pypi-", 40, "a PyPI token"),
    prefix("AIza", 35, "a Google API key"),
    prefix("ya29.", 30, "a Google access token"),
    prefix("hf_", 30, "a Hugging Face token"),
    prefix("dop_v1_", 40, "a DigitalOcean token"),
    prefix("SG.", 40, "a SendGrid key"),
];

/// The text before a value that makes the value secret.
struct Announced {
    /// The end of the word before the value, in small letters.
    ends: &'static str,
    /// What parts the two, without blanks.
    between: &'static str,
    /// The fewest characters of the value.
    least: usize,
    called: &'static str,
}

const fn announced_by(ends: &'static str, between: &'static str, least: usize, called: &'static str) -> Announced {
    Announced { ends, between, least, called }
}

const ANNOUNCED: &[Announced] = &[
    announced_by("bearer", "", MIN_VALUE_BYTES, "a bearer token"),
    announced_by("accountkey", "=", 20, "an Azure key"),
    announced_by("sharedaccesskey", "=", 20, "an Azure key"),
    announced_by("_authtoken", "=", MIN_VALUE_BYTES, "an npm token"),
];

/// What follows the prefix of a token of loopctl: 32 bytes in base64url.
const OWN_TOKEN_CHARACTERS: usize = 43;

/// No secret of a known shape is shorter. Most words are, and need no look at each shape.
const MIN_SECRET_BYTES: usize = 20;

/// The most characters of a run that are searched for a digit.
const MAX_SEARCHED_CHARACTERS: usize = 80;

/// The fewest characters in a row that the value of a secret has: that of what is announced.
const MIN_VALUE_BYTES: usize = 16;

/// How a private key begins.
const PRIVATE_KEY_BEGINS: &str = "-----BEGIN ";

/// Whether a text may have a secret: no for most, after a look at one byte in sixteen. Each string of a document, of a
/// trace and of a notice is searched.
pub fn may_have(text: &str) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'~');
    let bytes = text.as_bytes();
    let mut at = MIN_VALUE_BYTES - 1;
    // Of sixteen signs in a row, one is at a multiple of sixteen.
    while let Some(byte) = bytes.get(at) {
        if is_sign(byte) {
            let before =
                bytes.get(..at).unwrap_or_default().iter().rev().take(MIN_VALUE_BYTES).take_while(|b| is_sign(b));
            let mut length = before.count() + 1;
            let behind = bytes.get(at + 1..).unwrap_or_default().iter().take(MIN_VALUE_BYTES);
            length += behind.take_while(|b| is_sign(b)).count();
            if length >= MIN_VALUE_BYTES {
                return true;
            }
        }
        at += MIN_VALUE_BYTES;
    }
    text.contains(PRIVATE_KEY_BEGINS)
}

/// The secrets of a text, in their order. Linear in its length.
pub fn find(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    if !may_have(text) {
        return found;
    }
    let mut before: Option<(&str, usize)> = None;
    for (start, run) in runs(text, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        let end = start + run.len();
        if let Some((at, called)) = in_run(run) {
            found.push(Found { range: start + at..end, called });
        } else if let Some((word, word_end)) = before {
            let gap = text.get(word_end..start).unwrap_or_default();
            // A value in base64 may begin with a sign that no name has.
            let between = gap.trim_end_matches(['+', '/', '~']);
            let value = word_end + between.len();
            let tail = text.get(value..).unwrap_or_default();
            if let Some((length, called)) = announced(word, between, tail) {
                found.push(Found { range: value..value + length, called });
            } else if gap == ":" && is_bot_token(word, run) {
                found.push(Found { range: word_end - word.len()..end, called: "a Telegram bot token" });
            }
        }
        before = Some((run, end));
    }
    private_keys(text, &mut found);
    found.sort_by_key(|found| found.range.start);
    found
}

/// The first secret of a run of letters, digits, `_`, `-` and `.`: where it begins; it ends with the run.
fn in_run(run: &str) -> Option<(usize, &'static str)> {
    if run.len() < MIN_SECRET_BYTES {
        return None;
    }
    if let Some(called) = whole(run) {
        return Some((0, called));
    }
    let places = std::iter::once(0).chain(run.match_indices('.').map(|(at, _)| at + 1));
    places.into_iter().find_map(|at| Some((at, by_prefix(run.get(at..)?)?)))
}

fn by_prefix(rest: &str) -> Option<&'static str> {
    let fits = |prefix: &&Prefix| {
        rest.strip_prefix(prefix.begins)
            .is_some_and(|key| key.len() >= prefix.least && (prefix.is_sure || has_digit(key)))
    };
    PREFIXES.iter().find(fits).map(|prefix| prefix.called).or_else(|| is_own_token(rest).then_some(LOOPCTL))
}

/// Whether it is a token of a server, or one that answers a pause: 43 characters of base64url. A name that begins so, as of a host,
/// has no capitals.
fn is_own_token(rest: &str) -> bool {
    let Some(key) = rest.strip_prefix("loopctl-") else { return false };
    let key = key.split('.').next().unwrap_or_default();
    let has = |is: fn(&u8) -> bool| key.as_bytes().iter().any(is);
    key.len() >= OWN_TOKEN_CHARACTERS
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// A run that is a secret as a whole.
fn whole(run: &str) -> Option<&'static str> {
    let mut parts = run.split('.');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    let begins = |part: &str| part.starts_with("eyJ") && part.len() > 10;
    if let (Some(second), Some(third)) = (second, third) {
        if begins(first) && begins(second) {
            return Some("a JSON web token");
        }
        let words = parts.next().is_none() && (23..=28).contains(&first.len()) && second.len() == 6;
        if words && third.len() >= 27 && first.starts_with(['M', 'N', 'O']) && has_digit(run) {
            return Some("a Discord bot token");
        }
    }
    let (key, center) = run.split_once("-us")?;
    let hexadecimal = key.len() == 32 && key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let numbered = (1..=2).contains(&center.len()) && center.bytes().all(|byte| byte.is_ascii_digit());
    (hexadecimal && numbered).then_some("a Mailchimp key")
}

/// How long the value is that a word announces, when it does.
fn announced(word: &str, gap: &str, tail: &str) -> Option<(usize, &'static str)> {
    let between = parting(gap)?;
    let ends = |end: &str| {
        let from = word.len().checked_sub(end.len()).and_then(|from| word.get(from..));
        from.is_some_and(|last| last.eq_ignore_ascii_case(end))
    };
    // `Bearer` is a whole word; the others end a name (`AccountKey`, `:_authToken`).
    let fits = |announced: &&Announced| {
        announced.between == between && (between == "=" || word.len() == announced.ends.len()) && ends(announced.ends)
    };
    let announced = ANNOUNCED.iter().find(fits)?;
    let sign = |c: char| c.is_ascii_alphanumeric() || "_-.+/~".contains(c);
    let value = tail.find(|c| !sign(c)).unwrap_or(tail.len());
    // At most two `=` end base64: more would be looked through again and again in a text that is full of them.
    let padding = tail.get(value..)?.bytes().take(2).take_while(|byte| *byte == b'=').count();
    (value >= announced.least && has_digit(tail.get(..value)?)).then_some((value + padding, announced.called))
}

/// What parts two words, without the blanks around it; nothing when it is too long.
fn parting(gap: &str) -> Option<&str> {
    /// A longer gap is that of a table.
    const MAX_GAP_BYTES: usize = 16;
    let is_usual = !gap.is_empty() && gap.len() <= MAX_GAP_BYTES;
    is_usual.then(|| gap.trim_matches([' ', '\t']))
}

/// `123456789:AA...`: the number of a bot and its key.
fn is_bot_token(number: &str, key: &str) -> bool {
    (8..=10).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && key.starts_with("AA")
        && (33..=36).contains(&key.len())
}

/// The text between the first and the last line of a private key; to the end, when it was cut.
fn private_keys(text: &str, found: &mut Vec<Found>) {
    const END: &str = "PRIVATE KEY-----";
    /// The most bytes between the dashes and `PRIVATE KEY`: `ENCRYPTED ` and the like.
    const MAX_TITLE_BYTES: usize = 23;
    let mut done = 0;
    for (at, begin) in text.match_indices(PRIVATE_KEY_BEGINS) {
        if at < done {
            continue;
        }
        let rest = text.get(at + begin.len()..).unwrap_or_default();
        let head = rest.get(..rest.floor_char_boundary(MAX_TITLE_BYTES + END.len())).unwrap_or_default();
        let Some(title) = head.find(END) else { continue };
        let start = at + begin.len() + title + END.len();
        let body = text.get(start..).unwrap_or_default();
        let length = body.find("-----END").unwrap_or(body.len());
        found.push(Found { range: start..start + length, called: PRIVATE_KEY });
        done = start + length;
    }
}

fn has_digit(text: &str) -> bool {
    text.bytes().take(MAX_SEARCHED_CHARACTERS).any(|byte| byte.is_ascii_digit())
}

/// The passwords in `scheme://user:password@host`.
pub fn url_passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let authority = text.get(start..).unwrap_or_default();
        let length = authority
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>'))
            .unwrap_or(authority.len());
        let authority = authority.get(..length).unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        if let Some((name, password)) = user.split_once(':')
            && !password.is_empty()
        {
            found.push(start + name.len() + 1..start + user.len());
        }
    }
    found
}

/// The longest runs of characters that `keep` wants, with the byte at which each begins.
fn runs(text: &str, keep: impl Fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.find(&keep)?;
        let run = text.get(start..)?;
        let length = run.find(|c| !keep(c)).unwrap_or(run.len());
        at = start + length;
        Some((start, run.get(..length)?))
    })
}

#[cfg(test)]
mod tests {
    use super::{MIN_SECRET_BYTES, PREFIXES, find, url_passwords};

    /// Characters as keys have them, put together here so that no file holds a key.
    fn characters(count: usize) -> String {
        "a1B2c3D4e5F6g7H8".chars().cycle().take(count).collect()
    }

    fn called(text: &str) -> Vec<(&str, &'static str)> {
        find(text).into_iter().map(|found| (&text[found.range], found.called)).collect()
    }

    #[test]
    fn tokens_of_loopctl_are_known_and_names_that_begin_like_them_are_none() {
        for begins in ["loopctl-", "loopctl-answer-"] {
            let token = format!("{begins}{}", characters(43));
            assert_eq!(called(&format!("the token {token}, once")), [(token.as_str(), super::LOOPCTL)]);
        }
        assert_eq!(called(&format!("loopctl-{}", characters(42))), []);
        for name in [
            "https://loopctl-tools.production.eu-central-1.elb.amazonaws.com/x",
            "loopctl-runs.cluster-c9akciq32.eu-central-1.rds.amazonaws.com",
            "s3://loopctl-trace-archive-production-eu-central-1-123456789012/x",
            "loopctl-x86_64-unknown-linux-gnu-with-a-name-that-is-very-long-2",
        ] {
            assert_eq!(called(name), [], "{name}");
        }
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
            (format!("AccountKey=/{}==;x", characters(85)), format!("/{}==", characters(85)), "an Azure key"),
            (format!("Bearer +{}", characters(16)), format!("+{}", characters(16)), "a bearer token"),
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
            (
                format!("eyJ{0}.eyJ{0}.{0}", characters(9)),
                format!("eyJ{0}.eyJ{0}.{0}", characters(9)),
                "a JSON web token",
            ),
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
        let discord = |first: String, second: usize, third: usize| {
            format!("{first}.{}.{}", characters(second), characters(third))
        };
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
        assert_eq!(shortest, Some(MIN_SECRET_BYTES));
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
}
