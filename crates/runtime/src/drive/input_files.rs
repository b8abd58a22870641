//! Takes the files out of the input of a loop, when a run of it starts. Their bytes are stored once, beside its events.

use std::sync::Arc;

use serde_json::{Value, json};

use super::fault::Fault;
use super::missing_requirement::Missing;
use super::model::ModelClient;
use super::texts::SharedTexts;
use loopctl_engine::digest::Sha256;
use loopctl_engine::event::{InputFile, InputFileContent, account_at};
use loopctl_lang::policy::media::MediaType;
use loopctl_lang::program::Program;
use loopctl_lang::program::bind::refused_input;
use loopctl_lang::program::input_file::{self, FileContent, InputFileFault, TakenFile};

/// Takes the files out of an input. `known`: those of the run whose input it is.
///
/// # Errors
/// What is no file where one should be.
pub(super) fn take(
    program: &Program,
    input: &mut Value,
    known: &[InputFile],
    texts: &SharedTexts,
) -> Result<Vec<InputFile>, Fault> {
    let places = program.file_places();
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let refused = |fault: InputFileFault| Fault::Diagnostics(refused_input(program, &fault.path, fault.message));
    let mut files = Vec::new();
    for taken in input_file::take(&places, input).map_err(refused)? {
        let place = taken.place.clone();
        let file = file(taken, known, texts).map_err(|message| {
            let name = place.split('[').next().unwrap_or(&place);
            refused(InputFileFault { path: format!("/{name}"), message })
        })?;
        if let (InputFileContent::Data { sha256, .. }, Some(account)) = (&file.content, account_at(input, &file.place))
        {
            account.insert("sha256".to_owned(), json!(sha256));
        }
        files.push(file);
    }
    Ok(files)
}

fn file(taken: TakenFile, known: &[InputFile], texts: &SharedTexts) -> Result<InputFile, String> {
    let TakenFile { place, name, kind, content } = taken;
    let content = match content {
        FileContent::Url(url) => InputFileContent::Url(url),
        FileContent::Bytes(bytes) => InputFileContent::Data {
            bytes: bytes.len(),
            sha256: Sha256::of_bytes(&bytes).to_string(),
            base64: texts.share(input_file::encoded(&bytes)),
        },
        FileContent::Known(digest) => {
            let is_it = |file: &&InputFile| {
                file.media_type == kind
                    && matches!(&file.content, InputFileContent::Data { sha256, .. } if *sha256 == digest)
            };
            let file = known.iter().find(is_it);
            let file = file.ok_or_else(|| format!("the file `{place}` has no content here: give it as `base64`"))?;
            file.content.clone()
        }
    };
    Ok(InputFile { place, name, media_type: kind, content })
}

/// Whether the input of a call that a model makes has files: a model has none to give, and an address of its choice would
/// carry what it read to anybody.
pub(super) fn given_by_model(program: &Program, input: &Value) -> Option<String> {
    let place =
        program.file_places().into_iter().find(|place| input.get(&place.name).is_some_and(|value| !value.is_null()))?;
    Some(place.name)
}

/// Whether all models of a run take its files.
///
/// # Errors
/// Which file a model does not take.
pub(super) fn taken_by(files: &[InputFile], models: &[Arc<ModelClient>]) -> Result<(), Fault> {
    let by_address =
        |file: &&InputFile| file.media_type == MediaType::Pdf && matches!(file.content, InputFileContent::Url(_));
    let Some(file) = files.iter().find(by_address) else { return Ok(()) };
    match models.iter().find(|model| !model.takes_pdf_by_address()) {
        Some(model) => Err(Fault::missing(
            Missing::Model { name: model.facts.name.clone() },
            format!(
                "model {} takes no PDF by its address (OpenAI's chat completions have no field for it): give `{}` as \
                 `base64`, or use a model of the provider `openai-responses`",
                model.facts.name, file.place
            ),
        )),
        None => Ok(()),
    }
}
