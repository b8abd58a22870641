//! Coverage: what of a document the played runs came to. What a document can come to is computed from its program
//! (`points`), and what a run came to from its events (`reached`).

mod conditions;
mod map;
mod point;
mod points;
mod reached_points;
mod report;
mod steps;

pub use map::CoverageMap;
pub use point::{CoverageKind, CoverageOutcome, CoveragePoint};
pub use reached_points::reached;
pub use report::{CoverageReport, DocumentCoverage};
