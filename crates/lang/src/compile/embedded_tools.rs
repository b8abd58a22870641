//! What the tools of the Rust program around the engine are: what the program says, the file that the project names, or what
//! the journal of a run kept.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Texts, names};
use crate::diagnostic::{Diagnostic, Place, Source, codes};
use crate::policy::json_text;
use crate::syntax::{Tree, parse, repeated_keys, token};

/// How each text begins that a journal keeps of a tool: no other document has this member.
const RECORDED: &str = "{\"embedded_tool\":";

/// A tool written in Rust, as the compiler knows it. A file that the project names as `embedded` is a list of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSignature {
    /// The name that loops declare.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// The JSON Schema of its input.
    pub parameters: Value,
    /// Whether a call may be made again without harm.
    #[serde(default)]
    pub idempotent: bool,
    /// Whether a call only reads.
    #[serde(default)]
    pub read_only: bool,
}

impl ToolSignature {
    /// The first field of which the other tool says something else; what the model reads about it is no such field.
    pub(crate) fn differing(&self, other: &Self) -> Option<&'static str> {
        [
            ("parameters", self.parameters != other.parameters),
            ("idempotent", self.idempotent != other.idempotent),
            ("read_only", self.read_only != other.read_only),
        ]
        .into_iter()
        .find_map(|(field, differs)| differs.then_some(field))
    }

    /// Its text, as a journal keeps it: a run has the tools that it began with, whatever the program says today.
    pub(super) fn text(&self) -> Option<Source> {
        let text = serde_json::to_string(&EmbeddedText { embedded_tool: self.clone() }).ok()?;
        Some(Source::new(format!("embedded tool {}", token(&self.name)), text))
    }
}

/// The text of one tool, as a journal keeps it.
#[derive(Serialize, Deserialize)]
struct EmbeddedText {
    // The first member: texts are known by it.
    embedded_tool: ToolSignature,
}

/// Whether a text is one that a journal keeps of a tool.
pub fn is_recorded(text: &str) -> bool {
    text.starts_with(RECORDED)
}

/// Takes what is of tools of the program out of the texts of a journal.
pub fn recorded(sources: &mut Vec<Source>) -> Vec<ToolSignature> {
    let texts = sources.extract_if(.., |source| is_recorded(&source.text));
    texts
        .filter_map(|text| json_text::read(&text.text).ok())
        .map(|EmbeddedText { embedded_tool }| embedded_tool)
        .collect()
}

/// The file that a project names as `embedded`.
#[derive(Debug)]
pub struct EmbeddedFile {
    /// Its tools, each with its place.
    pub tools: Vec<(ToolSignature, Place)>,
    /// Its text; none when it can't be read.
    pub source: Option<Source>,
    /// What is wrong with it.
    pub faults: Vec<Diagnostic>,
}

impl EmbeddedFile {
    /// A file that can't be read.
    pub fn unread(fault: Diagnostic) -> Self {
        Self { tools: Vec::new(), source: None, faults: vec![fault] }
    }

    /// The file of a text.
    pub fn read(source: &Source) -> Self {
        let (tree, mut faults) = parse(source);
        if faults.is_empty() {
            faults.extend(repeated_keys(&tree));
        }
        // What could not be parsed is reported, and is no tool.
        let is_whole = faults.is_empty();
        let mut file = Self { tools: Vec::new(), source: Some(source.clone()), faults };
        match tree.value() {
            Value::Array(tools) => {
                for (number, tool) in tools.iter().enumerate() {
                    file.add(&tree, &format!("/{number}"), tool, is_whole);
                }
            }
            _ if is_whole => {
                let message = "a list of tools was expected";
                file.faults.push(of_file(message.to_owned(), "", source.whole()));
            }
            _ => {}
        }
        file
    }

    fn add(&mut self, tree: &Tree, at: &str, written: &Value, is_whole: bool) {
        let tool = match ToolSignature::deserialize(written) {
            Ok(tool) => tool,
            Err(error) if is_whole => {
                return self.faults.push(of_file(format!("this is no tool: {error}"), at, tree.place(at)));
            }
            Err(_) => return,
        };
        let pointer = format!("{at}/name");
        let place = tree.place(&pointer);
        if let Some(fault) = names::fault_of(&tool.name) {
            return self.faults.push(names::bad_name(&tool.name, fault, &pointer, place));
        }
        if let Some((_, first)) = self.tools.iter().find(|(known, _)| known.name == tool.name) {
            let fault = of_file(format!("there are two tools of the name `{}`", tool.name), &pointer, place);
            return self.faults.push(fault.related(first, "the other is here"));
        }
        self.tools.push((tool, place));
    }
}

fn of_file(message: String, at: &str, place: Place) -> Diagnostic {
    let fault = Diagnostic::error(codes::EMBEDDED_TOOL, message, at, place);
    fault.help("the program that has the tools writes the file: it is the JSON of `signatures()` of its engine")
}

impl Texts {
    /// The tools of the program around the engine: those that it has, and those of the file of which it has none.
    pub(crate) fn embedded_tools(&self) -> impl Iterator<Item = &ToolSignature> + Clone {
        let of_file = self.embedded_file.iter().flat_map(|file| &file.tools).map(|(tool, _)| tool);
        let is_own = |name: &str| self.embedded.iter().any(|own| own.name == name);
        self.embedded.iter().chain(of_file.filter(move |tool| !is_own(&tool.name)))
    }

    /// The tool of a name.
    pub(crate) fn embedded_tool(&self, name: &str) -> Option<&ToolSignature> {
        self.embedded_tools().find(|tool| tool.name == name)
    }

    /// Adds tools of a program, of whose names there are none yet.
    pub fn add_embedded(&mut self, tools: Vec<ToolSignature>) {
        let is_new = |tool: &ToolSignature| !self.embedded.iter().any(|known| known.name == tool.name);
        let new: Vec<ToolSignature> = tools.into_iter().filter(is_new).collect();
        self.embedded.extend(new);
    }
}
