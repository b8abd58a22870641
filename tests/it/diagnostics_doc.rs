//! `docs/diagnostics.md` is generated from the pages of the codes.
//!
//! `UPDATE_DOCS=1 cargo test --test it diagnostics_doc::` regenerates it.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::path::Path;

use loopctl::check::fix;
use loopctl::diagnostic::Severity;
use loopctl::diagnostic::codes::{Code, TABLE};

const HEAD: &str = "# Diagnostics

The errors and warnings that `loopctl check` reports, and `loopctl run` before it starts a run. A code is stable once
released. `loopctl explain CODE` prints the page of one code.

This page is generated from the pages in `crates/lang/src/diagnostic/pages`. To change it, edit those pages and run
`UPDATE_DOCS=1 cargo test --test it diagnostics_doc::`.

";

/// The page, as `docs/` must contain it.
fn page(rows: &[Code]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| code | severity | `--fix` | title |\n|---|---|---|---|\n");
    for row in rows {
        let severity = match row.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let (code, title) = (row.code, row.title);
        let shown = match heading(row) {
            Some(heading) => format!("[{code}](#{})", anchor(heading)),
            None => code.to_owned(),
        };
        let fixed = if fix::is_taken(code) { "yes" } else { "" };
        page.push_str(&format!("| {shown} | {severity} | {fixed} | {title} |\n"));
    }
    for row in rows {
        page.push('\n');
        page.push_str(&deeper(row.page));
    }
    page
}

fn heading(row: &Code) -> Option<&str> {
    row.page.lines().find_map(|line| line.strip_prefix("# "))
}

/// A code's page with its headings one level lower; fenced code stays unchanged.
fn deeper(page: &str) -> String {
    let mut shown = String::new();
    let mut code = false;
    for line in page.trim_end().lines() {
        code ^= line.trim_start().starts_with("```");
        if line.starts_with('#') && !code {
            shown.push('#');
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn the_page_of_all_codes_is_made_of_their_pages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md");
    let wanted = page(TABLE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == wanted,
        "docs/diagnostics.md is stale; regenerate it with: UPDATE_DOCS=1 cargo test --test it diagnostics_doc::"
    );
}

#[test]
fn every_link_of_it_leads_to_a_heading_and_every_page_is_in_it() {
    let row = |code, title, page| Code { code, name: "a-name", severity: Severity::Warning, title, page };
    let rows = [
        row("L010", "A field", "# L010: A field\n"),
        row("L012", "A word", "# L012: A word, or `none`\n\nText.\n\n## Why\n\n```sh\n# no heading\n```\n"),
    ];
    let small = page(&rows);
    assert!(small.contains("| [L012](#l012-a-word-or-none) | warning | yes | A word |"), "{small}");
    assert!(
        small.contains("\n## L012: A word, or `none`\n\nText.\n\n### Why\n\n```sh\n# no heading\n```\n"),
        "{small}"
    );
    assert!(small.find("## L010").unwrap() < small.find("## L012").unwrap());
    let whole = page(TABLE);
    for row in TABLE {
        assert!(whole.contains(&format!("| [{}](#", row.code)), "{}", row.code);
    }
}
