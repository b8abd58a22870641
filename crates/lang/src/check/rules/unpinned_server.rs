//! An MCP server that may be another program tomorrow: no version says which one is meant.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::mcp::McpServer;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::UNPINNED_SERVER, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, server) in &project.mcp {
        let place = format!("/mcp/{}", token(name));
        let at = unversioned(server);
        if let Some((index, package, form)) = &at
            && let Some(cursor) = subject.in_project(&format!("{place}/args/{index}"))
        {
            let message = format!("`{package}` has no version: each start may run another program");
            found.push(cursor.report(&RULE, message).help(format!("write the one that was looked at: {form}")));
        }
        let is_open = server.url.as_deref().is_some_and(|url| !url.starts_with("https://"));
        if server.trust_annotations
            && (is_open || at.is_some())
            && let Some(cursor) = subject.in_project(&format!("{place}/trust_annotations"))
        {
            let message = format!("`{name}` is trusted about what its tools do, and anybody may take its place");
            found.push(cursor.report(&RULE, message).help("trust a server over https, or a program with a version"));
        }
    }
}

/// The argument that names a package without a version, and how one with a version is written.
fn unversioned(server: &McpServer) -> Option<(usize, String, String)> {
    let program = server.command.as_deref()?.rsplit(['/', '\\']).next()?;
    let words = || server.args.iter().enumerate().filter(|(_, arg)| !arg.starts_with('-'));
    let (index, package, form) = match program {
        "npx" => {
            let (index, package) = words().next()?;
            let has_version = package.rfind('@').is_some_and(|at| at > 0) && !package.ends_with("@latest");
            (index, package, (!has_version).then(|| format!("{}@1.2.3", package.trim_end_matches("@latest")))?)
        }
        "uvx" => {
            let (index, package) = words().next()?;
            let has_version = (package.contains("==") || package.contains('@')) && !package.ends_with("@latest");
            (index, package, (!has_version).then(|| format!("{}==1.2.3", package.trim_end_matches("@latest")))?)
        }
        "pipx" => {
            let (index, package) = words().find(|(_, arg)| *arg != "run")?;
            (index, package, (!package.contains("==")).then(|| format!("{package}==1.2.3"))?)
        }
        "docker" | "podman" => {
            let is_tagged = |image: &str| {
                let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
                tag.is_some_and(|tag| tag != "latest") || image.contains("@sha256:")
            };
            let words: Vec<_> = words().filter(|(_, arg)| *arg != "run").collect();
            if words.iter().any(|(_, arg)| is_tagged(arg)) {
                return None;
            }
            let (index, image) = words.last().copied()?;
            (index, image, format!("{}:1.2.3", image.trim_end_matches(":latest")))
        }
        _ => return None,
    };
    // A folder or an address is no package.
    let is_path = package.starts_with(['.', '/']) || package.contains("://");
    (!is_path).then(|| (index, package.clone(), form))
}
