//! `loopctl explain`.

mod page;
#[cfg(test)]
mod tests;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;
use crate::diagnostic::codes::{Code, TABLE};
use crate::diagnostic::{Severity, nearest, nearest_field};
use crate::trace::{Look, Tone};

/// Explain a code of `check`: what it means, why it matters, and what to write instead
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl explain L012
  loopctl explain              # all codes")]
pub struct ExplainCommand {
    /// A code like L012, or the name of a rule. Default: list all codes
    pub code: Option<String>,
}

impl ExplainCommand {
    /// Prints a page, or the list.
    ///
    /// # Errors
    /// When there is no such code.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let Some(word) = &self.code else {
            surface.print(&list(&surface.out))?;
            return Ok(Exit::Completed);
        };
        let page = page_of(word).ok_or_else(|| unknown(word))?;
        let shown = if surface.out_terminal { page::page(&page, &surface.out) } else { page };
        surface.print(&shown)?;
        Ok(Exit::Completed)
    }
}

/// The page of a code or a name, ignoring case.
fn page_of(word: &str) -> Option<String> {
    let same = |known: &str| known.eq_ignore_ascii_case(word.trim());
    let row = TABLE.iter().find(|row| same(row.code) || same(row.name))?;
    Some(format!("{}\n", row.page.trim_end()))
}

/// Every code with its title.
fn list(look: &Look) -> String {
    let tone = |row: &Code| match row.severity {
        Severity::Warning => Tone::Warn,
        Severity::Error => Tone::Bad,
    };
    TABLE.iter().map(|row| format!("{}  {}\n", look.paint(tone(row), row.code), row.title)).collect()
}

fn unknown(word: &str) -> CommandError {
    let near = near(word);
    let help = if near.is_empty() { String::new() } else { format!("the nearest: {}; ", near.join(", ")) };
    let word: String = word.chars().take(64).collect();
    CommandError::usage_help(format!("there is no code {word}"), format!("{help}`loopctl explain` lists all codes"))
}

/// The codes that a wrong one may have meant: the nearest numbers, or the nearest name.
fn near(word: &str) -> Vec<&'static str> {
    // Letters that look like digits count as digits.
    let digits = |code: &str| code.replace(['O', 'o'], "0").replace(['I', 'i'], "1");
    let number = |code: &str| digits(code.strip_prefix(['L', 'l']).unwrap_or(code)).parse::<u32>().ok();
    if let Some(wanted) = number(word.trim()) {
        let mut codes: Vec<(u32, &str)> =
            TABLE.iter().filter_map(|row| Some((number(row.code)?.abs_diff(wanted), row.code))).collect();
        codes.sort_unstable();
        return codes.into_iter().take(3).map(|(_, code)| code).collect();
    }
    let name = word.to_lowercase();
    let of_name = |name: &str| TABLE.iter().find(|row| row.name == name).map(|row| row.name);
    if let Some(near) = nearest_field(&name, TABLE.iter().map(|row| row.name)).and_then(of_name) {
        return vec![near];
    }
    let upper = word.to_uppercase();
    nearest(&upper, TABLE.iter().map(|row| row.code)).into_iter().collect()
}
