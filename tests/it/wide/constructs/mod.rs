//! Documents that have one construct of the language very often: what the benchmark `wide` times, and what
//! the test `wide` counts.

mod actions;
mod documents;
mod flows;
mod schemas;
mod tools;

use std::fmt::Write as _;

use loopctl::compile::Texts;
use loopctl::diagnostic::Source;

/// A construct, and the texts that have it so many times.
pub type Construct = (&'static str, fn(usize) -> Texts);

/// All constructs.
pub fn all() -> impl Iterator<Item = &'static Construct> {
    [actions::ACTIONS, tools::TOOLS, flows::FLOWS, schemas::SCHEMAS, documents::DOCUMENTS].into_iter().flatten()
}

/// What judging gives of these texts, as `loopctl check` and `POST /check` do it.
pub fn judged(texts: &Texts) -> Vec<loopctl::Diagnostic> {
    use loopctl::compile::{Declared, alone};
    use loopctl::syntax::document;
    let read = document::read(&texts.main);
    let mut found = alone(&read, &Declared::default());
    found.extend(loopctl::examine(texts, read).diagnostics);
    found
}

fn main(text: String) -> Texts {
    Texts::new(Source::new("a.json", text))
}

fn each(n: usize, between: &str, one: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for at in 0..n {
        if at > 0 {
            all.push_str(between);
        }
        let _ = write!(all, "{}", one(at));
    }
    all
}

/// Members of an object, with texts as their values.
fn members(n: usize, begin: &str, value: impl Fn(usize) -> String) -> String {
    each(n, ",", |at| format!("\"{begin}{at}\":\"{}\"", value(at)))
}

fn letters(mut at: usize) -> String {
    let mut word = String::new();
    for _ in 0..4 {
        word.push(char::from(b'a' + u8::try_from(at % 26).unwrap_or(0)));
        at /= 26;
    }
    word
}

/// A loop with these tools, and with these fields around its properties.
fn whole(objective: &str, tools: &str, around: &str) -> String {
    format!(
        "{{\"type\":\"loop\",{around}\"properties\":{{\"mode\":\"react\",\"objective\":\"{objective}\",\"tools\":[{tools}]}}}}"
    )
}

fn objective(text: &str) -> String {
    whole(text, "", "\"name\":\"a\",")
}

fn loop_with(properties: &str) -> String {
    format!(
        "{{\"type\":\"loop\",\"properties\":{{{properties}\"mode\":\"react\",\"objective\":\"Go.\",\"tools\":[]}}}}"
    )
}

fn input(schema: &str) -> Texts {
    main(whole("Go.", "", &format!("\"input\":{{{schema}}},")))
}

fn workflow(steps: &str) -> String {
    format!("{{\"name\":\"w\",\"definition\":{{\"actions\":[{steps}]}}}}")
}

fn step(objective: &str, tools: &str) -> String {
    format!(
        "{{\"type\":\"loop\",\"properties\":{{\"mode\":\"react\",\"objective\":\"{objective}\",\"tools\":[{tools}]}}}}"
    )
}

fn get(name: &str) -> String {
    format!("{{\"action_name\":\"{name}\",\"kind\":\"http\",\"http_method\":\"GET\",\"url\":\"https://h/a\"}}")
}

/// A loop with one tool, whose action has these fields.
fn action(fields: &str) -> Texts {
    let action = format!("\"actions\":[{{\"action_name\":\"tool\",\"description\":\"It does.\",{fields}}}],");
    main(whole("Go.", "{\"type\":\"action\",\"name\":\"tool\"}", &action))
}

fn http(fields: &str) -> Texts {
    action(&format!("\"kind\":\"http\",\"http_method\":\"POST\",\"url\":\"https://h/a\",{fields}"))
}

fn db(query: &str) -> Texts {
    action(&format!("\"kind\":\"db\",\"datasource\":\"d\",\"query\":\"SELECT {query}\""))
}

fn command(fields: &str) -> Texts {
    action(&format!("\"kind\":\"command\",\"program\":\"wc\",{fields}"))
}

fn project(fields: &str) -> Texts {
    main(format!("{{\"datasources\":{{}},{fields}}}").replacen(
        "\"datasources\":{},\"datasources\"",
        "\"datasources\"",
        1,
    ))
}
