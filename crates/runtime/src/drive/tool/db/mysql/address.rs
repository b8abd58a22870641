//! Where a MySQL database is, and how it is reached. The password is in no message.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};
use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use secrecy::ExposeSecret as _;
use url::Url;

use crate::drive::egress::Egress;
use crate::drive::tool::db::address::DatabaseAddress;
use crate::drive::tool::db::rows::MAX_BYTES;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::database_address::DatabaseServer;
use loopctl_lang::policy::host;

/// The port of a server whose address names none.
const PORT: u16 = 3306;
/// How long one attempt to connect may take, unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest row that is read, and the longest statement that is sent, in bytes.
const MAX_PACKET: usize = MAX_BYTES + (1 << 20);

/// How long a server keeps a connection that nothing uses, in seconds; the driver asks for it if it is not given.
const WAIT_TIMEOUT: usize = 28_800;

/// Where a database is, and how it is reached.
pub(super) struct MysqlAddress {
    pub(super) options: Opts,
    pub(super) connect_timeout: Duration,
}

impl MysqlAddress {
    /// The host and the port, or the socket, for messages.
    pub(super) fn server(&self) -> String {
        match self.options.socket() {
            Some(socket) => socket.to_owned(),
            None => format!("{}:{}", self.options.ip_or_hostname(), self.options.tcp_port()),
        }
    }
}

/// What an address says behind its question mark.
struct AddressParameters {
    is_protected: Option<bool>,
    root_certificates: Option<PathBuf>,
    connect_timeout: Duration,
}

/// Reads the address of a datasource.
///
/// # Errors
/// When it is none, or its host is not allowed.
pub(super) fn read(address: &DatabaseAddress, egress: &Egress) -> Result<MysqlAddress, ToolFault> {
    let refuse = |why: String| fault("database: not configured", format!("datasource `{}`: {why}", address.name));
    // Its parts can't be distinguished, so nothing of it is shown.
    let none = || refuse(format!("it is no address of a database: write {}", DatabaseServer::Mysql.form()));
    let url = Url::parse(address.url.expose_secret()).map_err(|_| none())?;
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|text| text.into_owned()).map_err(|_| none());
    let written = url.host_str().filter(|name| !name.is_empty()).ok_or_else(none)?;
    if written.contains(',') {
        return Err(refuse("it names several hosts, and one is tried".to_owned()));
    }
    let host = decoded(written)?;
    let socket = host.starts_with('/').then(|| host.clone());
    let port = url.port().unwrap_or(PORT);
    if socket.is_none() {
        let name = host::spelling(written).unwrap_or_else(|| host.clone());
        egress.check_listed(&name, Some(port)).map_err(|why| fault("address not allowed", why.to_string()))?;
    }
    let database = decoded(url.path().trim_start_matches('/'))?;
    if database.is_empty() {
        return Err(refuse("it names no database".to_owned()));
    }
    let parameters = parameters(&url, &address.root).map_err(refuse)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_protected = parameters.is_protected.unwrap_or(socket.is_none() && !is_local(&host));
    let tls = if is_protected { Some(tls(parameters.root_certificates.as_deref()).map_err(refuse)?) } else { None };
    let password = match &address.password {
        Some(password) => Some(password.expose_secret().to_owned()),
        None => url.password().map(decoded).transpose()?,
    };
    let user = decoded(url.username())?;
    let options = OptsBuilder::default()
        .ip_or_hostname(host)
        .tcp_port(port)
        .socket(socket)
        // A server may not send a connection elsewhere.
        .prefer_socket(false)
        .user(Some(user).filter(|user| !user.is_empty()))
        .pass(password)
        .db_name(Some(database))
        .ssl_opts(tls)
        .max_allowed_packet(Some(MAX_PACKET))
        .wait_timeout(Some(WAIT_TIMEOUT))
        .stmt_cache_size(0)
        // As other databases count: the rows that were found, also where they had the values already.
        .client_found_rows(true);
    Ok(MysqlAddress { options: options.into(), connect_timeout: parameters.connect_timeout })
}

fn parameters(url: &Url, base: &Path) -> Result<AddressParameters, String> {
    let mut read = AddressParameters { is_protected: None, root_certificates: None, connect_timeout: CONNECT_TIMEOUT };
    for (key, value) in url.query_pairs() {
        match (&*key, &*value) {
            ("sslmode", "disable") => read.is_protected = Some(false),
            ("sslmode", "verify-full") => read.is_protected = Some(true),
            ("sslmode", _) => {
                return Err(
                    "`sslmode` in its address is `verify-full` or `disable`: a certificate that nobody checks \
                            protects nothing"
                        .to_owned(),
                );
            }
            ("sslrootcert", file) => read.root_certificates = Some(base.join(file)),
            ("connect_timeout", seconds) => {
                let seconds = seconds.parse().ok().filter(|seconds| *seconds > 0);
                read.connect_timeout =
                    Duration::from_secs(seconds.ok_or("`connect_timeout` in its address is a number of seconds")?);
            }
            _ => {
                return Err("its address has a parameter that is not known: these are sslmode, sslrootcert and \
                            connect_timeout"
                    .to_owned());
            }
        }
    }
    Ok(read)
}

/// Whether nobody can listen between this machine and the host.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The certificates that are trusted: those of the file, or the machine's.
fn tls(root_certificates: Option<&Path>) -> Result<SslOpts, String> {
    let trusted: Vec<Vec<u8>> = match root_certificates {
        Some(file) => {
            let unreadable = |error| format!("`sslrootcert` {} can't be read: {error}", file.display());
            vec![std::fs::read(file).map_err(unreadable)?]
        }
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            // One that can't be used would fail each connection.
            let is_usable = |certificate: &rustls::pki_types::CertificateDer<'static>| {
                RootCertStore::empty().add(certificate.clone()).is_ok()
            };
            found.into_iter().filter(is_usable).map(|certificate| certificate.to_vec()).collect()
        }
    };
    let trusted = trusted.into_iter().map(Into::into).collect();
    Ok(SslOpts::default().with_root_certs(trusted).with_disable_built_in_roots(true))
}
