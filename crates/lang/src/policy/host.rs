//! Hosts: of an address, and of the project's `allow.hosts`. They are parsed by the URL standard, so that
//! `check` and the egress guard of a run read the same host from the same text.

use core::net::IpAddr;
use std::ops::Range;

use url::Host;

use super::address;

/// The host of an address as written: it may contain the tags of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenHost<'t> {
    /// As written, with its port.
    pub text: &'t str,
    /// Its place in the address.
    pub range: Range<usize>,
    /// The port of the connection.
    pub port: Option<u16>,
}

/// Whether an address has a host where one is written. Parsers of addresses skip what is empty: of `http:///x/y`, the host is `x`.
pub fn names_host(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    !rest.is_empty() && !rest.starts_with(['/', '\\', '?', '#'])
}

impl<'t> WrittenHost<'t> {
    /// The host of an address that begins with `http://` or `https://`.
    pub fn of(url: &'t str) -> Option<Self> {
        let begins = |scheme: &str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
        let (start, port) = if begins("https://") {
            (8, 443)
        } else if begins("http://") {
            (7, 80)
        } else {
            return None;
        };
        let mut end = url.len();
        let mut at = start;
        while let Some(rest) = url.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with("{{") {
                at += rest.find("}}").map_or(rest.len(), |close| close + 2);
            } else if rest.starts_with(['/', '?', '#', '\\']) {
                end = at;
                break;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        let text = url.get(start..end).filter(|text| !text.is_empty() && !text.contains('@'))?;
        let port = match split(text).1 {
            Some(digits) => digits.parse().ok(),
            None => Some(port),
        };
        Some(Self { text, range: start..end, port })
    }

    /// Its name without the port, in the form of [`spelling`]; none if it contains a value.
    pub fn name(&self) -> Option<String> {
        if self.is_template() { None } else { spelling(split(self.text).0) }
    }

    /// Its port as written, with the colon; empty if there is none.
    pub fn written_port(&self) -> &'t str {
        let name = split(self.text).0;
        self.text.get(name.len()..).unwrap_or_default()
    }

    /// The literal text after its last value, without the port: `.example.com`.
    pub fn end(&self) -> &'t str {
        let end = self.text.rsplit_once("}}").map_or("", |(_, end)| end);
        end.split(':').next().unwrap_or_default()
    }

    /// Whether it contains a value or a secret.
    pub fn is_template(&self) -> bool {
        self.text.contains("{{") || self.text.contains("orgconfig:")
    }
}

/// An entry of `allow.hosts`: `host` or `*.host`, with or without `:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// The host, or a name below it, in the form of [`spelling`].
    pub name: String,
    below: bool,
    port: Option<u16>,
}

impl AllowedHost {
    /// Parses an entry; none for an invalid one, which allows nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let odd = |c: char| matches!(c, '/' | '\\' | '@' | '?' | '#' | '*' | '%') || c.is_whitespace();
        if rest.contains(odd) {
            return None;
        }
        let (name, port) = split(rest);
        let port = port.map(str::parse::<u16>).transpose().ok()?;
        let name = spelling(name)?;
        (!below || literal(&name).is_none()).then_some(Self { name, below, port })
    }

    /// Whether it allows a host in this spelling.
    pub fn allows(&self, name: &str, port: Option<u16>) -> bool {
        let fits = if self.below { is_below(name, &self.name) } else { name == self.name };
        fits && (self.port.is_none() || self.port == port)
    }

    /// Whether it can allow a host that ends like this, after a value.
    pub fn may_allow(&self, end: &str) -> bool {
        let end = end.to_ascii_lowercase();
        self.name.ends_with(&end) || (self.below && end.ends_with(&self.name))
    }
}

/// The canonical form of a host, as in a parsed URL: lower case, punycode, an address in its usual form
/// (`0x7f.1` is `127.0.0.1`), without a trailing dot. None for an invalid host, and for one with anything beside it.
pub fn spelling(name: &str) -> Option<String> {
    if is_plain(name) {
        return Some(name.to_owned());
    }
    // A URL is read without these.
    let host = Host::parse(&name.replace(['\t', '\n', '\r'], "")).ok()?.to_string();
    let name = without_dot(&host);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether a host is in canonical form as it is written, as most are: labels of small letters, digits and hyphens, of which
/// none is punycode and the last begins with a letter, so that it is no address.
fn is_plain(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| !label.is_empty() && !label.starts_with("xn--") && label.bytes().all(is_letter);
    let last = name.rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('.').all(is_label)
}

/// A name without a trailing dot.
pub fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// The address of a host that is a literal address, in canonical form.
pub fn literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Names that mean this machine or a cloud's metadata, whatever they resolve to.
const LOCAL_NAMES: &[&str] = &["localhost", "metadata.google.internal"];

/// Whether a host in canonical form is certainly private, local or reserved. The addresses of a name are not
/// known here.
pub fn is_private(host: &str) -> bool {
    match literal(host) {
        Some(address) => !address::is_public(address),
        None => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            LOCAL_NAMES.contains(&name.as_str()) || name.ends_with(".localhost")
        }
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.contains([']', '}']) => (name, Some(port)),
        _ => (text, None),
    }
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).and_then(|labels| labels.strip_suffix('.')).is_some_and(|labels| !labels.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{AllowedHost, WrittenHost, is_private};

    #[test]
    fn hosts_are_read_with_their_ports() {
        let host = |url: &str| WrittenHost::of(url).map(|host| (host.text.to_owned(), host.name(), host.port));
        let some = |text: &str, name: &str, port: u16| Some((text.to_owned(), Some(name.to_owned()), Some(port)));
        assert_eq!(host("https://API.example.com./x"), some("API.example.com.", "api.example.com", 443));
        assert_eq!(host("http://h:8080?x"), some("h:8080", "h", 8080));
        assert_eq!(host("HTTP://[::1]:81"), some("[::1]:81", "[::1]", 81));
        assert_eq!(host("http://[0:0::1]/"), some("[0:0::1]", "[::1]", 80));
        assert_eq!(
            host("https://{{a}}.x/{{b}}").map(|(text, name, _)| (text, name)),
            Some(("{{a}}.x".to_owned(), None))
        );
        assert_eq!(host("https://"), None);
        assert_eq!(host("https://u:p@h/"), None);
        assert_eq!(host("ftp://h/"), None);
        assert_eq!(host("ws://host/"), None);
        for (odd, name) in [
            ("http://127.1/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f000001/", "127.0.0.1"),
            ("http://b\u{fc}cher.example/", "xn--bcher-kva.example"),
            ("http://%31.example/", "1.example"),
        ] {
            assert_eq!(host(odd).and_then(|(_, name, _)| name).as_deref(), Some(name), "{odd}");
        }
    }

    #[test]
    fn what_stands_beside_a_host_is_not_dropped_from_it() {
        use super::spelling;
        for text in
            ["", ".", "/h", "//h", "\\h", "h/x", "h\\x", "h?x", "h#x", "u@h", "u:p@h", "h:80", "[::1]:80", "h x", "%2f"]
        {
            assert_eq!(spelling(text), None, "{text}");
        }
        for (text, host) in [("H.", "h"), ("%48", "h"), ("h\n.\tx", "h.x"), ("[0::1]", "[::1]"), ("127.1", "127.0.0.1")]
        {
            assert_eq!(spelling(text).as_deref(), Some(host), "{text}");
        }
    }

    #[test]
    fn a_host_that_is_taken_as_it_stands_is_read_to_the_same() {
        use super::{is_plain, spelling, without_dot};
        let long = format!("{}.example.com", "a".repeat(70));
        let hosts = [
            "a",
            "api.example.com",
            "a-b.c1.d",
            "-a.b",
            "a--b.c",
            "ab--cd.de",
            "1.2.3.c",
            "0x7f.a",
            "localhost",
            &long,
        ];
        for text in hosts {
            assert!(is_plain(text), "{text}");
            let read = url::Host::parse(text).map(|host| without_dot(&host.to_string()).to_owned()).ok();
            assert_eq!(read.as_deref(), Some(text));
        }
        for text in [
            "1.2.3.4",
            "a.0x7f",
            "a.1",
            "xn--bcher-kva.example",
            "a..b",
            "a.",
            ".a",
            "A.b",
            "a_b.c",
            "b\u{fc}.c",
            "[::1]",
        ] {
            assert!(!is_plain(text), "{text}");
            let read = url::Host::parse(text).map(|host| without_dot(&host.to_string()).to_owned()).ok();
            assert_eq!(spelling(text), read.filter(|host| !host.is_empty()), "{text}");
        }
    }

    #[test]
    fn entries_take_what_they_say() {
        let takes =
            |entry: &str, name: &str| AllowedHost::parse(entry).is_some_and(|entry| entry.allows(name, Some(443)));
        assert!(takes(" Example.com ", "example.com"));
        assert!(!takes("example.com", "www.example.com"));
        assert!(takes("*.example.com:443", "a.b.example.com"));
        assert!(!takes("*.example.com", "example.com"));
        assert!(!takes("*.example.com", "badexample.com"));
        assert!(!takes("example.com:80", "example.com"));
        assert!(AllowedHost::parse("*.127.0.0.1").is_none());
    }

    #[test]
    fn what_is_no_host_is_no_entry() {
        for entry in
            ["*", "*.", "", "https://x", "x/y", "a@b", "a b", "x:port", "x:70000", "x.*", "*.127.1", "[::g]", "x:1:2"]
        {
            assert!(AllowedHost::parse(entry).is_none(), "{entry}");
        }
        for entry in ["x", "*.x", "x:1", "[::1]:80", "b\u{fc}cher.example", "127.1"] {
            assert!(AllowedHost::parse(entry).is_some(), "{entry}");
        }
    }

    #[test]
    fn private_hosts_are_known() {
        for name in
            ["localhost", "a.localhost", "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"]
        {
            assert!(is_private(name), "{name}");
        }
        for name in [
            "[::1]",
            "[fd00::1]",
            "[fe80::1]",
            "0.0.0.0",
            "metadata.google.internal",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "[2001:db8::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::10.0.0.1]",
            "[2002:a00:1::]",
        ] {
            assert!(is_private(name), "{name}");
        }
        for name in
            ["8.8.8.8", "example.com", "localhost.example.com", "[2606:4700::1111]", "172.32.0.1", "[64:ff9b::8.8.8.8]"]
        {
            assert!(!is_private(name), "{name}");
        }
    }

    #[test]
    fn a_tag_is_passed_as_a_whole_whatever_stands_in_it() {
        let text = |url: &str| WrittenHost::of(url).map(|host| host.text.to_owned());
        for host in ["{{a/b}}", "{{#if a?b}}", "{{a/b}}.x", "{{a}}-{{b#}}.x:80"] {
            assert_eq!(text(&format!("https://{host}/p")).as_deref(), Some(host));
        }
        assert_eq!(text("https://{{a/b").as_deref(), Some("{{a/b"));
    }

    #[test]
    fn what_is_written_out_behind_the_last_value_is_known_and_the_port_beside_it() {
        for (url, port, end, template) in [
            ("https://{{a}}.{{b}}.example.com:8443/x", ":8443", ".example.com", true),
            ("https://{{a}}/x", "", "", true),
            ("https://a.example:{{port}}/x", "", "", true),
            ("https://orgconfig:host/x", ":host", "", true),
            ("https://example.com:81", ":81", "", false),
            ("http://[::1]/", "", "", false),
        ] {
            let host = WrittenHost::of(url).unwrap();
            assert_eq!((host.written_port(), host.end(), host.is_template()), (port, end, template), "{url}");
        }
    }

    #[test]
    fn an_end_behind_a_value_may_be_one_that_is_allowed() {
        let may = |entry: &str, end: &str| AllowedHost::parse(entry).is_some_and(|entry| entry.may_allow(end));
        assert!(may("api.example.com", ".Example.com"));
        assert!(may("*.example.com", ".example.com") && may("*.example.com", ".api.example.com"));
        assert!(!may("example.com", ".api.example.com") && !may("*.example.com", ".example.org"));
    }
}
