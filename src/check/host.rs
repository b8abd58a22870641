//! Hosts: of an address, and of the project's `allow.hosts`. It knows fewer spellings than the guard
//! that is there when a loop runs: what it can't read for sure, it does not judge.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The host of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host<'t> {
    /// As written, with its port.
    pub text: &'t str,
    /// Where it stands in the address.
    pub range: Range<usize>,
    /// The port that is asked.
    pub port: Option<u16>,
}

impl<'t> Host<'t> {
    /// The host of an address that begins with `http://` or `https://`; a template's tag may stand in it.
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

    /// Its name without the port, in one spelling; nothing when it can't be told for sure.
    pub fn name(&self) -> Option<String> {
        plain(split(self.text).0)
    }

    /// Its port as it is written, with the colon; empty where none is.
    pub fn written_port(&self) -> &'t str {
        let name = split(self.text).0;
        self.text.get(name.len()..).unwrap_or_default()
    }

    /// What is written out after its last value, without the port: `.example.com`.
    pub fn end(&self) -> &'t str {
        let end = self.text.rsplit_once("}}").map_or("", |(_, end)| end);
        end.split(':').next().unwrap_or_default()
    }

    /// Whether a value or secret is a part of it.
    pub fn is_template(&self) -> bool {
        self.text.contains("{{") || self.text.contains("orgconfig:")
    }
}

/// An entry of `allow.hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The host, or what stands below it.
    pub name: String,
    below: bool,
    port: Option<u16>,
}

impl Entry {
    /// Reads `host`, `*.host`, with or without `:port`.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let (name, port) = split(rest);
        let port = port.map(str::parse::<u16>).transpose().ok()?;
        let name = plain(name)?;
        (!below || literal(&name).is_none()).then_some(Self { name, below, port })
    }

    /// Whether it lets a host pass.
    pub fn takes(&self, name: &str, port: Option<u16>) -> bool {
        let fits = if self.below { is_below(name, &self.name) } else { name == self.name };
        fits && (self.port.is_none() || self.port == port)
    }

    /// Whether a host that ends like this, after a value, can be one that it lets pass.
    pub fn may_take(&self, end: &str) -> bool {
        let end = end.to_ascii_lowercase();
        self.name.ends_with(&end) || (self.below && end.ends_with(&self.name))
    }
}

/// Whether nothing that `text` says can be a host: it lets nothing pass.
pub fn is_no_entry(text: &str) -> bool {
    let text = text.trim();
    let rest = text.strip_prefix("*.").unwrap_or(text);
    let odd = |c: char| matches!(c, '/' | '\\' | '@' | '?' | '#' | '*' | '%') || c.is_whitespace();
    let (name, port) = split(rest);
    name.is_empty() || rest.contains(odd) || port.is_some_and(|port| port.parse::<u16>().is_err())
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.contains([']', '}']) => (name, Some(port)),
        _ => (text, None),
    }
}

/// A name in one spelling: lower case, without its last dot. Nothing for one in other letters than
/// ASCII, and for an address in an odd spelling.
fn plain(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if let Some(inside) = name.strip_prefix('[') {
        let address = inside.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?;
        return Some(format!("[{address}]"));
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    let odd = number && name.parse::<Ipv4Addr>().is_err();
    (!name.is_empty() && name.chars().all(letter) && !odd).then_some(name)
}

/// The address that a name is written as.
fn literal(name: &str) -> Option<IpAddr> {
    name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name).parse().ok()
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).and_then(|labels| labels.strip_suffix('.')).is_some_and(|labels| !labels.is_empty())
}

/// Whether a name (in the spelling of [`Host::name`]) is surely one of this machine or of a private
/// network.
pub fn is_private(name: &str) -> bool {
    let Some(address) = literal(name) else {
        return name == "localhost" || name == "metadata.google.internal" || name.ends_with(".localhost");
    };
    let of_network = match address {
        IpAddr::V4(address) => address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    };
    of_network || address.is_loopback() || address.is_unspecified()
}
