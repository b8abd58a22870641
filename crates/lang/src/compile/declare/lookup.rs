//! Look-ups by name: the faults of names that are not found, and the names of steps and of workflows.

use std::collections::HashSet;

use serde_json::Value;

use super::{Declare, place};
use crate::compile::catalog::{Registered, no_actions};
use crate::compile::effort::{self, MEASURED};
use crate::compile::link::{CalledWorkflow, DeclaredCall, name_of};
use crate::compile::names;
use crate::compile::tool::{self, StepInput};
use crate::diagnostic::{Diagnostic, Help, Remedy, Source, codes, few_of_many, is_slip};
use crate::language::choose::CHOOSE;
use crate::language::notify::NOTIFY;
use crate::language::step::PRIMITIVES;
use crate::language::tool::WorkflowTool;
use crate::language::wait;
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::foreign_step::{self, BuiltInStep, ForeignStep};
use crate::syntax::quoted;
use crate::syntax::shape::foreach_step;

/// How a step runs a loop or a workflow.
fn in_step(kind: &str, name: &str, file: &str) -> String {
    format!(
        "it is in {file}: a step runs it as {{\"type\": \"{kind}\", \"name\": {}}}, with its input in `properties`",
        quoted(name)
    )
}

impl<'a> Declare<'a> {
    /// Whether an action seems to be in a file that can't be used: then only the file's own fault is reported.
    fn is_in_broken(&mut self, name: &str) -> bool {
        // A text is searched for each name: with many missing names, that would take long.
        self.sought += 1;
        if self.sought > MEASURED.1 {
            return false;
        }
        let shelf = self.shelf;
        let quoted = quoted(name);
        let names_it = |document: &Document| document.tree.source.text.contains(&quoted);
        let unfit = |document: &Document| document.is_broken() || document.kind != Some(DocumentKind::Actions);
        // The faults of the files of `--actions` are always reported.
        let mut given = shelf.given.iter().map(|document| &**document).filter(|document| unfit(document));
        if let Some(document) = given.find(|document| names_it(document)) {
            self.faults.extend(no_actions(document).filter(|_| document.kind == Some(DocumentKind::Loop)));
            return true;
        }
        let broken = shelf.beside.iter().find(|document| document.is_broken() && names_it(document));
        if let Some(document) = broken {
            self.report_faults_of(document);
        }
        broken.is_some()
    }

    /// Whether a name is that of a loop or of a workflow: which of them, and its file.
    fn other_kind(&self, name: &str) -> Option<(&'static str, &str)> {
        let wanted = quoted(name);
        let may_be = |source: &&Source| names::stem(&source.name) == name || source.text.contains(&wanted);
        let mut loops = self.texts.loops.iter().take(MEASURED.0).filter(may_be);
        let is_loop = |source: &&Source| name_of(&self.texts.readings.document(source)).is_some_and(|own| own == name);
        let mut flows = self.texts.workflows.iter().take(MEASURED.0).filter(may_be);
        let is_flow = |source: &&Source| {
            let document = self.texts.readings.document(source);
            document.kind == Some(DocumentKind::Workflow)
                && document.value.get("name").and_then(Value::as_str) == Some(name)
        };
        let found = loops.find(is_loop).map(|found| ("loop", found));
        let (kind, found) = found.or_else(|| flows.find(is_flow).map(|found| ("workflow", found)))?;
        Some((kind, &found.name))
    }

    /// That an action is not found because the name is that of a loop, or of a workflow.
    fn is_other_kind(&self, name: &str, at: &str) -> Option<Diagnostic> {
        let (kind, file) = self.other_kind(name)?;
        let message = format!("`{name}` is a {kind}, and no action");
        let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at, self.main.tree.place(at));
        let help = format!("it is in {file}: declare it as {{\"type\": \"{kind}\", \"name\": {}}}", quoted(name));
        let typed = at.strip_suffix("/name").map(|declaration| self.main.tree.place(&format!("{declaration}/type")));
        Some(match typed {
            Some(typed) => fault.help(help).suggest_at(quoted(kind), typed.start, typed.end),
            None => fault.help(help),
        })
    }

    pub(super) fn unknown(&mut self, name: &str, at: &str) {
        let shelf = self.shelf;
        if self.is_in_broken(name) {
            return;
        }
        if let Some(fault) = self.is_other_kind(name, at) {
            return self.faults.push(fault);
        }
        let names = self.catalog.all.iter().map(|action| action.name);
        let names = names.chain(self.texts.embedded_tools().map(|embedded| embedded.name.as_str()));
        self.unknown += 1;
        let measured = if self.unknown > MEASURED.1 { 0 } else { MEASURED.0 };
        let near = self.effort.nearest_field(name, names.take(measured));
        let (near, lone) = near.map_or((None, false), |(near, lone)| (Some(near.to_owned()), lone));
        let searched = self.searched_files();
        let help = match &near {
            Some(near) => searched.after(&format!("the nearest name is `{near}`; ")),
            None => searched,
        };
        let place = self.main.tree.place(at);
        let fault = Diagnostic::error(codes::UNKNOWN_ACTION, format!("the action `{name}` is not found"), at, place);
        let fault = fault.help(help);
        self.faults.push(match near {
            // The declaration's name is a string; in the old form it is the whole declaration.
            Some(near) if lone && at.ends_with("/name") => fault.suggest(quoted(&near)),
            _ => fault,
        });
        if self.unknown > 1 {
            return;
        }
        // It may be in a file that could not be read.
        for document in shelf.beside.iter().filter(|document| document.is_broken()) {
            self.report_faults_of(document);
        }
        self.faults.extend(self.texts.unread.iter().cloned());
    }

    /// The action that a step names, at the JSON pointer of its `type`. None when there is no such action, or
    /// two, or it can't be read; that is reported.
    pub(in crate::compile) fn step(&mut self, name: &str, at: &str) -> Option<Registered<'a>> {
        // The shape reports an empty name.
        if name.is_empty() {
            return None;
        }
        let found = self.catalog.first_two(name);
        let [action] = found.as_slice() else {
            match found.as_slice() {
                [first, second, ..] => {
                    let message = format!("there are two actions of the name `{name}`");
                    let fault = Diagnostic::error(codes::TWO_OF_A_NAME, message, at, self.main.tree.place(at));
                    let fault = fault.help("give one of the two another name");
                    let fault = fault.related(&first.place(), "one is here");
                    self.faults.push(fault.related(&second.place(), "the other is here"));
                }
                _ => self.unknown_step(name, at),
            }
            return None;
        };
        if !action.own {
            self.use_document(action.document);
        }
        Some(*action)
    }

    /// What an action that is a step takes; its faults are reported. Nothing when it can't be compiled.
    pub(in crate::compile) fn step_input(&mut self, action: Registered<'a>) -> Option<StepInput> {
        let pointer = action.pointer();
        let unknown = action.document.unknown.below(&pointer);
        let (input, faults) = match tool::step_input(&*action.read()?, self.properties, &unknown) {
            Ok((input, warnings)) => (Some(input), warnings),
            Err(faults) => (None, faults),
        };
        self.faults.extend(faults.into_iter().map(|fault| place(action, &pointer, fault)));
        input
    }

    /// Judges the document's own actions that nothing names: a name may be misspelt where it is used.
    pub(in crate::compile) fn idle(&mut self, used: &HashSet<&str>) {
        // Of two with one name, none is used.
        let is_idle = |action: &&Registered<'_>| {
            action.own && (!used.contains(action.name) || self.catalog.find(action.name).len() > 1)
        };
        let idle: Vec<Registered<'a>> = self.catalog.all.iter().filter(is_idle).copied().collect();
        for action in idle {
            if !self.effort.spend(effort::weight(action.value)) {
                return;
            }
            self.step_input(action);
            few_of_many(&mut self.faults);
        }
    }

    /// That a step is written as a tool is: its `type` is the name of its action.
    fn is_declared_as_tool(&self, kind: &str, at: &str) -> Option<Diagnostic> {
        let step = at.strip_suffix("/type").filter(|_| kind == "action")?;
        // The shape reports `name` as unknown, and leaves it out of the value.
        let name = self.main.tree.at(step)?.get("name")?.as_str()?;
        if self.catalog.find(name).is_empty() {
            let of = self.provided(name)?.of();
            let message = format!("`{name}` is a tool of {of}: a step has its name as its `type`");
            let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at, self.main.tree.place(at));
            let help = format!("write \"type\": {}; what the tool takes is in `properties`", quoted(name));
            return Some(fault.help(help).suggest(quoted(name)));
        }
        let message = format!("a step names its action as its `type`: `action` is none, and `{name}` is one");
        let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at, self.main.tree.place(at));
        let help = format!("write \"type\": {}; what the action takes is in `properties`", quoted(name));
        Some(fault.help(help).suggest(quoted(name)))
    }

    /// That a choice has its cases elsewhere, or none.
    fn is_choice_without_cases(&self, kind: &str, at: &str) -> Option<Diagnostic> {
        let step = at.strip_suffix("/type").filter(|_| kind == CHOOSE)?;
        let has = |name: &str| self.main.tree.at(&format!("{step}/{name}")).is_some();
        let message = match has("properties/cases") || has("properties/otherwise") {
            true => "a step of type `choose` has `cases` and `otherwise` beside its `type`, and no `properties`",
            false => "a step of type `choose` needs `cases`",
        };
        let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at, self.main.tree.place(at));
        let help = "a choice between lists of steps is {\"type\": \"choose\", \"cases\": [{\"when\": {\"equal\": \
                    [\"@input.kind\", \"refund\"]}, \"steps\": [...]}], \"otherwise\": [...]}";
        Some(fault.help(help))
    }

    /// That a step names what is there and no step: a loop, a workflow, or a kind of actions.
    fn is_no_step(&self, name: &str, at: &str) -> Option<Diagnostic> {
        let fault = |message: String| Diagnostic::error(codes::UNKNOWN_ACTION, message, at, self.main.tree.place(at));
        if let Some(help) = foreign_step::of_kind(name) {
            return Some(fault(format!("`{name}` is a kind of actions, and no step")).help(help));
        }
        let (kind, file) = self.other_kind(name)?;
        let message = format!("`{name}` is a {kind}: a step has its name as `name`, and not as `type`");
        let fault = fault(message).help(in_step(kind, name, file));
        Some(fault.suggest(format!("{}, \"name\": {}", quoted(kind), quoted(name))))
    }

    /// The loop or the workflow of nearly this name, and how a step runs it.
    fn near_other_kind(&self, name: &str) -> Option<String> {
        let of_document = |source: &Source| {
            let document = self.texts.readings.document(source);
            let of_flow = || document.value.get("name").and_then(Value::as_str).map(str::to_owned);
            name_of(&document).or_else(|| of_flow().filter(|_| document.kind == Some(DocumentKind::Workflow)))
        };
        let sources = self.texts.loops.iter().chain(&self.texts.workflows).take(MEASURED.0);
        let of_id = |source: &Source| {
            let document = self.texts.readings.document(source);
            let is_same = document.value.get("id").and_then(Value::as_str) == Some(name);
            is_same.then(|| document.value.get("name").and_then(Value::as_str).map(str::to_owned)).flatten()
        };
        if let Some(named) = sources.clone().find_map(of_id)
            && let Some((kind, file)) = self.other_kind(&named)
        {
            return Some(format!("`{name}` is the `id` of the {kind} `{named}`; {}", in_step(kind, &named, file)));
        }
        let names: Vec<String> = sources.filter_map(of_document).collect();
        let plain = name.to_lowercase();
        let same = names.iter().map(String::as_str).find(|known| known.to_lowercase() == plain);
        let nearest = || self.effort.nearest_field(name, names.iter().map(String::as_str)).map(|(near, _)| near);
        let near = same.or_else(nearest)?;
        let (kind, file) = self.other_kind(near)?;
        Some(format!("the nearest name is `{near}`, a {kind}; {}", in_step(kind, near, file)))
    }

    fn unknown_step(&mut self, name: &str, at: &str) {
        if self.is_in_broken(name) {
            return;
        }
        if let Some(fault) = self.is_declared_as_tool(name, at) {
            return self.faults.push(fault);
        }
        if let Some(fault) = self.is_choice_without_cases(name, at) {
            return self.faults.push(fault);
        }
        if let Some(fault) = self.is_no_step(name, at) {
            return self.faults.push(fault);
        }
        if let Some(fault) = self.is_of_server(name, at) {
            return self.faults.push(fault);
        }
        let words = PRIMITIVES.into_iter().chain(wait::WORDS).chain([NOTIFY]);
        let names = words.chain(self.catalog.all.iter().map(|action| action.name));
        let names = names.chain(self.texts.embedded_tools().map(|embedded| embedded.name.as_str()));
        self.unknown += 1;
        let measured = if self.unknown > MEASURED.1 { 0 } else { MEASURED.0 };
        let near = self.effort.nearest_field(name, names.take(measured));
        let searched = self.searched_files();
        let message = format!("the action `{name}` is not found, and no built-in step has this name");
        let fault = Diagnostic::error(codes::UNKNOWN_ACTION, message, at, self.main.tree.place(at));
        let built_in = BuiltInStep::meant_by(name);
        let step = at.strip_suffix("/type").and_then(|step| self.main.tree.at(step));
        let as_loop = step.filter(|_| built_in.is_some()).and_then(|step| foreach_step(&self.main.tree, step));
        // The shape says it of the fields of the step.
        let is_said = |fault: &Diagnostic| {
            let around = fault.path.rsplit_once('/').map(|(around, _)| around);
            fault.code == codes::UNKNOWN_FIELD && around.is_some() && around == at.strip_suffix("/type")
        };
        if as_loop.is_some() && self.main.faults.iter().any(is_said) {
            return;
        }
        let is_sought = measured > 0 && built_in.is_none() && near.is_none();
        let near_other = if is_sought { self.near_other_kind(name) } else { None };
        self.faults.push(match (built_in, near) {
            (Some(built_in), _) if let Some((step, meant)) = step.zip(as_loop.as_deref()) => {
                fault.help(built_in.help).suggest_at(meant, step.span.start, step.span.end)
            }
            (Some(built_in), _) => {
                let fault = fault.help(built_in.help);
                let properties = at.strip_suffix("/type").map(|step| format!("{step}/properties/{}", built_in.needs));
                let has_all = properties.is_some_and(|needed| self.main.tree.at(&needed).is_some());
                if has_all { fault.suggest(quoted(built_in.name)) } else { fault }
            }
            (None, near)
                if let Some(foreign) = ForeignStep::meant_by(name)
                    && near.is_none_or(|(near, _)| !is_slip(name, near)) =>
            {
                fault.help(foreign.help(self.catalog.all.iter().map(|action| action.name)))
            }
            (None, Some((near, lone))) => {
                let fault = fault.help(searched.after(&format!("the nearest name is `{near}`; ")));
                if lone { fault.suggest(quoted(near)) } else { fault }
            }
            (None, None) if let Some(near) = near_other => fault.help(near),
            (None, None) => fault.help(searched.after(&format!(
                "the built-in steps are `{}`; ",
                [&PRIMITIVES[..], &[CHOOSE, "workflow"], &wait::WORDS, &[NOTIFY]].concat().join("`, `")
            ))),
        });
        if self.unknown == 1 {
            for document in self.shelf.beside.iter().filter(|document| document.is_broken()) {
                self.report_faults_of(document);
            }
            self.faults.extend(self.texts.unread.iter().cloned());
        }
    }

    /// The files in which actions were searched.
    pub(super) fn searched_files(&self) -> Help {
        let shelf = self.shelf;
        let files = shelf.beside.iter().chain(&shelf.given);
        let files: Vec<&str> = files.map(|document| &*document.tree.source.name).collect();
        let none = |before: &str, document: &str| {
            let before = format!("{before}there is no `actions/*.json` beside {document}; ");
            match &self.texts.passed_over {
                Some(file) => Help::ending(format!("{before}`{file}` is not read: "), Remedy::MoveOrNameActions),
                None => Help::ending(before, Remedy::NameActions),
            }
        };
        let carries = self.main.value.get("actions").is_some();
        match (carries, files.as_slice()) {
            (true, []) => none("looked in the document's own `actions`, and ", "it"),
            (true, files) => format!("looked in the document's own `actions` and in {}", names::list(files)).into(),
            (false, files) if self.main.kind == Some(DocumentKind::Workflow) => match files {
                [] => none("", "the workflow"),
                files => format!("looked in {}", names::list(files)).into(),
            },
            (false, []) => none("the document has no `actions`, and ", "it"),
            (false, files) => format!("the document has no `actions`; looked in {}", names::list(files)).into(),
        }
    }

    /// Makes a tool of a workflow, once the other documents are known. It is offered under the workflow's own name.
    pub(super) fn workflow(&mut self, declaration: WorkflowTool, pointer: &str) {
        let (field, wanted) = match (&declaration.id, &declaration.name) {
            (Some(id), _) => ("id", id.clone()),
            (None, Some(name)) => ("name", name.clone()),
            (None, None) => {
                let message = "the tool says neither the `name` nor the `id` of its workflow";
                let place = self.main.tree.place(pointer);
                let fault = Diagnostic::error(codes::UNKNOWN_WORKFLOW, message, pointer, place);
                self.faults.push(fault.help("add `\"name\"`: that of a workflow in `workflows/*.json`"));
                return;
            }
        };
        let Some(found) = self.lookup_workflow(field, &wanted, pointer) else { return };
        let at = format!("{pointer}/{field}");
        let name = found.value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let fault = match (&declaration.id, &declaration.name) {
            (Some(_), Some(other)) if *other != name => {
                let message = format!("the workflow with the id `{wanted}` has the name `{name}`, and not `{other}`");
                let at = format!("{pointer}/name");
                let fault = Diagnostic::error(codes::UNKNOWN_WORKFLOW, message, at.as_str(), self.main.tree.place(&at));
                Some(fault.help("one of `id` and `name` is enough").suggest(quoted(&name)))
            }
            _ => self.name_fault(&name, &at).map(|fault| {
                let named = found.tree.place("/name");
                fault.related(&named, "a tool has the name of its workflow, and that is here")
            }),
        };
        if let Some(fault) = fault {
            self.faults.push(fault);
        } else if !self.is_twice(&name, &at) {
            let workflow = CalledWorkflow { source: found.tree.source.clone(), field, wait: declaration.wait };
            let (index, pointer) = (self.tools.len(), pointer.to_owned());
            let declaration = declaration.of(name);
            self.called.push(DeclaredCall { index, declaration, pointer, workflow: Some(workflow) });
        }
    }

    /// The workflow of a name or an id. None when there is none, or several; that is reported.
    pub(in crate::compile) fn lookup_workflow(
        &mut self,
        field: &'static str,
        wanted: &str,
        pointer: &str,
    ) -> Option<&'a Document> {
        let shelf = self.shelf;
        let mut all: Vec<&'a Document> = shelf.workflows(self.texts);
        // A document that is not beside itself may name itself.
        if self.main.kind == Some(DocumentKind::Workflow)
            && !all.iter().any(|document| document.tree.source.name == self.main.tree.source.name)
        {
            all.push(self.main);
        }
        let known = |document: &'a Document| {
            let workflow = document.kind == Some(DocumentKind::Workflow);
            document.value.get(field).and_then(Value::as_str).filter(|_| workflow)
        };
        let at = format!("{pointer}/{field}");
        let of_name: Vec<&'a Document> =
            all.iter().copied().filter(|document| known(document) == Some(wanted)).collect();
        match of_name.as_slice() {
            [only] => return Some(only),
            [first, second, ..] => {
                let message = format!("there are two workflows of the {field} `{wanted}`");
                let fault = Diagnostic::error(codes::TWO_OF_A_NAME, message, at.as_str(), self.main.tree.place(&at));
                let [one, other] = [first, second].map(|document| document.tree.place(&format!("/{field}")));
                let fault = fault.help(format!("give one of the two another `{field}`"));
                self.faults.push(fault.related(&one, "one is here").related(&other, "the other is here"));
                return None;
            }
            [] => {}
        }
        let quoted_name = quoted(wanted);
        // The faults of the document itself are reported anyway, and it contains the name.
        let is_other = |document: &&&Document| document.tree.source.name != self.main.tree.source.name;
        let names_it = |document: &&&Document| document.is_broken() && document.tree.source.text.contains(&quoted_name);
        let broken = all.iter().filter(is_other).find(names_it);
        if let Some(document) = broken {
            self.report_faults_of(document);
            return None;
        }
        let files: Vec<&str> = all.iter().map(|document| &*document.tree.source.name).collect();
        let searched = match files.as_slice() {
            [] => "there is no `workflows/*.json` beside the document, nor up to the project's folder".to_owned(),
            files => format!("looked in {}", names::list(files)),
        };
        let message = match field {
            "id" => format!("the workflow with the id `{wanted}` is not found"),
            _ => format!("the workflow `{wanted}` is not found"),
        };
        let fault = Diagnostic::error(codes::UNKNOWN_WORKFLOW, message, at.as_str(), self.main.tree.place(&at));
        if let Some(("loop", file)) = self.other_kind(wanted).filter(|_| field == "name") {
            let help =
                format!("it is a loop, in {file}: declare it as {{\"type\": \"loop\", \"name\": {quoted_name}}}");
            self.faults.push(fault.help(help));
            return None;
        }
        let names: Vec<&str> = all.iter().filter_map(|document| known(document)).take(MEASURED.0).collect();
        self.faults.push(match self.effort.nearest_field(wanted, names) {
            Some((near, lone)) => {
                let fault = fault.help(format!("the nearest {field} is `{near}`; {searched}"));
                if lone { fault.suggest(quoted(near)) } else { fault }
            }
            None => fault.help(searched),
        });
        None
    }
}
