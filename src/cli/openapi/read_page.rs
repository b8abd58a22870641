//! Reads a page, and the files of its folder that its references name.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::failure::CommandError;
use crate::compile::openapi::PageFiles;
use crate::policy::json_text;
use crate::project::guarded_read;

/// The most bytes of a file, and of all files of a page: 32 and 64 MiB.
const MAX_FILE_BYTES: usize = 32 << 20;
const MAX_BYTES: usize = 64 << 20;
/// The most files of a page.
const MAX_FILES: usize = 500;

/// The most parts of a page in YAML, and how deep it may be.
#[cfg(feature = "openapi-yaml")]
const MAX_YAML_EVENTS: usize = 8_000_000;
#[cfg(feature = "openapi-yaml")]
const MAX_YAML_DEPTH: usize = 127;

/// Reads a page. Files that its references name and that can't be read are left out: what needs them says so.
///
/// # Errors
/// When the page itself can't be read, or there is too much of it.
pub fn read(path: &Path) -> Result<PageFiles, CommandError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let written = path.to_string_lossy();
    if ["https://", "http://"].iter().any(|begin| written.starts_with(begin)) {
        return Err(CommandError::usage_help(
            format!("{written} is an address, and a page is a file"),
            format!("download it first: curl -fsSLo {} '{written}'", if name.is_empty() { "page.json" } else { &name }),
        ));
    }
    let (value, mut total) = value_of(path).map_err(|why| CommandError::usage(format!("{}: {why}", path.display())))?;
    let mut files = PageFiles::new(&name, value);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(folder) = folder.canonicalize() else { return Ok(files) };
    let mut count = 1_usize;
    loop {
        let missing = files.missing();
        if missing.is_empty() {
            return Ok(files);
        }
        for name in missing {
            count = count.saturating_add(1);
            if count > MAX_FILES {
                return Err(CommandError::usage(format!("{}: it has more than {MAX_FILES} files", path.display())));
            }
            let read = inside(&folder, &name).and_then(|file| value_of(&file).ok());
            let (value, bytes) = read.unwrap_or((Value::Null, 0));
            total = total.saturating_add(bytes);
            if total > MAX_BYTES {
                let most = MAX_BYTES >> 20;
                return Err(CommandError::usage(format!("{}: its files have more than {most} MiB", path.display())));
            }
            files.add(name, value);
        }
    }
}

/// A file of a folder; none where a link leads out of it.
fn inside(folder: &Path, name: &str) -> Option<PathBuf> {
    let real = folder.join(name).canonicalize().ok()?;
    real.starts_with(folder).then_some(real)
}

/// The value of a file, and how many bytes it has.
fn value_of(path: &Path) -> Result<(Value, usize), String> {
    let text = guarded_read::text(path, MAX_FILE_BYTES).map_err(|unread| unread.reason(MAX_FILE_BYTES))?;
    let plain = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    match json_text::read(plain) {
        Ok(value) => Ok((value, text.len())),
        Err(error) if plain.trim_start().starts_with(['{', '[']) => Err(format!("it is no JSON: {error}")),
        Err(_) => yaml(plain).map(|value| (value, text.len())),
    }
}

/// A page in YAML. The readings of YAML 1.1 (`no` for false) are not taken.
#[cfg(feature = "openapi-yaml")]
fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: MAX_YAML_EVENTS,
            max_nodes: MAX_YAML_EVENTS,
            max_depth: MAX_YAML_DEPTH,
            max_documents: 1,
        },
    };
    let read: Result<Value, _> = serde_saphyr::from_str_with_options(text, options);
    read.map_err(|error| format!("it is neither JSON nor YAML: {error}"))
}

#[cfg(not(feature = "openapi-yaml"))]
fn yaml(_: &str) -> Result<Value, String> {
    Err("it is no JSON. A page in YAML is made JSON first: `yq -o json . page.yaml > page.json`; or loopctl is built with \
         `--features openapi-yaml`"
        .to_owned())
}
