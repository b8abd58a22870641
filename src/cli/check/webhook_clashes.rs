//! Webhooks of one name that are verified differently: the server refuses such a folder.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, codes};
use crate::program::Program;
use crate::program::webhook::FlowWebhook;
use std::sync::Arc;

/// Where a workflow has its webhook.
const AT: &str = "/definition/trigger/webhook";

/// A workflow that can be compiled, and has a webhook; none otherwise.
pub fn webhook_of(program: Option<&Arc<Program>>) -> Option<Arc<Program>> {
    program.filter(|program| webhook(program).is_some()).cloned()
}

fn webhook(program: &Program) -> Option<&FlowWebhook> {
    program.as_flow()?.webhook.as_ref()
}

/// The webhooks that are verified differently from one before them, of the same name.
pub fn clashes(programs: &[Arc<Program>]) -> Vec<Diagnostic> {
    let mut first_of: BTreeMap<&str, &Arc<Program>> = BTreeMap::new();
    let mut faults = Vec::new();
    for program in programs {
        let Some(webhook) = webhook(program) else { continue };
        let first = first_of.entry(webhook.name.as_str()).or_insert(program);
        let is_alike = self::webhook(first).is_some_and(|first| first.is_verified_as(webhook));
        if let Some(source) = program.sources.first().filter(|_| !is_alike) {
            let (tree, _) = crate::syntax::parse(source);
            let message = format!(
                "the workflow `{}` has the webhook `{}`, too, and says differently how it is verified",
                first.name, webhook.name
            );
            let fault = Diagnostic::error(codes::BAD_WEBHOOK, message, AT, tree.key_place(AT));
            faults.push(
                fault.help("give one of them another `name`, or let both say the same `verify`, `secret` and `hmac`"),
            );
        }
    }
    faults
}
