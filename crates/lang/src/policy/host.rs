//! Hosts: of an address, and of the project's `allow.hosts`. They are parsed by the URL standard, so that
//! `check` and the egress guard of a run read the same host from the same text.

#[cfg(test)]
mod tests;

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

/// Whether a host is in canonical form as it stands, as most are: labels of small letters, digits and hyphens, of which
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
