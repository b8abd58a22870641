//! Tools: a declaration and the action that it names become something that can be called, with the
//! schema of its input. All faults are gathered, each at its place in the action.

mod action_compiler;
pub(crate) mod approval;
mod call_limits;
mod derived_schema;
mod http;
mod kinds;
mod matcher;
mod parameters;
pub(in crate::compile) mod served;
mod sql;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use super::ToolSignature;
use crate::diagnostic::codes;
use crate::language::tool::{ActionTool, LoopTool};
use crate::language::{Action, ReactProperties};
use crate::program::approval::ApprovalPolicy;
use crate::program::fault::LocalFault;
use crate::program::mcp::ToolOrigin;
use crate::program::reference::RESERVED;
use crate::program::schema::Schema;
use crate::program::template::Variable;
use crate::program::{LoopProgram, Program, Tool, ToolKind};
use crate::syntax::shape::Unknown;

pub(super) use action_compiler::is_at;
use action_compiler::{ActionDraft, NamedVariable, NamingForm};
pub use call_limits::loosened;
pub(super) use http::is_connection_header;
pub use http::strays;
pub(super) use parameters::bad_schema;
pub use sql::named_parameters;

/// The most errors that are reported for one action, and the most warnings.
pub const MAX_FAULTS: usize = 100;

/// The tool that a declaration makes of its action, and its warnings, without the approvals that the declaration
/// requires. The pointers of faults begin at the
/// action. `unknown` are the parts of the action that were replaced: no faults are reported for them.
///
/// # Errors
/// All faults, warnings too, when there is an error among them. Of each at most [`MAX_FAULTS`].
pub fn declared(
    declaration: &ActionTool,
    action: &Action,
    properties: &ReactProperties,
    unknown: &Unknown,
) -> Result<(Tool, Vec<LocalFault>), Vec<LocalFault>> {
    let mut work = ActionDraft::of(unknown);
    let facts = action.kind();
    let head = facts.head();
    let kind = kinds::compile(action, &mut work);
    let parameters = parameters::of(action, head.parameters, kind.as_ref(), &mut work);
    // What the action says is a floor: a declaration asks for more, never for less.
    let mut approval = ApprovalPolicy::default();
    if let Err(faults) = approval::require(&mut approval, head.requires_approval, head.approval) {
        faults.into_iter().for_each(|fault| work.push(fault.under("/requires_approval")));
    }
    let described =
        declaration.description.as_deref().or(head.description).map(str::trim).filter(|text| !text.is_empty());
    if described.is_none() && !unknown.holds("/description") {
        let at = if head.description.is_some() { "/description" } else { "/action_name" };
        work.push(
            LocalFault::warning(
                codes::NO_DESCRIPTION,
                at,
                format!("the action `{}` has no description", head.action_name),
            )
            .help("say in a sentence what it does and when to use it: the model chooses by it"),
        );
    }
    let (Some(kind), Some(parameters), false) = (kind, parameters, work.has_errors()) else {
        return Err(work.faults);
    };
    let idempotent = head.idempotent.unwrap_or_else(|| facts.is_idempotent());
    let tool = Tool {
        name: declaration.name.clone(),
        description: described.map_or_else(|| facts.describe(), str::to_owned),
        parameters,
        kind,
        approval,
        max_calls: call_limits::least(declaration.max_calls, head.max_calls),
        timeout_ms: call_limits::least(declaration.timeout_ms, head.timeout_ms).unwrap_or(properties.tool_timeout_ms),
        polling: declaration.polling,
        remember: declaration.remember.clone(),
        idempotent,
        read_only: facts.only_reads(idempotent),
        on_uncertain: head.on_uncertain,
        retry: facts.retry().filter(|_| idempotent).cloned(),
    };
    Ok((tool, work.faults))
}

/// What an action that is a step takes.
#[derive(Debug)]
pub(crate) struct StepInput {
    /// The schema of its input.
    pub schema: Schema,
    /// Whether it sends what no template of it names.
    pub sends_all: bool,
}

/// What an action that is a step takes, and its warnings of what it sends; its faults where it can't be compiled.
pub(crate) fn step_input(
    action: &Action,
    properties: &ReactProperties,
    unknown: &Unknown,
) -> Result<(StepInput, Vec<LocalFault>), Vec<LocalFault>> {
    let declaration = ActionTool { name: action.head().action_name.to_owned(), ..ActionTool::default() };
    let (tool, mut warnings) = declared(&declaration, action, properties, unknown)?;
    // The others are about what a model reads.
    let of_sent = [codes::UNESCAPED, codes::UNQUOTED, codes::CLEAR_SECRET];
    warnings.retain(|fault| of_sent.contains(&fault.code));
    let sends_all = matches!(action, Action::Http(http) if http.body.is_none());
    Ok((StepInput { schema: tool.parameters, sends_all }, warnings))
}

/// The tool that an embedder's function makes, under the name of its declaration.
///
/// # Errors
/// When its parameters are no JSON Schema that objects match; pointers begin at `parameters`.
pub fn embedded(
    signature: &ToolSignature,
    declaration: &ActionTool,
    properties: &ReactProperties,
) -> Result<Tool, Vec<LocalFault>> {
    Ok(registered(signature, declaration, properties, parameters::compile(&signature.parameters)?))
}

/// The same with the schema of its input compiled.
fn registered(
    signature: &ToolSignature,
    declaration: &ActionTool,
    properties: &ReactProperties,
    parameters: Schema,
) -> Tool {
    Tool {
        name: declaration.name.clone(),
        description: declaration.description.as_ref().unwrap_or(&signature.description).clone(),
        parameters,
        kind: ToolKind::Embedded(ToolOrigin::Program),
        approval: ApprovalPolicy::default(),
        max_calls: declaration.max_calls,
        timeout_ms: declaration.timeout_ms.unwrap_or(properties.tool_timeout_ms),
        polling: declaration.polling,
        remember: declaration.remember.clone(),
        idempotent: signature.idempotent,
        read_only: signature.idempotent && signature.read_only,
        on_uncertain: None,
        retry: None,
    }
}

/// The tool that another loop or a workflow makes. What it takes is its `input`; without one, what it names of it.
/// `waits`: whether a call lasts until the end of its run.
///
/// # Errors
/// When no object matches its `input`; the pointer begins at the other document.
pub fn looped(declaration: &LoopTool, called: Arc<Program>, waits: bool) -> Result<Tool, Box<LocalFault>> {
    let parameters = match (&called.input, &*called) {
        (Some(input), _) => match parameters::no_object(input) {
            Some(fault) => return Err(Box::new(fault.under("/input"))),
            None => input.clone(),
        },
        (None, Program::Flow(flow)) => flow.inputs.clone(),
        (None, Program::Loop(called)) => inputs(called),
    };
    let described = declaration.description.as_deref().or(called.description.as_deref()).map(str::trim);
    let described = described.filter(|text| !text.is_empty());
    let word = called.word();
    let verb = if waits { "Runs" } else { "Starts" };
    Ok(Tool {
        name: declaration.name.clone(),
        description: described.map_or_else(|| format!("{verb} the {word} {}.", called.name), str::to_owned),
        parameters,
        approval: ApprovalPolicy::default(),
        max_calls: declaration.max_calls,
        // The loop has a time of its own: only what the declaration says cuts it shorter.
        timeout_ms: declaration.timeout_ms.map_or(called.timeout_ms, |own| own.min(called.timeout_ms)),
        polling: declaration.polling,
        remember: declaration.remember.clone(),
        // A call is a run with an id of its own: called again, it resumes where it stopped.
        idempotent: true,
        read_only: waits && called.only_reads(),
        on_uncertain: None,
        retry: None,
        kind: if waits { ToolKind::Loop(called) } else { ToolKind::Launch(called) },
    })
}

/// A schema of the names of a run's input that a loop's objective and tools take. Those that they can do
/// without are not required.
fn inputs(program: &LoopProgram) -> Schema {
    let mut names = InputNames::default();
    let of_tools = program.tools.iter().flat_map(Tool::variables);
    for variable in program.objective.variables().iter().cloned().chain(of_tools) {
        if let [first, name, ..] = variable.path.as_slice()
            && first == "input"
        {
            names.add(name, !variable.optional);
        }
    }
    names.schema()
}

/// The names of a run's input that a document takes.
#[derive(Debug, Default)]
pub(super) struct InputNames {
    properties: serde_json::Map<String, Value>,
    required: Vec<String>,
}

impl InputNames {
    /// A name; whether a run needs it.
    pub(super) fn add(&mut self, name: &str, is_required: bool) {
        self.properties.insert(name.to_owned(), Value::Object(serde_json::Map::new()));
        if is_required && !self.required.iter().any(|known| known == name) {
            self.required.push(name.to_owned());
        }
    }

    /// A schema of them; without any, every object matches.
    pub(super) fn schema(self) -> Schema {
        let Self { properties, required } = self;
        if properties.is_empty() {
            return Schema::any();
        }
        let source = serde_json::json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        Schema::compile(source).unwrap_or_else(|_| Schema::any())
    }
}

/// Whether a variable takes what a model writes, or the run's input. Both may be a stranger's: a called loop's
/// input is its caller's model's, and over HTTP a request's.
pub fn is_value(variable: &Variable) -> bool {
    let first = variable.path.first().map(String::as_str).unwrap_or_default();
    first == "input" || !RESERVED.contains(&first)
}
