//! `loopctl token list`.

use clap::Args;
use serde::Serialize;

use super::file::{TokenFolder, short_hash};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::surface::Surface;
use crate::drive::clock;
use crate::language::serving::{Token, TokenScope};
use crate::trace::layout::pad;
use crate::trace::units::rfc3339;
use crate::trace::{Tone, escape};

/// List the tokens of the project file: their names, organisations, scopes and ends
///
/// Shows the beginning of each hash only. A token that was lost can't be shown: the file does not have it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl token list
  loopctl token list --folder loops --output json | jq -r '.[].name'")]
pub struct ListTask {
    #[command(flatten)]
    folder: TokenFolder,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    output: ListOutput,
}

/// A token as it is listed.
#[derive(Debug, Serialize)]
struct TokenRow {
    name: String,
    org: Option<String>,
    scopes: Vec<TokenScope>,
    expires_at: Option<String>,
    /// Whether the server refuses it.
    expired: bool,
    /// The beginning of its hash.
    hash: String,
}

impl TokenRow {
    fn of(token: &Token, now_ms: i64) -> Self {
        let end_ms = token.expires_at_ms().ok().flatten();
        Self {
            name: token.name.clone(),
            org: token.org.clone(),
            scopes: token.scopes.clone(),
            expires_at: end_ms.map(rfc3339).or_else(|| token.expires_at.clone()),
            expired: end_ms.is_some_and(|end_ms| end_ms <= now_ms),
            hash: short_hash(token),
        }
    }

    fn cells(&self) -> [String; 5] {
        let scopes: Vec<String> = self.scopes.iter().map(TokenScope::name).collect();
        let end = match (&self.expires_at, self.expired) {
            (None, _) => "-".to_owned(),
            (Some(at), false) => at.clone(),
            (Some(at), true) => format!("{at} (expired)"),
        };
        let org = self.org.clone().unwrap_or_else(|| "-".to_owned());
        [self.name.clone(), org, scopes.join(" "), end, self.hash.clone()].map(|cell| escape::line(&cell).into_owned())
    }
}

impl ListTask {
    /// Lists the tokens.
    ///
    /// # Errors
    /// When there is no project file, or it can't be read.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let file = self.folder.read()?;
        let now_ms = clock::wall_ms();
        let rows: Vec<TokenRow> = file.tokens.iter().map(|token| TokenRow::of(token, now_ms)).collect();
        match self.output {
            ListOutput::Json => surface.print(&json_line(&rows)?)?,
            ListOutput::Human if rows.is_empty() => {
                let name = file.path.display().to_string();
                surface.say(&format!("{} has no tokens: `loopctl token NAME` makes one\n", escape::line(&name)));
            }
            ListOutput::Human => surface.print(&table(&rows, surface))?,
        }
        Ok(Exit::Completed)
    }
}

fn table(rows: &[TokenRow], surface: &Surface) -> String {
    const HEAD: [&str; 5] = ["TOKEN", "ORG", "SCOPES", "EXPIRES", "HASH"];
    let rows: Vec<[String; 5]> = rows.iter().map(TokenRow::cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(HEAD.get(column).map(|head| head.len())).max().unwrap_or(0)
    };
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().enumerate().map(|(at, cell)| pad(cell, width(at))).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let head = surface.out.paint(Tone::Dim, line(&HEAD.map(str::to_owned)).trim_end()) + "\n";
    rows.iter().fold(head, |shown, row| shown + &line(row))
}
