//! Whether a call may be made: the tool is declared, the input matches its schema, the limit is not reached.

use super::dialect::{self, Wanted};
use super::state::State;
use crate::diagnostic::nearest;
use crate::language::react::RequiredTools;
use crate::program::schema::SchemaFault;
use crate::program::{Builtin, Program, Tool, ToolKind};

/// The tool of a call that may be made.
///
/// # Errors
/// All that is wrong, in words for the model.
pub(super) fn call<'a>(program: &'a Program, state: &State, wanted: &Wanted) -> Result<&'a Tool, String> {
    let tool = program.tool(&wanted.name).ok_or_else(|| unknown(program, &wanted.name))?;
    if let Some(why) = &wanted.unread {
        return Err(why.clone());
    }
    if matches!(tool.kind, ToolKind::Builtin(Builtin::RunWorkflow)) {
        return Err("no workflow is declared for this loop; call only the tools that are listed".to_owned());
    }
    if matches!(tool.kind, ToolKind::Builtin(Builtin::Complete))
        && let Some(missing) = missing_before_answer(program, state)
    {
        return Err(format!("the answer was not taken: {missing}, and read what it returns, before you answer"));
    }
    let faults = tool.parameters.faults(&wanted.input);
    if !faults.is_empty() {
        return Err(format!(
            "the input of {} was not accepted, and the tool was not called:{}",
            tool.name,
            list(&faults)
        ));
    }
    if let Some(max) = tool.max_calls
        && state.counters.calls.get(&wanted.name).copied().unwrap_or(0) >= max
    {
        return Err(format!("{} may be called {max} times in a run, and was", tool.name));
    }
    Ok(tool)
}

/// What must be called before an answer is accepted, as the model reads it; none when all of it was called.
pub fn missing_before_answer(program: &Program, state: &State) -> Option<String> {
    let was_called = |name: &str| state.counters.calls.get(name).is_some_and(|calls| *calls > 0);
    match program.properties.require_tool_before_answer.as_ref()? {
        RequiredTools::Any(_) => {
            let any = state.counters.calls.values().any(|calls| *calls > 0);
            (!any).then(|| "call one of the tools first".to_owned())
        }
        RequiredTools::All(names) => {
            let missing: Vec<&str> = names.iter().map(String::as_str).filter(|name| !was_called(name)).collect();
            (!missing.is_empty()).then(|| format!("call {} first", missing.join(", ")))
        }
    }
}

/// All faults of a value, one on each line, with their paths.
pub(super) fn list(faults: &[SchemaFault]) -> String {
    faults
        .iter()
        .map(|fault| match fault.path.as_str() {
            "" => format!("\n- {}", fault.message),
            path => format!("\n- at {path}: {}", fault.message),
        })
        .collect()
}

fn unknown(program: &Program, name: &str) -> String {
    let names = || program.offered().map(|tool| dialect::name_for_model(program, &tool.name));
    let shown: String = name.chars().take(64).collect();
    let near = nearest(name, names()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    let all = names().collect::<Vec<_>>().join(", ");
    format!("there is no tool named {shown:?}, and nothing was called.{near} The tools are: {all}")
}
