//! The nearest name: what the author, or the model, most likely meant.

/// The candidate nearest to `name`, when it is near enough to be no wild guess: at most a third of
/// the name's letters differ (one letter for short names), and no twin in other letters (a name that
/// is not ASCII is never matched to one that is).
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name_ascii = name.is_ascii();
    let length = name.chars().count();
    let bound = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.is_ascii() == name_ascii)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= bound && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn distance(name: &str, candidate: &str) -> usize {
    let folded = |text: &str| -> String {
        text.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
    };
    let plain = strsim::damerau_levenshtein(name, candidate);
    // Another case or other word marks is the smallest slip of all.
    if folded(name) == folded(candidate) { plain.min(1) } else { plain }
}
