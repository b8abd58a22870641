//! A host that the project's list does not have.

use std::collections::HashMap;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, codes};
use crate::language::Action;
use crate::policy::database_address;
use crate::policy::host::{AllowedHost, WrittenHost, spelling};
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::HOST_NOT_ALLOWED, check };

/// The most actions that the fault of a host names.
const MAX_RELATED: usize = 20;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let Some(written) = project.allow.hosts.as_ref().filter(|_| subject.knows_project("/allow/hosts")) else { return };
    // An entry that can't be read is reported separately, or is written in other letters: then nothing is certain.
    let Some(entries) = written.iter().map(|text| AllowedHost::parse(text)).collect::<Option<Vec<_>>>() else { return };
    let mut nearest = Nearest::default();
    for (name, datasource) in &project.datasources {
        let Some(server) = datasource.server() else { continue };
        let address = datasource.url.split_once(':').map_or("", |(_, address)| address);
        let is_allowed = |host: &str, port| {
            let host = spelling(host).unwrap_or_else(|| host.to_owned());
            entries.iter().any(|entry| entry.allows(&host, Some(port)))
        };
        let other = database_address::hosts(server, address).into_iter().find(|(host, port)| !is_allowed(host, *port));
        let cursor = subject.in_project(&format!("/datasources/{}/url", token(name)));
        if let (Some((host, _)), Some(cursor)) = (other, cursor.filter(|_| !database_address::has_password(address))) {
            let message = format!("the host `{host}` is not in the project's `allow.hosts`: each call is refused");
            found.push(cursor.report(&RULE, message).help(listed(written)));
        }
    }
    // Of each host the place of its fault in `found`: what is misspelt in the list is one mistake, however many actions name it.
    let mut reported: HashMap<String, usize> = HashMap::new();
    let mut actions: Vec<_> = subject.actions().iter().collect();
    actions.sort_by_cached_key(|used| {
        let place = used.at("/url").place();
        (place.file, place.start)
    });
    for used in actions {
        let Action::Http(http) = &*used.action else { continue };
        let Some(host) = WrittenHost::of(&http.url) else { continue };
        let cursor = used.at("/url").inside(host.range.clone());
        if host.is_template() {
            let end = host.end();
            if !end.is_empty() && !entries.iter().any(|entry| entry.may_allow(end)) {
                let message = format!("no host that ends with `{end}` is in the project's `allow.hosts`");
                found.push(cursor.report(&RULE, message).help(listed(written)));
            }
            continue;
        }
        let Some(name) = host.name().filter(|name| !entries.iter().any(|entry| entry.allows(name, host.port))) else {
            continue;
        };
        if let Some(first) = reported.get(host.text).and_then(|first| found.get_mut(*first)) {
            if first.related.len() < MAX_RELATED {
                *first = first.clone().related(&cursor.place(), format!("the action `{}` has it, too", used.name()));
            }
            if first.suggestion.take().is_some() {
                let near = first.help.as_deref().unwrap_or_default();
                let help = format!("{near}: either the list or these actions have a slip");
                *first = first.clone().help(help);
            }
            continue;
        }
        reported.insert(host.text.to_owned(), found.len());
        let message = format!("the host `{}` is not in the project's `allow.hosts`: each call is refused", host.text);
        let fault = cursor.report(&RULE, message);
        let near = nearest.of(&name, entries.iter().map(|entry| entry.name.as_str())).filter(|near| *near != name);
        found.push(match near.filter(|near| entries.iter().any(|entry| entry.allows(near, host.port))) {
            Some(near) => {
                let near = format!("{near}{}", host.written_port());
                fault.help(format!("the nearest one there is `{near}`")).suggest(near)
            }
            None => fault.help(listed(written)),
        });
    }
}

fn listed(hosts: &[String]) -> String {
    if hosts.is_empty() {
        return "the list is empty, and so nothing may be reached: add the host to it".to_owned();
    }
    let shown: Vec<&str> = hosts.iter().take(8).map(String::as_str).collect();
    let more = if hosts.len() > shown.len() { ", ..." } else { "" };
    format!("add it there, when it may be reached; the list has: {}{more}", shown.join(", "))
}
