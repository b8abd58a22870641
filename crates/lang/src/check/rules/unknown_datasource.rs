//! A datasource that the project does not define.

use crate::check::steps::steps;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, codes};
use crate::language::Action;
use crate::language::action::TABLES;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::UNKNOWN_DATASOURCE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project().filter(|_| subject.knows_project("/datasources")) else { return };
    let mut nearest = Nearest::default();
    let of_actions = subject.actions().iter().filter_map(|used| match &*used.action {
        Action::Db(db) => Some((used.at("/datasource"), db.datasource.as_str())),
        Action::CustomTable(_) => Some((used.at("/kind"), TABLES)),
        _ => None,
    });
    let of_steps = steps(subject);
    let of_steps = of_steps.iter().filter(|step| step.kind == "custom-table");
    let of_steps = of_steps.map(|step| (subject.at(&format!("{}/type", step.at)), TABLES));
    for (cursor, name) in of_actions.chain(of_steps) {
        // A secret's text is not known here.
        if name.starts_with("orgconfig:") || project.datasources.contains_key(name) {
            continue;
        }
        let fault = cursor.report(&RULE, format!("the project has no datasource `{name}`"));
        let names: Vec<&str> = project.datasources.keys().map(String::as_str).collect();
        found.push(match (nearest.of(name, names.iter().copied()), subject.in_project("")) {
            (Some(near), _) if name == TABLES => {
                fault.help(format!("a custom table is one of the datasource `{TABLES}`; the nearest one is `{near}`"))
            }
            (Some(near), _) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
            (None, Some(cursor)) if !names.is_empty() => {
                let shown: Vec<&str> = names.iter().take(8).copied().collect();
                fault.help(format!("`datasources` of {} has: {}", cursor.place().file, shown.join(", ")))
            }
            (None, at) => {
                let entry = serde_json::json!({ "datasources": { name: { "url": "sqlite:data.db" } } });
                fault.help(match at {
                    Some(cursor) => format!("say in {} where it is: {entry}", cursor.place().file),
                    None => format!("no `loopctl.json` stands beside the document or above it; make one: {entry}"),
                })
            }
        });
    }
}
