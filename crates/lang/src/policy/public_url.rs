//! The address at which others reach a server: what it may be.

/// Why a text is no such address; none when it is one. What may hold a password is not repeated.
pub fn fault(url: &str) -> Option<&'static str> {
    let scheme = |begin: &str| url.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin));
    if !(scheme("http://") || scheme("https://")) {
        return Some("does not begin with `http://` or `https://`");
    }
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if url.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        Some("has a character that no address has")
    } else if authority.contains('@') {
        Some("holds a user name or a password")
    } else if host(url).is_empty() {
        Some("names no host")
    } else if url.contains(['?', '#']) {
        Some("has a `?` or a `#`: the path of the answer is added to it")
    } else {
        None
    }
}

/// The host of an address, without its port.
pub fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_perhaps_a_path() {
        for (url, name) in [
            ("https://loops.example.com", "loops.example.com"),
            ("HTTP://127.0.0.1:3009/", "127.0.0.1"),
            ("https://[::1]:3009/loops/", "::1"),
        ] {
            assert_eq!((fault(url), host(url)), (None, name), "{url}");
        }
        for url in [
            "",
            "loops.example.com",
            "ftp://e.example",
            "https://",
            "https:///x",
            "https://:80/",
            "https://u:p@e.example",
            "https://e.example/?a=b",
            "https://e.example/#a",
            "https://e.ex ample/",
            "https://e.example\\f.example/",
            "https://e.example/\u{7f}",
        ] {
            assert!(fault(url).is_some(), "{url}");
        }
    }
}
