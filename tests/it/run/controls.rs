//! S6b: what looks like a secret and is none stays readable: of 113 ids, hashes, images and numbers in a
//! tool's result, five at most may be hidden.

use serde_json::{Map, Value, json};

use crate::common::{Place, complete, look};

/// Hexadecimal digits that look like chance, the same in each run.
fn hex(seed: u64, digits: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let digit = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from_digit(u32::try_from(state >> 60).expect("four bits"), 16).expect("a digit")
    };
    (0..digits).map(digit).collect()
}

fn uuid(seed: u64) -> String {
    [8, 4, 4, 4, 12].map(|digits| hex(seed + digits as u64 * 1000, digits)).join("-")
}

fn base64(seed: u64, letters: usize) -> String {
    let letters_of = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter =
        |at: usize| char::from(letters_of[usize::from_str_radix(&hex(seed + at as u64, 2), 16).expect("hex") % 64]);
    (0..letters).map(letter).collect()
}

/// The controls, each with the name of the field that contains it.
fn controls() -> Vec<(String, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for (at, name) in
        ["id", "uuid", "request_id", "session_id", "trace_id", "customer", "order", "key"].iter().enumerate()
    {
        all.push((name, uuid(at as u64 + 1)));
        all.push((name, hex(at as u64 + 20, 32)));
    }
    for (at, name) in
        ["sha256", "hash", "digest", "checksum", "etag", "commit", "revision", "fingerprint"].iter().enumerate()
    {
        all.push((name, hex(at as u64 + 40, 64)));
        all.push((name, hex(at as u64 + 60, 40)));
        all.push((name, format!("W/\"{}\"", hex(at as u64 + 80, 16))));
    }
    for at in 0..8_u64 {
        all.push(("image", format!("data:image/png;base64,iVBORw0KGgo{}==", base64(at * 1000, 400))));
        all.push(("thumbnail", base64(at * 1000 + 9, 120)));
        all.push(("commit", hex(at + 100, 7)));
        all.push(("message", format!("see commit {} of {}", hex(at + 120, 40), uuid(at + 140))));
        all.push((
            "number",
            "98765432109876543210".chars().cycle().skip(usize::try_from(at).expect("small")).take(19).collect(),
        ));
    }
    let single = [
        ("id", "cus_NffrFeUfNV2Hib"),
        ("id", "ch_3MmlLrLkdIwHu7ix0snN0B15"),
        ("id", "pi_3MtwBwLkdIwHu7ix28a3tqPa"),
        ("id", "evt_1NG8Du2eZvKYlo2CUI79vXWy"),
        ("id", "ord-2024-000017"),
        ("id", "TK-1042"),
        ("id", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("id", "507f1f77bcf86cd799439011"),
        ("id", "V1StGXR8_Z5jdHi6B-myT"),
        ("arn", "arn:aws:iam::123456789012:role/reader"),
        ("iban", "DE89370400440532013000"),
        ("phone", "+49 30 901820"),
        ("isbn", "978-3-16-148410-0"),
        ("mac", "00:1B:44:11:3A:B7"),
        ("address", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
        ("version", "1.0.0-rc.1+build.5114f85"),
        ("public_key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIbhPZ3Wq0qkXk0qkXk0qkXk0qkXk0qkXk0qkXk0qkXk"),
        ("next_page_token", "CAUQAA"),
        ("token_count", "1842"),
        ("max_tokens", "4096"),
        ("token_type", "bearer"),
        ("secret_name", "prod/db/main"),
        ("password_policy", "12 characters, one digit"),
        ("author", "Ada Lovelace"),
        ("text", "the bearer of this letter may pass"),
        ("text", "a basic understanding of tokens"),
        ("url", "https://shop.example/orders?page=2&sort=created_at"),
        ("url", "https://cdn.example/a/b41d8cd98f00b204e9800998ecf8427e.png"),
        ("sku", "sku-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
        ("tracking", "1Z999AA10123456784"),
        ("coordinates", "52.5200066,13.4049540"),
        ("timestamp", "2026-02-01T10:30:00.000Z"),
        ("license", "MIT OR Apache-2.0"),
    ];
    all.extend(single.map(|(name, value)| (name, value.to_owned())));
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// How many of the controls can't be read in what the program shows.
fn hidden(shown: &str) -> Vec<String> {
    let missing = |(_, value): &(String, String)| {
        let spelled = json!(value).to_string();
        !shown.contains(spelled.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("a text"))
    };
    controls().into_iter().filter(missing).map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn what_only_looks_like_a_secret_stays_readable() {
    let controls = controls();
    assert_eq!(controls.len(), 113);
    let place = Place::new();
    place.looped(&json!({ "max_observation_chars": 1_000_000 }));
    // A secret that was found is looked for in all that is shown: it hides itself and nothing else.
    place.json("loopctl.json", &json!({ "orgconfig": { "key": "env:THE_KEY" } }));
    let rows: Vec<Value> = controls
        .iter()
        .map(|(name, value)| Value::Object(Map::from_iter([(name.clone(), json!(value))])))
        .chain([json!({ "password": "hunter-2-hunter" })])
        .collect();
    place.json(
        "script.json",
        &json!({ "replies": [look("a"), complete(json!("done"))], "tools": { "look": [rows], "act": [1] } }),
    );
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"];
    let ran = place.call_with(&args, &[("THE_KEY", "sEcReT-9a8b7c6d5e")]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let traced = place.call(&["trace", "r", "--format", "json"]);
    for (what, shown) in [("the result", &ran.stdout), ("the trace", &traced.stdout)] {
        assert!(!shown.contains("hunter-2"), "{what}: a password is hidden, so that the controls prove something");
        let hidden = hidden(shown);
        println!("{what}: {} of 113 hidden", hidden.len());
        assert!(hidden.len() <= 5, "{what}: {} are hidden: {hidden:#?}", hidden.len());
    }
}

#[test]
fn the_id_of_a_run_has_no_sign_that_is_not_seen() {
    for (id, is_taken) in [
        ("r\n2", false),
        ("r\u{1b}[2J", false),
        ("r\u{202e}1", false),
        ("r\u{200b}1", false),
        (" ", false),
        ("r-1_a.b", true),
        ("r\u{e9}", true),
    ] {
        let place = Place::new();
        place.looped(&json!({})).script(&[complete(json!("ok"))]);
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", id]);
        assert_eq!(ran.code, if is_taken { 0 } else { 2 }, "{id:?}: {ran:#?}");
        assert!(is_taken || ran.stderr.contains("can't be the id of a run"), "{id:?}: {ran:#?}");
        assert!(!ran.stderr.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{id:?}: {ran:#?}");
    }
}
