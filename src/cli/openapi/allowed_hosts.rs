//! The hosts of pages, and `allow.hosts` of the project file.

use std::collections::BTreeSet;

use super::OpenApiProject;
use crate::policy::host::{AllowedHost, WrittenHost};
use crate::syntax::parse;

/// The hosts of addresses that the project's `allow.hosts` does not have; none when the project has no such list.
pub fn missing(project: &OpenApiProject, servers: &BTreeSet<String>) -> BTreeSet<String> {
    let Some(written) = &project.settings.allow.hosts else { return BTreeSet::new() };
    let entries: Vec<AllowedHost> = written.iter().filter_map(|text| AllowedHost::parse(text)).collect();
    let refused = |server: &String| {
        let host = WrittenHost::of(server)?;
        let name = host.name()?;
        let is_allowed = entries.iter().any(|entry| entry.allows(&name, host.port));
        (!is_allowed).then(|| format!("{name}{}", host.written_port()))
    };
    servers.iter().filter_map(refused).collect()
}

/// The text of the project file with more hosts in `allow.hosts`; none where the list can't be found.
pub fn added(project: &OpenApiProject, hosts: &BTreeSet<String>) -> Option<String> {
    let (tree, faults) = parse(&project.source);
    let list = tree.root.get("allow")?.get("hosts")?;
    let items = list.items().filter(|_| faults.is_empty())?;
    let text = &project.source.text;
    let new: Vec<String> = hosts.iter().map(|host| serde_json::Value::from(host.as_str()).to_string()).collect();
    let (at, begin) = match items.last() {
        Some(last) => (last.span.end, ", "),
        None => (list.span.start.saturating_add(1), ""),
    };
    let (before, after) = text.split_at_checked(at)?;
    Some(format!("{before}{begin}{}{after}", new.join(", ")))
}
