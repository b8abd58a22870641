//! Reads the files of the project that a workflow names as values, when a run starts. From then on they are in its journal.

use std::path::Path;

use super::fault::Fault;
use super::missing_requirement::Missing;
use super::texts::SharedTexts;
use crate::project::named_files;
use loopctl_engine::event::{Event, EventKind, ReadFile};
use loopctl_lang::program::Program;
use loopctl_lang::program::file_value::{self, MAX_TOTAL, MAX_WEIGHT};

/// The files that a run of this program reads.
///
/// # Errors
/// Which file can't be read, and why.
pub(super) fn read(root: &Path, program: &Program, texts: &SharedTexts) -> Result<Vec<ReadFile>, Fault> {
    let Some(flow) = program.as_flow() else { return Ok(Vec::new()) };
    let (mut read, mut total, mut weight) = (Vec::new(), 0_usize, 0_usize);
    for name in &flow.documents {
        let Some(named) = program.project.documents.get(name) else {
            return Err(Fault::missing(
                Missing::Document { name: name.clone() },
                format!("the project has no document `{name}`"),
            ));
        };
        let (file, form) = (named.path(), named.form());
        let missing = |why: String| {
            let why = format!("the document `{name}`, {file}, can't be read: {why}");
            Fault::missing(Missing::Document { name: name.clone() }, why)
        };
        let text = named_files::text(root, file).map_err(missing)?;
        let of_value = file_value::weight(file, &text, form.as_ref()).map_err(|fault| missing(fault.to_string()))?;
        weight = weight.saturating_add(of_value);
        if weight > MAX_WEIGHT {
            let most = MAX_WEIGHT >> 20;
            return Err(missing(format!("the values of a run's documents take at most {most} MiB of memory together")));
        }
        total = total.saturating_add(text.len());
        if total > MAX_TOTAL {
            return Err(missing(format!("the documents of a run have at most {} MiB together", MAX_TOTAL >> 20)));
        }
        read.push(ReadFile { name: name.clone(), file: file.to_owned(), form, text: texts.share(text) });
    }
    Ok(read)
}

/// The files that a run read at its start, as the project file writes their paths, and that are others now, or whose tables are read
/// otherwise. The run keeps what it read.
pub fn changed(root: &Path, program: &Program, events: &[Event]) -> Vec<String> {
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::Started(started) => Some(started),
        _ => None,
    });
    let read = started.into_iter().flat_map(|started| &started.read);
    let is_other = |read: &&ReadFile| {
        let named = program.project.documents.get(&read.name);
        let is_same = named.is_some_and(|named| named.path() == read.file && named.form() == read.form);
        !is_same || named_files::text(root, &read.file).ok().as_deref() != Some(&*read.text)
    };
    read.filter(is_other).map(|read| read.file.clone()).collect()
}
