//! The fields of documents that name files and folders, and the folder that each may not leave. A document may come from
//! somebody else: what it names is opened, shown and written only there.

use std::path::{Component, Path, PathBuf};

use super::ProjectFile;
use loopctl_lang::syntax::document::DocumentKind;

/// The folder that a path stays in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// That of the file of scenarios and those below it, without links and hidden folders.
    TestFolder,
    /// That of the project file and those below it.
    Project,
    /// None: who runs the project says by it where databases, secrets and programs are.
    None,
}

/// A field that names a file or a folder.
#[derive(Debug, Clone, Copy)]
pub struct PathField {
    /// The kind of document.
    pub kind: DocumentKind,
    /// The JSON pointer of the field; `*` is any name or number.
    pub pointer: &'static str,
    /// Where the path may lead.
    pub boundary: Boundary,
}

/// All of them.
pub const PATH_FIELDS: [PathField; 13] = [
    PathField { kind: DocumentKind::Scenario, pointer: "/document", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Scenario, pointer: "/scenarios/*/script", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Scenario, pointer: "/scenarios/*/recording", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Scenario, pointer: "/scenarios/*/expect/snapshot", boundary: Boundary::TestFolder },
    PathField {
        kind: DocumentKind::Scenario,
        pointer: "/scenarios/*/under_faults/snapshot",
        boundary: Boundary::TestFolder,
    },
    PathField { kind: DocumentKind::Project, pointer: "/models/*/script", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Project, pointer: "/datasources/*/init", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Project, pointer: "/documents/*", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Project, pointer: "/embedded", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Project, pointer: "/datasources/*/url", boundary: Boundary::None },
    PathField { kind: DocumentKind::Project, pointer: "/store", boundary: Boundary::None },
    PathField { kind: DocumentKind::Actions, pointer: "/cwd", boundary: Boundary::Project },
    PathField { kind: DocumentKind::Actions, pointer: "/command", boundary: Boundary::None },
];

/// Why a file of the project is not opened.
pub const OUTSIDE: &str = "it lies outside of the project's folder";

/// The path of a file that a project file names. One that is not there is given as it is written: who opens it says so.
///
/// # Errors
/// When it lies outside of the project's folder, or a link leads out of it.
pub fn in_project(root: &Path, file: &str) -> Result<PathBuf, &'static str> {
    let path = root.join(file);
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) if !real.starts_with(&root) => Err(OUTSIDE),
        _ => Ok(path),
    }
}

/// The names of a path below a folder, as it is written; none when it leads out of the folder.
pub(super) fn below<'p>(folder: &Path, path: &'p Path) -> Option<Vec<&'p std::ffi::OsStr>> {
    let named = std::path::absolute(folder).ok();
    let path = if path.is_absolute() {
        let mut folders = named.into_iter().chain(folder.canonicalize());
        folders.find_map(|folder| path.strip_prefix(folder).ok())?
    } else {
        path
    };
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                names.pop()?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names)
}

/// Where the files that a file of scenarios names may be.
#[derive(Debug)]
pub struct NamedFiles {
    /// The folder that paths start from.
    pub folder: PathBuf,
    /// The folder of the project file above it, if there is one.
    project: Option<PathBuf>,
}

/// A file that a file of scenarios names.
#[derive(Debug)]
pub struct NamedFile {
    /// Its path, in the user's spelling.
    pub path: PathBuf,
    /// Whether it lies elsewhere and no project file says where the project ends. It is read, for it may be what it should
    /// be, and nothing of it is shown.
    pub is_foreign: bool,
}

impl NamedFiles {
    /// The files of a folder.
    pub fn new(folder: PathBuf) -> Self {
        let project = ProjectFile::find(&folder).map(|file| file.folder);
        Self { folder, project }
    }

    /// The first hidden name of a path without links, below the folder of the project.
    pub fn hidden_in(&self, real: &Path) -> Option<String> {
        let top = self.project.as_deref().unwrap_or(&self.folder).canonicalize().ok();
        let below = top.and_then(|top| real.strip_prefix(top).ok()).unwrap_or(real);
        let mut names = below.components().map(|part| part.as_os_str().to_string_lossy());
        names.find(|name| name.starts_with('.')).map(std::borrow::Cow::into_owned)
    }

    /// A file by the path in a document.
    ///
    /// # Errors
    /// When it lies outside of the project's folder, or a link leads out of it.
    pub fn named(&self, file: &str) -> Result<NamedFile, &'static str> {
        let path = super::within(&self.folder, file);
        if path == Path::new("-") {
            return Err("a file can't have this name");
        }
        let top = self.project.as_deref().unwrap_or(&self.folder);
        let is_inside = match (path.canonicalize(), top.canonicalize()) {
            (Ok(real), Ok(top)) => real.starts_with(top),
            // One that is not there shows nothing: who opens it says so.
            _ => true,
        };
        match (is_inside, &self.project) {
            (true, _) => Ok(NamedFile { path, is_foreign: false }),
            (false, Some(_)) => Err(OUTSIDE),
            (false, None) => Ok(NamedFile { path, is_foreign: true }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use loopctl_lang::language::schema::published;

    /// The pointers of the fields of a published schema that say that they are paths or files.
    fn named(schema: &Value) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        gather(schema, schema, "", &mut found, 0);
        found
    }

    fn gather(root: &Value, schema: &Value, at: &str, found: &mut BTreeSet<String>, depth: usize) {
        if depth > 12 {
            return;
        }
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| root.pointer(name.strip_prefix('#')?));
        for branch in
            ["oneOf", "anyOf", "allOf"].iter().filter_map(|of| schema.get(of)?.as_array()).flatten().chain(target)
        {
            gather(root, branch, at, found, depth + 1);
        }
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let pointer = format!("{at}/{name}");
            let words = field.get("description").and_then(Value::as_str).unwrap_or_default();
            if ["a path, relative to", "A file of SQL", "A script that says"]
                .iter()
                .any(|words_| words.contains(words_))
            {
                found.insert(pointer.clone());
            }
            gather(root, field, &pointer, found, depth + 1);
        }
        for of in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(of).filter(|inner| inner.is_object()) {
                gather(root, inner, &format!("{at}/*"), found, depth + 1);
            }
        }
    }

    #[test]
    fn each_field_that_says_it_is_a_path_is_in_the_list() {
        for kind in DocumentKind::ALL {
            let Some(schema) = published(kind.name()) else { continue };
            let listed = |pointer: &String| {
                PATH_FIELDS.iter().any(|field| field.kind == kind && field.pointer == pointer.as_str())
            };
            let unlisted: Vec<String> = named(&schema).into_iter().filter(|pointer| !listed(pointer)).collect();
            assert_eq!(unlisted, Vec::<String>::new(), "{}", kind.name());
        }
        // The search finds some.
        assert!(named(&published("scenario").unwrap()).contains("/scenarios/*/expect/snapshot"));
    }

    /// A folder with a sound project and a sound file of scenarios.
    fn sound() -> (tempfile::TempDir, Value, Value) {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("p");
        std::fs::create_dir_all(inside.join("kept")).unwrap();
        std::fs::write(folder.path().join("out.json"), "{\"replies\": []}").unwrap();
        let document = json!({"type": "loop", "properties": {"mode": "react", "objective": "x", "tools": []}});
        std::fs::write(inside.join("l.json"), document.to_string()).unwrap();
        let project = json!({"models": {"m": {"provider": "script", "script": "in.json"}},
                             "datasources": {"x": {"url": "sqlite:x.db", "init": "in.sql"}}, "documents": {"d": "in.json"},
                             "embedded": "tools.json"});
        std::fs::write(inside.join("tools.json"), "[]").unwrap();
        std::fs::write(inside.join("in.json"), "{\"replies\": []}").unwrap();
        std::fs::write(inside.join("in.sql"), "CREATE TABLE t (v);").unwrap();
        let scenario = json!({"name": "a", "replies": [{"answer": "x"}], "expect": {"snapshot": "s.txt"}, "faults": "each",
                              "under_faults": {"snapshot": "u.txt"}});
        let other = json!({"name": "b", "script": "in.json", "expect": {"status": "completed"}});
        let third = json!({"name": "c", "recording": "r.json", "expect": {"status": "completed"}});
        (folder, project, json!({"document": "l.json", "scenarios": [scenario, other, third]}))
    }

    /// The faults of a project and its scenarios at a pointer of one of them.
    fn faults(folder: &Path, project: &Value, scenarios: &Value, at: &str) -> Vec<String> {
        let folder = folder.join("p");
        std::fs::write(folder.join("loopctl.json"), project.to_string()).unwrap();
        let file = folder.join("l.test.json");
        std::fs::write(&file, scenarios.to_string()).unwrap();
        let source = crate::project::read(&file).unwrap();
        let document = loopctl_lang::syntax::document::read(&source);
        let mut all = crate::project::scenario_file(document, &file).examined.faults;
        let source = crate::project::read(&folder.join("loopctl.json")).unwrap();
        let outside = std::sync::Arc::new(crate::project::outside(&source, &folder));
        let embedded_file = crate::project::named_files::embedded(&source, &folder);
        let texts = loopctl_lang::compile::Texts {
            outside,
            embedded_file,
            ..loopctl_lang::compile::Texts::new(source.clone())
        };
        let document = loopctl_lang::syntax::document::read_as(&source, Some(DocumentKind::Project));
        all.extend(crate::project::load::examine(&texts, document).diagnostics);
        all.into_iter()
            .filter(|fault| fault.path == at)
            .map(|fault| format!("{}: {}", fault.code, fault.message))
            .collect()
    }

    #[test]
    fn each_path_with_a_boundary_is_refused_outside_of_it() {
        let (folder, project, scenarios) = sound();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("p/link")).unwrap();
        let absolute = folder.path().join("out.json").display().to_string();
        let bounded = PATH_FIELDS.iter().filter(|field| field.boundary != Boundary::None);
        for field in bounded.filter(|field| field.kind != DocumentKind::Actions) {
            for name in ["../out.json", absolute.as_str(), "kept/../../out.json", "link/out.json"] {
                let (mut project, mut scenarios) = (project.clone(), scenarios.clone());
                let changed = if field.kind == DocumentKind::Project { &mut project } else { &mut scenarios };
                let index = if field.pointer.ends_with("/script") { "1" } else { "0" };
                let index = if field.pointer.ends_with("/recording") { "2" } else { index };
                let names = if field.kind == DocumentKind::Scenario { index } else { "m" };
                let pointer =
                    field.pointer.replace("/datasources/*", "/datasources/x").replace("/documents/*", "/documents/d");
                let pointer = pointer.replace('*', names);
                *changed.pointer_mut(&pointer).unwrap_or_else(|| panic!("{pointer}")) = json!(name);
                let found = faults(folder.path(), &project, &scenarios, &pointer);
                assert!(!found.is_empty(), "{pointer} {name}");
                assert!(found.iter().all(|fault| !fault.contains("replies")), "{found:?}");
            }
        }
    }

    #[test]
    fn hidden_names_are_found_below_the_folder_only() {
        let top = tempfile::Builder::new().prefix(".hidden").tempdir().unwrap();
        for folder in [".git", "a/.cache", "a/b"] {
            std::fs::create_dir_all(top.path().join(folder)).unwrap();
        }
        let files = NamedFiles::new(top.path().to_owned());
        let hidden = |name: &str| files.hidden_in(&top.path().canonicalize().unwrap().join(name));
        assert_eq!(hidden(".git/r.json").as_deref(), Some(".git"));
        assert_eq!(hidden("a/.cache/r.json").as_deref(), Some(".cache"));
        assert_eq!(hidden("a/.r.json").as_deref(), Some(".r.json"));
        assert_eq!((hidden("a/b/r.json"), hidden("r.json")), (None, None));
    }
}
