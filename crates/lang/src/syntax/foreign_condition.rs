//! Conditions as other languages write them, and what is written here.

use crate::policy::json_text;

/// The words of conditions in other languages, with ours. `contains` has its operands the other way round.
const OPERATORS: [(&str, &[&str]); 9] = [
    ("equal", &["equals", "==", "===", "=", "is", "stringequals", "numericequals", "booleanequals"]),
    ("notEqual", &["ne", "neq", "!=", "!==", "<>", "notequals", "isnot"]),
    (
        "greaterThan",
        &["gt", ">", "numericgreaterthan", "after", "isafter", "later", "laterthan", "timestampgreaterthan"],
    ),
    ("lessThan", &["lt", "<", "numericlessthan", "before", "isbefore", "earlier", "earlierthan", "timestamplessthan"]),
    (
        "greaterOrEqual",
        &["gte", "ge", ">=", "greaterthanorequal", "numericgreaterthanequals", "onorafter", "notbefore"],
    ),
    ("lessOrEqual", &["lte", "le", "<=", "lessthanorequal", "numericlessthanequals", "onorbefore", "notafter"]),
    ("matches", &["regex", "match"]),
    ("and", &["all", "&&"]),
    ("or", &["any", "||"]),
];

/// What is written here for a word of conditions that is no operator, or whose operands are written in another way.
pub(super) fn condition_word(word: &str) -> Option<&'static str> {
    let plain = word.trim_start_matches('$').replace('_', "").to_ascii_lowercase();
    Some(match &*plain {
        "contains" | "includes" | "has" => {
            "a list is looked into by {\"in\": [\"paid\", \"@input.tags\"]}, the entry first, and a text by {\"matches\": \
             [\"@input.note\", \"paid\"]}"
        }
        "startswith" | "beginswith" => "a text that begins so: {\"matches\": [\"@input.note\", \"^paid\"]}",
        "endswith" => "a text that ends so: {\"matches\": [\"@input.note\", \"paid$\"]}",
        "exists" | "isset" | "ispresent" | "notnull" | "isnotnull" | "defined" => {
            "whether a value is there is asked by {\"hasKey\": \"@input.note\"}"
        }
        "isnull" | "missing" | "notexists" | "doesnotexist" => {
            "whether a value is missing is asked by {\"not\": {\"hasKey\": \"@input.note\"}}"
        }
        "isempty" | "empty" => "an empty list or text: {\"equal\": [{\"length\": \"@input.rows\"}, 0]}",
        "isnotempty" | "notempty" => {
            "a list or text that is not empty: {\"greaterThan\": [{\"length\": \"@input.rows\"}, 0]}"
        }
        "between" => {
            "two comparisons: {\"and\": [{\"greaterOrEqual\": [\"@input.n\", 1]}, {\"lessOrEqual\": [\"@input.n\", 9]}]}"
        }
        "like" | "ilike" => {
            "a text is compared with a pattern, which is a regular expression: {\"matches\": [\"@input.name\", \"^An\"]}"
        }
        "xor" => {
            "one of two, and not both: {\"and\": [{\"or\": [{...}, {...}]}, {\"not\": {\"and\": [{...}, {...}]}}]}"
        }
        "notin" | "nin" => "{\"not\": {\"in\": [\"@input.kind\", [\"a\", \"b\"]]}}",
        "istrue" => "{\"equal\": [\"@input.urgent\", true]}",
        "isfalse" => "{\"equal\": [\"@input.urgent\", false]}",
        _ => return None,
    })
}

/// The operator of a condition that another language's word means.
pub(super) fn operator(word: &str) -> Option<&'static str> {
    let plain = word.trim_start_matches('$').replace('_', "").to_ascii_lowercase();
    OPERATORS.iter().find(|(_, words)| words.contains(&&*plain)).map(|(ours, _)| *ours)
}

/// What is known of the values around a condition.
pub(super) trait KnownValues {
    /// The path of the value that a name means.
    fn path_of(&self, name: &str) -> String;
    /// Whether the condition is about the input of a call: nothing else has a path in it.
    fn is_of_call(&self) -> bool {
        false
    }
    /// Whether the value at a path is true or false, where its schema says what it is.
    fn is_boolean(&self, path: &str) -> Option<bool>;
}

/// The most parts of a text that are put together with `and` or `or`.
const MAX_PARTS: usize = 8;

/// The condition that a text means: one that compares two values (`@input.amount > 100`, `${{ input.amount > 100 }}`), one that
/// names a value that is true or false (`{{input.urgent}}`, `!input.urgent`), or several of them with `&&` or `||`.
pub(super) fn condition(text: &str, known: &dyn KnownValues) -> Option<String> {
    let text = unwrapped(text);
    for (ours, marks) in [("or", ["||", " or ", " OR "]), ("and", ["&&", " and ", " AND "])] {
        let Some(mark) = marks.into_iter().find(|mark| text.contains(mark)) else { continue };
        // Only one of the two: which one binds closer is not for us to say.
        if text.contains('(') || (ours == "or" && [" and ", " AND ", "&&"].iter().any(|other| text.contains(other))) {
            return None;
        }
        let parts: Vec<&str> = text.split(mark).collect();
        let parts: Option<Vec<String>> =
            parts.iter().filter(|_| parts.len() <= MAX_PARTS).map(|part| simple(part.trim(), known)).collect();
        return parts.filter(|parts| parts.len() > 1).map(|parts| format!("{{\"{ours}\": [{}]}}", parts.join(", ")));
    }
    simple(text, known)
}

fn simple(text: &str, known: &dyn KnownValues) -> Option<String> {
    comparison(text, known).or_else(|| {
        let path = lone_path(text, known)?;
        let holds = !text.trim_start().starts_with('!');
        (known.is_boolean(&path) == Some(true)).then(|| format!("{{\"equal\": [\"@{path}\", {holds}]}}"))
    })
}

/// The path of the value that a text names and nothing else: `@input.urgent`, `{{input.urgent}}`, `!$json.urgent`.
pub(super) fn lone_path(text: &str, known: &dyn KnownValues) -> Option<String> {
    let text = unwrapped(text);
    let marked = text.starts_with(['@', '!', '$']);
    let name = unwrapped(text.trim_start_matches(['!', ' ']));
    let path = path(name, known)?;
    (marked || path.contains('.')).then_some(path)
}

/// The condition that a text means which compares two values.
fn comparison(text: &str, known: &dyn KnownValues) -> Option<String> {
    let (one, sign, other) = halves(unwrapped(text))?;
    let ours = operator(sign)?;
    let quoted = other.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
    let value = match quoted {
        Some(inner) if !inner.contains(['\'', '"', '\\']) => serde_json::Value::from(inner),
        _ => json_text::read::<serde_json::Value>(other).ok()?,
    };
    let path = path(one.trim_matches(['{', '}', ' ']), known)?;
    Some(format!("{{\"{ours}\": [\"@{path}\", {value}]}}"))
}

/// What other products call the input of a run, in front of a name in it.
const INPUTS: [&str; 8] = [
    "inputs.parameters.",
    "inputs.",
    "workflow.parameters.",
    "workflow.input.",
    "github.event.inputs.",
    "$input.item.json.",
    "$input.",
    "$execution.input.",
];

/// The path that a name means, without its `@`.
pub(super) fn path(name: &str, known: &dyn KnownValues) -> Option<String> {
    let (is_written, name) = (name.starts_with('@'), name.trim_start_matches('@'));
    let is_path =
        |path: &str| !path.is_empty() && path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    if let Some(inner) = INPUTS.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|inner| is_path(inner)) {
        return Some(format!("input.{inner}"));
    }
    if is_written {
        // It says which value it is.
        let path = if known.is_of_call() { known.path_of(name) } else { name.to_owned() };
        return is_path(name).then_some(path);
    }
    let of_item = ["$json.", "$."].iter().find_map(|prefix| name.strip_prefix(prefix));
    let path = of_item.unwrap_or(name);
    Some(known.path_of(path)).filter(|found| is_path(path) && (of_item.is_none() || found.starts_with("input.")))
}

/// The text within the marks that other products put around an expression as a whole.
fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let inner = [("={{", "}}"), ("${{", "}}"), ("{{", "}}"), ("${", "}")]
        .iter()
        .find_map(|(begin, end)| text.strip_prefix(begin)?.strip_suffix(end));
    inner.filter(|inner| !inner.contains(['{', '}'])).unwrap_or(text).trim()
}

/// The two operands of a comparison with its sign between them, which may be a word. A sign needs no blanks around it.
fn halves(text: &str) -> Option<(&str, &str, &str)> {
    const SIGNS: [&str; 9] = ["===", "!==", "==", "!=", ">=", "<=", "<>", ">", "<"];
    let mut words = text.split_whitespace();
    if let (Some(one), Some(sign), Some(other), None) = (words.next(), words.next(), words.next(), words.next())
        && operator(sign).is_some()
    {
        return Some((one, sign, other));
    }
    let at = text.find(['=', '!', '<', '>'])?;
    let (one, rest) = text.split_at_checked(at)?;
    let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
    Some((one.trim(), sign, rest.get(sign.len()..)?.trim()))
}
