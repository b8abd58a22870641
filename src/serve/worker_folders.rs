//! What the other servers of the store serve. All should serve the same folder: a run continues wherever there is a slot.

use crate::journal::Worker;

/// The first digits of a digest, as messages show them.
const SHOWN_DIGITS: usize = 12;

/// The beginning of a digest.
pub fn short(digest: &str) -> &str {
    digest.get(..SHOWN_DIGITS).unwrap_or(digest)
}

/// A sentence, when a living server of the store serves another folder than this one.
pub fn differing(workers: &[Worker], mine: &str) -> Option<String> {
    let serving = workers.iter().filter(|worker| worker.is_alive && worker.folder.is_some());
    let others: Vec<&Worker> = serving.clone().filter(|worker| worker.folder.as_deref() != Some(mine)).collect();
    let first = others.first()?;
    let place = first.host.as_deref().map(|host| format!(" on {host}")).unwrap_or_default();
    Some(format!(
        "{} of {} servers of the store serve another folder than this one (this one {}, {}{place} {}): give all the same \
         folder",
        others.len(),
        serving.count(),
        short(mine),
        short(&first.name),
        short(first.folder.as_deref().unwrap_or_default())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str, folder: Option<&str>, is_alive: bool) -> Worker {
        Worker {
            name: name.to_owned(),
            is_self: false,
            is_alive,
            host: Some("b1".to_owned()),
            address: None,
            clock_ahead_ms: None,
            process: None,
            version: None,
            folder: folder.map(str::to_owned),
            since_ms: 0,
            silent_ms: None,
            driven: 0,
            runs: Vec::new(),
        }
    }

    #[test]
    fn only_living_servers_of_another_folder_are_reported() {
        let same = [worker("a", Some("f00d"), true), worker("b", Some("beef"), false), worker("c", None, true)];
        assert_eq!(differing(&same, "f00d"), None);
        let other = [worker("a", Some("f00d"), true), worker("0123456789abcdef", Some("beefbeefbeefbeef"), true)];
        assert_eq!(
            differing(&other, "f00d").unwrap(),
            "1 of 2 servers of the store serve another folder than this one (this one f00d, 0123456789ab on b1 \
             beefbeefbeef): give all the same folder"
        );
    }
}
