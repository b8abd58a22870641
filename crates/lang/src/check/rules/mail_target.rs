//! A target of `notify` that has not what its kind needs, or has what only another kind takes; and mail that can't be sent.

use serde_json::json;

use super::notify_target::PRIVATE;
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Project;
use crate::language::notify::{NotifyKind, NotifyTarget};
use crate::policy::host::{AllowedHost, is_private};
use crate::policy::mail::{HAS_EMAIL, MAX_RECIPIENTS, MailAddress, MailServer, NO_EMAIL};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::MAIL_TARGET, check };

const EXAMPLE: &str = "{\"kind\": \"email\", \"smtp\": \"smtps://mail.example.com:465\", \"from\": \"claims@example.com\", \
                       \"to\": [\"ops@example.com\"], \"username\": \"orgconfig:mail_user\", \"password\": \"orgconfig:mail_password\"}";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, target) in &project.notify {
        members(subject, name, target, found);
        if target.kind == NotifyKind::Email {
            mail(subject, project, name, target, found);
        }
    }
}

/// What is missing for its kind, and what the kind does not take.
fn members(subject: &Subject<'_>, name: &str, target: &NotifyTarget, found: &mut Vec<Diagnostic>) {
    let NotifyTarget { kind, url, smtp, from, to, username, password } = target;
    let is_mail = *kind == NotifyKind::Email;
    let given = [
        ("url", !is_mail, !is_mail, url.is_some()),
        ("smtp", is_mail, is_mail, smtp.is_some()),
        ("from", is_mail, is_mail, from.is_some()),
        ("to", is_mail, is_mail, to.is_some()),
        ("username", is_mail, password.is_some(), username.is_some()),
        ("password", is_mail, username.is_some(), password.is_some()),
    ];
    let help = if is_mail { EXAMPLE } else { "{\"kind\": \"slack\", \"url\": \"orgconfig:hook\"}" };
    for (field, takes, needs, is_given) in given {
        let at = format!("/notify/{}", token(name));
        if is_given && !takes {
            if let Some(cursor) = subject.in_project(&format!("{at}/{field}")) {
                let message = format!("a target of this kind takes no `{field}`");
                found.push(cursor.key().report(&RULE, message).help(help));
            }
        } else if takes
            && needs
            && !is_given
            && let Some(cursor) = subject.in_project(&at)
        {
            found.push(cursor.key().report(&RULE, format!("the target `{name}` needs `{field}`")).help(help));
        }
    }
}

/// What keeps mail from being sent.
fn mail(subject: &Subject<'_>, project: &Project, name: &str, target: &NotifyTarget, found: &mut Vec<Diagnostic>) {
    let at = |field: &str| subject.in_project(&format!("/notify/{}{field}", token(name)));
    if !HAS_EMAIL && let Some(cursor) = at("/kind") {
        found.push(cursor.report(&RULE, "no mail is sent".to_owned()).help(NO_EMAIL));
    }
    if let (Some(smtp), Some(cursor)) = (&target.smtp, at("/smtp")) {
        found.extend(server(subject, project, smtp, &cursor));
    }
    if let (Some(username), Some(cursor)) = (&target.username, at("/username"))
        && !is_secret(username)
        && (username.is_empty() || username.contains("{{") || username.contains("orgconfig:"))
    {
        let help = "a name that is written out, or `orgconfig:KEY` alone";
        found.push(cursor.report(&RULE, format!("{} is no name at a server", quoted(username))).help(help));
    }
    if let (Some(password), Some(cursor)) = (&target.password, at("/password"))
        && !is_secret(password)
    {
        let help = "name it in the project's `orgconfig`, and write `orgconfig:KEY` here";
        found.push(cursor.report(&RULE, "`password` is a secret, and is not written out".to_owned()).help(help));
    }
    let own = target.from.iter().map(|from| ("/from".to_owned(), from));
    let others = target.to.iter().flatten().enumerate().map(|(index, to)| (format!("/to/{index}"), to));
    for (field, address) in own.chain(others) {
        if MailAddress::parse(address).is_none()
            && let Some(cursor) = at(&field)
        {
            let message = format!("{} is no address of mail", quoted(address));
            found.push(cursor.report(&RULE, message).help("an address is written out: `Claims <claims@example.com>`"));
        }
    }
    let count = target.to.as_ref().map(Vec::len);
    let why = match count {
        Some(0) => "an empty `to` reaches nobody".to_owned(),
        Some(count) if count > MAX_RECIPIENTS => {
            format!("`to` has {count} addresses, and a message goes to at most {MAX_RECIPIENTS}")
        }
        _ => return,
    };
    let help = if count == Some(0) { EXAMPLE } else { "name a list of mail, or divide them among several targets" };
    found.extend(at("/to").map(|cursor| cursor.report(&RULE, why).help(help)));
}

/// What is wrong with the address of a server.
fn server(subject: &Subject<'_>, project: &Project, smtp: &str, cursor: &Cursor<'_>) -> Option<Diagnostic> {
    let Some(server) = MailServer::parse(smtp) else {
        let message = format!("{} is no address of a server of mail", quoted(&without_login(smtp)));
        let help = "smtps://mail.example.com:465, or smtp://mail.example.com:587";
        return Some(cursor.report(&RULE, message).help(help));
    };
    if is_private(&server.host) && !project.allow.private_addresses && subject.knows_project("/allow/private_addresses")
    {
        let message = format!("the host `{}` is private, local or reserved: each mail is refused", server.host);
        return Some(cursor.report(&RULE, message).help(PRIVATE));
    }
    let hosts = project.allow.hosts.as_ref().filter(|_| subject.knows_project("/allow/hosts"))?;
    let entries = hosts.iter().map(|text| AllowedHost::parse(text)).collect::<Option<Vec<_>>>()?;
    if entries.iter().any(|entry| entry.allows(&server.host, Some(server.port))) {
        return None;
    }
    let message = format!("the host `{}` is not in the project's `allow.hosts`: each mail is refused", server.host);
    let help = format!("add it: {}", json!({ "allow": { "hosts": [server.host] } }));
    Some(cursor.report(&RULE, message).help(help))
}

/// An address without the name and the password in it.
fn without_login(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    rest.rsplit_once('@').map_or_else(|| address.to_owned(), |(_, host)| format!("{scheme}://...@{host}"))
}

/// Whether a text is `orgconfig:KEY` and nothing else.
fn is_secret(text: &str) -> bool {
    let is_key = |key: &str| key.chars().all(|sign| sign.is_ascii_alphanumeric() || "_-".contains(sign));
    text.strip_prefix("orgconfig:").is_some_and(|key| !key.is_empty() && is_key(key))
}
