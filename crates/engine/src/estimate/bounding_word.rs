//! The words of a document that bound what a run uses, each with its place.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::of_flow::{given_items, most_items};
use super::of_loop::{self, paid_attempts};
use super::request_size;
use loopctl_lang::language::react::{Budget, OnLimit};
use loopctl_lang::program::flow::{FlowProgram, FlowStep, StepAction};
use loopctl_lang::program::{LoopProgram, Program, ProgramHead};
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
    /// Where, as `FILE:LINE`; left out when the document does not say it, and the default holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

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

/// The words of a program.
pub(super) fn of(program: &Program, model: Option<&str>, input: Option<&Value>) -> Vec<BoundingWord> {
    let mut words = FoundWords::new(program);
    match program {
        Program::Loop(of_loop) => words.of_loop(of_loop, model),
        Program::Flow(of_flow) => words.of_flow(of_flow, input),
    }
    words.found
}

/// The words, as far as they are found.
struct FoundWords {
    /// The document, with its places.
    tree: Option<Tree>,
    /// The pointers of the objects whose members are looked up.
    around: Vec<String>,
    found: Vec<BoundingWord>,
}

impl FoundWords {
    fn new(program: &ProgramHead) -> Self {
        let tree = program.sources.first().map(|source| syntax::parse(source).0);
        let around = ["/properties", "/config", ""].map(str::to_owned).to_vec();
        Self { tree, around, found: Vec::new() }
    }

    fn add(&mut self, figures: &[BoundedFigure], word: &str, value: impl ToString + Copy) {
        let pointer = word.replace('.', "/");
        let at = self.place(&pointer);
        self.add_at(figures, word, value, at);
    }

    fn add_at(&mut self, figures: &[BoundedFigure], word: &str, value: impl ToString + Copy, at: Option<String>) {
        let value = value.to_string();
        for (figure, at) in figures.iter().zip(std::iter::repeat_n(at, figures.len())) {
            self.found.push(BoundingWord { figure: *figure, word: word.to_owned(), value: value.clone(), at });
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
        if of_loop::may_sum_up(program, None, models.first()) {
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
        for model in &models {
            if let Some(price) = model.price {
                let value = format!("${} and ${} a million", price.input, price.output);
                let word = format!("models.{}.price", model.name);
                self.add_at(&[BoundedFigure::CostUsd], &word, value.as_str(), project_file());
            }
        }
        self.of_head(&program.head);
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

    fn of_flow(&mut self, program: &FlowProgram, input: Option<&Value>) {
        for step in &program.steps {
            self.of_step(step, input);
        }
        self.of_head(&program.head);
    }

    fn of_step(&mut self, step: &FlowStep, input: Option<&Value>) {
        if let StepAction::Foreach(foreach) = &step.action {
            let figures = [BoundedFigure::ModelCalls, BoundedFigure::ToolCalls];
            let most = most_items(foreach, input);
            match given_items(foreach, input) {
                Some(given) if given <= most => {
                    self.add_at(&figures, &format!("items of {} in the input", step.name), given, None);
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
                    self.add_at(&figures, &format!("max_items of {}", step.name), most, at);
                }
            }
            for inner in &foreach.steps {
                self.of_step(inner, input);
            }
        }
        if let Some(otherwise) = &step.otherwise {
            self.of_step(otherwise, input);
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
