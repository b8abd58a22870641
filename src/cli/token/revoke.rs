//! `loopctl token revoke`.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::Value;

use super::file::{TokenFile, TokenFolder, short_hash};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::surface::Surface;
use crate::diagnostic::Source;
use crate::language::serving::Token;
use crate::policy::json_text;
use crate::project;
use crate::syntax::{self, Node, Span};
use crate::trace::escape;
use crate::trace::units::plural;

/// The tokens in the project file.
const TOKENS: &str = "/serve/tokens";

/// Take a token out of the project file
///
/// Everything else in the file stays as it is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl token revoke ci
  loopctl token revoke ci --hash 3f2a    # one of two tokens of that name
  loopctl token revoke ci --all")]
pub struct RevokeTask {
    /// The name of the token
    name: String,
    /// The beginning of the token's hash, as `loopctl token list` shows it: where several tokens have the name
    #[arg(long, value_name = "DIGITS")]
    hash: Option<String>,
    /// All tokens of this name, even if none is left then
    #[arg(long, conflicts_with = "hash")]
    all: bool,
    #[command(flatten)]
    folder: TokenFolder,
}

impl RevokeTask {
    /// Takes the token out of the file.
    ///
    /// # Errors
    /// When there is no such token, several have the name, or the file can't be changed.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let file = self.folder.read()?;
        let gone = self.chosen(&file)?;
        if gone.len() == file.tokens.len() && !self.all {
            let message = format!(
                "`{}` is the last token: without tokens, a server lets everybody on its machine do everything, and listens \
                 on no other address",
                self.name
            );
            return Err(CommandError::usage_help(message, "add another token first, or take it out with --all"));
        }
        let unchangeable = || {
            let lines: Vec<String> = gone.iter().map(|at| line_of(&file, *at).to_string()).collect();
            let message = format!("{} can't be changed without changing more of it", file.path.display());
            CommandError::usage_help(message, format!("remove the entry at line {} yourself", lines.join(" and ")))
        };
        let after = without(&file.source.text, &gone).ok_or_else(unchangeable)?;
        let written = project::replace(&file.path, &file.source.text, &after);
        written.map_err(|fault| CommandError::text(file.source.clone(), vec![*fault]))?;
        let (count, left) = (gone.len(), file.tokens.len() - gone.len());
        let path = file.path.display().to_string();
        let it = if count == 1 { "it" } else { "them" };
        let said = format!(
            "took {} out of {path}; a server takes {it} until it reads the file again: SIGHUP, --watch or a restart",
            plural(count, "token")
        );
        surface.say(&(escape::line(&said).into_owned() + "\n"));
        if left == 0 {
            surface
                .say("no token is left: a server then lets everybody on its machine do everything, and nobody else\n");
        }
        Ok(Exit::Completed)
    }

    /// The places of the tokens that are meant.
    fn chosen(&self, file: &TokenFile) -> Result<BTreeSet<usize>, CommandError> {
        let digits = self.hash.as_deref().map(|hash| hash.strip_prefix("sha256:").unwrap_or(hash).to_ascii_lowercase());
        let has_digits = |token: &Token| {
            let hash = token.hash.to_ascii_lowercase();
            digits.as_deref().is_none_or(|digits| hash.strip_prefix("sha256:").is_some_and(|of| of.starts_with(digits)))
        };
        let is_meant = |token: &Token| token.name == self.name && has_digits(token);
        let found = file.tokens.iter().enumerate().filter(|(_, token)| is_meant(token));
        let found: Vec<(usize, &Token)> = found.collect();
        let help = "`loopctl token list` lists the tokens";
        match found.as_slice() {
            [] => {
                let which = if digits.is_some() { " with this hash" } else { "" };
                Err(CommandError::usage_help(format!("there is no token `{}`{which}", self.name), help))
            }
            [_, _, ..] if !self.all => {
                let hashes: Vec<String> = found.iter().map(|(_, token)| short_hash(token)).collect();
                let message = format!("{} tokens have the name `{}`: {}", found.len(), self.name, hashes.join(", "));
                Err(CommandError::usage_help(message, "--hash chooses one of them, and --all means all of them"))
            }
            found => Ok(found.iter().map(|(at, _)| *at).collect()),
        }
    }
}

/// The line of a token's entry, from 1.
fn line_of(file: &TokenFile, token: usize) -> u32 {
    let (tree, _) = syntax::parse(&file.source);
    tree.place(&format!("{TOKENS}/{token}")).line
}

/// The text without these tokens; none if anything else in it would change.
fn without(text: &str, gone: &BTreeSet<usize>) -> Option<String> {
    let (tree, _) = syntax::parse(&Source::new("", text));
    let list = tree.at(TOKENS)?;
    let after = without_items(text, list, gone)?;
    let mut meant: Value = json_text::read(text).ok()?;
    let mut at = 0;
    meant.pointer_mut(TOKENS)?.as_array_mut()?.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    (json_text::read::<Value>(&after).ok()? == meant).then_some(after)
}

/// The text without these items of an array, with the space and the commas of those that stay.
fn without_items(text: &str, array: &Node, gone: &BTreeSet<usize>) -> Option<String> {
    let items = array.items()?;
    let stays = |at: &usize| !gone.contains(at);
    let Some(first) = (0..items.len()).find(stays) else {
        let Span { start, end } = array.span;
        return Some([text.get(..start)?, "[]", text.get(end..)?].concat());
    };
    // What comes before the first one that stays is kept, and what comes after each: up to the next one, or to the end.
    let mut kept = text.get(..items.first()?.span.start)?.to_owned();
    let last = (0..items.len()).rfind(stays)?;
    for at in (first..=last).filter(stays) {
        let item = items.get(at)?.span;
        let end = if at == last { item.end } else { items.get(at + 1)?.span.start };
        kept.push_str(text.get(item.start..end)?);
    }
    kept.push_str(text.get(items.last()?.span.end..)?);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_stays_as_it_is_written() {
        let text = "{\"serve\": {\n  \"tokens\": [\n    {\"name\": \"a\"},\n    {\"name\" : \"b\"} ,\n    {\"name\": \"c\"}\n  ]\n}}\n";
        let left = |gone: &[usize]| without(text, &gone.iter().copied().collect()).unwrap();
        let lines = |lines: &str| format!("{{\"serve\": {{\n  \"tokens\": {lines}\n}}}}\n");
        assert_eq!(left(&[0]), lines("[\n    {\"name\" : \"b\"} ,\n    {\"name\": \"c\"}\n  ]"));
        assert_eq!(left(&[1]), lines("[\n    {\"name\": \"a\"},\n    {\"name\": \"c\"}\n  ]"));
        assert_eq!(left(&[2]), lines("[\n    {\"name\": \"a\"},\n    {\"name\" : \"b\"}\n  ]"));
        assert_eq!(left(&[0, 2]), lines("[\n    {\"name\" : \"b\"}\n  ]"));
        assert_eq!(left(&[1, 2]), lines("[\n    {\"name\": \"a\"}\n  ]"));
        assert_eq!(left(&[0, 1, 2]), lines("[]"));
    }

    #[test]
    fn a_file_with_two_meanings_is_left_as_it_is() {
        // One reader takes the first list, another one the last.
        let twice = r#"{"serve": {"tokens": [{"name": "a"}], "tokens": [{"name": "a"}, {"name": "b"}]}}"#;
        let after = without(twice, &BTreeSet::from([0]));
        let read: Option<Value> = after.as_deref().and_then(|text| serde_json::from_str(text).ok());
        assert!(read.is_none_or(|read| read["serve"]["tokens"] == serde_json::json!([{"name": "b"}])));
    }
}
