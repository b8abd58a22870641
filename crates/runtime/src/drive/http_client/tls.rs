//! What encrypts the connections of HTTP clients. It is passed to each client: a provider that is installed for the process would be the
//! host's too, which may want another one.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Who vouches for servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedRoots {
    /// The certificates that the system trusts.
    Platform,
    /// Nobody: for servers without TLS.
    Nobody,
}

/// The configuration of a client.
///
/// # Errors
/// When the provider has no protocol, or the system has no certificates.
pub fn client_config(roots: TrustedRoots) -> Result<ClientConfig, rustls::Error> {
    // The provider of the host, when it has chosen one.
    let provider =
        CryptoProvider::get_default().map_or_else(|| Arc::new(rustls::crypto::ring::default_provider()), Arc::clone);
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match roots {
        TrustedRoots::Platform => builder.with_platform_verifier()?,
        TrustedRoots::Nobody => builder.with_root_certificates(RootCertStore::empty()),
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
