//! A secret in a syntax that nothing here reads: it is sent as written, or the model writes it.

use crate::check::secret_spelling::{SpelledSecret, SpelledSource};
use crate::check::{Rule, SentText, Subject, Used};
use crate::diagnostic::{Diagnostic, Severity, codes, few_of_many};
use crate::language::action::TextKind;

/// What a name of a secret begins with.
const NAMED: &str = "orgconfig:";

pub const RULE: Rule = Rule { code: codes::MISSPELT_SECRET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for sent in subject.sent_texts() {
        for secret in sent.spelled_secrets(subject) {
            let cursor = sent.cursor.clone().inside(secret.range.clone());
            if subject.is_reported(&cursor.place()) {
                continue;
            }
            let written = sent.text.get(secret.range.clone()).unwrap_or_default();
            let message = match (secret.is_tag, &secret.source) {
                (true, _) if sent.action.is_some() => {
                    format!("`{written}` is no secret here: the model would be asked to write it")
                }
                (_, SpelledSource::Blank) => {
                    format!("`{written}` stands in the place of a secret, and is sent as it is written")
                }
                _ => format!("`{written}` is no secret here, and is sent as it is written"),
            };
            found.push(with_help(cursor.report(&RULE, message), secret, sent, subject));
        }
        few_of_many(found);
    }
    for used in subject.actions() {
        found.extend(UNREAD.iter().filter_map(|field| unread(used, field)));
        few_of_many(found);
    }
}

/// A field of an action that is no template.
struct UnreadField {
    name: &'static str,
    /// Whether its text may hold the letters for another reason.
    is_free: bool,
    help: &'static str,
}

const UNREAD: [UnreadField; 2] = [
    UnreadField {
        name: "content_type",
        is_free: false,
        help: "write the type out; a header, whose text may name a secret, is `\"headers\": {\"Content-Type\": ...}`",
    },
    UnreadField {
        name: "query",
        is_free: true,
        help: "a query takes a secret as a value: write a placeholder, and `\"params\": [\"orgconfig:KEY\"]`",
    },
];

/// A secret in a field that is taken as it is written.
fn unread(used: &Used<'_>, field: &UnreadField) -> Option<Diagnostic> {
    let text = used.written().get(field.name)?.as_str().filter(|_| used.knows(&[&format!("/{}", field.name)]))?;
    let begin = text.find(NAMED)?;
    let key = text.get(begin + NAMED.len()..)?;
    let end = key.find(|sign: char| !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.')));
    let key = key.get(..end.unwrap_or(key.len())).filter(|key| !key.is_empty())?;
    let message = format!("`{NAMED}{key}` is no secret in `{}`, and is sent as it is written", field.name);
    let range = begin..begin + NAMED.len() + key.len();
    let fault = used.at(&format!("/{}", field.name)).inside(range).report(&RULE, message).help(field.help);
    Some(if field.is_free { Diagnostic { severity: Severity::Warning, ..fault } } else { fault })
}

fn with_help(fault: Diagnostic, secret: &SpelledSecret, sent: &SentText<'_>, subject: &Subject<'_>) -> Diagnostic {
    let RightSpelling { key, declare } = RightSpelling::of(secret, subject);
    match sent.kind {
        TextKind::Question => {
            return fault.help("a secret never goes to a model: use it in an action's header, address or environment");
        }
        TextKind::Argument => {
            let help = format!("give it in the environment: \"env\": {{\"TOKEN\": \"orgconfig:{key}\"}}{declare}");
            return fault.help(help);
        }
        TextKind::Step => {
            return fault
                .help("a step can't take a secret: name it in the action that the step calls, as `orgconfig:key`");
        }
        _ => {}
    }
    let fault = fault.help(format!("write `orgconfig:{key}`{declare}"));
    // With a key that the project does not have, the text would have the next error.
    match declare.is_empty() {
        true => fault.suggest(format!("orgconfig:{key}")),
        false => fault,
    }
}

/// How a secret is named here.
struct RightSpelling {
    key: String,
    /// Where the key is declared, when it is not yet.
    declare: String,
}

impl RightSpelling {
    fn of(secret: &SpelledSecret, subject: &Subject<'_>) -> Self {
        let project = subject.project();
        let declared = |source: &str| {
            let entries = project.map(|project| &project.orgconfig).into_iter().flatten();
            entries.into_iter().find(|(_, known)| known.written() == Some(source)).map(|(key, _)| key.clone())
        };
        let (key, source) = match &secret.source {
            SpelledSource::Key(key) => {
                (key.clone(), format!("env:{}", key.to_ascii_uppercase().replace(['-', '.'], "_")))
            }
            SpelledSource::Variable(name) => {
                let source = format!("env:{name}");
                (declared(&source).unwrap_or_else(|| name.to_ascii_lowercase()), source)
            }
            SpelledSource::File(path) => {
                let source = format!("file:{path}");
                (declared(&source).unwrap_or_else(|| "my_key".to_owned()), source)
            }
            SpelledSource::Blank => ("my_key".to_owned(), "env:MY_KEY".to_owned()),
        };
        let known = project.is_some_and(|project| project.orgconfig.contains_key(&key));
        let declare = match known {
            true => String::new(),
            false => format!(", and say in loopctl.json where it is: {{\"orgconfig\": {{\"{key}\": \"{source}\"}}}}"),
        };
        Self { key, declare }
    }
}
