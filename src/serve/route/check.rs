//! `POST /check`: the diagnostics of a document, as `loopctl check --format json` prints them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::compile::{Declared, Texts, alone};
use crate::diagnostic::{Diagnostic, Source};
use crate::project::load;
use crate::serve::app::App;
use crate::serve::folder::REQUEST;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::json;
use crate::syntax::document;
use crate::syntax::document::DocumentKind;

/// Checks a document together with the actions of the folder. Nothing is run.
pub async fn check(State(app): State<Arc<App>>, body: Bytes) -> Result<Response, ProblemDetails> {
    let text = String::from_utf8(body.to_vec()).map_err(|_| ProblemDetails::bad_request("the body is no UTF-8"))?;
    let app_of_job = Arc::clone(&app);
    let found = app.compiler.run_in_time(move || judged(&app_of_job, &text)).await?;
    let mut found = found?;
    found.iter_mut().for_each(|fault| app.hidden_paths.fault(fault));
    Ok(json(StatusCode::OK, &found))
}

fn judged(app: &App, text: &str) -> Result<Vec<Diagnostic>, ProblemDetails> {
    let read = document::read(&Source::new(REQUEST, text));
    // A project file has no other one above it.
    let texts = if read.kind == Some(DocumentKind::Project) {
        Texts::new(Source::new(REQUEST, text))
    } else {
        app.folder().texts(text).map_err(ProblemDetails::diagnosed)?
    };
    let mut found = alone(&read, &Declared::default());
    found.extend(load::examine(&texts, read).diagnostics);
    Ok(found)
}
