//! What the language has and this version can't run yet: recognised, and refused plainly rather than
//! ignored.

use serde_json::Value;

use super::document::Document;
use super::layout::Layout;
use crate::diagnostic::{Diagnostic, codes};

/// The properties that can't be used yet.
pub(super) fn faults(document: &Document, layout: Layout) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let mut refuse = |property: &str, what: String, help: &str| {
        let pointer = layout.pointer(property);
        let place = document.tree.place(&pointer);
        faults.push(Diagnostic::error(codes::NOT_YET, what, pointer, place).help(help));
    };
    let dialect = layout.get(document, "dialect").and_then(Value::as_str);
    if let Some(dialect @ ("tool_calls" | "tags" | "final_answer")) = dialect {
        let what = format!("the dialect `{dialect}` can't be used yet");
        refuse("dialect", what, "the dialect that can is `json`, the default");
    }
    faults
}
