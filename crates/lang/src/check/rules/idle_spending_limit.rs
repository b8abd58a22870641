//! A spending limit that bounds nothing, or a time that does not exist.

use super::unknown_zone::ZoneFault;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::spending_limit::SpendingWindow;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::IDLE_SPENDING_LIMIT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (number, limit) in project.limits.iter().enumerate() {
        let at = format!("/limits/{number}");
        let mut report = |field: &str, message: String, help: String, better: Option<String>| {
            let Some(cursor) = subject.in_project(&format!("{at}{field}")) else { return };
            if subject.is_reported(&cursor.place()) {
                return;
            }
            let fault = cursor.report(&RULE, message).help(help);
            found.push(match better {
                Some(better) => fault.suggest(quoted(&better)),
                None => fault,
            });
        };
        if limit.tokens.is_none() && limit.cost_usd.is_none() && subject.knows_project(&at) {
            let help = "give it `tokens`, or `cost_usd`".to_owned();
            report("", "the spending limit has no amount: runs may spend what they like".to_owned(), help, None);
        }
        if limit.cost_usd == Some(0.0) {
            let help = "write the most that may be spent, or switch loops off with `loopctl loops disable`".to_owned();
            report("/cost_usd", "a spending limit of 0 lets no model be asked".to_owned(), help, None);
        }
        let Some(zone) = &limit.timezone else { continue };
        if matches!(limit.every, SpendingWindow::Rolling(_)) {
            let message = "the last hours are the same in every time zone: `timezone` has no effect".to_owned();
            let help = "leave `timezone` out, or write `\"every\": \"day\"`, which begins at midnight in it".to_owned();
            report("/timezone", message, help, None);
        } else if let Some(ZoneFault { message, help, meant }) = ZoneFault::of(zone) {
            report("/timezone", message, help, meant);
        }
    }
}
