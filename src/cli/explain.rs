//! `loopctl explain`.

mod page;
#[cfg(test)]
mod tests;

use clap::Args;

use super::exit::Exit;
use super::failure::Failure;
use super::surface::Surface;
use crate::check::{RULES, Rule};
use crate::diagnostic::codes::TABLE;
use crate::diagnostic::{Severity, nearest, nearest_field};
use crate::trace::{Look, Tone};

/// Explain a code of `check`: what it means, why it matters, and what to write instead
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl explain L012
  loopctl explain              # all codes")]
pub struct Explain {
    /// A code like L012, or the name of a rule. Default: list all codes
    pub code: Option<String>,
}

impl Explain {
    /// Prints a page, or the list.
    ///
    /// # Errors
    /// When there is no such code.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, Failure> {
        let Some(word) = &self.code else {
            surface.print(&list(RULES, &surface.out))?;
            return Ok(Exit::Completed);
        };
        let page = page_of(word, RULES).ok_or_else(|| unknown(word, RULES))?;
        let shown = if surface.out_terminal { page::page(&page, &surface.out) } else { page };
        surface.print(&shown)?;
        Ok(Exit::Completed)
    }
}

/// The page of a code or of a rule's name, however its letters are written; the title alone, when no rule
/// has more to say.
fn page_of(word: &str, rules: &[Rule]) -> Option<String> {
    let same = |known: &str| known.eq_ignore_ascii_case(word.trim());
    if let Some(rule) = rules.iter().find(|rule| same(rule.code) || same(rule.name)) {
        return Some(format!("{}\n", rule.page.trim_end()));
    }
    let (code, title) = TABLE.iter().find(|(code, _)| same(code))?;
    Some(format!("# {code}: {title}\n"))
}

/// Every code with its title.
fn list(rules: &[Rule], look: &Look) -> String {
    let mut shown = String::new();
    for (code, title) in TABLE {
        let tone = match rules.iter().find(|rule| rule.code == *code).map(|rule| rule.severity) {
            Some(Severity::Warning) => Tone::Warn,
            _ => Tone::Bad,
        };
        shown.push_str(&format!("{}  {title}\n", look.paint(tone, code)));
    }
    shown
}

fn unknown(word: &str, rules: &[Rule]) -> Failure {
    let near = near(word, rules);
    let help = if near.is_empty() { String::new() } else { format!("the nearest: {}; ", near.join(", ")) };
    let word: String = word.chars().take(64).collect();
    Failure::usage_help(format!("there is no code {word}"), format!("{help}`loopctl explain` lists all codes"))
}

/// The codes that a wrong one may have been: the nearest numbers, or the rule of a name like it.
fn near(word: &str, rules: &[Rule]) -> Vec<&'static str> {
    // Letters that look like digits were meant as digits.
    let digits = |code: &str| code.replace(['O', 'o'], "0").replace(['I', 'i'], "1");
    let number = |code: &str| digits(code.strip_prefix(['L', 'l']).unwrap_or(code)).parse::<u32>().ok();
    if let Some(wanted) = number(word.trim()) {
        let mut codes: Vec<(u32, &str)> =
            TABLE.iter().filter_map(|(code, _)| Some((number(code)?.abs_diff(wanted), *code))).collect();
        codes.sort_unstable();
        return codes.into_iter().take(3).map(|(_, code)| code).collect();
    }
    let name = word.to_lowercase();
    let of_name = |name: &str| rules.iter().find(|rule| rule.name == name).map(|rule| rule.name);
    if let Some(near) = nearest_field(&name, rules.iter().map(|rule| rule.name)).and_then(of_name) {
        return vec![near];
    }
    let upper = word.to_uppercase();
    nearest(&upper, TABLE.iter().map(|(code, _)| *code)).into_iter().collect::<Vec<_>>()
}
