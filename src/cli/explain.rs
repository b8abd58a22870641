//! `loopctl explain`.

mod page;
mod run;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::ListOutput;
use super::recorded_run::RecordedRun;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::diagnostic::codes::{Code, TABLE};
use crate::diagnostic::{Severity, nearest, nearest_field};
use crate::trace::{Look, Tone};

/// Explain a code of `check`, or why a run ended as it did
///
/// Of a code: what it means, why it matters, and what to write instead. Of a run: why it ended so, what shows it, and which
/// word of its document would change it; that is tried by replay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl explain L012
  loopctl explain              # all codes
  loopctl explain last         # why the last run ended so")]
pub struct ExplainCommand {
    /// A code like L012 or the name of a rule, or else a run: its id, the beginning of its id, `last` or `last:LOOP`.
    /// Default: list all codes
    pub code: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// The output format of what is said of a run
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

impl ExplainCommand {
    /// Prints a page, the list, or what is to be said of a run.
    ///
    /// # Errors
    /// When there is no such code, and no such run.
    pub async fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let Some(word) = &self.code else {
            surface.print(&list(&surface.out))?;
            return Ok(Exit::Completed);
        };
        if let Some(page) = page_of(word) {
            let shown = if surface.out_terminal { page::page(&page, &surface.out) } else { page };
            surface.print(&shown)?;
            return Ok(Exit::Completed);
        }
        let names_store = self.store.store.is_some() || self.store.document.is_some();
        if !names_store && (is_like_code(word) || !self.store.place()?.exists()) {
            return Err(unknown(word));
        }
        let (journal, place) = self.store.open()?;
        match RecordedRun::named(word, &journal, &place).await {
            Ok(run) => run::perform(run, &place, self.output, surface).await,
            // Perhaps a name of a rule was meant.
            Err(CommandError::Usage { .. }) if !names_store && !near(word).is_empty() => Err(unknown(word)),
            Err(error) => Err(error),
        }
    }
}

/// Whether a word can only be meant as a code: `L`, and digits or letters that look like them.
fn is_like_code(word: &str) -> bool {
    let digits = word.trim().strip_prefix(['L', 'l']).unwrap_or_default();
    !digits.is_empty() && digits.chars().all(|sign| sign.is_ascii_digit() || matches!(sign, 'O' | 'o' | 'I' | 'i'))
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# L012: A word that is none of those that are known\n\nA `mode` is one of some words, and this text is long enough to be wrapped.\n\n## Example\n\n```json\n{\"mode\": \"reakt\"}\n```\n\n- one entry of a list\n| a | b |\n";

    #[test]
    fn a_page_is_found_by_its_code_and_its_name_in_any_case() {
        assert!(page_of("L012").unwrap().starts_with("# L012: Value not in the list of allowed values\n"));
        for word in ["l012", " L012 ", "wrong-word", "Wrong-Word"] {
            assert_eq!(page_of(word), page_of("L012"), "{word}");
        }
        assert_eq!(page_of("L999"), None);
    }

    #[test]
    fn a_code_that_there_is_not_brings_the_nearest() {
        assert_eq!(near("L0999").len(), 3);
        assert_eq!(near("l12").first(), Some(&"L012"));
        assert_eq!(near("12").first(), Some(&"L012"));
        assert_eq!(near("wrong-wrd"), ["wrong-word"]);
        assert_eq!(near("LOI2").first(), Some(&"L012"));
        assert!(near("nothing like it").is_empty());
        assert!(near("L99999999999999999999").len() <= 3);
    }

    #[test]
    fn the_list_has_every_code_with_its_title() {
        let list = list(&Look::plain(80));
        assert_eq!(list.lines().count(), TABLE.len());
        assert!(list.contains("L012  Value not in the list of allowed values\n"), "{list}");
    }

    #[test]
    fn a_page_is_laid_out_for_a_terminal() {
        insta::assert_snapshot!(page::page(PAGE, &Look::plain(40)), @r#"
    L012: A word that is none of those that are known

    A `mode` is one of some words, and this
    text is long enough to be wrapped.

    Example

        {"mode": "reakt"}

    - one entry of a list
    | a | b |
    "#);
        let coloured = page::page("`a` b `c\u{1b}[2J`\n", &Look { colour: true, width: 40 });
        assert!(!coloured.contains('`') && !coloured.contains("\u{1b}[2J"), "{coloured:?}");
    }
}
