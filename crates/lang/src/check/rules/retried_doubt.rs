//! A call that is not idempotent and is made again in doubt.

use std::collections::BTreeMap;

use crate::check::step_tree::tree;
use crate::check::{Cursor, Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::action::OnUncertain;

pub const RULE: Rule = Rule { code: codes::RETRIED_DOUBT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut at_once: BTreeMap<&str, Cursor<'_>> = BTreeMap::new();
    for node in &tree(subject) {
        node.each(&mut Vec::new(), &mut |node, around| {
            let wide = around.iter().find(|around| around.step.is_foreach() && around.step.concurrency() > 1);
            if let Some(wide) = wide {
                at_once.insert(node.step.kind, subject.at(&wide.step.property("max_concurrency")));
            }
        });
    }
    let known = |used: &&Used<'_>| used.knows(&["/idempotent", "/http_method", "/read_only"]);
    for used in subject.actions().iter().filter(known) {
        let kind = used.action.kind();
        if kind.head().on_uncertain != Some(OnUncertain::Retry) {
            continue;
        }
        // To ask a model twice costs, and does no harm.
        let Some(what) = kind.repeated() else { continue };
        let cursor = used.at("/on_uncertain");
        if !kind.head().idempotent.unwrap_or_else(|| kind.is_idempotent()) && cursor.is_written() {
            let message =
                format!("after a crash, or when its answer is lost, {what} that may have happened would be made again");
            let fault = cursor.report(&RULE, message);
            let fault = fault.help(
                "write \"pause\", so that a human looks; or \"idempotent\": true, when the other side knows a \
                 repeated call by its `Idempotency-Key`",
            );
            found.push(match at_once.get(used.name()) {
                Some(wide) => {
                    fault.related(&wide.place(), "so many items at a time: one call of each may be made again")
                }
                None => fault,
            });
        }
    }
}
