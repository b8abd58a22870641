//! A limit of calls that bounds nothing, or that another one always reaches first.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::call_limits::{CallLimits, CallRate};
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::IDLE_CALL_LIMIT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, limits) in &project.action_limits {
        let at = format!("/action_limits/{}", token(name));
        if limits.is_empty() && subject.knows_project(&at) {
            let message = format!("the limits of the action `{name}` have no amount: its calls are made as runs like");
            report(subject, found, &at, message, "give it a `rate`, `max_concurrency` or a `circuit`");
        }
        rate(subject, found, &at, *limits);
    }
    for (name, datasource) in &project.datasources {
        rate(subject, found, &format!("/datasources/{}", token(name)), datasource.call_limits());
    }
    for (name, server) in &project.mcp {
        rate(subject, found, &format!("/mcp/{}", token(name)), server.call_limits());
    }
    for used in subject.actions() {
        let limits = project.action_limits.get(used.name());
        let own = limits.and_then(|limits| limits.max_concurrency);
        let name = used.action.kind().datasource();
        let around = name.and_then(|name| Some((name, project.datasources.get(name)?.max_concurrency?)));
        let Some((own, (name, most))) = own.zip(around).filter(|(own, (_, most))| own > most) else { continue };
        let at = format!("/action_limits/{}/max_concurrency", token(used.name()));
        let action = used.name();
        let message =
            format!("the action `{action}` may make {own} calls at once, and its datasource `{name}` lets {most} in");
        report(subject, found, &at, message, "lower it, or raise `max_concurrency` of the datasource");
    }
}

fn rate(subject: &Subject<'_>, found: &mut Vec<Diagnostic>, at: &str, limits: CallLimits) {
    let Some(rate) = limits.rate else { return };
    let at = format!("{at}/rate");
    if rate == CallRate::default() && subject.knows_project(&at) {
        let message = "the rate has no amount: calls are made as often as runs like".to_owned();
        report(subject, found, &at, message, "give it `per_second`, or `per_minute`");
    }
    if let (Some(second), Some(minute)) = (rate.per_second, rate.per_minute) {
        let message =
            format!("a rate is of seconds or of minutes, and this is {second} in a second and {minute} in a minute");
        report(subject, found, &at, message, "keep the one that what is called keeps to, and remove the other");
    }
}

fn report(subject: &Subject<'_>, found: &mut Vec<Diagnostic>, at: &str, message: String, help: &str) {
    if let Some(cursor) = subject.in_project(at)
        && !subject.is_reported(&cursor.place())
    {
        found.push(cursor.report(&RULE, message).help(help.to_owned()));
    }
}
