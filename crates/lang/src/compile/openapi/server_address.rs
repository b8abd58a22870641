//! Where requests are sent: the server of a page, or the host that a caller names.

use url::Url;

use super::page_files::PagePart;
use crate::policy::host::{literal, spelling};

/// The address before the paths of operations, without a `/` at its end.
///
/// # Errors
/// Why nothing can be sent there, in a sentence without a final stop.
pub(super) fn address(parts: [PagePart<'_>; 3], host: Option<&str>) -> Result<String, String> {
    let written = parts.into_iter().rev().find_map(|holder| holder.get("servers")?.items().next());
    let written = match written {
        Some(server) => filled(server)?,
        None => "/".to_owned(),
    };
    match host {
        Some(whole) if whole.contains("://") => judged(whole),
        Some(host) => {
            let path = if written.contains("://") {
                parsed(&written)?.path().to_owned()
            } else {
                format!("/{}", written.trim_start_matches('/'))
            };
            judged(&format!("https://{host}{path}"))
        }
        None if written.contains("://") => judged(&written),
        None => Err(format!("the page names no host: its server is `{written}`")),
    }
}

/// The address of a server with the defaults of its variables.
fn filled(server: PagePart<'_>) -> Result<String, String> {
    let written = server.text("url").ok_or("a server has no address")?;
    let mut address = written.to_owned();
    for (name, variable) in server.get("variables").into_iter().flat_map(PagePart::members) {
        let value = variable.text("default").unwrap_or_default();
        let mark = format!("{{{name}}}");
        let before = written.split_once("://").map_or("", |(_, rest)| rest).split_once(&mark).map(|(before, _)| before);
        // One of these in a part of the host would end it, and what is behind it would be another host.
        if before.is_some_and(|before| !before.contains('/')) && value.contains(['/', '?', '#', '@', '\\']) {
            return Err(format!(
                "the variable `{name}` of the server `{written}` has `{value}`, which is no part of a host"
            ));
        }
        address = address.replace(&format!("{{{name}}}"), value);
    }
    if address.contains(['{', '}']) {
        return Err(format!("the server `{written}` has a variable without a value"));
    }
    Ok(address)
}

fn parsed(address: &str) -> Result<Url, String> {
    Url::parse(address).map_err(|error| format!("the server `{address}` is no address: {error}"))
}

/// An address that may be sent to.
fn judged(address: &str) -> Result<String, String> {
    let refused = |why: &str| Err(format!("the server `{address}` {why}"));
    // A text with these would be read as more than an address.
    if address.contains("orgconfig:") || address.contains(['{', '}']) {
        return refused("is no address alone");
    }
    let url = parsed(address)?;
    let Some(host) = url.host_str().and_then(spelling) else { return refused("names no host") };
    if !url.username().is_empty() || url.password().is_some() {
        return refused("has a user name or a password in it");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refused("has more than a path");
    }
    let is_here = host == "localhost" || literal(&host).is_some_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => {}
        "http" if is_here => {}
        "http" => {
            return refused("is http://, and what is sent leaves this machine in the clear");
        }
        _ => return refused("is neither https:// nor http://"),
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
