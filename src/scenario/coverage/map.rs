//! The parts of a document that runs come to, and the places where they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::points::{CoverageKind, CoveragePoint};
use crate::compile::layout::LoopLayout;
use crate::diagnostic::Place;
use crate::engine::event::Started;
use crate::program::flow::{FlowProgram, FlowStep, StepAction};
use crate::program::{Program, Tool};
use crate::syntax::document::{self, Document};
use crate::syntax::{Tree, value_at};

/// A document with the loops and workflows that it calls: what its runs can come to.
#[derive(Debug)]
pub struct CoverageMap {
    pub(super) parts: Vec<CoveragePart>,
    trees: BTreeMap<Arc<str>, Tree>,
}

/// A loop or a workflow.
#[derive(Debug)]
pub(super) struct CoveragePart {
    pub program: Arc<Program>,
    /// The file that it is written in.
    pub file: Arc<str>,
    /// The JSON pointer of it.
    pub root: String,
    /// The places of the properties of a loop.
    layout: LoopLayout,
    /// The JSON pointers of the tools that a loop declares, by name.
    tools: BTreeMap<String, String>,
    /// The steps of a workflow.
    pub steps: Vec<PlacedStep>,
}

/// A step of a workflow.
#[derive(Debug)]
pub(super) struct PlacedStep {
    /// Its address, with the item 0 of each loop.
    pub address: String,
    /// Its JSON pointer.
    pub pointer: String,
    /// The address as it is shown: `review.*.short`.
    pub shown: String,
}

impl CoverageMap {
    /// The map of a document.
    pub fn of(program: &Arc<Program>) -> Self {
        let mut map = Self { parts: Vec::new(), trees: BTreeMap::new() };
        map.add(program, None);
        map
    }

    /// Adds a program and those that it calls, each once; `properties` is the place of those of a loop that is a step.
    /// Chains of calls are bounded: the recursion ends.
    fn add(&mut self, program: &Arc<Program>, properties: Option<&str>) {
        if self.parts.iter().any(|part| Arc::ptr_eq(&part.program, program)) {
            return;
        }
        let Some(source) = program.sources.first() else { return };
        let document = document::read(source);
        let file = Arc::clone(&source.name);
        let layout = match properties {
            Some(properties) => LoopLayout::of_step(properties.to_owned()),
            None => LoopLayout::of(&document).unwrap_or_else(|| LoopLayout::of_step(String::new())),
        };
        let root = properties.and_then(|properties| properties.strip_suffix("/properties"));
        let part = CoveragePart {
            program: Arc::clone(program),
            file: Arc::clone(&file),
            root: root.unwrap_or_default().to_owned(),
            tools: declared(&document, &layout),
            steps: program.as_flow().map(placed).unwrap_or_default(),
            layout,
        };
        let places: Vec<(String, String)> =
            part.steps.iter().map(|step| (step.address.clone(), step.pointer.clone())).collect();
        self.parts.push(part);
        self.trees.entry(file).or_insert(document.tree);
        if let Some(flow) = program.as_flow() {
            for (address, pointer) in places {
                if let Some(StepAction::React(react)) = flow.step_at(&address).map(|step| &step.action) {
                    self.add(&react.program, Some(&format!("{pointer}/properties")));
                }
            }
        }
        for tool in program.all_tools() {
            if let Some(called) = tool.called_loop().or(tool.launched()) {
                self.add(called, None);
            }
        }
    }

    /// The file of the document itself.
    pub fn file(&self) -> Option<&Arc<str>> {
        self.parts.first().map(|part| &part.file)
    }

    /// The texts of its documents.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.trees.values()
    }

    /// The place of a point: a few words, not the whole step or object.
    pub fn place(&self, point: &CoveragePoint) -> Option<Place> {
        let (tree, pointer) = (self.trees.get(&point.file)?, &point.pointer);
        Some(match point.kind {
            CoverageKind::Step => tree.place(&format!("{pointer}/type")),
            CoverageKind::Tool => tree.place(&format!("{pointer}/name")),
            _ => tree.key_place(pointer),
        })
    }

    /// The part that a run is of, by how it started; `caller` is the part of the run that called it.
    pub(super) fn part_of(&self, started: &Started, caller: Option<&CoveragePart>) -> Option<&CoveragePart> {
        let Some(caller) = caller else { return self.parts.first() };
        let at = started.caller.iter().chain(&started.started_by).find_map(|call| call.at.as_deref());
        let called = |tool: &'_ Tool| tool.called_loop().or(tool.launched()).cloned();
        let program = match at {
            Some(at) => match &caller.program.as_flow()?.step_at(at)?.action {
                StepAction::React(react) => Some(Arc::clone(&react.program)),
                StepAction::Call(call) => called(&call.tool),
                _ => None,
            },
            None => caller.program.tools().iter().filter_map(called).find(|called| called.name == started.loop_name),
        }?;
        self.parts.iter().find(|part| Arc::ptr_eq(&part.program, &program))
    }
}

impl CoveragePart {
    /// The JSON pointer of a property of a loop.
    pub fn property(&self, name: &str) -> String {
        self.layout.pointer(name)
    }

    /// The JSON pointer of the declaration of a tool.
    pub fn tool(&self, name: &str) -> String {
        self.tools.get(name).cloned().unwrap_or_else(|| self.property("tools"))
    }

    /// The place of a step by its address, whichever items it is in.
    pub fn step(&self, address: &str) -> Option<(&PlacedStep, &FlowStep)> {
        let step = self.program.as_flow()?.step_at(address)?;
        Some((self.steps.iter().find(|placed| placed.pointer == step.pointer)?, step))
    }
}

/// The steps of a workflow with their places. A loop of mode `foreach` that is a document is its own step.
fn placed(flow: &FlowProgram) -> Vec<PlacedStep> {
    let mut found = Vec::new();
    list(&flow.steps, "", "", &mut found);
    found
}

/// `shown`: the prefix of the addresses as people read them. Loops are at most three deep: the recursion ends.
fn list(steps: &[FlowStep], prefix: &str, shown: &str, found: &mut Vec<PlacedStep>) {
    for first in steps {
        let mut next = Some(first);
        while let Some(step) = next {
            let (address, shown) = (format!("{prefix}{}", step.name), format!("{shown}{}", step.name));
            if let StepAction::Foreach(foreach) = &step.action {
                list(&foreach.steps, &format!("{address}.0."), &format!("{shown}.*."), found);
            }
            found.push(PlacedStep { address, pointer: step.pointer.clone(), shown });
            next = step.otherwise.as_deref();
        }
    }
}

/// The declarations of tools: a name, or an object with one.
fn declared(document: &Document, layout: &LoopLayout) -> BTreeMap<String, String> {
    let pointer = layout.pointer("tools");
    let tools = value_at(&document.value, &pointer).and_then(serde_json::Value::as_array).into_iter().flatten();
    let name = |tool: &'_ serde_json::Value| {
        let named = ["name", "action_name"].into_iter().find_map(|key| tool.get(key)?.as_str());
        named.or(tool.as_str()).map(str::to_owned)
    };
    tools.enumerate().filter_map(|(at, tool)| Some((name(tool)?, format!("{pointer}/{at}")))).collect()
}
