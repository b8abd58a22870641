//! Syntax of a shell in a command that no shell reads.

use crate::check::{Rule, Subject, shell};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::language::action::CommandAction;

pub const RULE: Rule = Rule { code: codes::SHELL_SYNTAX, check };

/// Arguments that only a shell gives a meaning to.
const OPERATORS: [&str; 9] = ["|", ">", ">>", "<", "&&", "||", "2>&1", "2>", "&>"];

/// Programs that a pipe leads to.
const FILTERS: [&str; 14] =
    ["head", "tail", "grep", "egrep", "awk", "sed", "sort", "uniq", "wc", "cut", "jq", "xargs", "tee", "less"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for used in subject.actions() {
        let Action::Command(command) = &*used.action else { continue };
        if is_line(&command.program) {
            let message = format!("`{}` is no name of a program: it has a space", command.program);
            let mut words = command.program.split_whitespace();
            let program = words.next().unwrap_or_default();
            let args = serde_json::json!(words.collect::<Vec<_>>());
            let help = format!("write \"program\": \"{program}\", and the other words at the start of `args`: {args}");
            let fault = used.at("/program").report(&RULE, message).help(help);
            // A program may have such a name; one that is not allowed is never started.
            let allowed = subject.project().filter(|_| subject.knows_project("/allow/commands"));
            let is_refused = allowed.is_some_and(|project| !project.allow.commands.contains(&command.program))
                && !subject.is_reported(&fault.place);
            let severity = if is_refused { Severity::Error } else { fault.severity };
            found.push(Diagnostic { severity, ..fault });
        }
        if shell::of(command).is_some() {
            continue;
        }
        for (at, arg) in command.args.iter().enumerate().filter(|(at, _)| is_shell_syntax(command, *at)) {
            let message = format!("no shell reads `{arg}`: `{}` gets it as it is written", command.program);
            let help = if arg.starts_with("~/") {
                "write the whole path; `cwd` is the folder that a relative path starts in"
            } else {
                "an action starts one program: take what this would give as a parameter, or write a program that does it all"
            };
            found.push(used.at(&format!("/args/{at}")).report(&RULE, message).help(help));
        }
    }
}

/// Whether the name of a program is a whole command line. A path may have spaces.
pub(super) fn is_line(program: &str) -> bool {
    program.trim().contains(char::is_whitespace) && !program.contains(['/', '\\'])
}

fn is_shell_syntax(command: &CommandAction, at: usize) -> bool {
    let Some(arg) = command.args.get(at) else { return false };
    let before = at.checked_sub(1).and_then(|at| command.args.get(at));
    let after = command.args.get(at + 1);
    // `cut -d |` and `tr | ,` take it as a value; behind `--sort=x`, or before a program that pipes end in, it is none.
    let is_pipe = arg == "|" && after.is_some_and(|after| FILTERS.contains(&after.as_str()));
    let may_take = before.is_some_and(|flag| flag.starts_with('-') && !flag.contains('=') && !is_pipe);
    let is_value = command.program == "tr" || may_take;
    let is_substitution = arg.starts_with("$(") || (arg.len() > 2 && arg.starts_with('`') && arg.ends_with('`'));
    (OPERATORS.contains(&arg.as_str()) && !is_value) || is_substitution || arg.starts_with("~/")
}
