//! Scenarios: what a loop or a workflow shall do, played without a model.

mod expect;
mod fault;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::script::Script;
pub use expect::{CallExpectation, Expectations, NeverEntry, PauseExpectation, Quantities, Unwanted, ValueMatcher};
pub use fault::{EachFault, FaultPlan, ReplyFault, ScenarioFault, ToolFailure};

/// Scenarios of a document. Each plays one run, and says what must come of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The loop or workflow that is tested: a path, relative to this file.
    #[schemars(length(min = 1))]
    pub document: String,
    /// What tools answer in all scenarios, by name, as in a script: one entry a call and the last one again and again;
    /// `{"error": "..."}` is a failure, anything else the result. Those of a scenario replace those of the same tool here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<Value>>,
    /// What the model says in the loops that are called, by their names, as in `replies`. Those of a scenario replace
    /// those of the same loop here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, Vec<Value>>,
    /// What the model of an `llm` action says, by the name of the action: one entry a question. Those of a scenario
    /// replace those of the same action here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Vec<Value>>,
    /// The scenarios. Their names differ.
    #[schemars(length(min = 1, max = 10_000))]
    pub scenarios: Vec<Scenario>,
}

/// One run, and what must come of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What the scenario shows, in a sentence.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// The run's input. Default: that of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// What the webhook of the workflow receives: the input is made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<ScenarioDelivery>,
    /// The moment at which the run starts, RFC 3339. From then on, waits pass on a played clock and take no time.
    #[serde(default = "start_of_time", skip_serializing_if = "is_start_of_time")]
    pub now: String,
    /// What the model says, one entry a call, as in a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<Vec<Value>>,
    /// A script that says it: a path, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// A recording of a run that happened: a path, relative to this file. It has the input, the replies, what tools gave
    /// and the decisions; `input`, `now` and `decisions` of the scenario replace those, and `tools` answer for calls that
    /// are not in it. `loopctl record` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// What tools answer, by name, as in a script.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<Value>>,
    /// What the model says in the loops that are called, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, Vec<Value>>,
    /// What the model of an `llm` action says, by the name of the action.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Vec<Value>>,
    /// The decisions of a human, one a pause, in their order. The scenario ends at a pause that none is left for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<ScenarioDecision>,
    /// What goes wrong, each at its place; or `each`, which plays the scenario once for each tool that it calls and each
    /// way in which it can fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultPlan>,
    /// Plays the scenario again for each event that the run writes, with the process stopped before and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<CrashPoints>,
    /// What must hold of the run.
    #[serde(default)]
    pub expect: Expectations,
    /// What must hold under each fault of `"faults": "each"`. Default: nothing of `never` happens, and the run ends or
    /// waits in a way that the document can have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_faults: Option<Expectations>,
}

/// A delivery of another service, whose signature is right.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioDelivery {
    /// Its body.
    pub body: Value,
    /// Its headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// What a human decides about a pause: one of `approve`, `deny`, `edit`, `answer`, `happened`, `retry` and `expires`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioDecision {
    /// The tool whose call waits, or the kind of the pause. A decision for another one is a failure.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The address of the step of a workflow that waits, like `review.2.pay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\S+$"))]
    pub at: Option<String>,
    /// Makes the waiting call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// Does not make the waiting call: the reason, which the model reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// Makes the waiting call with this input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Map<String, Value>>,
    /// Answers a question, guides an agent that is stuck, or fills in a form: a text, or the values of the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The call of unknown outcome happened, with this result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened: Option<Value>,
    /// The call of unknown outcome failed, for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<String>,
    /// Makes the call of unknown outcome again, or asks the model again that could not be reached: a decision about such a pause needs
    /// `"for": "model_error"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// Nobody decides: the played clock passes the moment at which the approval or the form expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<bool>,
    /// Who decides. An approval of several people needs different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Where a scenario is stopped and resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CrashPoints {
    /// Before and after each event.
    Everywhere,
}

/// The moment at which the runs of scenarios start.
pub const START_OF_TIME: &str = "2026-01-01T00:00:00Z";

fn start_of_time() -> String {
    START_OF_TIME.to_owned()
}

fn is_start_of_time(now: &String) -> bool {
    now == START_OF_TIME
}

impl ScenarioFile {
    /// The script of a scenario that writes its replies itself: its own answers go over those of the file.
    pub fn script_of(&self, scenario: &Scenario, from: Option<Script>) -> Script {
        let mut script = from
            .unwrap_or_else(|| Script { replies: scenario.replies.clone().unwrap_or_default(), ..Script::default() });
        let over = |own: &BTreeMap<String, Vec<Value>>, file: &BTreeMap<String, Vec<Value>>| {
            let mut all = file.clone();
            all.extend(own.clone());
            all
        };
        script.tools = over(&over(&scenario.tools, &self.tools), &script.tools);
        script.loops = over(&over(&scenario.loops, &self.loops), &script.loops);
        script
    }

    /// What the models of `llm` actions say in a scenario.
    pub fn models_of(&self, scenario: &Scenario) -> BTreeMap<String, Vec<Value>> {
        let mut models = self.models.clone();
        models.extend(scenario.models.clone());
        models
    }
}

impl Scenario {
    /// How many places say what the model replies.
    pub fn sources(&self) -> usize {
        [&self.script, &self.recording].into_iter().filter(|path| path.is_some()).count()
            + usize::from(self.replies.is_some())
    }
}
