//! `loopctl token`.

mod file;
mod list;
mod revoke;

use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::Exit;
use super::failure::CommandError;
use super::run_filter::age_ms;
use super::surface::Surface;
use crate::drive::clock;
use crate::language::serving::{ALL_ORGS, TokenScope};
use crate::serve::authorizer;
use crate::trace::units::rfc3339;

/// The longest life of a token with an end, in milliseconds: 100 years.
const MAX_LIFE_MS: i64 = 36_500 * 24 * 60 * 60 * 1_000;

/// Create a bearer token for `loopctl serve`
///
/// Prints the token on stdout and stores it nowhere. Prints the entry for `serve.tokens` of the project
/// file on stderr. The entry contains a hash of the token, not the token itself.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl token ci --org acme --scope run --scope read > ci.token
  loopctl token ci --org acme --scope run:triage --expires-in 90d > ci.token
  loopctl token list
  loopctl token revoke ci --hash 3f2a")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TokenCommand {
    #[command(subcommand)]
    pub task: Option<TokenTask>,
    /// The name of the token. Two tokens of one name are valid at once: the new one and the one that it replaces
    #[arg(required = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// A permission of the token; repeatable. run: start the loops of the folder, and cancel runs. run:LOOP: the same for one
    /// loop. compose: start agent requests. read: read runs, loops and diagnostics. metrics: read /metrics and /workers. cancel: cancel
    /// runs. decide: answer questions; approve, deny and edit tool calls. decide:LOOP: the same for the runs of one loop. decide:escalated: decide
    /// about escalated approvals. admin: read and cancel the runs of all organisations
    #[arg(long, value_name = "SCOPE", value_parser = scope, default_values = ["run", "read", "decide"])]
    pub scope: Vec<TokenScope>,
    /// The organisation of the token's holder; `*` is all organisations
    #[arg(long, value_name = "NAME", value_parser = org)]
    pub org: Option<String>,
    /// After how much time the token is refused: a number and d, h, min or s. Default: never
    #[arg(long, value_name = "TIME", value_parser = life_ms)]
    pub expires_in: Option<i64>,
}

/// What else can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenTask {
    List(list::ListTask),
    Revoke(revoke::RevokeTask),
}

impl TokenCommand {
    /// Makes the token, or does the task.
    ///
    /// # Errors
    /// When the system gives no random numbers, stdout can't be written, or the project file can't be read or changed.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        match &self.task {
            Some(TokenTask::List(list)) => return list.perform(surface),
            Some(TokenTask::Revoke(revoke)) => return revoke.perform(surface),
            None => {}
        }
        let of_one_org = self.org.as_deref().is_some_and(|org| org != ALL_ORGS);
        if let Some(scope) = self.scope.iter().find(|scope| scope.is_for_all_orgs()).filter(|_| of_one_org) {
            let scope = scope.name();
            return Err(CommandError::usage(format!("the scope {scope} is for all organisations: leave out --org")));
        }
        let token = authorizer::new_token().map_err(CommandError::usage)?;
        let mut entry = json!({ "name": self.name, "hash": authorizer::hash_text(&token), "scopes": self.scope });
        if let (Some(entry), Some(org)) = (entry.as_object_mut(), &self.org) {
            entry.insert("org".to_owned(), json!(org));
        }
        if let (Some(entry), Some(time_ms)) = (entry.as_object_mut(), self.expires_in) {
            let at = rfc3339(clock::wall_ms().saturating_add(time_ms));
            entry.insert("expires_at".to_owned(), json!(at));
        }
        surface.say(&format!("for `serve.tokens` in loopctl.json:\n{entry}\n"));
        surface.print(&format!("{token}\n"))?;
        Ok(Exit::Completed)
    }
}

/// How long a token is valid, in milliseconds.
fn life_ms(text: &str) -> Result<i64, String> {
    match age_ms(text)? {
        0 => Err("such a token would be refused at once: give it more than 0".to_owned()),
        life_ms if life_ms > MAX_LIFE_MS => {
            Err("at most 36500d, a hundred years; without --expires-in, a token does not expire".to_owned())
        }
        life_ms => Ok(life_ms),
    }
}

fn scope(text: &str) -> Result<TokenScope, String> {
    match TokenScope::read(text) {
        TokenScope::Unknown(_) => Err(format!("one of {}", TokenScope::LIST.replace('`', ""))),
        scope => Ok(scope),
    }
}

fn org(text: &str) -> Result<String, String> {
    if authorizer::is_org(text) || text == ALL_ORGS {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, `_`, `-` and `.`, at most 64, or `*` for all organisations".to_owned())
    }
}
