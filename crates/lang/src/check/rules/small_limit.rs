//! A spending limit into which no request of the document fits.

use crate::check::model::{self, LongestReply};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::spending_limit::SpendingLimit;

pub const RULE: Rule = Rule { code: codes::SMALL_LIMIT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project().filter(|project| !project.limits.is_empty()) else { return };
    let replies = model::longest_replies(subject);
    for (number, limit) in project.limits.iter().enumerate() {
        let is_own = |wanted: &String| subject.program().is_none_or(|program| program.name == *wanted);
        if !limit.loop_name.as_ref().is_none_or(is_own) {
            continue;
        }
        // One is enough: each request of that kind fails.
        let mut counted =
            replies.iter().filter(|reply| limit.model.as_ref().is_none_or(|name| name == reply.model.name));
        let Some((reply, field, message)) = counted.find_map(|reply| over(limit, reply)) else { continue };
        let Some(cursor) = subject.in_project(&format!("/limits/{number}/{field}")) else { continue };
        if subject.is_reported(&cursor.place()) {
            continue;
        }
        let fault = cursor.report(&RULE, message);
        found.push(match &reply.at {
            Some(at) => {
                fault.help("raise the limit, or lower `max_tokens`").related(&at.place(), "the reply is bounded here")
            }
            None => fault.help("raise the limit, or write a smaller `max_tokens`: this is its default"),
        });
    }
}

/// The reply, the field of the limit that it is over, and what is said of it. A request reserves what it reads, too.
fn over<'r, 's, 'a>(
    limit: &SpendingLimit,
    reply: &'r LongestReply<'s, 'a>,
) -> Option<(&'r LongestReply<'s, 'a>, &'static str, String)> {
    let LongestReply { model, tokens, .. } = reply;
    let name = model.name;
    if let Some(most) = limit.tokens.filter(|most| u64::from(*tokens) >= *most) {
        let message = format!("one reply of `{name}` may have {tokens} tokens, and the spending limit is {most}");
        return Some((reply, "tokens", message));
    }
    let price = model.declared.and_then(|model| model.price)?;
    let usd = f64::from(*tokens) * price.output / 1_000_000.0;
    limit.cost_usd.filter(|most| usd > *most).map(|most| {
        let message = format!("one reply of `{name}` may cost {usd} US dollars, and the spending limit is {most}");
        (reply, "cost_usd", message)
    })
}
