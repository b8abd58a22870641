//! `loopctl check` for a web page: the same judgement as the program's, over files that are in memory.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use loopctl_lang::check::examine;
use loopctl_lang::compile::Texts;
use loopctl_lang::diagnostic::{Diagnostic, Source, codes};
use loopctl_lang::syntax::document;
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;

/// The most bytes of all files together.
const MAX_BYTES: usize = 1 << 20;

/// The name of the project file.
const PROJECT: &str = "loopctl.json";

/// What a page shows of a file.
#[derive(Serialize)]
struct Report {
    /// Why nothing was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The faults, in the order of the text.
    faults: Vec<Fault>,
}

/// A fault, with the name of its code and the place of its text in bytes.
#[derive(Serialize)]
struct Fault {
    #[serde(flatten)]
    diagnostic: Diagnostic,
    name: &'static str,
    start: usize,
    end: usize,
}

/// Checks the file `main`. `files` is a JSON object: the text of each file by its path, as in a folder with a project file,
/// `actions/`, `loops/` and `workflows/`. Returns JSON: `{"faults": [...]}`, each as `loopctl check --output json` prints it, or
/// `{"refused": "...", "faults": []}`.
#[wasm_bindgen]
pub fn check(files: &str, main: &str) -> String {
    let report = match texts(files, main) {
        Ok(texts) => {
            let document = document::read(&texts.main);
            let faults = examine(&texts, document).diagnostics.into_iter().map(fault).collect();
            Report { refused: None, faults }
        }
        Err(refused) => Report { refused: Some(refused), faults: Vec::new() },
    };
    serde_json::to_string(&report).unwrap_or_else(|error| format!(r#"{{"refused":"{error}","faults":[]}}"#))
}

/// The page of a code in Markdown; empty for a code that is none.
#[wasm_bindgen]
pub fn explain(code: &str) -> String {
    codes::find(code).map_or_else(String::new, |code| code.page.to_owned())
}

fn fault(diagnostic: Diagnostic) -> Fault {
    let name = codes::find(diagnostic.code).map_or("", |code| code.name);
    let (start, end) = (diagnostic.place.start, diagnostic.place.end);
    Fault { diagnostic, name, start, end }
}

fn texts(files: &str, main: &str) -> Result<Texts, String> {
    if files.len() > MAX_BYTES {
        return Err(format!("the files have more than {} KiB together", MAX_BYTES / 1024));
    }
    let files: BTreeMap<String, String> = serde_json::from_str(files).map_err(|error| error.to_string())?;
    let source = |path: &str| files.get(path).map(|text| Source::new(path, text.as_str()));
    let inside = |folder: &str| -> Vec<Source> {
        files.keys().filter(|path| path.starts_with(folder) && *path != main).filter_map(|path| source(path)).collect()
    };
    let mut texts = Texts::new(source(main).ok_or_else(|| format!("no file is named {main}"))?);
    texts.project = source(PROJECT).filter(|_| main != PROJECT);
    texts.actions = inside("actions/");
    texts.loops = inside("loops/");
    texts.workflows = inside("workflows/");
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check, explain};

    fn report(files: &Value, main: &str) -> Value {
        serde_json::from_str(&check(&files.to_string(), main)).unwrap()
    }

    fn files(tool: &str) -> Value {
        let document = json!({
            "type": "loop",
            "properties": {
                "mode": "react",
                "objective": "Find the order.",
                "model": "main",
                "tools": [{ "type": "action", "name": tool }],
                "max_iterations": 4
            }
        });
        let action = json!({
            "action_name": "find_order",
            "kind": "http",
            "description": "Reads one order by its id.",
            "url": "https://api.example.com/orders/{{order_id}}",
            "http_method": "GET"
        });
        let project = json!({ "models": { "main": { "provider": "openai", "model": "gpt-4o-mini" } } });
        json!({
            "loop.json": document.to_string(),
            "actions/find_order.json": action.to_string(),
            "loopctl.json": project.to_string()
        })
    }

    #[test]
    fn a_sound_document_has_no_errors() {
        let report = report(&files("find_order"), "loop.json");
        let errors: Vec<&Value> =
            report["faults"].as_array().unwrap().iter().filter(|fault| fault["severity"] == "error").collect();
        assert!(errors.is_empty(), "{report}");
        assert_eq!(report["refused"], Value::Null);
    }

    #[test]
    fn a_misspelt_tool_is_found_with_its_place_and_its_fix() {
        let files = files("find_ordr");
        let report = report(&files, "loop.json");
        let fault = report["faults"].as_array().unwrap().iter().find(|fault| fault["severity"] == "error").unwrap();
        let text = files["loop.json"].as_str().unwrap();
        let range = |part: &Value| {
            let number = |name: &str| usize::try_from(part[name].as_u64().unwrap()).unwrap();
            number("start")..number("end")
        };
        assert!(text[range(fault)].contains("find_ordr"), "{fault}");
        let mut fixed = text.to_owned();
        let suggestion = &fault["suggestion"];
        fixed.replace_range(range(suggestion), suggestion["replacement"].as_str().unwrap());
        assert_eq!(fixed, text.replace("find_ordr", "find_order"));
        assert!(explain(fault["code"].as_str().unwrap()).contains("## Instead"), "{fault}");
    }

    #[test]
    fn what_is_no_file_or_too_much_is_refused() {
        let refused = |report: Value| report["refused"].as_str().unwrap().to_owned();
        assert_eq!(refused(report(&json!({}), "loop.json")), "no file is named loop.json");
        let long = json!({ "loop.json": " ".repeat(2 << 20) });
        assert_eq!(refused(report(&long, "loop.json")), "the files have more than 1024 KiB together");
        assert_eq!(explain("L9999"), "");
    }
}
