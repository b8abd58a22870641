//! The documentation is true: its commands exist and work, its JSON loads, its tables hold what the
//! code has, and its links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use loopctl::language::action::{CommandAction, DbAction, HttpAction, LlmAction};
use loopctl::language::mcp::McpServer;
use loopctl::language::project::{Allow, Datasource, Model};
use loopctl::language::react::{Budget, History, OnStuck, Retry};
use loopctl::language::serving::{Limits, Serving, Share, Token};
use loopctl::language::tool::{ActionTool, McpTool, WorkflowTool};
use loopctl::language::{Action, AgentRequest, LoopDocument, Project, ReactProperties, Script};
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

/// The pages outside of `docs/`.
const OTHER_PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benches/README.md",
    "packaging/README.md",
    "fuzz/README.md",
    "examples/support-triage/README.md",
    "examples/http-status/README.md",
    "examples/files-mcp/README.md",
    "examples/ap-reconciliation/README.md",
    "examples/onboarding/README.md",
];

const FIRST_COMMAND: &str = "run examples/support-triage/loop.json --input ticket_id=TK-1042";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages that readers get: those of `docs/` and the others.
pub(crate) fn pages() -> Vec<String> {
    let mut pages: Vec<String> = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .map(|name| format!("docs/{name}"))
        .chain(OTHER_PAGES.iter().map(|&name| name.to_owned()))
        .collect();
    pages.sort();
    pages
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The program in a folder of its own, with an empty environment.
fn loopctl(folder: &Path, arguments: &[&str]) -> Output {
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    Command::new(env!("CARGO_BIN_EXE_loopctl"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap()
}

fn shown(output: &Output) -> String {
    format!(
        "exit {:?}\nstdout: {}\nstderr: {}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The result that a run printed, once its exit code was as expected.
fn result(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", shown(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", shown(output)))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

/// A copy of the examples in a folder of its own, so that no test leaves a store behind.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &folder.path().join("examples"));
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if name == ".loopctl" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

/// The fenced blocks of a language, each with its first line.
fn blocks(page: &str, language: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String, bool)> = None;
    for (number, line) in page.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(word)) => open = Some((number + 2, String::new(), word.trim() == language)),
            (Some(_), Some(_)) => {
                if let Some((at, body, true)) = open.take() {
                    found.push((at, body));
                }
                open = None;
            }
            (Some((_, body, _)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

#[test]
fn the_readmes_two_commands_are_those_of_the_gate_and_the_examples() {
    let readme = page("README.md");
    let shell: String = blocks(&readme, "sh").into_iter().map(|(_, body)| body).collect();
    assert!(shell.contains(&format!("cargo run -- {FIRST_COMMAND}\n")), "README.md: the first command is gone");
    assert!(shell.contains("cargo test\n"), "README.md: the second command is gone");
    assert!(page(".ci/run").contains(" cargo test"), ".ci/run: run the tests as the README does");
    assert!(page("examples/support-triage/README.md").contains(FIRST_COMMAND));
}

#[test]
fn the_readmes_first_command_finds_the_double_charge() {
    let folder = examples();
    let mut arguments: Vec<&str> = FIRST_COMMAND.split(' ').collect();
    arguments.extend(["--output", "json"]);
    let result = result(&loopctl(folder.path(), &arguments), 0);
    assert_eq!(text(&result, "/status"), "completed");
    assert!(text(&result, "/result/answer").contains("ch_5502"));
    let charges = result.to_string();
    assert!(charges.contains("2026-03-02T09:14:09Z"), "the charges were not read: {charges}");

    // What it recommended is in the database, and the run is in the store.
    let home = folder.path().join("examples/support-triage/.loopctl");
    let support = rusqlite::Connection::open(home.join("support.db")).unwrap();
    let filed: (String, i64) = support
        .query_row("SELECT charge_id, refund_cents FROM recommendations WHERE ticket_id = 'TK-1042'", (), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(filed, ("ch_5502".to_owned(), 4900));
    assert!(home.join("runs.db").exists());
}

#[test]
fn the_http_example_pauses_for_a_human_and_for_an_approval() {
    let folder = examples();
    let script = ["--script", "examples/http-status/script.json", "--output", "json"];
    let mut arguments = vec!["run", "examples/http-status/loop.json", "--input", "service=checkout"];
    arguments.extend(script);
    let asked = result(&loopctl(folder.path(), &arguments), 3);
    assert_eq!(text(&asked, "/termination"), "human");
    let run = text(&asked, "/run_id");

    let resume = |more: &[&str], code: i32| {
        let store = ["--store", "sqlite:examples/http-status/.loopctl/runs.db"];
        let arguments: Vec<&str> = ["resume", run].iter().chain(more).chain(&script).chain(&store).copied().collect();
        result(&loopctl(folder.path(), &arguments), code)
    };
    let approval = resume(&["--answer", "announce"], 3);
    assert_eq!(text(&approval, "/termination"), "approval");
    let ended = resume(&["--approve"], 0);
    assert!(text(&ended, "/result/answer").contains("INC-88"));
    // A field of the project's `redact` is in no trace.
    assert!(!ended.to_string().contains("555 0101"), "{ended}");
}

#[test]
fn every_json_block_loads_as_what_it_is() {
    let mut seen = 0;
    // What these two show is wrong on purpose.
    for name in pages().iter().filter(|name| !["docs/diagnostics.md", "docs/gallery.md"].contains(&name.as_str())) {
        for (line, body) in blocks(&page(name), "json") {
            // A part of a document.
            if body.starts_with('"') {
                continue;
            }
            let value: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{name}:{line}: {error}"));
            let loaded = if value.get("type").is_some_and(|kind| kind == "loop") {
                serde_json::from_value::<LoopDocument>(value).map(|_| ())
            } else if value.get("action_name").is_some() {
                serde_json::from_value::<Action>(value).map(|_| ())
            } else if value.get("models").is_some() {
                serde_json::from_value::<Project>(value).map(|_| ())
            } else if value.get("replies").is_some() {
                serde_json::from_value::<Script>(value).map(|_| ())
            } else if value.get("objective").is_some() && value.get("agent_run_id").is_none() {
                serde_json::from_value::<AgentRequest>(value).map(|_| ())
            } else {
                Ok(())
            };
            loaded.unwrap_or_else(|error| panic!("{name}:{line}: {error}"));
            seen += 1;
        }
    }
    assert!(seen >= 6, "only {seen} JSON blocks were found");
}

#[test]
fn every_example_file_loads() {
    for example in ["support-triage", "http-status"] {
        let folder = root().join("examples").join(example);
        let read = |path: &Path| -> Value {
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let document: LoopDocument = serde_json::from_value(read(&folder.join("loop.json"))).unwrap();
        let _: Project = serde_json::from_value(read(&folder.join("loopctl.json"))).unwrap();
        let _: Script = serde_json::from_value(read(&folder.join("script.json"))).unwrap();
        let mut actions = 0;
        for entry in fs::read_dir(folder.join("actions")).unwrap() {
            let path = entry.unwrap().path();
            let action: Action = serde_json::from_value(read(&path)).unwrap_or_else(|error| panic!("{error}"));
            assert!(action.head().description.is_some(), "{}: the model chooses by it", path.display());
            actions += 1;
        }
        let declared = serde_json::to_value(&document).unwrap().pointer("/properties/tools").unwrap().clone();
        assert_eq!(declared.as_array().unwrap().len(), actions, "{example}: tools and actions differ");
    }
}

#[test]
fn the_table_of_commands_is_the_programs() {
    let folder = tempfile::tempdir().unwrap();
    let help = loopctl(folder.path(), &["--help"]);
    assert!(help.status.success(), "{}", shown(&help));
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let listed: BTreeSet<String> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect();
    let name = "docs/running.md";
    let written: BTreeSet<String> = page(name)
        .lines()
        .filter_map(|line| line.strip_prefix("| `loopctl "))
        .filter_map(|rest| rest.split([' ', '`']).next().map(str::to_owned))
        .collect();
    assert_eq!(written, listed, "{name}: the table of commands differs from `loopctl --help`");
}

#[cfg(unix)]
#[test]
fn the_readmes_loop_works_as_it_is_pasted() {
    let section = crate::pasted::sections(&page("README.md"))
        .into_iter()
        .find(|section| !section.files.is_empty())
        .expect("a section with files");
    crate::tasks::play(&section);
}

#[cfg(unix)]
#[test]
fn the_readmes_project_passes_at_once() {
    let sections = crate::pasted::sections(&page("README.md"));
    let section = sections.iter().find(|section| section.commands.contains("loopctl init")).expect("it is shown");
    let place = crate::common::Place::new();
    let output = crate::tasks::shell(&place, &section.commands);
    assert!(output.status.success(), "{}", shown(&output));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for line in &section.shown {
        assert!(said.contains(line), "`{line}` is not in what the commands print:\n{said}");
    }
}

/// An author who has this page alone takes the scenarios from it, for the workflow that it shows before.
#[test]
fn the_scenarios_of_the_language_page_hold_for_its_workflow() {
    let page = page("docs/language.md");
    let find = |has: &dyn Fn(&Value) -> bool| {
        let mut values = blocks(&page, "json").into_iter().filter_map(|(_, body)| serde_json::from_str(&body).ok());
        values.find(|value: &Value| has(value)).expect("the page shows it")
    };
    let place = crate::common::Place::new();
    place.file("loopctl.json", "{}");
    let scenarios = find(&|value| value.get("scenarios").is_some());
    place.file("claims.test.json", scenarios.to_string());
    let document = find(&|value| value.pointer("/definition/condition").is_some() && value["name"] == "claims");
    place.file("claims.json", document.to_string());
    let action = serde_json::json!({
        "action_name": "lookup_claim",
        "kind": "http",
        "description": "Reads a claim.",
        "http_method": "GET",
        "url": "https://claims.example/{{id}}",
    });
    place.file("actions/lookup_claim.json", action.to_string());
    let test = place.call(&["test"]);
    assert_eq!(test.code, 0, "{test:#?}");
    assert!(test.stderr.contains("3 scenarios in 1 file: all hold"), "{test:#?}");
}

/// The table of contents has each chapter and its parts, in their order.
#[test]
fn the_language_page_lists_its_chapters() {
    let page = page("docs/language.md");
    let (contents, chapters) = page.split_once("## Contents\n").unwrap().1.split_once("\n## ").unwrap();
    let mut is_code = false;
    let mut wanted = String::new();
    for line in format!("## {chapters}").lines() {
        is_code ^= line.starts_with("```");
        let (indent, heading) = match line.strip_prefix("### ") {
            Some(heading) => ("  ", Some(heading)),
            None => ("", line.strip_prefix("## ")),
        };
        if let Some(heading) = heading.filter(|_| !is_code) {
            wanted.push_str(&format!("{indent}- [{heading}](#{})\n", anchor(heading)));
        }
    }
    assert_eq!(contents.trim(), wanted.trim(), "docs/language.md: its contents are not those of its headings");
}

#[test]
fn the_rust_of_the_page_is_that_of_the_example() {
    let example = format!("{}{}", page("examples/embed.rs"), page("examples/service/main.rs"));
    let blocks = blocks(&page("docs/embed.md"), "rust");
    assert_eq!(blocks.len(), 3);
    for (line, body) in blocks {
        for (at, code) in body.lines().enumerate() {
            assert!(
                example.lines().any(|line| line == code),
                "docs/embed.md:{}: `{code}` is not in the examples",
                line + at
            );
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    for name in &pages() {
        let text = page(name);
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap();
            if target.starts_with("https://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path: PathBuf =
                if file.is_empty() { root().join(name) } else { root().join(name).parent().unwrap().join(file) };
            assert!(path.exists(), "{name}: the link {target} leads nowhere");
            if !anchor.is_empty() {
                let there = fs::read_to_string(&path).unwrap();
                assert!(headings(&there).contains(anchor), "{name}: no heading for the link {target}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} links were found");
}

/// The anchors of a page's headings, as GitHub makes them.
fn headings(page: &str) -> BTreeSet<String> {
    page.lines().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// The anchor of a heading, as GitHub makes it.
pub(crate) fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// A row of a table of fields.
struct Row {
    section: String,
    field: String,
    line: String,
}

fn rows(page: &str) -> Vec<Row> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with('#') {
            section = line.trim_start_matches('#').trim().replace('`', "");
        }
        inside = line.starts_with("| field |") || (inside && line.starts_with('|'));
        if let Some(field) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next())
            && inside
        {
            found.push(Row { section: section.clone(), field: field.to_owned(), line: line.to_owned() });
        }
    }
    found
}

fn properties<T: JsonSchema>() -> Vec<(String, Value)> {
    let schema = schema_for!(T);
    let properties = schema.get("properties").and_then(Value::as_object).unwrap();
    properties.iter().map(|(name, schema)| (name.clone(), schema.clone())).collect()
}

#[test]
fn the_language_page_has_every_field_with_its_default_and_no_other() {
    let rows = rows(&page("docs/language.md"));
    let described: [(&str, Vec<(String, Value)>); 22] = [
        ("Loop", properties::<LoopDocument>()),
        ("Properties of mode react", properties::<ReactProperties>()),
        ("on_stuck", properties::<OnStuck>()),
        ("budget", properties::<Budget>()),
        ("history", properties::<History>()),
        ("retry", properties::<Retry>()),
        ("Tools", [properties::<ActionTool>(), properties::<WorkflowTool>(), properties::<McpTool>()].concat()),
        ("http", properties::<HttpAction>()),
        ("db", properties::<DbAction>()),
        ("llm", properties::<LlmAction>()),
        ("command", properties::<CommandAction>()),
        ("Project", properties::<Project>()),
        ("A model", properties::<Model>()),
        ("A datasource", properties::<Datasource>()),
        ("An MCP server", properties::<McpServer>()),
        ("allow", properties::<Allow>()),
        ("serve", properties::<Serving>()),
        ("A token", properties::<Token>()),
        ("serve.limits", properties::<Limits>()),
        ("A share", properties::<Share>()),
        ("Script", properties::<Script>()),
        ("Agent request", properties::<AgentRequest>()),
    ];
    for (section, properties) in &described {
        let is_action = ["http", "db", "llm", "command"].contains(section);
        for (name, schema) in properties {
            let row = rows
                .iter()
                .find(|row| row.field == *name && (row.section == *section || (is_action && row.section == "Actions")))
                .unwrap_or_else(|| panic!("docs/language.md, {section}: the field `{name}` has no row"));
            let default = match schema.get("default") {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => continue,
            };
            assert!(
                row.line.contains(&format!("`{default}`")),
                "docs/language.md, {section}: the row of `{name}` must say its default, `{default}`"
            );
        }
        for row in rows.iter().filter(|row| row.section == *section) {
            assert!(
                properties.iter().any(|(name, _)| *name == row.field),
                "docs/language.md, {section}: there is no field `{}`",
                row.field
            );
        }
    }
}
