//! A project around a document that exists: what it names and nothing around it has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::endings::{self, PlayedDocument};
use super::names::file_name;
use super::new_project::{FileNote, NewProject, OpenPart, RealModel};
use super::templates::of_other_tools;
use crate::cli::failure::CommandError;
use crate::cli::new_files::NewFile;
use crate::cli::next_commands::{quoted, quoted_path};
use crate::compile::Texts;
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::engine::outcome::Status;
use crate::language::Project;
use crate::language::scenario::Scenario;
use crate::language::script::Script;
use crate::project::load::{DocumentError, Loaded, examine, load_texts};
use crate::project::{self, gather};
use crate::syntax::document::{self, Document, DocumentKind};

/// The most actions and secrets that are added.
const MAX_ADDED: usize = 100;
/// How often the document is examined again with what was added: what is missing may hide more of it.
const MAX_LOOKS: usize = 4;

/// The names of files that the project has besides the document, and the name that such a document gets.
const TAKEN: [&str; 2] = [Project::FILE, SCRIPT];
const FREE: &str = "document.json";
const SCRIPT: &str = "script.json";
/// What is open where no run can be started.
const NO_INPUT: &str =
    "No input can be made of its schema, so there is no script and no scenario yet: write them for your input.";

/// What a document names, and nothing around it has.
#[derive(Default)]
struct MissingNames {
    /// The actions, by name, with the fields that steps give them; none for one that only a model calls.
    actions: BTreeMap<String, Option<BTreeSet<String>>>,
    /// The secrets.
    secrets: BTreeSet<String>,
}

/// The project around a document.
///
/// # Errors
/// When it is no loop and no workflow, or has errors that nothing beside it can take away.
pub(super) fn project(file: &Path, folder: &Path, model: &RealModel) -> Result<NewProject, CommandError> {
    let main = project::read(file)
        .map_err(|fault| CommandError::Document(DocumentError { diagnostics: vec![*fault], sources: Vec::new() }))?;
    let document = document::read(&main);
    let is_run =
        matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow | DocumentKind::AgentRequest));
    if let Some(kind) = document.kind.filter(|_| !is_run) {
        return Err(CommandError::usage_help(
            format!("{} is {}, and no loop or workflow", main.name, kind.called()),
            "name the document of a loop, a workflow or an agent request",
        ));
    }
    let (mut texts, name) = placed(file, folder, &main)?;
    let mut missing = MissingNames::default();
    let mut added = 0;
    for _ in 0..MAX_LOOKS {
        texts.project = Some(Source::new(Project::FILE, project_text(&missing, model)));
        texts.extra_actions = missing.stubs().into_iter().map(|stub| Source::new(&*stub.path, &*stub.text)).collect();
        let found = examine(&texts, document::read(&texts.main));
        missing.add(&document, &found.diagnostics);
        let now = missing.actions.len() + missing.secrets.len();
        if now > MAX_ADDED {
            return Err(CommandError::usage_help(
                format!("{} names more than {MAX_ADDED} actions and secrets that are not there", main.name),
                "define some of them beside the document, and make the project in its folder",
            ));
        }
        if now == added {
            break;
        }
        added = now;
    }
    let loaded = load_texts(&texts, folder.to_owned()).map_err(unsound)?;
    Ok(assembled(&loaded, &missing, &PlacedDocument { name, text: &main.text, is_there: is_in(file, folder) }, model))
}

/// The document in its project.
struct PlacedDocument<'a> {
    /// Its path in the folder.
    name: String,
    text: &'a str,
    /// Whether it is there already.
    is_there: bool,
}

/// The errors that are left, and that nothing was written.
fn unsound(mut fault: DocumentError) -> CommandError {
    fault.diagnostics.retain(Diagnostic::is_error);
    CommandError::Document(fault)
}

/// Whether a file is in a folder.
fn is_in(file: &Path, folder: &Path) -> bool {
    let (Ok(file), Ok(folder)) = (file.canonicalize(), folder.canonicalize()) else { return false };
    file.parent() == Some(folder.as_path())
}

/// The texts of the document as it will be: with what is beside it when it stays where it is, and alone otherwise.
fn placed(file: &Path, folder: &Path, main: &Source) -> Result<(Texts, String), CommandError> {
    let named = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if is_in(file, folder) {
        let gathered = gather(file, &[])
            .map_err(|diagnostics| CommandError::Document(DocumentError { diagnostics, sources: Vec::new() }))?;
        return Ok((gathered.texts, named));
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match format!("{}.json", file_name(&stem)) {
        taken if TAKEN.contains(&taken.to_lowercase().as_str()) => FREE.to_owned(),
        name => name,
    };
    Ok((Texts::new(Source::new(&*main.name, &*main.text)), name))
}

impl MissingNames {
    /// Adds what these errors are about.
    fn add(&mut self, document: &Document, faults: &[Diagnostic]) {
        for fault in faults.iter().filter(|fault| fault.is_error()) {
            let Some(named) = document.value.pointer(&fault.path).and_then(Value::as_str) else { continue };
            match fault.code {
                codes::UNKNOWN_ACTION => {
                    let mut fields = None;
                    inputs_of(&document.value, named, &mut fields);
                    self.actions.insert(named.to_owned(), fields);
                }
                codes::UNKNOWN_SECRET => self.secrets.extend(secrets_in(named)),
                _ => {}
            }
        }
    }

    /// An action for each name.
    fn stubs(&self) -> Vec<NewFile> {
        let mut names = BTreeSet::new();
        let stub = |(name, fields): (&String, &Option<BTreeSet<String>>)| {
            let file = file_name(name);
            // Names that differ in other letters only.
            let file = (1..).map(|at| if at == 1 { file.clone() } else { format!("{file}_{at}") });
            let file = file.into_iter().find(|file| names.insert(file.to_lowercase())).unwrap_or_default();
            NewFile::document(format!("actions/{file}.json"), &action(name, &file, fields.as_ref()).to_string())
        };
        self.actions.iter().map(stub).collect()
    }
}

/// The fields that the steps of a document give to an action.
fn inputs_of(value: &Value, action: &str, fields: &mut Option<BTreeSet<String>>) {
    match value {
        Value::Object(members) => {
            let is_its = members.get("type").and_then(Value::as_str) == Some(action);
            if let Some(given) = members.get("properties").and_then(Value::as_object).filter(|_| is_its) {
                fields.get_or_insert_default().extend(given.keys().cloned());
            }
            members.values().for_each(|value| inputs_of(value, action, fields));
        }
        Value::Array(items) => items.iter().for_each(|value| inputs_of(value, action, fields)),
        _ => {}
    }
}

/// The names of the secrets in a text.
fn secrets_in(text: &str) -> Vec<String> {
    const MARK: &str = "orgconfig:";
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let of = |rest: &str| rest.chars().take_while(|c| is_name(*c)).collect::<String>();
    text.split(MARK).skip(1).map(of).filter(|name| !name.is_empty()).collect()
}

/// An action to be filled in.
fn action(name: &str, file: &str, fields: Option<&BTreeSet<String>>) -> Value {
    let of_model = BTreeSet::from(["request".to_owned()]);
    let fields = fields.unwrap_or(&of_model);
    let about = |field: &String| (field.clone(), json!({ "description": format!("The {field} of the call") }));
    let parameters: Map<String, Value> = fields.iter().map(about).collect();
    // Without a `body`, all fields are sent, also those whose names no template can have.
    json!({
        "action_name": name,
        "kind": "http",
        "description": format!("Calls {name}. Write here what it does and when to call it: a model chooses it by this text."),
        "url": format!("https://api.example.com/{file}"),
        "http_method": "POST",
        "parameters": { "type": "object", "properties": parameters, "required": fields },
    })
}

fn project_text(missing: &MissingNames, model: &RealModel) -> String {
    let mut project = json!({
        "model": "main",
        "models": { "main": { "provider": model.provider_name(), "model": model.id } },
    });
    if !missing.secrets.is_empty() {
        let variable = |name: &String| (name.clone(), json!(format!("env:{}", name.to_uppercase().replace('-', "_"))));
        let secrets: Map<String, Value> = missing.secrets.iter().map(variable).collect();
        if let Some(project) = project.as_object_mut() {
            project.insert("orgconfig".to_owned(), Value::Object(secrets));
        }
    }
    project.to_string()
}

/// The files of the project, and the run of its script.
fn assembled(loaded: &Loaded, missing: &MissingNames, placed: &PlacedDocument<'_>, model: &RealModel) -> NewProject {
    let PlayedDocument { scenarios, stopped } = endings::of_any(loaded);
    let name = &placed.name;
    let stem = name.strip_suffix(".json").unwrap_or(name);
    let mut files = Vec::new();
    let mut about = Vec::new();
    let mut add = |file: NewFile, what: &'static str| {
        about.push(FileNote { path: file.path.clone().into_owned(), about: what });
        files.push(file);
    };
    if !placed.is_there {
        add(NewFile::new(name.clone(), placed.text.to_owned()), "the document");
    }
    add(NewFile::document(Project::FILE, &project_text(missing, model)), "the project: its model and secrets");
    for stub in missing.stubs() {
        add(stub, "an action that the document names: write its address and what it does");
    }
    // A run of a script alone has nobody who decides, and nothing that fails.
    let is_whole = |scenario: &&Scenario| {
        let is_done = scenario.expect.status == Some(Status::Completed);
        is_done && scenario.decisions.is_empty() && scenario.faults.is_none()
    };
    // One with decisions waits for them.
    let is_completed = |scenario: &&Scenario| scenario.expect.status == Some(Status::Completed);
    let completed = scenarios.iter().find(is_whole).or_else(|| scenarios.iter().find(is_completed));
    let chosen: Option<&Scenario> = completed.or(scenarios.first());
    let mut next = vec!["check".to_owned()];
    let mut run = format!("run {}", quoted_path(Path::new(stem)));
    if let Some(scenario) = chosen {
        let script = Script {
            replies: scenario.replies.clone().unwrap_or_default(),
            loops: scenario.loops.clone(),
            tools: scenario.tools.clone(),
            ..Script::default()
        };
        let text = serde_json::to_value(script).unwrap_or_default().to_string();
        add(NewFile::document(SCRIPT, &text), "the replies of the scripted model and of the tools");
        run.push_str(&format!(" --script {SCRIPT}"));
        if let Some(input) = &scenario.input {
            run.push_str(&format!(" --input {}", quoted(&Value::Object(input.clone()).to_string())));
        }
    }
    let scenarios_are_none = scenarios.is_empty();
    if !scenarios_are_none {
        next.push("test".to_owned());
        let tests = NewFile::document(format!("{stem}.test.json"), &endings::text(name, scenarios));
        add(tests, "scenarios: the ways in which a run can end");
    }
    files.extend(of_other_tools(name));
    let address = if missing.actions.is_empty() { "" } else { "Write the addresses into actions/, and run" };
    let begin = if address.is_empty() { "Run" } else { address };
    let real =
        format!("{begin} without --script: then {} is asked (its key is in {}).", model.id, model.key_variable());
    let open = match stopped {
        Some(_) if scenarios_are_none => Some(OpenPart { sentence: NO_INPUT.to_owned(), command: None }),
        Some(why) => {
            let inputs = unknown_inputs(loaded, placed.text);
            inputs.iter().for_each(|name| run.push_str(&format!(" --input {}", quoted(&format!("{name}=...")))));
            let sentence = if loaded.program.is_flow() {
                format!(
                    "The steps read more than the script answers, so its run fails: {why}. Write what the tools give into \
                     {SCRIPT}, and give the inputs that the steps read:"
                )
            } else {
                format!("The simplest replies do not complete it: {why}. Write others into {SCRIPT}:")
            };
            Some(OpenPart { sentence, command: Some(run) })
        }
        None => {
            next.push(run);
            None
        }
    };
    NewProject { files, about, next, open, real }
}

/// The members of the input that a document reads, when it declares none.
fn unknown_inputs(loaded: &Loaded, text: &str) -> BTreeSet<String> {
    const MARK: &str = "input.";
    if loaded.program.input.is_some() {
        return BTreeSet::new();
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins = |at: usize| text.get(..at).is_some_and(|before| before.ends_with(['@', '{', ' ']));
    let of = |at: usize| text.get(at + MARK.len()..).map(|rest| rest.chars().take_while(|c| is_name(*c)).collect());
    let places = text.match_indices(MARK).map(|(at, _)| at).filter(|at| begins(*at));
    places.filter_map(of).filter(|name: &String| !name.is_empty()).take(MAX_ADDED).collect()
}
