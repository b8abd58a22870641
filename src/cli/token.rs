//! `loopctl token`.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;
use crate::serve::authorizer;

/// Create a bearer token for `loopctl serve`
///
/// Prints the token on stdout and stores it nowhere. Prints the entry for `serve.tokens` of the project
/// file on stderr. The entry contains a hash of the token, not the token itself.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl token ci --org acme --scope run --scope read > ci.token")]
pub struct TokenCommand {
    /// The name of the token
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: String,
    /// A permission of the token; repeatable
    #[arg(long, value_enum, value_name = "SCOPE", default_values = ["run", "read", "decide"])]
    pub scope: Vec<May>,
    /// The organisation of the token's holder
    #[arg(long, value_name = "NAME", value_parser = org)]
    pub org: Option<String>,
}

/// A permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum May {
    /// Start the loops of the folder, and cancel runs
    Run,
    /// Start agent requests, and cancel runs
    Compose,
    /// Read runs, loops and diagnostics
    Read,
    /// Answer questions; approve, deny and edit tool calls
    Decide,
}

impl TokenCommand {
    /// Makes the token.
    ///
    /// # Errors
    /// When the system gives no random numbers, or stdout can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let token = authorizer::new_token().map_err(CommandError::usage)?;
        let mut entry = json!({ "name": self.name, "hash": authorizer::hash_text(&token), "scopes": self.scope });
        if let (Some(entry), Some(org)) = (entry.as_object_mut(), &self.org) {
            entry.insert("org".to_owned(), json!(org));
        }
        surface.say(&format!("for `serve.tokens` in loopctl.json:\n{entry}\n"));
        surface.print(&format!("{token}\n"))?;
        Ok(Exit::Completed)
    }
}

fn org(text: &str) -> Result<String, String> {
    if authorizer::is_org(text) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, `_`, `-` and `.`, at most 64".to_owned())
    }
}
