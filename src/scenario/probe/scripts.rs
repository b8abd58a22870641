//! The shortest script for each point of a loop, and for each of its rungs: retries and the limits of calls.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::sample::sample;
use super::{ProbeAim, ProbeScript};
use crate::language::react::{RequiredTools, StuckAction};
use crate::language::scenario::Scenario;
use crate::program::{Builtin, LoopProgram, Program, Tool, ToolKind, builtin};
use crate::scenario::coverage::{CoverageKind, CoverageMap, CoverageOutcome, CoveragePoint};

/// The number of requests that fail before a fallback is asked, if `retry.attempts` says nothing.
const DEFAULT_ATTEMPTS: u32 = 4;
/// The replies in a row that can't be read after which a run ends.
const MAX_INVALID_REPLIES: usize = 3;
/// The most replies of a script.
const MAX_REPLIES: u32 = 1_000;

/// The scripts for everything that a loop can come to.
pub(super) fn all(program: &LoopProgram, map: &CoverageMap) -> Vec<ProbeScript> {
    let maker = ScriptMaker { program };
    let of_loop = map.points_of_document().into_iter().map(|point| {
        let replies = maker.of_point(&point);
        let what = point.in_words();
        ProbeScript { scenario: maker.scenario(&what, replies), what, aim: ProbeAim::Point(point) }
    });
    let mut all: Vec<ProbeScript> = of_loop.collect();
    // One attempt is no other one.
    if program.properties.retry.attempts.unwrap_or(DEFAULT_ATTEMPTS) > 1 {
        all.push(maker.script("the model is asked again", ProbeAim::ModelRetry, {
            maker.complete().map(|complete| said([vec![json!({ "http": 503 })], complete].concat()))
        }));
    }
    for tool in maker.tools() {
        if tool.retry.as_ref().is_some_and(|retry| retry.attempts > 1) {
            let play = maker
                .calling(tool, 1)
                .map(|play| with(play, "faults", json!([{ "action": tool.name, "nth": 1, "fails": "http 503" }])));
            all.push(maker.script(&format!("a call of `{}` is made again", tool.name), ProbeAim::CallRetry, play));
        }
        if let Some(most) = tool.max_calls {
            let what = format!("call {} of `{}` is refused", most.saturating_add(1), tool.name);
            all.push(maker.script(&what, ProbeAim::CallLimit, maker.calling(tool, most.saturating_add(1))));
        }
    }
    all
}

/// A scenario that plays the steps of a workflow.
pub(super) fn of_flow(program: &Program, what: &str) -> Result<Scenario, String> {
    let mut input = None;
    if let Some(schema) = &program.input {
        input = Some(sample(schema).ok_or("no input can be made of the schema of `input`: write a scenario")?);
    }
    let (mut tools, mut loops) = (Map::new(), Map::new());
    let mut todo = vec![program];
    while let Some(program) = todo.pop() {
        if let Some(of_loop) = program.as_loop() {
            if let Ok(replies) = (ScriptMaker { program: of_loop }).complete() {
                loops.insert(program.name.clone(), json!(replies));
            }
            continue;
        }
        for tool in program.all_tools().into_iter().filter(|tool| tool.called_loop().or(tool.launched()).is_none()) {
            tools.insert(tool.name.clone(), json!([result_of(tool)]));
        }
        todo.extend(program.called_loops().into_iter().map(|called| &**called));
    }
    let play = json!({ "name": what, "input": input, "tools": tools, "loops": loops });
    Scenario::deserialize(&play).map_err(|error| error.to_string())
}

struct ScriptMaker<'p> {
    program: &'p LoopProgram,
}

impl<'p> ScriptMaker<'p> {
    fn tools(&self) -> impl Iterator<Item = &'p Tool> + use<'p> {
        self.program.offered().filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_)))
    }

    fn script(&self, what: &str, aim: ProbeAim, play: Result<Value, String>) -> ProbeScript {
        ProbeScript { what: what.to_owned(), aim, scenario: self.scenario(what, play) }
    }

    /// A scenario of what is played, with an input, answers of all tools, and approvals of all calls.
    fn scenario(&self, what: &str, play: Result<Value, String>) -> Result<Scenario, String> {
        let mut play = play?;
        let fields = play.as_object_mut().ok_or("the script is no object")?;
        fields.insert("name".to_owned(), json!(what));
        if let Some(schema) = self.program.input.as_ref().filter(|_| self.program.default_input.is_none()) {
            let input = sample(schema).ok_or("no input can be made of the schema of `input`: write a scenario")?;
            fields.insert("input".to_owned(), input);
        }
        let tools = fields.entry("tools").or_insert_with(|| json!({}));
        for tool in self.tools().filter(|tool| tool.called_loop().or(tool.launched()).is_none()) {
            if let Some(tools) = tools.as_object_mut() {
                tools.entry(&tool.name).or_insert_with(|| json!([result_of(tool)]));
            }
        }
        let loops: Map<String, Value> = self
            .program
            .called_loops()
            .filter_map(|called| called.as_loop())
            .filter_map(|called| Some((called.name.clone(), json!(ScriptMaker { program: called }.complete().ok()?))))
            .collect();
        fields.insert("loops".to_owned(), Value::Object(loops));
        fields.entry("decisions").or_insert_with(|| json!(vec![json!({ "approve": true }); 8]));
        Scenario::deserialize(&play).map_err(|error| error.to_string())
    }

    fn of_point(&self, point: &CoveragePoint) -> Result<Value, String> {
        let rule = &self.program.properties.on_stuck;
        let (n, most) = (rule.iterations, self.program.properties.max_iterations);
        let rounds = if rule.action == StuckAction::RetryWithHint { 3 } else { 1 };
        let guided = |replies: Vec<Value>| {
            if rule.action != StuckAction::Escalate {
                return Ok(json!({ "replies": replies }));
            }
            let replies = [replies, self.complete()?].concat();
            Ok(json!({ "replies": replies, "decisions": [{ "answer": "Go on." }] }))
        };
        match (point.kind, point.name.as_str()) {
            (CoverageKind::Ending, "complete") => Ok(json!({ "replies": self.complete()? })),
            (CoverageKind::Ending, "max_iterations") => Ok(json!({ "replies": self.notes(most, |at| at)? })),
            (CoverageKind::Ending, "forced_answer") => Ok(said([self.notes(most, |at| at)?, self.answer()?].concat())),
            (CoverageKind::Ending, "timeout") => {
                Ok(json!({ "replies": self.complete()?, "faults": [{ "reply": 1, "fails": "timeout" }] }))
            }
            (CoverageKind::Ending, "budget") => {
                let tokens = self.program.properties.budget.as_ref().and_then(|budget| budget.tokens);
                let tokens = tokens.ok_or("what a played model costs is not known: write a scenario")?;
                // A plain text is an answer in some dialects: one that is cut off is a reply in none.
                let reply = json!({ "text": "...", "finish": "length", "usage": { "input": tokens, "output": 1 } });
                Ok(said(vec![reply]))
            }
            (CoverageKind::Ending, "stuck") => guided(self.notes(n.saturating_mul(rounds), |_| 1)?),
            (CoverageKind::Ending, "model_error") => {
                // Each fallback is asked, too.
                let models = self.program.properties.fallback_models.iter().filter(|model| model.when().is_none());
                let models = models.count().saturating_add(1);
                Ok(said(vec![json!({ "http": 401 }); models]))
            }
            // A plain text is an answer in some dialects: one that is cut off is a reply in none.
            (CoverageKind::Ending, "invalid_replies") => {
                Ok(said(vec![json!({ "text": "...", "finish": "length" }); MAX_INVALID_REPLIES]))
            }
            (CoverageKind::Ending, "human") => {
                self.offers(builtin::PAUSE_FOR_HUMAN)?;
                let ask = call("Ask.", builtin::PAUSE_FOR_HUMAN, json!({ "question": "What now?" }));
                let replies = [vec![ask], self.complete()?].concat();
                Ok(json!({ "replies": replies, "decisions": [{ "answer": "Go on." }] }))
            }
            (CoverageKind::Ending, "approval") => {
                let asks = self.tools().find(|tool| tool.approval.always);
                self.calling(asks.ok_or("which calls need an approval depends on their input: write a scenario")?, 1)
            }
            (CoverageKind::StuckPattern, pattern) => {
                let notes = match pattern {
                    "same_action" => self.notes(n, |_| 1),
                    "alternation" => self.notes(n.saturating_mul(2), |at| at % 2),
                    "cycle" => self.notes(n.saturating_mul(3), |at| at % 3),
                    "same_thought" => {
                        // Two in turn: the same one would be another pattern.
                        let count = n.saturating_add(1).min(MAX_REPLIES);
                        Ok((0..count).map(|at| self.note("Again.", at % 2)).collect::<Result<_, _>>()?)
                    }
                    _ => Ok((0..n.saturating_mul(2).min(MAX_REPLIES))
                        .map(|at| call(&format!("Try {at}."), "no_such_tool", json!({ "number": at })))
                        .collect()),
                }?;
                match rule.action {
                    StuckAction::RetryWithHint => Ok(said([notes, self.complete()?].concat())),
                    _ => guided(notes),
                }
            }
            (CoverageKind::Hint, _) => Ok(said([self.notes(n, |_| 1)?, self.complete()?].concat())),
            (CoverageKind::Fallback, model) => {
                let mut models = self.program.properties.fallback_models.iter().filter(|model| model.when().is_none());
                let before = models.position(|known| known.name() == model).unwrap_or_default();
                let attempts = self.program.properties.retry.attempts.unwrap_or(DEFAULT_ATTEMPTS).min(MAX_REPLIES);
                let count = usize::try_from(attempts).unwrap_or_default().saturating_mul(before + 1);
                Ok(said([vec![json!({ "http": 503 }); count], self.complete()?].concat()))
            }
            (CoverageKind::Tool, name) => self.of_tool(name, point.outcome),
            _ => Err("it depends on values: write a scenario".to_owned()),
        }
    }

    fn of_tool(&self, name: &str, outcome: CoverageOutcome) -> Result<Value, String> {
        let tool = self.program.tool(name).ok_or("there is no such tool")?;
        let play = self.calling(tool, 1)?;
        Ok(match outcome {
            CoverageOutcome::Fails if tool.called_loop().is_some() => {
                return Err("it fails when a run of the loop does: probe that loop".to_owned());
            }
            CoverageOutcome::Fails => with(play, "tools", json!({ name: [{ "error": "http 500" }] })),
            CoverageOutcome::IsDenied => with(play, "decisions", json!([{ "deny": "No." }])),
            _ => play,
        })
    }

    /// `times` calls of a tool, and the answer.
    fn calling(&self, tool: &Tool, times: u32) -> Result<Value, String> {
        let input = self
            .input_of(tool)
            .ok_or_else(|| format!("no input can be made of the `parameters` of `{}`: write a scenario", tool.name))?;
        // The same call again and again would be a stuck run: the input varies, or another tool is called between.
        let one = |at: u32| -> Vec<Value> {
            let other = varied(&input, at).filter(|other| tool.parameters.faults(other).is_empty());
            let between = self.note("Note.", at).ok().filter(|_| times > 1 && other.is_none());
            let input = other.unwrap_or_else(|| input.clone());
            std::iter::once(call(&format!("Call {at}."), &tool.name, input)).chain(between).collect()
        };
        let calls: Vec<Value> = (0..times.min(MAX_REPLIES)).flat_map(one).collect();
        Ok(said([calls, self.complete()?].concat()))
    }

    /// An input of a tool that lets it succeed. What finds tools is given the words of the name of one, whatever number is
    /// written behind them.
    fn input_of(&self, tool: &Tool) -> Option<Value> {
        match tool.kind {
            ToolKind::Builtin(Builtin::FindTool) => Some(json!({ "query": format!("{} ", self.tools().next()?.name) })),
            _ => sample(&tool.parameters),
        }
    }

    /// What the loop must call before it may answer, and the answer.
    fn complete(&self) -> Result<Vec<Value>, String> {
        let needed: Vec<&Tool> = match &self.program.properties.require_tool_before_answer {
            None => Vec::new(),
            Some(RequiredTools::Any(_)) => self.tools().take(1).collect(),
            Some(RequiredTools::All(names)) => names.iter().filter_map(|name| self.program.tool(name)).collect(),
        };
        let calls = needed.into_iter().map(|tool| {
            let input = sample(&tool.parameters).ok_or("no input can be made for a required tool: write a scenario")?;
            Ok(call("It is required.", &tool.name, input))
        });
        let calls: Vec<Value> = calls.collect::<Result<_, String>>()?;
        Ok([calls, self.answer()?].concat())
    }

    fn answer(&self) -> Result<Vec<Value>, String> {
        let answer = match &self.program.answer {
            None => json!("probe"),
            Some(schema) => sample(schema).ok_or("no answer can be made of `answer_schema`: write a scenario")?,
        };
        Ok(vec![json!({ "thought": "Done.", "answer": answer })])
    }

    /// `count` notes; what each notes is a number, by its place from 0.
    fn notes(&self, count: u32, number: impl Fn(u32) -> u32) -> Result<Vec<Value>, String> {
        (0..count.min(MAX_REPLIES)).map(|at| self.note(&format!("Thought {at}."), number(at))).collect()
    }

    /// A call without effect.
    fn note(&self, thought: &str, number: u32) -> Result<Value, String> {
        self.offers(builtin::LOG_PROGRESS)?;
        Ok(call(thought, builtin::LOG_PROGRESS, json!({ "message": format!("note {number}") })))
    }

    fn offers(&self, name: &str) -> Result<(), String> {
        match self.program.offered().any(|tool| tool.name == name) {
            true => Ok(()),
            false => Err(format!("the loop does not have `{name}`: write a scenario")),
        }
    }
}

fn call(thought: &str, action: &str, input: Value) -> Value {
    Value::Object(Map::from_iter([
        ("thought".to_owned(), Value::from(thought)),
        ("action".to_owned(), Value::from(action)),
        ("action_input".to_owned(), input),
    ]))
}

/// The same input with a number in its first text.
fn varied(input: &Value, number: u32) -> Option<Value> {
    let mut other = input.clone();
    let text = other.as_object_mut()?.values_mut().find(|value| value.is_string())?;
    *text = json!(format!("{}{number}", text.as_str().unwrap_or_default()));
    Some(other)
}

/// A script of replies.
fn said(replies: Vec<Value>) -> Value {
    Value::Object(Map::from_iter([("replies".to_owned(), Value::Array(replies))]))
}

fn with(mut play: Value, field: &str, value: Value) -> Value {
    if let Some(fields) = play.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    play
}

/// What a played call of a tool gives: an answer that its schema takes, where it has one.
fn result_of(tool: &Tool) -> Value {
    let form = match &tool.kind {
        ToolKind::Action(action) => action.answer.as_ref(),
        _ => None,
    };
    form.and_then(|form| sample(&form.schema)).unwrap_or_else(|| json!({ "probe": tool.name }))
}
