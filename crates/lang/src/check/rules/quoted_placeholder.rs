//! A placeholder between the quotes of a text of SQL: there it is no placeholder.

use std::ops::Range;

use crate::check::{Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::action::DbAction;
use crate::policy::statement::texts;

pub const RULE: Rule = Rule { code: codes::QUOTED_PLACEHOLDER, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Db(db) = &*used.action else { continue };
        for text in texts(&db.query).filter(|_| used.knows(&["/query"])) {
            let Some(inner) = db.query.get(text.start + 1..text.end - 1) else { continue };
            let Some(range) = placeholder(inner, db, used) else { continue };
            // Without a list of parameters, a text that is compared with nothing is a text.
            let before = db.query.get(..text.start).unwrap_or_default().trim_end();
            if !has_parameters(used) && db.params.is_empty() && !is_compared(before) {
                continue;
            }
            let (before, name, after) = (inner.get(..range.start), inner.get(range.clone()), inner.get(range.end..));
            let (Some(before), Some(name), Some(after)) = (before, name, after) else { continue };
            let part = |text: &str| Some(format!("'{text}'")).filter(|_| !text.is_empty());
            let parts = [part(before), Some(name.to_owned()), part(after)];
            let meant = parts.into_iter().flatten().collect::<Vec<_>>().join(" || ");
            let message = format!("`{name}` stands between quotes: it is a text there, and takes no value");
            let fault = used.at("/query").inside(text).report(&RULE, message);
            found.push(fault.help(format!("write it without the quotes: `{meant}`")).suggest(meant));
        }
    }
}

fn has_parameters(used: &Used<'_>) -> bool {
    used.written().get("parameters").is_some()
}

/// Whether what follows these words of a query is compared, or written.
fn is_compared(before: &str) -> bool {
    let word = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_ascii_lowercase();
    before.ends_with(['=', '<', '>', '(', '~'])
        || matches!(&*word, "like" | "ilike" | "glob" | "regexp" | "between" | "and")
}

/// The place of a placeholder in a text: `$1` where there are `params`, or a name that the action takes.
fn placeholder(inner: &str, db: &DbAction, used: &Used<'_>) -> Option<Range<usize>> {
    let declared = used.written().get("parameters").and_then(|schema| schema.get("properties")?.as_object());
    let alone = inner.trim_matches('%');
    inner.char_indices().filter(|(_, c)| matches!(c, ':' | '$' | '@')).find_map(|(at, mark)| {
        let rest = inner.get(at + mark.len_utf8()..)?;
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = rest.get(..length).filter(|name| !name.is_empty())?;
        let range = at..at + mark.len_utf8() + length;
        let whole = inner.get(range.clone()) == Some(alone);
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let is_meant = match declared {
            _ if is_number => whole && mark == '$' && !db.params.is_empty(),
            Some(declared) => declared.contains_key(name),
            None => whole && mark == ':' && db.params.is_empty(),
        };
        is_meant.then_some(range)
    })
}
