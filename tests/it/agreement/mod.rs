//! The three that say what a loop may look like never disagree: the schema of the types, the types that serde reads,
//! and the compiler; and what the published schema accepts, they accept. And the two that say what may run never
//! disagree: what loading calls sound starts, and what it refuses has no program to start.

mod choices;
mod environment;
mod flows;
mod hosts;
mod loops;
mod pairs;
mod secrets;
mod shapes;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::Source;
use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::engine::state::Phase;
use loopctl::language::{Action, AgentRequest, LoopDocument, Project, Script, WorkflowDocument};
use loopctl::syntax::document::{DocumentKind, read_as};
use loopctl::{Engine, load_texts};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::de::DeserializeOwned;
use serde_json::Value;

use choices::{Choices, tapes};

/// The codes that report a shape; the last one says that schema and types disagree.
const SHAPE: [&str; 8] = ["L010", "L011", "L012", "L013", "L014", "L015", "L016", "L017"];

/// The schemas of a kind: that of the types, by which the compiler judges a shape, and the published one, which also
/// has patterns.
struct Schemas {
    of_types: Value,
    validator: jsonschema::Validator,
    published: jsonschema::Validator,
}

impl Schemas {
    fn read(kind: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{kind}.json"));
        let published: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let of_types = loopctl::language::schema::schema(kind).unwrap();
        let validator = jsonschema::validator_for(&with_widths(of_types.clone())).unwrap();
        Self { of_types, validator, published: jsonschema::validator_for(&published).unwrap() }
    }
}

/// A schema in which the width of an integer is a bound, as it is for the compiler.
fn with_widths(mut schema: Value) -> Value {
    let most = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => Some(u64::from(u16::MAX)),
        Some("uint32") => Some(u64::from(u32::MAX)),
        _ => None,
    };
    match &mut schema {
        Value::Object(members) => {
            members.values_mut().for_each(|member| *member = with_widths(member.take()));
            if let Some(most) = most {
                members.entry("maximum").or_insert(Value::from(most));
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| *entry = with_widths(entry.take())),
        _ => {}
    }
    schema
}

static LOOP: LazyLock<Schemas> = LazyLock::new(|| Schemas::read("loop"));
static REQUEST: LazyLock<Schemas> = LazyLock::new(|| Schemas::read("agent-request"));
static WORKFLOW: LazyLock<Schemas> = LazyLock::new(|| Schemas::read("workflow"));
static ACTIONS: LazyLock<Schemas> = LazyLock::new(|| Schemas::read("actions"));
static PROJECT: LazyLock<Schemas> = LazyLock::new(|| Schemas::read("project"));
static SCRIPT: LazyLock<Schemas> = LazyLock::new(|| Schemas::read("script"));

fn config(each_commit: u32, seed: u64) -> ProptestConfig {
    let cases = crate::common::cases(each_commit);
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() }
}

/// The faults of a document's shape, from the reader that the compiler uses, and the value that the reader
/// hands to the types: its numbers are spelled so that serde reads them.
fn read_document(kind: DocumentKind, document: &Value) -> (Vec<String>, Value) {
    let source = Source::new("document.json", format!("{document:#}"));
    let read = read_as(&source, Some(kind));
    let faults = read.faults.iter().map(|fault| format!("{} {} {}", fault.code, fault.path, fault.message));
    (faults.collect(), read.value)
}

/// Whether the types read it.
fn typed<T: DeserializeOwned>(document: &Value) -> Result<(), String> {
    serde_json::from_value::<T>(document.clone()).map(drop).map_err(|error| error.to_string())
}

/// An actions document by its entries, as the compiler reads it.
fn typed_actions(document: &Value) -> Result<(), String> {
    match document {
        Value::Array(actions) => actions.iter().try_for_each(typed::<Action>),
        action => typed::<Action>(action),
    }
}

/// An agent request with its `config`, which is a map for serde and has a schema of its own.
fn typed_request(document: &Value) -> Result<(), String> {
    typed::<AgentRequest>(document)?;
    let mut properties = document.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
    if properties.contains_key("objective") || properties.contains_key("tools") {
        return Err("`config` repeats a field of the top".to_owned());
    }
    if properties.shift_remove("mode").is_some_and(|mode| mode != "react") {
        return Err("the mode is not `react`".to_owned());
    }
    properties.insert("objective".to_owned(), document["objective"].clone());
    properties.insert("tools".to_owned(), document["tools"].clone());
    typed::<loopctl::language::ReactProperties>(&Value::Object(properties))
}

/// A loop whose custom tables name their tables: the shape leaves that open, since only tools need it and steps don't.
fn with_tables(mut document: Value) -> Value {
    for action in document.get_mut("actions").and_then(Value::as_array_mut).into_iter().flatten() {
        let names_none = action.get("tables").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if action["kind"] == "custom-table" && names_none {
            action["tables"] = Value::from(vec!["orders"]);
        }
    }
    document
}

/// All three say the same of a document; gives what they say.
fn agree(
    kind: DocumentKind,
    schemas: &Schemas,
    typed: fn(&Value) -> Result<(), String>,
    document: &Value,
) -> Result<bool, TestCaseError> {
    let by_schema = schemas.validator.is_valid(document);
    let (faults, value) = read_document(kind, document);
    let by_published = schemas.published.is_valid(document);
    prop_assert!(!by_published || faults.is_empty(), "the published schema accepts it, {:?}: {:#}", faults, document);
    prop_assert_eq!(by_schema, faults.is_empty(), "the schema and the compiler, {:?}: {:#}", faults, document);
    // The types take what the schema takes. Its bounds they do not know.
    if by_schema {
        prop_assert_eq!(typed(&value), Ok(()), "the schema and the types: {:#}", document);
    } else {
        // Nor do they know an array from an object: serde reads a struct from its fields in a row too.
        let row = |fault: &str| fault.contains("an object") && fault.ends_with("an array was given");
        let untold = faults.iter().all(|fault| fault.starts_with("L014") || fault.starts_with("L015") || row(fault));
        prop_assert!(untold || typed(document).is_err(), "the types take it, {:?}: {:#}", faults, document);
    }
    prop_assert!(faults.iter().all(|fault| SHAPE[..6].contains(&&fault[..4])), "{:?}", faults);
    Ok(by_schema)
}

proptest! {
    #![proptest_config(config(150, 1))]

    #[test]
    fn what_the_schema_of_loops_is_made_of_is_taken_by_all_three(tape in tapes(160)) {
        let document = shapes::accepted(&LOOP.of_types, &mut Choices::new(tape));
        prop_assert!(agree(DocumentKind::Loop, &LOOP, typed::<LoopDocument>, &document)?, "{:#}", document);
        let compiled = compile(&Texts::new(Source::new("loop.json", with_tables(document).to_string())));
        let shape: Vec<_> = compiled.diagnostics.iter().filter(|fault| SHAPE.contains(&fault.code)).collect();
        prop_assert!(shape.is_empty(), "{:?}", shape);
    }

    #[test]
    fn a_slip_in_a_loop_is_reported_by_all_three_or_by_none(tape in tapes(160), slips in tapes(12)) {
        let mut document = shapes::accepted(&LOOP.of_types, &mut Choices::new(tape));
        let mut choices = Choices::new(slips);
        for _ in 0..=choices.below(2) {
            shapes::slip(&mut document, &mut choices);
        }
        agree(DocumentKind::Loop, &LOOP, typed::<LoopDocument>, &document)?;
    }

    #[test]
    fn numbers_are_accepted_or_reported_by_all_three_however_they_are_spelled(tape in tapes(160), slips in tapes(40)) {
        let mut document = shapes::accepted(&LOOP.of_types, &mut Choices::new(tape));
        shapes::respell(&mut document, &mut Choices::new(slips));
        agree(DocumentKind::Loop, &LOOP, typed::<LoopDocument>, &document)?;
    }

    #[test]
    fn requests_are_accepted_or_reported_by_all_three(tape in tapes(160), slips in tapes(8)) {
        let mut document = shapes::accepted(&REQUEST.of_types, &mut Choices::new(tape));
        prop_assert!(agree(DocumentKind::AgentRequest, &REQUEST, typed_request, &document)?, "{:#}", document);
        shapes::slip(&mut document, &mut Choices::new(slips));
        agree(DocumentKind::AgentRequest, &REQUEST, typed_request, &document)?;
    }
}

proptest! {
    #![proptest_config(config(100, 2))]

    #[test]
    fn the_other_documents_are_accepted_or_reported_by_all_three(which in 0..4_usize, tape in tapes(120), slips in tapes(8)) {
        let (kind, schemas): (_, &Schemas) = match which {
            0 => (DocumentKind::Workflow, &WORKFLOW),
            1 => (DocumentKind::Actions, &ACTIONS),
            2 => (DocumentKind::Project, &PROJECT),
            _ => (DocumentKind::Script, &SCRIPT),
        };
        let read: fn(&Value) -> Result<(), String> = match which {
            0 => typed::<WorkflowDocument>,
            1 => typed_actions,
            2 => typed::<Project>,
            _ => typed::<Script>,
        };
        let mut document = shapes::accepted(&schemas.of_types, &mut Choices::new(tape));
        prop_assert!(agree(kind, schemas, read, &document)?, "{:#}", document);
        shapes::slip(&mut document, &mut Choices::new(slips));
        agree(kind, schemas, read, &document)?;
    }
}

/// Plays a sound document; returns whether it was sound.
fn played(played: &loops::Played) -> Result<bool, TestCaseError> {
    let compiled = compile(&played.texts);
    match load_texts(&played.texts, PathBuf::from(".")) {
        Ok(loaded) => {
            prop_assert!(compiled.program.is_some() && !compiled.has_errors());
            let script: Script = serde_json::from_value(played.script.clone()).unwrap();
            let project = loaded.program.project.clone();
            let engine = Engine::builder(project, &loaded.root).script(script).build();
            let start = Start { input: played.input.clone(), ..Start::default() };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let finished = runtime.block_on(engine.run(&loaded.program, start, Watch::default()));
            let text = &played.texts.main.text;
            match finished {
                Ok(finished) => {
                    let over = matches!(finished.state.phase, Phase::Ended(_) | Phase::Paused { .. });
                    prop_assert!(over, "{text}");
                }
                Err(fault) => prop_assert!(false, "sound, and yet: {fault}\n{text}"),
            }
            Ok(true)
        }
        Err(unsound) => {
            prop_assert!(unsound.diagnostics.iter().any(loopctl::Diagnostic::is_error));
            prop_assert_eq!(compiled.has_errors(), compiled.program.is_none());
            Ok(false)
        }
    }
}

proptest! {
    #![proptest_config(config(100, 3))]

    #[test]
    fn what_loading_calls_sound_runs_without_a_fault(tape in tapes(120), request in any::<bool>()) {
        let play = loops::play(&mut Choices::new(tape), request, false);
        let sound = played(&play)?;
        let why = compile(&play.texts).diagnostics;
        prop_assert!(sound, "{:?}\n{}", why, play.texts.main.text);
    }

    #[test]
    fn what_has_no_meaning_is_refused_before_it_runs(tape in tapes(120), request in any::<bool>()) {
        let play = loops::play(&mut Choices::new(tape), request, true);
        prop_assert!(!played(&play)?, "{}", play.texts.main.text);
    }
}
