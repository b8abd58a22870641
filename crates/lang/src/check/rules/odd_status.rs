//! A list of statuses that no response can be in.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;

pub const RULE: Rule = Rule { code: codes::ODD_STATUS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Http(http) = &*used.action else { continue };
        let Some(statuses) = &http.ok_status else { continue };
        let cursor = used.at("/ok_status");
        if statuses.is_empty() {
            let fault = cursor.report(&RULE, "no status counts as success: each call would fail");
            found.push(fault.help("name some, as in [200, 404], or take it out: then 200 to 299 do"));
        }
        for (at, status) in statuses.iter().enumerate().filter(|(_, status)| !(100..600).contains(*status)) {
            let fault = cursor.below(&format!("/{at}")).report(&RULE, format!("{status} is no status of HTTP"));
            found.push(fault.help("they go from 100 to 599"));
        }
    }
}
