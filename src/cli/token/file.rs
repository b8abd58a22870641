//! The tokens of a project file.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::failure::CommandError;
use crate::diagnostic::Source;
use crate::language::serving::Token;
use crate::project::{self, ProjectFile};

/// How many digits of a hash are shown: enough to tell tokens apart, and of no use without the others.
const SHOWN_DIGITS: usize = 8;

/// Which project file.
#[derive(Debug, Args)]
pub struct TokenFolder {
    /// The served folder: the project file is there, or above it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
}

/// The project file, and its tokens.
pub struct TokenFile {
    /// Its path.
    pub path: PathBuf,
    /// Its text.
    pub source: Source,
    /// The tokens of `serve.tokens`.
    pub tokens: Vec<Token>,
}

impl TokenFolder {
    /// Reads the tokens.
    ///
    /// # Errors
    /// When there is no project file, or it can't be read.
    pub fn read(&self) -> Result<TokenFile, CommandError> {
        let file = ProjectFile::find(&self.folder).ok_or_else(|| missing(&self.folder))?;
        let source = file.read().map_err(|fault| CommandError::text(Source::new("", ""), vec![*fault]))?;
        let settings = project::settings(&source);
        let tokens = settings.map_err(|why| CommandError::usage_help(why, "`loopctl check` says where"))?.serve.tokens;
        Ok(TokenFile { path: file.path, source, tokens })
    }
}

fn missing(folder: &Path) -> CommandError {
    let message = format!("there is no project file loopctl.json in {} or above it", folder.display());
    CommandError::usage_help(message, "--folder names the folder that is served")
}

/// The beginning of a token's hash.
pub fn short_hash(token: &Token) -> String {
    let digits = token.hash.strip_prefix("sha256:").unwrap_or(&token.hash);
    digits.chars().take(SHOWN_DIGITS).collect()
}
