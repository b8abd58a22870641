//! The address of a server that takes mail, and the addresses of those who read it.

use email_address::EmailAddress;
use url::{Host, Url};

/// Whether this build can send mail.
pub const HAS_EMAIL: bool = cfg!(feature = "email");
/// The most addresses that one target sends to.
pub const MAX_RECIPIENTS: usize = 50;
/// Why it can't.
pub const NO_EMAIL: &str = "this loopctl was built without mail: build it with its cargo feature `email`";

/// A server that takes mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailServer {
    /// Its host, as a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether the connection is encrypted from its first byte (`smtps`); else the server is asked to encrypt it, unless it is this
    /// machine.
    pub is_encrypted_at_once: bool,
}

impl MailServer {
    /// The server of an address: `smtps://HOST:465` or `smtp://HOST:587`, and nothing beside host and port.
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let (is_encrypted_at_once, port) = match url.scheme() {
            "smtps" => (true, 465),
            "smtp" => (false, 587),
            _ => return None,
        };
        let rest = (url.username(), url.password(), url.path(), url.query(), url.fragment());
        if !matches!(rest, ("", None, "" | "/", None, None)) {
            return None;
        }
        let host = match url.host()? {
            // The address of another scheme than http is not read by `url`.
            Host::Domain("") => return None,
            Host::Domain(name) => name.to_ascii_lowercase(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Some(Self { host, port: url.port().unwrap_or(port), is_encrypted_at_once })
    }
}

/// Who sends or reads mail: `claims@example.com`, or `Claims <claims@example.com>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailAddress {
    /// The name that is shown.
    pub name: Option<String>,
    /// What is before the `@`.
    pub user: String,
    /// What is behind it.
    pub host: String,
}

impl MailAddress {
    /// An address that is written out; none when it is no single address, or a value of a run could be in it.
    pub fn parse(text: &str) -> Option<Self> {
        if text.chars().any(char::is_control) || text.contains("{{") || text.contains("orgconfig:") {
            return None;
        }
        let text = text.trim();
        let (name, address) = match text.strip_suffix('>') {
            Some(before) => before.rsplit_once('<').map(|(name, address)| (name.trim(), address))?,
            None => ("", text),
        };
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        let (user, host) = address.rsplit_once('@')?;
        let is_valid = EmailAddress::is_valid_local_part(user) && EmailAddress::is_valid_domain(host);
        let name = (!name.is_empty()).then(|| name.to_owned());
        is_valid.then(|| Self { name, user: user.to_owned(), host: host.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        let server = |host: &str, port, is_encrypted_at_once| {
            Some(MailServer { host: host.to_owned(), port, is_encrypted_at_once })
        };
        assert_eq!(MailServer::parse("smtps://Mail.Example.com"), server("mail.example.com", 465, true));
        assert_eq!(MailServer::parse("smtp://mail.example.com:25/"), server("mail.example.com", 25, false));
        assert_eq!(MailServer::parse("smtp://127.0.0.1:2525"), server("127.0.0.1", 2525, false));
        assert_eq!(MailServer::parse("smtps://[::1]:465"), server("::1", 465, true));
        for no in [
            "mail.example.com",
            "https://mail.example.com",
            "smtps://",
            "smtps://u:p@mail.example.com",
            "smtps://a/b",
            "smtps://a?b",
        ] {
            assert_eq!(MailServer::parse(no), None, "{no}");
        }
    }

    #[test]
    fn an_address_is_one_and_is_written_out() {
        let address = |name: Option<&str>, user: &str, host: &str| {
            Some(MailAddress { name: name.map(str::to_owned), user: user.to_owned(), host: host.to_owned() })
        };
        assert_eq!(MailAddress::parse("ops@example.com"), address(None, "ops", "example.com"));
        assert_eq!(MailAddress::parse("<ops@example.com>"), address(None, "ops", "example.com"));
        assert_eq!(MailAddress::parse("Ops <o.p+s@example.com>"), address(Some("Ops"), "o.p+s", "example.com"));
        assert_eq!(MailAddress::parse("\"Ops, Ltd\" <o@example.com>"), address(Some("Ops, Ltd"), "o", "example.com"));
        for no in [
            "",
            "ops",
            "@example.com",
            "ops@",
            "a@example.com, b@example.com",
            "a@example.com>",
            "Ops <a@example.com> b",
            "a b@example.com",
            "a@exam ple.com",
            "a@example.com\r\nBcc: b@example.com",
            "{{input.to}}@example.com",
            "orgconfig:address",
        ] {
            assert_eq!(MailAddress::parse(no), None, "{no}");
        }
    }
}
