//! Whether a call may be made: the tool is declared, the input matches its schema, the limit is not reached.

use serde_json::{Map, Value};

use super::dialect::{self, Wanted};
use super::fitted;
use super::state::{LoopState, Phase};
use loopctl_lang::diagnostic::nearest;
use loopctl_lang::language::react::RequiredTools;
use loopctl_lang::program::builtin::RUN_WORKFLOW;
use loopctl_lang::program::flow::FlowProgram;
use loopctl_lang::program::schema::list;
use loopctl_lang::program::{Builtin, LoopProgram, Tool, ToolKind};

/// The tool of a call that may be made.
///
/// # Errors
/// All that is wrong, in words for the model.
pub(super) fn call<'a>(program: &'a LoopProgram, state: &LoopState, wanted: &Wanted) -> Result<&'a Tool, String> {
    let tool = program.tool(&wanted.name).ok_or_else(|| unknown(program, state, &wanted.name))?;
    if let Some(why) = &wanted.unread {
        return Err(why.clone());
    }
    if matches!(tool.kind, ToolKind::Builtin(Builtin::RunWorkflow)) {
        let names: Vec<&str> = workflows(program).map(|(tool, _)| tool.name.as_str()).collect();
        return Err(match names.as_slice() {
            [] => "no workflow is declared for this loop; call only the tools that are listed".to_owned(),
            names => format!("no such workflow is declared for this loop; call one by its name: {}", names.join(", ")),
        });
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

/// The call that is meant: the tool that it calls, and the one reading of its input.
pub(super) fn meant(program: &LoopProgram, state: &LoopState, wanted: Wanted) -> Wanted {
    let mut wanted = of_workflow(program, wanted);
    if !state.header.fits_values() || wanted.unread.is_some() {
        return wanted;
    }
    if let Some(tool) = program.tool(&wanted.name) {
        if matches!(tool.kind, ToolKind::Builtin(Builtin::Complete))
            && let Some(value) = wanted.input.get_mut("confidence")
            && let Some(read) = fitted::confidence(value)
        {
            *value = read;
        }
        if let Some(read) = fitted::fitted(&tool.parameters, &wanted.input) {
            wanted.input = read;
        }
    }
    wanted
}

/// Hyphen's old way to call a workflow becomes a call of the tool that the workflow is.
fn of_workflow(program: &LoopProgram, mut wanted: Wanted) -> Wanted {
    if wanted.name != RUN_WORKFLOW || wanted.unread.is_some() {
        return wanted;
    }
    let given = |name: &str| wanted.input.get(name).and_then(Value::as_str);
    let (id, name) = (given("workflow_id"), given("workflow_name"));
    let is_meant = |tool: &Tool, flow: &FlowProgram| {
        name.is_none_or(|name| tool.name == name) && id.is_none_or(|id| flow.id.as_deref() == Some(id))
    };
    let named = (id.or(name)).and_then(|_| workflows(program).find(|(tool, flow)| is_meant(tool, flow)));
    let Some((tool, _)) = named else { return wanted };
    let input = wanted.input.get_mut("input").map(Value::take);
    Wanted { name: tool.name.clone(), input: input.unwrap_or_else(|| Value::Object(Map::new())), unread: None }
}

/// The tools that are workflows.
fn workflows(program: &LoopProgram) -> impl Iterator<Item = (&Tool, &FlowProgram)> {
    program.tools.iter().filter_map(|tool| {
        let flow = tool.called_loop().or(tool.launched())?.as_flow()?;
        flow.is_workflow().then_some((tool, flow))
    })
}

impl LoopState {
    /// Whether the next reply must call a tool: an answer would not be accepted yet, and it is not the last call.
    pub fn must_call_a_tool(&self, program: &LoopProgram) -> bool {
        matches!(self.phase, Phase::Thinking { forced: None }) && missing_before_answer(program, self).is_some()
    }
}

/// What must be called before an answer is accepted, as the model reads it; none when all of it was called.
fn missing_before_answer(program: &LoopProgram, state: &LoopState) -> Option<String> {
    // The model has asked for the call: after a no, an answer says what follows from it.
    let denied = state.counters.denied.as_ref().filter(|_| state.header.counts_denied_calls());
    let was_called = |name: &str| {
        state.counters.calls.get(name).is_some_and(|calls| *calls > 0)
            || denied.is_some_and(|denied| denied.0.contains(name))
    };
    match program.properties.require_tool_before_answer.as_ref()? {
        RequiredTools::Any(_) => {
            let any = state.counters.calls.keys().any(|name| was_called(name));
            (!any).then(|| "call one of the tools first".to_owned())
        }
        RequiredTools::All(names) => {
            let missing: Vec<&str> = names.iter().map(String::as_str).filter(|name| !was_called(name)).collect();
            (!missing.is_empty()).then(|| format!("call {} first", missing.join(", ")))
        }
    }
}

fn unknown(program: &LoopProgram, state: &LoopState, name: &str) -> String {
    let known = || program.offered().map(|tool| dialect::name_for_model(program, &tool.name));
    let offered = program.offered_of(state.selected.as_deref());
    let names = || offered.map(|tool| dialect::name_for_model(program, &tool.name));
    let shown: String = name.chars().take(64).collect();
    let near = nearest(name, known()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    let all = names().collect::<Vec<_>>().join(", ");
    format!("there is no tool named {shown:?}, and nothing was called.{near} The tools are: {all}")
}
