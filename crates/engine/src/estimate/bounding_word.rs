//! The words of a document that bound what a run uses, each with its place.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::estimator::{ModelTerms, PartDocument};
use super::most_used::dearest_input;
use super::of_flow::{given_items, most_items};
use super::of_loop::{self, paid_attempts};
use super::request_size;
use loopctl_lang::language::react::{Budget, OnLimit};
use loopctl_lang::program::flow::{FlowProgram, FlowStep, Foreach, StepAction};
use loopctl_lang::program::{LoopProgram, Program, ProgramHead, ToolKind};
use loopctl_lang::syntax::{self, Tree};

/// A word that bounds a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoundingWord {
    /// What it bounds.
    pub figure: BoundedFigure,
    /// The field, as the document names it.
    pub word: String,
    /// What it says.
    pub value: String,
    /// Where, as `FILE:LINE`, or `input` for what the given input says; left out when the document does not say it, and the default holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The place of what the input says.
const IN_THE_INPUT: &str = "input";

/// A figure of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundedFigure {
    /// Requests to models.
    ModelCalls,
    /// Requests of tools.
    ToolCalls,
    /// Tokens that models read.
    InputTokens,
    /// Tokens that models write.
    OutputTokens,
    /// Both together.
    Tokens,
    /// US dollars.
    CostUsd,
    /// Active time.
    ActiveMs,
}

/// Documents that were read for their places: many parts may be written in one.
#[derive(Debug, Default)]
pub(super) struct ReadTrees(HashMap<Arc<str>, Rc<Tree>>);

impl ReadTrees {
    fn of(&mut self, program: &ProgramHead) -> Option<Rc<Tree>> {
        let source = program.sources.first()?;
        let tree = self.0.entry(Arc::clone(&source.name)).or_insert_with(|| Rc::new(syntax::parse(source).0));
        Some(Rc::clone(tree))
    }
}

/// The words of a program.
pub(super) fn of(
    program: &Program,
    model: Option<&str>,
    input: Option<&Value>,
    trees: &mut ReadTrees,
) -> Vec<BoundingWord> {
    let mut words = FoundWords::new(program, "", trees);
    match program {
        Program::Loop(of_loop) => words.of_loop(of_loop, model),
        Program::Flow(of_flow) => words.of_flow(of_flow, FlowWords { model, input, trees }),
    }
    words.found
}

/// The words of what a tool calls, or a step is.
pub(super) fn of_part(part: &PartDocument, trees: &mut ReadTrees) -> Vec<BoundingWord> {
    if part.pointer.is_empty() {
        return of(&part.program, None, None, trees);
    }
    let mut words = FoundWords::new(&part.program, &part.pointer, trees);
    if let Program::Loop(of_loop) = &*part.program {
        words.of_loop(of_loop, None);
    }
    words.found
}

/// What is known of a workflow for its words.
struct FlowWords<'w> {
    model: Option<&'w str>,
    input: Option<&'w Value>,
    trees: &'w mut ReadTrees,
}

/// The words, as far as they are found.
struct FoundWords {
    /// The document, with its places.
    tree: Option<Rc<Tree>>,
    /// The pointers of the objects whose members are looked up.
    around: Vec<String>,
    found: Vec<BoundingWord>,
}

impl FoundWords {
    /// `pointer`: of the loop in its document; nothing for the document itself.
    fn new(program: &ProgramHead, pointer: &str, trees: &mut ReadTrees) -> Self {
        let of = |around: &str| format!("{pointer}{around}");
        let around = ["/properties", "/config", "/definition", ""].map(of).to_vec();
        Self { tree: trees.of(program), around, found: Vec::new() }
    }

    fn add(&mut self, figures: &[BoundedFigure], word: &str, value: impl ToString + Copy) {
        let pointer = word.replace('.', "/");
        let at = self.place(&pointer);
        self.add_at(figures, word, value, at);
    }

    fn add_at(&mut self, figures: &[BoundedFigure], word: &str, value: impl ToString + Copy, at: Option<String>) {
        let value = value.to_string();
        for (figure, at) in figures.iter().zip(std::iter::repeat_n(at, figures.len())) {
            let word = BoundingWord { figure: *figure, word: word.to_owned(), value: value.clone(), at };
            // Steps may share a model.
            if !self.found.contains(&word) {
                self.found.push(word);
            }
        }
    }

    fn place(&self, member: &str) -> Option<String> {
        let tree = self.tree.as_ref()?;
        self.around.iter().find_map(|around| {
            let pointer = format!("{around}/{member}");
            tree.at(&pointer)?;
            let place = tree.place(&pointer);
            Some(format!("{}:{}", place.file, place.line))
        })
    }

    fn of_loop(&mut self, program: &LoopProgram, model: Option<&str>) {
        use BoundedFigure::{ActiveMs, InputTokens, ModelCalls, OutputTokens, ToolCalls};
        let properties = &program.properties;
        let models = of_loop::models(program, model);
        self.add(&[ModelCalls, ToolCalls], "max_iterations", properties.max_iterations);
        let attempts = paid_attempts(&properties.retry);
        if attempts > 1 {
            self.add(&[ModelCalls], "retry.attempts", attempts);
        }
        if !properties.fallback_models.is_empty() {
            self.add(&[ModelCalls], "fallback_models", properties.fallback_models.len());
        }
        if properties.on_limit == OnLimit::Answer {
            self.add(&[ModelCalls], "on_limit", "answer");
            self.add(&[ActiveMs], "last_call_timeout_ms", properties.last_call_timeout_ms);
        }
        if of_loop::may_sum_up(program) {
            self.add(&[ModelCalls], "history.summarize", "notes of what goes");
        }
        let most_calls = request_size::calls_per_turn(program);
        if most_calls > 1 {
            self.add(&[ToolCalls], "max_tool_calls_per_turn", most_calls);
        }
        self.of_tools(program);
        let windows = models.iter().filter_map(|model| Some((&model.name, model.context_tokens?)));
        for (name, window) in windows {
            self.add_at(&[InputTokens], &format!("models.{name}.context_tokens"), window, project_file());
        }
        self.add(&[InputTokens], "max_observation_chars", properties.max_observation_chars);
        if let Some(most) = properties.history.as_ref().and_then(|history| history.max_messages) {
            self.add(&[InputTokens], "history.max_messages", most);
        }
        self.add(&[OutputTokens], "max_tokens", of_loop::max_tokens(program, models.first()));
        self.of_prices(&models);
        self.of_head(&program.head);
    }

    fn of_prices(&mut self, models: &[ModelTerms]) {
        for model in models {
            if let Some(price) = model.price {
                let input = dearest_input(price);
                let which = if input > price.input { " (what is cached)" } else { "" };
                let value = format!("${input}{which} and ${} a million", price.output);
                let word = format!("models.{}.price", model.name);
                self.add_at(&[BoundedFigure::CostUsd], &word, value.as_str(), project_file());
            }
        }
    }

    /// The most calls of each tool.
    fn of_tools(&mut self, program: &LoopProgram) {
        let written: Vec<Value> =
            program.properties.tools.iter().filter_map(|tool| serde_json::to_value(tool).ok()).collect();
        for tool in program.tools.iter() {
            let Some(most) = tool.max_calls else { continue };
            let number =
                written.iter().position(|written| written.get("name").and_then(Value::as_str) == Some(&*tool.name));
            let at = number.and_then(|number| self.place(&format!("tools/{number}/max_calls")));
            self.add_at(&[BoundedFigure::ToolCalls], &format!("max_calls of {}", tool.name), most, at);
        }
    }

    fn of_flow(&mut self, program: &FlowProgram, mut known: FlowWords<'_>) {
        for step in &program.steps {
            self.of_step(step, "", &mut known);
        }
        self.of_head(&program.head);
    }

    /// `address`: the lists around, each with a dot.
    fn of_step(&mut self, step: &FlowStep, address: &str, known: &mut FlowWords<'_>) {
        let name = format!("{address}{}", step.name);
        match &step.action {
            StepAction::Foreach(foreach) => {
                self.of_items(step, foreach, &name, known.input);
                for inner in &foreach.steps {
                    self.of_step(inner, &format!("{name}."), known);
                }
            }
            StepAction::Call(call) => {
                if let ToolKind::Action(compiled) = &call.tool.kind
                    && let Some(terms) = compiled.action.kind().question()
                {
                    self.add_at(
                        &[BoundedFigure::OutputTokens],
                        &format!("max_tokens of {name}"),
                        terms.max_tokens,
                        None,
                    );
                }
            }
            StepAction::React(_)
            | StepAction::Approval(_)
            | StepAction::Form(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => {}
        }
        if let Some(called) = step.called() {
            self.of_called(step, called, &name, known);
        }
        if let Some(otherwise) = &step.otherwise {
            self.of_step(otherwise, address, known);
        }
    }

    /// The first words of the loop that a step is, or calls: the list of the parts has all of them.
    fn of_called(&mut self, step: &FlowStep, called: &Arc<Program>, name: &str, known: &mut FlowWords<'_>) {
        use BoundedFigure::{CostUsd, InputTokens, ModelCalls, OutputTokens};
        let is_written_here = matches!(step.action, StepAction::React(_));
        let pointer = if is_written_here { step.pointer.clone() } else { String::new() };
        let part = PartDocument { program: Arc::clone(called), pointer };
        for word in of_part(&part, known.trees) {
            let is_of_project = word.word.starts_with("models.");
            match word.figure {
                CostUsd | InputTokens if is_of_project && known.model.is_none() => {
                    self.add_at(&[word.figure], &word.word, word.value.as_str(), word.at);
                }
                ModelCalls | OutputTokens if matches!(word.word.as_str(), "max_iterations" | "max_tokens") => {
                    let word_of = format!("{} of {name}", word.word);
                    self.add_at(&[word.figure], &word_of, word.value.as_str(), word.at);
                }
                _ => {}
            }
        }
        if let (Some(model), Program::Loop(of_loop)) = (known.model, &**called) {
            self.of_prices(&of_loop::models(of_loop, Some(model)));
        }
    }

    fn of_items(&mut self, step: &FlowStep, foreach: &Foreach, name: &str, input: Option<&Value>) {
        let figures = [BoundedFigure::ModelCalls, BoundedFigure::ToolCalls];
        let most = most_items(foreach, input);
        match given_items(foreach, input) {
            Some(given) if given <= most => {
                self.add_at(&figures, &format!("items of {name}"), given, Some(IN_THE_INPUT.to_owned()));
            }
            _ => {
                let around = [format!("{}/properties", step.pointer), step.pointer.clone()];
                let document = std::mem::replace(&mut self.around, around.to_vec());
                let at = self.place("max_items").or_else(|| {
                    // A loop of mode `foreach` that is the document itself.
                    self.around = document.clone();
                    self.place("max_items")
                });
                self.around = document;
                self.add_at(&figures, &format!("max_items of {name}"), most, at);
            }
        }
    }

    fn of_head(&mut self, head: &ProgramHead) {
        self.add(&[BoundedFigure::ActiveMs], "timeout_ms", head.timeout_ms);
        let Some(Budget { tokens, cost_usd, .. }) = &head.budget else { return };
        if let Some(tokens) = tokens {
            self.add(&[BoundedFigure::Tokens], "budget.tokens", tokens);
        }
        if let Some(cost) = cost_usd {
            self.add(&[BoundedFigure::CostUsd], "budget.cost_usd", cost);
        }
    }
}

/// The models are in the project file, of which a program has no text.
fn project_file() -> Option<String> {
    Some(loopctl_lang::language::Project::FILE.to_owned())
}
