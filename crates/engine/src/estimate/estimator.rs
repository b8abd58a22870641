//! The way through a program and those that it calls.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::most_used::MostUsed;
use super::request_size::{FRAME, TextValues, ValueSizes};
use crate::request_length;
use loopctl_lang::language::project::Price;
use loopctl_lang::program::{MAX_SUBRUNS, Program, ProgramHead};

/// What is gathered on the way through a program and those that it calls.
#[derive(Debug, Default)]
pub(super) struct Estimator {
    /// Why figures have no bound.
    pub unbounded: BTreeSet<String>,
    /// Programs that were estimated: one may be called from many places.
    known: HashMap<RunKey, RunMost>,
}

/// What an estimate of a called run depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RunKey {
    program: *const Program,
    model: Option<String>,
    sizes: ValueSizes,
}

/// What a run uses at most.
#[derive(Debug, Clone)]
pub(super) struct RunMost {
    /// It, and the runs that it waits for: its budget bounds it.
    pub inside: MostUsed,
    /// The runs that it starts and does not wait for.
    pub launched: MostUsed,
    /// What ends when its budget is spent: the largest request.
    pub under_way: MostUsed,
    /// It without the runs of the loops that it and the runs below it call: the runtime counts these together.
    pub apart: MostUsed,
    /// The most that one of those runs uses without those that it calls.
    pub largest_called: MostUsed,
    pub parts: Vec<PartMost>,
}

impl RunMost {
    /// What a run uses that no other run has called, with the runs of loops that it calls, at every depth.
    pub fn of_outermost(&self) -> MostUsed {
        self.inside.least(self.apart.and(self.largest_called.times(MAX_SUBRUNS)))
    }
}

/// What asks models beside the run itself.
#[derive(Debug, Clone)]
pub(super) struct PartMost {
    /// The tool, or the step.
    pub name: String,
    /// How often it is called, at most.
    pub calls: u64,
    /// What one call uses.
    pub each: MostUsed,
    /// The document that it calls or starts, or the loop that the step is.
    pub document: Option<PartDocument>,
}

/// Where the words of a part are.
#[derive(Debug, Clone)]
pub(super) struct PartDocument {
    pub program: Arc<Program>,
    /// The pointer of a loop that is written as a step; nothing for a document of its own.
    pub pointer: String,
}

/// A model as the project declares it.
#[derive(Debug, Clone)]
pub(super) struct ModelTerms {
    pub name: String,
    pub context_tokens: Option<u64>,
    pub price: Option<Price>,
}

impl ModelTerms {
    /// One that nobody names.
    pub fn unnamed() -> Self {
        Self { name: String::new(), context_tokens: None, price: None }
    }

    /// The most tokens of a request of this length. One that is longer than the declared window of its model, whatever its texts are,
    /// is not sent; what is shorter by an estimate may be longer in tokens.
    pub fn longest(&self, length: Option<u64>) -> Option<u64> {
        let window = self.context_tokens.map(|window| request_length::most_bytes(window).saturating_add(FRAME));
        length.into_iter().chain(window).min()
    }

    pub fn of(head: &ProgramHead, name: &str) -> Self {
        let declared = head.project.models.get(name);
        Self {
            name: name.to_owned(),
            context_tokens: declared.and_then(|model| model.context_tokens),
            price: declared.and_then(|model| model.price),
        }
    }
}

impl Estimator {
    pub fn run(&mut self, program: &Program, model: Option<&str>, values: TextValues<'_>) -> RunMost {
        match program {
            Program::Loop(of_loop) => self.of_loop(of_loop, model, values),
            Program::Flow(of_flow) => self.of_flow(of_flow, model, values),
        }
    }

    /// A run that another one calls or starts. `model`: the caller's.
    pub fn called(&mut self, program: &Program, model: Option<&str>, sizes: ValueSizes) -> RunMost {
        // One that names a model takes it, or the project's.
        let inherits = program.model().is_none() && program.project.model.is_none();
        let model = model.filter(|_| inherits);
        let key = RunKey { program: std::ptr::from_ref(program), model: model.map(str::to_owned), sizes };
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        // What it gathers of its parts is shown for the outermost run alone.
        let most = RunMost { parts: Vec::new(), ..self.run(program, model, TextValues::Sizes(sizes)) };
        self.known.insert(key, most.clone());
        most
    }

    /// The most that calls to a model use, of these lengths: each of the models is asked this often for each, and the last attempt is
    /// taken.
    pub fn ask(&mut self, models: &[ModelTerms], attempts: u64, lengths: &[Option<u64>], output: u64) -> MostUsed {
        let times = u64::try_from(lengths.len()).unwrap_or(u64::MAX);
        let mut all = MostUsed::NOTHING;
        for model in models {
            self.price(model);
            let sum = |sum: u64, length: &Option<u64>| Some(sum.saturating_add(model.longest(*length)?));
            let input = lengths.iter().try_fold(0, sum);
            all = all.and(MostUsed::requests(times, input, output, model.price).times(attempts));
        }
        all
    }

    /// One request to a model.
    pub fn request(&mut self, model: &ModelTerms, input: Option<u64>, output: u64) -> MostUsed {
        self.price(model);
        MostUsed::request(model.longest(input), output, model.price)
    }

    /// Takes note of a model without a price.
    fn price(&mut self, model: &ModelTerms) {
        if model.price.is_none() {
            let why = match model.name.as_str() {
                "" => "no model is named, so that its price is not known".to_owned(),
                name => format!("the project has no price of the model {name:?}"),
            };
            self.unbounded.insert(why);
        }
    }
}

/// The model that a run asks first; none when nobody names one.
pub(super) fn chosen<'p>(head: &'p ProgramHead, own: Option<&'p str>, given: Option<&'p str>) -> Option<&'p str> {
    given.or(own).or(head.project.model.as_deref()).filter(|name| !name.is_empty())
}
