//! Tool declarations: from the entries of `tools` to the tools that a model may call.

mod action_pattern;
mod lookup;
mod served;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

pub(super) use self::served::of_step::{ProvidedTool, StepTerms};
use super::catalog::{Catalog, Registered, Shelf};
use super::effort::{self, Effort};
use super::layout::LoopLayout;
use super::link::DeclaredCall;
use super::{Texts, ToolSignature, names, tool};
use crate::diagnostic::{Diagnostic, Source, codes, few_of_many, nearest};
use crate::language::tool::{ActionTool, LoopTool, TypedTool};
use crate::language::{Action, Project, ReactProperties, ToolDeclaration};
use crate::policy::name_pattern::is_pattern;
use crate::program::Tool;
use crate::program::approval::ApprovalPolicy;
use crate::program::builtin;
use crate::program::fault::LocalFault;
use crate::program::input_file;
use crate::syntax::document::Document;
use crate::syntax::value_at;

/// The maximum number of tools that a loop may declare.
pub(super) const MAX_TOOLS: usize = 1_000;

/// Makes the tools of a loop.
pub(super) struct Declare<'a> {
    pub texts: &'a Texts,
    pub main: &'a Document,
    pub layout: LoopLayout,
    pub shelf: &'a Shelf,
    pub catalog: Arc<Catalog<'a>>,
    pub properties: &'a ReactProperties,
    /// The settings of the folder; none when they can't be read.
    pub project: Option<Arc<Project>>,
    /// The tools so far.
    pub tools: Vec<Tool>,
    /// The loops and workflows among them, which are still to be made.
    pub called: Vec<DeclaredCall>,
    /// The documents beside the main one whose actions are used.
    pub used: Vec<Source>,
    pub faults: Vec<Diagnostic>,
    /// Where each name is declared.
    declared: BTreeMap<String, String>,
    /// Where each name is declared, in lower case.
    declared_lower: BTreeMap<String, (String, String)>,
    /// The documents whose faults are reported.
    reported: Vec<std::sync::Arc<str>>,
    /// How many actions were not found.
    unknown: usize,
    /// How many names were searched in files that can't be used.
    sought: usize,
    /// The work that was done for the document.
    pub effort: Effort,
}

impl<'a> Declare<'a> {
    pub(super) fn new(
        texts: &'a Texts,
        main: &'a Document,
        layout: LoopLayout,
        shelf: &'a Shelf,
        properties: &'a ReactProperties,
    ) -> Self {
        let catalog = Arc::new(Catalog::new(main, shelf));
        Self { catalog, ..Self::of(texts, main, layout, shelf, properties) }
    }

    /// Without the catalog.
    fn of(
        texts: &'a Texts,
        main: &'a Document,
        layout: LoopLayout,
        shelf: &'a Shelf,
        properties: &'a ReactProperties,
    ) -> Self {
        Self {
            texts,
            main,
            layout,
            shelf,
            catalog: Arc::default(),
            properties,
            project: None,
            tools: Vec::new(),
            called: Vec::new(),
            used: Vec::new(),
            faults: Vec::new(),
            declared: BTreeMap::new(),
            declared_lower: BTreeMap::new(),
            unknown: 0,
            sought: 0,
            effort: Effort::default(),
            reported: shelf.given.iter().map(|document| document.tree.source.name.clone()).collect(),
        }
    }

    /// The same for a loop that is a step of the document.
    pub(super) fn of_step<'b>(&self, layout: LoopLayout, properties: &'b ReactProperties) -> Declare<'b>
    where
        'a: 'b,
    {
        let catalog: Arc<Catalog<'b>> = Arc::<Catalog<'a>>::clone(&self.catalog);
        let (reported, effort, project) = (self.reported.clone(), self.effort.clone(), self.project.clone());
        Declare {
            catalog,
            reported,
            effort,
            project,
            ..Declare::of(self.texts, self.main, layout, self.shelf, properties)
        }
    }

    /// Makes the tools in their order, then the built-in ones.
    pub(super) fn all(&mut self) {
        let pointer = self.layout.pointer("tools");
        let declarations = self.layout.get(self.main, "tools").and_then(Value::as_array);
        if declarations.is_some_and(|all| all.len() > MAX_TOOLS) {
            let message = format!("a loop may declare at most {MAX_TOOLS} tools; the rest is not looked at");
            let place = self.main.tree.place(&format!("{pointer}/{MAX_TOOLS}"));
            self.faults.push(Diagnostic::error(codes::TOO_MUCH, message, pointer.as_str(), place));
        }
        // Without properties that can be read, the declarations are read one by one.
        let read = self.properties.tools.as_slice();
        for (index, value) in declarations.into_iter().flatten().take(MAX_TOOLS).enumerate() {
            let declaration = match read.get(index) {
                Some(declaration) => Ok(Cow::Borrowed(declaration)),
                None => ToolDeclaration::deserialize(value).map(Cow::Owned),
            };
            // The shape reports a declaration that can't be read.
            if let Ok(declaration) = declaration {
                self.one(&declaration, &format!("{pointer}/{index}"));
                few_of_many(&mut self.faults);
            }
        }
        if declarations.is_some_and(Vec::is_empty) && !self.is_complete_without_tools() {
            let message = "the loop has no tools of its own: the model can only think and complete";
            let fault = Diagnostic::warning(codes::NO_TOOLS, message, pointer.as_str(), self.main.tree.place(&pointer));
            self.faults.push(fault.help("declare an action: `{\"type\": \"action\", \"name\": \"...\"}`"));
        }
        self.tools.extend(builtin::of(self.properties.builtins.as_deref()));
    }

    /// Whether a loop without tools is more than one request: other loops call it, its answer has a schema, which the
    /// model is held to, it says which built-in tools it has, or its model reads a file.
    fn is_complete_without_tools(&self) -> bool {
        let own = &self.main.tree.source.name;
        let is_called = self.texts.loops.iter().chain(&self.texts.extra_actions).any(|source| source.name == *own);
        let has = |property: &str| self.layout.get(self.main, property).is_some();
        let reads_file = self.main.value.get("input").is_some_and(|schema| !input_file::places(schema).is_empty());
        is_called || reads_file || has("answer_schema") || has("builtins")
    }

    fn one(&mut self, declaration: &ToolDeclaration, pointer: &str) {
        match declaration {
            ToolDeclaration::Legacy(name) => self.legacy(name.clone(), pointer),
            ToolDeclaration::Typed(TypedTool::Action(declaration)) if is_pattern(&declaration.name) => {
                self.actions_like(declaration, pointer);
            }
            ToolDeclaration::Typed(TypedTool::Action(declaration)) => {
                self.action(declaration, pointer, &format!("{pointer}/name"));
            }
            ToolDeclaration::Typed(TypedTool::Workflow(declaration)) => self.workflow(declaration.clone(), pointer),
            ToolDeclaration::Typed(TypedTool::Loop(declaration)) => self.looped(declaration.clone(), pointer),
            ToolDeclaration::Typed(TypedTool::Mcp(declaration)) => self.served(declaration, pointer),
        }
    }

    /// Makes a tool of a loop, once the other loops are known.
    fn looped(&mut self, declaration: LoopTool, pointer: &str) {
        let at = format!("{pointer}/name");
        if let Some(fault) = self.name_fault(&declaration.name, &at) {
            self.faults.push(fault);
        } else if !self.is_twice(&declaration.name, &at) {
            let (index, pointer) = (self.tools.len(), pointer.to_owned());
            self.called.push(DeclaredCall { index, declaration, pointer, workflow: None });
        }
    }

    fn legacy(&mut self, name: String, pointer: &str) {
        if !is_builtin(&name) {
            let message = format!("`{}` is declared in the old form", name);
            let typed = serde_json::json!({ "type": "action", "name": name }).to_string();
            let place = self.main.tree.place(pointer);
            let fault = Diagnostic::warning(codes::LEGACY_TOOL, message, pointer, place);
            self.faults.push(fault.help(format!("write {typed}")).suggest(typed));
        }
        let declaration = ActionTool { name, ..ActionTool::default() };
        self.action(&declaration, pointer, pointer);
    }

    /// Makes a tool of an action; `pointer` is the declaration, `at` the name in it.
    fn action(&mut self, declaration: &ActionTool, pointer: &str, at: &str) {
        let name = declaration.name.as_str();
        let main = self.main;
        let place = || main.tree.place(at);
        if is_builtin(name) {
            let message = match name {
                builtin::FIND_TOOL => {
                    format!("`{name}` is built in: a loop has it that declares more tools than `select` offers")
                }
                _ => format!("`{name}` is built in and always there"),
            };
            let fault = Diagnostic::warning(codes::DECLARED_BUILTIN, message, at, place());
            let fault = fault.help("take it out of `tools`");
            self.faults.push(match self.main.tree.removal(pointer) {
                Some(span) => fault.suggest_at("", span.start, span.end),
                None => fault,
            });
            return;
        }
        if let Some(fault) = self.name_fault(name, at) {
            // If the loop's own action has the name, it is reported there.
            if !self.catalog.find(name).first().is_some_and(|action| action.own) {
                self.faults.push(fault);
            }
            return;
        }
        if self.is_twice(name, at) {
            return;
        }
        match self.catalog.first_two(name).as_slice() {
            [] => match self.texts.embedded_tool(name) {
                Some(embedded) => {
                    self.embedded(declaration, embedded, pointer);
                    self.require_approval(declaration, pointer);
                }
                None => self.unknown(name, at),
            },
            [action] => {
                if let Some(meaning) = self.read(declaration, *action) {
                    self.loosened(declaration, &meaning, *action, pointer);
                    self.registered(declaration, &meaning, *action, at);
                    self.require_approval(declaration, pointer);
                }
            }
            [first, second, ..] => {
                let message = format!("there are two actions of the name `{name}`");
                let fault = Diagnostic::error(codes::TWO_OF_A_NAME, message, at, place());
                let fault = fault.help("give one of the two another name");
                self.faults
                    .push(fault.related(&first.place(), "one is here").related(&second.place(), "the other is here"));
            }
        }
    }

    /// Reports a name that was declared before; otherwise declares it.
    fn is_twice(&mut self, name: &str, at: &str) -> bool {
        if let Some(first) = self.declared.get(name) {
            let (first, place) = (self.main.tree.place(first), self.main.tree.place(at));
            let fault = Diagnostic::error(codes::DUPLICATE_TOOL, format!("`{name}` is declared twice"), at, place);
            self.faults.push(fault.help("keep one of the two").related(&first, "it is declared here already"));
            return true;
        }
        self.case_twin(name, at);
        self.declared.insert(name.to_owned(), at.to_owned());
        false
    }

    fn name_fault(&self, name: &str, at: &str) -> Option<Diagnostic> {
        let place = || self.main.tree.place(at);
        if name.starts_with("__") {
            let message = format!("names that begin with `__` are those of built-in tools; there is no `{}`", name);
            let fault = Diagnostic::error(codes::SHADOWED_BUILTIN, message, at, place());
            return Some(match nearest(name, builtin::NAMES) {
                Some(near) if near == builtin::FIND_TOOL => {
                    fault.help(format!("`{near}` is not declared: `select` adds it"))
                }
                Some(near) => fault.help(format!("`{near}` is always there: take the declaration out")),
                None => fault.help("give the action another name"),
            });
        }
        let fault = names::fault_of(name)?;
        Some(names::bad_name(name, fault, at, place()))
    }

    fn case_twin(&mut self, name: &str, at: &str) {
        let entry = (name.to_owned(), at.to_owned());
        let Some((other, first)) = self.declared_lower.insert(name.to_lowercase(), entry) else { return };
        let message = format!("`{name}` and `{other}` differ by case only: a model will mix them up");
        let first = self.main.tree.place(&first);
        let fault = Diagnostic::warning(codes::CASE_TWINS, message, at, self.main.tree.place(at));
        self.faults.push(fault.related(&first, "the other is declared here"));
    }

    /// Checks that the names of the document's own actions can be declared.
    pub(super) fn own_names(&mut self) {
        let own: Vec<Registered<'_>> = self.catalog.all.iter().filter(|action| action.own).copied().collect();
        let is_odd = |name: &str| name.starts_with("__") || names::fault_of(name).is_some();
        for action in own.into_iter().filter(|action| is_odd(action.name)) {
            let at = format!("{}/action_name", action.pointer());
            // The shape reports an empty name, and one that is too long.
            let length = action.name.chars().count();
            if let Some(fault) = self.name_fault(action.name, &at).filter(|_| (1..=64).contains(&length)) {
                self.faults.push(fault);
            }
        }
    }

    /// Reads an action that a tool names.
    fn read(&mut self, declaration: &ActionTool, action: Registered<'a>) -> Option<Arc<Action>> {
        if !action.own {
            self.use_document(action.document);
        }
        if !self.effort.spend(effort::weight(action.value)) {
            self.faults.extend(self.effort.too_much(&self.main.tree.source));
            return None;
        }
        let read = action.read();
        // The shape reports why it can't be read, unless the schema and the types disagree.
        if read.is_none() && !action.document.is_broken() {
            let message = format!("the action `{}` can't be read", declaration.name);
            self.faults.push(Diagnostic::error(codes::UNREADABLE, message, action.pointer(), action.place()));
        }
        read
    }

    fn registered(&mut self, declaration: &ActionTool, meaning: &Action, action: Registered<'a>, at: &str) {
        let pointer = action.pointer();
        let unknown = action.document.unknown.below(&pointer);
        if let Action::CustomTable(table) = meaning
            && table.tables.is_empty()
            && !unknown.holds("/tables")
        {
            let message = format!("the model would choose the tables of `{}`: the action names none", declaration.name);
            let fault = Diagnostic::error(codes::MISSING_FIELD, message, at, self.main.tree.place(at));
            let help = "name the tables that it may use in the action: \"tables\": [\"orders\"]";
            self.faults.push(fault.help(help).related(&action.place(), "the action is here"));
            return;
        }
        match tool::declared(declaration, meaning, self.properties, &unknown) {
            Ok((tool, warnings)) => {
                self.tools.push(tool);
                self.faults.extend(warnings.into_iter().map(|fault| place(action, &pointer, fault)));
            }
            Err(faults) => self.faults.extend(faults.into_iter().map(|fault| place(action, &pointer, fault))),
        }
    }

    /// Adds the approvals that a declaration requires to its tool.
    fn require_approval(&mut self, declaration: &ActionTool, pointer: &str) {
        let tool = self.tools.last_mut().filter(|tool| tool.name == declaration.name);
        let mut unused = ApprovalPolicy::default();
        let policy = tool.map_or(&mut unused, |tool| &mut tool.approval);
        let settings = declaration.approval.as_ref();
        if let Err(faults) = tool::approval::require(policy, &declaration.requires_approval, settings) {
            let at = format!("{pointer}/requires_approval");
            self.faults.extend(faults.into_iter().map(|fault| fault.placed(&self.main.tree, &at)));
        }
    }

    /// Warns about limits of an action that the declaration at `pointer` would loosen.
    fn loosened(&mut self, declaration: &ActionTool, meaning: &Action, action: Registered<'a>, pointer: &str) {
        let Some(written) = value_at(&self.main.value, pointer) else { return };
        for (field, floor) in tool::loosened(declaration, written, meaning) {
            let at = format!("{pointer}/{field}");
            let name = field.rsplit('/').next().unwrap_or(field);
            let message = format!("the action `{}` says `\"{name}\": {floor}`, and that counts", declaration.name);
            let place = action.document.tree.place(&format!("{}/{field}", action.pointer()));
            let fault = Diagnostic::warning(codes::LOOSENED, message, at.as_str(), self.main.tree.place(&at));
            let fault = fault.help(format!("write {floor}, or take it out of the declaration"));
            self.faults.push(fault.related(&place, "the action says so here").suggest(floor));
        }
    }

    /// Adds a document beside the main one to the program, and reports its faults.
    fn use_document(&mut self, document: &Document) {
        let source = &document.tree.source;
        if !self.used.iter().any(|used| used.name == source.name) {
            self.used.push(source.clone());
        }
        self.report_faults_of(document);
    }

    fn report_faults_of(&mut self, document: &Document) {
        let name = &document.tree.source.name;
        if !self.reported.contains(name) {
            self.reported.push(name.clone());
            self.faults.extend(document.faults.iter().cloned());
        }
    }

    fn embedded(&mut self, declaration: &ActionTool, embedded: &ToolSignature, pointer: &str) {
        match tool::embedded(embedded, declaration, self.properties) {
            Ok(tool) => {
                self.tools.push(tool);
                self.keep(embedded.text());
            }
            // Its parameters are in no document: the declaration is the nearest place.
            Err(faults) => self.unfit_embedded(embedded, faults, pointer),
        }
    }

    fn unfit_embedded(&mut self, embedded: &ToolSignature, faults: Vec<LocalFault>, pointer: &str) {
        self.faults.extend(faults.into_iter().map(|fault| {
            let message = format!("the embedded tool `{}`, at `{}`: {}", embedded.name, fault.pointer, fault.message);
            Diagnostic::error(fault.code, message, pointer, self.main.tree.place(pointer))
        }));
    }

    /// Adds what a tool is to the texts of the program.
    fn keep(&mut self, text: Option<Source>) {
        if let Some(text) = text
            && !self.used.iter().any(|used| used.name == text.name)
        {
            self.used.push(text);
        }
    }
}

/// Whether a name is that of a built-in tool.
fn is_builtin(name: &str) -> bool {
    builtin::NAMES.contains(&name)
}

/// A fault in an action, at its place in the action's document.
pub(super) fn place(action: Registered<'_>, pointer: &str, fault: LocalFault) -> Diagnostic {
    fault.placed(&action.document.tree, pointer)
}
