//! A model's name that is nearly one of the project's.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, Help, Nearest, Remedy, codes, is_slip};
use crate::language::Action;
use crate::policy::secret_names::fold;
use crate::program::reference::as_any_path;
use crate::program::template::is_template;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::NEAR_MODEL, check };

/// With at most this many models in the project, a name is compared without its marks.
const MAX_FOLDED_MODELS: usize = 64;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let project = subject.project();
    // Nothing is known of them where the project file can't be read.
    let models = project.and_then(|_| subject.models());
    let mut nearest = Nearest::default();
    let mut judge = |cursor: Option<Cursor<'_>>, name: Option<&str>| {
        let (Some(cursor), Some(name)) = (cursor, name) else { return };
        if as_any_path(name).is_some() || is_template(name) {
            let message = format!("a model is written by its name; {} is sent as it is", quoted(name));
            let before = "neither paths nor templates are read here: name a model, or leave `model` out";
            let help = Help::ending(before, Remedy::ChooseModel);
            return found.push(cursor.report(&RULE, message).help(help));
        }
        let Some(models) = models.as_ref().filter(|models| !models.contains(&name)) else { return };
        let near = nearest.of(name, models.iter().copied());
        // Without its marks, `gpt4` is `gpt-4o` but for a letter.
        let name_folded = fold(name);
        let mut first = models.iter().copied().take(MAX_FOLDED_MODELS);
        let near = near.or_else(|| first.find(|known| is_slip(&name_folded, &fold(known))));
        if let Some(near) = near {
            let message = format!("`{name}` is no model of the project, and nearly `{near}`, which is one");
            let help = format!("write `{near}`; what the project does not have is asked for as a provider's own id");
            found.push(cursor.report(&RULE, message).help(help).suggest(quoted(near)));
        } else if !models.is_empty() && name.chars().all(|c| c.is_alphabetic() || c == '_') {
            // The ids of providers have versions and sizes in them.
            let names: Vec<String> = models.iter().take(8).map(|name| format!("`{name}`")).collect();
            let message = format!("`{name}` is no model of the project, and does not look like a provider's own id");
            found.push(cursor.report(&RULE, message).help(format!("`models` has {}", names.join(", "))));
        }
    };
    judge(subject.in_project("/model"), project.and_then(|project| project.model.as_deref()));
    if let Some(react) = subject.react(&["model"]) {
        judge(subject.property("model"), react.model.as_deref());
    }
    if let Some(react) = subject.react(&["fallback_models"]) {
        for (at, model) in react.fallback_models.iter().enumerate() {
            let field = if model.when().is_some() { "/model" } else { "" };
            judge(subject.property(&format!("fallback_models/{at}{field}")), Some(model.name()));
        }
    }
    for used in subject.actions() {
        if let Action::Llm(llm) = &*used.action {
            judge(Some(used.at("/model")), llm.model.as_deref());
        }
    }
}
