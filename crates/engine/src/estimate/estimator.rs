//! The way through a program and those that it calls.

use std::collections::BTreeSet;

use super::most_used::MostUsed;
use super::request_size::{TextValues, ValueSizes};
use loopctl_lang::language::project::Price;
use loopctl_lang::program::{Program, ProgramHead};

/// What is gathered on the way through a program and those that it calls.
#[derive(Debug, Default)]
pub(super) struct Estimator {
    /// Why figures have no bound.
    pub unbounded: BTreeSet<String>,
    /// Programs that were estimated: one may be called from many places.
    known: Vec<(RunKey, RunMost)>,
}

/// What an estimate of a called run depends on.
#[derive(Debug, PartialEq, Eq)]
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
    pub parts: Vec<PartMost>,
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
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == key) {
            return known.clone();
        }
        let most = self.run(program, model, TextValues::Sizes(sizes));
        self.known.push((key, most.clone()));
        most
    }

    /// The most that a call to a model uses: each of these models is asked this often, and the last attempt is taken.
    pub fn ask(&mut self, models: &[ModelTerms], attempts: u64, input: Option<u64>, output: u64) -> MostUsed {
        let mut all = MostUsed::NOTHING;
        for model in models {
            all = all.and(self.request(model, input, output).times(attempts));
        }
        all
    }

    /// One request to a model.
    pub fn request(&mut self, model: &ModelTerms, input: Option<u64>, output: u64) -> MostUsed {
        // A provider refuses a request that is longer than the window, and nothing is paid for it.
        let input = input.into_iter().chain(model.context_tokens).min();
        if model.price.is_none() {
            let why = match model.name.as_str() {
                "" => "no model is named, so that its price is not known".to_owned(),
                name => format!("the project has no price of the model {name:?}"),
            };
            self.unbounded.insert(why);
        }
        MostUsed::request(input, output, model.price)
    }
}

/// The model that a run asks first; none when nobody names one.
pub(super) fn chosen<'p>(head: &'p ProgramHead, own: Option<&'p str>, given: Option<&'p str>) -> Option<&'p str> {
    given.or(own).or(head.project.model.as_deref()).filter(|name| !name.is_empty())
}
