//! The client, over `reqwest`.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
pub use reqwest::{Client, Error, Request, Response};

use super::tls::{TrustedRoots, client_config};
use crate::drive::egress::Egress;

/// A client that dials only what the guard allows, each time for so long, and keeps at most `idle` unused connections to a host.
/// It follows no redirects and retries nothing: the caller decides about both.
///
/// # Errors
/// When no TLS can be set up.
pub fn guarded(egress: &Egress, idle: usize, dials_for: Duration) -> Result<Client, String> {
    // A machine without root certificates can still ask plain http servers.
    let config = client_config(TrustedRoots::Platform).or_else(|_| client_config(TrustedRoots::Nobody));
    Client::builder()
        .tls_backend_preconfigured(config.map_err(|error| error.to_string())?)
        // A proxy would look names up itself, past the guard.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .pool_max_idle_per_host(idle)
        .connect_timeout(dials_for)
        .user_agent(concat!("loopctl/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(egress.clone())
        .build()
        .map_err(|error| error.to_string())
}

/// A client of the servers of models, which dials for so long.
///
/// # Errors
/// When no TLS can be set up.
pub fn of_models(secure: bool, dials_for: Duration) -> Result<Client, String> {
    let roots = if secure { TrustedRoots::Platform } else { TrustedRoots::Nobody };
    let config = client_config(roots).map_err(|error| error.to_string())?;
    let builder = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        // All attempts are those of `model::ask`. One of the client's own would need a copy of each request.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .connect_timeout(dials_for)
        .tcp_nodelay(true);
    builder.tls_backend_preconfigured(config).build().map_err(|error| error.to_string())
}

/// Whether a cause of an error is a fault of TLS. An `io::Error` does not return what it wraps as its source.
pub fn is_tls_fault(error: &(dyn StdError + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_tls_fault(inner))
}

impl Resolve for Egress {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let allowed = guard.addresses(name.as_str()).await?;
            // Port 0 means the URL's own port.
            let sockets: Addrs = Box::new(allowed.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(sockets)
        })
    }
}
