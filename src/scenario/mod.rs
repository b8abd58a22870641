//! Scenarios: plays runs without a model or a network, and judges what came of them. Playing and judging are apart: a
//! judgement is a function of the story of a run.

mod coverage;
mod crash;
mod decisions;
mod faults;
mod journal;
pub mod judge;
mod matcher;
mod outdated_requests;
mod play;
mod probe;
pub mod record;
mod snapshot;
pub mod story;
#[cfg(test)]
mod tests;
mod verdict;

pub use coverage::{CoverageMap, CoverageReport, DocumentCoverage};
pub use probe::{Probe, flow_probe, probes};
pub use snapshot::SnapshotMode;
pub use verdict::{LiveBudget, LiveCount, Measured, ScenarioVerdict, StagedScenario, TestOptions};
