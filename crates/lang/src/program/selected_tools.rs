//! The tools that a request offers, where a loop does not offer all that it declares: those that fit the objective, and
//! those that the model has found since. They follow from the program, the objective and the replies of the model.

use std::sync::OnceLock;

use super::builtin::FIND_TOOL;
use super::tool_search::ToolIndex;
use super::turn_schema::TurnSchema;
use super::{LoopProgram, Tool, ToolKind};
use crate::language::react::{RequiredTools, ToolSelection};

/// The most tools that are offered because the model has found them. With the most that are selected, and the built-in ones, they are
/// fewer than the 128 that providers take.
pub const MAX_FOUND: usize = 48;

/// The tools that are offered, beside the built-in ones.
#[derive(Debug, Default)]
pub struct SelectedTools {
    /// The places of those that were selected at the start, in their order.
    fitting: Vec<usize>,
    /// The places of those that were found, the last one last.
    found: Vec<usize>,
    turn_schema: OnceLock<TurnSchema>,
}

impl PartialEq for SelectedTools {
    fn eq(&self, other: &Self) -> bool {
        (&self.fitting, &self.found) == (&other.fitting, &other.found)
    }
}

impl SelectedTools {
    /// Whether the tool at a place is offered. The built-in ones are not asked for.
    pub fn has(&self, place: usize) -> bool {
        self.is_fitting(place) || self.found.contains(&place)
    }

    /// Whether the tool at a place was selected at the start.
    pub fn is_fitting(&self, place: usize) -> bool {
        self.fitting.binary_search(&place).is_ok()
    }

    /// The places of the tools, those that were found last.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.fitting.iter().chain(&self.found).copied()
    }

    /// The same with what was found now. The oldest of too many is no longer offered: it can be found again.
    pub fn with(&self, now: &[usize]) -> Self {
        let kept = self.found.iter().filter(|place| !now.contains(place));
        let new = now.iter().filter(|place| !self.is_fitting(**place));
        let mut found: Vec<usize> = kept.chain(new).copied().collect();
        found.drain(..found.len().saturating_sub(MAX_FOUND));
        Self { fitting: self.fitting.clone(), found, turn_schema: OnceLock::new() }
    }

    /// The schema of a turn with these tools, made at the first call.
    pub fn turn_schema(&self, program: &LoopProgram) -> &TurnSchema {
        self.turn_schema.get_or_init(|| TurnSchema::of(program, Some(self)))
    }
}

/// The most tools that are selected.
pub fn most(select: &ToolSelection) -> usize {
    usize::try_from(select.most).unwrap_or(usize::MAX)
}

impl LoopProgram {
    /// How it selects tools; nothing where it offers all.
    pub fn selection(&self) -> Option<&ToolSelection> {
        self.properties.select.as_ref().filter(|_| self.tool(FIND_TOOL).is_some())
    }

    /// The tools that a run with this objective offers at its start; nothing where it offers all. What must be called before an
    /// answer is always among them.
    pub fn selected(&self, objective: &str) -> Option<SelectedTools> {
        let select = self.selection()?;
        let required = self.always_selected();
        let is_required = |tool: &Tool| required.contains(&tool.name);
        let mut fitting: Vec<usize> =
            self.tools.iter().enumerate().filter(|(_, tool)| is_required(tool)).map(|(place, _)| place).collect();
        let most = most(select).max(fitting.len());
        for place in self.tool_index().best(objective, most) {
            if fitting.len() < most && !fitting.contains(&place) {
                fitting.push(place);
            }
        }
        fitting.sort_unstable();
        Some(SelectedTools { fitting, ..SelectedTools::default() })
    }

    /// The names of the tools that must be called before an answer, each of them.
    fn always_selected(&self) -> &[String] {
        match &self.properties.require_tool_before_answer {
            Some(RequiredTools::All(names)) => names.as_slice(),
            Some(RequiredTools::Any(_)) | None => &[],
        }
    }

    /// The words of its tools, read at the first call.
    pub fn tool_index(&self) -> &ToolIndex {
        self.tool_index.get_or_init(|| ToolIndex::of(&self.tools))
    }

    /// The tools that are offered, in their order, with the built-in ones; all where nothing is selected.
    pub fn offered_of<'t>(&'t self, selected: Option<&'t SelectedTools>) -> impl Iterator<Item = &'t Tool> {
        let is_selected = move |place: usize, tool: &Tool| {
            matches!(tool.kind, ToolKind::Builtin(_)) || selected.is_none_or(|selected| selected.has(place))
        };
        let tools = self.tools.iter().enumerate().filter(|(_, tool)| tool.is_offered());
        tools.filter(move |(place, tool)| is_selected(*place, tool)).map(|(_, tool)| tool)
    }

    /// The most tools that a request offers, with the built-in ones.
    pub fn most_offered(&self) -> usize {
        let all = self.offered().count();
        let built_in = self.offered().filter(|tool| matches!(tool.kind, ToolKind::Builtin(_))).count();
        let selected =
            |select| most(select).max(self.always_selected().len()).saturating_add(MAX_FOUND).saturating_add(built_in);
        self.selection().map_or(all, |select| selected(select).min(all))
    }
}
