//! A query that writes, in an action that only reads.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::action::DbAction;
use crate::policy::database_address::DatabaseServer;
use crate::policy::mysql;
use crate::policy::statement::{self, StatementEffect};

pub const RULE: Rule = Rule { code: codes::REFUSED_WRITE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions().iter().filter(|used| used.knows(&["/read_only"])) {
        let Action::Db(db) = &*used.action else { continue };
        let Some((StatementEffect::Writes, range)) = statement::verb(&db.query).filter(|_| db.read_only) else {
            if let Some(why) = refused_by_mysql(subject, db) {
                found.push(used.at("/query").report(&RULE, why).help("if it shall write, say \"read_only\": false"));
            }
            continue;
        };
        let word = db.query.get(range.clone()).unwrap_or_default().to_ascii_uppercase();
        let fault = used
            .at("/query")
            .inside(range)
            .report(&RULE, format!("the query writes ({word}), and the action only reads"));
        let written = used.at("/read_only");
        found.push(if written.is_written() {
            fault.help("the database will refuse it: if it shall write, say \"read_only\": false").related(&written.place(), "it is said here")
        } else {
            fault.help("the database will refuse it: `read_only` is true by default; if it shall write, say \"read_only\": false")
        });
    }
}

/// Why a call that only reads may not be this query for MySQL, if one that writes may be it.
fn refused_by_mysql(subject: &Subject<'_>, db: &DbAction) -> Option<String> {
    let datasource = subject.project()?.datasources.get(&db.datasource)?;
    if !db.read_only || datasource.server() != Some(DatabaseServer::Mysql) {
        return None;
    }
    mysql::refusal(&db.query, true).filter(|_| mysql::refusal(&db.query, false).is_none())
}
