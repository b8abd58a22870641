//! A time zone of a workflow that has no such name.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::program::timetable::{zone, zone_names};
use crate::syntax::document::DocumentKind;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::UNKNOWN_ZONE, check };

const AT: &str = "/definition/timezone";

/// What is wrong with the name of a time zone.
pub(super) struct ZoneFault {
    pub message: String,
    pub help: String,
    /// The name that was meant.
    pub meant: Option<String>,
}

impl ZoneFault {
    /// The fault of a name; none for that of a zone.
    pub fn of(name: &str) -> Option<Self> {
        if zone(name).is_some() {
            return None;
        }
        let names = zone_names();
        let meant = names.iter().find(|known| known.eq_ignore_ascii_case(name)).cloned();
        let near = nearest(name, names.iter().map(String::as_str)).filter(|_| meant.is_none() && name.contains('/'));
        let usual = "the IANA name of the zone: `Europe/Berlin`, `America/New_York`, `UTC`";
        let help = near.map_or_else(|| usual.to_owned(), |near| format!("did you mean `{near}`?"));
        Some(Self { message: format!("{} is no name of a time zone", quoted(name)), help, meant })
    }
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let document = subject.document();
    if document.kind != Some(DocumentKind::Workflow) || subject.is_step() || subject.is_faulty(AT) {
        return;
    }
    let name = document.value.pointer(AT).and_then(Value::as_str);
    let Some(ZoneFault { message, help, meant }) = name.and_then(ZoneFault::of) else { return };
    let fault = subject.at(AT).report(&RULE, message).help(help);
    found.push(match meant {
        Some(meant) => fault.suggest(quoted(&meant)),
        None => fault,
    });
}
