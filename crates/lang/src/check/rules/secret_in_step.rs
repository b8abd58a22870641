//! A secret among the values that a step gives to its action: they are in the journal, and only an action inserts secrets.

use crate::check::steps::steps;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::program::reference::each_text;
use crate::program::template::{Template, ValueEscape};

pub const RULE: Rule = Rule { code: codes::SECRET_IN_PROMPT, check };

/// The texts of a loop are prompts, and the lists of a matcher are read where they are compiled.
const READ_ELSEWHERE: [&str; 2] = ["loop", "matcher"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject).into_iter().filter(|step| step.is_named() || !READ_ELSEWHERE.contains(&step.kind)) {
        for (name, value) in step.properties {
            each_text(value, &mut step.property(name), &mut |at, text| {
                let Ok(template) = Template::compile(text, ValueEscape::Plain) else { return };
                let Some(name) = template.secrets().first().map(|key| format!("orgconfig:{key}")) else { return };
                let Some(start) = text.find(&name) else { return };
                let cursor = subject.at(at).inside(start..start + name.len());
                let fault = cursor.report(
                    &RULE,
                    format!("a step can't give the secret `{name}`: its values are kept in the journal"),
                );
                found.push(
                    fault.help("take it out, and use the secret in a header, an address or a body of the action"),
                );
            });
        }
        few_of_many(found);
    }
}
