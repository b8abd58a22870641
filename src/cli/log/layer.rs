//! Makes lines of the events of the program.

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::line::{LogFields, LogLine};
use super::sink::LogOutput;

/// Hands each event to the log as one line, with the fields of the spans around it.
pub struct LogLayer {
    output: &'static LogOutput,
}

impl LogLayer {
    /// To this output.
    pub fn new(output: &'static LogOutput) -> Self {
        Self { output }
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = LogFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<LogFields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        // The innermost span first: its fields count.
        let spans = context.event_scope(event).into_iter().flatten();
        let around = spans.filter_map(|span| span.extensions().get::<LogFields>().cloned());
        self.output.take(LogLine::of(event, around));
    }
}
