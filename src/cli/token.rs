//! `loopctl token`.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;
use crate::language::serving::TokenScope;
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
    /// A permission of the token; repeatable. run: start the loops of the folder, and cancel runs. compose: start agent
    /// requests. read: read runs, loops and diagnostics. decide: answer questions; approve, deny and edit tool calls.
    /// decide:LOOP: the same for the runs of one loop. decide:escalated: decide about escalated approvals
    #[arg(long, value_name = "SCOPE", value_parser = scope, default_values = ["run", "read", "decide"])]
    pub scope: Vec<TokenScope>,
    /// The organisation of the token's holder
    #[arg(long, value_name = "NAME", value_parser = org)]
    pub org: Option<String>,
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

fn scope(text: &str) -> Result<TokenScope, String> {
    match TokenScope::read(text) {
        TokenScope::Unknown(_) => Err("run, compose, read, decide, decide:LOOP or decide:escalated".to_owned()),
        scope => Ok(scope),
    }
}

fn org(text: &str) -> Result<String, String> {
    if authorizer::is_org(text) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, `_`, `-` and `.`, at most 64".to_owned())
    }
}
