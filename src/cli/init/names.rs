//! The names that a user gives: what they may be.

use crate::diagnostic::shown;
use crate::syntax::looks_like;

/// The most characters of a noun.
const MAX_NOUN_CHARACTERS: usize = 40;
/// The most characters of the id of a model.
const MAX_MODEL_CHARACTERS: usize = 100;

/// Nouns that mean something else in the documents.
const TAKEN: [&str; 12] =
    ["input", "now", "item", "index", "found", "judged", "decision", "question", "orgconfig", "doc", "run", "error"];

/// Refuses a noun that can't be part of the names of an action, an input and a table.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub(super) fn judge_noun(noun: &str) -> Result<(), [String; 2]> {
    let fault = |why: &str, help: String| Err([format!("{:?} can't be looked up: {why}", shown(noun)), help]);
    let example = "write one word in small letters, like order or purchase_order".to_owned();
    if noun.is_empty() {
        return fault("it is empty", example);
    }
    if noun.chars().count() > MAX_NOUN_CHARACTERS {
        return fault(&format!("it has more than {MAX_NOUN_CHARACTERS} characters"), example);
    }
    let is_plain = noun.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_plain || !noun.starts_with(|c: char| c.is_ascii_lowercase()) {
        let plain = plain(noun);
        let help = if plain.is_empty() { example } else { format!("write it like {plain}") };
        return fault("a name has small letters, digits and `_`, and begins with a letter", help);
    }
    if TAKEN.contains(&noun) || noun.starts_with("sqlite") {
        return fault("the word means something else in a document or a database", "take another word".to_owned());
    }
    Ok(())
}

/// The name that is nearest to what was written.
fn plain(noun: &str) -> String {
    if !noun.is_ascii() {
        return String::new();
    }
    let spelled = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let plain: String = noun.chars().map(spelled).collect();
    let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    let plain = words.join("_");
    if judge_noun_is_plain(&plain) { plain } else { String::new() }
}

fn judge_noun_is_plain(plain: &str) -> bool {
    plain.starts_with(|c: char| c.is_ascii_lowercase()) && !TAKEN.contains(&plain)
}

/// Refuses what is no id of a model.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub(super) fn judge_model(model: &str) -> Result<(), [String; 2]> {
    if let Some(what) = looks_like(model) {
        let message = format!("this is no id of a model: it looks like {what}");
        return Err([message, "give the id, and put the key into the environment; make this one invalid".to_owned()]);
    }
    let is_fine = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '{' | '}');
    if !model.is_empty() && model.chars().count() <= MAX_MODEL_CHARACTERS && model.chars().all(is_fine) {
        return Ok(());
    }
    let what =
        format!("{:?} is no id of a model", shown(&model.chars().take(MAX_MODEL_CHARACTERS).collect::<String>()));
    Err([what, "write it as its provider does, like gpt-4o-mini or claude-sonnet-4-5".to_owned()])
}

/// A name as the name of a file: letters, digits, `_` and `-`.
pub(super) fn file_name(name: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    let spelled = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(MAX_CHARACTERS).map(spelled).collect();
    if name.chars().all(|c| c == '_' || c == '-') { "document".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_is_a_plain_name() {
        for noun in ["order", "purchase_order", "t2", "record"] {
            assert_eq!(judge_noun(noun), Ok(()), "{noun}");
        }
        for (noun, help) in [
            ("", "write one word"),
            ("Order", "write it like order"),
            ("Purchase Order", "write it like purchase_order"),
            ("../../etc", "write it like etc"),
            ("2nd", "write one word"),
            ("bestellung\u{e4}", "write one word"),
            ("or\u{202e}der", "write one word"),
            ("a\u{0}b", "write it like a_b"),
            ("input", "take another word"),
            ("sqlite_master", "take another word"),
        ] {
            let [message, said] = judge_noun(noun).unwrap_err();
            assert!(said.starts_with(help), "{noun}: {said}");
            assert!(!message.contains(['\u{202e}', '\u{0}']), "{message}");
        }
        assert!(judge_noun(&"a".repeat(41)).is_err());
    }

    #[test]
    fn a_model_is_an_id() {
        for model in ["gpt-4o-mini", "anthropic/claude-sonnet-4.5", "qwen3:8b"] {
            assert_eq!(judge_model(model), Ok(()), "{model}");
        }
        for model in ["", "a b", "a\"b", "a\nb", "{model}", "\u{202e}x"] {
            assert!(judge_model(model).is_err(), "{model}");
        }
        let key = concat!("sk-", "proj-a1B2c3D4e5F6g7H8i9J0k1L2");
        let said = judge_model(key).unwrap_err().join("; ");
        assert!(said.contains("it looks like") && !said.contains("a1B2"), "{said}");
    }

    #[test]
    fn a_file_has_no_other_name() {
        assert_eq!(file_name("look_up-2"), "look_up-2");
        assert_eq!(file_name("../a b"), "___a_b");
        assert_eq!(file_name("\u{202e}"), "document");
        assert_eq!(file_name(&"x".repeat(300)).len(), 80);
    }
}
