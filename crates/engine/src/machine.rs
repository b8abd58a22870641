//! Machines: what folds the events of a run. The first event of a run names its machine, so that a store can contain
//! runs of other machines, and a version that lacks one reports that.

use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct as _};

use super::event::{Event, EventKind, Moment};
use loopctl_lang::policy::json_text;

/// The machine that folds the events of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// The loop. A journal that names no machine belongs to a loop.
    #[default]
    Loop,
    /// The workflow, and the loop of mode `foreach`.
    Flow,
}

/// Why the text of an event can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The machine of the run is unknown to this version.
    #[error(
        "the run needs the machine {0:?}, which this version of loopctl does not have: use the version that began \
         the run, or a later one"
    )]
    Machine(String),
    /// It is no event.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// The serialized form of an event.
#[derive(Deserialize)]
pub(super) struct WrittenEvent {
    #[serde(default)]
    machine: Machine,
    at: Moment,
    #[serde(rename = "what")]
    kind: EventKind,
}

impl From<WrittenEvent> for Event {
    fn from(written: WrittenEvent) -> Self {
        let WrittenEvent { machine, at, mut kind } = written;
        if let EventKind::Started(started) = &mut kind {
            started.machine = machine;
        }
        Self { at, kind }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let machine = match &self.kind {
            EventKind::Started(started) => Some(started.machine),
            _ => None,
        };
        let mut fields = serializer.serialize_struct("Event", if machine.is_some() { 3 } else { 2 })?;
        if let Some(machine) = machine {
            fields.serialize_field("machine", &machine)?;
        }
        fields.serialize_field("at", &self.at)?;
        fields.serialize_field("what", &self.kind)?;
        fields.end()
    }
}

impl Event {
    /// Reads an event of a journal.
    ///
    /// # Errors
    /// When it is no event, or the first one of a run of another machine.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        json_text::read(text).map_err(|error| machine_of(text).map_or(Unreadable::Json(error), Unreadable::Machine))
    }
}

/// The machine that an event names, if this version lacks it.
fn machine_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct NamesMachine {
        machine: String,
    }
    let NamesMachine { machine } = json_text::read(text).ok()?;
    let known = Machine::deserialize(StrDeserializer::<serde::de::value::Error>::new(&machine)).is_ok();
    (!known).then_some(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, started};

    #[test]
    fn only_the_first_event_names_its_machine() {
        let written = |kind| serde_json::to_string(&at(0, kind)).unwrap();
        assert!(written(started()).starts_with(r#"{"machine":"loop","at":"#));
        assert!(!written(EventKind::Resumed).contains("machine"));
    }

    #[test]
    fn a_journal_without_a_machine_is_one_of_a_loop() {
        let text = serde_json::to_string(&at(0, started())).unwrap();
        let before = text.replacen(r#""machine":"loop","#, "", 1);
        assert_ne!(text, before);
        assert_eq!(format!("{:?}", Event::read(&before).unwrap()), format!("{:?}", Event::read(&text).unwrap()));
    }

    #[test]
    fn a_run_of_an_unknown_machine_is_refused_in_a_sentence_that_says_what_to_do() {
        let text = r#"{"machine":"graph","at":{"wall_ms":0,"active_ms":0},"what":{"graph_started":{}}}"#;
        assert_eq!(
            Event::read(text).unwrap_err().to_string(),
            "the run needs the machine \"graph\", which this version of loopctl does not have: use the version that \
             began the run, or a later one"
        );
        assert!(matches!(Event::read("{}"), Err(Unreadable::Json(_))));
        assert!(matches!(Event::read(r#"{"machine":"loop"}"#), Err(Unreadable::Json(_))));
    }
}
