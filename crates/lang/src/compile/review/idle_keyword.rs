//! Keywords that have no effect at their place: for values of another type, or without another keyword.

use super::Part;
use crate::diagnostic::{Severity, codes};
use crate::program::fault::LocalFault;
use crate::program::schema::vocabulary::{Keyword, keyword_named};

/// Keywords that do nothing without another one.
const NEEDS: [(&str, &str); 4] =
    [("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")];

/// Reports the keywords of a part that have no effect.
pub(super) fn faults(part: &Part<'_>) -> Vec<LocalFault> {
    let mut faults = Vec::new();
    // Most parts have none of them: a look at their few members costs less than a search for each name.
    let has_any = part.members.keys().any(|member| NEEDS.iter().any(|(name, _)| name == member));
    for (name, other) in NEEDS.into_iter().filter(|_| has_any) {
        if part.members.contains_key(name) && !part.members.contains_key(other) {
            let message = format!("`{name}` has no effect without `{other}`");
            faults.push(LocalFault::warning(codes::IDLE_KEYWORD, part.below(name), message).at_key());
        }
    }
    let Some(types) = part.types() else { return faults };
    for (name, value) in part.members {
        let Some(keyword) = keyword_named(name).filter(|keyword| keyword.holds.takes(value)) else { continue };
        let is_about = |of_type: &&str| keyword.about.contains(of_type);
        if keyword.about.is_empty() || types.iter().any(is_about) {
            continue;
        }
        let given = types.join("` or `");
        let message = format!("`{name}` has no effect beside the type `{given}`: it is about {}", about(keyword));
        // Without them, nothing says what the whole holds.
        let holds = part.at.is_empty() && matches!(keyword.name, "properties" | "required" | "items" | "prefixItems");
        let severity = if holds { Severity::Error } else { Severity::Warning };
        let fault = LocalFault::error(codes::IDLE_KEYWORD, part.below(name), message).at_key();
        let fault = LocalFault { severity, ..fault }.help(help(keyword, &types));
        faults.push(match counterpart(keyword.name, &types) {
            Some(other) if !part.members.contains_key(other) => fault.rename(name, other),
            _ => fault,
        });
    }
    faults
}

fn about(keyword: &Keyword) -> &'static str {
    match keyword.about.first().copied() {
        Some("string") => "texts",
        Some("array") => "lists",
        Some("object") => "objects",
        _ => "numbers",
    }
}

fn help(keyword: &Keyword, types: &[&str]) -> String {
    if let Some(other) = counterpart(keyword.name, types) {
        return format!("here it is written `{other}`");
    }
    match (keyword.name, types) {
        ("properties" | "required", ["array"]) => {
            "they are those of its items: \"items\": {\"type\": \"object\", \"properties\": {...}}".to_owned()
        }
        ("properties" | "required", _) => "what has properties is of \"type\": \"object\"".to_owned(),
        ("items" | "prefixItems", _) => "what has items is of \"type\": \"array\"".to_owned(),
        _ => "leave it out, or correct the `type`".to_owned(),
    }
}

/// The keyword that bounds values of a type as this one bounds those of another.
fn counterpart(name: &str, types: &[&str]) -> Option<&'static str> {
    let [of_type] = types else { return None };
    let bounds = match *of_type {
        "string" => ["minLength", "maxLength"],
        "integer" | "number" => ["minimum", "maximum"],
        "array" => ["minItems", "maxItems"],
        "object" => ["minProperties", "maxProperties"],
        _ => return None,
    };
    match name {
        "minimum" | "minLength" | "minItems" | "minProperties" => Some(bounds[0]),
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => Some(bounds[1]),
        _ => None,
    }
}
