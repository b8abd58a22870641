//! The projects that `init` begins with. Their files are documents as they are: in a new project the word `record` becomes
//! what is looked up.

use std::path::Path;

use super::endings;
use super::new_project::{FileNote, JSON_COLUMNS, NewProject, RealModel};
use crate::cli::failure::CommandError;
use crate::cli::new_files::{self, NewFile};
use crate::language::schema::published;
use crate::project::load::load;
use crate::trace::json::laid_out;

/// A project to begin with.
pub(super) struct ProjectTemplate {
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What is looked up where nothing is named.
    pub noun: &'static str,
    /// The document that is run.
    main: &'static str,
    files: &'static [TemplateFile],
    /// The rest of the command that runs it offline.
    run: &'static str,
    /// What makes it real; `MODEL_ID`, `KEY_VARIABLE` and `record` are filled in.
    real: &'static str,
}

/// A file of a template.
struct TemplateFile {
    path: &'static str,
    text: &'static str,
    about: &'static str,
}

macro_rules! file {
    ($template:literal, $path:literal, $about:literal) => {
        TemplateFile { path: $path, text: include_str!(concat!("templates/", $template, "/", $path)), about: $about }
    };
}

/// The one that is taken where none is named.
pub(super) const FIRST: &ProjectTemplate = &TRIAGE;
/// All of them.
pub(super) static ALL: [&ProjectTemplate; 4] = [&TRIAGE, &HTTP, &MCP, &WORKFLOW];

static TRIAGE: ProjectTemplate = ProjectTemplate {
    name: "triage",
    about: "an agent that looks something up with SQL",
    noun: "ticket",
    main: "triage.json",
    files: &[
        file!("triage", "triage.json", "the loop: its input, objective, tools and limits"),
        file!("triage", "actions/lookup_record.json", "the tool: SQL"),
        file!("triage", "data/records.sql", "the database, as SQL: it is made at the first run"),
        file!("triage", "loopctl.json", "the project: models and databases"),
        file!("triage", "script.json", "the replies of the scripted model"),
        file!("triage", "triage.test.json", "scenarios: what must hold of a run"),
    ],
    run: "run triage --input record_id=1001",
    real: "In loopctl.json, write \"model\": \"main\" in place of \"scripted\": then MODEL_ID is asked (its key is in KEY_VARIABLE).",
};

static HTTP: ProjectTemplate = ProjectTemplate {
    name: "http",
    about: "an agent that looks something up with an HTTP API",
    noun: "order",
    main: "answer.json",
    files: &[
        file!("http", "answer.json", "the loop: its input, objective, tools and limits"),
        file!("http", "actions/lookup_record.json", "the tool: an HTTP request"),
        file!("http", "loopctl.json", "the project: its model"),
        file!("http", "script.json", "the replies of the scripted model, and of the API"),
        file!("http", "answer.test.json", "scenarios: what must hold of a run"),
    ],
    run: "run answer --script script.json --input record_id=A-1001 --input 'question=Why is it late?'",
    real: "In actions/lookup_record.json, write the \"url\" of your API, and run without --script: then MODEL_ID is asked (its \
           key is in KEY_VARIABLE).",
};

static MCP: ProjectTemplate = ProjectTemplate {
    name: "mcp",
    about: "an agent that reads files with an MCP server",
    noun: "note",
    main: "reader.json",
    files: &[
        file!("mcp", "reader.json", "the loop: its input, objective, tools and limits"),
        file!("mcp", "loopctl.json", "the project: its model, and the server of the tools"),
        file!("mcp", "mcp.lock.json", "what the server says of its tools; `loopctl mcp pin` writes it"),
        file!("mcp", "notes/lift.txt", "a file to be read"),
        file!("mcp", "script.json", "the replies of the scripted model, and of the server"),
        file!("mcp", "reader.test.json", "scenarios: what must hold of a run"),
    ],
    run: "run reader --script script.json --input 'question=When is the lift checked?'",
    real: "With Node.js, run without --script: then the server is started by npx, and MODEL_ID is asked (its key is in \
           KEY_VARIABLE). For a server of yours, name it in loopctl.json and run `loopctl mcp pin`.",
};

static WORKFLOW: ProjectTemplate = ProjectTemplate {
    name: "workflow",
    about: "steps: a decision of a model about each row of a table",
    noun: "invoice",
    main: "workflow.json",
    files: &[
        file!("workflow", "workflow.json", "the workflow: its input and steps"),
        file!("workflow", "actions/list_records.json", "the first step: SQL"),
        file!("workflow", "actions/store_decision.json", "the last step: SQL that writes"),
        file!("workflow", "data/records.sql", "the database, as SQL: it is made at the first run"),
        file!("workflow", "loopctl.json", "the project: models and databases"),
        file!("workflow", "script.json", "the replies of the scripted model"),
        file!("workflow", "workflow.test.json", "scenarios: what must hold of a run"),
        file!("workflow", "workflow.endings.test.json", "a scenario for each other way to end"),
    ],
    run: "run workflow --input status=open",
    real: "In loopctl.json, write \"model\": \"main\" in place of \"scripted\": then MODEL_ID is asked (its key is in KEY_VARIABLE).",
};

/// The template of a name.
pub(super) fn named(name: &str) -> Option<&'static ProjectTemplate> {
    ALL.into_iter().find(|template| template.name == name)
}

impl ProjectTemplate {
    /// The project, for what is looked up and a model.
    ///
    /// # Errors
    /// When the files can't be tried in a temporary folder.
    pub(super) fn project(&self, noun: &str, model: &RealModel) -> Result<NewProject, CommandError> {
        let filled = |text: &str| filled(text, noun, model);
        let mut files: Vec<NewFile> =
            self.files.iter().map(|file| NewFile::document(filled(file.path), &filled(file.text))).collect();
        let mut about: Vec<FileNote> =
            self.files.iter().map(|file| FileNote { path: filled(file.path), about: file.about }).collect();
        if let Some(more) = self.endings(&files)? {
            about
                .push(FileNote { path: more.path.clone().into_owned(), about: "a scenario for each other way to end" });
            files.push(more);
        }
        files.extend(of_other_tools(self.main));
        let next = vec!["check".to_owned(), "test".to_owned(), filled(self.run)];
        Ok(NewProject { files, about, next, open: None, real: filled(self.real) })
    }

    /// Scenarios for each ending of its loop.
    fn endings(&self, files: &[NewFile]) -> Result<Option<NewFile>, CommandError> {
        let folder = new_files::temporary_folder("loopctl-init-", "")?;
        new_files::write(folder.path(), files)?;
        let loaded = load(&folder.path().join(self.main), &[]).map_err(CommandError::Document)?;
        let scenarios = endings::of(&loaded);
        Ok((!scenarios.is_empty()).then(|| {
            let path = Path::new(self.main).with_extension("endings.test.json");
            NewFile::document(path.display().to_string(), &endings::text(self.main, scenarios))
        }))
    }
}

/// A text of a template with what is looked up and the model.
fn filled(text: &str, noun: &str, model: &RealModel) -> String {
    text.replace("record", noun)
        .replace("PROVIDER_NAME", model.provider_name())
        .replace("MODEL_ID", &model.id)
        .replace("KEY_VARIABLE", model.key_variable())
}

/// The kinds of documents whose schemas an editor is given, and the files that they are for. `main` is the document that is
/// run.
fn schemas(main: &str) -> Vec<(&'static str, Vec<String>)> {
    let globs = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
    let is_flow = main.starts_with("workflow");
    let of_main = |is_its: bool| if is_its { vec![format!("/{main}")] } else { Vec::new() };
    vec![
        ("loop", [of_main(!is_flow), globs(&["loops/*.json"])].concat()),
        ("workflow", [of_main(is_flow), globs(&["workflows/*.json"])].concat()),
        ("actions", globs(&["actions/*.json", "/actions.json"])),
        ("project", globs(&["loopctl.json"])),
        ("scenario", globs(&["*.test.json"])),
        ("script", globs(&["script.json", "scripts/*.json"])),
    ]
}

/// What the editor, git and CI need. Those that exist are left as they are.
pub(super) fn of_other_tools(main: &str) -> Vec<NewFile> {
    let mut files = Vec::new();
    let mut rules = Vec::new();
    for (kind, globs) in schemas(main) {
        let Some(schema) = published(kind) else { continue };
        let path = format!(".vscode/loopctl/{kind}.schema.json");
        rules.push(serde_json::json!({ "fileMatch": globs, "url": format!("./{path}") }));
        files.push(NewFile::unless_there(path, schema.to_string() + "\n"));
    }
    let settings = serde_json::json!({ "json.schemas": rules });
    files.push(NewFile::unless_there(".vscode/settings.json", laid_out(&settings, JSON_COLUMNS) + "\n"));
    files.push(NewFile::unless_there(".gitignore", ".loopctl/\n.loopctl-*.new\n"));
    files.push(NewFile::unless_there(".github/workflows/loops.yml", include_str!("templates/loops.yml")));
    files
}
