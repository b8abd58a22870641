//! The nearest name: the one that the author, or the model, most likely meant.

/// Longer texts are no names, and comparing them takes quadratic time.
const MAX_NAME_BYTES: usize = 200;

/// The candidate nearest to `name`, if it is near enough to be no wild guess: at most a third of the letters
/// differ (one letter in short names, none but its case where there is only one), and a name that is not ASCII is never matched to an ASCII one, which may
/// only look alike.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(name, &mut candidates.into_iter())
}

/// The names that candidates come as. Comparing them is compiled once, and not for each place that they come from.
type Names<'i, 'a> = &'i mut (dyn Iterator<Item = &'a str> + 'i);

fn nearest_of<'a>(name: &str, candidates: Names<'_, 'a>) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let name_ascii = name.is_ascii();
    let length = name.chars().count();
    let bound = (length / 3).max(1);
    candidates
        .filter(|candidate| candidate.is_ascii() == name_ascii && may_be_near(name, candidate))
        .map(|candidate| (distance(name, candidate), candidate))
        // Nothing of a name of one letter would be left.
        .filter(|(distance, candidate)| *distance < length || folded(name).eq(folded(candidate)))
        .filter(|(distance, candidate)| *distance <= bound && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether a name is another one but for a single letter, or for case and word marks.
pub fn is_slip(name: &str, other: &str) -> bool {
    name.len() > 3 && name.len() <= MAX_NAME_BYTES && distance(name, other) <= 1
}

/// Whether no two candidates are equally near to `name`: only then is it clear which one was meant.
pub fn is_lone<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> bool {
    is_lone_of(name, &mut candidates.into_iter())
}

fn is_lone_of(name: &str, candidates: Names<'_, '_>) -> bool {
    if name.len() > MAX_NAME_BYTES {
        return true;
    }
    let near = candidates.filter(|candidate| nearest(name, [*candidate]).is_some());
    let mut distances: Vec<(usize, &str)> = near.map(|candidate| (distance(name, candidate), candidate)).collect();
    distances.sort_unstable();
    distances.dedup();
    match distances.as_slice() {
        [first, second, ..] => first.0 < second.0,
        _ => true,
    }
}

/// The nearest field. Fields consist of words: if no candidate is near, this is the one whose words include all
/// words of the name, or the reverse, like `timeout` and `timeout_ms`.
pub fn nearest_field<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    nearest(name, candidates.clone()).or_else(|| nearest_by_words(name, &mut candidates.into_iter()))
}

fn nearest_by_words<'a>(name: &str, candidates: Names<'_, 'a>) -> Option<&'a str> {
    candidates
        .filter(|candidate| candidate.is_ascii() == name.is_ascii())
        .filter_map(|candidate| words_apart(name, candidate).map(|apart| (apart, candidate)))
        .min_by_key(|(apart, _)| *apart)
        .map(|(_, candidate)| candidate)
}

/// Whether a candidate can be near enough at all: not if the lengths differ by more than the limit, ignoring
/// case and separators.
fn may_be_near(name: &str, candidate: &str) -> bool {
    let length = name.chars().count();
    let bound = (length / 3).max(1);
    candidate.len() <= MAX_NAME_BYTES
        && ((length.abs_diff(candidate.chars().count()) <= bound && length <= shared_bytes(name, candidate) + bound)
            || folded(name).eq(folded(candidate)))
}

/// The maximum number of characters of one name that are in the other, at any place: each of the rest is a difference.
fn shared_bytes(name: &str, candidate: &str) -> usize {
    let mut left = [0_u8; 256];
    for byte in candidate.bytes() {
        if let Some(count) = left.get_mut(usize::from(byte)) {
            *count = count.saturating_add(1);
        }
    }
    let mut shared = 0;
    for byte in name.bytes() {
        if let Some(count) = left.get_mut(usize::from(byte)).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    shared
}

fn folded(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase)
}

fn distance(name: &str, candidate: &str) -> usize {
    let plain = strsim::damerau_levenshtein(name, candidate);
    // Another case or other separators are the smallest difference.
    if folded(name).eq(folded(candidate)) { plain.min(1) } else { plain }
}

/// By how many words one name is longer, if it contains all words of the other.
fn words_apart(name: &str, candidate: &str) -> Option<usize> {
    if name.len() > MAX_NAME_BYTES || candidate.len() > MAX_NAME_BYTES {
        return None;
    }
    let words = |text: &str| -> Vec<String> {
        text.split(['_', '-', '.', '/', ' ']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let (one, other) = (words(name), words(candidate));
    let (few, many) = if one.len() < other.len() { (&one, &other) } else { (&other, &one) };
    let letters: usize = few.iter().map(String::len).sum();
    let contained = letters >= 4 && few.iter().all(|word| many.contains(word));
    contained.then(|| many.len() - few.len())
}

/// The limit of the comparisons for one document, or one rule: letters times letters.
const MAX_LETTER_PAIRS: usize = 10_000_000;
/// The cost of a candidate, besides its letters and those of the name.
const GLANCE: usize = 16;

/// Finds nearest names within a limit of work: thousands of wrong names among thousands of names get no more
/// hints.
#[derive(Debug, Default)]
pub struct Nearest {
    spent: usize,
}

impl Nearest {
    /// As [`nearest`], among the candidates that may still be compared.
    pub fn of<'a>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        nearest_of(name, &mut self.affordable(name, &mut candidates.into_iter()))
    }

    /// As [`nearest_field`], among the candidates that may still be compared; and whether it is clear which one
    /// was meant.
    pub fn field<'a>(
        &mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Option<(&'a str, bool)> {
        let affordable: Vec<&str> = self.affordable(name, &mut candidates.into_iter()).collect();
        let near = nearest_field(name, affordable.iter().copied())?;
        let near_ones = affordable.into_iter().filter(|candidate| may_be_near(name, candidate));
        Some((near, is_lone(name, near_ones)))
    }

    fn affordable<'i, 'a>(&'i mut self, name: &'i str, candidates: Names<'i, 'a>) -> impl Iterator<Item = &'a str> {
        let spent = &mut self.spent;
        let long = name.len() > MAX_NAME_BYTES;
        candidates.take_while(move |candidate| {
            let cells = name.len().saturating_mul(candidate.len());
            let measured = !long && may_be_near(name, candidate);
            let read = GLANCE.saturating_add(name.len()).saturating_add(candidate.len().min(MAX_NAME_BYTES));
            *spent = spent.saturating_add(read).saturating_add(if measured { cells } else { 0 });
            !long && *spent <= MAX_LETTER_PAIRS
        })
    }
}
