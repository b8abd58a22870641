//! The texts of a webhook: they read the delivery alone, because there is no run yet.

use serde_json::json;

use super::Walk;
use crate::compile::context::Context;
use crate::syntax::document::DocumentKind;

/// Where a workflow has its webhook.
pub(in crate::compile) const WEBHOOK: &str = "/definition/trigger/webhook";

impl Walk<'_, '_, '_> {
    pub(super) fn webhook(&mut self) {
        let main = self.main;
        let written = main.value.pointer(WEBHOOK).filter(|_| main.kind == Some(DocumentKind::Workflow));
        let Some(written) = written else { return };
        let mut context = Context::default();
        // A rule reports the names that a delivery has not, in words of its own.
        context.open();
        context.add("body");
        context.add_value("headers", json!({ "type": "object", "additionalProperties": { "type": "string" } }));
        if let Some(input) = written.get("input") {
            self.values(&format!("{WEBHOOK}/input"), input, &context);
        }
        if let Some(when) = written.get("when") {
            let at = format!("{WEBHOOK}/when");
            self.values(&at, when, &context);
            self.condition(&at, when, &context);
        }
    }
}
