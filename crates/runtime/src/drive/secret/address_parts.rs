//! The parts of a secret address that a server repeats without the rest: `Cannot POST /services/T0/B0/XXX`.

/// The shortest path that is hidden as a whole, in bytes.
const MIN_PATH: usize = 8;
/// The shortest part with letters and digits that is no word.
const MIN_MIXED: usize = 6;
/// The shortest part with an upper-case letter inside that is no word.
const MIN_CASED: usize = 8;
/// No word of a path is this long.
const MIN_LONG: usize = 16;

/// The parts of an address that make it a secret: its path, and what in it is no word.
pub(super) fn of(address: &str) -> Vec<&str> {
    let Some((_, rest)) = address.split_once("://") else { return Vec::new() };
    let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    let target = target.strip_prefix('/').unwrap_or(target);
    let path = target.split(['?', '#']).next();
    let whole = [Some(target), path].into_iter().flatten().filter(|part| part.len() >= MIN_PATH);
    let parts = target.split(['/', '?', '#', '&', '=']).chain(password).filter(|part| is_no_word(part));
    whole.chain(parts).collect()
}

fn is_no_word(part: &str) -> bool {
    let has = |is: fn(&char) -> bool| part.chars().any(|letter| is(&letter));
    let is_mixed = has(char::is_ascii_alphabetic) && has(char::is_ascii_digit);
    let is_cased = part.chars().skip(1).any(char::is_uppercase);
    part.len() >= MIN_LONG || part.len() >= MIN_MIXED && is_mixed || part.len() >= MIN_CASED && is_cased
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_an_address_a_secret_is_found_and_no_word_of_it() {
        for (address, parts) in [
            (
                "https://hooks.slack.com/services/T00000000/B0AB/zxcvbnmasdfghjkl",
                &[
                    "services/T00000000/B0AB/zxcvbnmasdfghjkl",
                    "services/T00000000/B0AB/zxcvbnmasdfghjkl",
                    "T00000000",
                    "zxcvbnmasdfghjkl",
                ][..],
            ),
            (
                "https://x.logic.azure.com:443/workflows/0af1b2/triggers/manual?api-version=2016-06-01&sig=aB3-dE5_x",
                &[
                    "workflows/0af1b2/triggers/manual?api-version=2016-06-01&sig=aB3-dE5_x",
                    "workflows/0af1b2/triggers/manual",
                    "0af1b2",
                    "aB3-dE5_x",
                ],
            ),
            ("https://me:pass0rd@hooks.example.com/in", &["pass0rd"]),
            ("https://hooks.example.com", &[]),
            ("https://hooks.example.com/", &[]),
            ("https://hooks.example.com/Events", &[]),
            ("no address", &[]),
        ] {
            assert_eq!(of(address), parts, "{address}");
        }
    }
}
