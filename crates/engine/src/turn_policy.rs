//! Several calls in one turn: which of them may be made together, and in which order. The model wrote an answer, or a
//! question to a human, before the other calls of its turn had returned.

use super::dialect::Wanted;
use super::operation::Call;
use loopctl_lang::language::react::CallOrder;
use loopctl_lang::program::{Builtin, LoopProgram, Tool, ToolKind};

/// The kinds of the calls of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnPolicy {
    /// How many calls there are.
    calls: usize,
    /// How many of them end the run.
    endings: usize,
    /// How many of them could return something that the answer should depend on.
    telling: usize,
    /// Whether a human is asked.
    asks: bool,
}

impl TurnPolicy {
    /// The policy of a turn's calls.
    pub fn of(program: &LoopProgram, calls: &[Wanted]) -> Self {
        let mut policy = Self { calls: calls.len(), endings: 0, telling: 0, asks: false };
        for wanted in calls {
            match builtin(program, wanted) {
                Some((Builtin::Complete, _)) => policy.endings += 1,
                Some((Builtin::StoreMemory | Builtin::LogProgress, _)) => {}
                Some((Builtin::PauseForHuman, tool)) => {
                    policy.telling += 1;
                    policy.asks |= wanted.unread.is_none() && tool.parameters.faults(&wanted.input).is_empty();
                }
                _ => policy.telling += 1,
            }
        }
        policy
    }

    /// Whether a call of this tool may be made together with the others.
    ///
    /// # Errors
    /// Why it is not made, in words for the model.
    pub fn allows(self, tool: &Tool) -> Result<(), String> {
        match tool.kind {
            ToolKind::Builtin(Builtin::Complete) if self.calls > 1 => match (self.endings, self.telling) {
                (1, 0) => Ok(()),
                (1, _) => Err("the answer was not taken: it was written before the other calls of its turn had \
                               returned. Read what they gave, and then call __complete__ alone"
                    .to_owned()),
                _ => Err("no answer was taken: one turn gave several. Call __complete__ once, alone".to_owned()),
            },
            ToolKind::Builtin(_) => Ok(()),
            _ if self.asks => Err("not called: this turn asks a human a question. Read the answer, and then call \
                                   it again if it is still right"
                .to_owned()),
            _ => Ok(()),
        }
    }
}

/// The calls that stand before another one in its turn, and have not ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OpenCalls {
    reads: bool,
    others: bool,
}

impl OpenCalls {
    /// Whether a call of this tool may start while these have not ended.
    pub fn let_start(self, order: CallOrder, tool: Option<&Tool>) -> bool {
        match order {
            CallOrder::Together => true,
            CallOrder::ReadsTogether => !self.others && (!self.reads || tool.is_some_and(|tool| tool.read_only)),
            CallOrder::AsWritten => !self.others && !self.reads,
        }
    }

    /// Adds the next call of the turn.
    pub fn add(&mut self, call: &Call, tool: Option<&Tool>) {
        if call.progress.is_done() {
            return;
        }
        match tool {
            Some(tool) if tool.read_only => self.reads = true,
            _ => self.others = true,
        }
    }
}

fn builtin<'a>(program: &'a LoopProgram, wanted: &Wanted) -> Option<(Builtin, &'a Tool)> {
    let tool = program.tool(&wanted.name)?;
    match tool.kind {
        ToolKind::Builtin(which) => Some((which, tool)),
        _ => None,
    }
}
