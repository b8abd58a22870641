//! A step that runs a loop or a workflow beside the document.

use serde_json::Value;

use super::Walk;
use crate::compile::context::Context;
use crate::compile::link::{CalledWorkflow, DeclaredCall};
use crate::compile::steps::named::NamedStep;

impl<'a> Walk<'_, 'a, '_> {
    /// A step that names its document. Returns the schema of its output.
    pub(super) fn named(&mut self, document: (&str, &str), at: &str, step: &'a Value, context: &mut Context) -> Value {
        let (kind, name) = document;
        if let Some(properties) = step.get("properties") {
            self.values(&format!("{at}/properties"), properties, context);
        }
        let mut named = NamedStep::of(step, name);
        let mut answer = None;
        if let Some(call) = self.declared(kind, at, &named)
            && let Some(made) = self.calls.named(self.main, &call, self.faults)
        {
            named = named.with(made.program, made.document);
            answer = made.answer;
        }
        let gives = named.gives(answer.as_ref());
        match named.program {
            Some(_) if step.get("outputKey").is_some_and(Value::is_string) => {}
            Some(_) => context.add_value(&named.key, gives.clone()),
            None => context.open(),
        }
        self.steps.named.insert(at.to_owned(), named);
        gives
    }

    /// What the linker is asked for; nothing when there is no such workflow, which is reported.
    fn declared(&mut self, kind: &str, at: &str, step: &NamedStep) -> Option<DeclaredCall> {
        let declaration = step.declaration();
        // The shape reports an empty name.
        if declaration.name.is_empty() {
            return None;
        }
        let workflow = match kind {
            "workflow" => {
                let found = self.declare.lookup_workflow("name", &declaration.name, at);
                self.faults.append(&mut self.declare.faults);
                Some(CalledWorkflow { source: found?.tree.source.clone(), field: "name", wait: step.waits() })
            }
            _ => None,
        };
        Some(DeclaredCall { index: 0, declaration, pointer: at.to_owned(), workflow })
    }
}
