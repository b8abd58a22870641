//! Addresses that a variable or a file holds. A message names the variable or the file: what it holds may be a password, a key
//! that was put there by mistake, or a whole file.

use std::collections::BTreeSet;

/// What is shown in place of a part of such an address.
const HIDDEN: &str = "[hidden]";

/// Words of addresses that say nothing of theirs: kinds, and the names of parameters.
const OPEN: [&str; 24] = [
    "sqlite",
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "memory",
    "env",
    "file",
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "application_name",
    "options",
    "schema",
    "lease_ms",
    "prepare",
    "path",
    "database",
    "store",
];

/// A message without the parts of an address.
pub fn hidden(message: &str, address: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(address).decode_utf8_lossy();
    let parts = || words(address).chain(words(&decoded)).filter(|word| !OPEN.contains(word));
    let parts: BTreeSet<&str> = parts().collect();
    let (mut shown, mut rest) = (String::with_capacity(message.len()), message);
    while let Some(begin) = rest.find(is_of_word) {
        let (before, from) = rest.split_at(begin);
        let (word, after) = from.split_at(from.find(|c| !is_of_word(c)).unwrap_or(from.len()));
        shown.push_str(before);
        // A full stop may end the sentence.
        let bare = word.trim_end_matches('.');
        if parts.contains(bare) {
            shown.push_str(HIDDEN);
            shown.push_str(word.get(bare.len()..).unwrap_or_default());
        } else {
            shown.push_str(word);
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_word(c)).map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty())
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_an_address_is_in_a_message() {
        for (message, address, shown) in [
            (
                "db.example.com:5432: refused",
                "postgres://ada:s3cret@db.example.com:5432/d",
                "[hidden]:[hidden]: refused",
            ),
            (
                "there is no file /var/lib/x.db.",
                "sqlite:/var/lib/x.db",
                "there is no file /[hidden]/[hidden]/[hidden].",
            ),
            ("the password of p@ss is wrong", "postgres://a:p%40ss@h/d", "the password of [hidden]@[hidden] is wrong"),
            (
                "it names no host: write postgres://USER@HOST",
                "host=db password=x",
                "it names no host: write postgres://USER@HOST",
            ),
        ] {
            assert_eq!(hidden(message, address), shown);
        }
    }
}
