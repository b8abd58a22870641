//! Secrets are found, kept, and hidden.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::*;

/// With characters that each encoding encodes differently.
const SECRET: &str = "sk-Té/st+\"9\\8&7<6>5\n4 'x~";

fn vault(secrets: &[(&str, &str)]) -> (tempfile::TempDir, Vault) {
    let root = tempfile::tempdir().unwrap();
    let mut keys = BTreeMap::new();
    for (number, (key, text)) in secrets.iter().enumerate() {
        fs::write(root.path().join(number.to_string()), format!("{text}\n")).unwrap();
        keys.insert((*key).to_owned(), format!("file:{number}").into());
    }
    let vault = Vault::new(keys, root.path());
    (root, vault)
}

pub fn resolved(secrets: &[(&str, &str)]) -> Vault {
    let (_root, vault) = vault(secrets);
    for (key, text) in secrets {
        assert_eq!(vault.secret(key).unwrap(), *text);
    }
    vault
}

fn percent_all(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[test]
fn every_encoding_of_a_secret_is_taken_out() {
    let vault = resolved(&[("api:key", SECRET)]);
    let once = serde_json::to_string(SECRET).unwrap();
    let inner = &once[1..once.len() - 1];
    let twice = serde_json::to_string(inner).unwrap();
    let ascii: String =
        inner.chars().map(|c| if c.is_ascii() { c.to_string() } else { "\\u00e9".to_owned() }).collect();
    let percent = percent_all(SECRET);
    let spellings = [
        SECRET.to_owned(),
        inner.to_owned(),
        twice[1..twice.len() - 1].to_owned(),
        ascii.clone(),
        ascii.replace('/', "\\/"),
        percent.clone(),
        percent.to_lowercase().replace("sk-t", "sk-T"),
        percent.replace("%20", "+"),
        percent_all(&percent),
        STANDARD.encode(SECRET),
        URL_SAFE_NO_PAD.encode(SECRET),
        SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
        SECRET.bytes().map(|byte| format!("{byte:02X}")).collect(),
        SECRET
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;"),
    ];
    for spelling in spellings {
        let clean = vault.scrub(format!("before {spelling} after"));
        assert_eq!(clean, "before [secret api:key] after", "{spelling}");
        let written = serde_json::to_string(&spelling).unwrap();
        assert_eq!(vault.scrub(written), "\"[secret api:key]\"", "{spelling} in JSON");
    }
}

#[test]
fn a_secret_inside_of_longer_base64_is_taken_out_at_every_offset() {
    for secret in ["hunter", "s3cr3t-value-of-some-length", "abcd"] {
        let vault = resolved(&[("k", secret)]);
        for before in ["", "u", "us", "use", "user:"] {
            for after in ["", "!", "!!", "!!!"] {
                let encoded = STANDARD.encode(format!("{before}{secret}{after}"));
                let clean = vault.scrub(encoded.clone());
                assert!(clean.contains("[secret k]"), "{before}{secret}{after}: {encoded}");
                // The rest are the bits that it shares with its neighbours: no whole byte.
                assert!(clean.len() <= encoded.len() - secret.len() + "[secret k]".len(), "{encoded} -> {clean}");
            }
        }
    }
}

#[test]
fn nothing_is_touched_before_a_secret_is_resolved() {
    let (_root, vault) = vault(&[("k", "hunter22")]);
    assert_eq!(vault.scrub("hunter22".to_owned()), "hunter22");
    vault.secret("k").unwrap();
    assert_eq!(vault.scrub("hunter22".to_owned()), "[secret k]");
}

#[test]
fn values_are_cleaned_whole_and_keep_everything_else() {
    let vault = resolved(&[("k", "hunter22"), ("pin", "271828")]);
    let dirty = json!({
        "a": ["x hunter22 y", {"hunter22": 1}],
        "pin": 271_828,
        "near": 2_718_281,
        "id": "9b2f0c1e-7a54-4c8e-9a57-0d1c5f7f6a11",
    });
    let huge: Value = serde_json::from_str("12345678901234567890123.50").unwrap();
    let clean = vault.scrub_value(json!([dirty, huge]));
    assert_eq!(
        clean.to_string(),
        r#"[{"a":["x [secret k] y",{"[secret k]":1}],"pin":"[secret pin]","near":2718281,"id":"9b2f0c1e-7a54-4c8e-9a57-0d1c5f7f6a11"},12345678901234567890123.50]"#
    );
}

#[test]
fn two_keys_that_are_the_same_secret_are_both_kept() {
    let vault = resolved(&[("k", "hunter22")]);
    let clean = vault.scrub_value(json!({"hunter22": 1, "68756e7465723232": 2}));
    assert_eq!(clean.as_object().unwrap().len(), 2);
}

#[test]
fn the_longer_of_two_secrets_is_taken_out_whole() {
    let vault = resolved(&[("short", "hunter"), ("long", "hunter22-and-more")]);
    assert_eq!(vault.scrub("hunter22-and-more, hunter".to_owned()), "[secret long], [secret short]");
}

#[test]
fn short_secrets_are_given_and_not_looked_for() {
    let vault = resolved(&[("k", "abc"), ("four", "wxyz")]);
    assert_eq!(vault.scrub("abc wxyz".to_owned()), "abc [secret four]");
}

#[test]
fn a_large_secret_is_found_too() {
    let large: String = (0..6000_u32).map(|n| char::from(b'a' + u8::try_from(n * 7 % 26).unwrap())).collect();
    let vault = resolved(&[("k", &large)]);
    assert_eq!(vault.scrub(format!("<{large}>")), "<[secret k]>");
    assert!(vault.scrub(STANDARD.encode(format!("u:{large}"))).contains("[secret k]"));
}

#[test]
fn debug_and_errors_never_show_a_secret() {
    let (root, vault) = vault(&[("api:key", "hunter22")]);
    vault.secret("api:key").unwrap();
    let debug = format!("{vault:?} {:?}", vault.read("file:0").unwrap());
    assert!(debug.contains("api:key") && !debug.contains("hunter22"), "{debug}");

    let by_mistake = Vault::new(BTreeMap::from([("k".to_owned(), "hunter22".into())]), root.path());
    let error = by_mistake.secret("k").unwrap_err();
    assert!(error.contains("`k`") && !error.contains("hunter22"), "{error}");
}

#[test]
fn faults_name_the_key_and_the_source() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("empty"), "\n").unwrap();
    fs::write(root.path().join("large"), vec![b'x'; 65 * 1024]).unwrap();
    fs::write(root.path().join("binary"), [0xff, 0xfe]).unwrap();
    let sources = [
        ("unset", "env:LOOPCTL_TEST_NO_SUCH_VARIABLE", "LOOPCTL_TEST_NO_SUCH_VARIABLE"),
        ("missing", "file:nowhere", "nowhere"),
        ("folder", "file:.", "not a regular file"),
        ("empty", "file:empty", "empty"),
        ("large", "file:large", "longer than"),
        ("binary", "file:binary", "UTF-8"),
        ("plain", "value", "env:VAR"),
    ];
    let keys = sources.iter().map(|(key, source, _)| ((*key).to_owned(), SecretSource::from(*source))).collect();
    let vault = Vault::new(keys, root.path());
    for (key, _, expected) in sources {
        let error = vault.secret(key).unwrap_err();
        assert!(error.contains(expected) && error.contains(key), "{error}");
    }
    assert!(vault.secret("unsett").unwrap_err().contains("did you mean `unset`?"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(root.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let vault = Vault::new(BTreeMap::new(), root.path());
    assert!(vault.read("file:pipe").unwrap_err().contains("not a regular file"));
}

#[test]
fn the_environment_is_read_once() {
    // PATH is set wherever tests run.
    let vault = Vault::new(BTreeMap::new(), Path::new("."));
    let text = vault.read("env:PATH").unwrap();
    assert_eq!(vault.read("env:PATH").unwrap().expose_secret(), text.expose_secret());
    assert_eq!(vault.scrub(text.expose_secret().to_owned()), "[secret env:PATH]");
}

#[test]
fn every_secret_that_can_be_read_is_known_before_the_first_call_needs_it() {
    let (root, vault) = vault(&[("one", "first-secret"), ("two", "second-secret"), ("empty", ""), ("gone", "third")]);
    fs::remove_file(root.path().join("3")).unwrap();
    vault.find_all();
    assert_eq!(vault.scrub("first-secret second-secret".to_owned()), "[secret one] [secret two]");
    assert!(vault.secret("empty").unwrap_err().contains("is empty"));
    assert!(vault.secret("gone").unwrap_err().contains("can't be read"));
    // The next run reads the file again, and what it held before stays hidden.
    fs::write(root.path().join("0"), "other").unwrap();
    vault.find_all();
    assert_eq!(vault.secret("one").unwrap(), "other");
    assert_eq!(vault.scrub("first-secret other".to_owned()), "[secret one] [secret one]");
}

#[test]
fn a_secret_that_is_passed_in_is_removed_under_its_name_and_is_not_empty() {
    let (_root, vault) = vault(&[]);
    let passed = |text: &str| vault.keep("the password", &SecretString::from(text.to_owned()));
    assert_eq!(passed(""), Err("the password is empty".to_owned()));
    assert_eq!(passed("hunter22"), Ok(()));
    assert_eq!(vault.scrub("it is hunter22".to_owned()), "it is [secret the password]");
}

#[test]
fn a_number_that_is_a_secret_becomes_a_text_whatever_its_sign() {
    let vault = resolved(&[("pin", "12345678")]);
    for (number, shown) in [
        ("12345678", json!("[secret pin]")),
        ("-12345678", json!("-[secret pin]")),
        ("123456789", json!(123_456_789)),
        ("-912345678", json!(-912_345_678)),
    ] {
        let value = serde_json::from_str(&format!("[{number}]")).unwrap();
        assert_eq!(vault.scrub_value(value)[0], shown, "{number}");
    }
}

#[test]
fn a_file_is_read_again_when_it_has_changed_and_what_it_held_before_stays_hidden() {
    let (root, vault) = vault(&[("k", "the first text"), ("other", "another text")]);
    let file = root.path().join("0");
    assert_eq!(vault.secret("k").unwrap(), "the first text");
    fs::write(&file, "the second text\n").unwrap();
    assert_eq!(vault.secret("k").unwrap(), "the first text", "within a run it is one text");
    vault.find_all();
    assert_eq!(vault.secret("k").unwrap(), "the second text");
    let said = || vault.scrub("the first text, the second text, another text".to_owned());
    assert_eq!(said(), "[secret k], [secret k], [secret other]");
    // Without it, it is missing; and what it held stays hidden.
    fs::remove_file(&file).unwrap();
    vault.refresh();
    assert!(vault.secret("k").unwrap_err().contains("can't be read"));
    assert_eq!(said(), "[secret k], [secret k], [secret other]");
    // The oldest texts are forgotten: a process that lives for years has bounded work.
    for number in 0..MOST_OLDER + 2 {
        fs::write(&file, format!("text number {number}\n")).unwrap();
        vault.find_all();
        assert_eq!(vault.secret("k").unwrap(), format!("text number {number}"));
    }
    assert_eq!(vault.found.read().unwrap().older.len(), MOST_OLDER);
}
