//! Addresses of database servers, as a project file writes them: `postgres://USER@HOST:PORT/DATABASE?name=value`, or
//! `mysql://...`.

use url::form_urlencoded;

use super::secret_shapes;

/// Whether this build can reach MySQL servers.
pub const HAS_MYSQL: bool = cfg!(feature = "mysql");
/// What is said of a MySQL server by a build that can't reach one.
pub const NO_MYSQL: &str = "this loopctl was built without MySQL: build it with its cargo feature `mysql`";

/// What kind of server a database is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseServer {
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    Mysql,
    /// Its address is not known.
    Unknown,
}

impl DatabaseServer {
    /// That of an address with this scheme; none for files, and for addresses that are written elsewhere.
    pub fn of(scheme: &str) -> Option<Self> {
        match scheme {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }

    /// The port of a server whose address names none.
    fn port(self) -> u16 {
        if self == Self::Mysql { 3306 } else { 5432 }
    }

    /// How an address is written.
    pub fn form(self) -> &'static str {
        if self == Self::Mysql { "mysql://USER@HOST/DATABASE" } else { "postgres://USER@HOST/DATABASE" }
    }
}

/// Whether an address holds a password. `address` is what follows the scheme and its colon.
pub fn has_password(address: &str) -> bool {
    let (authority, query) = parts(address);
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
        || query.split('&').any(|part| part.starts_with("password="))
}

/// Whether a text that is no address and no path may be a key, or the parts of an address with a password.
pub fn may_hold_a_secret(written: &str) -> bool {
    let is_part = |c: char| c.is_whitespace() || matches!(c, '=' | '@');
    written.contains(is_part) || !secret_shapes::find(written).is_empty()
}

/// The hosts of an address that are reached over a network, with their ports.
pub fn hosts(server: DatabaseServer, address: &str) -> Vec<(String, u16)> {
    let (authority, query) = parts(address);
    let authority = authority.split_once('/').map_or(authority, |(authority, _)| authority);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    let parameter = |name: &str| {
        let found = form_urlencoded::parse(query.as_bytes()).filter(move |(key, _)| key == name);
        found.flat_map(|(_, value)| value.split(',').map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let mut ports: Vec<Option<u16>> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for written in authority.split(',').filter(|written| !written.is_empty()) {
        let (name, port) =
            match written.rsplit_once(':').filter(|(name, _)| !name.starts_with('[') || name.ends_with(']')) {
                Some((name, port)) => (name, port.parse().ok()),
                None => (written, None),
            };
        names.push(name.to_owned());
        ports.push(port);
    }
    names.extend(parameter("host"));
    ports.extend(parameter("port").iter().map(|port| port.parse().ok()));
    let port = |at: usize| ports.get(at).or_else(|| ports.first()).copied().flatten().unwrap_or(server.port());
    let hosts = names.into_iter().enumerate().map(|(at, name)| (name, port(at)));
    // What begins with a slash is the folder of a socket.
    hosts.filter(|(name, _)| !name.starts_with('/') && !name.to_ascii_lowercase().starts_with("%2f")).collect()
}

/// What is before the question mark, without the slashes of the scheme, and what is behind it.
fn parts(address: &str) -> (&str, &str) {
    let address = address.strip_prefix("//").unwrap_or(address);
    address.split_once('?').unwrap_or((address, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_is_found_and_one_without_is_not() {
        for address in ["//ada:s3cret@h/d", "//ada:@h/d", "//ada@h/d?sslmode=disable&password=s3cret", "//:p@h:5432/d"]
        {
            assert!(has_password(address), "{address}");
        }
        for address in ["//ada@h/d", "//h:5432/d", "//ada@h1:1,h2:2/d?lease_ms=2000"] {
            assert!(!has_password(address), "{address}");
        }
    }

    #[test]
    fn the_hosts_of_an_address_are_those_that_are_dialled() {
        for (address, hosts) in [
            ("//ada@db.example.com/d", vec![("db.example.com", 5432)]),
            ("//ada@h1:1,h2:2/d", vec![("h1", 1), ("h2", 2)]),
            ("//ada@%2Fvar%2Frun/d", vec![]),
            ("//[::1]:99/d", vec![("[::1]", 99)]),
            ("///d?host=a,b&port=7", vec![("a", 7), ("b", 7)]),
        ] {
            let hosts: Vec<(String, u16)> = hosts.into_iter().map(|(name, port)| (name.to_owned(), port)).collect();
            assert_eq!(super::hosts(DatabaseServer::Postgres, address), hosts, "{address}");
        }
    }
}
