//! `GET /agents/{id}/document`: the documents of a run that the folder has changed since, beside their present texts: what
//! somebody looks at who decides with which of them a run continues.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::drive::fold;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, json};
use crate::serve::run_store::ProgramOfRun;
use crate::trace::Redaction;

/// The most bytes of the texts of an answer: no document is longer, and few runs have several that changed.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// How the documents of a run differ from those of the folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DocumentDifference {
    /// Whether the loop of the run is another one now: then a decision about the run must say which text counts.
    pub changed: bool,
    /// Whether the folder has no such loop any more, or the run brought its own document.
    pub gone: bool,
    /// The documents that differ, in the order in which the run has them.
    pub files: Vec<DocumentTexts>,
    /// The documents that differ and are left out: because the texts before them are too long, or because they are files beside
    /// the loop's own and the token is of one organisation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A document of a run, and the same one in the folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DocumentTexts {
    /// The file.
    pub file: String,
    /// Its text in the run; none where the run has no such document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// Its text in the folder; none where the loop does not use it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<String>,
}

/// The difference, for those who may decide about the run or start its loop.
pub async fn document(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
) -> Result<Response, ProblemDetails> {
    let summary = app.runs.find(&caller, &run_id).await?;
    caller.rights(&summary.loop_name).map(drop).or_else(|_| caller.may_run(&summary.loop_name))?;
    let events = app.runs.events(&run_id).await?;
    let ProgramOfRun { program, .. } = app.runs.program(&run_id, &events).await?;
    let recorded = fold::documents(&events).unwrap_or_default();
    let main = recorded.first().map(|document| document.file.as_str());
    let folder = app.folder();
    let mut offered = folder.loops.values();
    let offered = offered.find(|offered| offered.program.sources.first().map(|source| &*source.name) == main);
    let Some(offered) = offered else {
        let none = DocumentDifference { changed: false, gone: true, files: Vec::new(), left_out: Vec::new() };
        return Ok(json(StatusCode::OK, &none));
    };
    let redact = Redaction::new(&program.project.redact);
    let shown = |text: &str| app.hidden_paths.text(&redact.text(text));
    let present = &offered.program.sources;
    let mut texts: Vec<(&str, Option<&str>, Option<&str>)> = recorded
        .iter()
        .map(|document| {
            let now = present.iter().find(|source| *source.name == *document.file);
            (document.file.as_str(), Some(&**document.text.shared()), now.map(|source| &*source.text))
        })
        .collect();
    let is_new = |name: &str| !recorded.iter().any(|document| document.file == name);
    texts.extend(
        present.iter().filter(|source| is_new(&source.name)).map(|source| (&*source.name, None, Some(&*source.text))),
    );
    let (mut files, mut left_out, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
    for (file, recorded, present) in texts.into_iter().filter(|(_, recorded, present)| recorded != present) {
        bytes = [recorded, present].into_iter().flatten().fold(bytes, |bytes, text| bytes.saturating_add(text.len()));
        // What the folder's actions are is no matter of its customers.
        let is_own = main == Some(file) || caller.org.is_none();
        if bytes > MAX_TEXT_BYTES || !is_own {
            left_out.push(app.hidden_paths.text(file));
            continue;
        }
        let file = app.hidden_paths.text(file);
        files.push(DocumentTexts { file, recorded: recorded.map(shown), present: present.map(shown) });
    }
    let changed = fold::same_document(&offered.program, &events).is_err();
    Ok(json(StatusCode::OK, &DocumentDifference { changed, gone: false, files, left_out }))
}
