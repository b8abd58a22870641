//! Names of several tools: in a declaration, `*` is any characters.

/// Whether a name is a pattern for several tools.
pub fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// Whether a name is as a pattern says: each `*` is any characters, or none.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters_or_none() {
        for (pattern, name, is) in [
            ("list_*", "list_files", true),
            ("list_*", "list_", true),
            ("list_*", "relist_files", false),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("*", "anything", true),
            ("r*d_*e", "read_file", true),
            ("a*a", "a", false),
            ("a*a", "aba", true),
            ("*b*b*", "abb", true),
            ("*b*b*", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), is, "{pattern} {name}");
        }
    }
}
