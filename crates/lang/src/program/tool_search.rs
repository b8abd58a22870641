//! Which tools fit a text: they are ranked by the words that their names and descriptions have in common with it. A word
//! counts for more the fewer tools have it and the fewer words there are beside it, and for nothing where more than half of
//! the tools have it. Whole numbers only: the same text ranks the tools alike on each machine.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Tool, ToolKind};

/// The most characters of a description, and of a text that is searched for, that are read.
const MAX_DESCRIPTION: usize = 2_000;
const MAX_TEXT: usize = 20_000;
/// Words that say nothing of what a tool does: without them, an objective that no tool fits selects none.
const COMMON: [&str; 40] = [
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "do", "each", "for", "from", "has", "have",
    "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "say", "that", "the", "their", "them", "then",
    "these", "this", "to", "was", "which", "who", "with",
];
/// How much more a word of the name counts than one of the description.
const NAME: u64 = 3;
/// What a word counts in a text of one word. In a longer one it counts for less, so that no tool fits because it says much.
const WORD: u64 = 64;

/// The words of a program's tools.
#[derive(Debug, Default)]
pub struct ToolIndex {
    words: HashMap<String, Vec<WordUse>>,
    /// The names in lower case, each with its place.
    names: HashMap<String, usize>,
    /// How many tools there are.
    tools: usize,
}

/// A tool that has a word.
#[derive(Debug)]
struct WordUse {
    place: usize,
    /// What the word counts there.
    weight: u64,
}

impl ToolIndex {
    /// The words of the tools that a document declares: built-in tools are always offered, and never found.
    pub fn of(tools: &[Tool]) -> Self {
        let mut index = Self::default();
        for (place, tool) in tools.iter().enumerate() {
            if matches!(tool.kind, ToolKind::Builtin(_)) {
                continue;
            }
            index.tools += 1;
            index.names.insert(tool.name.to_lowercase(), place);
            let (mut in_name, mut in_description) = (BTreeSet::new(), BTreeSet::new());
            each_word(&tool.name, usize::MAX, &mut |word| {
                in_name.insert(word);
            });
            each_word(&tool.description, MAX_DESCRIPTION, &mut |word| {
                in_description.insert(word);
            });
            let (name, description) = (NAME * part_of(in_name.len()), part_of(in_description.len()));
            for word in in_name.union(&in_description) {
                let of_name = u64::from(in_name.contains(word)) * name;
                let weight = of_name + u64::from(in_description.contains(word)) * description;
                index.words.entry(word.clone()).or_default().push(WordUse { place, weight });
            }
        }
        index
    }

    /// The places of the tools that fit a text best, the best first; one that the text names as a whole is the first. Of tools that fit
    /// alike, the one that is declared first.
    pub fn best(&self, text: &str, most: usize) -> Vec<usize> {
        let named = self.names.get(&text.trim().to_lowercase()).copied();
        let mut words = HashSet::new();
        each_word(text, MAX_TEXT, &mut |word| {
            if !COMMON.contains(&word.as_str()) {
                words.insert(word);
            }
        });
        let mut scores: HashMap<usize, u64> = HashMap::new();
        for uses in words.iter().filter_map(|word| self.words.get(word)) {
            let rarity = u64::from((self.tools / uses.len().max(1)).max(1).ilog2());
            for found in uses {
                let score = scores.entry(found.place).or_default();
                *score = score.saturating_add(rarity * rarity * found.weight);
            }
        }
        let fits = |(place, score): &(usize, u64)| *score > 0 && Some(*place) != named;
        let mut ranked: Vec<(usize, u64)> = scores.into_iter().filter(fits).collect();
        ranked.sort_unstable_by(|(place, score), (other, others)| others.cmp(score).then(place.cmp(other)));
        named.into_iter().chain(ranked.into_iter().map(|(place, _)| place)).take(most).collect()
    }
}

/// What a word counts in a text with this number of words: less in each that is twice as long.
fn part_of(words: usize) -> u64 {
    WORD / u64::from(words.max(1).ilog2() + 1)
}

/// The words of the first characters of a text, in lower case and in the singular. `listOpen_issues` has three; in scripts
/// without spaces each sign is one.
fn each_word(text: &str, most: usize, take: &mut dyn FnMut(String)) {
    let mut word = String::new();
    let mut after_small = false;
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            take(singular(std::mem::take(word)));
        }
    };
    for sign in text.chars().take(most) {
        if !sign.is_alphanumeric() || is_ideograph(sign) || (after_small && sign.is_uppercase()) {
            end(&mut word);
        }
        after_small = sign.is_lowercase() || sign.is_numeric();
        if sign.is_alphanumeric() {
            word.extend(sign.to_lowercase());
        }
        if is_ideograph(sign) {
            end(&mut word);
        }
    }
    end(&mut word);
}

/// Whether a sign is a word, as those of Chinese and Japanese are.
fn is_ideograph(sign: char) -> bool {
    matches!(sign, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// An English word without the ending of its plural: `invoices` and `invoice` are one word, and so are `branches` and
/// `branch`.
fn singular(mut word: String) -> String {
    const DOUBLE: [&str; 5] = ["ches", "shes", "sses", "xes", "zes"];
    const NONE: [&str; 3] = ["ss", "us", "is"];
    if word.len() < 4 || !word.is_ascii() {
        return word;
    }
    if word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if DOUBLE.iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !NONE.iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 1);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_word(text, usize::MAX, &mut |word| found.push(word));
        found
    }

    #[test]
    fn words_end_at_signs_and_capitals_and_have_no_plural() {
        for (text, expected) in [
            ("listOpen_issues", vec!["list", "open", "issue"]),
            ("files.read-text_file", vec!["file", "read", "text", "file"]),
            (
                "Branches, repositories & boxes: GitHub's status",
                vec!["branch", "repository", "box", "git", "hub", "s", "status"],
            ),
            ("HTTPServer v2Beta", vec!["httpserver", "v2", "beta"]),
            ("größere Straßen", vec!["größere", "straßen"]),
            ("检索 文件list", vec!["检", "索", "文", "件", "list"]),
            ("", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }
}
