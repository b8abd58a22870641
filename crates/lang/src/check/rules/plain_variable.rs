//! A variable in the syntax of another language: it is sent as written.

mod foreign_name;
mod paths;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::check::{Rule, ScopeNames, SentText, Subject, TextScope};
use crate::diagnostic::{Diagnostic, Severity, codes, few_of_many};
use crate::language::action::TextKind;
use crate::policy::placeholder::{Notation, Placeholder};
use crate::program::file_value::{PREFIX, named};
use crate::program::reference::RESERVED;
use crate::syntax::document::DocumentKind;

pub const RULE: Rule = Rule { code: codes::PLAIN_VARIABLE, check };

/// Words of other template languages that name no value.
const BLOCK_WORDS: [&str; 10] = ["for", "not", "and", "else", "elif", "elsif", "endif", "endfor", "end", "unless"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let names = ScopeNames::default();
    for sent in subject.sent_texts() {
        // An operand of a condition is judged as one.
        if subject.compiled.steps.bare_paths.contains_key(sent.cursor.path()) {
            continue;
        }
        let before = found.len();
        in_text(subject, &names, sent, found);
        if found.len() == before {
            found.extend(document_as_text(subject, sent));
        }
        if found.len() == before {
            found.extend(unread_argument(sent));
        }
        few_of_many(found);
    }
}

/// `doc:NAME` in the prompt of a loop that is no step, or in a text of an action: only the steps of a workflow read documents, so
/// that the model, or the server, gets the name alone.
fn document_as_text(subject: &Subject<'_>, sent: &SentText<'_>) -> Option<Diagnostic> {
    let document = subject.document();
    let is_loop = matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::AgentRequest));
    let reads = subject.is_step() || document.value.pointer("/properties/mode").is_some_and(|mode| mode == "foreach");
    let of_action = sent.action.is_some();
    // An address may have any such part, and what is a document as a whole was reported.
    let is_free = matches!(sent.kind, TextKind::Url | TextKind::Script) || subject.is_reported(&sent.cursor.place());
    if if of_action { is_free } else { !is_loop || reads } {
        return None;
    }
    let known = subject.project().map(|project| &project.documents);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let range = sent.text.match_indices(PREFIX).find_map(|(at, _)| {
        let before = sent.text.get(..at)?;
        let rest = sent.text.get(at + PREFIX.len()..)?;
        let sign = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
        let name = rest.get(..rest.find(|letter: char| !sign(letter)).unwrap_or(rest.len()))?;
        let is_all = at == 0 && named(sent.text).is_some_and(|path| !path.contains(char::is_whitespace));
        let is_tag = before.rfind("{{") > before.rfind("}}");
        let is_word = !before.ends_with(char::is_alphanumeric);
        let is_meant = is_word && !is_tag && !name.is_empty() && (is_all && !of_action || is_known(name));
        is_meant.then(|| at..at + PREFIX.len() + name.len())
    })?;
    let written = sent.text.get(range.clone())?;
    let (who, help) = match of_action {
        true => ("an action", "let the step pass the content on in its `properties`, and take it here: `{{NAME}}`"),
        false => {
            ("a loop", "make the loop a step of a workflow, or hand the content over as its input: `{{input.NAME}}`")
        }
    };
    let message =
        format!("`{written}` stays as it is written: {who} reads no document, only the steps of a workflow do");
    let fault = Diagnostic { severity: Severity::Warning, ..sent.cursor.clone().inside(range).report(&RULE, message) };
    Some(fault.help(help))
}

fn in_text<'a>(subject: &Subject<'a>, names: &ScopeNames, sent: &SentText<'a>, found: &mut Vec<Diagnostic>) {
    if sent.kind == TextKind::Hint {
        found.extend(in_hint(sent));
    }
    let written = sent.placeholders();
    let misspelt = paths::of(subject, sent);
    let may_be_foreign = sent.action.is_some() && sent.text.contains("{{");
    if written.is_empty() && misspelt.is_none() && !may_be_foreign {
        return;
    }
    let scope = TextScope::of(subject, names, sent);
    if let Some(fault) = foreign_name::of(sent, &scope) {
        found.push(fault);
    }
    // What is meant as a path as a whole has no placeholders.
    if let Some(fault) = misspelt.and_then(|path| path.fault(subject, sent, &scope)) {
        return found.push(fault);
    }
    let secrets = sent.spelled_secrets(subject);
    let is_secret = |placeholder: &&Placeholder<'_>| {
        let range = &placeholder.range;
        secrets.iter().any(|secret| secret.range.start < range.end && range.start < secret.range.end)
    };
    let mut blocks: BTreeSet<Option<String>> = BTreeSet::new();
    for placeholder in written.iter().filter(|placeholder| !is_secret(placeholder)) {
        let Some(verdict) = Judgement { subject, sent, scope: &scope, placeholder }.verdict() else { continue };
        // Each name is reported once. A block without one belongs to those around it.
        if placeholder.notation == Notation::Block {
            let name = verdict.known.clone();
            if (name.is_none() && !blocks.is_empty()) || !blocks.insert(name) {
                continue;
            }
        }
        found.extend(report(sent, placeholder, verdict, subject));
    }
}

/// What is said of a placeholder.
struct Verdict {
    severity: Severity,
    /// What is written here instead, when that is known.
    meant: Option<String>,
    /// How a block is written here instead, when its name is known.
    block: Option<String>,
    /// The known value that a block names.
    known: Option<String>,
}

impl Verdict {
    fn new(severity: Severity, meant: Option<String>) -> Self {
        Self { severity, meant, block: None, known: None }
    }
}

fn report(
    sent: &SentText<'_>,
    placeholder: &Placeholder<'_>,
    verdict: Verdict,
    subject: &Subject<'_>,
) -> Option<Diagnostic> {
    let cursor = sent.cursor.clone().inside(placeholder.range.clone());
    if subject.is_reported(&cursor.place()) {
        return None;
    }
    let written = sent.text.get(placeholder.range.clone())?;
    let message = match placeholder.notation {
        Notation::Block => format!("`{written}` is of another template language, and stays as it is written"),
        _ => format!("`{written}` is no variable here, and stays as it is written"),
    };
    let fault = Diagnostic { severity: verdict.severity, ..cursor.report(&RULE, message) };
    if let Some(block) = verdict.block {
        return Some(fault.help(block));
    }
    let is_all = placeholder.range == (0..sent.text.len());
    Some(match (verdict.meant, placeholder.notation) {
        (Some(meant), Notation::JsonPath) if is_all && sent.kind.takes_path() => {
            let instead = format!("@{meant}");
            fault.help(format!("a path is written `{instead}`, and inside a text {{{{{meant}}}}}")).suggest(instead)
        }
        (Some(meant), _) => {
            let instead = format!("{{{{{meant}}}}}");
            // A path segment keeps its mark's place: `/:id` becomes `/{{id}}`.
            fault.help(format!("inside a text a variable is written `{instead}`")).suggest(instead)
        }
        (None, Notation::Block) => {
            fault.help("a value is written {{x}}, a condition {{#if x}}...{{/if}}, a list {{#each xs}}...{{/each}}")
        }
        (None, _) => fault.help("inside a text a variable is written {{name}}, or {{input.name}} for the run's input"),
    })
}

/// A placeholder and what is around it.
struct Judgement<'j, 's, 'a> {
    subject: &'s Subject<'a>,
    sent: &'s SentText<'a>,
    scope: &'j TextScope<'s, 'a>,
    placeholder: &'j Placeholder<'a>,
}

impl Judgement<'_, '_, '_> {
    fn verdict(&self) -> Option<Verdict> {
        let Placeholder { name, notation, .. } = self.placeholder;
        match notation {
            Notation::Block => return self.of_block(),
            Notation::Printf => return self.of_printf(),
            _ if self.is_anothers() => return None,
            _ => {}
        }
        match self.scope.meant(name) {
            Some(meant) => Some(Verdict::new(self.of_known(name, &meant)?, Some(meant))),
            None => self.of_unknown(),
        }
    }

    /// How grave it is where somebody has the name.
    fn of_known(&self, name: &str, meant: &str) -> Option<Severity> {
        let notation = self.placeholder.notation;
        let sure = matches!(
            notation,
            Notation::Braces | Notation::MarkedBraces | Notation::Brackets | Notation::Percent | Notation::JsonPath
        );
        let dotted = name.starts_with("input.");
        match self.sent.kind {
            TextKind::Url => self.in_address(meant, dotted).then_some(Severity::Error),
            _ if dotted && !self.sent.kind.is_prose() => Some(Severity::Error),
            TextKind::Prompt | TextKind::Hint | TextKind::Question => self.in_prose(meant, dotted),
            // The text itself takes the value: the rest of it is about something else.
            _ if self.scope.takes(meant) => None,
            _ if notation == Notation::Colon && !self.is_whole() => None,
            TextKind::Step if sure => Some(Severity::Error),
            // The value is sent: what is written here may be for the one who gets it, as in the text of a mail.
            kind if self.scope.takes_elsewhere(meant) && !self.is_whole() => {
                // A name beside values that are taken here is one of them.
                let is_value = notation == Notation::At && (kind == TextKind::Query || self.scope.takes_something());
                (sure || notation == Notation::Dollar || is_value).then_some(Severity::Warning)
            }
            // A part of an address is no text for people.
            TextKind::Query => Some(Severity::Error),
            _ if sure || self.is_whole() => Some(Severity::Error),
            _ => Some(Severity::Warning),
        }
    }

    /// Whether it is a whole segment of an address, or a whole value of its query.
    fn is_address_part(&self) -> bool {
        let Range { start, end } = self.placeholder.range;
        let (before, after) = (self.sent.text.get(..start), self.sent.text.get(end..).unwrap_or_default());
        let ends = after.is_empty() || after.starts_with(['/', '?', '&', '#']);
        ends && before.is_some_and(|before| before.ends_with(['/', '=']))
    }

    /// Whether a known name is meant in an address: `?$filter=` is a name of OData, `/@me` one of a person.
    fn in_address(&self, meant: &str, dotted: bool) -> bool {
        let before = self.sent.text.get(..self.placeholder.range.start).unwrap_or_default();
        let after = self.sent.text.get(self.placeholder.range.end..).unwrap_or_default();
        match self.placeholder.notation {
            Notation::At => dotted || (self.is_address_part() && !self.scope.takes(meant)),
            Notation::Dollar => !after.starts_with('='),
            Notation::Colon => before.ends_with(['/', '=']),
            _ => true,
        }
    }

    /// A text for people may be about placeholders: it is an error only when nothing takes the value.
    fn in_prose(&self, meant: &str, dotted: bool) -> Option<Severity> {
        let notation = self.placeholder.notation;
        if self.scope.takes(meant) || self.is_quoted() {
            return dotted.then_some(Severity::Warning);
        }
        let loose = matches!(notation, Notation::Colon | Notation::Angle | Notation::At | Notation::JsonPath);
        let elsewhere = self.scope.takes_elsewhere(meant);
        match (dotted, loose) {
            (false, true) if notation == Notation::Colon || elsewhere => None,
            (false, true) => Some(Severity::Warning),
            _ if elsewhere => Some(Severity::Warning),
            _ => Some(Severity::Error),
        }
    }

    /// A name that nobody has: in an address it can't be anything else, elsewhere only as the whole text.
    fn of_unknown(&self) -> Option<Verdict> {
        let Placeholder { name, notation, range } = self.placeholder;
        let loose = matches!(
            notation,
            Notation::Dollar | Notation::JsonPath | Notation::At | Notation::Colon | Notation::Percent
        );
        let known = || self.scope.takes_any().then(|| name.replace([' ', '-'], "_"));
        match self.sent.kind {
            TextKind::Url => {
                let in_query = self.sent.text.get(..range.start).is_some_and(|before| before.contains('?'));
                let segment = self.sent.text.get(..range.start).is_some_and(|before| before.ends_with('/'));
                let value = self.sent.text.get(..range.start).is_some_and(|before| before.ends_with('='));
                let clear = match notation {
                    Notation::Braces => !in_query || value,
                    Notation::MarkedBraces | Notation::Angle | Notation::Brackets => true,
                    Notation::Colon => segment && !in_query,
                    _ => false,
                };
                // `/@anna` is somebody; nobody is called `@order_id`.
                let is_id = name.contains('.') || *name == "id" || name.ends_with("_id") || name.ends_with("Id");
                let is_named = *notation == Notation::At && (is_id || RESERVED.contains(name));
                if is_named && self.is_address_part() {
                    return Some(Verdict::new(Severity::Warning, known()));
                }
                clear.then(|| Verdict::new(Severity::Error, known()))
            }
            TextKind::Prompt | TextKind::Hint | TextKind::Question => {
                let plain = matches!(notation, Notation::Braces | Notation::MarkedBraces) && !self.is_quoted();
                let alone = plain && self.has_values_to_take() && !self.scope.takes_something();
                alone.then(|| Verdict::new(Severity::Warning, known()))
            }
            // A step's values are for the platform's own actions, too.
            TextKind::Argument | TextKind::Script | TextKind::Stdin | TextKind::Step => None,
            _ if loose || !self.is_whole() => None,
            _ => Some(Verdict::new(Severity::Warning, None)),
        }
    }

    /// Whether the text could take something: a loop has an input, and a question is asked about something.
    fn has_values_to_take(&self) -> bool {
        self.sent.kind == TextKind::Question || self.subject.document().value.get("input").is_some()
    }

    /// A text may be a template of another language itself: its names say whether ours are meant.
    fn of_block(&self) -> Option<Verdict> {
        let written = self.sent.text.get(self.placeholder.range.clone()).unwrap_or_default();
        let words = || {
            let words = written.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
            words.filter(|word| !word.is_empty())
        };
        let named = words().filter(|word| word.len() > 2 && !BLOCK_WORDS.contains(word));
        let known = named.filter_map(|word| Some((word, self.scope.meant(word)?))).next();
        let severity = match (self.sent.kind, &known) {
            (TextKind::Url | TextKind::Header | TextKind::Query | TextKind::SqlValue, _) => Severity::Error,
            (_, None) => return None,
            _ if self.is_quoted() => return None,
            (TextKind::Prompt | TextKind::Hint | TextKind::Question, Some((word, meant))) => {
                self.in_prose(meant, word.starts_with("input."))?
            }
            _ => Severity::Error,
        };
        let Some((word, meant)) = known else { return Some(Verdict::new(severity, None)) };
        let prints = written.starts_with("<%=") && written.trim_matches(['<', '%', '=', '>', ' ']) == word;
        let block = match words().next() {
            Some("if") => format!("a condition is written {{{{#if {meant}}}}}...{{{{/if}}}}"),
            Some("unless") => format!("a condition is written {{{{#unless {meant}}}}}...{{{{/unless}}}}"),
            Some("for") => format!("a list is written {{{{#each {meant}}}}}...{{{{/each}}}}"),
            _ => format!("a value is written {{{{{meant}}}}}, a condition {{{{#if {meant}}}}}...{{{{/if}}}}"),
        };
        let known = Some(meant.clone());
        Some(Verdict { severity, meant: prints.then_some(meant), block: (!prints).then_some(block), known })
    }

    fn of_printf(&self) -> Option<Verdict> {
        let severity = match self.sent.kind {
            TextKind::Url => Severity::Error,
            TextKind::Prompt | TextKind::Hint | TextKind::Question
                if self.is_quoted() || self.scope.takes_something() =>
            {
                return None;
            }
            TextKind::Question => Severity::Warning,
            TextKind::Prompt if self.has_values_to_take() => Severity::Warning,
            TextKind::Header | TextKind::Query | TextKind::SqlValue | TextKind::Step if self.is_whole() => {
                Severity::Error
            }
            // A mail may be about `%s`: it is meant as a value where one is left over.
            TextKind::Body if !self.scope.takes_something() && self.scope.has_idle_argument() => Severity::Warning,
            _ => return None,
        };
        Some(Verdict::new(severity, None))
    }

    /// Whether it is the syntax of what the text is written in: GraphQL, XML, a database's operators, a shell.
    fn is_anothers(&self) -> bool {
        let Placeholder { name, notation, .. } = self.placeholder;
        let (text, dollar) = (self.sent.text, *notation == Notation::Dollar);
        match self.sent.kind {
            _ if *notation == Notation::Angle && text.contains(&format!("</{name}")) => true,
            TextKind::Body if dollar => {
                let quoted = text.contains(&format!("\"${name}\""));
                (text.contains('{') && !quoted) || self.sent.cursor.path().contains("/$")
            }
            TextKind::Script => dollar || *notation == Notation::MarkedBraces,
            TextKind::Step => self.sent.cursor.path().contains("/matches/"),
            _ => false,
        }
    }

    /// Whether it is the whole text, but for the word before it in a header: `Bearer $TOKEN`.
    fn is_whole(&self) -> bool {
        let before = self.sent.text.get(..self.placeholder.range.start).unwrap_or_default().trim();
        let after = self.sent.text.get(self.placeholder.range.end..).unwrap_or_default().trim();
        let word = self.sent.kind == TextKind::Header && before.chars().all(char::is_alphanumeric);
        after.is_empty() && (before.is_empty() || word)
    }

    /// Whether it is quoted as code, as in a text about it.
    fn is_quoted(&self) -> bool {
        let before = self.sent.text.get(..self.placeholder.range.start).unwrap_or_default();
        before.matches('`').count() % 2 == 1
    }
}

/// A value in a hint, which is sent as it is written.
fn in_hint(sent: &SentText<'_>) -> Option<Diagnostic> {
    let begin = sent.text.find("{{")?;
    let end = begin + sent.text.get(begin..)?.find("}}")? + 2;
    let written = sent.text.get(begin..end)?;
    let message = format!("`{written}` is no variable here, and stays as it is written: a hint is no template");
    let fault = sent.cursor.clone().inside(begin..end).report(&RULE, message);
    let fault = Diagnostic { severity: Severity::Warning, ..fault };
    Some(fault.help("say in words what the agent shall try; the objective may take values"))
}

/// `$1` or `$file` as an argument: no shell reads it, unless the program is one.
fn unread_argument(sent: &SentText<'_>) -> Option<Diagnostic> {
    let name = sent.text.strip_prefix('$').filter(|_| sent.kind == TextKind::Argument)?;
    let before = sent.cursor.path().ends_with("/args/0");
    let is_number = name.len() == 1 && name.chars().all(|c| c.is_ascii_digit());
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let is_name = name.len() > 1 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    ((is_number || is_name) && !before).then(|| {
        let message =
            format!("`{}` is no variable here, and stays as it is written: no shell reads the arguments", sent.text);
        let fault = sent.cursor.report(&RULE, message).help("an argument that a value fills is written {{name}}");
        Diagnostic { severity: Severity::Warning, ..fault }
    })
}
