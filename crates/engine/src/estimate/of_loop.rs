//! What a run of a loop of mode `react` uses at most.

use loopctl_lang::language::action::{OnUncertain, QuestionTerms};
use loopctl_lang::language::react::{OnLimit, Retry};
use loopctl_lang::policy::window;
use loopctl_lang::program::{LoopProgram, MAX_SUBRUNS, ProgramHead, TemplatedAction, Tool, ToolKind};

use super::estimator::{Estimator, ModelTerms, PartDocument, PartMost, RunMost, chosen};
use super::most_used::{CallKind, MostUsed, dearest};
use super::request_size::{self, TextValues, ValueSizes, length};
use crate::history::MAX_SUMMARY_TOKENS;

/// How often an `llm` action asks its model: again with a shorter reply after a refusal of its length, and after an empty reply.
const QUESTIONS: u64 = 3;
/// How often more where its answer must match a schema, and does not.
const CORRECTIONS: u64 = 2;
/// What an `llm` action adds to its question when a reply was not taken.
const CORRECTION: u64 = 20_000;
/// The requests of the last call of `on_limit: answer`: an empty reply is asked for once more.
const LAST_CALLS: u64 = 2;

/// The attempts at a request to one model that are paid for, at most.
pub(super) fn paid_attempts(retry: &Retry) -> u64 {
    u64::from(retry.most_paid())
}

/// The most requests of one call of a tool.
pub(super) fn call_attempts(tool: &Tool) -> u64 {
    let retried = tool.retry.as_ref().map_or(1, |retry| u64::from(retry.attempts.max(1)));
    // One whose answer was lost is made again once.
    let lost = if tool.after_lost_answer() == OnUncertain::Retry { 2 } else { 1 };
    // A secret that its server refuses may be another one by now: then the same attempt is sent once more.
    let renewed = if matches!(tool.kind, ToolKind::Http(_)) && !tool.secrets().is_empty() { 2 } else { 1 };
    retried.max(lost).saturating_mul(renewed)
}

/// How long the last call may take when the time is over, in milliseconds.
pub(super) fn last_call_ms(program: &LoopProgram) -> u64 {
    match program.properties.on_limit {
        OnLimit::Answer => program.properties.last_call_timeout_ms,
        OnLimit::Fail => 0,
    }
}

/// Whether the model may be asked for notes of messages that go. A server may refuse a request of any length as too long: no declared
/// window rules it out.
pub(super) fn may_sum_up(program: &LoopProgram) -> bool {
    let properties = &program.properties;
    match properties.history.as_ref().and_then(|history| history.summarize) {
        Some(summarize) => summarize,
        None => properties.on_limit == OnLimit::Fail,
    }
}

/// The most tokens of a reply.
pub(super) fn max_tokens(program: &LoopProgram, model: Option<&ModelTerms>) -> u32 {
    let window = model.and_then(|model| model.context_tokens);
    program.properties.max_tokens.unwrap_or_else(|| window::max_tokens(window))
}

/// The models of a loop, the one first that is asked first.
pub(super) fn models(program: &LoopProgram, given: Option<&str>) -> Vec<ModelTerms> {
    let first = chosen(&program.head, program.properties.model.as_deref(), given);
    let first = first.map_or_else(ModelTerms::unnamed, |name| ModelTerms::of(&program.head, name));
    let fallbacks = program.properties.fallback_models.iter().map(|model| ModelTerms::of(&program.head, model.name()));
    std::iter::once(first).chain(fallbacks).collect()
}

/// What one call of a tool uses, and what it starts.
pub(super) struct CallMost {
    pub inside: MostUsed,
    pub launched: MostUsed,
    /// The largest request to a model in it.
    pub under_way: MostUsed,
    /// It without the runs that it and those below it call.
    pub apart: MostUsed,
    /// The most that one of those runs uses without those that it calls.
    pub largest_called: MostUsed,
    /// Whether it asks models, or starts what may.
    pub asks_models: bool,
}

impl CallMost {
    /// What one call uses and starts, with the runs of loops that it calls, at every depth.
    fn bounded(&self) -> MostUsed {
        self.inside.least(self.apart.and(self.largest_called.times(MAX_SUBRUNS))).and(self.launched)
    }
}

impl Estimator {
    pub(super) fn of_loop(&mut self, program: &LoopProgram, model: Option<&str>, values: TextValues<'_>) -> RunMost {
        let properties = &program.properties;
        let models = models(program, model);
        let most_reply = u64::from(max_tokens(program, models.first()));
        let opening = request_size::opening(program, values);
        if opening.is_none() && models.iter().any(|model| model.context_tokens.is_none()) {
            let name = &program.name;
            self.unbounded.insert(format!(
                "nothing bounds what the texts of {name:?} take of its input: give the input, or `context_tokens` of its model"
            ));
        }
        let growth = request_size::growth(program, most_reply);
        let attempts = paid_attempts(&properties.retry);
        let iterations = u64::from(properties.max_iterations);
        let last_calls = if properties.on_limit == OnLimit::Answer { LAST_CALLS } else { 0 };
        let size = |iteration| request_size::of_iteration(program, opening, growth, iteration);
        let lengths: Vec<Option<u64>> = (1..=iterations.saturating_add(last_calls)).map(size).collect();
        let mut asked = self.ask(&models, attempts, &lengths, most_reply);
        let longest = size(iterations.saturating_add(last_calls));
        if may_sum_up(program) {
            // Each summary removes an iteration.
            let notes = self.ask(&models, attempts, &[longest], most_reply.min(u64::from(MAX_SUMMARY_TOKENS)));
            asked = asked.and(notes.times(iterations.saturating_sub(1)));
        }
        let calls = iterations.saturating_mul(request_size::calls_per_turn(program));
        // The arguments of a call are in a reply.
        let sizes = values.sizes(Some(most_reply));
        let name = models.first().map(|model| model.name.clone());
        let called = self.tools(program, name.as_deref().filter(|name| !name.is_empty()), CallsOfRun { calls, sizes });
        let mut under_way = called.under_way;
        for model in &models {
            under_way = under_way.or(self.request(model, longest, most_reply));
        }
        // When the budget is spent, one last call follows what was under way.
        let over = if last_calls > 0 { under_way.times(2) } else { under_way };
        RunMost {
            inside: asked.and(called.inside).within(program.head.budget.as_ref(), over),
            launched: called.launched,
            under_way,
            apart: asked.and(called.apart),
            largest_called: called.largest_called,
            parts: called.parts,
        }
    }

    fn tools(&mut self, program: &LoopProgram, model: Option<&str>, of_run: CallsOfRun) -> RunMost {
        let CallsOfRun { calls, sizes } = of_run;
        let (mut inside, mut launched, mut apart) = (Vec::new(), Vec::new(), Vec::new());
        let (mut under_way, mut largest_called, mut parts) = (MostUsed::NOTHING, MostUsed::NOTHING, Vec::new());
        for tool in program.offered().filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_))) {
            let each = self.call(tool, CallContext { head: &program.head, model, sizes });
            let most_calls = tool.max_calls.map_or(calls, |most| u64::from(most).min(calls));
            under_way = under_way.or(each.under_way);
            largest_called = largest_called.or(each.largest_called);
            inside.push(CallKind { most_calls, each: each.inside });
            apart.push(CallKind { most_calls, each: each.apart });
            launched.push(CallKind { most_calls, each: each.launched });
            if each.asks_models {
                let each = each.bounded();
                let called = tool.called_loop().or(tool.launched()).cloned();
                let document = called.map(|program| PartDocument { program, pointer: String::new() });
                parts.push(PartMost { name: tool.name.clone(), calls: most_calls, each, document });
            }
        }
        let [inside, launched, apart] = [inside, launched, apart].map(|kinds| dearest(calls, &kinds));
        RunMost { inside, launched, under_way, apart, largest_called, parts }
    }

    /// One call of a tool.
    pub(super) fn call(&mut self, tool: &Tool, context: CallContext<'_>) -> CallMost {
        let CallContext { model, sizes, .. } = context;
        let attempts = call_attempts(tool);
        let made = MostUsed::tool_calls(attempts);
        let nothing = MostUsed::NOTHING;
        let mut most = CallMost {
            inside: made,
            launched: nothing,
            under_way: nothing,
            apart: made,
            largest_called: nothing,
            asks_models: false,
        };
        match &tool.kind {
            ToolKind::Loop(called) => {
                // The arguments are its whole input.
                let run = self.called(called, model, sizes.others());
                most.inside = made.and(run.inside.times(attempts));
                (most.launched, most.under_way) = (run.launched.times(attempts), run.under_way);
                most.largest_called = run.apart.or(run.largest_called);
                most.asks_models = true;
            }
            ToolKind::Launch(launched) => {
                let run = self.called(launched, model, sizes.others());
                most.launched = run.of_outermost().and(run.launched).times(attempts);
                most.asks_models = true;
            }
            ToolKind::Action(compiled) if let Some(terms) = compiled.action.kind().question() => {
                let asked = self.question(AskingTool { name: &tool.name, compiled, terms }, context);
                most.inside = made.and(asked.all.times(attempts));
                most.apart = most.inside;
                (most.under_way, most.asks_models) = (asked.one, true);
            }
            ToolKind::Action(_)
            | ToolKind::Builtin(_)
            | ToolKind::Http(_)
            | ToolKind::Mail(_)
            | ToolKind::Db(_)
            | ToolKind::Command(_)
            | ToolKind::Matcher(_)
            | ToolKind::Embedded(_) => {}
        }
        most
    }

    /// The question of an `llm` action.
    fn question(&mut self, tool: AskingTool<'_>, context: CallContext<'_>) -> AskedMost {
        let AskingTool { name, compiled, terms: question_terms } = tool;
        let CallContext { head, model, sizes } = context;
        let model = compiled.action.kind().model().or(model).or(head.project.model.as_deref());
        let terms = model.map_or_else(ModelTerms::unnamed, |name| ModelTerms::of(head, name));
        let template = compiled
            .templates()
            .try_fold(0_u64, |sum, text| Some(sum.saturating_add(request_size::text(text, &[], sizes)?)));
        let form = compiled.answer.as_ref().map_or(0, |form| length(&form.instructions()).saturating_mul(2));
        let question = template.map(|question| question.saturating_add(form).saturating_add(CORRECTION));
        if question.is_none() && terms.context_tokens.is_none() {
            self.unbounded.insert(format!(
                "nothing bounds the question of {name:?}: give the input, or `context_tokens` of its model"
            ));
        }
        let output = u64::from(question_terms.max_tokens);
        let retry = question_terms.retry.cloned().unwrap_or_default();
        let one = self.request(&terms, question, output);
        let corrections = if compiled.answer.is_some() { CORRECTIONS } else { 0 };
        AskedMost { one, all: one.times(paid_attempts(&retry).saturating_mul(QUESTIONS + corrections)) }
    }
}

/// Where a tool is called from.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'c> {
    pub head: &'c ProgramHead,
    /// The model of the run.
    pub model: Option<&'c str>,
    /// What the arguments and the values around the call take.
    pub sizes: ValueSizes,
}

/// The calls of a run.
#[derive(Debug, Clone, Copy)]
struct CallsOfRun {
    calls: u64,
    sizes: ValueSizes,
}

/// An `llm` action that is called.
#[derive(Clone, Copy)]
struct AskingTool<'t> {
    name: &'t str,
    compiled: &'t TemplatedAction,
    terms: QuestionTerms<'t>,
}

/// The requests of a question.
struct AskedMost {
    one: MostUsed,
    all: MostUsed,
}
