//! Loops that call loops and workflows: each is found by its name, compiled once and shared. Cycles and chains with too
//! many levels are reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::catalog::{Catalog, Shelf};
use super::effort::{Effort, MEASURED};
use super::names::{self, stem};
use super::{Compiled, Texts, tool};
use crate::diagnostic::{Diagnostic, Help, Place, Remedy, Source, codes, few_of_many};
use crate::language::Project;
use crate::language::tool::LoopTool;
use crate::program::fault::LocalFault;
use crate::program::{Program, Tool};
use crate::syntax;
use crate::syntax::document;
use crate::syntax::document::{Document, DocumentKind};

/// How many levels of loops may call each other, the first one counted.
pub const MAX_LEVELS: usize = 8;
/// At most this number of names is searched in the texts; for more, all texts are parsed.
const MAX_SEARCHED_NAMES: usize = 16;

/// Compiles a document: the main one, or a loop that it calls.
pub(super) type CompileDocument = fn(&mut Linker<'_>, &Texts, Document) -> Compiled;

/// The loops that are being compiled, and those that are compiled.
pub(super) struct Linker<'t> {
    texts: &'t Texts,
    compile: CompileDocument,
    pub shelf: Arc<Shelf>,
    pub settings: Option<Arc<Project>>,
    /// The chain of loops that is being compiled, the outermost first.
    open: Vec<OpenLoop>,
    /// The loops of each name that was searched.
    found: BTreeMap<String, Vec<Source>>,
    /// The loops by name, in their order: built when many names are searched.
    by_name: Option<BTreeMap<String, Vec<Source>>>,
    /// The work that was done for the document.
    pub effort: Effort,
    /// The program of each loop, by its file; none when it can't be compiled.
    made: BTreeMap<Arc<str>, Option<Arc<Program>>>,
    /// The loops that were compiled because they are called.
    pub called: Vec<(Texts, Compiled)>,
}

/// A tool that is a loop or a workflow, still to be made.
pub(super) struct DeclaredCall {
    /// Its index among the tools.
    pub index: usize,
    /// The declaration; that of a workflow by the workflow's name.
    pub declaration: LoopTool,
    /// Its JSON pointer.
    pub pointer: String,
    /// The workflow, when it is one.
    pub workflow: Option<CalledWorkflow>,
}

/// A workflow that a tool names.
pub(super) struct CalledWorkflow {
    /// Its document.
    pub source: Source,
    /// The field of the declaration that names it.
    pub field: &'static str,
    /// Whether a call waits for its end.
    pub wait: bool,
}

impl DeclaredCall {
    /// The JSON pointer of what names the document.
    fn at(&self) -> String {
        let field = self.workflow.as_ref().map_or("name", |workflow| workflow.field);
        format!("{}/{field}", self.pointer)
    }
}

/// A document that is being compiled.
struct OpenLoop {
    name: String,
    file: Arc<str>,
    is_workflow: bool,
    /// Whether a step of it runs the next one, and not a loop in it.
    by_step: bool,
    /// Where it calls the next one.
    calls: (String, Place),
}

/// A loop that was made a tool, and its index among the tools.
pub(super) type Made = (usize, Tool, Arc<Program>);

/// The document that a step names.
pub(super) struct NamedDocument<'l> {
    /// What it means.
    pub program: Arc<Program>,
    /// The document as it is written.
    pub document: Option<&'l Document>,
    /// The schema of what its runs answer, where it has steps.
    pub answer: Option<Value>,
}

/// The loops that a loop calls, made tools.
pub(super) struct MadeLoops {
    /// Those that can be compiled.
    pub made: Vec<Made>,
    /// How deep they are nested, with the loop itself.
    pub levels: usize,
    /// Whether all of them are there.
    pub is_whole: bool,
}

impl<'t> Linker<'t> {
    pub(super) fn new(
        texts: &'t Texts,
        shelf: Arc<Shelf>,
        settings: Option<Arc<Project>>,
        compile: CompileDocument,
    ) -> Self {
        Self {
            texts,
            compile,
            shelf,
            settings,
            open: Vec::new(),
            found: BTreeMap::new(),
            by_name: None,
            effort: Effort::default(),
            made: BTreeMap::new(),
            called: Vec::new(),
        }
    }

    /// What is compiled.
    pub(super) fn texts(&self) -> &'t Texts {
        self.texts
    }

    /// Whether the document that is being compiled is called by another.
    pub(super) fn is_called(&self) -> bool {
        !self.open.is_empty()
    }

    /// Compiles the loops and workflows that a document declares. Returns them and the number of levels from here on;
    /// none when one of them can't be compiled.
    pub(super) fn make(
        &mut self,
        main: &Document,
        declared: Vec<DeclaredCall>,
        faults: &mut Vec<Diagnostic>,
    ) -> MadeLoops {
        let (mut made, mut levels, mut whole) = (Vec::new(), 1, true);
        for call in declared {
            few_of_many(faults);
            let Some(called) = self.call(main, &call, faults) else {
                whole = false;
                continue;
            };
            levels = levels.max(called.levels.saturating_add(1));
            let waits = call.workflow.as_ref().is_none_or(|workflow| workflow.wait);
            let DeclaredCall { index, declaration, pointer, .. } = &call;
            match tool::looped(declaration, Arc::clone(&called), waits) {
                Ok(mut tool) => {
                    let (required, settings) = (&declaration.requires_approval, declaration.approval.as_ref());
                    if let Err(found) = tool::approval::require(&mut tool.approval, required, settings) {
                        let at = format!("{pointer}/requires_approval");
                        faults.extend(found.into_iter().map(|fault| fault.placed(&main.tree, &at)));
                    }
                    faults.extend(no_description(main, &call, &called));
                    faults.extend(waits_in_line(main, &call, &called));
                    made.push((*index, tool, called));
                }
                Err(fault) => {
                    whole = false;
                    faults.extend(self.in_document(&called, *fault));
                }
            }
        }
        MadeLoops { made, levels, is_whole: whole }
    }

    /// The document that a step names, compiled; none when there is none, or it has an error.
    pub(super) fn named(
        &mut self,
        main: &Document,
        call: &DeclaredCall,
        faults: &mut Vec<Diagnostic>,
    ) -> Option<NamedDocument<'_>> {
        few_of_many(faults);
        let program = self.call(main, call, faults)?;
        faults.extend(waits_in_line(main, call, &program));
        if let Err(fault) = tool::looped(&call.declaration, Arc::clone(&program), true) {
            faults.extend(self.in_document(&program, *fault));
            return None;
        }
        let compiled = self.compiled(&program);
        let answer = compiled.map(|compiled| compiled.steps.answer.clone()).filter(|_| program.is_flow());
        Some(NamedDocument { document: compiled.map(|compiled| &compiled.document), program, answer })
    }

    /// What was compiled of a loop or a workflow that is called.
    fn compiled(&self, program: &Program) -> Option<&Compiled> {
        let file = program.sources.first().map(|source| &source.name)?;
        self.called.iter().map(|(_, called)| called).find(|called| called.document.tree.source.name == *file)
    }

    /// A fault in the document of a loop or a workflow that is called.
    fn in_document(&self, called: &Program, fault: LocalFault) -> Option<Diagnostic> {
        Some(fault.placed(&self.compiled(called)?.document.tree, ""))
    }

    /// The document that a declaration names, compiled.
    fn call(&mut self, main: &Document, call: &DeclaredCall, faults: &mut Vec<Diagnostic>) -> Option<Arc<Program>> {
        let (name, at) = (call.declaration.name.as_str(), call.at());
        let found = match &call.workflow {
            Some(workflow) => workflow.source.clone(),
            None => self.a_loop(main, name, &at, faults)?,
        };
        let (file, place) = (Arc::clone(&found.name), main.tree.place(&at));
        let here = OpenLoop {
            name: called_name(main),
            file: Arc::clone(&main.tree.source.name),
            is_workflow: main.kind == Some(DocumentKind::Workflow),
            by_step: !at.contains("/tools/"),
            calls: (at.clone(), place.clone()),
        };
        self.open.push(here);
        let called = if let Some(first) = self.open.iter().position(|open| open.file == file) {
            faults.extend(circle(self.open.get(first..).unwrap_or_default()));
            None
        } else {
            let called = self.within_bounds(&found);
            let levels =
                called.as_ref().map_or_else(|levels| *levels, |called| called.as_ref().map_or(0, |c| c.levels));
            if self.open.len().saturating_add(levels) > MAX_LEVELS {
                faults.push(self.too_deep(name, at, &place));
                None
            } else {
                called.ok().flatten()
            }
        };
        self.open.pop();
        called
    }

    /// The text of the loop that a declaration names, at the JSON pointer of the name.
    fn a_loop(&mut self, main: &Document, name: &str, at: &str, faults: &mut Vec<Diagnostic>) -> Option<Source> {
        let mut found = self.find(main, name);
        let second = (found.len() > 1).then(|| found.remove(1));
        let Some(found) = found.into_iter().next() else {
            faults.push(self.unknown(main, name, at));
            faults.extend(self.texts.unread.iter().cloned());
            return None;
        };
        let Some(second) = second else { return Some(found) };
        let message = format!("there are two loops of the name `{name}`");
        let fault = Diagnostic::error(codes::TWO_OF_A_NAME, message, at, main.tree.place(at));
        let fault = fault.help("give one of the two another `name`");
        let [one, other] = [&found, &second].map(|source| named_at(&self.texts.readings.document(source)));
        faults.push(fault.related(&one, "one is here").related(&other, "the other is here"));
        None
    }

    /// Compiles a called loop, once. Beyond the maximum depth nothing is compiled: then returns the least
    /// number of levels.
    fn within_bounds(&mut self, found: &Source) -> Result<Option<Arc<Program>>, usize> {
        if let Some(made) = self.made.get(&found.name) {
            return Ok(made.clone());
        }
        if self.open.len() >= MAX_LEVELS {
            return Err(1);
        }
        let texts = Texts { main: found.clone(), ..self.texts.clone() };
        let compiled = (self.compile)(self, &texts, document::read(found));
        let program = compiled.program.clone();
        // Rules need no other texts, and each of thousands of loops would keep all texts around it.
        let texts = Texts { outside: Arc::clone(&texts.outside), ..Texts::new(texts.main) };
        self.called.push((texts, compiled));
        self.made.insert(Arc::clone(&found.name), program.clone());
        Ok(program)
    }

    fn too_deep(&self, name: &str, at: String, place: &Place) -> Diagnostic {
        let way: Vec<&str> = self.open.iter().map(|open| open.name.as_str()).chain([name]).collect();
        let message = format!("loops call each other more than {MAX_LEVELS} levels deep: {}", way.join(" -> "));
        let mut fault = Diagnostic::error(codes::LOOPS_TOO_DEEP, message, at, place.clone());
        for open in self.open.iter().rev().skip(1) {
            fault = fault.related(&open.calls.1, format!("`{}` calls the next one here", open.name));
        }
        fault.help("let one loop do what several do, or call an action in place of a loop")
    }

    /// The loops of a name. A text is parsed only if it contains the name, and each name is searched once.
    fn find(&mut self, main: &Document, name: &str) -> Vec<Source> {
        let mut found = match self.found.get(name) {
            Some(found) => found.clone(),
            None if self.found.len() < MAX_SEARCHED_NAMES && self.by_name.is_none() => {
                let quoted = syntax::quoted(name);
                let may_be = |source: &&Source| stem(&source.name) == name || source.text.contains(&quoted);
                let is =
                    |source: &&Source| name_of(&self.texts.readings.document(source)).is_some_and(|own| own == name);
                let found: Vec<Source> = self.sources().into_iter().filter(may_be).filter(is).cloned().collect();
                self.found.insert(name.to_owned(), found.clone());
                found
            }
            None => self.by_name().get(name).cloned().unwrap_or_default(),
        };
        let own = &main.tree.source;
        if name_of(main).is_some_and(|own| own == name) && !found.iter().any(|source| source.name == own.name) {
            found.push(own.clone());
        }
        found
    }

    fn by_name(&mut self) -> &BTreeMap<String, Vec<Source>> {
        if self.by_name.is_none() {
            let mut by_name: BTreeMap<String, Vec<Source>> = BTreeMap::new();
            for source in self.sources() {
                if let Some(name) = name_of(&self.texts.readings.document(source)) {
                    by_name.entry(name).or_default().push(source.clone());
                }
            }
            self.by_name = Some(by_name);
        }
        self.by_name.get_or_insert_default()
    }

    /// The texts that may contain loops: those beside the document, and those of `--actions`.
    fn sources(&self) -> Vec<&Source> {
        let given = self.shelf.given.iter().filter(|document| document.kind == Some(DocumentKind::Loop));
        let mut sources: Vec<&Source> = self.texts.loops.iter().collect();
        for source in given.map(|document| &document.tree.source) {
            if !sources.iter().any(|known| known.name == source.name) {
                sources.push(source);
            }
        }
        sources
    }

    fn unknown(&mut self, main: &Document, name: &str, at: &str) -> Diagnostic {
        let effort = self.effort.clone();
        let own = &main.tree.source.name;
        let others = self.by_name().iter().filter(|(_, sources)| sources.iter().any(|source| source.name != *own));
        let near = effort.nearest_field(name, others.map(|(name, _)| name.as_str()).take(MEASURED.0));
        let near = near.map(|(near, lone)| (near.to_owned(), lone));
        let files: Vec<&str> =
            self.sources().iter().map(|source| &*source.name).filter(|file| *file != &**own).collect();
        let searched = if files.is_empty() {
            Help::ending("there is no `loops/*.json` beside the document; ", Remedy::NameActions)
        } else {
            format!("looked in {}", names::list(&files)).into()
        };
        let is_action = !Catalog::new(main, &self.shelf).find(name).is_empty();
        let is_flow = |source: &&Source| {
            let document = self.texts.readings.document(source);
            document.kind == Some(DocumentKind::Workflow)
                && document.value.get("name").and_then(Value::as_str) == Some(name)
        };
        let flow = self.texts.workflows.iter().take(MEASURED.0).find(is_flow);
        let near = near.filter(|_| !is_action && flow.is_none());
        let message = format!("the loop `{name}` is not found");
        let fault = Diagnostic::error(codes::UNKNOWN_LOOP, message, at, main.tree.place(at));
        match near {
            Some((near, lone)) => {
                let fault = fault.help(searched.after(&format!("the nearest name is `{near}`; ")));
                if lone { fault.suggest(syntax::quoted(&near)) } else { fault }
            }
            None if is_action => fault
                .help(format!("`{name}` is an action: declare it as {{\"type\": \"action\", \"name\": \"{name}\"}}")),
            None => match flow {
                Some(flow) => fault.help(format!(
                    "it is a workflow, in {}: declare it as {{\"type\": \"workflow\", \"name\": {}}}",
                    flow.name,
                    syntax::quoted(name)
                )),
                None => fault.help(searched),
            },
        }
    }
}

/// Adds the loops to the tools, and their texts to those of the program.
pub(super) fn put(made: Vec<Made>, tools: &mut Vec<Tool>, sources: &mut Vec<Source>) {
    for (before, (at, tool, called)) in made.into_iter().enumerate() {
        tools.insert(at.saturating_add(before).min(tools.len()), tool);
        for source in &called.sources {
            if !sources.iter().any(|known| known.name == source.name) {
                sources.push(source.clone());
            }
        }
    }
}

/// A call that waits for the end of a run that may wait itself for others of its workflow. It would hold the place of the run that
/// calls, and the slot of a server, meanwhile: those that it waits for may need them.
fn waits_in_line(main: &Document, call: &DeclaredCall, called: &Program) -> Option<Diagnostic> {
    let waits = call.workflow.as_ref().is_none_or(|workflow| workflow.wait);
    if !waits || called.concurrency.is_none() {
        return None;
    }
    let (name, at) = (&called.name, call.at());
    let message =
        format!("`{name}` has `concurrency`, which counts runs of their own, and this call waits for its run");
    let help = match call.workflow {
        Some(_) => {
            "write `\"wait\": false`, so that it is a run of its own; or move `concurrency` to the workflows that call it"
        }
        None => "move `concurrency` to the loops and workflows that call it",
    };
    Some(Diagnostic::error(codes::CONCURRENCY_BELOW, message, at.as_str(), main.tree.place(&at)).help(help))
}

/// The warning for a loop or a workflow without a description: a model chooses a tool by its description.
fn no_description(main: &Document, call: &DeclaredCall, called: &Program) -> Option<Diagnostic> {
    let says = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    if says(&call.declaration.description) || says(&called.description) {
        return None;
    }
    let (at, what) = (call.at(), if call.workflow.is_some() { "workflow" } else { "loop" });
    let message = format!("the {what} `{}` has no description", called.name);
    let fault = Diagnostic::warning(codes::NO_DESCRIPTION, message, at.as_str(), main.tree.place(&at));
    Some(fault.help(format!("give the {what} a `description`, or this tool: the model chooses by it")))
}

/// Reports loops that call each other in a cycle, with the same text for each of them, so that it is reported
/// once.
fn circle(open: &[OpenLoop]) -> Option<Diagnostic> {
    let first = (0..open.len()).min_by_key(|at| open.get(*at).map(|open| Arc::clone(&open.file))).unwrap_or(0);
    let mut round = open.iter().cycle().skip(first).take(open.len());
    let mut way: Vec<&str> = round.clone().map(|open| open.name.as_str()).collect();
    way.extend(way.first().copied());
    let way = way.join(" -> ");
    let message = match open {
        [only] if only.is_workflow && only.by_step => format!("the workflow runs itself: {way}"),
        [only] if only.is_workflow => format!("a loop of the workflow calls the workflow again: {way}"),
        [_] => format!("the loop calls itself: {way}"),
        several if several.iter().any(|open| open.is_workflow) => {
            format!("the loops and workflows call each other in a circle: {way}")
        }
        _ => format!("the loops call each other in a circle: {way}"),
    };
    let (at, place) = round.next()?.calls.clone();
    let mut fault = Diagnostic::error(codes::LOOP_CYCLE, message, at, place);
    for open in round {
        fault = fault.related(&open.calls.1, format!("`{}` calls the next one here", open.name));
    }
    Some(fault.help("take one of the calls out: a circle of loops would never end"))
}

/// The name of a document in a chain of calls.
fn called_name(document: &Document) -> String {
    let name = document.value.get("name").and_then(Value::as_str);
    name.map_or_else(|| stem(&document.tree.source.name), str::to_owned)
}

/// The name of a loop: its `name`, else its file's.
pub(super) fn name_of(document: &Document) -> Option<String> {
    let stem = stem(&document.tree.source.name);
    match document.kind {
        Some(DocumentKind::Loop) => {
            Some(document.value.get("name").and_then(Value::as_str).map_or(stem, str::to_owned))
        }
        // Its kind is not known: the user needs the reason for that.
        None if document.is_broken() => Some(stem),
        _ => None,
    }
}

/// The place of a loop's name.
fn named_at(document: &Document) -> Place {
    if document.value.get("name").is_some() { document.tree.place("/name") } else { document.tree.source.whole() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compile::compile;
    use crate::program::ToolKind;

    fn document(name: &str, calls: &[&str], more: &Value) -> String {
        let tools: Vec<Value> = calls.iter().map(|name| json!({ "type": "loop", "name": name })).collect();
        let mut document = json!({ "type": "loop", "name": name, "description": "Does it.",
            "properties": { "mode": "react", "objective": "x", "tools": tools } });
        for (field, value) in more.as_object().unwrap() {
            document[field] = value.clone();
        }
        document.to_string()
    }

    fn texts(main: &[&str], loops: &[(&str, &[&str])]) -> Texts {
        let mut texts = Texts::new(Source::new("loop.json", document("main", main, &json!({}))));
        for (name, calls) in loops {
            texts.loops.push(Source::new(format!("loops/{name}.json"), document(name, calls, &json!({}))));
        }
        texts
    }

    fn codes(texts: &Texts) -> Vec<(&'static str, String)> {
        let errors = compile(texts).diagnostics.into_iter().filter(Diagnostic::is_error);
        errors.map(|fault| (fault.code, fault.place.file.to_string())).collect()
    }

    fn called<'p>(program: &'p Program, name: &str) -> &'p Arc<Program> {
        match &program.tool(name).unwrap().kind {
            ToolKind::Loop(called) => called,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loop_that_two_others_call_is_compiled_once_and_shared() {
        let compiled = compile(&texts(&["a", "b"], &[("a", &["c"]), ("b", &["c"]), ("c", &[])]));
        let program = compiled.program.unwrap();
        assert!(Arc::ptr_eq(called(called(&program, "a"), "c"), called(called(&program, "b"), "c")));
        assert_eq!((compiled.called.len(), program.levels), (3, 3));
        let names: Vec<&str> = program.sources.iter().map(|source| &*source.name).collect();
        assert_eq!(names, ["loop.json", "loops/a.json", "loops/c.json", "loops/b.json"]);
    }

    #[test]
    fn the_texts_that_a_journal_keeps_make_the_same_program() {
        let program = compile(&texts(&["a", "b"], &[("a", &["c"]), ("b", &["c"]), ("c", &[])])).program.unwrap();
        let mut kept = program.sources.iter().cloned();
        let mut again = Texts::new(kept.next().unwrap());
        again.extra_actions = kept.collect();
        let again = compile(&again).program.unwrap();
        let names = |program: &Program| program.sources.iter().map(|source| source.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&again), names(&program));
        assert!(called(called(&again, "a"), "c").tools().iter().any(|tool| tool.name == "__complete__"));
    }

    #[test]
    fn a_fault_of_a_called_loop_is_reported_once_in_its_own_file() {
        let mut texts = texts(&["a", "b"], &[("a", &["c"]), ("b", &["c"])]);
        let broken = document("c", &[], &json!({ "inputs": {} }));
        texts.loops.push(Source::new("loops/c.json", broken));
        assert_eq!(codes(&texts), [(codes::UNKNOWN_FIELD, "loops/c.json".to_owned())]);
    }

    #[test]
    fn a_circle_is_reported_the_same_way_from_wherever_one_looks() {
        let loops: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["c"]), ("c", &["a"])];
        let reported: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|name| {
                let mut texts = texts(&[], loops);
                texts.main =
                    texts.loops.iter().find(|source| source.name.ends_with(&format!("{name}.json"))).unwrap().clone();
                let found = compile(&texts).diagnostics;
                assert_eq!(found.len(), 1, "{found:#?}");
                (found[0].message.clone(), found[0].place.clone(), found[0].related.len())
            })
            .collect();
        assert!(reported.windows(2).all(|pair| pair[0] == pair[1]), "{reported:#?}");
        assert!(reported[0].0.ends_with("a -> b -> c -> a") && reported[0].2 == 2, "{reported:#?}");
    }

    #[test]
    fn many_ways_through_the_same_loops_are_compiled_once_each() {
        let names: Vec<String> = (0..7).flat_map(|level| (0..20).map(move |at| format!("l{level}_{at}"))).collect();
        let level = |at: usize| names.iter().skip(at * 20).take(20).map(String::as_str).collect::<Vec<_>>();
        let mut texts = texts(&level(0), &[]);
        for (at, name) in names.iter().enumerate() {
            texts
                .loops
                .push(Source::new(format!("loops/{name}.json"), document(name, &level(at / 20 + 1), &json!({}))));
        }
        let compiled = compile(&texts);
        assert_eq!((compiled.called.len(), compiled.program.unwrap().levels), (140, 8));
    }

    #[test]
    fn a_chain_without_end_is_cut_at_its_bound() {
        let names: Vec<String> = (0..3_000).map(|at| format!("l{at}")).collect();
        let mut texts = texts(&["l0"], &[]);
        for (at, name) in names.iter().enumerate() {
            let next: Vec<&str> = names.get(at + 1).map(String::as_str).into_iter().collect();
            texts.loops.push(Source::new(format!("loops/{name}.json"), document(name, &next, &json!({}))));
        }
        assert_eq!(codes(&texts), [(codes::LOOPS_TOO_DEEP, "loops/l6.json".to_owned())]);
    }

    #[test]
    fn what_a_loop_takes_is_its_input_or_what_it_names_of_it() {
        let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let objective =
            json!({ "mode": "react", "objective": "{{input.a}}{{#if input.b}}{{input.b}}{{/if}}", "tools": [] });
        for (more, expected) in [
            (json!({ "input": input }), input),
            (
                json!({ "properties": objective }),
                json!({ "type": "object", "properties": { "a": {}, "b": {} }, "required": ["a"], "additionalProperties": false }),
            ),
        ] {
            let mut texts = texts(&["c"], &[]);
            texts.loops.push(Source::new("loops/c.json", document("c", &[], &more)));
            let program = compile(&texts).program.unwrap();
            assert_eq!(program.tool("c").unwrap().parameters.source(), &expected);
        }
        let mut texts = texts(&["c"], &[]);
        texts.loops.push(Source::new("loops/c.json", document("c", &[], &json!({ "input": { "type": "string" } }))));
        assert_eq!(codes(&texts), [(codes::NO_OBJECT, "loops/c.json".to_owned())]);
    }

    #[test]
    fn a_loop_without_a_description_is_a_warning_where_it_is_called() {
        let mut texts = texts(&["c"], &[]);
        texts.loops.push(Source::new("loops/c.json", document("c", &[], &json!({ "description": " " }))));
        let reported = compile(&texts).diagnostics;
        let here = |fault: &&Diagnostic| fault.code == codes::NO_DESCRIPTION && &*fault.place.file == "loop.json";
        assert_eq!(reported.iter().filter(here).count(), 1, "{reported:?}");
    }
}
