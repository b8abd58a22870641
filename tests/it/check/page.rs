//! A code's page: its parts, and the documents in it.

use std::sync::Arc;

use loopctl::compile::Texts;
use loopctl::compile::embedded_tools::EmbeddedFile;
use loopctl::compile::locked_tools::{LockFile, LockedTools};
use loopctl::diagnostic::Source;
use loopctl::diagnostic::codes::Code;

use super::case::{CaseReport, is_fault};

/// What is wrong with a page. Under `## Example` is a document with that fault, under
/// `## Instead` one that does not. A block ```` ```json NAME ```` is another file beside the one before:
/// `loopctl.json`, `mcp.lock.json`, `tools.json` (the tools of a program), `actions/NAME`, `loops/NAME`, `workflows/NAME`, or `input.json`, the input of a run.
pub fn faults(row: &Code, without_documents: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fail = |fault: String| faults.push(format!("{}: {fault}", row.code));
    let Some((about, rest)) = row.page.split_once("\n## Why\n") else {
        return vec![format!("{}: its page has no `## Why`", row.code)];
    };
    if about.lines().skip(1).all(str::is_empty) {
        fail("its page does not say what it reports".to_owned());
    }
    let Some((why, rest)) = rest.split_once("\n## Example\n") else {
        return vec![format!("{}: its page has no `## Example`", row.code)];
    };
    if why.trim().is_empty() {
        fail("its page does not say why".to_owned());
    }
    let Some((example, instead)) = rest.split_once("\n## Instead\n") else {
        return vec![format!("{}: its page has no `## Instead`", row.code)];
    };
    if !row.page.ends_with('\n') || row.page.lines().any(|line| line.ends_with(' ')) {
        fail("its page ends without a newline, or a line of it with a space".to_owned());
    }
    let (fires, clean) = (documents(example), documents(instead));
    if without_documents {
        if !fires.is_empty() || !clean.is_empty() {
            fail("its page has documents: take it out of the list".to_owned());
        }
        return faults;
    }
    if fires.is_empty() || clean.is_empty() {
        fail("its page has no document under `## Example`, or none under `## Instead`".to_owned());
    }
    for report in fires.iter().map(|document| document.report(row.code)) {
        if !report.diagnostics.iter().any(|fault| fault.code == row.code) {
            fail(format!("the example does not bring it:\n{}", report.human()));
        }
    }
    for report in clean.iter().map(|document| document.report(row.code)) {
        let wrong = |fault: &loopctl::Diagnostic| fault.code == row.code || is_fault(fault);
        if report.diagnostics.iter().any(wrong) {
            fail(format!("what to write instead is not sound:\n{}", report.human()));
        }
    }
    faults
}

/// A document of a page, with the files beside it.
struct Document {
    texts: Texts,
    input: Option<serde_json::Value>,
}

impl Document {
    fn report(&self, code: &str) -> CaseReport {
        CaseReport::of(code, &self.texts, self.input.clone())
    }
}

fn documents(part: &str) -> Vec<Document> {
    let mut documents: Vec<Document> = Vec::new();
    for block in part.split("```json").skip(1) {
        let (name, text) = block.split_once('\n').expect("a block has lines");
        let (text, _) = text.split_once("```").expect("a block is closed");
        let name = name.trim();
        if name.is_empty() {
            documents.push(Document { texts: Texts::new(Source::new("loop.json", text)), input: None });
            continue;
        }
        let document = documents.last_mut().expect("the document comes before the files beside it");
        match name {
            "loopctl.json" => document.texts.project = Some(Source::new(name, text)),
            "mcp.lock.json" => {
                let file = LockFile::new(Source::new(name, text));
                document.texts.locked = LockedTools::File(Arc::new(file));
            }
            "tools.json" => {
                document.texts.embedded_file = Some(Arc::new(EmbeddedFile::read(&Source::new(name, text))));
            }
            "input.json" => document.input = Some(serde_json::from_str(text).expect("the input is JSON")),
            _ if name.starts_with("actions/") => document.texts.actions.push(Source::new(name, text)),
            _ if name.starts_with("loops/") => document.texts.loops.push(Source::new(name, text)),
            _ if name.starts_with("workflows/") => document.texts.workflows.push(Source::new(name, text)),
            _ => panic!("a file `{name}` is not looked for"),
        }
    }
    documents
}
