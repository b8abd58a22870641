//! A query that only reads, in an action that may write.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::policy::statement::{self, StatementEffect};

pub const RULE: Rule = Rule { code: codes::NEEDLESS_WRITE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions().iter().filter(|used| used.knows(&["/read_only"])) {
        let Action::Db(db) = &*used.action else { continue };
        if let Some((StatementEffect::Reads, _)) = statement::verb(&db.query).filter(|_| !db.read_only) {
            let fault = used.at("/read_only").report(&RULE, "the query only reads, and the action may write");
            found.push(
                fault.help("take it out, or write true: then the database itself refuses writes").suggest("true"),
            );
        }
    }
}
