//! A body in a request that reads.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::action::Method;

pub const RULE: Rule = Rule { code: codes::BODY_OF_GET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions().iter().filter(|used| used.knows(&["/http_method"])) {
        let Action::Http(http) = &*used.action else { continue };
        let (Method::Get | Method::Head) = http.http_method else { continue };
        let method = http.http_method.as_str();
        if http.body.is_none() {
            let cursor = used.at("/content_type");
            if cursor.is_written() {
                let message = format!("`content_type` has no effect: a {method} request has no body");
                found.push(
                    cursor
                        .key()
                        .report(&RULE, message)
                        .help("which type an answer has is asked with the header `Accept`"),
                );
            }
            continue;
        }
        let fault = used
            .at("/body")
            .key()
            .report(&RULE, format!("a {method} request with a body: most servers do not read it"));
        found.push(fault.help("let the values go to `query`, or write \"http_method\": \"POST\""));
    }
}
