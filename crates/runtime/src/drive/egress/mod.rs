//! The egress guard: which hosts and addresses tools may reach. The guard looks a name up once, and exactly the
//! addresses that it allowed are dialled.

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::drive::http_client::{Client, guarded};
use loopctl_lang::language::project::Allow;
use loopctl_lang::policy::address::is_public;
use loopctl_lang::policy::host::{self, AllowedHost, literal, without_dot};

/// The addresses of a name, later.
pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names become addresses.
pub type NameLookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;

/// Why something may not, or can't, be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressFault {
    /// The project does not allow it; a sentence that names the host.
    #[error("{0}")]
    NotAllowed(String),
    /// The name has no address; a sentence that names it.
    #[error("{0}")]
    NotFound(String),
}

/// The guard of a project.
#[derive(Clone)]
pub struct Egress {
    hosts: Option<Arc<[AllowedHost]>>,
    private: bool,
    lookup: NameLookup,
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("hosts", &self.hosts).field("private", &self.private).finish_non_exhaustive()
    }
}

impl Egress {
    /// The guard for a project's `allow`. An entry of `hosts` that is no host allows nothing.
    pub fn new(allow: &Allow) -> Self {
        Self::with_lookup(allow, Arc::new(|name| Box::pin(system_lookup(name))))
    }

    /// The same with another way to look names up.
    pub fn with_lookup(allow: &Allow, lookup: NameLookup) -> Self {
        let hosts =
            allow.hosts.as_ref().map(|hosts| hosts.iter().filter_map(|text| AllowedHost::parse(text)).collect());
        Self { hosts, private: allow.private_addresses, lookup }
    }

    /// A client that dials only what the guard allows, each time for so long, and keeps at most `idle` unused connections to
    /// a host.
    /// It follows no redirects and retries nothing: the caller decides about both.
    ///
    /// # Errors
    /// When no TLS can be set up.
    pub fn client(&self, idle: usize, dials_for: Duration) -> Result<Client, String> {
        guarded(self, idle, dials_for)
    }

    /// Whether a URL may be requested, as far as its text shows: its scheme, its host by `allow.hosts`, and its
    /// address when it is written as one. Names are checked again when they are looked up.
    ///
    /// # Errors
    /// A sentence that names the host.
    pub fn check(&self, url: &Url) -> Result<(), EgressFault> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressFault::NotAllowed(format!("only http and https are allowed, not `{}`", url.scheme())));
        }
        let host = without_dot(url.host_str().unwrap_or_default());
        if host.is_empty() {
            return Err(EgressFault::NotAllowed("the address has no host".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressFault::NotAllowed(format!(
                "an address with a user name or a password is refused (host `{host}`)"
            )));
        }
        self.check_listed(host, url.port_or_known_default())?;
        match literal(host) {
            Some(address) => self.permit(host, address),
            None => self.check_name(host),
        }
    }

    /// Whether `allow.hosts` allows a host; without the list, it allows every one. The server of a datasource needs
    /// no more: the project names its host, and no value chooses it, so it may be on a private address.
    ///
    /// # Errors
    /// A sentence that names the host.
    pub fn check_listed(&self, host: &str, port: Option<u16>) -> Result<(), EgressFault> {
        match &self.hosts {
            Some(rules) if !rules.iter().any(|rule| rule.allows(host, port)) => Err(EgressFault::NotAllowed(format!(
                "the host `{host}` is not in the project's `allow.hosts`{}",
                port.map_or_else(String::new, |port| format!(" (port {port})"))
            ))),
            _ => Ok(()),
        }
    }

    /// Whether an address may be dialled.
    pub fn permits(&self, address: IpAddr) -> bool {
        self.private || is_public(address)
    }

    fn permit(&self, host: &str, address: IpAddr) -> Result<(), EgressFault> {
        if self.permits(address) { Ok(()) } else { Err(private(host)) }
    }

    fn check_name(&self, name: &str) -> Result<(), EgressFault> {
        if !self.private && host::is_private(name) { Err(private(name)) } else { Ok(()) }
    }

    /// Looks a name up, once, and returns the addresses that may be dialled.
    ///
    /// # Errors
    /// When the name has no address, or none that is allowed.
    pub async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, EgressFault> {
        self.check_name(name)?;
        let found = (self.lookup)(name.to_owned())
            .await
            .map_err(|error| EgressFault::NotFound(format!("the name `{name}` was not found: {error}")))?;
        if found.is_empty() {
            return Err(EgressFault::NotFound(format!("the name `{name}` has no address")));
        }
        let allowed: Vec<IpAddr> = found.into_iter().filter(|address| self.permits(*address)).collect();
        if allowed.is_empty() { Err(private(name)) } else { Ok(allowed) }
    }
}

fn private(host: &str) -> EgressFault {
    EgressFault::NotAllowed(format!(
        "the host `{host}` is private, local or reserved; `allow.private_addresses` in loopctl.json allows such hosts"
    ))
}

async fn system_lookup(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.map(|socket| socket.ip()).collect())
}
