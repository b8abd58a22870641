//! How long it takes to take the secrets of a project out of what comes back: texts of several kinds,
//! each scrubbed many times by a vault of one, ten and no secrets.
//!
//! One line of JSON a kind: nanoseconds of CPU a byte with no, one and ten secrets, of a text of 200
//! and of 20,000 bytes.
#![expect(clippy::print_stdout, reason = "the figures are what the caller reads")]
#![expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "figures")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use loopctl::drive::secret::Vault;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

/// So many bytes are scrubbed for a figure.
const BYTES: usize = 32 * 1024 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for (kind, text) in texts() {
        let mut figures = Vec::new();
        for secrets in [0, 1, 10] {
            let vault = vault(folder.path(), secrets)?;
            // A text of 200 bytes is as usual as one of 20 KB.
            for part in [200, 20_000] {
                let text = text.get(..part).ok_or("the text is ASCII and long enough")?;
                let rounds = BYTES / part / if secrets == 0 { 1 } else { 8 };
                let begin = spent()?;
                for _ in 0..rounds {
                    std::hint::black_box(vault.scrub(std::hint::black_box(text.to_owned())));
                }
                figures.push((spent()? - begin) as f64 * 1e3 / (rounds * part) as f64);
            }
        }
        let round = |at: usize| figures.get(at).map(|figure| (figure * 100.0).round() / 100.0);
        println!(
            "{}",
            json!({"text": kind, "ns_a_byte": {"none": [round(0), round(1)], "one": [round(2), round(3)],
                   "ten": [round(4), round(5)]}})
        );
    }
    Ok(())
}

/// Microseconds of CPU that this process has spent in its own code.
fn spent() -> Result<i64, Box<dyn Error>> {
    Ok(getrusage(UsageWho::RUSAGE_SELF)?.user_time().num_microseconds())
}

/// A vault whose secrets are read.
fn vault(folder: &Path, secrets: usize) -> Result<Vault, Box<dyn Error>> {
    let mut keys = BTreeMap::new();
    for number in 0..secrets {
        let name = format!("secret{number}");
        std::fs::write(folder.join(&name), format!("sk-live/{number}-Zx7+q9Kd2mVw81Tn5bYc3RfL{number}"))?;
        keys.insert(name.clone(), serde_json::from_value(json!(format!("file:{name}")))?);
    }
    let vault = Vault::new(keys, folder);
    vault.find_all();
    Ok(vault)
}

fn texts() -> Vec<(&'static str, String)> {
    let prose = "The refund of order 1042 was sent on Tuesday; the customer, who had asked twice, agreed to it. ";
    let row = json!({"id": 1042, "name": "Ada Lovelace", "path": "C:\\data\\x", "note": "she said \"yes\"\n"});
    let page = "<a href=\"/orders?id=1042&amp;page=2&amp;q=late%20refund%2Forder\">Ada &amp; Bob &#39;late&#39;</a>\n";
    let repeat = |part: &str| part.repeat(20_000 / part.len() + 1);
    vec![
        ("prose", repeat(prose)),
        ("json as text", repeat(&row.to_string())),
        ("html", repeat(page)),
        ("base64", repeat("Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1u")),
    ]
}
