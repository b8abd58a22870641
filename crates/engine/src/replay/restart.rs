//! The start of an old run under another document: its input, its model and its moment, with the texts of the new program.

use crate::blob::Blob;
use crate::event::{Event, EventKind, InputList, RunDocument, Started, documents_sha256};
use crate::prompt::{self, Facts};
use crate::timestamp::rfc3339;
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::{Program, bind};

/// The first event of a run, if the run had started with this program.
///
/// # Errors
/// Why it could not have started, in a sentence.
pub fn restarted(program: &Program, first: &Event) -> Result<Event, String> {
    let EventKind::Started(old) = &first.kind else {
        return Err("the journal does not begin with the start of the run".to_owned());
    };
    let now = rfc3339(first.at.wall_ms);
    let sentence = |faults: Vec<loopctl_lang::diagnostic::Diagnostic>| {
        faults.first().map_or_else(|| "the input does not fit".to_owned(), |fault| fault.message.clone())
    };
    let bound = bind(program, old.run_input(), &now, &old.run_id).map_err(sentence)?;
    let today = now.get(..10).unwrap_or_default();
    let facts = Facts {
        objective: &bound.objective,
        input: &bound.input.value,
        today,
        now: &now,
        run_id: &old.run_id,
        json: JsonRule::PRESENT.into(),
    };
    let system = match program {
        Program::Flow(_) => String::new(),
        Program::Loop(of_loop) => prompt::system(of_loop, &facts).map_err(|missing| missing.why)?,
    };
    let documents = program.sources.iter();
    let documents: Vec<RunDocument> = documents
        .map(|source| RunDocument { file: source.name.to_string(), text: Blob::document(source.text.to_string()) })
        .collect();
    let sha256 = Some(documents_sha256(&documents).to_string());
    let started = Started {
        loop_name: program.name.clone(),
        objective: bound.objective,
        system: Blob::new(system),
        order: program.order(),
        documents,
        documents_sha256: sha256,
        input: bound.input.value,
        lists: InputList::of(bound.input.lists),
        ..Started::clone(old)
    };
    Ok(Event { at: first.at, kind: EventKind::Started(Box::new(started)) })
}
