//! `docs/diagnostics.md` is generated from the rules' own pages.
//!
//! `UPDATE_DOCS=1 cargo test --test diagnostics_doc` regenerates it.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::path::Path;

use loopctl::check::{RULES, Rule, fix};
use loopctl::diagnostic::Severity;
use loopctl::diagnostic::codes::TABLE;

const HEAD: &str = "# Diagnostics

The errors and warnings that `loopctl check` reports, and `loopctl run` before it starts a run. A code is stable once
released. `loopctl explain CODE` prints the page of one code.

This page is generated from the pages in `src/check/rules`. To change it, edit those pages and run
`UPDATE_DOCS=1 cargo test --test diagnostics_doc`.

";

/// The page, as `docs/` must contain it.
fn page(rules: &[Rule]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| code | severity | `--fix` | title |\n|---|---|---|---|\n");
    for (code, title) in TABLE {
        let rule = rules.iter().find(|rule| rule.code == *code);
        let severity = match rule.map(|rule| rule.severity) {
            Some(Severity::Error) => "error",
            Some(Severity::Warning) => "warning",
            None => "",
        };
        let shown = match rule.and_then(heading) {
            Some(heading) => format!("[{code}](#{})", anchor(heading)),
            None => (*code).to_owned(),
        };
        let fixed = if fix::is_taken(code) { "yes" } else { "" };
        page.push_str(&format!("| {shown} | {severity} | {fixed} | {title} |\n"));
    }
    let mut rules: Vec<&Rule> = rules.iter().collect();
    rules.sort_by_key(|rule| rule.code);
    for rule in rules {
        page.push('\n');
        page.push_str(&deeper(rule.page));
    }
    page
}

fn heading(rule: &Rule) -> Option<&str> {
    rule.page.lines().find_map(|line| line.strip_prefix("# "))
}

/// A rule's page with its headings one level lower; fenced code stays unchanged.
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
fn the_page_of_all_codes_is_made_of_the_pages_of_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md");
    let wanted = page(RULES);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == wanted,
        "docs/diagnostics.md is stale; regenerate it with: UPDATE_DOCS=1 cargo test --test diagnostics_doc"
    );
}

#[test]
fn every_link_of_it_leads_to_a_heading_and_every_page_is_in_it() {
    let rule = |code, page| Rule { code, name: "a-rule", severity: Severity::Warning, page, look: None };
    let rules = [
        rule("L012", "# L012: A word, or `none`\n\nText.\n\n## Why\n\n```sh\n# no heading\n```\n"),
        rule("L010", "# L010: A field\n"),
    ];
    let page = page(&rules);
    assert!(page.contains("| [L012](#l012-a-word-or-none) | warning | yes |"), "{page}");
    assert!(page.contains("\n## L012: A word, or `none`\n\nText.\n\n### Why\n\n```sh\n# no heading\n```\n"), "{page}");
    assert!(page.find("## L010").unwrap() < page.find("## L012").unwrap());
    for (code, _) in TABLE {
        assert!(page.contains(&format!("| {code} |")) || page.contains(&format!("| [{code}](")), "{code}");
    }
}
