//! Limits of a loop that contradict each other.

use std::collections::HashSet;

use crate::check::{Cursor, Rule, Subject, model, request_size};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ReactProperties;
use crate::language::react::{Dialect, OnLimit, RequiredTools};
use crate::policy::window::max_tokens;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::LIMITS_AT_ODDS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // Each needs its own properties only: an error in another one hides nothing.
    found.extend(
        subject.react(&["history/max_messages", "history/keep_last"]).and_then(|react| messages(subject, react)),
    );
    found.extend(
        subject.react(&["history/context_tokens", "max_tokens", "model"]).and_then(|react| window(subject, react)),
    );
    found.extend(subject.react(&["budget/tokens", "max_tokens", "model"]).and_then(|react| reply(subject, react)));
    found
        .extend(subject.react(&["retry/base_ms", "retry/max_ms", "timeout_ms"]).and_then(|react| wait(subject, react)));
    found.extend(
        subject
            .react(&["require_tool_before_answer", "max_iterations", "on_limit", "dialect", "max_tool_calls_per_turn"])
            .and_then(|react| first_call(subject, react)),
    );
    shares(subject, found);
    super::flow_limits::check(subject, found);
}

/// `keep_last` keeps more messages than `max_messages` allows.
fn messages(subject: &Subject<'_>, react: &ReactProperties) -> Option<Diagnostic> {
    let history = react.history.as_ref()?;
    let (most, kept) = (history.max_messages?, history.keep_last);
    let cursor = subject.property("history/max_messages").filter(|_| kept >= most)?;
    let fault =
        cursor.report(&RULE, format!("the last {kept} messages stay, and {most} are allowed in all: none goes"));
    Some(match subject.property("history/keep_last") {
        Some(kept) => fault.help("make `keep_last` smaller than `max_messages`").related(&kept.place(), "so many stay"),
        None => {
            fault.help(format!("`keep_last` is {kept} by default: write a smaller one, or a larger `max_messages`"))
        }
    })
}

/// A history that is larger than the model's window.
fn window(subject: &Subject<'_>, react: &ReactProperties) -> Option<Diagnostic> {
    let most = react.history.as_ref()?.context_tokens?;
    let model = model::named(subject, react.model.as_deref())?;
    let window = model.declared?.context_tokens?;
    let reply = react.max_tokens.unwrap_or_else(|| max_tokens(Some(window)));
    let room = window.saturating_sub(u64::from(reply));
    // A reply that takes the whole window is reported as such.
    let cursor = subject.property("history/context_tokens").filter(|_| most > room && room > 0)?;
    let name = model.name;
    let message = format!("a request may have {most} tokens, and the window of `{name}` has {window} with the reply");
    let help = format!("give `context_tokens` {room} or less: the window less `max_tokens`; that is the default, too");
    let fault = cursor.report(&RULE, message).help(help);
    let declared = subject.in_project(&format!("/models/{}/context_tokens", token(name)));
    Some(match declared {
        Some(declared) => fault.related(&declared.place(), "the window is said here"),
        None => fault,
    })
}

/// A budget that one reply may use up.
fn reply(subject: &Subject<'_>, react: &ReactProperties) -> Option<Diagnostic> {
    let most = react.budget.as_ref()?.tokens?;
    let model = model::named(subject, react.model.as_deref());
    let window = model.and_then(|model| model.declared?.context_tokens);
    let reply = u64::from(react.max_tokens.unwrap_or_else(|| max_tokens(window)));
    // Where not even the first request fits, that is reported.
    if request_size::first_request(subject).is_some_and(|needed| needed >= most) {
        return None;
    }
    let cursor = subject.property("budget/tokens").filter(|_| most < reply)?;
    let fault = cursor.report(&RULE, format!("one reply may have {reply} tokens, and the whole run has {most}"));
    Some(match subject.property("max_tokens") {
        Some(written) => {
            let fault = fault.help("make `max_tokens` smaller, or the budget larger");
            fault.related(&written.place(), "a reply is bounded here")
        }
        None => fault.help(format!("`max_tokens` is {reply} by default: write a smaller one, or a larger budget")),
    })
}

/// A wait before a retry that is longer than the run.
fn wait(subject: &Subject<'_>, react: &ReactProperties) -> Option<Diagnostic> {
    let run = react.timeout_ms;
    let long = |name: &str, wait: u64| subject.property(name).filter(|_| wait > run).map(|cursor| (cursor, wait));
    let (cursor, wait): (Cursor<'_>, u64) =
        long("retry/base_ms", react.retry.base_ms).or_else(|| long("retry/max_ms", react.retry.max_ms))?;
    let fault = cursor.report(&RULE, format!("a retry may wait {wait} ms, and the whole run has {run} ms"));
    let fault = fault.help("the run ends before such a wait does: make the wait shorter, or `timeout_ms` larger");
    Some(match subject.property("timeout_ms") {
        Some(written) => fault.related(&written.place(), "the run's time is bounded here"),
        None => fault,
    })
}

/// Fewer iterations than the tools need that must be called before the answer.
fn first_call(subject: &Subject<'_>, react: &ReactProperties) -> Option<Diagnostic> {
    // The last call of `on_limit: answer` comes after the iterations.
    if matches!(react.on_limit, OnLimit::Answer) {
        return None;
    }
    let required = match react.require_tool_before_answer.as_ref()? {
        RequiredTools::All(names) => names.iter().collect::<HashSet<_>>().len(),
        RequiredTools::Any(_) => 1,
    };
    let at_once = match react.dialect {
        Dialect::Json => 1,
        _ => usize::try_from(react.max_tool_calls_per_turn).unwrap_or(usize::MAX).max(1),
    };
    let needed = required.div_ceil(at_once).saturating_add(1);
    let most = react.max_iterations;
    let is_short = required > 0 && usize::try_from(most).is_ok_and(|most| most < needed);
    let cursor = subject.property("max_iterations").filter(|_| is_short)?;
    let (message, help) = match most {
        1 if needed == 2 => (
            "a tool must be called before the answer, and one iteration has room for the call alone".to_owned(),
            "the call takes an iteration, and the answer another one: write 2 or more".to_owned(),
        ),
        _ => (
            format!("{required} tools must be called before the answer, and the loop has {most} iterations in all"),
            format!("the calls take {} iterations at least, and the answer one: write {needed} or more", needed - 1),
        ),
    };
    let fault = cursor.report(&RULE, message).help(help);
    Some(match subject.property("require_tool_before_answer") {
        Some(written) => fault.related(&written.place(), "the call is required here"),
        None => fault,
    })
}

/// One token's share that is larger than its organisation's.
fn shares(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(limits) = subject.project().map(|project| &project.serve.limits) else { return };
    let (token, org) = (&limits.token, &limits.org);
    let both = [
        ("connections", token.connections.map(u64::from), org.connections.map(u64::from)),
        ("event_streams", token.event_streams.map(u64::from), org.event_streams.map(u64::from)),
        ("running", token.running.map(u64::from), org.running.map(u64::from)),
        ("queued", token.queued.map(u64::from), org.queued.map(u64::from)),
        (
            "running_seconds_per_hour",
            token.running_seconds_per_hour.map(u64::from),
            org.running_seconds_per_hour.map(u64::from),
        ),
        ("bytes_per_minute", token.bytes_per_minute, org.bytes_per_minute),
    ];
    for (name, one, all) in both {
        let (Some(one), Some(all)) = (one, all) else { continue };
        let cursor = subject.in_project(&format!("/serve/limits/token/{name}"));
        if let Some(cursor) = cursor.filter(|_| one > all) {
            let message = format!("one token may take {one}, and its organisation with all of its tokens {all}");
            let fault =
                cursor.report(&RULE, message).help("the share of a token is not larger than that of its organisation");
            let whole = subject.in_project(&format!("/serve/limits/org/{name}"));
            found.push(match whole {
                Some(whole) => fault.related(&whole.place(), "the organisation's share is here"),
                None => fault,
            });
        }
    }
}
