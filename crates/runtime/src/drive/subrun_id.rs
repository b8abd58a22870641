//! Which loop a call or a step runs, and the id of that run.

use std::sync::Arc;

use loopctl_engine::event::CallId;
use loopctl_engine::operation::Call;
use loopctl_lang::program::Program;
use loopctl_lang::program::flow::FlowProgram;

/// The id of a sub-run.
pub(super) fn id(run_id: &str, call: CallId) -> String {
    format!("{run_id}.{}.{}", call.iteration, call.index)
}

/// The loop that a call starts, if its tool is a loop.
pub(super) fn loop_of<'p>(program: &'p Program, call: &Call) -> Option<&'p Arc<Program>> {
    program.tool(&call.name)?.called_loop()
}

/// The loop or workflow of which the step at an address is a run.
pub(super) fn loop_at<'p>(flow: &'p FlowProgram, at: &str) -> Option<&'p Arc<Program>> {
    flow.step_at(at)?.subrun()
}
